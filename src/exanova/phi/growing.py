"""Rows of Gamma for functions that arrive in rounds: each count is made once, old ones are not kept.

For new subsets only the indicators they are made of are counted, against all indicators so far. Gamma[new, all]
follows by writing both sides in indicators; no matrix over all indicators is ever stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.basis.tables import Basis, build_basis, join
from exanova.design.family import extend, intercept_family
from exanova.design.subsets import by_order, canonical_key, proper_parts
from exanova.phi.bitsets import TILE, Words, digits, pack_more
from exanova.phi.gram import single_levels
from exanova.phi.modular import product_modulo, residues
from exanova.phi.monomials import in_monomials, monomials
from exanova.typing import Codes, FloatArray, IntArray, Subset

COUNT_BLOCK = 2048
"""Indicators counted at once against all others."""

Coordinates = list[tuple[IntArray, FloatArray]]
"""For each subset, (t,) numbers of indicators and (t, k) the coefficients of its k functions."""


class GrowingIndicators:
    """Cells and indicators (bitsets) of a family that grows by subsets of one order at a time, main effects first."""

    def __init__(self, codes: Codes, weight: NDArray[Any], sizes: Sequence[int], threads: int = 1) -> None:
        self._codes, self._weight, self._threads = codes, weight, threads
        # The most frequent level is the reference.
        levels = [int(np.argmax(np.bincount(row, weights=weight))) for row in codes]
        self._reference = np.array(levels, dtype=np.int64)
        self._planes = planes(codes, weight)
        self._words: list[Words] = [np.zeros((0, 0), dtype=np.uint64) for _ in self._planes]
        self.index = intercept_family(sizes, float(weight.sum()))
        self.indicators = monomials(self.index, self._reference)

    def extend(self, subsets: Sequence[Subset]) -> int:
        """Append subsets, and before them parts that are not there: cells are found through them.

        Returns the number of the first of ``subsets``, or of the intercept, which the first call brings too.
        """
        missing = {part for s in subsets for part in proper_parts(s)} - set(self.index.position)
        for _, group in by_order(sorted(missing, key=canonical_key)):
            self._append(group)
        first = len(self.index.subsets) if len(self._words[0]) else 0
        self._append(subsets)
        return first

    def _append(self, subsets: Sequence[Subset]) -> None:
        weight = self._weight.astype(np.float64)
        self.index = extend(self.index, subsets, self._codes, weight, self._threads)
        self.indicators = monomials(self.index, self._reference)
        singles = single_levels(self.index, self.indicators)
        self._words = [
            pack_more(words, codes, singles, self.indicators)
            for words, (_, codes) in zip(self._words, self._planes, strict=True)
        ]

    def keep_of_last(self, n_before: int, useful: Sequence[int]) -> None:
        """Forget the subsets added after the first ``n_before``, but for those numbered ``useful``."""
        subsets = [self.index.subsets[s] for s in useful]
        self.index = self.index.restricted(n_before)
        self.indicators = monomials(self.index, self._reference)
        self._words = [words[: len(self.indicators)] for words in self._words]
        if subsets:
            self._append(subsets)

    def counts(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """(rows, columns) weight of the rows two indicators have in common; all columns unless told."""
        chosen = self._words if columns is None else [words[columns] for words in self._words]
        left = [words[rows] for words in self._words]
        if self._weight.dtype.kind == "f":
            return _weighted_counts(left[0], chosen[0], self._weight.astype(np.float64))
        out = np.zeros((len(rows), len(chosen[0])))
        for own, words, (factor, _) in zip(left, chosen, self._planes, strict=True):
            count_rows(own, words, out, factor, self._threads)
        return out


class GrowingGram:
    """Cells, functions and rows of Gamma of a family that grows by subsets of one order at a time."""

    def __init__(
        self,
        codes: Codes,
        weight: NDArray[Any],
        sizes: Sequence[int],
        *,
        kind: str = "pure",
        orthonormal: bool = True,
        threads: int = 1,
    ) -> None:
        self.cells = GrowingIndicators(codes, weight, sizes, threads)
        self._kind, self._orthonormal = kind, orthonormal
        self.basis = self._without_functions([])
        self._coordinates: Coordinates = []

    def add(self, subsets: Sequence[Subset]) -> FloatArray:
        """Rows (new, old + new) of Gamma for the functions of ``subsets``; the first call brings the intercept too."""
        first, index = self.cells.extend(subsets), self.cells.index
        # Parts that are not there bring cells and no functions: what they could add was expressed by others.
        parts = self._without_functions(index.subsets[len(self.basis.tables) : first])
        new = build_basis(index, self._kind, orthonormal=self._orthonormal, first=first)  # type: ignore[arg-type]
        self.basis = join(join(self.basis, parts), new)
        self._describe()
        rows = gram_rows(self.cells, [Algebra(self._coordinates)], first)[0]
        return np.divide(rows, float(index.weight[0]), out=rows)

    def _without_functions(self, subsets: Sequence[Subset]) -> Basis:
        cells = [len(self.cells.index.weight[self.cells.index.cells_of(self.cells.index.position[s])]) for s in subsets]
        labels = tuple(np.zeros((0, len(s)), dtype=np.int64) for s in subsets)
        named = self._kind == "paper" and not self._orthonormal
        start = np.zeros(len(subsets) + 1, dtype=np.int64)
        return Basis(tuple(np.zeros((c, 0)) for c in cells), start, labels if named else None)

    def _describe(self) -> None:
        """Coordinates of the subsets that have none."""
        new = range(len(self._coordinates), len(self.basis.tables))
        tables = [self.basis.table(s) for s in new]
        self._coordinates += in_monomials(self.cells.index, self.cells.indicators, new, tables)

    def keep_of_last(self, n_before: int, useful: Sequence[int]) -> None:
        """Forget the subsets added after the first ``n_before``, but for those numbered ``useful``."""
        tables = tuple(self.basis.tables[s] for s in useful)
        labels = None if self.basis.labels is None else tuple(self.basis.labels[s] for s in useful)
        start = np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64)
        self.cells.keep_of_last(n_before, useful)
        self.basis = join(self.basis.restricted(n_before), Basis(tables, start, labels))
        self._coordinates = self._coordinates[:n_before]
        self._describe()


def gram_rows(cells: GrowingIndicators, algebras: Sequence[Algebra], first: int) -> list[FloatArray]:
    """(new, all) T_new^T M T_all of the functions of the subsets from number ``first`` on, in each algebra.

    M, the weights of common rows, is counted once for all of them, block by block.
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
    """How functions are written in indicators and multiplied: in floating point, or modulo a prime."""

    coordinates: Coordinates
    prime: int | None = None

    def functions(self, first: int) -> int:
        """Functions of the subsets from number ``first`` on."""
        return sum(coefficients.shape[1] for _, coefficients in self.coordinates[first:])

    def accumulate(self, half: FloatArray, counts: FloatArray, place: IntArray, first: int) -> None:
        """Add M T_new for the indicators whose counts are at hand to ``half`` (indicators, new functions).

        Modulo a prime, a column gets at most ``COUNT_BLOCK`` products below 2^40 in each block: exact, reduced after.
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
            half[:] = residues(half, self.prime)

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


def count_rows(left: Words, words: Words, out: FloatArray, factor: int, threads: int) -> None:
    """Add ``factor`` times the rows common to two bitsets, one of ``left`` and one of ``words``, to ``out``."""
    from exanova.phi.kernels import count_tile

    tiles = [(a, b) for a in range(0, len(left), TILE) for b in range(0, len(words), TILE)]

    def task(tile: tuple[int, int]) -> None:
        i, j = slice(tile[0], min(len(left), tile[0] + TILE)), slice(tile[1], min(len(words), tile[1] + TILE))
        block = np.zeros((i.stop - i.start, j.stop - j.start), dtype=np.int64)
        count_tile(left[i], words[j], block, factor)
        out[i, j] += block

    parallel.run(task, tiles, threads)


def planes(codes: Codes, weight: NDArray[Any]) -> list[tuple[int, Codes]]:
    """The rows of each binary digit of whole-number weights; all rows once for real weights."""
    if weight.dtype.kind == "f":
        return [(1, codes)]
    return [(f, codes if len(rows) == codes.shape[1] else codes[:, rows]) for f, rows in digits(weight)]


def _weighted_counts(left: Words, words: Words, weight: FloatArray) -> FloatArray:
    """The same under real weights: bits are unpacked block by block and multiplied by BLAS."""
    out = np.zeros((len(left), len(words)))
    block = 8 * max(64, 2_000_000 // max(1, len(words)))
    for a in range(0, len(weight), block):
        part = weight[a : a + block]
        rows, columns = (_unpacked(bits, a, len(part)) for bits in (left, words))
        out += (rows * part) @ columns.T
    return out


def _unpacked(words: Words, first: int, count: int) -> FloatArray:
    """Bits ``first`` and following, ``first`` a multiple of eight, as zeros and ones."""
    octets = words.view(np.uint8)[:, first // 8 : -(-(first + count) // 8)]
    return np.unpackbits(octets, axis=1, count=count, bitorder="little").astype(np.float64)
