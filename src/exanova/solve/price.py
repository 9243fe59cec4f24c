"""Peak memory of a fit in bytes, phase by phase: reading, observing, listing cells, solving, measuring.

Each phase needs its own work and the :class:`Load` that is held throughout. The peak of a fit is that of its largest
phase. The constants count arrays that exist at the same time in a phase, as measured by ``benchmarks/memory.py``:
measured memory is below 1.2 times the estimate, and rarely less than half of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exanova.basis.functions import too_large_for_tables, widths
from exanova.basis.projector import LARGEST_TABLE
from exanova.basis.stacks import LARGEST_STACKED
from exanova.data.recoding import code_type
from exanova.data.sample import PART_ROWS
from exanova.design.family import Family
from exanova.design.products import PIECES, products_are_faster, rows_of_block
from exanova.phi.gram import BITSET_BYTES, BLAS_BLOCK_BYTES, MANY_ROWS
from exanova.phi.growing_gram import COUNT_BLOCK
from exanova.solve import by_levels, level_blocks
from exanova.solve.low_cells import LowCount
from exanova.solve.low_orders import arrow_feature
from exanova.solve.matrix_free import MOST_ELIMINATED, largest_pair
from exanova.typing import IntArray

READING_ROW, WIDEST_VALUE = 44, 180
"""Bytes for each row of a table while equal rows are sorted and grouped, beside two codes per cell; and for each
distinct value of a column, while these are sorted."""

ARENA = 5_000_000
"""Largest number of bytes that allocators take from the system beyond what is requested; less for small work."""

FEW_ARRAYS = 8
"""Part of all memory that allocators keep of a few large arrays: an eighth, and no more than ``ARENA``."""

GIVEN_ROW, DISTINCT_ROW = 24, 48
"""Bytes held throughout for each row (position, weight, group) and each distinct row (the same, weights)."""

MAPPED_ROW = 16
"""Bytes held for each distinct row that is on disk: its probability, and its weight as a real number."""

DRAW, LEFT_OUT_DRAW = 24, 20
"""Bytes for each row in a cluster: its distinct row, weight and cluster; while clusters are left out its fold and
whether it was left out."""

SHARING_DRAW, PART_ROW, SHARING_CLUSTERS = 60, 120, 200
"""Bytes for each row in a cluster, and for each row of the clusters that are divided into parts, while it is estimated
what rows share; and how many clusters are divided at most."""

LISTED_KEY = 44
"""Bytes for each key while the cells of an order are listed: its count, whether it was observed, its cell."""

SUBSET = 400
"""Bytes of a subset in a family: a tuple, its entry in a dictionary, its part of a layout."""

PROJECTOR, FILLED_IN = 300, 150
"""Bytes of the sparse factorisation in a projector: per cell, and per square of the smaller number of levels."""

REFLECTED = 16
"""Bytes per level of a reflection."""

DENSE_COPIES, DENSE_SQUARES = 9, 4
"""Arrays of (rows, functions) and of (functions, functions) held at once in an orthogonal factorisation."""

GRAM_COPIES, REDUNDANT_COPIES = 3.0, 5.5
"""Arrays of (functions, functions) while a Gram matrix is eliminated. With more functions than rows some are certainly
redundant, and their null directions are added."""

DEPENDENCE_COPIES = 2.5
"""Arrays of (functions, dependences) while a table is completed and dependences are named."""

TENSORS, TENSORS_OF_OUTPUT = 5, 6
"""Tensors over the cells of a grid held at once, beside those of every output."""

TOP_DOWN = 1.25
"""Memory of a grid solved from the highest order down over that of one solved at once."""

PRODUCT_COPIES = 2
"""Blocks of one-hot columns held at once by a thread while these are multiplied: themselves, and weighted."""

LOCAL_STACK = 100_000_000
"""Bytes of a stack of local problems in the screening of pairs, at most."""

LOCAL_CELLS, WIDE = 36, 200
"""Bytes per squared cell of a pair in such a stack, and cells beyond which a pair has no basis there."""

PAIR = 130
"""Bytes of a pair in a screening: its places, its gain, and copies of them."""


@dataclass(frozen=True)
class Clustered:
    """Rows that were drawn in clusters: ``draws`` of them, equal ones of a cluster once, for so many ``rows`` given."""

    draws: int
    rows: int
    clusters: int


@dataclass(frozen=True)
class Load:
    """Sizes of the arrays that are held throughout a fit, besides the work of each phase.

    Attributes:
        rows: number of rows, of which ``distinct`` are distinct.
        columns: columns of the table.
        outputs: outputs of the model.
        codes: bytes of the codes of the distinct rows.
        counts: whether weights are whole numbers.
        widest: distinct values of the column of a table in memory that has most.
        blocks: bytes while rows are read in blocks; ``None`` of a table in memory.
        clustered: how rows were drawn in clusters; ``None`` where they are independent.
        on_disk: whether codes, weights and values are mapped from files, so that they are in memory block by block.
    """

    rows: int
    distinct: int
    columns: int
    outputs: int
    codes: int
    counts: bool
    on_disk: bool = False
    widest: int = 0
    blocks: int | None = None
    clustered: Clustered | None = None

    @property
    def held(self) -> int:
        """Bytes held throughout: groups of rows, codes, weights, model values and their residual, rows of clusters."""
        if self.on_disk:
            return (MAPPED_ROW + 8 * self.outputs) * self.distinct + self._of_draws(DRAW, 1)
        rows = GIVEN_ROW * self.rows + self.codes + (DISTINCT_ROW + 16 * self.outputs) * self.distinct
        return rows + self._of_draws(DRAW, 1)

    @property
    def beside_refits(self) -> int:
        """Bytes held while some clusters are left out and the others fitted as a table of their own; 0 without any."""
        return 0 if self.clustered is None else self.held + self._of_draws(LEFT_OUT_DRAW, 1)

    @property
    def sharing(self) -> int:
        """Bytes of the rows of clusters while it is estimated what they share."""
        if self.clustered is None:
            return 0
        rows, few = self.clustered.rows, min(1.0, SHARING_CLUSTERS / self.clustered.clusters)
        return self._of_draws(SHARING_DRAW, 2) + int(few * rows) * (PART_ROW + 8 * self.outputs)

    def _of_draws(self, each: int, values: int) -> int:
        """Bytes of rows in clusters: so many for each, beside so many numbers for every output."""
        return 0 if self.clustered is None else self.clustered.draws * (each + 8 * values * self.outputs)

    @property
    def reading(self) -> int:
        """Bytes while the table is read and its equal rows are grouped."""
        return reading(self.rows, self.columns, self.widest) if self.blocks is None else self.blocks

    @property
    def observing(self) -> int:
        """Bytes while outputs are averaged over equal rows."""
        return 0 if self.on_disk else self.held + 8 * self.rows * (1 + 3 * self.outputs)

    def peak(self, *phases: int, few_arrays: bool = False) -> int:
        """Peak bytes of a fit that reads the table, gets its outputs and runs these phases.

        ``few_arrays``: whether these work in a few large arrays, whose memory goes back to the system at once.
        """
        needed = max(self.reading, self.observing, self.held + max(phases))
        return needed + min(needed // FEW_ARRAYS if few_arrays else needed, ARENA)


def reading(rows: int, columns: int, widest: int = 0) -> int:
    """Bytes while a table is read and its equal rows are grouped; columns have up to ``widest`` distinct values."""
    codes = np.dtype(code_type(widest)).itemsize * columns
    return max(rows * (READING_ROW + 2 * codes), rows * codes + WIDEST_VALUE * widest)


def listing(keys: int, subsets: int) -> int:
    """Bytes while cells are listed."""
    return LISTED_KEY * keys + SUBSET * subsets


def measuring(keys: int, cells: int, subsets: int, load: Load) -> int:
    """Bytes while covariances, errors and conditional means of a result are measured."""
    family = 4 * keys + 16 * cells + SUBSET * subsets
    # The fitted part of all rows, its residual while rows are left out, and blocks of rows.
    rows = 3 * load.distinct + 5 * min(load.distinct, PART_ROWS)
    return family + 8 * load.outputs * (keys + 4 * cells + rows)


def local_tables(family: Family, largest_pair: int = LARGEST_TABLE) -> int:
    """Bytes of the functions of all subsets on their cells; pairs of more cells than ``largest_pair`` have no table."""
    cells = np.diff(family.cell_start)
    large = too_large_for_tables(family) | ((family.layout.order == 2) & (cells > largest_pair))
    reflected = (family.layout.order == 1) & (cells > LARGEST_TABLE)
    tables = 8 * int((cells * widths(family))[~large & ~reflected].sum())
    smaller = sum(min(family.sizes_of(int(s))) ** 2 for s in np.flatnonzero(large))
    projectors = PROJECTOR * int(cells[large].sum()) + FILLED_IN * smaller
    return tables + projectors + REFLECTED * int(cells[reflected].sum())


def grid(cells: int, features: int, load: Load, *, even: bool) -> int:
    """Bytes of conjugate gradients on extended tensors, and of the family built from them."""
    tensors = 8 * cells * (TENSORS + TENSORS_OF_OUTPUT * load.outputs)
    tensors = tensors if even else int(TOP_DOWN * tensors)
    return tensors + 8 * load.distinct * (features + 10 * load.outputs)


def dense(functions: int, family: Family, load: Load) -> int:
    """Bytes of orthogonal factorisations of the functions on the rows."""
    r, q = load.distinct, functions
    return 8 * (DENSE_COPIES * r * q + DENSE_SQUARES * q * q) + local_tables(family) + _family(family, load)


def moments(functions: int, family: Family, load: Load) -> int:
    """Bytes of a Gram matrix of indicators, its bitsets or blocks, and its elimination."""
    refining = (
        8 * load.outputs * (2 * family.n_keys + load.distinct + 4 * min(load.distinct, PART_ROWS) + 3 * functions)
    )
    return eliminating(functions, load) + refining + 2 * local_tables(family) + _family(family, load)


def eliminating(functions: int, load: Load) -> int:
    """Bytes of a Gram matrix, while it is computed and while it is eliminated."""
    r, q = load.distinct, functions
    # There are at least as many indicators as functions, rarely more: a tenth more covers patterns with missing cells.
    indicators = int(1.1 * q)
    copies = REDUNDANT_COPIES if q > r else GRAM_COPIES
    return max(8 * indicators**2 + indicators_of(indicators, load), int(8 * q * q * copies))


def matrix_free(by_order: Sequence[int], family: Family, load: Load, threads: int, rows_of_levels: IntArray) -> int:
    """Bytes of conjugate gradients over passes of the rows, and of the lower orders' elimination.

    ``rows_of_levels``: rows at each level of the feature whose pairs are solved level by level; empty if there is none.
    """
    r, q, cells = load.distinct, sum(by_order), np.diff(family.cell_start)
    rows = 9 * r if len(by_order) > 2 else 2 * r  # main effects need no iterations
    vectors = 8 * load.outputs * (3 * family.n_keys + 6 * q + rows)
    work = vectors + _pair_products(family, load, threads) + _eliminated(by_order, family, load)
    if len(rows_of_levels):
        work += _levels(family, load, rows_of_levels)
    # Small tables are held twice, one by one and in stacks.
    stacked = 8 * int(np.square(cells[cells * cells <= LARGEST_STACKED]).sum())
    return work + stacked + local_tables(family, largest_pair(family)) + _family(family, load)


def completion(functions: int, low: LowCount, family: Family, load: Load) -> int:
    """Bytes of the equations of a completion or, if more, of the dependences it finds and of their products."""
    m, k = load.outputs, low.vanishing
    equations = 8 * (low.missing * low.other_rows + low.cells * (k + m) + low.other_rows * k)
    named = len(family.subsets) ** 2 if k else 0  # each subset may share with each
    decomposing = 8 * (int(DEPENDENCE_COPIES * max(low.cells, functions) * (k + m)) + 3 * k * k + named)
    refining = 8 * m * (2 * family.n_keys + load.distinct + 4 * min(load.distinct, PART_ROWS) + 3 * functions)
    return max(equations, decomposing) + refining + 2 * local_tables(family) + _family(family, load)


def _eliminated(by_order: Sequence[int], family: Family, load: Load) -> int:
    """Bytes of the Gram matrix of the lower orders, or of main effects without those of one feature."""
    mains = int(np.searchsorted(family.layout.order, 2))
    largest = arrow_feature(family.restricted(mains))
    if largest is None:
        low = max(sum(by_order[:2]), min(MOST_ELIMINATED, sum(by_order[:-1])))
        return 24 * low * low + low * (load.distinct // 8)
    levels = int(np.diff(family.cell_start)[largest])
    others = sum(by_order[:2]) - levels
    return 40 * levels * others + 32 * others * others + (others + 8) * (load.distinct // 8) + 24 * load.distinct


def _levels(family: Family, load: Load, rows_of_levels: IntArray) -> int:
    """Bytes of the factors of all levels, of a stack of them, and of matrices over functions without the feature."""
    feature = by_levels.level_feature(family)
    assert feature is not None
    columns, others = by_levels.paired_levels(family, feature), by_levels.functions_without(family, feature)
    factors = int(8 * level_blocks.PADDING * (rows_of_levels * (3 + np.minimum(rows_of_levels, columns))).sum())
    stack = 5 * max(min(level_blocks.STACK_BYTES, 8 * columns * load.distinct), 8 * columns * int(rows_of_levels.max()))
    blocks = 3 * min(by_levels.ROW_BYTES, 8 * others * load.distinct)
    return factors + max(stack // 2, blocks) + 8 * 8 * others * others + 8 * len(family.subsets) * load.distinct


def screening(sizes: Sequence[int], load: Load, threads: int) -> int:
    """Bytes of the products of all one-hot columns, and of stacks of local problems of pairs."""
    varying = [n for n in sizes if n > 1]
    columns, pairs = 1 + sum(n - 1 for n in varying), len(varying) * (len(varying) - 1) // 2
    levels = np.array(varying, dtype=np.float64)
    one, other = np.triu_indices(len(levels), 1)
    cells = levels[one] * levels[other]
    stacks = min(LOCAL_STACK, int(LOCAL_CELLS * np.square(cells[cells <= WIDE]).sum()))
    products = 8 * columns * columns
    return max(products * (3 + load.outputs + threads), products * (2 + load.outputs) + stacks) + (
        columns * load.distinct + PAIR * pairs
    )


def growing_fit(functions: int, load: Load) -> int:
    """Bytes of a growing factor, its final copy, the bitsets of its indicators, and a block of counts."""
    q, r = functions, load.distinct
    counts = 8 * min(COUNT_BLOCK, q) * q
    return 20 * q * q + counts + 2 * q * (r // 8) + 8 * load.outputs * 6 * r


def lasso(candidates: int, load: Load) -> int:
    """Bytes of the Gram matrix of the candidates, its projection, and the same after eliminating main effects."""
    q, r = candidates, load.distinct
    return 36 * q * q + indicators_of(q, load) + 8 * load.outputs * 6 * r


def indicators_of(indicators: int, load: Load) -> int:
    """Bytes of the input of a Gram matrix: bitsets (or margins) for counts, or a block of dense indicators."""
    bits = min(indicators * (load.distinct // 8 + 8), max(BITSET_BYTES, indicators * MANY_ROWS // 8))
    return bits if load.counts else max(bits, min(BLAS_BLOCK_BYTES, 8 * indicators * load.distinct))


def _family(family: Family, load: Load) -> int:
    """Bytes of a family, and of the effects on its cells."""
    return 4 * family.n_keys + (16 + 16 * load.outputs) * family.n_cells + SUBSET * len(family.subsets)


def _pair_products(family: Family, load: Load, threads: int) -> int:
    """Bytes of one-hot columns and blocks of them, if pairs are handled by products of matrices."""
    first = int(np.searchsorted(family.layout.order, 2))
    if not products_are_faster(family.layout.part(first, len(family.subsets))):
        return 0
    columns = 1 + int((family.sizes - 1).sum())
    rows = min(rows_of_block(columns), load.distinct // PIECES + 1)
    copied = load.codes  # with the most frequent level of each feature last
    return load.distinct * (columns + 8) + max(copied, PRODUCT_COPIES * threads * 8 * columns * rows)
