"""Pure spaces of large tables with few missing cells, from contrasts that vanish where cells are missing.

A signed measure on the complete table of A has vanishing margins if and only if it is determined by its values a on the
cells without a last level,

    m = C a,   C the Kronecker product over i in A of the contrasts 1{x_i = z} - 1{x_i = last},

and W_A, on the observed cells, has the m that are zero on every missing cell. Missing cells without a last level fix
entries of a; each other one is one equation, with coefficients 0, 1 and -1. With few missing cells there are few
equations, while the margins of the observed cells, which :mod:`exanova.basis.pure` starts from, are very many.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.typing import FloatArray, IntArray

MANY_MARGINS = 400
"""Margins of a subset, at most, up to which a dense factorisation of them is fast."""


@dataclass(frozen=True, eq=False)
class Equations:
    """What a measure has to satisfy to vanish on the missing cells.

    Attributes:
        free: (z,) observed cells without a last level, by their number among all cells of the complete table.
        matrix: (h, z) one equation for each missing cell with a last level.
    """

    free: IntArray
    matrix: FloatArray


def has_few_holes(cells: int, sizes: tuple[int, ...]) -> bool:
    """Whether the equations of the missing cells are fewer than the margins, and the margins are many.

    >>> has_few_holes(2000, (3,) * 7), has_few_holes(20, (3, 3, 3)), has_few_holes(500, (3,) * 7)
    (True, False, False)
    """
    complete, free = prod(sizes), prod(n - 1 for n in sizes)
    margins = sum(complete // n for n in sizes)
    missing = complete - cells
    return margins > MANY_MARGINS and missing > 0 and max(missing, free) < min(cells, margins)


def holed_dimension(cell_codes: IntArray, sizes: tuple[int, ...]) -> int:
    """Dimension of W_A: free values of a measure less independent equations.

    >>> holed_dimension(np.array([[0, 0, 1], [0, 1, 0]]), (2, 2))
    0
    """
    equations = equations_of(cell_codes, sizes)
    return len(equations.free) - int(_pivots(equations.matrix)[1].sum())


def holed_measures(cell_codes: IntArray, sizes: tuple[int, ...]) -> FloatArray:
    """(c, k) measures on the observed cells with vanishing margins: each is 1 on one of k cells and 0 on the others.

    The k cells are the last ones that may take any values, by the pattern alone, and the measures are ordered by them.
    """
    equations = equations_of(cell_codes, sizes)
    reduced, is_pivot = _pivots(equations.matrix)
    values = np.zeros((len(equations.free), int((~is_pivot).sum())))
    values[~is_pivot] = np.eye(values.shape[1])
    values[is_pivot] = -reduced[:, ~is_pivot]
    return _contrasts_at(cell_codes, equations.free, sizes) @ values


def equations_of(cell_codes: IntArray, sizes: tuple[int, ...]) -> Equations:
    """The equations of the missing cells of a subset."""
    observed = np.zeros(prod(sizes), dtype=bool)
    observed[np.ravel_multi_index(tuple(cell_codes), sizes)] = True
    levels = np.stack(np.unravel_index(np.arange(len(observed)), sizes))
    has_last = (levels == np.array(sizes)[:, None] - 1).any(axis=0)
    free = np.flatnonzero(observed & ~has_last)
    return Equations(free, _contrasts_at(levels[:, ~observed & has_last], free, sizes))


def _contrasts_at(codes: IntArray, free: IntArray, sizes: tuple[int, ...]) -> FloatArray:
    """(n, z) values in the cells ``codes`` of the measure that belongs to each free cell."""
    out = np.ones((codes.shape[1], len(free)))
    for own, level, n in zip(codes, np.unravel_index(free, sizes), sizes, strict=True):
        out *= np.where(own[:, None] == n - 1, -1.0, own[:, None] == level)
    return out


def _pivots(matrix: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Reduced rows (rank, z) of a matrix of small whole numbers, and which columns are pivots: the first that can be.

    Pivots are of order one or rounding.
    """
    rows = matrix.copy()
    tolerance = tolerances.rank_of_columns(*rows.shape)
    is_pivot, rank = np.zeros(rows.shape[1], dtype=bool), 0
    for column in range(rows.shape[1]):
        if rank == len(rows):
            break
        best = rank + int(np.argmax(np.abs(rows[rank:, column])))
        if abs(rows[best, column]) <= tolerance:
            continue
        rows[[rank, best]] = rows[[best, rank]]
        rows[rank] /= rows[rank, column]
        others = np.flatnonzero(rows[:, column])
        others = others[others != rank]
        rows[others] -= rows[others, column, None] * rows[rank]
        is_pivot[column] = True
        rank += 1
    return rows[:rank], is_pivot
