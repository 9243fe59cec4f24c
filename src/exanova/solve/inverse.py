"""Inverses from triangular factors, also of Gram matrices that are singular."""

from __future__ import annotations

import numpy as np

from exanova.solve.elimination import Factor
from exanova.typing import FloatArray

TILE = 256
"""Rows of a triangle that are mirrored at once, so that both sides stay in the caches."""


def inverse_of_kept(factor: Factor) -> FloatArray:
    """(q, q) the inverse of Gamma at the functions that raised the rank, and zero at all others.

    A generalised inverse: v^T (..) w is the same for all of them, for any v and w in the range of Gamma.
    """
    kept = [part.pivots[: part.rank] + part.columns.start for part in factor.orders]
    ends = np.cumsum([len(own) for own in kept])
    size, every = factor.orders[-1].columns.stop, np.concatenate(kept)
    lower = np.zeros((len(every), len(every)), order="F")
    for part, right, end in zip(factor.orders, factor.right, ends.tolist(), strict=True):
        own = slice(end - part.rank, end)
        lower[own, own] = np.tril(part.lower[: part.rank])
        lower[end:, own] = right[:, every[end:] - part.columns.stop].T
    out = np.zeros((size, size), order="F")
    out[np.ix_(every, every)] = inverse_from_factor(lower)
    return out


def inverse_from_factor(lower: FloatArray) -> FloatArray:
    """(q, q), Fortran order, the inverse of L L^T; ``lower`` (zero above its diagonal) may be overwritten.

    >>> inverse_from_factor(np.array([[2.0, 0.0], [0.0, 1.0]], order="F")).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    from scipy.linalg.lapack import dpotri

    inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
    for a in range(0, len(inverse), TILE):
        b = min(len(inverse), a + TILE)
        inverse[a:b, b:] = inverse[b:, a:b].T
        inverse[a:b, a:b] += np.tril(inverse[a:b, a:b], -1).T
    return np.asarray(inverse)
