"""The shrunken fit: the posterior mean of all effects given their variances, in one linear solve.

With Z the columns at the rows, S the standard deviations of their coordinates in units of tau, D the precision of the
rows and y the centred values,

    coordinates  S z,   z = (I + S Z^T D Z S)^-1 S Z^T D y = S Z^T (D^-1 + Z S^2 Z^T)^-1 y,

by whichever of the two matrices is smaller. The matrix is only a factor here: the solution is refined with residuals
taken from the rows until the penalised normal equations S Z^T D (y - Z S z) = z hold to rounding. Every column has mean
zero given fewer of its features, so that the posterior mean of each effect is pure as it stands, and the mean of the
model is the intercept. As the penalty vanishes this becomes a least-squares fit.

The posterior covariance of z is tau^2 (I + A)^-1 = tau^2 (I - S Z^T C^-1 Z S), from the same factor (:class:`Spread`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.design.family import Family
from exanova.shrink.components import VarianceComponents
from exanova.shrink.coordinates import Prior
from exanova.typing import FloatArray, IntArray

REFINEMENTS = 8


@dataclass(frozen=True, eq=False)
class Columns:
    """Z as an operator: the columns at the rows, never written down.

    Attributes:
        synthesise: (columns, m) coordinates to (r, m) their sum at every row: Z c.
        analyse: (r, m) values to (columns, m) their sums with every column: Z^T v.
    """

    synthesise: Callable[[FloatArray], FloatArray]
    analyse: Callable[[FloatArray], FloatArray]


ReadColumns = Callable[[FloatArray, int | None], FloatArray]
"""(columns, f) numbers v, and a subset if v is zero outside its columns, to (r, f) Z S v."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The posterior covariance of z over tau^2, by the factor of one of the two matrices.

    Attributes:
        lower: (q, q) lower Cholesky factor of I + S Z^T D Z S, or (r, r) that of D^-1 + Z S^2 Z^T.
        read: ``None`` in the first case; in the second, how Z S v is read at the rows.
        noise: ``None`` in the first case; in the second, (r,) the diagonal of D^-1.
        sums: ``None`` in the first case; in the second, (r, f) numbers w at the rows to (columns, f) S Z^T w.
    """

    lower: FloatArray
    read: ReadColumns | None = None
    noise: FloatArray | None = None
    sums: Callable[[FloatArray], FloatArray] | None = None

    def variances(self, v: FloatArray, subset: int | None = None, first: int = 0) -> FloatArray:
        """(f,) v^T Cov v of each column of ``v`` (columns, f).

        Where v is zero outside one subset, naming it and its first column saves work.
        """
        squares = np.square(self._half(v, subset, first)).sum(axis=0)
        return np.asarray(squares if self.read is None else np.maximum(np.square(v).sum(axis=0) - squares, 0.0))

    def sampling(self, v: FloatArray, subset: int | None = None) -> FloatArray:
        """(f,) variances of v^T z over samples with other noise, over tau^2: what the noise alone makes of z.

        With M = (I + A)^-1 that is v^T (M - M^2) v, or h^T C^-1 D^-1 C^-1 h with h = Z S v.
        """
        from scipy.linalg import solve_triangular

        half = self._half(v, subset, 0)
        whole = solve_triangular(self.lower, half, lower=True, trans=1, check_finite=False)
        if self.noise is not None:
            return np.asarray(self.noise @ np.square(whole))
        return np.asarray(np.maximum(np.square(half).sum(axis=0) - np.square(whole).sum(axis=0), 0.0))

    def covariance(self, v: FloatArray, subset: int | None = None, first: int = 0) -> FloatArray:
        """(f, f) v^T Cov v."""
        half = self._half(v, subset, first)
        return half.T @ half if self.read is None else _products(v) - half.T @ half

    def bias(self, v: FloatArray, subset: int | None = None, own: FloatArray | None = None) -> FloatArray:
        """(f, f) v^T M^2 v: products of what shrinking takes away, as the prior expects them, over tau^2.

        It is the posterior covariance less the variance over samples. With ``own`` (columns,), the variances of z over
        tau^2 where the prior expects others than one, v^T M diag(own) M v.
        """
        from scipy.linalg import solve_triangular

        half = self._half(v, subset, 0)
        whole = solve_triangular(self.lower, half, lower=True, trans=1, check_finite=False)
        if own is not None:
            moved = whole if self.sums is None else v - self.sums(whole)
            return np.asarray((own[:, None] * moved).T @ moved)
        if self.noise is None:
            return np.asarray(whole.T @ whole)
        return np.asarray(_products(v) - half.T @ half - (self.noise[:, None] * whole).T @ whole)

    def _half(self, v: FloatArray, subset: int | None, first: int) -> FloatArray:
        from scipy.linalg import solve_triangular

        if self.read is not None:
            return np.asarray(solve_triangular(self.lower, self.read(v, subset), lower=True, check_finite=False))
        # Zeros stay zeros: the rest of the factor is enough.
        return np.asarray(solve_triangular(self.lower[first:, first:], v[first:], lower=True, check_finite=False))


def _products(v: FloatArray) -> FloatArray:
    """(f, f) v^T v, from the rows of v (columns, f) between the first and the last that are not zero: often few."""
    held = np.flatnonzero(v.any(axis=1))
    part = v[held[0] : held[-1] + 1] if len(held) else v[:0]
    return np.asarray(part.T @ part)


@dataclass(frozen=True, eq=False)
class OutputGroup:
    """The posterior of outputs with the same ratios.

    Attributes:
        outputs: (g,) their numbers.
        residual: (g,) tau^2 of each, as the variance of the residual of equal rows together.
        ratio: (S',) variance of a coordinate of each subset, in units of tau^2: the squares of S.
        spread: covariance of z over tau^2.
        effective: for each order, the functions that the rows determine.
        noise: where rows of a cluster share something, (g,) tau^2 of what they do not share, and (S',) what the prior
            variance of a coordinate of each subset is over ``ratio``, in units of that; else ``None``.
    """

    outputs: IntArray
    residual: FloatArray
    ratio: FloatArray
    spread: Spread
    effective: FloatArray
    noise: tuple[FloatArray, FloatArray] | None = None

    def bias(self, prior: Prior, v: FloatArray, subset: int | None = None) -> FloatArray:
        """(g, f, f) products of what shrinking takes from sums v^T z, as the prior expects them."""
        if self.noise is None:
            return np.asarray(self.residual[:, None, None] * self.spread.bias(v, subset))
        residual, own = self.noise
        return np.asarray(residual[:, None, None] * self.spread.bias(v, subset, own[prior.group]))


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of all outputs, given their variance components.

    Attributes:
        prior: the columns.
        parts: outputs that vary, by their ratios; an output that is constant is in none.
        components: of every output.
        count: rows, equal ones counted: tau^2 over it is the variance of the mean of the residual.
    """

    prior: Prior
    parts: tuple[OutputGroup, ...]
    components: tuple[VarianceComponents, ...]
    count: float

    @property
    def effective(self) -> tuple[float, ...]:
        """For each order, the functions that the rows determine, averaged over the outputs."""
        total = np.zeros(len(self.prior.orders))
        for part in self.parts:
            total += part.effective * len(part.outputs)
        return tuple(float(k) for k in total / max(1, len(self.components)))

    def scale(self, part: OutputGroup) -> FloatArray:
        """(columns,) S."""
        return np.sqrt(part.ratio)[self.prior.group]

    def part_of(self, output: int) -> tuple[OutputGroup, float] | None:
        """The part an output belongs to, and its tau^2; ``None`` if it is constant."""
        for part in self.parts:
            place = np.flatnonzero(part.outputs == output)
            if len(place):
                return part, float(part.residual[place[0]])
        return None

    def variances(self, family: Family, output: int, weights: FloatArray) -> FloatArray:
        """(f,) posterior variances of the sums of effects times ``weights`` (cells, f)."""
        own = self.part_of(output)
        if own is None:
            return np.zeros(weights.shape[1])
        part, residual = own
        v = self.scale(part)[:, None] * self.prior.on_columns(family, weights)
        return residual * part.spread.variances(v)

    def covariance(self, family: Family, output: int, weights: FloatArray) -> FloatArray:
        """(f, f) their posterior covariance."""
        own = self.part_of(output)
        if own is None:
            return np.zeros((weights.shape[1], weights.shape[1]))
        part, residual = own
        return residual * part.spread.covariance(self.scale(part)[:, None] * self.prior.on_columns(family, weights))

    def blocks(self, family: Family) -> list[FloatArray]:
        """For each subset, (m, c, c) posterior covariances of its cells."""
        m = len(self.components)
        out = [np.zeros((m, c, c)) for c in np.diff(family.cell_start).tolist()]
        for part in self.parts:
            scale = self.scale(part)
            for s, own, table in self.prior.groups():
                v = np.zeros((len(scale), len(table)))
                v[own] = (table * scale[own]).T
                out[s][part.outputs] = part.residual[:, None, None] * part.spread.covariance(v, s, own.start)
        return out

    def cell_variances(self, family: Family, sampling: bool = False) -> FloatArray:
        """(cells, m) posterior variance of every effect in every cell, or its variance by the noise of a sample."""
        out = np.zeros((family.n_cells, len(self.components)))
        for part in self.parts:
            scale = self.scale(part)
            for s, own, table in self.prior.groups():
                v = np.zeros((len(scale), len(table)))
                v[own] = (table * scale[own]).T
                variances = part.spread.sampling(v, s) if sampling else part.spread.variances(v, s, own.start)
                out[family.cells_of(s)][:, part.outputs] = variances[:, None] * part.residual
        return out


@dataclass(frozen=True, eq=False)
class PosteriorMean:
    """A posterior mean.

    Attributes:
        coordinates: (columns, m) S z; or (cells, m) the effects themselves.
        residual: (r, m) values less the fitted part.
        equations: largest error of the penalised normal equations, relative to their right-hand side.
        steps: solves it took.
    """

    coordinates: FloatArray
    residual: FloatArray
    equations: float
    steps: int


def solve_by_functions(
    lower: FloatArray, scale: FloatArray, columns: Columns, values: FloatArray, precision: FloatArray
) -> PosteriorMean:
    """Posterior mean from the factor (q, q) over functions; ``values`` (r, m), ``precision`` (r,) the diagonal of D."""
    from scipy.linalg import cho_solve

    target = scale[:, None] * columns.analyse(precision[:, None] * values)
    size = max(float(np.abs(target).max(initial=0.0)), np.finfo(np.float64).tiny)
    z, left, best = np.zeros_like(target), target, np.inf
    residual = values
    for step in range(REFINEMENTS):
        tried = z + cho_solve((lower, True), left, check_finite=False)
        rest = values - columns.synthesise(scale[:, None] * tried)
        left = scale[:, None] * columns.analyse(precision[:, None] * rest) - tried
        error = float(np.abs(left).max(initial=0.0)) / size
        if error >= best:
            return PosteriorMean(scale[:, None] * z, residual, best, step)
        gained = best / error if error else np.inf
        z, residual, best = tried, rest, error
        if best <= tolerances.ITERATIVE or (step and gained < 2):
            return PosteriorMean(scale[:, None] * z, residual, best, step + 1)
    return PosteriorMean(scale[:, None] * z, residual, best, REFINEMENTS)


Effects = Callable[[FloatArray], FloatArray]
"""(r, m) values v to (columns, m) S^2 Z^T v, or to that on the cells."""


def solve_by_rows(
    lower: FloatArray,
    effects: Effects,
    synthesise: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    precision: FloatArray,
) -> PosteriorMean:
    """The same from the factor (r, r) over rows; ``synthesise`` reads what ``effects`` gives at the rows."""
    from scipy.linalg import cho_solve

    alpha, left, best, solved = np.zeros_like(values), values, np.inf, None
    size = max(float(np.abs(values).max(initial=0.0)), np.finfo(np.float64).tiny)
    for step in range(REFINEMENTS):
        tried = alpha + cho_solve((lower, True), left, check_finite=False)
        coordinates = effects(tried)
        rest = values - synthesise(coordinates)
        left = rest - tried / precision[:, None]
        error = float(np.abs(left).max(initial=0.0)) / size
        if error >= best:
            break
        gained = best / error if error else np.inf
        alpha, best, solved = tried, error, PosteriorMean(coordinates, rest, error, step + 1)
        if best <= tolerances.ITERATIVE or (step and gained < 2):
            break
    assert solved is not None
    return _measured(solved, effects, values, precision)


def _measured(solved: PosteriorMean, effects: Effects, values: FloatArray, precision: FloatArray) -> PosteriorMean:
    """The same with the error of the normal equations over functions, times S once more to spare a division."""
    target = effects(precision[:, None] * values)
    met = effects(precision[:, None] * solved.residual) - solved.coordinates
    size = max(float(np.abs(target).max(initial=0.0)), np.finfo(np.float64).tiny)
    return PosteriorMean(solved.coordinates, solved.residual, float(np.abs(met).max(initial=0.0)) / size, solved.steps)
