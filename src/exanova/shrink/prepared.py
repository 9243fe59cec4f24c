"""A sample and a family prepared for shrinking: kernels or columns, and the sums over rows of a likelihood.

Three ways, by what is smaller (:mod:`exanova.shrink.cost`): over functions, where these are fewer than the rows; over
rows, from kernels of cells; and where both are many, over the functions that the prior expects most of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from exanova import parallel
from exanova.basis.functions import Basis, build_basis, dimensions, too_large_for_tables
from exanova.data.sample import KnownRows, Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.by_cells import ByCells, RowKernels, SubsetKernels
from exanova.shrink.cell_kernels import kernels_of_cells
from exanova.shrink.clusters import ClusterRows, Shared, shared_over_functions, shared_over_rows, shared_ratio
from exanova.shrink.coordinates import Prior, gram_of_columns, leading_prior, make_prior, prior_of_kernels
from exanova.shrink.likelihood import ByFunctions, ByRows
from exanova.shrink.posterior import Columns
from exanova.shrink.prior import level_kernel
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray

ESTIMATED_FROM = 1000
"""Functions or rows from which a search estimates traces; the numbers that are reported are computed."""

PROBES = 32
"""Random vectors of signs for such an estimate: its error is less than one function in a hundred."""

START_ROWS = 800
"""Distinct rows, drawn at random, on which a search over many rows or functions starts."""

BLOCK_BYTES = 64_000_000
"""Memory of the columns at one block of rows."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sample and a family, with the arrays that a likelihood and a posterior need.

    Attributes:
        sample, family, phi: the rows, the family, and its cells at the rows.
        basis: its functions, where these are used.
        rows: the kernels of all subsets at the rows.
        drawn: (N,) rows on which a search starts: all, or some drawn at random.
        prior: the functions in coordinates of the prior.
        values: (r, m) centred values.
        precision: (r,) diagonal of D: how many rows each distinct row stands for.
        gram: (q, q) Z^T D Z; ``None`` where the matrices over rows are used.
        shared: what rows of a cluster share, where likelihoods are to know it; ``None`` for independent rows.
    """

    sample: Sample
    family: Family
    phi: Phi
    basis: Basis | None
    rows: RowKernels
    drawn: IntArray
    prior: Prior
    values: FloatArray
    precision: FloatArray
    gram: FloatArray | None
    shared: Shared | None = None

    @classmethod
    def of(cls, sample: Sample, request: Request, family: Family, progress: Progress) -> Prepared:
        """Build kernels; where functions are fewer than the rows, the functions and their Gram matrix."""
        progress.phase("functions")
        kernels = {
            subset[0]: level_kernel(family.probability_of(s), request.ordered[subset[0]] if request.ordered else 0)
            for s, subset in enumerate(family.subsets)
            if len(subset) == 1
        }
        own = dimensions(family)
        subsets = [s for s, subset in enumerate(family.subsets) if subset and own[s]]
        phi = Phi(family, sample, request.threads, repeated=True)
        values = sample.values - sample.probability @ sample.values
        precision = sample.precision
        with parallel.suitable_blas(0):
            of_subsets = SubsetKernels(family, subsets, kernels_of_cells(family, subsets, kernels))
            rows, drawn = RowKernels(of_subsets, phi), _drawn(sample.n_rows, request.random_state)
            large = bool(too_large_for_tables(family).any())
            if cost.way(sample.n_rows, int(own.sum()) - 1, large) != "functions":
                prior = prior_of_kernels(family, subsets, of_subsets.kernels, of_subsets.energy)
                return cls(sample, family, phi, None, rows, drawn, prior, values, precision, None)
            basis = build_basis(family)
            prior = make_prior(family, basis, kernels)
        gamma = phi.gram(basis, progress=progress)[1:, 1:] * float(precision.sum())
        gram = gram_of_columns(np.asfortranarray(gamma), prior)
        return cls(sample, family, phi, basis, rows, drawn, prior, values, precision, gram)

    def leading(self, variance: FloatArray) -> Prepared:
        """The same over the columns that have the largest prior variance, given that (S',) of every subset."""
        prior = leading_prior(self.prior, variance, cost.leading(self.sample.n_rows))
        gram, q = np.zeros((len(prior.order), len(prior.order)), order="F"), len(prior.order)
        for codes, precision in self._blocks(q):
            at_rows = prior.on_rows(self.family, codes) * np.sqrt(precision)[:, None]
            gram += at_rows.T @ at_rows
        return replace(self, prior=prior, gram=gram)

    @cached_property
    def in_clusters(self) -> ClusterRows | None:
        """The raw rows; ``None`` where none were drawn together."""
        return ClusterRows.of(self.sample) if len(self.varying) else None

    def find_shared(self, seed: int, estimated: FloatArray | None = None) -> Shared | None:
        """What rows of a cluster share beside effects; ``None`` where rows are independent, or it cannot be estimated.

        ``estimated`` (S',) are ratios of subsets that take rows for independent.
        """
        rows = self.in_clusters
        if rows is None:
            return None
        ratio = shared_ratio(rows, self.sample, self.rows.of, self.varying, seed, estimated)
        if not ratio:
            return None
        if self.gram is None:
            return shared_over_rows(rows, ratio, self.phi, self.rows.of)
        return shared_over_functions(rows, ratio, self.phi, self.prior, self.drawn)

    def sharing(self, shared: Shared) -> Prepared:
        """The same with likelihoods that know what rows of a cluster share; not for the fit itself."""
        if shared.gram is None or self.gram is None:
            return replace(self, shared=shared)
        return replace(self, shared=shared, gram=self.gram - shared.gram)

    def _blocks(self, columns: int) -> Iterator[tuple[IntArray, FloatArray]]:
        step = max(16, BLOCK_BYTES // (8 * max(1, columns)))
        for first in range(0, self.sample.n_rows, step):
            part = slice(first, first + step)
            yield np.ascontiguousarray(self.sample.codes[:, part]), self.precision[part]

    @cached_property
    def _last(self) -> dict[tuple[bytes, bool], ByFunctions]:
        return {}

    @cached_property
    def columns(self) -> Columns:
        """Z as an operator."""
        return columns_of(self.phi, self.prior)

    @cached_property
    def functions_of(self) -> IntArray:
        """(S,) dimension of the pure space of each subset."""
        return dimensions(self.family)

    @property
    def functions(self) -> int:
        """Functions of the family beside the intercept."""
        return int(self.functions_of.sum()) - 1

    @property
    def awaits_leading(self) -> bool:
        """Whether the leading functions have to be chosen first: see :meth:`leading`."""
        return self.gram is None and self.sample.n_rows > cost.MOST_ROWS

    @property
    def has_leading(self) -> bool:
        """Whether only the leading functions are used."""
        return self.gram is not None and self.basis is None

    @property
    def size(self) -> int:
        """Side of the matrix that is factorised."""
        return self.sample.n_rows if self.gram is None else len(self.gram)

    @property
    def varying(self) -> IntArray:
        """Outputs that are not constant."""
        return np.flatnonzero(self.values.any(axis=0)) if len(self.prior.subsets) else np.zeros(0, dtype=np.int64)

    @cached_property
    def order_of(self) -> IntArray:
        """(S',) which of the orders each subset has."""
        return np.searchsorted(self.prior.orders, self.prior.orders_of)

    @cached_property
    def total(self) -> FloatArray:
        """(orders,) prior energy of each order."""
        return np.array([self.prior.total[k] for k in self.prior.orders])

    def ratio(self, logs: FloatArray, by_subset: bool) -> FloatArray:
        """(S',) variance of a coordinate in units of tau^2, given the logarithms (K,) of the ratios."""
        if by_subset:
            return np.asarray(np.exp(logs) / self.prior.energy)
        return np.asarray((np.exp(logs) / self.total)[self.order_of])

    @cached_property
    def unused(self) -> FloatArray:
        """(S',) prior energy of the functions of every subset that are not used: all but the leading ones, or none."""
        if not self.has_leading:
            return np.zeros(len(self.prior.subsets))
        tables = ((self.family.probability_of(s), table) for s, _, table in self.prior.groups())
        used = np.array([float(p @ np.square(table).sum(axis=1)) for p, table in tables])
        return np.asarray(np.maximum(self.prior.energy - used, 0.0))

    def noisier(self, logs: FloatArray) -> FloatArray:
        """(K,) logarithms of the ratios of orders, given those (K,) of all functions: what unused ones carry is noise.

        The variance of the effects stays, tau^2 grows by what the prior expects of the unused functions.
        """
        return np.asarray(logs - np.log1p(float(self.ratio(logs, False) @ self.unused)))

    def scale(self, logs: FloatArray, by_subset: bool) -> FloatArray:
        """(q,) standard deviation of each coordinate in units of tau."""
        return np.sqrt(self.ratio(logs, by_subset))[self.prior.group]

    def row_factor(self, logs: FloatArray, by_subset: bool) -> FloatArray:
        """The same over rows; from the kernels of the orders, where these are known."""
        noise = 1.0 / self.precision
        if by_subset or "by_order" not in self.rows.__dict__:
            return self.rows.factor(self.ratio(logs, by_subset), noise)
        return ByRows(self.rows.by_order, self.values[:, :0], noise).factor(logs)

    def factor(self, logs: FloatArray, by_subset: bool, outputs: IntArray) -> FloatArray:
        """Lower Cholesky factor of I + S Z^T D Z S over functions, or of D^-1 + Z S^2 Z^T over rows."""
        if self.gram is None:
            return self.row_factor(logs, by_subset)
        return self.by_functions(outputs, by_subset).factor(logs)

    def likelihood(self, outputs: IntArray, by_subset: bool = False) -> ByFunctions | ByRows | ByCells:
        """The likelihood of some outputs with the same ratios, of orders or of subsets, on all rows."""
        if self.gram is not None:
            return self.by_functions(outputs, by_subset)
        y, noise, within = self.values[:, outputs], 1.0 / self.precision, self._within(outputs)
        shared = 0.0 if self.shared is None else self.shared.rows
        if not by_subset:
            return ByRows(self.rows.by_order, y, noise, within, shared)
        signs = _signs(len(y)) if len(y) > ESTIMATED_FROM else None
        return ByCells(self.rows, y, noise, self.prior.energy, within, signs, shared)

    def by_functions(self, outputs: IntArray, by_subset: bool) -> ByFunctions:
        """The same from sums over the rows; the last one is kept, with its factor."""
        key = (outputs.tobytes(), by_subset)
        if key not in self._last:
            self._last.clear()
            self._last[key] = self._by_functions(outputs, by_subset)
        return self._last[key]

    def _by_functions(self, outputs: IntArray, by_subset: bool) -> ByFunctions:
        assert self.gram is not None
        y, group = self.values[:, outputs], self.prior.group
        group, total = (group, self.prior.energy) if by_subset else (self.order_of[group], self.total)
        squares, count = self.precision @ y**2, float(self.precision.sum())
        if self.shared is not None and self.shared.squares is not None:
            squares = squares - self.shared.squares[outputs]
        signs = self._signs if len(group) >= ESTIMATED_FROM else None
        within = self._within(outputs)
        return ByFunctions(self.gram, self._projections[:, outputs], squares, group, total, count, within, signs)

    def on_some(self, outputs: IntArray) -> ByRows:
        """The likelihood of ratios of orders on the rows that were drawn, of all functions."""
        y, d = self.values[np.ix_(self.drawn, outputs)], self.precision[self.drawn]
        shared = 0.0 if self.shared is None else self.shared.rows
        return ByRows(self._some.by_order, y - d @ y / d.sum(), 1.0 / d, 0.0, shared)

    @cached_property
    def _some(self) -> RowKernels:
        codes = np.ascontiguousarray(self.sample.codes[:, self.drawn])
        return RowKernels(self.rows.of, Phi(self.family, KnownRows(codes), repeated=True))

    def _within(self, outputs: IntArray) -> FloatArray | float:
        return 0.0 if self.sample.within is None else self.precision @ self.sample.within[:, outputs]

    @cached_property
    def _signs(self) -> FloatArray:
        return _signs(len(self.prior.order))

    @cached_property
    def _projections(self) -> FloatArray:
        projections = self.columns.analyse(self.precision[:, None] * self.values)
        known = None if self.shared is None else self.shared.projections
        return projections if known is None else projections - known


def _drawn(rows: int, seed: int) -> IntArray:
    if rows <= START_ROWS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, START_ROWS, replace=False))


def _signs(count: int) -> FloatArray:
    return np.asarray(np.random.default_rng(0).choice([-1.0, 1.0], (count, PROBES)))


def columns_of(phi: Phi, prior: Prior) -> Columns:
    """The columns of a prior as an operator on rows; can be pickled."""
    return Columns(partial(_synthesise, phi, prior), partial(_analyse, phi, prior))


def _synthesise(phi: Phi, prior: Prior, coordinates: FloatArray) -> FloatArray:
    return phi.synthesise(prior.on_cells(phi.family, coordinates))


def _analyse(phi: Phi, prior: Prior, values: FloatArray) -> FloatArray:
    return prior.on_columns(phi.family, phi.analyse(values))
