"""What a shrunken fit holds at its peak, in bytes, and which of its two matrices is the smaller.

The constants count arrays that stand side by side in :mod:`exanova.shrink.likelihood` and
:mod:`exanova.shrink.posterior`, as those of :mod:`exanova.solve.price` do.
"""

from __future__ import annotations

from exanova.design.family import Family
from exanova.shrink.left_out import BLOCK_BYTES, FEWEST_SAMPLED, ROWS_PER_FUNCTION
from exanova.solve.price import Load, eliminating, local_tables

SQUARES_BY_FUNCTIONS, SQUARES_BY_ROWS, COLLECTING = 3.6, 4, 1.5
"""Arrays of (functions, functions), or of (rows, rows) beside one kernel an order: kernel, factor, inverse, copy; and
of (functions, functions) beside the Gram matrix of indicators while it becomes that of functions."""

OUTPUTS_WORK = 4e11
"""Multiplications that the likelihoods of all outputs may take; beyond, similar outputs share their ratios."""

SUBSETS_WORK = 1.3e11
"""Multiplications that ratios of subsets may take on top: some seconds."""

WRITTEN = 60_000_000
"""Rows times functions up to which the functions are written down at the rows: half a gigabyte."""

EVALUATIONS = 8
"""Factorisations a search takes at most, for what is affordable."""


def by_rows(rows: int, functions: int) -> bool:
    """Whether the matrices over rows are the smaller ones."""
    return rows <= functions


def sets_of_ratios(rows: int, functions: int, outputs: int) -> int:
    """How many sets of ratios there may be: one for each output unless that takes too long.

    >>> sets_of_ratios(10**5, 500, 10), sets_of_ratios(10**5, 2500, 10), sets_of_ratios(10**5, 9000, 2)
    (10, 3, 1)
    """
    return min(outputs, max(1, int(OUTPUTS_WORK / (EVALUATIONS * float(max(1, min(rows, functions))) ** 3))))


def has_subset_ratios(rows: int, functions: int, sets: int) -> bool:
    """Whether ratios of subsets are affordable beside those of orders.

    >>> has_subset_ratios(10**5, 2500, 1), has_subset_ratios(1000, 10**4, 1), has_subset_ratios(1000, 10**6, 1)
    (True, True, False)
    """
    work = float(min(rows, functions)) ** 2 * functions
    return sets * EVALUATIONS * work <= SUBSETS_WORK and (not by_rows(rows, functions) or rows * functions <= WRITTEN)


def leaving_out(functions: int, load: Load) -> int:
    """Bytes of leaving rows out of an exact fit: its Gram matrix, a factor, and blocks of rows."""
    chosen = min(load.distinct, max(functions, FEWEST_SAMPLED))
    blocks = 3 * min(BLOCK_BYTES, 8 * functions * chosen)
    return eliminating(functions, load) + blocks + 32 * load.distinct * load.outputs


def shrinking(functions: int, family: Family, load: Load) -> int:
    """Bytes of a shrunken fit: its matrices, a factor for every set of ratios, and passes over the rows."""
    r, q, m = load.distinct, functions, load.outputs
    size, orders = min(r, q), int(family.layout.order.max())
    squares = SQUARES_BY_ROWS + orders if by_rows(r, q) else SQUARES_BY_FUNCTIONS
    factors = sets_of_ratios(r, q, m) - 1
    passes = 8 * m * (2 * family.n_keys + 6 * r + 6 * q)
    collecting = 0 if by_rows(r, q) else 8 * int(1.1 * q) ** 2 + int(1.1 * q) * (r // 8 + 8)
    matrices = int(max(8 * size * size * (squares + factors), collecting + 8 * COLLECTING * size * size))
    if by_rows(r, q) and has_subset_ratios(r, q, sets_of_ratios(r, q, m)):
        matrices += 8 * 4 * r * q
    chosen = min(r, max(FEWEST_SAMPLED, int(ROWS_PER_FUNCTION * q)))
    leaving_out = 0 if by_rows(r, q) else 3 * min(BLOCK_BYTES, 8 * q * chosen)
    return matrices + passes + leaving_out + 3 * local_tables(family)
