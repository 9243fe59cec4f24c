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


FEWEST_FREE = 3.0
"""Degrees of freedom below which the noise along a direction is not known well enough to test anything against it."""


def wald(
    values: FloatArray,
    covariance: FloatArray,
    weight: FloatArray,
    table: FloatArray,
    units: float,
    freedom: FloatArray | None = None,
) -> tuple[float, int, float]:
    """Test whether an effect with (c,) ``values`` and their (c, c) ``covariance`` is zero everywhere.

    Hotelling's form of the Wald statistic, T^2 = x^T C^+ x in the coordinates x = Phi_A^T diag(w_A) T of its functions
    ``table`` (c, k), over the k directions that vary: T^2 (n - k) / (k (n - 1)) follows F(k, n - k) for n units, or
    for a covariance with n - 1 degrees of freedom. An effect with a component in a direction of zero variance is not
    zero.

    Residuals tell little about the noise in cells of few rows. With the degrees of freedom (c,) of the noise in every
    cell, directions that live in cells of fewer than three are left out, and n - 1 is at most that of the covariance of
    the others (:func:`known_directions`, :func:`wishart_freedom`).

    Returns:
        the statistic T^2, its k, and the p-value (NaN if n <= k).
    """
    from scipy.special import fdtrc

    if not (table.T @ (weight * values)).any():
        return 0.0, 0, 1.0
    table = table if freedom is None else table @ known_directions(weight, table, freedom)
    weighted = weight[:, None] * table
    x = weighted.T @ values
    if not len(x):
        return 0.0, 0, float("nan")
    eigenvalues, vectors = np.linalg.eigh(weighted.T @ covariance @ weighted)
    varies = eigenvalues > tolerances.VARIES * max(float(eigenvalues[-1]), tolerances.VARIES * float(x @ x))
    along, k = vectors.T @ x, int(varies.sum())
    if np.sum(along[~varies] ** 2) > tolerances.DISTINCT**2 * (x @ x):
        return float("inf"), k, 0.0
    statistic = float(np.sum(along[varies] ** 2 / eigenvalues[varies]))
    if freedom is not None:
        units = min(units, wishart_freedom(weight, table @ vectors[:, varies], freedom) + 1.0)
    if units <= k:
        return statistic, k, float("nan")
    return statistic, k, float(fdtrc(k, units - k, statistic * (units - k) / (k * (units - 1.0))))


def known_directions(weight: FloatArray, table: FloatArray, freedom: FloatArray) -> FloatArray:
    """(k, k') orthonormal directions of the functions ``table`` (c, k) along which the noise is known.

    A direction with the values v on cells of weight w has the degrees of freedom 1 / sum of w v^2 / freedom: those of a
    rare cell if it lives there. Which they are does not depend on the outputs.

    >>> weight, freedom = np.array([0.495, 0.495, 0.01]), np.array([99.0, 99.0, 1.0])
    >>> table = np.array([[1.0, 0.1], [-1.0, 0.1], [0.0, -9.9]]) / np.sqrt([0.99, 0.99])
    >>> known_directions(weight, table, freedom).round(6).__abs__().tolist()
    [[1.0], [0.0]]
    """
    root = np.sqrt(weight)[:, None] * table
    inverse, directions = np.linalg.eigh(root.T @ (root / freedom[:, None]))
    return np.asarray(directions[:, inverse * FEWEST_FREE <= 1.0])


def wishart_freedom(weight: FloatArray, table: FloatArray, freedom: FloatArray) -> float:
    """Degrees of freedom of a Wishart matrix whose entries vary as much as those of an estimated covariance.

    In coordinates in which the covariance of k functions is the identity, the noise of a cell has the part
    L = w |f|^2 of its trace, known from ``freedom`` (c,) squares: the variances of all its entries add up to
    2 sum of L^2 / freedom, where those of a Wishart matrix add up to k (k + 1) / its degrees of freedom
    (Pustejovsky and Tipton 2018).

    >>> wishart_freedom(np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]), np.array([100.0, 100.0]))
    200.0
    """
    k = table.shape[1]
    part = weight * np.square(table).sum(axis=1)
    return float(k * (k + 1.0) / (2.0 * np.sum(part**2 / freedom))) if k else 0.0


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
