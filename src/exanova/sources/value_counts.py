"""The distinct values of every column with their weights, block by block: all that levels are learned from.

Counts of blocks, files and workers are merged, in any order, to the counts of all rows. Where a column holds more
numbers than are worth keeping, their last binary digits are dropped: how many depends on the numbers alone and not on
how they were split, and bins move by no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.factor import factorize
from exanova.data.feature import NO_INFINITY
from exanova.data.learning import CountedValues, steady
from exanova.data.weights import group_totals
from exanova.errors import InputError, MemoryLimitError
from exanova.typing import FloatArray, IntArray, Level

MOST_NUMBERS = 2**23
"""Distinct numbers of a column that are kept as they are, if memory allows."""

NUMBER_BYTES, NUMBER_SHARE = 45, 0.4
"""Bytes of a distinct number while those of all columns are merged, and the fraction of the memory limit for them."""

FEWEST_NUMBERS = 2**16
"""Distinct numbers of a column that are kept as they are whatever the memory limit, for bins that mean something."""

MOST_NAMES = 2**22
"""Distinct values of a column that holds no numbers; such a column names rows and not levels."""

SIGNIFICAND = 52
"""Binary digits of a float that can be dropped; what is left is its sign and its power of two."""


@dataclass(frozen=True, eq=False)
class NumberCounts:
    """The distinct numbers of a column.

    Attributes:
        values: (k,) sorted, int64, uint64, float64 or bool.
        totals: (k,) their weights.
        rows: rows that are not missing.
        missing: whether some rows are.
        dropped: binary digits that were dropped; 0 where values are as they were given.
    """

    values: NDArray[Any]
    totals: FloatArray
    rows: int
    missing: bool
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class NameCounts:
    """The distinct values of a column that is not stored as numbers.

    Attributes:
        totals: the weight of every value.
        rows: rows that are not missing.
        missing: whether some rows are.
        categories: categories of the dtype in their order, or ``None``.
        is_ordered: whether the dtype says that their order means something.
    """

    totals: dict[Level, float]
    rows: int
    missing: bool
    categories: tuple[Level, ...] | None = None
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.totals)


ValueCounts = NumberCounts | NameCounts


def numbers_within(limit: int, columns: int) -> int:
    """Distinct numbers that each of that many columns may keep under a memory limit.

    >>> numbers_within(10**12, 10) == MOST_NUMBERS
    True
    """
    share = int(NUMBER_SHARE * limit / (NUMBER_BYTES * max(1, columns)))
    return min(MOST_NUMBERS, max(FEWEST_NUMBERS, share))


def count_column(column: Column, weight: FloatArray, copies: FloatArray, most: int) -> ValueCounts:
    """The values of one block, whose rows have the total weight (n,) and stand for that many rows (n,) each.

    Of numbers, at most ``most`` different ones are kept.
    """
    missing = bool(column.missing.any())
    rows = int(copies[~column.missing].sum()) if missing else int(copies.sum())
    if column.codes is None and column.values.dtype != object:
        present = ~column.missing
        own, total = (column.values[present], weight[present]) if missing else (column.values, weight)
        _refuse_infinite(column.name, own)
        distinct, inverse = _distinct_numbers(own)
        return _shortened(NumberCounts(distinct, _totals(inverse, total, len(distinct)), rows, missing), most)
    levels, codes = factorize(column)
    totals = group_totals(weight, codes + 1, len(levels) + 1)[1:]
    named = dict(zip(levels, totals.tolist(), strict=True))
    return NameCounts(named, rows, missing, column.categories, column.is_ordered)


def merge_counts(name: str, several: Sequence[ValueCounts], most: int) -> ValueCounts:
    """The counts of all rows, from those of their parts; of numbers, at most ``most`` different ones."""
    rows, missing = sum(counts.rows for counts in several), any(counts.missing for counts in several)
    numbers = [counts for counts in several if isinstance(counts, NumberCounts)]
    if len(numbers) == len(several):
        dropped = max(counts.dropped for counts in numbers)
        alike = [_drop(counts, dropped) for counts in numbers]
        values, inverse = np.unique(np.concatenate([counts.values for counts in alike]), return_inverse=True)
        totals = _totals(inverse, np.concatenate([counts.totals for counts in alike]), len(values))
        return _shortened(NumberCounts(values, totals, rows, missing, dropped), most)
    return _merge_names(name, [_as_names(counts) for counts in several], rows, missing)


def counted(name: str, counts: ValueCounts, whole: bool) -> CountedValues:
    """The counts as levels are learned from them; totals are whole numbers if all weights are."""
    kind = np.int64 if whole else np.float64
    rows = int(_total(counts)) if whole else counts.rows  # counts stand for that many rows
    if isinstance(counts, NumberCounts):
        cells = np.append(counts.values, np.zeros(int(counts.missing), dtype=counts.values.dtype))
        column = Column(name, cells, np.arange(len(cells)) >= len(counts.values))
        return CountedValues(column, counts.values.tolist(), steady(counts.totals.astype(kind)), rows)
    levels = list(counts.totals)
    codes = np.append(np.arange(len(levels)), np.full(int(counts.missing), -1))
    column = Column.from_codes(name, levels, codes, counts.categories, counts.is_ordered)
    return CountedValues(column, levels, steady(np.array(list(counts.totals.values()), dtype=kind)), rows)


def _total(counts: ValueCounts) -> float:
    return float(counts.totals.sum() if isinstance(counts, NumberCounts) else sum(counts.totals.values()))


def _distinct_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted distinct numbers in a wide dtype, and which of them each is."""
    if values.dtype.kind == "f":
        # Adding zero turns -0.0 into 0.0, its equal.
        distinct, inverse = np.unique(values.astype(np.float64) + 0.0, return_inverse=True)
        return distinct, inverse
    levels, inverse = factorize(Column("", values, np.zeros(len(values), dtype=bool)))
    wide = np.bool_ if values.dtype.kind == "b" else np.uint64 if values.dtype == np.uint64 else np.int64
    return np.array(levels, dtype=wide), inverse


