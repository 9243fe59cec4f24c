"""What a shrunken fit holds at its peak, in bytes, and which of its two matrices is the smaller.

The constants count arrays that stand side by side in :mod:`exanova.shrink.likelihood` and
:mod:`exanova.shrink.posterior`, as those of :mod:`exanova.solve.price` do.
"""

from __future__ import annotations

from exanova.design.cells import CellIndex
from exanova.solve.price import Load, local_tables

SQUARES_BY_FUNCTIONS, SQUARES_BY_ROWS = 5, 4
"""Arrays of (functions, functions), or of (rows, rows) beside one kernel an order: kernel, factor, inverse, copy."""

SHARED_WORK = 2e11
"""Multiplications of the likelihoods of all outputs beyond which similar ones share their ratios: ten seconds."""

EVALUATIONS = 8
"""Factorisations a search takes on the average."""


def by_rows(rows: int, functions: int) -> bool:
    """Whether the matrices over rows are the smaller ones."""
    return rows <= functions


def shares_ratios(rows: int, functions: int, outputs: int) -> bool:
    """Whether outputs are too many for a likelihood of their own: similar ones then share it.

    >>> shares_ratios(10**5, 500, 10), shares_ratios(10**5, 2500, 10), shares_ratios(10**5, 2500, 1)
    (False, True, False)
    """
    return outputs > 1 and outputs * EVALUATIONS * float(min(rows, functions)) ** 3 > SHARED_WORK


def shrinking(functions: int, index: CellIndex, load: Load) -> int:
    """Bytes of a shrunken fit: its matrices, a factor for every set of ratios, and passes over the rows."""
    r, q, m = load.distinct, functions, load.outputs
    size, orders = min(r, q), int(index.layout.order.max())
    squares = SQUARES_BY_ROWS + orders if by_rows(r, q) else SQUARES_BY_FUNCTIONS
    factors = m - 1  # one for every set of ratios, and outputs may differ
    passes = 8 * m * (2 * index.n_keys + 6 * r + 6 * q)
    collecting = 0 if by_rows(r, q) else 8 * int(1.1 * q) ** 2 + int(1.1 * q) * (r // 8 + 8)
    matrices = max(8 * size * size * (squares + factors), collecting + 8 * 3 * size * size)
    return matrices + passes + 3 * local_tables(index)
