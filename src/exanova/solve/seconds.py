"""Seconds of a fit by each route, from its sizes: multiplications, reads and counts over the throughput of the machine.

The constants were measured on the tables of ``benchmarks/plans.py``, whose page compares every estimate with the
measured time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import widths
from exanova.basis.projector import LARGEST_TABLE
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.design.products import products_are_faster
from exanova.phi.gram import gram_seconds
from exanova.solve.by_levels import functions_without, level_feature, paired_levels
from exanova.solve.low_orders import arrow_feature
from exanova.solve.matrix_free import expected_iterations, largest_pair
from exanova.solve.plan import STARTING
from exanova.solve.survey import Survey, is_product
from exanova.typing import FloatArray

FLOPS, LOOKUPS, CELLS_READ, ROWS_GROUPED = 3e10, 5e8, 4e7, 2e6
"""Throughput of one core per second: multiplications in matrix products, table reads at rows, cells of a table read and
distinct rows grouped. Measured on the benchmarks' tables; other machines differ by a factor of a few."""

VALUES_COUNTED, ROWS_APART = 3e6, 8e5
"""Distinct numbers of columns that are cut, counted in a second while rows are read in blocks; and such rows sorted,
which are distinguished by their outputs."""

PASS_FLOPS = 1.2e10
"""Multiplications per second of a pass over all pairs by products of matrices."""

PRODUCT_CELLS, EVEN_CELLS, UNEVEN_CELLS = 2.5e6, 1e6, 6e4
"""Cells of a grid solved in a second: of independent features, under even weights, under others."""

ELIMINATING, REDUNDANT = 0.5, 1.6
"""Multiplications of the moments route over the cube of its functions; and if there are more of them than rows."""


ONE_ITERATION, PROJECTED_CELLS = 2e-4, 3e7
"""Seconds of an iteration without a matrix on the smallest table, and cells projected on a pure space in a second."""


TABLE_READS = 1.5e9
"""Entries of tables multiplied by a vector in a second: they are read from memory."""

SPARSE_FLOPS = 8e8
"""Cubed levels of the smaller feature of a pair, factorised sparsely in a second."""

SUBSET_MAPS = 2e-4
"""Seconds per subset from tables on complete tables to pure functions, beside products of matrices."""

LEVEL_ITERATIONS = 20
"""Iterations to expect where pairs are solved level by level."""


def has_projector(family: Family, largest_pair: int) -> NDArray[np.bool_]:
    """(S,) pairs of more cells than ``largest_pair``."""
    return np.asarray((family.layout.order == 2) & (np.diff(family.cell_start) > largest_pair))


def local_work(family: Family, columns: int, largest_pair: int = LARGEST_TABLE) -> float:
    """Multiplications of the local problem of each subset of order 2 or higher, and of its products."""
    squares, width = _tables(family, largest_pair)
    return float(4 * (squares * width)[family.layout.order > 1].sum() + columns * squares.sum())


def table_entries(family: Family, largest_pair: int) -> float:
    """Entries of the tables of the functions of all subsets: the multiplications of a product with one vector."""
    return float(_tables(family, largest_pair)[0].sum())


def _tables(family: Family, largest_pair: int) -> tuple[FloatArray, FloatArray]:
    """(S,) entries and columns of the table of every subset; no entries where there is none."""
    cells = np.diff(family.cell_start).astype(np.float64)
    cells[has_projector(family, largest_pair) | ((family.layout.order == 1) & (cells > LARGEST_TABLE))] = 0.0
    width = np.minimum(cells, widths(family))
    return cells * width, width


def passes_and_local_work(survey: Survey, passes: int, columns: int = 0, largest_pair: int = LARGEST_TABLE) -> float:
    """Seconds of this many passes over the rows and of the local problems of every subset."""
    reads = passes * pass_seconds(survey)
    local = 0.0 if survey.family is None else local_work(survey.family, columns, largest_pair)
    return reading(survey.sample) + reads + local / FLOPS


def pass_seconds(survey: Survey) -> float:
    """Seconds of one pass over the rows: reads of tables, or products of matrices where these handle all pairs."""
    r, family = float(survey.sample.n_rows), survey.family
    reads = r * survey.subsets / LOOKUPS
    if family is None:
        return reads
    first = int(np.searchsorted(family.layout.order, 2))
    if not products_are_faster(family.layout.part(first, len(family.subsets))):
        return reads
    columns = 1.0 + float((family.sizes - 1).sum())
    return min(reads, r * columns**2 / PASS_FLOPS)


