"""A sample and a family prepared for shrinking: the columns as an operator, and the sums over rows of a likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from exanova import parallel
from exanova.basis.functions import Basis, build_basis
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.coordinates import Prior, gram_of_columns, make_prior
from exanova.shrink.likelihood import ByColumns, ByFunctions, ByRows
from exanova.shrink.posterior import Columns
from exanova.shrink.prior import level_kernel
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray

ESTIMATED_FROM = 1000
"""Functions from which a search estimates traces; the numbers that are reported are computed."""

PROBES = 32
"""Random vectors of signs for such an estimate: it is off by less than one function in a hundred."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sample and a family, with what a likelihood and a posterior need of them.

    Attributes:
        sample, family, phi, basis: the rows, the family, its cells at the rows and its functions.
        kernels: for each feature, the covariance of the values of its levels.
        prior: the functions in coordinates of the prior.
        values: (r, m) centred values.
        precision: (r,) diagonal of D: how many rows each distinct row stands for.
        columns: Z as an operator.
        gram: (q, q) Z^T D Z; ``None`` where rows are fewer than functions.
    """

    sample: Sample
    family: Family
    phi: Phi
    basis: Basis
    kernels: dict[int, FloatArray]
    prior: Prior
    values: FloatArray
    precision: FloatArray
    columns: Columns
    gram: FloatArray | None

    @classmethod
    def of(cls, sample: Sample, request: Request, family: Family, progress: Progress) -> Prepared:
        """Build the functions, and where these are fewer than the rows, their Gram matrix."""
        kernels = {
            subset[0]: level_kernel(family.probability_of(s), request.ordered[subset[0]] if request.ordered else 0)
            for s, subset in enumerate(family.subsets)
            if len(subset) == 1
        }
        progress.phase("functions")
        with parallel.suitable_blas(0):
            basis = build_basis(family)
            prior = make_prior(family, basis, kernels)
        p, r, q = sample.probability, sample.n_rows, len(prior.order)
        precision = sample.precision
        phi = Phi(family, sample, request.threads, repeated=True)
        gram = None
        if not cost.by_rows(r, q):
            gamma = phi.gram(basis, progress=progress)[1:, 1:] * float(precision.sum())
            gram = gram_of_columns(np.asfortranarray(gamma), prior)
        values = sample.values - p @ sample.values
        return cls(sample, family, phi, basis, kernels, prior, values, precision, columns_of(phi, prior), gram)

    @property
    def varying(self) -> IntArray:
        """Outputs that are not constant."""
        return np.flatnonzero(self.values.any(axis=0)) if len(self.prior.order) else np.zeros(0, dtype=np.int64)

    def grouping(self, by_subset: bool) -> tuple[IntArray, FloatArray]:
        """(q,) component of each column, an order or a subset, and (K,) the prior energy of each."""
        prior = self.prior
        if not by_subset:
            return np.searchsorted(prior.orders, prior.order), np.array([prior.total[k] for k in prior.orders])
        group = np.repeat(np.arange(len(prior.subsets)), np.diff(prior.start))
        energy = np.array([float(np.square(factor).sum()) for factor in prior.factors])
        return group, energy

    def scale(self, logs: FloatArray, by_subset: bool) -> FloatArray:
        """(q,) standard deviation of each coordinate in units of tau, given the logarithms (K,) of the ratios."""
        group, total = self.grouping(by_subset)
        return np.asarray(np.sqrt(np.exp(logs) / total)[group])

    def likelihood(self, outputs: IntArray, by_subset: bool = False) -> ByFunctions | ByRows | ByColumns:
        """The likelihood of some outputs with the same ratios, of orders or of subsets."""
        y, (group, total) = self.values[:, outputs], self.grouping(by_subset)
        within = 0.0 if self.sample.within is None else self.precision @ self.sample.within[:, outputs]
        if self.gram is not None:
            squares, count = self.precision @ y**2, float(self.precision.sum())
            signs = self._signs if len(group) >= ESTIMATED_FROM else None
            return ByFunctions(self.gram, self._projections[:, outputs], squares, group, total, count, within, signs)
        noise = 1.0 / self.precision
        if by_subset:
            return ByColumns(self._at_rows, y, noise, group, total, within)
        return ByRows(self._row_kernels, y, noise, within)

    @cached_property
    def _signs(self) -> FloatArray:
        return np.asarray(np.random.default_rng(0).choice([-1.0, 1.0], (len(self.prior.order), PROBES)))

    @cached_property
    def _at_rows(self) -> FloatArray:
        return self.prior.on_rows(self.family, self.sample.codes)

    @cached_property
    def _row_kernels(self) -> list[FloatArray]:
        return kernels_of_rows(self.phi, self.prior)

    @cached_property
    def _projections(self) -> FloatArray:
        return self.columns.analyse(self.precision[:, None] * self.values)


def columns_of(phi: Phi, prior: Prior) -> Columns:
    """The columns of a prior as an operator on rows; can be pickled."""
    return Columns(partial(_synthesise, phi, prior), partial(_analyse, phi, prior))


def _synthesise(phi: Phi, prior: Prior, coordinates: FloatArray) -> FloatArray:
    return phi.synthesise(prior.on_cells(phi.family, coordinates))


def _analyse(phi: Phi, prior: Prior, values: FloatArray) -> FloatArray:
    return prior.on_columns(phi.family, phi.analyse(values))


def kernels_of_rows(phi: Phi, prior: Prior) -> list[FloatArray]:
    """For each order, (r, r) Z_k Z_k^T over its total: subset by subset, so that Z is never written down."""
    r = phi.codes.shape[1]
    out = {k: np.zeros((r, r)) for k in prior.orders}
    for s, _, table in prior.groups():
        order, at_rows = len(phi.family.subsets[s]), phi.cells(s)
        out[order] += (table @ table.T / prior.total[order])[at_rows[:, None], at_rows]
    return [out[k] for k in prior.orders]
