"""Sizes of effects: norms of every subset, covariances with the model, and both divided among features."""

from __future__ import annotations

import numpy as np

from exanova import tolerances
from exanova.design.family import Family
from exanova.typing import FloatArray, IntArray


def strongest_first(sizes: FloatArray) -> IntArray:
    """(k,) the order of sizes from the largest; those that are equal but for rounding keep their own order.

    >>> strongest_first(np.array([0.1, 0.3, 0.1 + 0.2])).tolist()
    [1, 2, 0]
    """
    step = tolerances.STRONGEST * float(np.abs(sizes).max(initial=0.0))
    return np.argsort(-(np.round(sizes / step) if step > 0 else sizes), kind="stable")


def squared_norms(family: Family, values: FloatArray) -> FloatArray:
    """(S, m) E[f_A^2] of every subset."""
    weighted = (family.weight / family.weight[0])[:, None] * values**2
    return np.asarray(np.add.reduceat(weighted, family.cell_start[:-1], axis=0))


def shown_norms(family: Family, values: FloatArray) -> FloatArray:
    """(S, m) E[f_A^2] of every subset as it is printed: 0 where it is the rounding of the model's values."""
    norms = squared_norms(family, values)
    rounded = tolerances.unchanged(np.sqrt(norms[1:].sum(axis=0)), np.sqrt(norms[0]))
    return np.asarray(np.where(norms <= rounded**2, 0.0, norms))


def absolute_norms(family: Family, values: FloatArray) -> FloatArray:
    """(S, m) E|f_A| of every subset."""
    weighted = (family.weight / family.weight[0])[:, None] * np.abs(values)
    return np.asarray(np.add.reduceat(weighted, family.cell_start[:-1], axis=0))


def covariances(family: Family, values: FloatArray, sums: FloatArray) -> FloatArray:
    """(S, m) Cov(f_A, f) from the (cells, m) expectations E[f 1{x_A = cell}]; 0 for the intercept."""
    out = np.add.reduceat(values * sums, family.cell_start[:-1], axis=0)
    mean = np.add.reduceat((family.weight / family.weight[0])[:, None] * values, family.cell_start[:-1], axis=0)
    out -= mean * sums[0]
    out[0] = 0.0
    return np.asarray(out)


def rolled_up(family: Family, by_subset: FloatArray) -> FloatArray:
    """(d, m) amounts of features: every subset's amount divided equally among its features."""
    out = np.zeros((len(family.sizes), by_subset.shape[1]))
    for s, subset in enumerate(family.subsets):
        for i in subset:
            out[i] += by_subset[s] / len(subset)
    return out
