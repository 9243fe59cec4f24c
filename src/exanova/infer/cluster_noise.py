"""The noise that the residuals of clusters represent, corrected for the leverage of whole clusters.

The residuals of a cluster are (I - H) times its noise, H = T Gamma^-1 T^T with the functions T at its rows, each times
the root of its share of the weight. Rows of a cluster are alike, so that they determine their own fit together even
where no single row does. As estimates of noise, the residuals of a cluster are multiplied by (I - H)^(-1/2): then noise
that is independent and of the same variance in all rows is estimated without bias, whatever the clusters (the
correction that is called CR2, of Bell and McCaffrey). Directions that a cluster alone determines have no residual.

Equal rows of a cluster have the same functions: the correction moves their mean, not their deviations from it.
"""

from __future__ import annotations

import numpy as np

from exanova import tolerances
from exanova.data.draws import Draws
from exanova.data.sample import group_sums
from exanova.typing import FloatArray

MOST_WORK = 2e10
"""Multiplications up to which clusters are corrected as a whole: about a second."""


def work_of(draws: Draws, functions: int) -> float:
    """Multiplications of the correction: those of the smaller of two eigenproblems for every cluster."""
    assert draws.cluster is not None
    sizes = np.bincount(draws.cluster).astype(np.float64)
    return float((sizes * functions**2 + np.minimum(sizes, functions) ** 3).sum())


def cluster_noise(draws: Draws, functions: FloatArray, inverse: FloatArray, residuals: FloatArray) -> FloatArray:
    """(k, m) residuals of the raw rows as estimates of noise.

    Args:
        draws: the raw rows, in clusters.
        functions: (r, q) at the distinct rows.
        inverse: (q, q) of Gamma, or what stands in its place in a shrunken fit.
        residuals: (k, m) of the raw rows.
    """
    assert draws.cluster is not None
    share = np.asarray(draws.weight / float(draws.weight.sum()))
    key, entry = np.unique(draws.cluster * len(functions) + draws.group, return_inverse=True)
    cluster, row = np.divmod(key, len(functions))
    mass = np.bincount(entry, weights=share)
    means = group_sums(share[:, None] * residuals, entry, len(key)) / mass[:, None]
    root, moved = np.sqrt(mass)[:, None], np.empty_like(means)
    bounds = np.flatnonzero(np.diff(cluster, prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        own = slice(first, last)
        moved[own] = _freed(root[own] * functions[row[own]], inverse, root[own] * means[own]) / root[own]
    return residuals + (moved - means)[entry]


def _freed(functions: FloatArray, inverse: FloatArray, residuals: FloatArray) -> FloatArray:
    """(p, m) (I - T Gamma^-1 T^T)^(-1/2) times the residuals of one cluster, for its functions T (p, q)."""
    left, leverage = _directions(functions, inverse)
    free = 1.0 - leverage
    grown = np.divide(1.0, np.sqrt(np.maximum(free, 0.0)), out=np.ones_like(free), where=free > tolerances.FREE)
    return residuals + left @ ((grown - 1.0)[:, None] * (left.T @ residuals))


def _directions(functions: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions (p, d) of a cluster's rows, and the leverage of each."""
    if functions.shape[0] <= functions.shape[1]:
        leverage, left = np.linalg.eigh(_symmetric(functions @ inverse @ functions.T))
        return left, leverage
    span, triangle = np.linalg.qr(functions)
    leverage, inner = np.linalg.eigh(_symmetric(triangle @ inverse @ triangle.T))
    return span @ inner, leverage


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2.0)
