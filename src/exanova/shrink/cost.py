"""Peak memory of a shrunken fit in bytes, and which of its two matrices is the smaller.

The constants count arrays that stand side by side in :mod:`exanova.shrink.likelihood` and
:mod:`exanova.shrink.posterior`, as those of :mod:`exanova.solve.price` do.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from exanova.basis.functions import too_large_for_tables
from exanova.design.family import Family
from exanova.shrink.by_cells import BATCH_BYTES, KEPT_BYTES
from exanova.shrink.left_out import BLOCK_BYTES, FEWEST_SAMPLED, ROWS_PER_FUNCTION
from exanova.solve.price import Load, eliminating, indicators_of, local_tables

SQUARES_BY_FUNCTIONS, SQUARES_BY_ROWS, COLLECTING = 4, 6, 3
"""Arrays of (functions, functions), or of (rows, rows) beside one kernel an order: kernel, factor, inverse, copy; and
of (functions, functions) beside the Gram matrix of indicators while it becomes that of functions."""

KERNEL_COPIES = {"leading": 1.65, "rows": 2.2}
"""Copies of the kernels of cells, where they are kept: side by side, and one by one as they are made."""

OUTPUTS_WORK = 4e11
"""Multiplications that the likelihoods of all outputs may take; beyond, similar outputs share their ratios."""

SUBSETS_WORK = 1.3e11
"""Multiplications that ratios of subsets may take on top: some seconds."""

WRITTEN = 60_000_000
"""Rows times functions up to which the functions are written down at the rows: half a gigabyte."""

EVALUATIONS = 8
"""Factorisations a search takes at most, for what is affordable."""


MOST_ROWS = 1200
"""Rows up to which matrices over rows are used where functions outnumber them."""

LEADING = (1200, 2000)
"""Fewest and most functions that are used where rows and functions are both many: those that the prior expects most
of. Between 1,200 and all of them, held-out R2 of four tables changed by 0.001 to 0.012."""

ROWS_PER_LEADING = 4
"""Rows for each of them, between the two."""


DRIFTING_BYTES = 4_000_000
"""Memory of some lines of a matrix over rows, summed over all cells."""


RANKED = 1000
"""Functions up to which the rank of a shrunken fit is determined with the fit: some hundredths of a second."""


def by_rows(rows: int, functions: int) -> bool:
    """Whether there are fewer rows than functions."""
    return rows <= functions


def way(rows: int, functions: int, large: bool = False) -> Literal["functions", "rows", "leading"]:
    """Which matrices are factorised: over functions, over rows, or over the leading functions.

    A ``large`` pair has too many cells for a table of its functions; kernels need none.

    >>> way(5000, 2000), way(500, 2000), way(5000, 20_000), way(5000, 4000, large=True)
    ('functions', 'rows', 'leading', 'leading')
    """
    if not by_rows(rows, functions) and not large:
        return "functions"
    return "rows" if rows <= MOST_ROWS else "leading"


def leading(rows: int) -> int:
    """How many functions are used where rows and functions are both many.

    >>> leading(3000), leading(6000), leading(10**6)
    (1200, 1500, 2000)
    """
    return min(LEADING[1], max(LEADING[0], rows // ROWS_PER_LEADING))


def side(rows: int, functions: int, large: bool = False) -> int:
    """Side of the matrices that are factorised."""
    sides = {"functions": functions, "rows": rows, "leading": min(leading(rows), functions)}
    return sides[way(rows, functions, large)]


def sets_of_ratios(size: int, outputs: int) -> int:
    """How many sets of ratios there may be: one for each output unless that takes too long; ``size`` is :func:`side`.

    >>> sets_of_ratios(500, 10), sets_of_ratios(2500, 10), sets_of_ratios(9000, 2)
    (10, 3, 1)
    """
    return min(outputs, max(1, int(OUTPUTS_WORK / (EVALUATIONS * float(max(1, size)) ** 3))))


def has_subset_ratios(size: int, subsets: int, sets: int) -> bool:
    """Whether ratios of subsets are affordable beside those of orders.

    >>> has_subset_ratios(2000, 100, 1), has_subset_ratios(5000, 100, 1), has_subset_ratios(500, 10**6, 1)
    (True, False, False)
    """
    work = float(size) ** 2 * (size + subsets)
    return sets * EVALUATIONS * work <= SUBSETS_WORK


def affords_all(rows: int, functions: int, outputs: int) -> bool:
    """Whether all candidates may be shrunk at once, so that no budget has to choose among them.

    >>> affords_all(10**5, 2500, 1), affords_all(1000, 10**4, 1), affords_all(1000, 10**6, 1)
    (True, True, False)
    """
    size = float(min(rows, functions))
    sets = sets_of_ratios(int(size), outputs)
    return sets * EVALUATIONS * size**2 * functions <= SUBSETS_WORK and (
        not by_rows(rows, functions) or rows * functions <= WRITTEN
    )


def of_clusters(size: int, load: Load) -> int:
    """Bytes of a second matrix of this side, for the likelihood of clusters, of what is taken from the first, and of
    the rows of clusters; 0 where rows are independent."""
    if load.clustered is None:
        return 0
    return 16 * size * size + min(BLOCK_BYTES, 8 * size * load.clustered.clusters) + load.sharing


def leaving_out(functions: int, load: Load) -> int:
    """Bytes of leaving rows out of an exact fit: its Gram matrix, a factor, and blocks of rows."""
    chosen = min(load.distinct, max(functions, FEWEST_SAMPLED))
    blocks = 3 * min(BLOCK_BYTES, 8 * functions * chosen)
    return eliminating(functions, load) + blocks + 32 * load.distinct * load.outputs


def ranking(functions: int, load: Load) -> int:
    """Bytes of determining the rank beside a factor that has been kept; 0 where that is not done."""
    return eliminating(functions, load) + 8 * functions * functions if functions <= RANKED else 0


def _kernels(family: Family, copies: float) -> int:
    """Bytes of the kernels of all subsets on their cells: as tables where these are kept, and as factors."""
    cells = np.diff(family.cell_start)
    whole = int(8 * np.square(cells.astype(np.float64)).sum())
    kept = int(copies * whole) if whole <= KEPT_BYTES else 4 * BATCH_BYTES
    factors = 8 * sum(int(cells[s]) * sum(family.sizes_of(s)) for s in range(len(family.subsets)))
    return kept + factors


def shrinking(functions: int, family: Family, load: Load) -> int:
    """Bytes of a shrunken fit: its matrices, a factor for every set of ratios, and passes over the rows."""
    r, q, m = load.distinct, functions, load.outputs
    large = bool(too_large_for_tables(family).any())
    how, size, orders = way(r, q, large), side(r, q, large), int(family.layout.order.max())
    squares = SQUARES_BY_ROWS + orders if how == "rows" else SQUARES_BY_FUNCTIONS
    factors = sets_of_ratios(size, m) - 1
    passes = 8 * m * (2 * family.n_keys + 6 * r + 6 * q)
    collecting = 8 * int(1.1 * q) ** 2 + indicators_of(int(1.25 * q), load) if how == "functions" else 0
    matrices = int(max(8 * size * size * (squares + factors), collecting + 8 * COLLECTING * size * size))
    chosen = min(r, max(FEWEST_SAMPLED, int(ROWS_PER_FUNCTION * size)))
    leaving_out = 0 if how == "rows" else 3 * min(BLOCK_BYTES, 8 * size * chosen)
    if how == "leading":  # functions at a block of rows, twice
        leaving_out = max(leaving_out, 2 * min(BLOCK_BYTES, 8 * size * r))
    tables = 3 * local_tables(family) if how == "functions" else _kernels(family, KERNEL_COPIES[how])
    return matrices + passes + max(leaving_out, _drifting(family, r)) + tables


def _drifting(family: Family, rows: int) -> int:
    """Bytes of the gradients of the ratios at rows that are few: lines of a matrix over rows, and its copies."""
    if rows > MOST_ROWS:
        return 0
    return 24 * rows * rows + 2 * min(DRIFTING_BYTES, 8 * family.n_cells * rows) + 40 * rows * len(family.subsets)
