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
from exanova.design.cells import extend, intercept_index
from exanova.design.subsets import by_order, canonical_key, proper_parts
from exanova.moments.bitsets import TILE, Words, digits, pack_more
from exanova.moments.gram import single_levels
from exanova.moments.modular import coordinates_modulo, residues
from exanova.moments.monomials import Monomials, in_monomials, monomials, reference_levels
from exanova.typing import Codes, FloatArray, IntArray, Subset

COUNT_BLOCK = 2048
"""Indicators counted at once against all others."""


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
        primes: Sequence[int] = (),
        threads: int = 1,
    ) -> None:
        self._codes, self._weight, self._threads = codes, weight, threads
        self._kind, self._orthonormal = kind, orthonormal
        self.index = intercept_index(sizes, float(weight.sum()))
        self.basis = self._functions(0)
        self._reference = np.zeros(len(sizes), dtype=np.int64)
        self._coordinates: list[tuple[IntArray, FloatArray]] = []
        self._modular: dict[int, list[tuple[IntArray, FloatArray]]] = {prime: [] for prime in primes}
        self._planes = planes(codes, weight)
        self._words: list[Words] = []
        self.modular_rows: dict[int, FloatArray] = {}

    def add(self, subsets: Sequence[Subset]) -> FloatArray:
        """Rows (new, old + new) of Gamma for the functions of ``subsets``; the first call brings the intercept too."""
        self._add_parts(subsets)
        first = len(self.index.subsets) if self._coordinates else 0
        old = 0 if first == 0 else self.basis.n_functions
        self.index = extend(self.index, subsets, self._codes, self._weight.astype(np.float64), self._threads)
        if first == 0:
            self._reference = reference_levels(self.index)
            self.basis = self._functions(0)
        else:
            self.basis = join(self.basis, self._functions(first))
        indicators = self._describe(first)
        return self._gamma_rows(indicators, first, old)

    def _add_parts(self, subsets: Sequence[Subset]) -> None:
        """Cells, without functions, of parts that are not there: what they could add was expressed by others."""
        missing = {part for s in subsets for part in proper_parts(s)} - set(self.index.position)
        for _, group in by_order(sorted(missing, key=canonical_key)):
            first = len(self.index.subsets)
            self.index = extend(self.index, group, self._codes, self._weight.astype(np.float64), self._threads)
            cells = np.diff(self.index.cell_start)[first:]
            empty = tuple(np.zeros((int(c), 0)) for c in cells)
            labels = None
            if self.basis.labels is not None:
                labels = tuple(np.zeros((0, len(s)), dtype=np.int64) for s in group)
            self.basis = join(self.basis, Basis(empty, np.zeros(len(group) + 1, dtype=np.int64), labels))
            self._describe(first)

    def _describe(self, first: int) -> Monomials:
        """Bitsets and coordinates of the subsets from number ``first`` on."""
        indicators = monomials(self.index, self._reference)
        self._pack(indicators)
        new = range(first, len(self.index.subsets))
        self._coordinates += in_monomials(self.index, indicators, new, [self.basis.table(s) for s in new])
        if self.basis.labels is not None:
            for prime, known in self._modular.items():
                z = self.basis.labels
                known += [coordinates_modulo(self.index, indicators, s, z[s], prime) for s in new]
        return indicators

    def keep_of_last(self, n_before: int, useful: Sequence[int]) -> None:
        """Forget the subsets added after the first ``n_before``, but for those numbered ``useful``."""
        subsets = [self.index.subsets[s] for s in useful]
        tables = tuple(self.basis.tables[s] for s in useful)
        labels = None if self.basis.labels is None else tuple(self.basis.labels[s] for s in useful)
        self.truncate(n_before)
        if not subsets:
            return
        self.index = extend(self.index, subsets, self._codes, self._weight.astype(np.float64), self._threads)
        start = np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64)
        self.basis = join(self.basis, Basis(tables, start, labels))
        self._describe(n_before)

    def truncate(self, n_subsets: int) -> None:
        """Forget all but the first ``n_subsets`` subsets."""
        self.index = self.index.restricted(n_subsets)
        self.basis = self.basis.restricted(n_subsets)
        self._coordinates = self._coordinates[:n_subsets]
        self._modular = {prime: known[:n_subsets] for prime, known in self._modular.items()}
        kept = len(monomials(self.index, self._reference))
        self._words = [words[:kept] for words in self._words]

    def _functions(self, first: int) -> Basis:
        return build_basis(self.index, self._kind, orthonormal=self._orthonormal, first=first)  # type: ignore[arg-type]

    def _pack(self, indicators: Monomials) -> None:
        singles = single_levels(self.index, indicators)
        known = self._words or [np.zeros((0, 0), dtype=np.uint64) for _ in self._planes]
        self._words = [
            pack_more(words, codes, singles, indicators) for words, (_, codes) in zip(known, self._planes, strict=True)
        ]

    def _gamma_rows(self, indicators: Monomials, first: int, old: int) -> FloatArray:
        """Gamma[new, all] = T_new^T M T_all / total; modulo primes too, where the paper's choice is to be exact."""
        needed = np.unique(np.concatenate([numbers for numbers, _ in self._coordinates[first:]]))
        algebras = [_Algebra(self._coordinates, None), *(_Algebra(c, p) for p, c in self._modular.items())]
        shape = (len(indicators), self.basis.n_functions - old)
        halves = [np.zeros(shape) for _ in algebras]
        place = np.full(len(indicators), -1, dtype=np.int64)
        for a in range(0, len(needed), COUNT_BLOCK):
            rows = needed[a : a + COUNT_BLOCK]
            counts = self._counts(rows)
            place[:] = -1
            place[rows] = np.arange(len(rows))
            for algebra, half in zip(algebras, halves, strict=True):
                algebra.accumulate(half, counts, place, self.basis, first, old)
        total = float(self.index.weight[0])
        found = [algebra.finish(half, self.basis) for algebra, half in zip(algebras, halves, strict=True)]
        self.modular_rows = dict(zip(self._modular, found[1:], strict=True))
        return found[0] / total

    def _counts(self, rows: IntArray) -> FloatArray:
        """(rows, indicators) weight of the rows two indicators have in common."""
        if not self._planes or self._weight.dtype.kind == "f":
            return _weighted_counts(self._words[0], rows, self._weight.astype(np.float64), self._codes.shape[1])
        out = np.zeros((len(rows), len(self._words[0])))
        for words, (factor, _) in zip(self._words, self._planes, strict=True):
            count_rows(words, rows, out, factor, self._threads)
        return out


