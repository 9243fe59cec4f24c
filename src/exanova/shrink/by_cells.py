"""The likelihood of one ratio for each subset, from kernels of cells, where rows are fewer than functions.

The covariance of the rows, C = D^-1 + sum over A of ratio_A M_A read at the cells of the rows, is put together by one
pass over pairs of rows (:mod:`exanova.shrink.kernel_loops`); products with M_A go through sums over cells. Columns are
never written down at the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exanova.compiled import worth_loading
from exanova.data.sample import blocks_of
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.shrink.cell_kernels import CellKernel
from exanova.shrink.likelihood import Evaluation, cholesky, evaluation, solved_at_rows
from exanova.typing import FloatArray, IntArray

GATHER_SECONDS, LOADING = 8e-9, 0.5
"""Seconds to read a kernel at one pair of rows without compiled loops, and to load these in a fresh process."""

BATCH_BYTES = 8_000_000
"""Memory of kernels of cells that are read in one pass over the rows."""

KEPT_BYTES = 400_000_000
"""Memory up to which the kernels of all subsets are kept between evaluations; beyond, ratios of subsets are not
looked for by rows."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Kernels of cells side by side, (c, c) each, as the compiled loops read them."""

    flat: FloatArray
    start: IntArray
    width: IntArray

    @classmethod
    def of(cls, tables: Sequence[FloatArray]) -> Tables:
        """Put tables side by side."""
        width = np.array([len(table) for table in tables], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(width**2)[:-1]]).astype(np.int64)
        return cls(np.concatenate([table.ravel() for table in tables]), start, width)

    def table(self, k: int) -> FloatArray:
        """(c, c) one of them."""
        first, c = int(self.start[k]), int(self.width[k])
        return self.flat[first : first + c * c].reshape(c, c)


@dataclass(frozen=True, eq=False)
class SubsetKernels:
    """The kernels of the subsets of a family.

    Attributes:
        family: the family.
        subsets: (S',) numbers of the subsets that have functions of their own.
        kernels: of each, on its cells.
    """

    family: Family
    subsets: list[int]
    kernels: list[CellKernel]

    @cached_property
    def cells(self) -> IntArray:
        """(S',) cells of each."""
        return np.diff(self.family.cell_start)[self.subsets]

    @property
    def are_kept(self) -> bool:
        """Whether the kernels of all subsets are few enough to be kept."""
        return 0 < int((8 * self.cells**2).sum()) <= KEPT_BYTES

    @cached_property
    def kept(self) -> Tables:
        """All kernels of cells; see ``are_kept`` first."""
        return Tables.of([kernel.dense() for kernel in self.kernels])

    def batches(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[IntArray, Tables]]:
        """Numbers and kernels of cells of the requested (S',), in batches."""
        if self.are_kept:
            yield np.arange(len(self.subsets)), self.kept
            return
        chosen = np.flatnonzero(wanted)
        first, size = 0, np.cumsum([8 * int(self.cells[k]) ** 2 for k in chosen])
        while first < len(chosen):
            last = max(first + 1, int(np.searchsorted(size, (size[first - 1] if first else 0) + BATCH_BYTES, "right")))
            yield chosen[first:last], Tables.of([self.kernels[k].dense() for k in chosen[first:last]])
            first = last

    @cached_property
    def orders_of(self) -> IntArray:
        """(S',) sizes of the subsets."""
        return np.array([len(self.family.subsets[s]) for s in self.subsets], dtype=np.int64)

    @cached_property
    def energy(self) -> FloatArray:
        """(S',) prior variance of every subset under its kernel."""
        own = zip(self.subsets, self.kernels, strict=True)
        return np.array([float(self.family.probability_of(s) @ kernel.diagonal()) for s, kernel in own])


