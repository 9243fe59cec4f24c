"""The shrunken fit: the posterior mean of all effects given their variances, in one linear solve.

In coordinates of functions orthonormal in L2(p_A), the prior of f_A = Phi_A c_A is c_A ~ N(0, s_k L_A L_A^T) with
L_A L_A^T = Phi_A^T P K_A P Phi_A. With Z = Phi L sqrt(s) at the rows and D = r diag(p),

    y = Z z + residual,   z ~ N(0, I),   residual ~ N(0, tau^2 D^-1),
    posterior mean  z = (Z^T D Z + tau^2 I)^-1 Z^T D y = Z^T (Z Z^T + tau^2 D^-1)^-1 y,

by whichever of the two matrices is smaller. Every function of Z has mean zero given fewer of its features, so that the
posterior mean of each effect is pure as it stands, and the mean of the model is the intercept. As the penalty tau^2
vanishes this becomes the least-squares fit of least energy. What the same factor also gives:

    leave-one-out residual  e_i / (1 - h_i),   effective functions  trace of the hat matrix, order by order,
    posterior variance of every effect in every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exanova.basis.tables import Basis
from exanova.data.sample import KnownRows
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.shrink.components import Components
from exanova.shrink.prior import cell_kernel
from exanova.typing import Codes, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Prior:
    """The functions of a family in coordinates in which their prior is a unit normal, order by order.

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

    def scale(self, components: Components) -> FloatArray:
        """(columns,) standard deviation of each column's coordinate."""
        by_order = {k: components.of_order(k) / t if t > 0 else 0.0 for k, t in self.total.items()}
        return np.sqrt(np.array([by_order[int(k)] for k in self.order], dtype=np.float64))

    def on_rows(self, index: Family, codes: Codes) -> FloatArray:
        """(r, columns) every column at every row."""
        out = np.empty((codes.shape[1], len(self.order)))
        phi = Phi(index, KnownRows(codes))
        for k, s in enumerate(self.subsets):
            out[:, self.start[k] : self.start[k + 1]] = self.tables[k][phi.cells(s)]
        return out


