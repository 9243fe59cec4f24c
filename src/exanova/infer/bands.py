"""Quantiles, simultaneous confidence bands, Wald tests, and false discovery rates."""

from __future__ import annotations

import numpy as np

from exanova import tolerances
from exanova.typing import FloatArray

SIMULATIONS, SEED = 20_000, 20240229
"""Number of simulations for the quantile of the largest deviation, and their fixed seed."""

MOST_SIMULATED = 400
"""Cells of an effect up to which their joint distribution is simulated; above, Sidak's bound is used."""


def quantile(level: float) -> float:
    """Half-width of a two-sided interval of this level, in standard errors.

    >>> round(quantile(0.95), 3)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


def student(level: float, freedom: FloatArray) -> FloatArray:
    """The same where standard errors were estimated with these degrees of freedom, at least one.

    >>> student(0.95, np.array([0.0, 10.0, 1e9])).round(2).tolist()
    [12.71, 2.23, 1.96]
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(freedom, 1.0), 0.5 + level / 2.0))


def sidak(level: float, count: int) -> float:
    """The same for ``count`` cells simultaneously; conservative for any correlation.

    >>> round(sidak(0.95, 10), 2)
    2.8
    """
    return quantile(level ** (1.0 / max(1, count)))


def simultaneous(covariance: FloatArray, level: float) -> float:
    """The quantile of the largest |t| of normal deviates with this (c, c) covariance, by simulation."""
    sizes = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    moves = sizes > 0
    count = int(moves.sum())
    if count <= 1:
        return quantile(level)
    if count > MOST_SIMULATED:
        return sidak(level, count)
    correlation = covariance[np.ix_(moves, moves)] / np.outer(sizes[moves], sizes[moves])
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(SEED).standard_normal((SIMULATIONS, count)) @ root.T
    return float(np.quantile(np.abs(drawn).max(axis=1), level))


def wald(
    values: FloatArray, covariance: FloatArray, weight: FloatArray, table: FloatArray, units: float
) -> tuple[float, int, float]:
    """Test whether an effect with (c,) ``values`` and their (c, c) ``covariance`` is zero everywhere.

    Hotelling's form of the Wald statistic, T^2 = x^T C^+ x in the coordinates x = Phi_A^T diag(w_A) T of its functions
    ``table`` (c, k), over the k directions that vary: T^2 (n - k) / (k (n - 1)) follows F(k, n - k) for n units, or
    for a covariance with n - 1 degrees of freedom. An effect with a component in a direction of zero variance is not
    zero.

    Returns:
        the statistic T^2, its k, and the p-value (NaN if n <= k).
    """
    from scipy.special import fdtrc

    weighted = weight[:, None] * table
    x = weighted.T @ values
    if not x.any():
        return 0.0, 0, 1.0
    eigenvalues, vectors = np.linalg.eigh(weighted.T @ covariance @ weighted)
    varies = eigenvalues > tolerances.VARIES * max(float(eigenvalues[-1]), tolerances.VARIES * float(x @ x))
    along, k = vectors.T @ x, int(varies.sum())
    if np.sum(along[~varies] ** 2) > tolerances.DISTINCT**2 * (x @ x):
        return float("inf"), k, 0.0
    statistic = float(np.sum(along[varies] ** 2 / eigenvalues[varies]))
    if units <= k:
        return statistic, k, float("nan")
    return statistic, k, float(fdtrc(k, units - k, statistic * (units - k) / (k * (units - 1.0))))


def adjusted(p: FloatArray) -> FloatArray:
    """(t,) p-values adjusted for the false discovery rate (Benjamini and Hochberg); NaN values stay NaN.

    >>> adjusted(np.array([0.01, 0.04, 0.03, np.nan])).round(3).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    out[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return out