@dataclass(frozen=True, eq=False)
class RowKernels:
    """The kernels of subsets at some rows, whose cells ``phi`` gives."""

    of: SubsetKernels
    phi: Phi

    @cached_property
    def cells(self) -> IntArray:
        """(S', r) cell of every row in every subset."""
        out = np.empty((len(self.of.subsets), self.phi.codes.shape[1]), dtype=np.uint32)
        for own, s in zip(out, self.of.subsets, strict=True):
            own[:] = self.phi.cells(s)
        return out  # type: ignore[return-value]

    @cached_property
    def by_order(self) -> list[FloatArray]:
        """For each order, (r, r) the sum of its kernels at the rows, over its prior variance."""
        out, energy, orders = [], self.of.energy, self.of.orders_of
        for k in np.unique(orders):
            lower = self.covariance((orders == k) / float(energy[orders == k].sum()))
            out.append(lower + np.tril(lower, -1).T)
        return out

    def covariance(self, ratio: FloatArray) -> FloatArray:
        """(r, r), Fortran order, lower triangle only: the sum of ratio (S',) times the kernels at the rows."""
        count, r = self.cells.shape
        if not worth_loading("exanova.shrink.kernel_loops", GATHER_SECONDS * count * r**2, LOADING):
            return np.triu(self._gathered(ratio)).T
        from exanova.shrink.kernel_loops import add_at_rows

        out = np.zeros((r, r), order="F")
        for own, tables in self.of.batches(ratio > 0):
            add_at_rows(tables.flat, tables.start, tables.width, self.cells[own], ratio[own], out.T)
        return out

    def _gathered(self, ratio: FloatArray) -> FloatArray:
        """(r, r) the same sum, symmetric, a subset at a time and without compiled loops."""
        out = np.zeros((self.cells.shape[1], self.cells.shape[1]))
        for own, tables in self.of.batches(ratio > 0):
            for k, s in enumerate(own):
                if ratio[s] > 0:
                    out += ratio[s] * tables.table(k)[self.cells[s]][:, self.cells[s]]
        return out

    def factor(self, ratio: FloatArray, noise: FloatArray, shared: FloatArray | float = 0.0) -> FloatArray:
        """(r, r) lower Cholesky factor of C, with what rows share beside their effects."""
        out = self.covariance(ratio)
        out[np.diag_indices_from(out)] += noise
        out += shared
        return cholesky(out)

    def alone(self, copies: FloatArray | float, rows: IntArray) -> Iterator[tuple[NDArray[np.bool_], IntArray]]:
        """For each subset, (N,) whether one of ``rows`` (N,) is alone in its cell, never one with copies; the cells.

        One subset at a time, and one block of rows: rows are many where their kernels are not used.
        """
        r = self.phi.codes.shape[1]
        single = np.broadcast_to(np.asarray(copies) == 1, r)[rows]
        for s, c in zip(self.of.subsets, self.of.cells, strict=True):
            counts = np.zeros(int(c), dtype=np.int64)
            for block in blocks_of((slice(0, r),)):
                counts += np.bincount(self.phi.cells(s, block), minlength=int(c))
            cells = self.phi.cells(s, rows)
            yield (counts == 1)[cells] & single, cells

    def lines(self, ratio: FloatArray, chosen: NDArray[np.bool_], matrix: FloatArray) -> FloatArray:
        """(r,) for each row, its line of ``matrix`` (r, r) times that of the kernels of its ``chosen`` subsets."""
        from exanova.shrink.kernel_loops import lines_at_rows

        out = np.zeros(len(matrix))
        for own, tables in self.of.batches(np.asarray(chosen.any(axis=1))):
            lines_at_rows(
                tables.flat, tables.start, tables.width, self.cells[own], ratio[own], chosen[own], matrix, out
            )
        return out

    def effects(self, ratio: FloatArray, values: FloatArray) -> FloatArray:
        """(cells, m) ratio times M times the sums of (r, m) ``values`` over the cells, of all subsets."""
        sums, family = self.phi.analyse(values), self.phi.family
        out = np.zeros_like(sums)
        for s, kernel, own in zip(self.of.subsets, self.of.kernels, ratio.tolist(), strict=True):
            out[family.cells_of(s)] = own * kernel.apply(sums[family.cells_of(s)])
        return out