def _totals(inverse: IntArray, weight: FloatArray, size: int) -> FloatArray:
    return np.bincount(inverse, weight, size).astype(np.float64)


def _refuse_infinite(name: str, values: NDArray[Any]) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"Column {name!r} holds an infinite value", remedy=NO_INFINITY)


def _shortened(counts: NumberCounts, most: int) -> NumberCounts:
    """The counts with as few digits dropped as brings them to ``most``."""
    while len(counts) > most and counts.dropped < SIGNIFICAND:
        counts = _drop(counts, counts.dropped + 1)
    return counts


def _drop(counts: NumberCounts, dropped: int) -> NumberCounts:
    """The counts of the numbers without their last ``dropped`` binary digits."""
    if dropped == counts.dropped:
        return counts
    bits = np.ascontiguousarray(counts.values, dtype=np.float64).view(np.int64)
    values, inverse = np.unique((bits >> dropped << dropped).view(np.float64) + 0.0, return_inverse=True)
    return replace(counts, values=values, totals=_totals(inverse, counts.totals, len(values)), dropped=dropped)


def _as_names(counts: ValueCounts) -> NameCounts:
    """Numbers as values of any kind, for the rare column that is stored as numbers in some blocks only."""
    if isinstance(counts, NameCounts):
        return counts
    return NameCounts(
        dict(zip(counts.values.tolist(), counts.totals.tolist(), strict=True)), counts.rows, counts.missing
    )


def _merge_names(name: str, several: Sequence[NameCounts], rows: int, missing: bool) -> NameCounts:
    totals: dict[Level, float] = {}
    for counts in several:
        for value, total in counts.totals.items():
            totals[value] = totals.get(value, 0.0) + total
    if len(totals) > MOST_NAMES:
        raise MemoryLimitError(
            f"the column {name!r} holds more than {MOST_NAMES:,} different values that are not numbers; it "
            "identifies rows, so that no effect of it can be learned",
            remedy="Leave it out of the rows",
        )
    categories = _joined(several)
    return NameCounts(totals, rows, missing, categories, any(counts.is_ordered for counts in several))


def _joined(several: Sequence[NameCounts]) -> tuple[Level, ...] | None:
    """All categories, each once, in the order in which they first occur."""
    listed = [counts.categories for counts in several if counts.categories is not None]
    return tuple(dict.fromkeys(level for categories in listed for level in categories)) if listed else None