def reading(sample: Sample) -> float:
    """Seconds of reading a table, grouping its rows and other work that any fit has."""
    cells = sample.rows * len(sample.sizes)
    counted = sample.in_blocks and sample.counted
    apart = sample.rows / ROWS_APART + counted / VALUES_COUNTED if counted else 0.0
    return STARTING + cells / CELLS_READ + sample.n_rows / ROWS_GROUPED + apart


def grid(survey: Survey) -> float:
    """Seconds of the grid route."""
    rate = PRODUCT_CELLS if is_product(survey.sample) else EVEN_CELLS if survey.is_even else UNEVEN_CELLS
    return reading(survey.sample) + survey.cells / rate


def dense(survey: Survey) -> float:
    """Seconds of the dense route."""
    r, q = float(survey.sample.n_rows), float(survey.functions)
    return passes_and_local_work(survey, len(survey.by_order) + 2) + 4 * r * q * min(r, q) / FLOPS


def moments(survey: Survey) -> float:
    """Seconds of the moments route."""
    assert survey.family is not None
    q = float(survey.functions)
    common = passes_and_local_work(survey, len(survey.by_order) + 6, 2 * survey.functions)
    work = (REDUNDANT if q > survey.sample.n_rows else ELIMINATING) * q**3
    return common + work / FLOPS + gram_seconds(survey.family, survey.functions, survey.sample.weight)


def matrix_free(survey: Survey) -> float:
    """Seconds of the matrix-free route."""
    assert survey.family is not None
    iterations, largest = iterations_of(survey), largest_pair(survey.family)
    cells = np.diff(survey.family.cell_start)[has_projector(survey.family, largest)].sum()
    # Every iteration projects twice from cells to functions and twice back.
    one = ONE_ITERATION + 4 * float(cells) / PROJECTED_CELLS + 4 * table_entries(survey.family, largest) / TABLE_READS
    return (
        passes_and_local_work(survey, 2 * iterations, largest_pair=largest)
        + iterations * one
        + (_low_work(survey) + _level_work(survey)) / FLOPS
        + _factorising(survey.family)
    )


def completion(survey: Survey) -> float:
    """Seconds of the completion route."""
    assert survey.family is not None
    low, q, family = survey.low_cells, float(survey.functions), survey.family
    missing, rows, k = float(low.missing), float(low.other_rows), float(low.vanishing)
    equations = rows**2 * (missing - rows / 3) + rows**2 * k
    dependences = q * k**2 + k**3 / 3 + q**2 * k / 2
    common = passes_and_local_work(survey, len(survey.by_order) + 6, low.vanishing)
    return common + SUBSET_MAPS * len(family.subsets) + (equations + dependences) / FLOPS


def _factorising(family: Family) -> float:
    """Seconds of the sparse factorisations of pairs that have no table: their margins fill in over the smaller side."""
    large = np.flatnonzero(has_projector(family, largest_pair(family)))
    return sum(float(min(family.sizes_of(int(s)))) ** 3 for s in large) / SPARSE_FLOPS


def iterations_of(survey: Survey) -> int:
    """Iterations to expect on the matrix-free route."""
    if len(survey.by_order) <= 2 or _is_one_pair(survey):
        return 2
    if len(survey.rows_of_levels):
        return LEVEL_ITERATIONS
    return expected_iterations(survey.sample.n_rows, survey.functions)


def _is_one_pair(survey: Survey) -> bool:
    """Whether the functions are those of two features: a pair is orthogonal to its own main effects."""
    return survey.family is not None and len(survey.sample.varying) == 2


def _low_work(survey: Survey) -> float:
    """Multiplications of the elimination of main effects."""
    assert survey.family is not None
    mains = survey.family.restricted(int(np.searchsorted(survey.family.layout.order, 2)))
    largest = arrow_feature(mains)
    levels = 0 if largest is None else int(mains.sizes[mains.subsets[largest][0]])
    others = float(sum(survey.by_order[:2]) - levels)
    return others**3 + 4 * levels * others**2


def _level_work(survey: Survey) -> float:
    """Multiplications of the factorisations of levels, and of the matrices over functions without their feature."""
    rows, family = survey.rows_of_levels.astype(np.float64), survey.family
    feature = None if family is None else level_feature(family)
    if family is None or feature is None:
        return 0.0
    columns, others = paired_levels(family, feature), float(functions_without(family, feature))
    factors = 8 * (rows * columns * np.minimum(rows, columns)).sum()
    return float(factors + 2 * survey.sample.n_rows * others**2 + 12 * others**3)
