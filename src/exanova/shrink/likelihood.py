"""The marginal likelihood of the variance components, its gradient and its curvature, in two spaces that agree.

Z holds the columns of all orders at the rows, y the centred values, D = diag(d) the precision of the rows:

    y ~ N(0, tau^2 C),     C = D^-1 + sum over k of lambda_k Z_k Z_k^T / total_k,     lambda_k = sigma_k^2 / tau^2.

tau^2 is known in closed form given the lambda. With S the standard deviations of the coordinates and z their posterior
mean, everything the search needs comes from one Cholesky factor:

    by functions  (I + A) z = S Z^T D y,  A = S Z^T D Z S:  log|C| = log|I + A| + const,  columns determined by the rows
                  = diagonal of A (I + A)^-1; no more of the rows is needed than Z^T D Z, Z^T D y and y^T D y
    by rows       u = C^-1 y,  z = S Z^T u:  the same from matrices over the rows, where these are fewer

    gradient by log lambda_k:   (effective_k - |z_k|^2 / tau^2) / 2, summed over the outputs.

Outputs that share their lambda share the factor. Rows count as often as they were drawn: d is the number of equal rows
behind a distinct one, n their total, and the squares within them are part of the residual. A residual that is a
function of the inputs is the same in equal rows, but which rows are drawn is random all the same, and with it the part
of the residual that effects pick up: drawing the same rows again brings the effects nearer to those of the population.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from exanova.errors import ExanovaError
from exanova.messages import Parameter
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The likelihood at one set of ratios.

    Attributes:
        logs: (K,) logarithms of the lambda.
        loss: minus the logarithm of the likelihood, tau^2 put in, summed over the outputs.
        gradient: (K,) of the loss by the logarithms.
        information: (K, K) average information: a positive estimate of the curvature.
        residual: (m,) tau^2.
        effective: (K,) functions of every order that the rows determine.
    """

    logs: FloatArray
    loss: float
    gradient: FloatArray
    information: FloatArray
    residual: FloatArray
    effective: FloatArray


class Likelihood(Protocol):
    """A likelihood of K ratios, given values of m outputs on some rows."""

    @property
    def count(self) -> float:
        """Rows it is a likelihood of, equal ones counted."""

    @property
    def components(self) -> int:
        """K."""

    def at(self, logs: FloatArray) -> Evaluation:
        """Evaluate at the logarithms (K,) of the ratios."""


