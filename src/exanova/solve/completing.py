"""Completion of a table with missing cells by functions of few features.

Let every function on the observed cells be a sum of functions of at most K features. Such a sum is determined by its
values on the low cells (:mod:`exanova.solve.low_cells`); those of the observed ones are given, those of the missing
ones, w, have to reproduce what was observed elsewhere:

    Lambda w = values - (what the observed low cells alone would give),

one equation for each observed cell that is not low, one unknown for each missing cell that is low. Lambda has small
whole numbers, most of them zero, and does not depend on the probabilities. Its rank decides whether functions of order
K suffice, and its null space has all functions of that order that vanish on the observed cells: the dependences among
the functions of a family. Both numbers are far below the number of functions and of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.solve.low_cells import LowCells, interpolation
from exanova.typing import Codes, FloatArray, IntArray

BLOCK_VALUES = 200_000
"""Entries of Lambda that are computed at once."""


@dataclass(frozen=True, eq=False)
class Completion:
    """Lambda of a table, factorised.

    Attributes:
        low: the low cells.
        observed, at_rows: numbers of the observed low cells and of their rows.
        missing: (w,) numbers of the missing low cells, first those that the others are solved for.
        high, levels: (e,) rows that are not low, and their levels counted from the reference levels.
        factor: (w, e) LU factors of Lambda transposed, its rows in the order of ``missing``.
    """

    low: LowCells
    observed: IntArray
    at_rows: IntArray
    missing: IntArray
    high: IntArray
    levels: IntArray
    factor: FloatArray

    @property
    def suffices(self) -> bool | None:
        """Whether every function on the rows is of this order; ``None`` where exact arithmetic has to decide.

        Pivots of small whole numbers are of order one or rounding.
        """
        if self.factor.shape[1] > self.factor.shape[0]:
            return False
        pivots = np.abs(np.diagonal(self.factor))
        return True if pivots.min(initial=1.0) > tolerances.WELL_CONDITIONED * pivots.max(initial=1.0) else None

    def vanishing(self, more: int = 0) -> FloatArray:
        """(low, k + more) values on the low cells of a basis of the functions that vanish on the rows.

        Each is 1 in one of the k last missing cells and 0 in the others. ``more`` columns of zeros follow.
        """
        from scipy.linalg import solve_triangular

        count = self.factor.shape[1]
        free = len(self.missing) - count
        out = np.zeros((len(self.low), free + more))
        out[self.missing[count:], np.arange(free)] = 1.0
        if count and free:
            dependent = solve_triangular(
                self.factor[:count],
                self.factor[count:].T,
                lower=True,
                trans="T",
                unit_diagonal=True,
                check_finite=False,
            )
            out[self.missing[:count], :free] = -dependent
        return out

    def completed(self, values: FloatArray) -> FloatArray:
        """(low, m) values on the low cells of a function that has the (r, m) ``values`` at the rows."""
        from scipy.linalg import solve_triangular

        out, count = np.zeros((len(self.low), values.shape[1])), self.factor.shape[1]
        out[self.observed] = values[self.at_rows]
        if count:
            wanted = values[self.high] - self.low.at(self.low.to_tables(out.copy()), self.levels)
            square = self.factor[:count]
            half = solve_triangular(square, wanted, trans="T", check_finite=False)
            out[self.missing[:count]] = solve_triangular(
                square, half, lower=True, trans="T", unit_diagonal=True, check_finite=False
            )
        return out


def completion_of(low: LowCells, codes: Codes) -> Completion:
    """Factorise Lambda for distinct rows (d, r)."""
    levels = low.shifted_rows(codes)
    number = low.numbers(levels)
    at_rows, high = np.flatnonzero(number >= 0), np.flatnonzero(number < 0)
    is_missing = np.ones(len(low), dtype=bool)
    is_missing[number[at_rows]] = False
    missing = np.flatnonzero(is_missing)
    factor, rows = _factorised(_coefficients(low, low.levels()[:, missing], levels[:, high]))
    return Completion(low, number[at_rows], at_rows, missing[rows], high, levels[:, high], factor)


def _coefficients(low: LowCells, cells: IntArray, rows: IntArray) -> FloatArray:
    """(w, e) Lambda transposed, for the levels of missing low cells and of rows, in Fortran order."""
    order, features = int(low.family.layout.order.max()), len(low.family.sizes)
    values = interpolation(order, features)
    below, above = (cells > 0).sum(axis=0), (rows > 0).sum(axis=0)
    own, out = _indicators(low, cells), np.empty((cells.shape[1], rows.shape[1]), order="F")
    step = max(1, BLOCK_VALUES // max(1, cells.shape[1]))
    for a in range(0, rows.shape[1], step):
        block = slice(a, a + step)
        in_common = own.T @ _indicators(low, rows[:, block])
        np.multiply(in_common == below[:, None], values[above[block]].T[below], out=out[:, block])
    return out


def _indicators(low: LowCells, levels: IntArray) -> FloatArray:
    """(features times levels, n) whether a feature has one of its levels other than the reference level."""
    blocks = [np.equal.outer(np.arange(1, n), own) for n, own in zip(low.family.sizes, levels, strict=True)]
    return np.vstack(blocks).astype(np.float32)


def _factorised(matrix: FloatArray) -> tuple[FloatArray, IntArray]:
    """LU factors of a matrix, which is overwritten, and the order of its rows; a wide matrix is returned as it is."""
    from scipy.linalg.lapack import dgetrf

    rows = np.arange(len(matrix))
    if matrix.shape[1] > matrix.shape[0] or not matrix.size:
        return matrix, rows
    with suitable_blas(float(matrix.size) * matrix.shape[1]):
        factor, swaps, _ = dgetrf(matrix, overwrite_a=True)
    for i, j in enumerate(swaps):
        rows[[i, j]] = rows[[j, i]]
    return factor, rows
