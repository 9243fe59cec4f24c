"""Seconds of a shrunken fit, and of leaving rows out of an exact one, from their sizes.

The constants were measured on the tables of ``benchmarks/plans.py``, as those of :mod:`exanova.solve.seconds` were.
"""

from __future__ import annotations

import numpy as np

from exanova.design.family import Family
from exanova.shrink import cost
from exanova.shrink.drift import MOST_WORK
from exanova.shrink.left_out import FEWEST_SAMPLED
from exanova.shrink.prepared import ESTIMATED_FROM, START_ROWS
from exanova.shrink.ratios import START_FROM
from exanova.solve.seconds import FLOPS

BY_ORDER, BY_SUBSET, FROM_A_START = 4, 5, 2
"""Evaluations of the likelihood that a search takes: of orders, of subsets, and of orders from a start on few rows."""

EXACT_TRACE, ESTIMATED_TRACE, POSTERIOR = 1.3, 0.3, 0.9
"""Multiplications over the cube of the side of the matrix: of an evaluation whose trace is computed, of one whose trace
is estimated, and of the posterior mean with its rows left out."""

ONE_EVALUATION = 6e-4
"""Seconds of an evaluation on the smallest table."""

ROW_PAIRS, KERNEL_CELLS = 6e8, 2e8
"""Entries of kernels that are read at pairs of rows in a second, and entries of kernels of cells that are made."""

DRIFT_PAIRS = 3.5e8
"""Entries of kernels at pairs of rows, read or added up in a second for the step of the likelihood without each row."""


def shrinking_seconds(rows: int, functions: int, outputs: int, subsets: int = 0) -> float:
    """Seconds of the search for ratios and of the posterior, beside those of reading rows and making functions.

    Every evaluation of the likelihood factorises a matrix over functions or rows; a start on few rows reads kernels at
    all pairs of them, and so does every evaluation over rows.
    """
    how, size = cost.way(rows, functions), float(cost.side(rows, functions))
    sets = cost.sets_of_ratios(int(size), outputs)
    finds_subsets = cost.has_subset_ratios(int(size), subsets, sets)
    starts = rows > START_ROWS and size >= START_FROM
    steps = (FROM_A_START if starts else BY_ORDER) + finds_subsets * BY_SUBSET
    one = ESTIMATED_TRACE if size >= ESTIMATED_FROM else EXACT_TRACE
    work = sets * (steps * one + POSTERIOR) * size**3 + (rows * size**2 if how == "leading" else 0.0)
    reads = (starts or how == "rows") + finds_subsets * BY_SUBSET * (how == "rows")
    read = reads * subsets * float(min(rows, START_ROWS)) ** 2
    return work / FLOPS + read / ROW_PAIRS + sets * steps * ONE_EVALUATION


def drifting_seconds(rows: int, functions: int, outputs: int, family: Family) -> float:
    """Seconds of the step of the likelihood without each row, where rows are few; see :mod:`exanova.shrink.drift`.

    For every output kernels are read at all pairs of rows, unless their factor is there, and lines of its inverse are
    added up over the cells of every subset.
    """
    how, subsets = cost.way(rows, functions), len(family.subsets) - 1
    size, r = cost.side(rows, functions), float(rows)
    sets = cost.sets_of_ratios(size, outputs)
    squares = float((np.diff(family.cell_start).astype(np.float64) ** 2).sum())
    if rows > cost.MOST_ROWS or r * squares > MOST_WORK or not cost.has_subset_ratios(size, subsets, sets):
        return 0.0
    reads = (1 + (how == "functions")) * subsets * r**2
    return sets * (reads / DRIFT_PAIRS + (r * squares + r**3) / FLOPS)


def kernel_seconds(family: Family) -> float:
    """Seconds of making the kernels of all subsets on their cells, where no functions are made."""
    return float((np.diff(family.cell_start).astype(np.float64) ** 2).sum()) / KERNEL_CELLS


def ranking_seconds(functions: int) -> float:
    """Seconds of determining the rank of the functions, beside those of their Gram matrix; 0 where that is not done."""
    return functions**3 / FLOPS if functions <= cost.RANKED else 0.0


def leaving_out_seconds(rows: int, functions: int) -> float:
    """Seconds of leaving rows out of an exact fit, beside those of collecting its Gram matrix again."""
    q = float(functions)
    return (q**3 / 3 + q**2 * min(rows, max(functions, FEWEST_SAMPLED))) / FLOPS
