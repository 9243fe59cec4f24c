"""Seconds of a shrunken fit, and of leaving rows out of an exact one, from their sizes.

The constants were measured on the tables of ``benchmarks/plans.py``, as those of :mod:`exanova.solve.seconds` were.
"""

from __future__ import annotations

from exanova.shrink import cost
from exanova.shrink.left_out import FEWEST_SAMPLED
from exanova.shrink.prepared import ESTIMATED_FROM, START_ROWS
from exanova.solve.seconds import FLOPS

BY_ORDER, BY_SUBSET, FROM_A_START = 4, 5, 2
"""Evaluations of the likelihood that a search takes: of orders, of subsets, and of orders from a start on few rows."""

EXACT_TRACE, ESTIMATED_TRACE, OF_ROWS, OF_COLUMNS = 1.3, 0.25, 0.5, 1.5
"""Multiplications of an evaluation over the cube of the functions, where the trace is computed and where it is guessed;
over the cube of the rows; and over the square of the rows times the functions, for subsets."""

POSTERIOR_BY_FUNCTIONS, POSTERIOR_BY_ROWS = 1.0, 1.2
"""Multiplications of a posterior mean and its rows left out, over the cube of the smaller side."""

KERNEL_CELLS = 3e8
"""Entries of the kernels of subsets between rows that are added up in a second."""


def shrinking_seconds(rows: int, functions: int, outputs: int, subsets: int = 0) -> float:
    """Seconds of a shrunken fit, beside those of reading its rows and collecting a Gram matrix.

    Every evaluation of the likelihood factorises a matrix over functions or rows.
    """
    how, size = cost.way(rows, functions), float(cost.side(rows, functions))
    sets = cost.sets_of_ratios(int(size), outputs)
    finds_subsets = cost.has_subset_ratios(int(size), subsets, sets)
    starts = how != "rows" and rows > START_ROWS
    steps = (FROM_A_START if starts else BY_ORDER) + finds_subsets * BY_SUBSET
    one = OF_ROWS if how == "rows" else ESTIMATED_TRACE if size >= ESTIMATED_FROM else EXACT_TRACE
    work = sets * (steps * one + POSTERIOR_BY_FUNCTIONS) * size**3
    return work / FLOPS


def leaving_out_seconds(rows: int, functions: int) -> float:
    """Seconds of leaving rows out of an exact fit, beside those of collecting its Gram matrix again."""
    q = float(functions)
    return (q**3 / 3 + q**2 * min(rows, max(functions, FEWEST_SAMPLED))) / FLOPS
