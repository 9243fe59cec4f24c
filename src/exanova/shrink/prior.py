"""The prior of an effect: the covariance of its values in two cells.

    values of f_A on its cells ~ N(0, sigma_|A|^2 K_A),    K_A = product over i in A of K_i

K_i is the identity for nominal levels and a random walk, min(a, b), for ordered ones: neighbouring bins are expected to
have similar effects, and a finer cut changes little. Centred under the probabilities of the levels and with mean
diagonal one, so that sigma_k^2 is the variance the prior expects of order k as a whole, shared by its subsets.
"""

from __future__ import annotations

import numpy as np

from exanova import tolerances
from exanova.typing import FloatArray, IntArray, Subset


def level_kernel(probability: FloatArray, ordered: int) -> FloatArray:
    """(N, N) covariance of the values of one feature's levels: centred under (N,) probabilities, mean diagonal one.

    The first ``ordered`` levels are in order; others, such as the level of missing values, stand alone.

    >>> level_kernel(np.array([0.5, 0.5]), ordered=0).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    step = np.arange(1.0, ordered + 1.0)
    kernel = np.eye(len(probability)) * max(1.0, ordered / 2)
    kernel[:ordered, :ordered] = np.minimum.outer(step, step)
    kernel = kernel - (kernel @ probability)[:, None]
    kernel = kernel - probability @ kernel
    scale = float(probability @ np.diagonal(kernel))
    return kernel / scale if scale > 0 else kernel


def cell_kernel(cell_codes: IntArray, subset: Subset, kernels: dict[int, FloatArray]) -> FloatArray:
    """(c, c) covariance of the values of one effect on its observed cells."""
    out = np.ones((cell_codes.shape[1], cell_codes.shape[1]))
    for feature, levels in zip(subset, cell_codes, strict=True):
        out *= kernels[feature][np.ix_(levels, levels)]
    return out


def root(covariance: FloatArray) -> FloatArray:
    """(k, k) L with L L^T = covariance, which may be singular: by Cholesky where that succeeds, it is far cheaper.

    >>> root(np.array([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(covariance, lower=1, clean=1)
    smallest = tolerances.rank_of_gram(len(covariance)) * float(np.diagonal(covariance).max(initial=0.0))
    if not failed and float(np.diagonal(lower).min(initial=np.inf)) ** 2 > smallest:
        return np.asarray(lower)
    variance, axes = np.linalg.eigh(covariance)
    return np.asarray(axes * np.sqrt(np.maximum(variance, 0.0)))
