"""``ResidueFactor``: the growing factor of a Gram matrix modulo a prime; ``FloatFactor`` is the same in floating point.

It decides exactly which functions raise the rank. The paper's functions are far from orthogonal if cells are missing:
on real data their pivots decrease smoothly to below 1e-6, the level of accumulated rounding errors in a Gram matrix,
and a greedy choice in floating point goes wrong. But counts and doubles are rational numbers, and modulo a prime the
same elimination is exact:

    Gram = L D L^T modulo the prime, left-looking by panels, skipping columns whose pivot is zero.

A pivot that is zero in the rationals is zero modulo every prime. A non-zero pivot may vanish modulo a prime, which then
misses a direction, and may be wrong about later functions too. The opposite error cannot happen: as long as two primes
agree, functions kept modulo either are independent. So at the first disagreement the prime that keeps a function is
right; the other is discarded and replaced by a further prime. A choice is accepted when two primes agree on it
(``AgreedProfile``), and is wrong only if both miss the same direction first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import NDArray

from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.phi.residues import modulo, primes, product_modulo
from exanova.typing import FloatArray

PANEL = 64

AGREEING = 2
"""Primes that must agree on a choice."""

MOST_PRIMES = 1000
"""Primes tried at most; nearly all of them are usable unless there are millions of cells."""

GramRows = Callable[[Sequence[int], int], "list[FloatArray | None]"]
"""From (primes, first) to the rows, modulo each prime, of the Gram matrix of the kept and the new functions, from
function number ``first`` on; ``None`` for a prime that cannot be used."""


def error_bound(rank: int, chosen: Sequence[int]) -> float:
    """Probability that a choice on which all of these primes agree is wrong.

    The first missed direction would be one of ``rank`` pivots and vanish modulo each of the primes, with probability
    1 / prime each if all remainders of a non-zero pivot are equally likely.

    >>> error_bound(400, [1048573, 1048571]) < 1e-9
    True
    """
    return rank / prod(chosen)


class AgreedProfile:
    """The rank profile of functions that arrive in batches: which of them raise the rank, agreed on by two primes."""

    def __init__(self, max_rank: int | None = None, candidates: Sequence[int] | None = None) -> None:
        self._max_rank = max_rank
        self._untried = iter(candidates) if candidates is not None else islice(primes(), MOST_PRIMES)
        self._profiles: list[ResidueFactor] = []
        self._smallest: int | None = None
        self.rank = 0

    @property
    def primes(self) -> list[int]:
        """The primes that agree so far."""
        return [profile.prime for profile in self._profiles]

    @property
    def error(self) -> float:
        """Upper bound on the probability that the choice so far is wrong."""
        return error_bound(self.rank, [self._smallest or 1] * AGREEING)

    def append(self, rows: GramRows) -> NDArray[np.bool_]:
        """Add functions and return which of them raise the rank. Only those are kept."""
        best: NDArray[np.bool_] | None = None
        agreeing: list[ResidueFactor] = []
        waiting = self._profiles
        while len(agreeing) < AGREEING:
            waiting = waiting or [self._fresh() for _ in range(AGREEING - len(agreeing))]
            found = self._found(waiting, rows)
            for profile, kept in zip(waiting, found, strict=True):
                if kept is None or (best is not None and kept.tobytes() < best.tobytes()):
                    continue  # the prime cannot be used, or has missed a direction that another one has
                if best is None or kept.tobytes() > best.tobytes():
                    best, agreeing = kept, []
                agreeing.append(profile)
            waiting = []
        assert best is not None
        self._profiles, self.rank = agreeing, self.rank + int(np.count_nonzero(best))
        self._smallest = min([*self.primes, self._smallest or self.primes[0]])
        return best

    def _found(self, profiles: list[ResidueFactor], rows: GramRows) -> list[NDArray[np.bool_] | None]:
        """(new,) functions kept by each prime; a fresh prime must also keep the functions kept so far."""
        missing = self.rank - profiles[0].rank
        grams = rows([profile.prime for profile in profiles], profiles[0].rank)
        kept = [None if g is None else p.append(g) for p, g in zip(profiles, grams, strict=True)]
        return [None if k is None or not k[:missing].all() else k[missing:] for k in kept]

    def _fresh(self) -> ResidueFactor:
        prime = next(self._untried, None)
        if prime is None:
            raise InputError(
                f"{MOST_PRIMES:,} primes were tried, and nearly all of them divide the weight of some cell: there are "
                "too many cells to choose the paper's functions exactly",
                remedy=["merge levels, or use ", Parameter("basis", "pure")],
            )
        return ResidueFactor(prime, self._max_rank)


class ResidueFactor:
    """L and D with Gram = L D L^T modulo one prime, on the kept functions; functions arrive in batches.

    >>> profile = ResidueFactor(7)
    >>> profile.append(np.array([[1.0]])).tolist()
    [True]
    >>> profile.append(np.array([[2.0, 4.0, 0.0], [0.0, 0.0, 5.0]])).tolist()
    [False, True]
    """

    def __init__(self, prime: int, max_rank: int | None = None) -> None:
        self.prime, self.rank = prime, 0
        self._max_rank = max_rank
        self._left, self._pivots = np.zeros((0, 0)), np.zeros(0)
        # Columns of L computed together, and the inverse of D L^T on them.
        self._panels: list[tuple[slice, FloatArray]] = []

    def append(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Add functions, given their (new, kept + new) rows of the Gram matrix; return which of them raise the rank."""
        old, new = self.rank, len(rows)
        left, kept = np.zeros((new, old + new)), np.zeros(new, dtype=bool)
        self._pivots = np.concatenate([self._pivots[:old], np.zeros(new)])
        for columns, inverse in self._panels:
            rest = self._rest(rows[:, columns], left, self._left[columns], columns.start)
            left[:, columns] = product_modulo(rest, inverse, self.prime)
        for a in range(0, new, PANEL):
            self._add_panel(rows[:, old:], left, slice(a, min(new, a + PANEL)), kept)
        self._reserve()
        self._left[old : self.rank, : self.rank] = left[kept, : self.rank]
        return kept

    def _rest(self, gram: FloatArray, left: FloatArray, others: FloatArray, done: int) -> FloatArray:
        """Products of the functions ``left`` and ``others`` minus their part in the first ``done`` directions."""
        scaled = modulo(others[:, :done] * self._pivots[:done], self.prime)
        return modulo(gram - product_modulo(left[:, :done], scaled.T, self.prime), self.prime)

    def _add_panel(self, own: FloatArray, left: FloatArray, panel: slice, kept: NDArray[np.bool_]) -> None:
        start, below = self.rank, left[panel.start :]
        rest = self._rest(own[panel.start :, panel], below, left[panel], start)
        taken = self._eliminate(rest, below, panel.stop - panel.start)
        if taken:
            columns, numbers = slice(start, self.rank), panel.start + np.array(taken, dtype=np.int64)
            kept[numbers] = True
            triangle = modulo(left[numbers, columns] * self._pivots[columns], self.prime).T
            self._panels.append((columns, _inverse(triangle, self.prime)))

    def _eliminate(self, rest: FloatArray, left: FloatArray, width: int) -> list[int]:
        """Columns of one panel one after the other; fills ``left`` and the pivots, returns the columns kept."""
        start, taken = self.rank, []
        for j in range(width):
            if self._max_rank is not None and self.rank >= self._max_rank:
                break
            done = slice(start, self.rank)
            scaled = modulo(left[j, done] * self._pivots[done], self.prime)
            column = modulo(rest[:, j] - left[:, done] @ scaled, self.prime)
            pivot = int(column[j])
            if pivot == 0:
                continue
            column[:j] = 0.0
            left[:, self.rank] = modulo(column * pow(pivot, -1, self.prime), self.prime)
            self._pivots[self.rank] = pivot
            self.rank += 1
            taken.append(j)
        return taken

    def _reserve(self) -> None:
        """Grow the array of L by a quarter if it is full."""
        if self.rank > len(self._left):
            size = self.rank + self.rank // 4
            grown = np.zeros((size, size))
            grown[: len(self._left), : len(self._left)] = self._left
            self._left = grown


def _inverse(upper: FloatArray, prime: int) -> FloatArray:
    """Inverse of an upper triangular matrix modulo a prime, by back substitution."""
    size = len(upper)
    out = np.zeros((size, size))
    for i in range(size - 1, -1, -1):
        row = -product_modulo(upper[i : i + 1, i + 1 :], out[i + 1 :], prime)[0]
        row[i] += 1.0
        out[i] = modulo(row * pow(int(upper[i, i]), -1, prime), prime)
    return out
