"""Which functions raise the rank, decided exactly: elimination modulo primes.

The paper's functions are far from orthogonal where cells are missing; one after the other, their pivots on real
data fall smoothly below 1e-6, where the rounding of a Gram matrix has grown to, and a greedy choice goes wrong.
But with whole-number weights everything is rational, and modulo a prime the same elimination is exact. A pivot that
is zero in the rationals is zero modulo every prime; one that is not vanishes modulo a given prime with probability
1 / prime, so that two primes that agree leave no doubt worth naming.

    Gram = L D L^T modulo the prime, left-looking by panels, skipping columns whose pivot is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova.moments.gram import Moments
from exanova.moments.modular import PRIMES, gram_modulo, product_modulo, usable_primes
from exanova.typing import FloatArray, IntArray

PANEL = 64


def raises_rank(moments: Moments, labels: Sequence[IntArray]) -> NDArray[np.bool_]:
    """(q,) which of the paper's functions, in their order, are independent of those before them (counts only)."""
    primes = usable_primes(moments.index.weight)
    return agreed(lambda prime: rank_profile(gram_modulo(moments, labels, prime), prime), primes)


def agreed(profile: Callable[[int], NDArray[np.bool_]], primes: Sequence[int] = PRIMES) -> NDArray[np.bool_]:
    """The profile on which two primes agree; a prime can only miss, never invent, a direction."""
    seen: list[NDArray[np.bool_]] = []
    for prime in primes:
        found = profile(prime)
        if any(np.array_equal(found, other) for other in seen):
            return found
        seen.append(found)
    raise ArithmeticError("no two primes agree on the rank: this cannot be chance")


def rank_profile(gram: FloatArray, prime: int) -> NDArray[np.bool_]:
    """(q,) columns of a symmetric matrix modulo a prime that the earlier ones do not span.

    >>> rank_profile(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 5.0]]), 7).tolist()
    [True, False, True]
    """
    return GrowingProfile(prime).append(gram)


@dataclass(frozen=True)
class _Panel:
    """Functions kept together: their numbers, their columns of L, and the inverse of D L^T on the panel."""

    functions: IntArray
    columns: slice
    inverse: FloatArray


class GrowingProfile:
    """The rank profile of functions that arrive in batches.

    >>> profile = GrowingProfile(7)
    >>> profile.append(np.array([[1.0]])).tolist()
    [True]
    >>> profile.append(np.array([[2.0, 4.0, 0.0], [0.0, 0.0, 5.0]])).tolist()
    [False, True]
    """

    def __init__(self, prime: int, max_rank: int | None = None) -> None:
        self.prime = prime
        self._max_rank = max_rank
        self._left = np.zeros((0, 0))
        self._pivots = np.zeros(0)
        self._panels: list[_Panel] = []
        self._rank = 0

    def append(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Add functions, given their (new, old + new) rows of the Gram matrix; which of them raise the rank."""
        new, total = rows.shape
        old = total - new
        self._reserve(total)
        left = self._left[old:total]
        for panel in self._panels:
            rest = rows[:, panel.functions] - self._before(left, panel)
            left[:, panel.columns] = product_modulo(np.mod(rest, self.prime), panel.inverse, self.prime)
        kept = np.zeros(new, dtype=bool)
        for a in range(0, new, PANEL):
            self._add_panel(rows, left, slice(a, min(new, a + PANEL)), old, kept)
        return kept

    def forget(self, keep: NDArray[np.bool_], total: int) -> None:
        """Drop functions of the last batch, of which ``total`` functions are the last, where ``keep`` is False."""
        first = total - len(keep)
        number = np.cumsum(keep) - 1 + first
        useful = np.flatnonzero(keep) + first
        self._left[first : first + len(useful)] = self._left[useful]
        self._left[first + len(useful) : total] = 0.0
        self._panels = [
            p if p.functions[0] < first else _Panel(number[p.functions - first], p.columns, p.inverse)
            for p in self._panels
        ]

    def _before(self, left: FloatArray, panel: _Panel) -> FloatArray:
        done = slice(0, panel.columns.start)
        scaled = np.mod(self._left[panel.functions, done] * self._pivots[done], self.prime)
        return product_modulo(left[:, done], scaled.T, self.prime)

    def _add_panel(self, rows: FloatArray, left: FloatArray, panel: slice, old: int, kept: NDArray[np.bool_]) -> None:
        start = self._rank
        scaled = np.mod(left[panel, :start] * self._pivots[:start], self.prime)
        rest = rows[panel.start :, old + panel.start : old + panel.stop]
        rest = np.mod(rest - product_modulo(left[panel.start :, :start], scaled.T, self.prime), self.prime)
        taken = self._eliminate(rest, left[panel.start :], panel.stop - panel.start)
        if not taken:
            return
        columns = slice(start, self._rank)
        numbers = np.array(taken, dtype=np.int64)
        kept[panel.start + numbers] = True
        triangle = np.mod(left[panel.start + numbers, columns] * self._pivots[columns], self.prime).T
        self._panels.append(_Panel(numbers + old + panel.start, columns, _inverse(triangle, self.prime)))

    def _eliminate(self, rest: FloatArray, left: FloatArray, width: int) -> list[int]:
        """Columns of one panel one after the other; fills ``left`` and the pivots, returns the columns kept."""
        start, taken = self._rank, []
        for j in range(width):
            if self._max_rank is not None and self._rank >= self._max_rank:
                break
            done = slice(start, self._rank)
            scaled = np.mod(left[j, done] * self._pivots[done], self.prime)
            column = np.mod(rest[:, j] - left[:, done] @ scaled, self.prime)
            pivot = int(column[j])
            if pivot == 0:
                continue
            column[:j] = 0.0
            left[:, self._rank] = np.mod(column * pow(pivot, -1, self.prime), self.prime)
            self._pivots[self._rank] = pivot
            self._rank += 1
            taken.append(j)
        return taken

    def _reserve(self, total: int) -> None:
        if total <= len(self._left):
            return
        size = total + total // 4
        width = size if self._max_rank is None else min(size, self._max_rank)
        grown, pivots = np.zeros((size, width)), np.zeros(width)
        grown[: self._left.shape[0], : self._left.shape[1]] = self._left
        pivots[: len(self._pivots)] = self._pivots
        self._left, self._pivots = grown, pivots


def _inverse(upper: FloatArray, prime: int) -> FloatArray:
    """Inverse of an upper triangular matrix modulo a prime, by back substitution."""
    size = len(upper)
    out = np.zeros((size, size))
    for i in range(size - 1, -1, -1):
        row = -product_modulo(upper[i : i + 1, i + 1 :], out[i + 1 :], prime)[0]
        row[i] += 1.0
        out[i] = np.mod(row * pow(int(upper[i, i]), -1, prime), prime)
    return out
