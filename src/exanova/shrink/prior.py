"""The prior of an effect: how alike its values in two cells are expected to be.

    values of f_A on its cells ~ N(0, sigma_|A|^2 K_A),    K_A = product over i in A of K_i

K_i is the identity for nominal levels and a random walk, min(a, b), for ordered ones: neighbouring bins are expected to
have similar effects, and a finer cut changes little. Centred under the probabilities of the levels and with mean
diagonal one, so that sigma_k^2 is the variance the prior expects of order k as a whole, shared by its subsets.

For all subsets of one order at once the kernel between rows is an elementary symmetric polynomial of the kernels of
the features, entry by entry: for pairs ((sum K_i)^2 - sum K_i^2) / 2, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from exanova.typing import Codes, FloatArray, IntArray, Subset


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


def row_kernels(codes: Codes, kernels: dict[int, FloatArray], family: Sequence[Subset]) -> dict[int, FloatArray]:
    """For every order of the family, the (r, r) sum over its subsets of the product of the features' kernels."""
    by_order: dict[int, list[Subset]] = {}
    for subset in family:
        if subset:
            by_order.setdefault(len(subset), []).append(subset)
    features = sorted(kernels)
    every = [order for order, subsets in by_order.items() if len(subsets) == comb(len(features), order)]
    out = _symmetric(codes, kernels, max(every, default=0))
    for order, subsets in by_order.items():
        if order not in every:
            out[order] = np.sum([_product(codes, kernels, subset) for subset in subsets], axis=0)
    return {order: out[order] for order in sorted(by_order)}


def _symmetric(codes: Codes, kernels: dict[int, FloatArray], highest: int) -> dict[int, FloatArray]:
    """Elementary symmetric polynomials of the features' kernels, entry by entry, one feature after the other."""
    r = codes.shape[1]
    sums = [np.ones((r, r)), *(np.zeros((r, r)) for _ in range(highest))]
    for feature, kernel in kernels.items():
        own = kernel[np.ix_(codes[feature], codes[feature])]
        for order in range(highest, 0, -1):
            sums[order] += own * sums[order - 1]
    return dict(enumerate(sums))


def _product(codes: Codes, kernels: dict[int, FloatArray], subset: Subset) -> FloatArray:
    out = np.ones((codes.shape[1], codes.shape[1]))
    for feature in subset:
        out *= kernels[feature][np.ix_(codes[feature], codes[feature])]
    return out


def cell_kernel(cell_codes: IntArray, subset: Subset, kernels: dict[int, FloatArray]) -> FloatArray:
    """(c, c) covariance of the values of one effect on its observed cells."""
    out = np.ones((cell_codes.shape[1], cell_codes.shape[1]))
    for feature, levels in zip(subset, cell_codes, strict=True):
        out *= kernels[feature][np.ix_(levels, levels)]
    return out
