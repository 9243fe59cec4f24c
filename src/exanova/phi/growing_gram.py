"""``GrowingGram``: rows of Gamma for functions that arrive in rounds.

For new subsets, only the indicators in which their functions are written are counted, against all indicators so far.
Gamma[new, all] follows by writing both sides in indicators. Each pair is counted once, and no matrix over all
indicators is ever stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import Basis, build_basis, join
from exanova.basis.names import BasisName
from exanova.phi.counted_family import CountedFamily
from exanova.phi.growing_family import GrowingFamily
from exanova.phi.monomials import Coordinates, in_monomials
from exanova.phi.residues import modulo, product_modulo
from exanova.typing import Codes, FloatArray, IntArray, Subset

COUNT_BLOCK = 2048
"""Indicators counted at once against all others."""


class GrowingGram:
    """Functions and rows of Gamma of a family that grows by subsets of one order at a time.

    Attributes:
        cells: the family so far.
        basis: its functions.
    """

    def __init__(
        self,
        codes: Codes,
        weight: NDArray[Any],
        sizes: Sequence[int],
        *,
        kind: BasisName = "pure",
        orthonormal: bool = True,
        threads: int = 1,
    ) -> None:
        self.cells = GrowingFamily(codes, weight, sizes, threads)
        self._kind, self._orthonormal = kind, orthonormal
        self.basis = self._without_functions([])
        self._coordinates: Coordinates = []

    def add(self, subsets: Sequence[Subset]) -> FloatArray:
        """Rows (new, old + new) of Gamma for the functions of ``subsets``; the first call adds the intercept too."""
        first, family = self.cells.extend(subsets), self.cells.family
        # Missing proper subsets were redundant: they are added with cells and without functions.
        parts = self._without_functions(family.subsets[len(self.basis.tables) : first])
        new = build_basis(family, self._kind, orthonormal=self._orthonormal, first=first)
        self.basis = join(join(self.basis, parts), new)
        self._describe()
        rows = gram_rows(self.cells, [Algebra(self._coordinates)], first)[0]
        return np.divide(rows, float(family.weight[0]), out=rows)

    def _without_functions(self, subsets: Sequence[Subset]) -> Basis:
        cells = [
            len(self.cells.family.weight[self.cells.family.cells_of(self.cells.family.position[s])]) for s in subsets
        ]
        labels = tuple(np.zeros((0, len(s)), dtype=np.int64) for s in subsets)
        named = self._kind == "paper" and not self._orthonormal
        start = np.zeros(len(subsets) + 1, dtype=np.int64)
        return Basis(tuple(np.zeros((c, 0)) for c in cells), start, labels if named else None)

    def _describe(self) -> None:
        """Compute the coordinates of the subsets that have none yet."""
        new = range(len(self._coordinates), len(self.basis.tables))
        tables = [self.basis.table(s) for s in new]
        self._coordinates += in_monomials(self.cells.family, self.cells.indicators, new, tables)

    def keep_of_last(self, n_before: int, useful: Sequence[int]) -> None:
        """Remove the subsets added after the first ``n_before``, except those numbered ``useful``."""
        tables = tuple(self.basis.tables[s] for s in useful)
        labels = None if self.basis.labels is None else tuple(self.basis.labels[s] for s in useful)
        start = np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64)
        self.cells.keep_of_last(n_before, useful)
        self.basis = join(self.basis.restricted(n_before), Basis(tables, start, labels))
        self._coordinates = self._coordinates[:n_before]
        self._describe()


def gram_rows(cells: GrowingFamily | CountedFamily, algebras: Sequence[Algebra], first: int) -> list[FloatArray]:
    """(new, all) T_new^T M T_all for the functions of the subsets from number ``first`` on, in each algebra.

    M, the weights of common rows, is counted once for all algebras, block by block.
    """
    needed = np.unique(np.concatenate([numbers for numbers, _ in algebras[0].coordinates[first:]]))
    halves = [np.zeros((len(cells.indicators), algebra.functions(first))) for algebra in algebras]
    place = np.empty(len(cells.indicators), dtype=np.int64)
    for a in range(0, len(needed), COUNT_BLOCK):
        rows = needed[a : a + COUNT_BLOCK]
        counts = cells.counts(rows)
        place[:] = -1
        place[rows] = np.arange(len(rows))
        for algebra, half in zip(algebras, halves, strict=True):
            algebra.accumulate(half, counts, place, first)
    return [algebra.finish(half) for algebra, half in zip(algebras, halves, strict=True)]


@dataclass(frozen=True)
class Algebra:
    """Coordinates of functions in indicators, and their arithmetic: floating point, or modulo a prime."""

    coordinates: Coordinates
    prime: int | None = None

    def functions(self, first: int) -> int:
        """Functions of the subsets from number ``first`` on."""
        return sum(coefficients.shape[1] for _, coefficients in self.coordinates[first:])

    def accumulate(self, half: FloatArray, counts: FloatArray, place: IntArray, first: int) -> None:
        """Add M T_new for one block of counted indicators to ``half`` (indicators, new functions).

        Modulo a prime, each entry sums at most ``COUNT_BLOCK`` products below 2^40 per block, which is exact, and is
        reduced afterwards.
        """
        if self.prime is not None and counts.max(initial=0.0) >= self.prime:
            counts = np.mod(counts, self.prime)
        start = 0
        for numbers, coefficients in self.coordinates[first:]:
            here = place[numbers]
            known = here >= 0
            stop = start + coefficients.shape[1]
            if known.any() and start < stop:
                half[:, start:stop] += counts[here[known]].T @ coefficients[known]
            start = stop
        if self.prime is not None:
            half[:] = modulo(half, self.prime)

    def finish(self, half: FloatArray) -> FloatArray:
        """(new, all) T_all^T half, transposed."""
        out = np.empty((self.functions(0), half.shape[1]))
        start = 0
        for numbers, coefficients in self.coordinates:
            stop = start + coefficients.shape[1]
            if start < stop and self.prime is None:
                out[start:stop] = coefficients.T @ half[numbers]
            elif start < stop:
                out[start:stop] = product_modulo(coefficients.T, half[numbers], self.prime or 0)
            start = stop
        return np.ascontiguousarray(out.T)