@dataclass(frozen=True, eq=False)
class ByCells:
    """The likelihood of one ratio for each subset.

    Attributes:
        rows: kernels at the rows.
        values: (r, m) centred values.
        noise: (r,) diagonal of D^-1.
        total: (S',) prior energy of each subset.
        within: (m,) sums of squares within equal rows.
        probes: (r, P) random signs that estimate traces, where the inverse would cost more than the factor.
        shared: (r, r) what rows of a cluster share, over tau^2, or 0.
    """

    rows: RowKernels
    values: FloatArray
    noise: FloatArray
    total: FloatArray
    within: FloatArray | float = 0.0
    probes: FloatArray | None = None
    shared: FloatArray | float = 0.0

    @property
    def count(self) -> float:
        """n, the trace of D."""
        return float((1.0 / self.noise).sum())

    @property
    def components(self) -> int:
        """K."""
        return len(self.total)

    def factor(self, logs: FloatArray) -> FloatArray:
        """(r, r) lower Cholesky factor of C."""
        return self.rows.factor(np.exp(logs) / self.total, self.noise, self.shared)

    def at(self, logs: FloatArray) -> Evaluation:
        """Evaluate at the logarithms (K,) of the ratios."""
        from scipy.linalg import solve_triangular

        ratio = np.exp(logs) / self.total
        lower = self.factor(logs)
        u, logdet, quadratic, squares = solved_at_rows(lower, self.values, self.noise, self.within)
        moved = self._moved(ratio, u)
        crossed = []
        for one in moved:
            half = solve_triangular(lower, one, lower=True, check_finite=False)
            crossed.append(half.T @ half)
        lengths = np.stack([one.T @ column for one, column in zip(moved, u.T, strict=True)], axis=1)
        effective = ratio * self._traces(lower)
        return evaluation(logs, logdet, quadratic, effective, lengths, crossed, self.count, squares)

    def _moved(self, ratio: FloatArray, u: FloatArray) -> list[FloatArray]:
        """For each output, (r, K) every subset's part of C times u."""
        family, cells, tables = self.rows.phi.family, self.rows.cells, self.rows.of.kept
        sums = self.rows.phi.analyse(u)
        out = [np.empty((len(u), len(ratio)), order="F") for _ in range(u.shape[1])]
        for k, s in enumerate(self.rows.of.subsets):
            on_cells = ratio[k] * (tables.table(k) @ sums[family.cells_of(s)])
            for o, one in enumerate(out):
                one[:, k] = on_cells[cells[k], o]
        return out

    def _traces(self, lower: FloatArray) -> FloatArray:
        """(K,) traces of C^-1 times the kernel of each subset at the rows; the factor is overwritten."""
        from scipy.linalg import cho_solve
        from scipy.linalg.lapack import dpotri

        from exanova.shrink.kernel_loops import products_at_rows

        tables = self.rows.of.kept
        if self.probes is None:
            inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
            out = np.zeros(len(self.total))
            products_at_rows(tables.flat, tables.start, tables.width, self.rows.cells, inverse.T, out)
            return out
        family = self.rows.phi.family
        solved = self.rows.phi.analyse(cho_solve((lower, True), self.probes, check_finite=False))
        signs, own = self._signs, [family.cells_of(s) for s in self.rows.of.subsets]
        sums = [float(np.vdot(solved[c], tables.table(k) @ signs[c])) for k, c in enumerate(own)]
        return np.asarray(np.array(sums) / self.probes.shape[1])

    @cached_property
    def _signs(self) -> FloatArray:
        """(cells, P) sums of the probes over the cells."""
        assert self.probes is not None
        return self.rows.phi.analyse(self.probes)
