"""Which blocks of the projector on dependences vanish, without the projector and mostly without its blocks.

Z (q x k) is an orthonormal basis of the dependences, its rows grouped by subsets. The block of A and B is Z_A Z_B^T, or
Y_A^T Y_B with Y_A = Z_A^T where a subset has few functions. Where it has many, Y_A is Z_A^T times random vectors, so
that the mean square of the smaller block is that of the block itself. Far from the limit this decides; close to it the
block is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.solve.elimination import orthonormal_columns, times_inverse, triangle_of
from exanova.typing import FloatArray, IntArray

PROBES = 4
"""Random vectors that stand for the functions of a subset where there are more."""

FEW = 256
"""Functions up to which all of them are used."""

TILE = 256
"""Columns of these vectors that are multiplied with all others at once."""

NEAR = 1e4
"""Factor between an estimate and the limit within which the estimated number is computed."""


@dataclass(frozen=True, eq=False)
class DependenceBlocks:
    """Z Z^T, or I - Z Z^T, in blocks of subsets, with Z = ``columns`` times the inverse transpose of ``triangle``.

    Attributes:
        columns: (q, k) a basis of the dependences or, orthonormal, of their orthogonal complement.
        triangle: (k, k) a lower triangle; ``None`` where the columns are orthonormal.
        complement: whether they span the complement.
        bounds: (S + 1,) number of the first function of each subset.
        probes: (k, P) all Y_A, side by side.
        starts: (S + 1,) number of the first column of each Y_A.
    """

    columns: FloatArray
    triangle: FloatArray | None
    complement: bool
    bounds: IntArray
    probes: FloatArray
    starts: IntArray

    @classmethod
    def of(cls, null: FloatArray, independent: FloatArray | None, bounds: IntArray) -> DependenceBlocks:
        """The blocks for any basis of the dependences, or an orthonormal one of their complement."""
        columns, triangle = null if independent is None else independent, None
        if independent is None:
            triangle = triangle_of(null)
            columns = null if triangle is not None else orthonormal_columns(null)
        whole = independent is not None
        if len(columns) <= FEW:
            return cls(columns, triangle, whole, bounds, times_inverse(triangle, columns.T), bounds)
        drawn = _vectors(np.diff(bounds))
        probes = [columns[a:b].T @ own for (a, b), own in zip(pairwise(bounds.tolist()), drawn, strict=True)]
        starts = np.concatenate([[0], np.cumsum([own.shape[1] for own in drawn])])
        return cls(columns, triangle, whole, bounds, times_inverse(triangle, np.hstack(probes)), starts)

    def involved(self) -> IntArray:
        """Numbers of the subsets whose own block does not vanish."""
        if self.complement:
            part = np.add.reduceat(np.einsum("ij,ij->i", self.columns, self.columns), self.bounds[:-1])
            sizes = np.diff(self.bounds) - part
            return np.flatnonzero(sizes > tolerances.DEPENDENCE**2)
        squares = np.einsum("ij,ij->j", self.probes, self.probes)
        traces = np.add.reduceat(squares, self.starts[:-1])
        close = np.flatnonzero(_is_close(traces))
        for some in self._bands(close):
            rows, first = self._rows(close[some])
            traces[close[some]] = np.add.reduceat(np.einsum("ij,ij->j", rows, rows), first)
        return np.flatnonzero(traces > tolerances.DEPENDENCE**2)

    def shared(self, subsets: IntArray) -> Iterator[IntArray]:
        """For each of some subsets, those of them whose block with it does not vanish, except itself."""
        if not len(subsets):
            return
        widths = np.diff(self.starts)[subsets]
        columns = np.repeat(self.starts[subsets] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        probes, starts = np.ascontiguousarray(self.probes[:, columns]), np.cumsum(widths) - widths
        for some in _consecutive(widths):
            tile = slice(int(starts[some[0]]), int(starts[some[-1]] + widths[some[-1]]))
            with suitable_blas(float(probes.size) * (tile.stop - tile.start)):
                squares = np.square(probes[:, tile].T @ probes)
            sums = np.add.reduceat(np.add.reduceat(squares, starts, axis=1), starts[some] - tile.start, axis=0)
            self._make_exact(sums, subsets[some], subsets)
            sharing = sums > tolerances.DEPENDENCE**2
            sharing[np.arange(len(some)), some] = False
            yield from (subsets[own] for own in sharing)

    def _make_exact(self, sums: FloatArray, own: IntArray, others: IntArray) -> None:
        """Compute what is estimated close to the limit among the squares of blocks (own x others), in place."""
        close = _is_close(sums)
        rows, columns = np.flatnonzero(close.any(axis=1)), np.flatnonzero(close.any(axis=0))
        if not len(rows):
            return
        left, first = self._rows(own[rows])
        for some in self._bands(others[columns]):
            right, starts = self._rows(others[columns[some]])
            with suitable_blas(float(right.size) * left.shape[1]):
                squares = np.square(left.T @ right)
            exact = np.add.reduceat(np.add.reduceat(squares, starts, axis=1), first, axis=0)
            sums[np.ix_(rows, columns[some])] = exact

    def _bands(self, subsets: IntArray) -> list[IntArray]:
        """Places of some subsets, in bands of few functions."""
        return _consecutive(np.diff(self.bounds)[subsets]) if len(subsets) else []

    def _rows(self, subsets: IntArray) -> tuple[FloatArray, IntArray]:
        """(k, n) rows of Z of some subsets, transposed and side by side, and (s,) where each subset begins."""
        sizes = np.diff(self.bounds)[subsets]
        starts = np.cumsum(sizes) - sizes
        functions = np.repeat(self.bounds[:-1][subsets] - starts, sizes) + np.arange(sizes.sum())
        return times_inverse(self.triangle, self.columns[functions].T), starts


def _consecutive(widths: IntArray) -> list[IntArray]:
    """Numbers of subsets in runs of about ``TILE`` columns, for subsets of that many columns."""
    numbers, ends = np.arange(len(widths)), np.cumsum(widths)
    if ends[-1] <= TILE:
        return [numbers]
    return np.split(numbers, np.flatnonzero(np.diff((ends - widths) // TILE)) + 1)


def _is_close(estimates: FloatArray) -> NDArray[np.bool_]:
    """Whether estimated squares are so close to the limit that they have to be computed."""
    limit = tolerances.DEPENDENCE**2
    return np.asarray((estimates > limit / NEAR) & (estimates < limit * NEAR))


def _vectors(sizes: IntArray) -> list[FloatArray]:
    """For each subset, its unit vectors or, of many functions, random vectors in their place."""
    rng = np.random.default_rng(0)
    return [np.eye(n) if n <= PROBES else rng.normal(size=(n, PROBES)) / math.sqrt(PROBES) for n in sizes.tolist()]
