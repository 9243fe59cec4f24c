"""``Survey``: the cells of a family on a sample, before the model is called and a route is chosen.

A complete table with all orders requested needs no listing: its cells are all combinations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from exanova import tolerances
from exanova.basis.functions import dimensions, refuse_without_table, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family, extend
from exanova.solve import price
from exanova.solve.by_levels import level_feature
from exanova.solve.low_cells import LowCells, LowCount
from exanova.typing import IntArray, Subset


@dataclass(frozen=True, eq=False)
class Survey:
    """The sizes of a decomposition, which determine its cost.

    Attributes:
        sample: the distinct rows; their values are not used.
        outputs: number of outputs, as far as it is known.
        by_order: functions of each order, the intercept first.
        family: the subsets and their cells; ``None`` for a complete table, whose cells are not listed.
    """

    sample: Sample
    outputs: int
    by_order: tuple[int, ...]
    family: Family | None = None

    @property
    def functions(self) -> int:
        """Functions of all orders, the intercept included."""
        return sum(self.by_order)

    @property
    def subsets(self) -> int:
        """Subsets, the empty one included."""
        return 2 ** len(self.sample.varying) if self.family is None else len(self.family.subsets)

    @property
    def cells(self) -> int:
        """Observed combinations of levels of all subsets together."""
        return prod(n + 1 for n in self.sample.sizes if n > 1) if self.family is None else self.family.n_cells

    @property
    def keys(self) -> int:
        """Length of the flat key space of the family."""
        return self.cells if self.family is None else self.family.n_keys

    @cached_property
    def load(self) -> price.Load:
        """Memory held throughout, besides the work of each phase."""
        return load_of(self.sample, self.outputs)

    @cached_property
    def is_even(self) -> bool:
        """Whether the largest weight is at most ``EVEN`` times the smallest, so that Gram matrices are accurate."""
        return bool(self.sample.weight.max() <= EVEN * self.sample.weight.min())

    @cached_property
    def has_large_pairs(self) -> bool:
        """Whether some subset has too many cells for a table of its functions."""
        return self.family is not None and bool(too_large_for_tables(self.family).any())

    @cached_property
    def rows_of_levels(self) -> IntArray:
        """Distinct rows at each level of the feature whose pairs are solved level by level; empty if there is none."""
        feature = None if self.family is None else level_feature(self.family)
        if feature is None:
            return np.zeros(0, dtype=np.int64)
        return np.bincount(self.sample.codes[feature], minlength=self.sample.sizes[feature])

    @cached_property
    def low_cells(self) -> LowCount:
        """Low cells of the complete table, of which some are missing, and rows that are in none."""
        assert self.family is not None
        low = LowCells.of(self.family, self.sample.codes)
        observed = int((low.numbers(low.shifted_rows(self.sample.codes)) >= 0).sum())
        return LowCount(len(low), len(low) - observed, self.sample.n_rows - observed)

    def extended(self, subsets: list[Subset], threads: int) -> Survey:
        """The survey with the subsets of one more order; raises if a subset is too large for any route."""
        assert self.family is not None
        family = extend(self.family, subsets, self.sample.codes, self.sample.mass, threads)
        refuse_without_table(family)
        added = int(dimensions(family, len(self.family.subsets)).sum())
        return replace(self, family=family, by_order=(*self.by_order, added))


EVEN = 1e3
"""Largest weight over the smallest up to which weights count as even."""


DENSE_WORK, EVEN_DENSE_WORK = 4e9, 4e8
"""Rows x functions x the smaller of the two up to which the dense route is used: about a second of work; and for even
weights, where moments are as accurate and faster (except for the paper's functions, whose Gram matrix is
ill-conditioned)."""

EVEN_DENSE_TABLE = 2_000_000
"""Rows x functions up to which the dense route is used for even weights: it holds several arrays of that size."""


def dense_applies(rows: int, functions: int, *, even: bool) -> bool:
    """Whether an orthogonal factorisation of the functions on the rows is cheap, or cheap enough for even weights."""
    work = rows * functions * min(rows, functions)
    return work <= EVEN_DENSE_WORK and rows * functions <= EVEN_DENSE_TABLE if even else work <= DENSE_WORK


def load_of(sample: Sample, outputs: int) -> price.Load:
    """Memory that the rows of a sample take throughout, besides the work of each phase."""
    whole = sample.counts is not None or bool((sample.weight == np.floor(sample.weight)).all())
    held = (sample.rows_in_memory, sample.n_rows, len(sample.codes), outputs, sample.codes.nbytes)
    widest, blocks = (0, sample.read_bytes) if sample.in_blocks else (sample.counted, None)
    return price.Load(*held, whole, sample.on_disk, widest, blocks, _clustered(sample))


def _clustered(sample: Sample) -> price.Clustered | None:
    """How many rows were drawn in how many clusters; ``None`` where rows are independent."""
    draws = sample.draws
    if draws is None:
        return price.Clustered(sample.rows, sample.rows, sample.clusters) if sample.clusters else None
    if draws.cluster is None or not draws.in_clusters:
        return None
    return price.Clustered(len(draws.group), sample.rows, int(draws.cluster.max()) + 1)


def complete_survey(sample: Sample, outputs: int) -> Survey:
    """The survey of a complete table with all of its subsets."""
    by_order = np.array([1])
    for i in sample.varying:
        by_order = np.convolve(by_order, [1, sample.sizes[i] - 1])
    return Survey(sample, outputs, tuple(int(k) for k in by_order))


def is_complete(sample: Sample) -> bool:
    """Whether every combination of levels occurs."""
    return sample.n_rows == prod(sample.sizes)


def is_product(sample: Sample) -> bool:
    """Whether the distribution on a complete table is the product of its margins, cell by cell."""
    probability = sample.probability
    expected = np.ones_like(probability)
    for row, size in zip(sample.codes, sample.sizes, strict=True):
        expected *= np.bincount(row, weights=probability, minlength=size)[row]
    return bool(np.all(np.abs(probability - expected) <= tolerances.PRODUCT * len(sample.sizes) * expected))
