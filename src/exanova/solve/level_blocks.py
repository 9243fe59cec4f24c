"""Functions of pairs with one feature b, level by level of b: small factorisations of the rows at each level.

At the rows with x_b = z, the pairs (b, j) are any sum of functions of the single x_j. With Z_z the indicators of these
x_j at the rows, every column of unit length in L2(p) and without its mean at the level,

    sum over j of  (projection on functions of x_b, x_j) - (projection on functions of x_b)  =  blocks  Z_z Z_z^T,

one block for each level. The singular vectors of Z_z give the projection on all these functions, and the inverse of
delta + Z_z Z_z^T. Levels with about as many rows are handled in one stack, padded with empty rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.data.sample import Sample
from exanova.parallel import suitable_blas
from exanova.typing import FloatArray, IntArray

STACK_BYTES = 16_000_000
"""Memory of the indicators of one stack of levels."""

PADDING = 1.25
"""Rows of the largest level of a stack over those of the smallest, up to which they are padded to the same number."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Levels with about as many rows.

    Attributes:
        rows: (b, n) rows of each level; r, one past the last row, for padding.
        root: (b, n) square roots of their probabilities, 0 for padding.
        mean: (b, n) the constant at each level, of unit length.
        vectors: (b, n, k) left singular vectors of the indicators.
        squares: (b, k) squared singular values; 0 for directions that are rounding.
    """

    rows: IntArray
    root: FloatArray
    mean: FloatArray
    vectors: FloatArray
    squares: FloatArray

    def part(self, levels: slice) -> Stack:
        """Some of the levels."""
        return Stack(
            self.rows[levels], self.root[levels], self.mean[levels], self.vectors[levels], self.squares[levels]
        )

    def means(self, v: FloatArray) -> FloatArray:
        """Projection of (b, n, m) values on the constants of the levels."""
        return np.asarray(self.mean[:, :, None] * (self.mean[:, None, :] @ v))

    def spanned(self, v: FloatArray, factor: FloatArray) -> FloatArray:
        """Projection of (b, n, m) values on the other functions, each direction multiplied by a (b, k) factor."""
        inner = np.swapaxes(self.vectors, 1, 2) @ v
        return np.asarray(self.vectors @ (factor[:, :, None] * inner))


class LevelBlocks:
    """Blocks of the pairs of one feature with others.

    Args:
        sample: the rows.
        feature: the feature whose levels divide them.
        others: the features it is paired with.
        delta: what is added to every direction before inverting.
    """

    def __init__(self, sample: Sample, feature: int, others: Sequence[int], delta: float) -> None:
        self.delta = delta
        self._root = np.append(np.sqrt(sample.probability), 0.0)
        columns = sum(sample.sizes[j] for j in others)
        levels = sample.codes[feature].astype(np.int64)
        with suitable_blas(0):
            self.stacks = [
                self._stack(sample, rows, others, columns)
                for rows in _stacked_rows(levels, sample.sizes[feature], columns)
            ]

    def project(self, y: FloatArray) -> FloatArray:
        """(r, m) projection of values at the rows on all functions of the pairs."""

        def projected(stack: Stack, v: FloatArray) -> FloatArray:
            return stack.means(v) + stack.spanned(v, np.sign(stack.squares))

        return self._each(y, projected)

    def solve(self, y: FloatArray) -> FloatArray:
        """(r, m) (delta + Z Z^T)^-1 y for the part of y without its mean at each level."""

        def solved(stack: Stack, v: FloatArray) -> FloatArray:
            v = v - stack.means(v)
            factor = 1.0 / (stack.squares + self.delta) - 1.0 / self.delta
            return np.asarray(v / self.delta + stack.spanned(v, factor))

        return self._each(y, solved)

    def _each(self, y: FloatArray, change: Callable[[Stack, FloatArray], FloatArray]) -> FloatArray:
        padded = np.vstack([self._root[:-1, None] * y, np.zeros((1, y.shape[1]))])
        out = np.empty_like(padded)
        for stack in self.stacks:
            out[stack.rows] = change(stack, padded[stack.rows])
        return np.asarray(out[:-1] / self._root[:-1, None])

    def _stack(self, sample: Sample, rows: IntArray, others: Sequence[int], columns: int) -> Stack:
        root = self._root[rows]
        mean = root / np.linalg.norm(root, axis=1, keepdims=True)
        level, place = np.nonzero(rows < len(self._root) - 1)
        indicators, first = np.zeros((*rows.shape, columns)), 0
        for j in others:
            column = first + sample.codes[j][rows[level, place]].astype(np.int64)
            indicators[level, place, column] = root[level, place]
            first += sample.sizes[j]
        length = np.linalg.norm(indicators, axis=1, keepdims=True)
        indicators /= np.where(length > 0, length, 1.0)
        indicators -= mean[:, :, None] * (mean[:, None, :] @ indicators)
        u, s, _ = np.linalg.svd(indicators, full_matrices=False)
        kept = s > tolerances.rank_of_columns(*indicators.shape[1:])
        # Padding shares directions with vanishing singular values only; those are dropped.
        return Stack(rows, root, mean, u * kept[:, None, :], np.where(kept, s * s, 0.0))


def _stacked_rows(levels: IntArray, count: int, columns: int) -> Iterator[IntArray]:
    """(b, n) rows of levels with about as many of them, smallest first, padded with the number of rows."""
    sizes = np.bincount(levels, minlength=count)
    start = np.concatenate([[0], np.cumsum(sizes)])
    order, sorted_rows = np.argsort(sizes, kind="stable"), np.argsort(levels, kind="stable")
    order = order[sizes[order] > 0]
    ends = sizes[order]
    first = 0
    while first < len(order):
        fits = max(1, STACK_BYTES // (8 * columns * max(1, int(PADDING * ends[first]))))
        last = min(first + fits, int(np.searchsorted(ends, max(PADDING * ends[first], ends[first] + 1), side="right")))
        members, width = order[first:last], int(ends[last - 1])
        place = start[members][:, None] + np.arange(width)
        padding = np.arange(width) >= sizes[members][:, None]
        yield np.where(padding, len(levels), sorted_rows[np.minimum(place, len(levels) - 1)])
        first = last
