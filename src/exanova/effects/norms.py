"""Sizes of effects: norms of every subset, covariances with the model, and both divided among features."""

from __future__ import annotations

import numpy as np

from exanova.design.family import Family
from exanova.typing import FloatArray


def squared_norms(index: Family, values: FloatArray) -> FloatArray:
    """(S, m) E[f_A^2] of every subset."""
    weighted = (index.weight / index.weight[0])[:, None] * values**2
    return np.asarray(np.add.reduceat(weighted, index.cell_start[:-1], axis=0))


def absolute_norms(index: Family, values: FloatArray) -> FloatArray:
    """(S, m) E|f_A| of every subset."""
    weighted = (index.weight / index.weight[0])[:, None] * np.abs(values)
    return np.asarray(np.add.reduceat(weighted, index.cell_start[:-1], axis=0))


def covariances(index: Family, values: FloatArray, sums: FloatArray) -> FloatArray:
    """(S, m) Cov(f_A, f) from the (cells, m) expectations E[f 1{x_A = cell}]; 0 for the intercept."""
    out = np.add.reduceat(values * sums, index.cell_start[:-1], axis=0)
    mean = np.add.reduceat((index.weight / index.weight[0])[:, None] * values, index.cell_start[:-1], axis=0)
    out -= mean * sums[0]
    out[0] = 0.0
    return np.asarray(out)


def rolled_up(index: Family, by_subset: FloatArray) -> FloatArray:
    """(d, m) amounts of features: every subset's amount divided equally among its features."""
    out = np.zeros((len(index.sizes), by_subset.shape[1]))
    for s, subset in enumerate(index.subsets):
        for i in subset:
            out[i] += by_subset[s] / len(subset)
    return out
