"""The functions of a family in coordinates in which their prior is a unit normal, order by order.

In functions orthonormal in L2(p_A) the prior of f_A = Phi_A c_A is c_A ~ N(0, s_k L_A L_A^T) with
L_A L_A^T = Phi_A^T P K_A P Phi_A. The columns used here are Phi_A L_A: pure functions, so that they have mean zero
given fewer of their features, and every column of one order has a coordinate of the same prior variance s_k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exanova.basis.functions import Basis
from exanova.data.sample import KnownRows
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.shrink.cell_kernels import CellKernel
from exanova.shrink.prior import cell_kernel, root
from exanova.typing import Codes, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Prior:
    """The columns of a family: its functions but the intercept, in coordinates of the prior.

    Attributes:
        subsets: numbers of the subsets with functions of their own, in the order of the columns.
        sources: for each of them, (c, k) the columns on its cells, Phi_A L_A; or its kernel, of which a root is taken
            when columns are asked for.
        orders_of: (S',) sizes of the subsets.
        energy: (S',) sum of E[column^2] of each.
        factors: for each of them, (k, k) L_A, where the columns are made from functions.
    """

    subsets: list[int]
    sources: Sequence[FloatArray | CellKernel]
    orders_of: IntArray
    energy: FloatArray
    factors: list[FloatArray] = field(default_factory=list)

    @cached_property
    def tables(self) -> list[FloatArray]:
        """For each subset, (c, k) the columns on its cells."""
        return [source if isinstance(source, np.ndarray) else source.root() for source in self.sources]

    @cached_property
    def start(self) -> IntArray:
        """(S' + 1,) first column of each subset."""
        return np.concatenate([[0], np.cumsum([table.shape[1] for table in self.tables])]).astype(np.int64)

    @cached_property
    def group(self) -> IntArray:
        """(columns,) which subset each column belongs to."""
        return np.repeat(np.arange(len(self.subsets)), np.diff(self.start))

    @cached_property
    def order(self) -> IntArray:
        """(columns,) size of the subset of each column."""
        return self.orders_of[self.group]

    @cached_property
    def total(self) -> dict[int, float]:
        """For each order, the sum of E[column^2]: divided by it, an order has prior variance one."""
        return {int(k): float(self.energy[self.orders_of == k].sum()) for k in np.unique(self.orders_of)}

    @property
    def orders(self) -> tuple[int, ...]:
        """Sizes of the subsets that have columns."""
        return tuple(sorted(self.total))

    def groups(self) -> Iterator[tuple[int, slice, FloatArray]]:
        """Number, columns and table of each subset."""
        for k, s in enumerate(self.subsets):
            yield s, slice(int(self.start[k]), int(self.start[k + 1])), self.tables[k]

    def ratio(self, ratios: FloatArray) -> FloatArray:
        """(S',) variance of a coordinate of each subset, given the variance (orders,) of every order."""
        by_order = {k: ratio / self.total[k] for k, ratio in zip(self.orders, ratios, strict=True) if self.total[k] > 0}
        return np.array([by_order.get(int(k), 0.0) for k in self.orders_of], dtype=np.float64)

    def scale(self, ratios: FloatArray) -> FloatArray:
        """(columns,) standard deviation of each coordinate, given the variance (orders,) of every order."""
        return np.sqrt(self.ratio(ratios))[self.group]

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
    subsets, tables, factors = [], [], []
    for s, subset in enumerate(family.subsets):
        functions = basis.table(s)
        if not subset or not functions.shape[1]:
            continue
        weighted = family.probability_of(s)[:, None] * functions
        factors.append(root(weighted.T @ cell_kernel(family.codes_of(s), subset, kernels) @ weighted))
        tables.append(functions @ factors[-1])
        subsets.append(s)
    energy = np.array([float(np.square(factor).sum()) for factor in factors])
    return Prior(subsets, tables, _sizes(family, subsets), energy, factors)


def prior_of_kernels(family: Family, subsets: list[int], kernels: Sequence[CellKernel], energy: FloatArray) -> Prior:
    """The same from the kernels of the cells; columns are made on first use."""
    return Prior(subsets, list(kernels), _sizes(family, subsets), energy)


def leading_prior(prior: Prior, variance: FloatArray, most: int) -> Prior:
    """The ``most`` columns of a prior from kernels that have the largest variance, given that (S',) of every subset.

    Every subset keeps one column at least. ``energy`` stays that of all columns.
    """
    kernels = [source for source in prior.sources if not isinstance(source, np.ndarray)]
    sizes = [own * kernel.sizes() for kernel, own in zip(kernels, variance.tolist(), strict=True)]
    every = np.concatenate(sizes)
    least = np.partition(every, len(every) - most)[len(every) - most] if len(every) > most else 0.0
    counts = [max(1, int((size >= least).sum())) for size in sizes]
    chosen = [np.ascontiguousarray(kernel.leading(count)) for kernel, count in zip(kernels, counts, strict=True)]
    return Prior(prior.subsets, chosen, prior.orders_of, prior.energy)


def _sizes(family: Family, subsets: list[int]) -> IntArray:
    return np.array([len(family.subsets[s]) for s in subsets], dtype=np.int64)


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
