"""Bins of a column of numbers or times: how many, where, and their labels."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.binning import cut_positions
from exanova.data.column import Column
from exanova.data.feature import FeatureLevels, is_number
from exanova.data.intervals import are_single, edges_between, interval_labels
from exanova.data.levels import ANY_VALUE, label_levels
from exanova.data.periods import Cut, cut_times
from exanova.data.rules import Bins
from exanova.data.segments import room_around
from exanova.data.splits import ColumnSplits
from exanova.data.thresholds import cut_at_thresholds
from exanova.data.times import time_places
from exanova.typing import FloatArray, Level

MOST_BINS = 32
"""Default number of bins of a column."""

MOST_THRESHOLDS = 64
"""Default number of bins between the thresholds of a model."""

ROWS_OF_A_BIN, FEWEST_ROWS = 10, 5
"""A table with few rows gets so few bins that they hold this many rows on average, and each at least half."""

SLACK, SLACK_IF_ASKED = 1 / 8, 1 / 50
"""Part of a bin that may change sides for a rounder edge: by default, and where a number of bins was given."""

LARGEST_WHOLE = 2.0**53
"""Whole numbers below this are exact as floats, and so is the number one above."""


def measures(column: Column, values: Sequence[Level]) -> str | None:
    """Whether distinct values are all "numbers" or all "times"; ``None`` for names, and for a categorical dtype.

    Numbers that are equal as floats are names.

    >>> measures(Column.from_cells("a", [0.5, 1.5]), [0.5, 1.5])
    'numbers'
    """
    if column.categories is not None or not values:
        return None
    if column.is_numeric or all(map(is_number, values)):
        return None if are_too_long(values) else "numbers"
    return None if time_places(values) is None else "times"


def are_too_long(values: Sequence[Level]) -> bool:
    """Whether numbers have so many digits that most are equal as floats, as those of accounts may: they are names.

    >>> are_too_long([2**60 + k for k in range(9)]), are_too_long([2**60 * k for k in range(9)])
    (True, False)
    """
    largest = max(map(abs, values))
    if largest < LARGEST_WHOLE or largest == math.inf:  # infinities raise a separate error
        return False
    if largest > sys.float_info.max:
        return True
    return 2 * len(set(map(float, values))) < len(values)


def cut_numbers(
    column: Column,
    values: Sequence[Level],
    totals: NDArray[Any],
    n_bins: Bins,
    strategy: str,
    rows: int,
    splits: ColumnSplits | None = None,
) -> FeatureLevels:
    """The bins of a numeric column.

    Args:
        column: the column.
        values: its distinct values (k,).
        totals: (k,) their weights.
        n_bins: how many bins at most.
        strategy: how to cut; with "model", at the thresholds of ``splits``.
        rows: rows that are not missing.
        splits: where the model splits this column.
    """
    numbers, totals = _sorted_numbers(values, totals)
    whole = bool((numbers == np.floor(numbers)).all() and np.abs(numbers).max() < LARGEST_WHOLE)
    single = not whole and are_single(numbers)
    if strategy == "model" and splits is not None:
        most = MOST_THRESHOLDS if n_bins == "auto" or n_bins is None else n_bins
        edges = cut_at_thresholds(numbers, totals.astype(np.float64), splits, most)
        if len(edges) == 2:
            return left_out(column.name)
        return _feature(column, edges, interval_labels(edges, [False] * (len(edges) - 1), whole, single))
    most, least = bin_budget(n_bins, rows, totals)
    starts, alone = cut_positions(numbers, totals, most, strategy, least)
    room = room_around(starts, totals, bin_slack(n_bins, strategy))
    edges = edges_between(numbers, starts, alone, whole, room)
    return _feature(column, edges, interval_labels(edges, alone, whole, single))


def cut_dates(
    column: Column, values: Sequence[Level], totals: NDArray[Any], n_bins: Bins, strategy: str, rows: int
) -> FeatureLevels:
    """The periods of a column of dates, times or durations; by the calendar unless a number of bins was given."""
    _, places = time_places(values) or ("", [])
    order = sorted(range(len(places)), key=places.__getitem__)
    most, least = bin_budget(n_bins, rows, totals)
    by_calendar = n_bins == "auto" and strategy in ("quantile", "model")
    own = "quantile" if strategy == "model" else strategy
    cut = Cut(most, own, least, bin_slack(n_bins, own))
    edges, labels = cut_times([values[k] for k in order], totals[order], cut, calendar=by_calendar)
    return _feature(column, edges, labels)


def bin_budget(n_bins: Bins, rows: int, totals: NDArray[Any]) -> tuple[int, float]:
    """Most bins, and the smallest weight of one.

    >>> bin_budget("auto", 100, np.ones(100)), bin_budget(5, 100, np.ones(100))
    ((10, 5.0), (5, 0.0))
    """
    if n_bins != "auto" and n_bins is not None:
        return n_bins, 0.0
    # Weights that are not counts may add up to anything: their mean stands for one row.
    most = max(2, min(MOST_BINS, rows // ROWS_OF_A_BIN))
    return most, FEWEST_ROWS * float(totals.sum()) / max(rows, 1)


def bin_slack(n_bins: Bins, strategy: str) -> float:
    """Part of a bin that may change sides for a rounder edge; none where edges are not quantiles."""
    if strategy != "quantile":
        return 0.0
    return SLACK if n_bins == "auto" else SLACK_IF_ASKED


def left_out(name: str) -> FeatureLevels:
    """A feature of one level, whatever the column holds."""
    return FeatureLevels(name, (ANY_VALUE,), (ANY_VALUE,), (), (0,), is_left_out=True)


def missing_level(column: Column) -> tuple[Level, ...]:
    """``(None,)`` if the column has missing values."""
    return (None,) if column.missing.any() else ()


def _feature(column: Column, edges: tuple[Level, ...], labels: Sequence[str]) -> FeatureLevels:
    levels = (*labels, *missing_level(column))
    return FeatureLevels(column.name, levels, label_levels(levels), (), tuple(range(len(labels))), edges)


def _sorted_numbers(values: Sequence[Level], totals: NDArray[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """Numbers as sorted distinct floats, and their weights."""
    numbers = np.array(values, dtype=np.float64)
    if (np.diff(numbers) > 0).all():
        return numbers, totals
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return distinct, np.bincount(inverse, weights=totals).astype(totals.dtype)
