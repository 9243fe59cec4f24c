"""The prior covariance of every effect on its cells: pure, without a basis of the pure functions.

With K the product of the features' kernels on the observed cells of A and Pi the projection on pure functions in
L2(p_A), the values of f_A have the covariance M = Pi K Pi^T. For a pair, 1 - Pi fits a(x_i) + b(x_j): with X the
indicators of the levels of both features, P the probabilities of the cells and G = X^T P X,

    Pi = 1 - X G^-1 X^T P,     X^T P K = (K_i times P K_j, K_j times P^T K_i)   entry by entry on levels and cells,

so that M costs a few passes over cells x cells, and M v a few products of tables of levels. G is singular once in
every connected part of the graph of observed cells, where a constant may move from a to b; that direction is filled.

With the sums over the rows of every cell of precision times residual, the posterior mean is M times them, times the
ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from exanova.basis.functions import pure_basis
from exanova.design.family import Family
from exanova.shrink.prior import cell_kernel, root
from exanova.typing import FloatArray, IntArray


class CellKernel(Protocol):
    """The covariance M of one effect on its cells."""

    def dense(self) -> FloatArray:
        """(c, c) M."""

    def diagonal(self) -> FloatArray:
        """(c,) diagonal of M."""

    def apply(self, v: FloatArray) -> FloatArray:
        """(c, m) M v."""

    def root(self) -> FloatArray:
        """(c, k) a matrix R with R R^T = M."""

    def sizes(self) -> FloatArray:
        """(k,) parts of the prior variance, largest first."""

    def leading(self, count: int | None = None) -> FloatArray:
        """(c, count) the functions with the largest parts, by default all: R R^T = M for all of them."""


@dataclass(frozen=True, eq=False)
class SingleKernel:
    """One feature: its cells are its levels, and its kernel is centred already."""

    kernel: FloatArray
    probability: FloatArray

    def dense(self) -> FloatArray:
        """(c, c) M."""
        return self.kernel

    def diagonal(self) -> FloatArray:
        """(c,) diagonal of M."""
        return np.diagonal(self.kernel)

    def apply(self, v: FloatArray) -> FloatArray:
        """(c, m) M v."""
        return np.asarray(self.kernel @ v)

    def root(self) -> FloatArray:
        """(c, k) R with R R^T = M."""
        return self.leading()

    def sizes(self) -> FloatArray:
        """(k,) parts of the variance."""
        return self._principal[0]

    def leading(self, count: int | None = None) -> FloatArray:
        """(c, count) functions."""
        return self._principal[1][:, :count]

    @cached_property
    def _principal(self) -> tuple[FloatArray, FloatArray]:
        return principal(self.kernel, self.probability)


@dataclass(frozen=True, eq=False)
class PairKernel:
    """Two features with kernels (N_i, N_i) and (N_j, N_j), on (2, c) observed cells with (c,) probabilities."""

    codes: IntArray
    probability: FloatArray
    first: FloatArray
    second: FloatArray

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.first), len(self.second)

    @cached_property
    def _table(self) -> FloatArray:
        out = np.zeros(self._shape)
        out[self.codes[0], self.codes[1]] = self.probability
        return out

    @cached_property
    def _factor(self) -> FloatArray:
        """Lower Cholesky factor of G with its null directions filled."""
        from scipy.linalg.lapack import dpotrf

        p, (n, k) = self._table, self._shape
        gram = np.zeros((n + k, n + k))
        gram[:n, n:], gram[n:, :n] = p, p.T
        gram[np.diag_indices_from(gram)] = np.concatenate([p.sum(axis=1), p.sum(axis=0)])
        for part in self._parts():
            sign = np.where(np.arange(n + k) < n, 1.0, -1.0) * part
            gram += np.outer(sign, sign) / part.sum() ** 2
        return np.asarray(dpotrf(gram, lower=1, clean=1)[0])

    def _parts(self) -> list[FloatArray]:
        """(N_i + N_j,) indicators of the connected parts of the graph of observed cells."""
        if self._table.all():
            return [np.ones(sum(self._shape))]
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        nodes = sum(self._shape)
        ends = (self.codes[0], self._shape[0] + self.codes[1])
        graph = coo_array((np.ones(self.codes.shape[1]), ends), shape=(nodes, nodes))
        count, part = connected_components(graph, directed=False)
        return [(part == k).astype(np.float64) for k in range(count)]

    def _solve(self, right: FloatArray) -> FloatArray:
        from scipy.linalg.lapack import dpotrs

        return np.asarray(dpotrs(self._factor, right, lower=1)[0])

    def _by_level(self, measure: FloatArray) -> FloatArray:
        """(N_i + N_j, m) sums of a (c, m) measure over the cells of each level: X^T."""
        at = np.zeros((*self._shape, measure.shape[1]))
        at[self.codes[0], self.codes[1]] = measure
        return np.concatenate([at.sum(axis=1), at.sum(axis=0)])

    def _at_cells(self, by_level: FloatArray) -> FloatArray:
        """(c, m) a(x_i) + b(x_j): X."""
        return np.asarray(by_level[self.codes[0]] + by_level[self._shape[0] + self.codes[1]])

    def purified(self, values: FloatArray) -> FloatArray:
        """(c, m) Pi times values; twice, because the second time removes rounding errors."""
        for _ in range(2):
            values = values - self._at_cells(self._solve(self._by_level(self.probability[:, None] * values)))
        return np.asarray(values)

    @cached_property
    def _fitted(self) -> FloatArray:
        """(N_i + N_j, c) E with M = K - X E - E^T X^T."""
        i, j = self.codes
        between = self.first[:, i] * (self._table @ self.second)[:, j]
        other = self.second[:, j] * (self._table.T @ self.first)[:, i]
        fitted = self._solve(np.concatenate([between, other]))
        twice = self._solve(self._by_level(self.probability[:, None] * fitted.T))  # (levels, levels)
        return np.ascontiguousarray(fitted - 0.5 * (twice[:, i] + twice[:, self._shape[0] + j]))

    def dense(self) -> FloatArray:
        """(c, c) M."""
        i, j = self.codes
        apart = self._at_cells(self._fitted)
        out = np.take(self.first[i], i, axis=1)
        out *= np.take(self.second[j], j, axis=1)
        out -= apart
        out -= apart.T
        return np.asarray(out)

    def diagonal(self) -> FloatArray:
        """(c,) diagonal of M."""
        (i, j), n = self.codes, self._shape[0]
        own = self._fitted[i, np.arange(len(i))] + self._fitted[n + j, np.arange(len(i))]
        return np.asarray(self.first[i, i] * self.second[j, j] - 2.0 * own)

    def apply(self, v: FloatArray) -> FloatArray:
        """(c, m) M v: Pi^T first, then the kernels of both features on the table of all combinations, then Pi."""
        return self.purified(self._smooth(v)[self.codes[0], self.codes[1]])

    def _smooth(self, v: FloatArray) -> FloatArray:
        """(N_i, N_j, m) K Pi^T v, on the table of all combinations."""
        v = v - self.probability[:, None] * self._at_cells(self._solve(self._by_level(v)))
        at = np.zeros((*self._shape, v.shape[1]))
        at[self.codes[0], self.codes[1]] = v
        return np.asarray(np.matmul(self.second, np.tensordot(self.first, at, 1)))

    def continued(self, v: FloatArray) -> FloatArray:
        """(N_i, N_j, m) M v on the table of all combinations: :meth:`apply` in the observed cells."""
        return self._without_lower(self._smooth(v))

    def continued_leading(self, coordinates: FloatArray) -> FloatArray:
        """(N_i, N_j, m) the sum of the leading functions with (k, m) coordinates, on all combinations."""
        (a, left), (b, right) = self._principal
        x, y = np.divmod(self._chosen(len(coordinates)), len(b))
        at = np.zeros((len(a), len(b), coordinates.shape[1]))
        at[x, y] = coordinates
        return self._without_lower(np.matmul(right, np.tensordot(left, at, 1)))

    def _without_lower(self, table: FloatArray) -> FloatArray:
        """(N_i, N_j, m) values on all combinations less the a(x_i) + b(x_j) fitted to those in the observed cells."""
        i, j = self.codes
        for _ in range(2):  # the second time removes rounding errors
            fitted = self._solve(self._by_level(self.probability[:, None] * table[i, j]))
            table = table - fitted[: self._shape[0], None] - fitted[None, self._shape[0] :]
        return table

    def root(self) -> FloatArray:
        """(c, k) R with R R^T = M: products of functions of the features, or a factor if these outnumber the cells."""
        if self.codes.shape[1] >= self.first.size:
            return self.leading()
        from scipy.linalg.lapack import dpotrf

        # A constant in the kernel of a feature adds what lower orders can express, and makes it positive definite.
        i, j = self.codes
        lower, failed = dpotrf((self.first + 1.0)[i][:, i] * (self.second + 1.0)[j][:, j], lower=1, clean=1)
        return self.leading() if failed else self.purified(np.asarray(lower))

    def sizes(self) -> FloatArray:
        """(k,) parts of the variance, under independence."""
        (a, _), (b, _) = self._principal
        return -np.sort(-np.outer(a, b).ravel())

    def leading(self, count: int | None = None) -> FloatArray:
        """(c, count) functions: products of functions of one feature."""
        (_, left), (b, right) = self._principal
        x, y = np.divmod(self._chosen(count), len(b))
        return self.purified(left[self.codes[0]][:, x] * right[self.codes[1]][:, y])

    def _chosen(self, count: int | None) -> IntArray:
        """(count,) the products with the largest variances, by their number."""
        (a, _), (b, _) = self._principal
        return np.argsort(-np.outer(a, b).ravel(), kind="stable")[:count]

    @cached_property
    def _principal(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        table = self._table
        return principal(self.first, table.sum(axis=1)), principal(self.second, table.sum(axis=0))


@dataclass(frozen=True, eq=False)
class TableKernel:
    """Three features or more: the functions of the subset in coordinates of unit variance, (c, k)."""

    table: FloatArray
    probability: FloatArray

    def dense(self) -> FloatArray:
        """(c, c) M."""
        return np.asarray(self.table @ self.table.T)

    def diagonal(self) -> FloatArray:
        """(c,) diagonal of M."""
        return np.asarray(np.square(self.table).sum(axis=1))

    def apply(self, v: FloatArray) -> FloatArray:
        """(c, m) M v."""
        return np.asarray(self.table @ (self.table.T @ v))

    def root(self) -> FloatArray:
        """(c, k) R with R R^T = M."""
        return self.table

    def sizes(self) -> FloatArray:
        """(k,) parts of the variance."""
        return self._principal[0]

    def leading(self, count: int | None = None) -> FloatArray:
        """(c, count) functions."""
        return self._principal[1][:, :count]

    @cached_property
    def _principal(self) -> tuple[FloatArray, FloatArray]:
        return principal(self.dense(), self.probability)


def principal(kernel: FloatArray, probability: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Principal functions of a covariance in L2(p): (k,) variances, largest first, and (c, k) functions of that size.

    >>> variance, functions = principal(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0.5, 0.5]))
    >>> variance.round(12).tolist(), abs(functions).round(12).tolist()
    ([1.0], [[1.0], [1.0]])
    """
    root = np.sqrt(probability)
    variance, axes = np.linalg.eigh(root[:, None] * kernel * root)
    kept = np.flatnonzero(variance > len(variance) * np.finfo(np.float64).eps * max(float(variance[-1]), 0.0))[::-1]
    return variance[kept], axes[:, kept] * np.sqrt(variance[kept]) / root[:, None]


def kernels_of_cells(family: Family, numbers: list[int], kernels: dict[int, FloatArray]) -> list[CellKernel]:
    """The kernel of each of these subsets of a family, given the kernels of the features' levels."""
    out: list[CellKernel] = []
    for s in numbers:
        subset, p = family.subsets[s], family.probability_of(s)
        if len(subset) == 1:
            out.append(SingleKernel(kernels[subset[0]], p))
        elif len(subset) == 2:
            out.append(PairKernel(family.codes_of(s), p, kernels[subset[0]], kernels[subset[1]]))
        else:
            out.append(_table_kernel(family, s, kernels))
    return out


def _table_kernel(family: Family, s: int, kernels: dict[int, FloatArray]) -> TableKernel:
    (functions,) = pure_basis(family, [s])
    assert isinstance(functions, np.ndarray)
    p = family.probability_of(s)
    weighted = p[:, None] * functions
    between = cell_kernel(family.codes_of(s), family.subsets[s], kernels)
    return TableKernel(functions @ root(weighted.T @ between @ weighted), p)
