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
(``AgreedProfile``), and is wrong only if both miss the same direction first. As long as one prime keeps every function,
none was missed: that is a proof, and needs no second prime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import NDArray

from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.phi.residues import TERMS, modulo, primes, product_modulo
from exanova.typing import FloatArray, IntArray

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
    """The rank profile of functions that arrive in batches: which of them raise the rank, agreed on by two primes.

    One prime is enough until the first function does not raise the rank.
    """

    def __init__(self, max_rank: int | None = None, candidates: Sequence[int] | None = None) -> None:
        self._max_rank = max_rank
        self._untried = iter(candidates) if candidates is not None else islice(primes(), MOST_PRIMES)
        self._profiles: list[ResidueFactor] = []
        self._smallest: int | None = None
        self._is_proved = True
        self.rank = 0

    @property
    def primes(self) -> list[int]:
        """The primes that agree so far."""
        return [profile.prime for profile in self._profiles]

    @property
    def error(self) -> float:
        """Upper bound on the probability that the choice so far is wrong; zero if every function was kept."""
        return 0.0 if self._is_proved else error_bound(self.rank, [self._smallest or 1] * AGREEING)

    def append(self, rows: GramRows) -> NDArray[np.bool_]:
        """Add functions and return which of them raise the rank. Only those are kept."""
        best: NDArray[np.bool_] | None = None
        agreeing: list[ResidueFactor] = []
        waiting = self._profiles
        while best is None or len(agreeing) < self._needed(best):
            waiting = waiting or [self._fresh()]
            masks = self._kept_by(waiting, rows)
            for profile, kept in zip(waiting, masks, strict=True):
                if kept is None or (best is not None and kept.tobytes() < best.tobytes()):
                    continue  # the prime cannot be used, or has missed a direction that another one has
                if best is None or kept.tobytes() > best.tobytes():
                    best, agreeing = kept, []
                agreeing.append(profile)
            waiting = []
        self._is_proved = self._needed(best) == 1
        self._profiles, self.rank = agreeing, self.rank + int(np.count_nonzero(best))
        self._smallest = min([*self.primes, self._smallest or self.primes[0]])
        return best

    def _needed(self, kept: NDArray[np.bool_]) -> int:
        """Primes that must agree on a choice: one if it leaves out nothing, and nothing was left out before."""
        count = int(np.count_nonzero(kept))
        every = count == len(kept) or (self.rank + count == self._max_rank and bool(kept[:count].all()))
        return 1 if self._is_proved and every else AGREEING

    def _kept_by(self, profiles: list[ResidueFactor], rows: GramRows) -> list[NDArray[np.bool_] | None]:
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
        self._scaled, self._pivots = np.zeros((0, 0)), np.zeros(0)  # L D, and D
        # Columns of L that were computed together, and the inverse of D L^T on them.
        self._panels: list[tuple[slice, FloatArray]] = []

    def append(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Add functions, given their (new, kept + new) rows of the Gram matrix; return which of them raise the rank."""
        old, new = self.rank, len(rows)
        left, kept = np.zeros((new, old + new)), np.zeros(new, dtype=bool)
        self._pivots = np.concatenate([self._pivots[:old], np.zeros(new)])
        for columns, inverse in self._panels:
            rest = self._rest(rows[:, columns], left, self._scaled[columns], columns.start)
            left[:, columns] = product_modulo(rest, inverse, self.prime)
        for a in range(0, new, PANEL):
            self._add_panel(rows[:, old:], left, slice(a, min(new, a + PANEL)), kept)
        self._reserve()
        self._scaled[old : self.rank, : self.rank] = self._times_pivots(left[kept, : self.rank])
        return kept

    def _times_pivots(self, left: FloatArray) -> FloatArray:
        """Rows of L D from rows of L, in the first directions."""
        return modulo(left * self._pivots[: left.shape[1]], self.prime)

    def _rest(self, gram: FloatArray, left: FloatArray, scaled: FloatArray, done: int) -> FloatArray:
        """Products of the functions ``left`` with others, given as rows of L D, minus those in the first directions."""
        if done > TERMS:
            return modulo(gram - product_modulo(left[:, :done], scaled[:, :done].T, self.prime), self.prime)
        return modulo(gram - left[:, :done] @ scaled[:, :done].T, self.prime)

    def _add_panel(self, own: FloatArray, left: FloatArray, panel: slice, kept: NDArray[np.bool_]) -> None:
        start, width = self.rank, panel.stop - panel.start
        scaled = self._times_pivots(left[panel, :start])
        rest = self._rest(own[panel.start :, panel], left[panel.start :], scaled, start)
        room = width if self._max_rank is None else self._max_rank - start
        taken, pivots, inverse = eliminated(rest[:width], self.prime, room)
        columns = slice(start, start + len(taken))
        left[panel.start :, columns] = product_modulo(rest[:, taken], inverse, self.prime)
        self._pivots[columns] = pivots
        self.rank = columns.stop
        kept[panel.start + taken] = True
        self._panels.append((columns, inverse))

    def _reserve(self) -> None:
        """Grow the array of L D by a quarter if it is full."""
        if self.rank > len(self._scaled):
            size = self.rank + self.rank // 4
            grown = np.zeros((size, size))
            grown[: len(self._scaled), : len(self._scaled)] = self._scaled
            self._scaled = grown


def eliminated(block: FloatArray, prime: int, room: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pivots of a symmetric block modulo a prime, skipping zeros, and no more than there is room for.

    Beside the rows of the block stand those of a unit matrix, which become the inverse of the factor L. Each entry is
    reduced only when its row is used: until then it is a sum of fewer than ``TERMS`` products.

    Returns:
        taken: (k,) the columns with a pivot.
        pivots: (k,) D.
        inverse: (k, k) the inverse of D L^T on these columns.

    >>> [array.tolist() for array in eliminated(np.array([[2.0, 4.0, 1.0], [4.0, 1.0, 2.0], [1.0, 2.0, 3.0]]), 7, 3)]
    [[0, 2], [2.0, 6.0], [[4.0, 4.0], [0.0, 6.0]]]
    """
    size = len(block)
    rows = np.hstack([block, np.eye(size)])
    taken: list[int] = []
    pivots: list[int] = []
    inverse = np.zeros((size, size))
    for j in range(size):
        row = modulo(rows[j, j:].copy(), prime)
        pivot = int(row[0])
        if pivot == 0 or len(taken) >= room:
            continue
        reciprocal = pow(pivot, -1, prime)
        scaled = modulo(row * reciprocal, prime)
        rows[j + 1 :, j + 1 :] -= scaled[1 : size - j, None] * row[1:]
        inverse[:, j] = scaled[size - j :]
        taken.append(j)
        pivots.append(pivot)
    return np.array(taken, dtype=np.int64), np.array(pivots, dtype=np.float64), inverse[np.ix_(taken, taken)]