@dataclass(frozen=True, eq=False)
class ByFunctions:
    """The likelihood from sums over the rows.

    Attributes:
        gram: (q, q) Z^T D Z.
        projections: (q, m) Z^T D y.
        squares: (m,) y^T D y.
        group: (q,) component of each column.
        total: (K,) sum of the prior energy of each component.
        count: n, the trace of D.
        within: (m,) sums of squares within equal rows, in units of the rows' precision.
        probes: (q, P) random signs that estimate the trace of each component of the inverse, where the inverse would
            cost as much as the factor; ``None`` to compute it.
    """

    gram: FloatArray
    projections: FloatArray
    squares: FloatArray
    group: IntArray
    total: FloatArray
    count: float
    within: FloatArray | float = 0.0
    probes: FloatArray | None = None
    _last: dict[bytes, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def components(self) -> int:
        """K."""
        return len(self.total)

    def scale(self, logs: FloatArray) -> FloatArray:
        """(q,) S."""
        return np.asarray(np.sqrt(np.exp(logs) / self.total)[self.group])

    def factor(self, logs: FloatArray) -> FloatArray:
        """(q, q) lower Cholesky factor of I + A; the last one is kept, for the search ends where it is needed."""
        known = self._last.get(logs.tobytes())
        if known is None:
            self._last.clear()
            known = self._last[logs.tobytes()] = self._factor(logs)
        return known

    def _factor(self, logs: FloatArray) -> FloatArray:
        scale = self.scale(logs)
        precision = np.asfortranarray(self.gram * scale)
        precision *= scale[:, None]
        precision[np.diag_indices_from(precision)] += 1.0
        return cholesky(precision)

    def at(self, logs: FloatArray) -> Evaluation:
        """Evaluate at the logarithms (K,) of the ratios."""
        from scipy.linalg import cho_solve, solve_triangular

        scale, lower = self.scale(logs), self.factor(logs)
        logdet = 2.0 * float(np.log(np.diagonal(lower)).sum())
        target = scale[:, None] * self.projections
        z = cho_solve((lower, True), target, check_finite=False)
        quadratic = self.squares - np.einsum("qm,qm->m", z, target) + self.within
        # u^T V_k C^-1 V_l u = z_k^T (I - (I + A)^-1)_kl z_l
        halves = [_apart(column, self.group, self.components) for column in z.T]
        solved = [solve_triangular(lower, half, lower=True, check_finite=False) for half in halves]
        crossed = [half.T @ half - other.T @ other for half, other in zip(halves, solved, strict=True)]
        effective = self.determined(lower, self.probes)
        lengths = np.stack([_by_group(column**2, self.group, self.components) for column in z.T], axis=1)
        return evaluation(logs, logdet, quadratic, effective, lengths, crossed, self.count, self.squares)

    def determined(self, lower: FloatArray, probes: FloatArray | None = None) -> FloatArray:
        """(K,) columns of every component that the rows determine, given the factor of I + A: exact without probes."""
        from scipy.linalg import cho_solve
        from scipy.linalg.lapack import dtrtri

        if probes is None:
            inverse, _ = dtrtri(lower, lower=1)
            undetermined = np.einsum("ij,ij->j", inverse, inverse)
        else:
            undetermined = (probes * cho_solve((lower, True), probes, check_finite=False)).mean(axis=1)
        return _by_group(1.0 - undetermined, self.group, self.components)


@dataclass(frozen=True, eq=False)
class ByRows:
    """The likelihood from matrices over the rows.

    Attributes:
        kernels: for each component, (r, r) Z_k Z_k^T / total_k.
        values: (r, m) centred values.
        noise: (r,) diagonal of D^-1.
        within: (m,) sums of squares within equal rows.
        shared: (r, r) what rows of a cluster share, over tau^2 (:mod:`exanova.shrink.clusters`), or 0.
    """

    kernels: list[FloatArray]
    values: FloatArray
    noise: FloatArray
    within: FloatArray | float = 0.0
    shared: FloatArray | float = 0.0

    @property
    def count(self) -> float:
        """n, the trace of D."""
        return float((1.0 / self.noise).sum())

    @property
    def components(self) -> int:
        """K."""
        return len(self.kernels)

    def factor(self, logs: FloatArray) -> FloatArray:
        """(r, r) lower Cholesky factor of C."""
        covariance = np.zeros((len(self.noise), len(self.noise)), order="F")
        for ratio, kernel in zip(np.exp(logs), self.kernels, strict=True):
            covariance += ratio * kernel.T
        covariance[np.diag_indices_from(covariance)] += self.noise
        covariance += self.shared
        return cholesky(covariance)

    def at(self, logs: FloatArray) -> Evaluation:
        """Evaluate at the logarithms (K,) of the ratios."""
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dpotri

        lower = self.factor(logs)
        u, logdet, quadratic, squares = solved_at_rows(lower, self.values, self.noise, self.within)
        moved = [ratio * (kernel @ u) for ratio, kernel in zip(np.exp(logs), self.kernels, strict=True)]
        halves = [solve_triangular(lower, v, lower=True, check_finite=False) for v in moved]
        stacked = np.stack(halves, axis=1)
        crossed = [stacked[:, :, o].T @ stacked[:, :, o] for o in range(self.values.shape[1])]
        inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        effective = np.exp(logs) * np.array([float(np.vdot(inverse, kernel)) for kernel in self.kernels])
        lengths = np.array([(u * v).sum(axis=0) for v in moved])
        return evaluation(logs, logdet, quadratic, effective, lengths, crossed, self.count, squares)


def solved_at_rows(
    lower: FloatArray, values: FloatArray, noise: FloatArray, within: FloatArray | float
) -> tuple[FloatArray, float, FloatArray, FloatArray]:
    """What every likelihood over the rows needs, from the factor of C.

    Args:
        lower: (r, r) lower Cholesky factor of C.
        values: (r, m) centred values y.
        noise: (r,) diagonal of D^-1.
        within: (m,) sums of squares within equal rows.

    Returns:
        (r, m) C^-1 y; the logarithm of det C det D; (m,) y^T C^-1 y + within; (m,) y^T D y.
    """
    from scipy.linalg import cho_solve

    logdet = 2.0 * float(np.log(np.diagonal(lower)).sum()) - float(np.log(noise).sum())
    u = np.asarray(cho_solve((lower, True), values, check_finite=False))
    return u, logdet, (values * u).sum(axis=0) + within, (values**2 / noise[:, None]).sum(axis=0)


def _by_group(numbers: FloatArray, group: IntArray, count: int) -> FloatArray:
    """(K,) sums over the columns of each component."""
    return np.bincount(group, numbers, count).astype(np.float64)


def _apart(column: FloatArray, group: IntArray, count: int) -> FloatArray:
    """(q, K) the entries of a (q,) vector, those of each component in a column of their own."""
    out = np.zeros((len(column), count), order="F")
    out[np.arange(len(column)), group] = column
    return out


def cholesky(matrix: FloatArray) -> FloatArray:
    """Lower factor of a positive matrix in Fortran order, which is overwritten; only its lower triangle is read."""
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if failed:  # bounds of the ratios keep the matrix positive by a wide margin
        raise ExanovaError(
            "the covariance of the effects could not be factorised", remedy=["fit with ", Parameter("shrinkage", None)]
        )
    return np.asarray(lower)


def evaluation(
    logs: FloatArray,
    logdet: float,
    quadratic: FloatArray,
    effective: FloatArray,
    lengths: FloatArray,
    crossed: list[FloatArray],
    count: float,
    squares: FloatArray,
) -> Evaluation:
    """Put together y^T C^-1 y with what varies within (m,), |z_k|^2 (K, m) and ``crossed``, (K, K) for each output."""
    free = max(1.0, count - 1.0)
    # What rounding leaves of y^T C^-1 y where the columns express y.
    quadratic = np.maximum(quadratic, np.finfo(np.float64).eps * squares)
    residual = quadratic / free
    ratio = lengths / residual
    information = np.sum([one / tau for one, tau in zip(crossed, residual, strict=True)], axis=0)
    information = 0.5 * (information - ratio @ ratio.T / free)
    m = len(quadratic)
    return Evaluation(
        logs=logs,
        loss=0.5 * float(free * np.log(residual).sum() + m * logdet),
        gradient=0.5 * (m * effective - ratio.sum(axis=1)),
        information=information,
        residual=residual,
        effective=effective,
    )
