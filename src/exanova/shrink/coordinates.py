"""The functions of a family in coordinates in which their prior is a unit normal, order by order.

In functions orthonormal in L2(p_A) the prior of f_A = Phi_A c_A is c_A ~ N(0, s_k L_A L_A^T) with
L_A L_A^T = Phi_A^T P K_A P Phi_A. The columns used here are Phi_A L_A: pure functions, so that they have mean zero
given fewer of their features, and every column of one order has a coordinate of the same prior variance s_k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis
from exanova.data.sample import KnownRows
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.shrink.prior import cell_kernel
from exanova.typing import Codes, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Prior:
    """The columns of a family: its functions but the intercept, in coordinates of the prior.

    Attributes:
        subsets: numbers of the subsets with functions of their own, in the order of the columns.
        tables: for each of them, (c, k) the columns on its cells: Phi_A L_A.
        factors: for each of them, (k, k) L_A.
        start: (S' + 1,) first column of each.
        order: (columns,) size of the subset of each column.
        total: for each order, the sum of E[column^2]: divided by it, an order has prior variance one.
    """

    subsets: list[int]
    tables: list[FloatArray]
    factors: list[FloatArray]
    start: IntArray
    order: IntArray
    total: dict[int, float]

    @property
    def orders(self) -> tuple[int, ...]:
        """Sizes of the subsets that have columns."""
        return tuple(sorted(self.total))

    def groups(self) -> Iterator[tuple[int, slice, FloatArray]]:
        """Number, columns and table of each subset."""
        for k, s in enumerate(self.subsets):
            yield s, slice(int(self.start[k]), int(self.start[k + 1])), self.tables[k]

    def scale(self, ratios: FloatArray) -> FloatArray:
        """(columns,) standard deviation of each coordinate, given the variance (orders,) of every order."""
        by_order = {k: ratio / self.total[k] for k, ratio in zip(self.orders, ratios, strict=True) if self.total[k] > 0}
        return np.sqrt(np.array([by_order.get(int(k), 0.0) for k in self.order], dtype=np.float64))

    def on_rows(self, family: Family, codes: Codes) -> FloatArray:
        """(r, columns) every column at every row."""
        out, phi = np.empty((codes.shape[1], len(self.order))), Phi(family, KnownRows(codes))
        for s, own, table in self.groups():
            out[:, own] = table[phi.cells(s)]
        return out

    def on_cells(self, family: Family, coordinates: FloatArray) -> FloatArray:
        """(cells, m) the effects with these (columns, m) coordinates, on their cells; the intercept is 0."""
        out = np.zeros((family.n_cells, coordinates.shape[1]))
        for s, own, table in self.groups():
            out[family.cells_of(s)] = table @ coordinates[own]
        return out

    def on_columns(self, family: Family, sums: FloatArray) -> FloatArray:
        """(columns, m) inner products of the columns with a measure given by its (cells, m) sums: the adjoint."""
        out = np.empty((len(self.order), sums.shape[1]))
        for s, own, table in self.groups():
            out[own] = table.T @ sums[family.cells_of(s)]
        return out


def make_prior(family: Family, basis: Basis, kernels: dict[int, FloatArray]) -> Prior:
    """The prior of every subset of a family but the intercept, given the kernel of every feature's levels."""
    subsets, tables, factors, orders = [], [], [], []
    for s, subset in enumerate(family.subsets):
        functions = basis.table(s)
        if not subset or not functions.shape[1]:
            continue
        weighted = family.probability_of(s)[:, None] * functions
        factors.append(root(weighted.T @ cell_kernel(family.codes_of(s), subset, kernels) @ weighted))
        tables.append(functions @ factors[-1])
        subsets.append(s)
        orders.append(np.full(functions.shape[1], len(subset)))
    order = np.concatenate([*orders, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    start = np.concatenate([[0], np.cumsum([len(o) for o in orders])]).astype(np.int64)
    energy = np.concatenate([*(np.square(f).sum(axis=0) for f in factors), np.zeros(0)])
    total = {int(k): float(energy[order == k].sum()) for k in np.unique(order)}
    return Prior(subsets, tables, factors, start, order, total)


def root(covariance: FloatArray) -> FloatArray:
    """(k, k) L with L L^T = covariance, which may be singular: by Cholesky where that succeeds, it is far cheaper.

    >>> root(np.array([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(covariance, lower=1, clean=1)
    smallest = tolerances.rank_of_gram(len(covariance)) * float(np.diagonal(covariance).max(initial=0.0))
    if not failed and float(np.diagonal(lower).min(initial=np.inf)) ** 2 > smallest:
        return np.asarray(lower)
    variance, axes = np.linalg.eigh(covariance)
    return np.asarray(axes * np.sqrt(np.maximum(variance, 0.0)))


def gram_of_columns(gamma: FloatArray, prior: Prior) -> FloatArray:
    """L^T Gamma L, in place: from the (columns, columns) Gram matrix of the functions to that of the columns."""
    for own, factor in _blocks(prior):
        gamma[:, own] = gamma[:, own] @ factor
    for own, factor in _blocks(prior):
        gamma[own] = factor.T @ gamma[own]
    return gamma


def _blocks(prior: Prior) -> Iterator[tuple[slice, FloatArray]]:
    for (_, own, _), factor in zip(prior.groups(), prior.factors, strict=True):
        yield own, factor