@dataclass(frozen=True)
class _Algebra:
    """How functions are written in indicators and multiplied: in floating point, or modulo a prime."""

    coordinates: list[tuple[IntArray, FloatArray]]
    prime: int | None

    def accumulate(
        self, half: FloatArray, counts: FloatArray, place: IntArray, basis: Basis, first: int, old: int
    ) -> None:
        """Add M T_new for the indicators whose counts are at hand to ``half`` (indicators, new functions).

        Modulo a prime, a column gets a few dozen products below 2^40 in each block: still exact, reduced after it.
        """
        if self.prime is not None and counts.max(initial=0.0) >= self.prime:
            counts = np.mod(counts, self.prime)
        for k, (numbers, coefficients) in enumerate(self.coordinates[first:]):
            here = place[numbers]
            known = here >= 0
            if known.any() and coefficients.shape[1]:
                columns = basis.functions_of(first + k)
                half[:, columns.start - old : columns.stop - old] += counts[here[known]].T @ coefficients[known]
        if self.prime is not None:
            half[:] = residues(half, self.prime)

    def finish(self, half: FloatArray, basis: Basis) -> FloatArray:
        """(new, all) T_all^T half, transposed."""
        out = np.empty((basis.n_functions, half.shape[1]))
        for s, (numbers, coefficients) in enumerate(self.coordinates):
            if coefficients.shape[1]:
                out[basis.functions_of(s)] = coefficients.T @ half[numbers]
        out = out if self.prime is None else residues(out, self.prime)
        return np.ascontiguousarray(out.T)


def count_rows(words: Words, rows: IntArray, out: FloatArray, factor: int, threads: int) -> None:
    """Add ``factor`` times the rows common to bitsets ``rows`` and every bitset to ``out``."""
    from exanova.moments.kernels import count_tile

    left = words[rows]
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


def _weighted_counts(words: Words, rows: IntArray, weight: FloatArray, n: int) -> FloatArray:
    """The same under real weights: bits are unpacked block by block and multiplied by BLAS."""
    out = np.zeros((len(rows), len(words)))
    octets = words.view(np.uint8)
    block = 8 * max(64, 2_000_000 // max(1, len(words)))
    for a in range(0, n, block):
        b = min(n, a + block)
        bits = np.unpackbits(octets[:, a // 8 : -(-b // 8)], axis=1, count=b - a, bitorder="little")
        dense = bits.astype(np.float64)
        out += (dense[rows] * weight[a:b]) @ dense.T
    return out
