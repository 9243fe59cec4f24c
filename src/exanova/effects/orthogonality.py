"""How far effects are from orthogonality: their means given fewer of their features.

An effect f_A is orthogonal to every function of fewer of its features when E[f_A | x_B = b] = 0 for every B strictly
inside A and every observed cell b. Two measures of the deviation, each the largest over the family, one per output:

    conditional mean    |E[f_A | x_B = b]|        the sum of p_a f_A(a) over the cells a of A inside b, over p_B(b)
    marginal sum        |E[f_A 1{x_B = b}]|       the same sum, not divided: deviations in rare cells weigh little

Conditional means are needed only for sets B with one feature fewer than A. For a smaller set C inside B the tower
property gives E[f_A | x_C] = E[E[f_A | x_B] | x_C], an average, which is never larger than the largest of what it
averages. Marginal sums have no such law and are taken for every B, each from one with one feature more, so that the
large table of A is only read once for each of its features.

Subsets of the same sizes are stacked in one dense array, 0 where nothing was observed; a subset that fills little of
its array is summed cell by cell instead.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod

import numpy as np

from exanova.design.cells import CellIndex
from exanova.typing import FloatArray, IntArray, Subset

STACKED = 2**18
"""Numbers of a stack of dense tables, unless a single one has more: 2 MB, which the nearest caches hold."""

DENSE, FILLED = 4096, 8
"""Cells of a table that is always dense, and of a larger one for each that was observed."""


def conditional_means(index: CellIndex, values: FloatArray) -> FloatArray:
    """(m,) largest ``|E[f_A | x_B = b]|`` of (cells, m) effects, over all A, all B strictly inside A and observed b.

    >>> from exanova.design.cells import extend, intercept_index
    >>> codes, weight = np.array([[0, 1, 1]], dtype=np.uint8), np.ones(3)
    >>> index = extend(intercept_index([2], 3.0), [(0,)], codes, weight)
    >>> conditional_means(index, np.array([[5.0], [2.0], [-1.0]])).tolist()
    [0.0]
    >>> conditional_means(index, np.array([[5.0], [2.0], [0.5]])).tolist()
    [1.0]
    """
    return _largest(index, values, conditional=True)


def marginal_sums(index: CellIndex, values: FloatArray) -> FloatArray:
    """(m,) largest ``|E[f_A 1{x_B = b}]|`` of (cells, m) effects, over all A, all B strictly inside A and all b."""
    return _largest(index, values, conditional=False)


@dataclass(frozen=True)
class _Worst:
    """Keeps the largest deviation seen: (m,), of margins whose last of m + 1 columns is a probability."""

    found: FloatArray
    conditional: bool

    def see(self, margin: FloatArray) -> None:
        """Take note of a margin (.., m + 1)."""
        sums = np.abs(margin[..., :-1])
        if self.conditional:
            p = margin[..., -1:]
            np.divide(sums, p, out=sums, where=p > 0)
        np.maximum(self.found, sums.reshape(-1, len(self.found)).max(axis=0, initial=0.0), out=self.found)


def _largest(index: CellIndex, values: FloatArray, conditional: bool) -> FloatArray:
    worst = _Worst(np.zeros(values.shape[1]), conditional)
    by_sizes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for s, subset in enumerate(index.subsets):
        if not subset:
            continue
        if _is_dense(index, s):
            by_sizes[index.sizes_of(s)].append(s)
        else:
            _see_sparse(index, subset, _measure(index, values, s), len(subset), worst)
    for sizes, numbers in by_sizes.items():
        at_once = max(1, STACKED // (prod(sizes) * (values.shape[1] + 1)))
        for a in range(0, len(numbers), at_once):
            _see_dense(_stacked(index, values, sizes, numbers[a : a + at_once]), len(sizes), worst)
    return worst.found


def _is_dense(index: CellIndex, s: int) -> bool:
    return prod(index.sizes_of(s)) <= max(DENSE, FILLED * (int(index.cell_start[s + 1]) - int(index.cell_start[s])))


def _measure(index: CellIndex, values: FloatArray, s: int) -> FloatArray:
    """(c, m + 1) values of a subset times probabilities of its cells, and the probabilities."""
    p = index.probability_of(s)[:, None]
    return np.hstack([p * values[index.cells_of(s)], p])


def _stacked(index: CellIndex, values: FloatArray, sizes: tuple[int, ...], numbers: list[int]) -> FloatArray:
    """(N_1, .., N_k, b, m + 1) measures of subsets of these sizes, side by side."""
    stack = np.zeros((prod(sizes), len(numbers), values.shape[1] + 1))
    for k, s in enumerate(numbers):
        measure = _measure(index, values, s)
        if len(measure) == len(stack):
            stack[:, k] = measure
        else:
            stack[np.ravel_multi_index(tuple(index.codes_of(s)), sizes), k] = measure
    return stack.reshape(*sizes, len(numbers), -1)


def _see_dense(table: FloatArray, removable: int, worst: _Worst) -> None:
    """Look at the margins of a table, one of its first ``removable`` axes summed up, and at their margins in turn.

    What is left of a margin to sum up are the axes before the one just removed: each set of axes is met once.
    """
    for axis in range(removable):
        margin = table.sum(axis=axis)
        worst.see(margin)
        if not worst.conditional:
            _see_dense(margin, axis, worst)


def _see_sparse(index: CellIndex, subset: Subset, measure: FloatArray, removable: int, worst: _Worst) -> None:
    """The same for a measure (c, m + 1) on the observed cells of a subset, which all its parts have as well."""
    codes = dict(zip(subset, index.codes_of(index.position[subset]), strict=True))
    for place in range(removable):
        part = subset[:place] + subset[place + 1 :]
        cells = _cells_inside(index, part, codes, len(measure))
        count = index.cells_of(index.position[part])
        margin = np.empty((count.stop - count.start, measure.shape[1]))
        for o, column in enumerate(measure.T):
            margin[:, o] = np.bincount(cells, weights=column, minlength=len(margin))
        worst.see(margin)
        if not worst.conditional:
            _see_sparse(index, part, margin, place, worst)


def _cells_inside(index: CellIndex, subset: Subset, codes: dict[int, IntArray], count: int) -> IntArray:
    """(count,) cell of a member of the family that each of ``count`` combinations of levels falls in."""
    s, layout = index.position[subset], index.layout
    cell = np.zeros(count, dtype=np.int64)
    for j, feature in enumerate(subset):
        key = cell * index.sizes[feature] + codes[feature]
        start = layout.key_start[s if j + 1 == len(subset) else index.position[subset[: j + 1]]]
        cell = layout.lookup[start + key].astype(np.int64)
    return cell
