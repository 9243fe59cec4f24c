"""Learning an encoding: which levels a column has, which numbers are binned, which rare levels are merged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.binning import STRATEGIES, bin_codes, bin_edges, bin_labels
from exanova.data.column import Column
from exanova.data.encoding import Encoding, FeatureLevels, finite_numbers
from exanova.data.factor import factorize
from exanova.data.levels import label_levels, other_level, sort_levels
from exanova.data.table import Table
from exanova.data.weights import check_weights, group_totals
from exanova.errors import InputError
from exanova.messages import Action, Parameter, Words, choices
from exanova.typing import Codes, IntArray, Level

MANY_FLOATS = 20
"""More distinct real numbers than this are a measurement, not a category."""

MANY_LEVELS = 50
"""More levels than this, and more than half the rows, are an identifier."""


@dataclass(frozen=True)
class LevelRules:
    """The options of ``learn_encoding`` once they have been checked."""

    min_frequency: float | None
    n_bins: int | Mapping[str, int] | None
    strategy: str

    def bins_of(self, column: Column) -> int | None:
        """Number of bins asked for this column, or ``None``."""
        if isinstance(self.n_bins, Mapping):
            return self.n_bins.get(column.name)
        return self.n_bins if column.is_float else None


def learn_encoding(
    table: Table,
    *,
    weights: Any = None,
    min_frequency: float | None = None,
    n_bins: int | Mapping[str, int] | None = None,
    strategy: str = "quantile",
) -> Encoding:
    """Learn the levels of every column from the rows of positive weight.

    Levels have the order of a categorical dtype, else they are sorted; missing values are a level of their own,
    always the last.

    Args:
        table: the rows, n of them.
        weights: (n,) weights of the rows, or ``None``.
        min_frequency: levels rarer than this are merged in one level "(other)", as in scikit-learn's
            ``OneHotEncoder``: an integer is a (weighted) number of rows, a float between 0 and 1 a share of them.
            Missing values and bins are never merged.
        n_bins: float columns with more distinct values than this are binned; a dictionary names the numeric
            columns to bin, each with its number of bins.
        strategy: "quantile", "uniform" or "kmeans", as in scikit-learn's ``KBinsDiscretizer``.

    >>> table = Table.read(np.array([["b", 3], ["a", None], ["b", 1]], dtype=object))
    >>> learn_encoding(table).levels
    (('a', 'b'), (1, 3, None))
    """
    rules = _check_rules(table, min_frequency, n_bins, strategy)
    weight = check_weights(weights, table.n_rows, table.index)
    if not weight.all():
        kept = np.flatnonzero(weight)
        table, weight = table.rows(kept), weight[kept]
    columns = map(table.column, table.names)
    return Encoding(tuple(_learn_column(column, *factorize(column), weight, rules) for column in columns))


def learn_codes(
    table: Table, weight: NDArray[Any], min_frequency: float | None, n_bins: Any, strategy: str
) -> tuple[Encoding, Codes, Codes]:
    """Learn from rows that all have a positive weight (n,), and encode them in the same pass.

    Returns:
        encoding: as ``learn_encoding`` learns it.
        codes: (d, n) as ``encoding.encode(table)``.
        raw: (d, n) as ``encoding.raw_codes(table)``, up to numbering; ``codes`` itself where that tells as much.
    """
    rules = _check_rules(table, min_frequency, n_bins, strategy)
    narrow = table.n_rows <= np.iinfo(np.int32).max  # there are no more levels than rows
    raw = np.empty((table.n_columns, table.n_rows), dtype=np.int32 if narrow else np.int64)
    features, recodes = [], []
    for row, name in zip(raw, table.names, strict=True):
        column = table.column(name)
        values, row[:] = factorize(column)
        features.append(_learn_column(column, values, row, weight, rules))
        recodes.append(features[-1].recode(values))
    encoding = Encoding(tuple(features))
    codes = raw if encoding.is_lossless else np.empty_like(raw)
    for row, recode, source in zip(codes, recodes, raw, strict=True):
        row[:] = recode[source]
    return encoding, codes, raw


def _learn_column(
    column: Column, values: list[Level], codes: IntArray, weight: NDArray[Any], rules: LevelRules
) -> FeatureLevels:
    if column.is_float:
        finite_numbers(column)
    n_bins = rules.bins_of(column)
    totals = group_totals(weight, codes + 1, len(values) + 1)[1:]
    if n_bins is not None and not column.is_numeric:
        raise InputError(
            Parameter("n_bins"),
            f" names the column {column.name!r}, which does not hold numbers",
            remedy="leave it out",
        )
    if n_bins is not None and len(values) > n_bins:
        return _bin(column, values, totals, n_bins, rules.strategy)
    _check_categorical(column, values)
    feature = _merge_rare(column, values, totals, weight, rules.min_frequency)
    _check_identifier(feature, weight)
    return feature


def _bin(column: Column, values: list[Level], totals: NDArray[Any], n_bins: int, strategy: str) -> FeatureLevels:
    numbers = np.array(values, dtype=np.float64)
    edges = bin_edges(numbers, totals, n_bins, strategy)
    if len(edges) <= n_bins:
        warnings.warn(
            Words(
                f"Column {column.name!r} has {len(edges) - 1} bins instead of {n_bins}: some quantiles or centres "
                "coincide. Ask for fewer bins, or another ",
                Parameter("strategy"),
                ".",
            ),
            stacklevel=2,
        )
    occupied = np.unique(bin_codes(numbers, edges))
    codes = np.full(len(edges) - 1, -1, dtype=np.int64)
    codes[occupied] = np.arange(len(occupied))
    intervals = bin_labels(edges)
    levels = tuple(intervals[k] for k in occupied) + _missing_level(column)
    return FeatureLevels(column.name, levels, label_levels(levels), (), tuple(codes.tolist()), tuple(edges.tolist()))


def _merge_rare(
    column: Column,
    values: list[Level],
    totals: NDArray[Any],
    weight: NDArray[Any],
    min_frequency: float | None,
) -> FeatureLevels:
    ordered = _ordered(values, column.categories)
    rare = _rare_levels(values, totals, weight, min_frequency)
    kept = [value for value in ordered if value not in rare]
    other = (other_level(kept),) if rare else ()
    code_of = {value: code for code, value in enumerate(kept)}
    levels = (*kept, *other, *_missing_level(column))
    codes = tuple(code_of.get(value, len(kept)) for value in ordered)
    return FeatureLevels(column.name, levels, label_levels(levels), tuple(ordered), codes)


def _ordered(values: list[Level], categories: tuple[Level, ...] | None) -> list[Level]:
    if categories is None:
        return sort_levels(values)
    present = set(values)
    return [category for category in categories if category in present]


def _rare_levels(
    values: list[Level], totals: NDArray[Any], weight: NDArray[Any], min_frequency: float | None
) -> set[Level]:
    if min_frequency is None:
        return set()
    least = min_frequency if isinstance(min_frequency, Integral) else min_frequency * weight.sum()
    return {value for value, total in zip(values, totals, strict=True) if total < least}


def _missing_level(column: Column) -> tuple[Level, ...]:
    return (None,) if column.missing.any() else ()


def _check_categorical(column: Column, values: list[Level]) -> None:
    if column.is_float and len(values) > MANY_FLOATS and not all(value.is_integer() for value in values):
        raise InputError(
            f"Column {column.name!r} holds {len(values)} different real numbers and looks continuous; "
            "every feature has to be categorical",
            remedy=[
                "Bin it with ",
                Parameter("n_bins", {column.name: 5}),
                ", ",
                Action("drop", column.name, "drop it"),
                ", or ",
                Action("categorical", column.name, "convert it to a categorical dtype"),
                " if each number is a category",
            ],
        )


def _check_identifier(feature: FeatureLevels, weight: NDArray[Any]) -> None:
    # Counts stand for that many rows; other weights say nothing about how many there were.
    rows = int(weight.sum()) if weight.dtype.kind == "i" else len(weight)
    size = len(feature.levels)
    if size > MANY_LEVELS and 2 * size > rows:
        raise InputError(
            f"Column {feature.name!r} has {size} levels in {rows} rows: more levels than rows make sense of, "
            "as an identifier would have",
            remedy=[
                "Merge its rare levels with ",
                Parameter("min_frequency"),
                ", bin it with ",
                Parameter("n_bins", {feature.name: 5}),
                " if it holds numbers, or ",
                Action("drop", feature.name, "drop the column"),
            ],
        )


def wrong_rules(min_frequency: Any, n_bins: Any, strategy: Any) -> Iterator[InputError]:
    """An error for each of these parameters that cannot be, whatever the table."""
    if strategy not in STRATEGIES:
        yield InputError.given("strategy", strategy, *choices("strategy", STRATEGIES))
    if min_frequency is not None and not _is_frequency(min_frequency):
        yield InputError.given(
            "min_frequency",
            min_frequency,
            "an integer of at least 1 (a number of rows) or a float between 0 and 1 (a fraction of the rows)",
        )
    asked = list(n_bins.values()) if isinstance(n_bins, Mapping) else [] if n_bins is None else [n_bins]
    wrong = [count for count in asked if not (_is_integer(count) and count >= 2)]
    if wrong:
        yield InputError.given("n_bins", wrong[0], "an integer of at least 2")


def _check_rules(table: Table, min_frequency: Any, n_bins: Any, strategy: str) -> LevelRules:
    for error in wrong_rules(min_frequency, n_bins, strategy):
        raise error
    unknown = [name for name in n_bins if name not in table.names] if isinstance(n_bins, Mapping) else []
    if unknown:
        raise InputError(
            Parameter("n_bins"), f" names columns that the table does not have: {', '.join(map(repr, unknown))}."
        )
    return LevelRules(min_frequency, n_bins, strategy)


def _is_frequency(value: Any) -> bool:
    if _is_integer(value):
        return bool(value >= 1)
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
