"""Variance components by marginal likelihood: how much of the model is main effects, pairs, and neither.

With B_k the kernel of order k between rows (mean diagonal one), y the centred values of one output and the residual
of a row of probability p_g having variance tau^2 / (r p_g),

    y ~ N(0, tau^2 (D^-1 + sum over k of lambda_k B_k)),     D = r diag(p),   lambda_k = sigma_k^2 / tau^2.

tau^2 is known in closed form given the lambda; a quasi-Newton search over their logarithms maximises the rest, with
exact gradients. One Cholesky factorisation and one inverse for each step: rows beyond some hundreds are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.typing import FloatArray

LARGEST_RATIO = 16.0
"""Logarithm of the largest and of one over the smallest ratio lambda that is looked at."""

STEPS = 60


@dataclass(frozen=True)
class Components:
    """Variances chosen by likelihood, for one output in its normalised unit.

    Attributes:
        orders: sizes of the subsets, from 1 on.
        variance: sigma_k^2 of each order: the variance the prior expects of all its effects together.
        residual: tau^2.
        converged: whether the likelihood was maximised.
        rows: distinct rows it was maximised on.
    """

    orders: tuple[int, ...]
    variance: tuple[float, ...]
    residual: float
    converged: bool
    rows: int

    def of_order(self, order: int) -> float:
        """sigma_k^2 of one order; 0 for an order that was not looked at."""
        return dict(zip(self.orders, self.variance, strict=True)).get(order, 0.0)


def choose_components(values: FloatArray, probability: FloatArray, kernels: dict[int, FloatArray]) -> Components:
    """Maximise the likelihood of (r,) values on rows of probability (r,), given (r, r) kernels of each order."""
    from scipy.optimize import minimize

    p = probability / probability.sum()
    y = values - p @ values
    orders = tuple(sorted(kernels))
    if not orders or not y.any():
        return Components(orders, (0.0,) * len(orders), 0.0, True, len(y))
    scaled = [kernels[order] / (p @ np.diagonal(kernels[order])) for order in orders]
    noise = 1.0 / (len(p) * p)
    found = minimize(
        _loss,
        np.zeros(len(orders)),
        args=(y, noise, scaled),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LARGEST_RATIO, LARGEST_RATIO)] * len(orders),
        options={"maxiter": STEPS},
    )
    residual = _residual_variance(found.x, y, noise, scaled)
    variance = tuple(float(residual * np.exp(x)) for x in found.x)
    return Components(orders, variance, residual, bool(found.success), len(y))


def _covariance(logs: FloatArray, noise: FloatArray, kernels: list[FloatArray]) -> FloatArray:
    out = np.diag(noise)
    for log, kernel in zip(logs, kernels, strict=True):
        out += np.exp(log) * kernel
    return out


def _residual_variance(logs: FloatArray, y: FloatArray, noise: FloatArray, kernels: list[FloatArray]) -> float:
    from scipy.linalg import cho_factor, cho_solve

    solved = cho_solve(cho_factor(_covariance(logs, noise, kernels), lower=True), y)
    return float(y @ solved) / max(1, len(y) - 1)


def _loss(logs: FloatArray, y: FloatArray, noise: FloatArray, kernels: list[FloatArray]) -> tuple[float, FloatArray]:
    """Minus the logarithm of the likelihood, tau^2 put in, and its gradient by the logarithms of the ratios."""
    from scipy.linalg import cho_factor
    from scipy.linalg.lapack import dpotri

    factor, _ = cho_factor(_covariance(logs, noise, kernels), lower=True, check_finite=False)
    logdet = 2.0 * float(np.log(np.diagonal(factor)).sum())
    inverse = dpotri(factor, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    solved = inverse @ y
    count = max(1, len(y) - 1)
    residual = float(y @ solved) / count
    gradient = [
        0.5 * np.exp(log) * (float(np.vdot(inverse, kernel)) - float(solved @ kernel @ solved) / residual)
        for log, kernel in zip(logs, kernels, strict=True)
    ]
    return 0.5 * (count * np.log(residual) + logdet), np.array(gradient)
