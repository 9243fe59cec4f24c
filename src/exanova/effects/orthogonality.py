"""Deviation of effects from orthogonality: their conditional means given fewer of their features.

An effect f_A is orthogonal to every function of fewer of its features if E[f_A | x_B = b] = 0 for every proper subset B
of A and every observed cell b. The deviation is the largest of these conditional means over the family, one per
output: the sum of p_a f_A(a) over the cells a of A inside b, over p_B(b).

Only subsets B with one feature fewer than A need to be checked. For a smaller set C inside B the tower property gives
E[f_A | x_C] = E[E[f_A | x_B] | x_C], an average, which cannot exceed the largest of the averaged values.

Subsets of the same sizes are stacked in one dense array, 0 in unobserved cells; a subset with few observed cells is
summed cell by cell instead.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

import numpy as np

from exanova.design.family import Family
from exanova.typing import FloatArray, IntArray, Subset

STACKED = 2**18
"""Numbers in a stack of dense tables (more only for a single table): 2 MB, which fit in the nearest caches."""

DENSE, FILLED = 4096, 8
"""A table is dense if it has at most DENSE cells, or at most FILLED cells for each observed one."""


def conditional_means(family: Family, values: FloatArray) -> FloatArray:
    """(m,) largest ``|E[f_A | x_B = b]|`` of (cells, m) effects, over all A, all B strictly inside A and observed b.

    >>> from exanova.design.family import extend, intercept_family
    >>> codes, weight = np.array([[0, 1, 1]], dtype=np.uint8), np.ones(3)
    >>> family = extend(intercept_family([2], 3.0), [(0,)], codes, weight)
    >>> conditional_means(family, np.array([[5.0], [2.0], [-1.0]])).tolist()
    [0.0]
    >>> conditional_means(family, np.array([[5.0], [2.0], [0.5]])).tolist()
    [1.0]
    """
    worst = np.zeros(values.shape[1])
    by_sizes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for s, subset in enumerate(family.subsets):
        sizes = family.sizes_of(s)
        if subset and _is_dense(family, s, prod(sizes)):
            by_sizes[sizes].append(s)
        elif subset:
            worst = np.maximum(worst, _sparse_means(family, subset, _measure(family, values, s)))
    for sizes, numbers in by_sizes.items():
        at_once = max(1, STACKED // (prod(sizes) * (values.shape[1] + 1)))
        for a in range(0, len(numbers), at_once):
            stack = _stacked(family, values, sizes, numbers[a : a + at_once])
            worst = np.maximum(worst, [_largest_mean(stack.sum(axis=axis)) for axis in range(len(sizes))]).max(axis=0)
    return np.asarray(worst)


def _largest_mean(margin: FloatArray) -> FloatArray:
    """(m,) largest conditional mean of a margin (.., m + 1) whose last column is the probability."""
    sums, p = np.abs(margin[..., :-1]), margin[..., -1:]
    np.divide(sums, p, out=sums, where=p > 0)
    return np.asarray(sums.reshape(-1, sums.shape[-1]).max(axis=0, initial=0.0))


def _is_dense(family: Family, s: int, complete: int) -> bool:
    """Whether a table of all ``complete`` combinations of levels is small, or mostly filled."""
    return complete <= DENSE or complete <= FILLED * int(family.cell_start[s + 1] - family.cell_start[s])


def _measure(family: Family, values: FloatArray, s: int) -> FloatArray:
    """(c, m + 1) values of a subset times probabilities of its cells, and the probabilities."""
    p = family.probability_of(s)[:, None]
    return np.hstack([p * values[family.cells_of(s)], p])


def _stacked(family: Family, values: FloatArray, sizes: tuple[int, ...], numbers: list[int]) -> FloatArray:
    """(N_1, .., N_k, b, m + 1) measures of subsets of these sizes, side by side."""
    complete, chosen = prod(sizes), np.array(numbers)
    stack = np.zeros((complete, len(numbers), values.shape[1] + 1))
    # Small tables without holes are read together; for a large one that would take too much memory.
    whole = (np.diff(family.cell_start)[chosen] == complete) & (complete <= DENSE)
    cells = family.cell_start[chosen[whole]] + np.arange(complete)[:, None]
    p = (family.weight[cells] / family.weight[0])[..., None]
    stack[:, whole] = np.concatenate([p * values[cells], p], axis=-1)
    for k in np.flatnonzero(~whole):
        s = numbers[k]
        stack[np.ravel_multi_index(tuple(family.codes_of(s)), sizes), k] = _measure(family, values, s)
    return stack.reshape(*sizes, len(numbers), -1)


def _sparse_means(family: Family, subset: Subset, measure: FloatArray) -> FloatArray:
    """(m,) largest conditional mean of a measure (c, m + 1) on the observed cells of a subset."""
    codes = dict(zip(subset, family.codes_of(family.position[subset]), strict=True))
    worst = np.zeros(measure.shape[1] - 1)
    for place in range(len(subset)):
        part = subset[:place] + subset[place + 1 :]
        cells = _cells_inside(family, part, codes, len(measure))
        margin = np.stack([np.bincount(cells, column) for column in measure.T], axis=1).astype(np.float64)
        worst = np.maximum(worst, _largest_mean(margin))
    return worst


def _cells_inside(family: Family, subset: Subset, codes: dict[int, IntArray], count: int) -> IntArray:
    """(count,) cell of a member of the family that each of ``count`` combinations of levels falls in."""
    s, layout = family.position[subset], family.layout
    cell = np.zeros(count, dtype=np.int64)
    for j, feature in enumerate(subset):
        key = cell * family.sizes[feature] + codes[feature]
        start = layout.key_start[s if j + 1 == len(subset) else family.position[subset[: j + 1]]]
        cell = layout.lookup[start + key].astype(np.int64)
    return cell