def make_prior(index: Family, basis: Basis, kernels: dict[int, FloatArray]) -> Prior:
    """The prior of every subset of a family but the intercept."""
    subsets, tables, factors, orders = [], [], [], []
    for s, subset in enumerate(index.subsets):
        functions = basis.table(s)
        if not subset or not functions.shape[1]:
            continue
        weighted = index.probability_of(s)[:, None] * functions
        variance, axes = np.linalg.eigh(weighted.T @ cell_kernel(index.codes_of(s), subset, kernels) @ weighted)
        factors.append(axes * np.sqrt(np.maximum(variance, 0.0)))
        tables.append(functions @ factors[-1])
        subsets.append(s)
        orders.append(np.full(functions.shape[1], len(subset)))
    order = np.concatenate([*orders, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    start = np.concatenate([[0], np.cumsum([len(o) for o in orders])]).astype(np.int64)
    energy = np.concatenate([*(np.square(f).sum(axis=0) for f in factors), np.zeros(0)])
    total = {int(k): float(energy[order == k].sum()) for k in np.unique(order)}
    return Prior(subsets, tables, factors, start, order, total)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the rows say of one output, given its variance components.

    Attributes:
        coordinates: (columns,) posterior mean in the coordinates of the prior, scaled back to its tables.
        residual: (r,) what the fit leaves of the centred values.
        left_out: (r,) residual of every row in the fit without it.
        effective: for each order, the functions that the rows determine, counted by the trace of the hat matrix.
        variance: (cells,) posterior variance of every effect in every cell.
    """

    coordinates: FloatArray
    residual: FloatArray
    left_out: FloatArray
    effective: dict[int, float]
    variance: FloatArray


def posterior(
    index: Family, prior: Prior, rows: FloatArray, values: FloatArray, probability: FloatArray, given: Components
) -> Posterior:
    """Fit (r,) values by the columns (r, columns) of a prior on rows of probability (r,)."""
    scale = prior.scale(given)
    y = values - probability @ values
    noise = given.residual / (len(y) * probability)
    if not given.residual > 0 or not scale.any():
        return _nothing(index, prior, y, probability)
    z = rows * scale
    solve = _by_functions if z.shape[1] <= z.shape[0] else _by_rows
    mean, kept, spread = solve(z, y, noise, prior, scale)
    residual = y - z @ mean
    # What a row keeps of its own value: the part of the mean, and the part of the effects.
    left_out = residual / np.maximum(kept - probability, np.finfo(np.float64).tiny)
    effective = {k: float(spread.effective[prior.order == k].sum()) for k in prior.total}
    variance = np.zeros(index.n_cells)
    for s, own in zip(prior.subsets, spread.variance, strict=True):
        variance[index.cells_of(s)] = own
    return Posterior(mean * scale, residual, left_out, effective, variance)


@dataclass(frozen=True)
class _Spread:
    """(columns,) share of each column that the rows determine; for each subset, (c,) posterior variances."""

    effective: FloatArray
    variance: Sequence[FloatArray]


def _nothing(index: Family, prior: Prior, y: FloatArray, probability: FloatArray) -> Posterior:
    """The posterior where nothing varies, or no effect is expected."""
    none = dict.fromkeys(prior.total, 0.0)
    # A single row has nothing to be predicted from.
    left_out = np.divide(y, 1.0 - probability, out=np.zeros_like(y), where=probability < 1.0)
    return Posterior(np.zeros(len(prior.order)), y, left_out, none, np.zeros(index.n_cells))


def _by_functions(
    z: FloatArray, y: FloatArray, noise: FloatArray, prior: Prior, scale: FloatArray
) -> tuple[FloatArray, FloatArray, _Spread]:
    """Posterior mean (columns,), 1 - leverage (r,) and spread by a matrix over functions."""
    from scipy.linalg import cho_factor, cho_solve

    weighted = z / noise[:, None]
    precision = weighted.T @ z
    precision[np.diag_indices_from(precision)] += 1.0
    inverse = cho_solve(cho_factor(precision, lower=True), np.eye(len(precision)))
    kept = 1.0 - np.einsum("rq,rq->r", weighted @ inverse, z)
    own = [slice(int(a), int(b)) for a, b in zip(prior.start[:-1], prior.start[1:], strict=True)]
    tables = [table * scale[part] for table, part in zip(prior.tables, own, strict=True)]
    variance = [np.einsum("ck,ck->c", t @ inverse[part, part], t) for t, part in zip(tables, own, strict=True)]
    return inverse @ (weighted.T @ y), kept, _Spread(1.0 - np.diagonal(inverse), variance)


def _by_rows(
    z: FloatArray, y: FloatArray, noise: FloatArray, prior: Prior, scale: FloatArray
) -> tuple[FloatArray, FloatArray, _Spread]:
    """The same by a matrix over rows."""
    from scipy.linalg import cho_factor, solve_triangular

    covariance = z @ z.T
    covariance[np.diag_indices_from(covariance)] += noise
    factor, _ = cho_factor(covariance, lower=True)
    half = solve_triangular(factor, z, lower=True)
    solved = solve_triangular(factor, solve_triangular(factor, y, lower=True), lower=True, trans="T")
    inverse = solve_triangular(factor, np.eye(len(y)), lower=True)
    kept = noise * np.square(inverse).sum(axis=0)
    variance = []
    for table, a, b in zip(prior.tables, prior.start[:-1], prior.start[1:], strict=True):
        own = table * scale[a:b]
        variance.append(np.square(own).sum(axis=1) - np.square(half[:, a:b] @ own.T).sum(axis=0))
    return z.T @ solved, kept, _Spread(np.square(half).sum(axis=0), [np.maximum(v, 0.0) for v in variance])


def effects_on_cells(index: Family, prior: Prior, coordinates: FloatArray, mean: float) -> FloatArray:
    """(cells,) every effect on its cells, the mean first."""
    out = np.zeros(index.n_cells)
    out[0] = mean
    for k, s in enumerate(prior.subsets):
        out[index.cells_of(s)] = prior.tables[k] @ coordinates[prior.start[k] : prior.start[k + 1]]
    return out
