"""Learning an encoding: which levels a column has, which columns are cut or left out, which rare levels are merged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.as_text import AsText
from exanova.data.column import Column
from exanova.data.column_notes import Notes
from exanova.data.cutting import cut_dates, cut_numbers, left_out, measures, missing_level
from exanova.data.encoding import Encoding
from exanova.data.every_column import EveryColumn
from exanova.data.factor import factorize
from exanova.data.feature import FeatureLevels, finite_numbers, is_number
from exanova.data.levels import alike_but_for_blanks, label_levels, other_level, sort_levels
from exanova.data.number_texts import numbers_as_text
from exanova.data.recoding import code_type, is_identity, recoded
from exanova.data.rules import MANY, LevelRules, NBins, check_rules
from exanova.data.splits import ModelSplits
from exanova.data.table import Table
from exanova.data.text_times import dates_as_numbers, dates_as_text, times_of_texts
from exanova.data.times import time_places
from exanova.data.trees import read_splits
from exanova.data.values import is_model
from exanova.data.weights import check_weights, group_totals
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import Codes, IntArray, Level

MANY_LEVELS = 50
"""A column with more levels than this, and than half the rows, is an identifier."""

WEIGHT_DIGITS = 40
"""Binary digits of sums of real weights, relative to that of all, that bins are found by."""

IDENTIFIERS = frozenset({"id", "ids", "uid", "pid", "uuid", "guid", "key", "identifier", "rownames"})
"""Last words in the names of integer columns that only identify rows."""


def learn_encoding(
    table: Table,
    *,
    weights: Any = None,
    min_frequency: float | None = None,
    n_bins: NBins = "auto",
    strategy: str = "quantile",
    model: Any = None,
) -> Encoding:
    """Learn the levels of every column from the rows of positive weight.

    Levels have the order of a categorical dtype, else they are sorted; missing values are a level of their own,
    always the last. Dates and times written as text (ISO 8601) are cut like others.

    Args:
        table: the rows, n of them.
        weights: (n,) weights of the rows, or ``None``.
        min_frequency: levels rarer than this are merged in one level "(other)", as in scikit-learn's
            ``OneHotEncoder``: an integer is a (weighted) number of rows, a float between 0 and 1 a share of them.
            Missing values and bins are never merged.
        n_bins: numbers and times with more than 20 distinct values are cut: "auto" into up to 32 bins of about as
            many rows (times by the calendar), a number into that many, ``None`` not at all. A mapping gives this for
            the columns it names.
        strategy: "quantile", "uniform" or "kmeans", as in scikit-learn's ``KBinsDiscretizer``, or "model" to cut
            where the trees of ``model`` split.
        model: the model whose thresholds are read.

    >>> table = Table.read(np.array([["b", 3], ["a", None], ["b", 1]], dtype=object))
    >>> learn_encoding(table).levels
    (('a', 'b'), (1, 3, None))
    """
    weight = check_weights(weights, table.n_rows, table.index)
    if not weight.all():
        kept = np.flatnonzero(weight)
        table, weight = table.rows(kept), weight[kept]
    return learn_codes(table, weight, min_frequency, n_bins, strategy, model)[0]


def learn_codes(
    table: Table,
    weight: NDArray[Any],
    min_frequency: float | None,
    n_bins: NBins,
    strategy: str,
    model: Any = None,
) -> tuple[Encoding, Codes, Codes, int]:
    """Learn from rows that all have a positive weight (n,), and encode them in the same pass.

    Returns:
        encoding: as ``learn_encoding`` learns it.
        codes: (d, n) as ``encoding.encode(table)``.
        raw: (d, n) as ``encoding.raw_codes(table)``, up to numbering; ``codes`` itself where that gives the same
            partition.
        widest: distinct values of the column that has most.
    """
    rules = check_rules(table, min_frequency, n_bins, strategy)
    splits = read_splits(model, table.names) if strategy == "model" else None
    raw = np.empty((table.n_columns, table.n_rows), dtype=np.int8)
    features, recodes, notes, wrong = [], [], Notes(), EveryColumn()
    total, widest = weight.sum(), 0
    for k, name in enumerate(table.names):
        with wrong.noted():
            column = table.column(name)
            values, codes = factorize(column)
            widest = max(widest, len(values))
            if len(values) > np.iinfo(raw.dtype).max:
                raw = raw.astype(code_type(len(values)))
            raw[k] = codes
            counted = count_values(column, values, raw[k], weight)
            features.append(learn_feature(counted, total, rules, splits, notes))
            recodes.append(features[-1].recode(values).astype(raw.dtype))
    wrong.give()
    notes.give(is_model(model))
    encoding = Encoding(tuple(features))
    return encoding, _recoded_rows(recodes, raw, in_place=encoding.is_lossless), raw, widest


def _recoded_rows(recodes: Sequence[NDArray[Any]], raw: Codes, in_place: bool) -> Codes:
    """(d, n) codes from raw ones, row by row; where nothing is lost ``raw``, then redundant, is overwritten."""
    codes = raw if in_place else np.empty_like(raw)
    for row, recode, source in zip(codes, recodes, raw, strict=True):
        if not (in_place and is_identity(recode)):
            row[:] = recoded(recode, source)
    return codes


@dataclass(frozen=True, eq=False)
class CountedValues:
    """The distinct values of one column with their weights: everything that its levels are learned from.

    Attributes:
        column: the column, or one that holds each of its values once.
        values: (k,) distinct values that are not missing.
        totals: (k,) their weights.
        rows: rows that are not missing. Counts stand for that many rows; other weights do not say how many there were.
    """

    column: Column
    values: list[Level]
    totals: NDArray[Any]
    rows: int


def count_values(column: Column, values: list[Level], codes: IntArray, weight: NDArray[Any]) -> CountedValues:
    """The distinct ``values`` (k,) of a column, counted by its codes (n,) and the weights (n,) of the rows."""
    totals = group_totals(weight, codes, len(values) + 1, lowest=-1)[1:]
    rows = int(totals.sum()) if weight.dtype.kind == "i" else int(np.count_nonzero(codes >= 0))
    return CountedValues(column, values, steady(totals), rows)


def steady(totals: NDArray[Any]) -> NDArray[Any]:
    """Sums (k,) of real weights without the last digits, which depend on the order in which they were added up.

    Whole numbers are exact and stay as they are.

    >>> steady(np.array([0.1 + 0.2, 0.3])).tolist()[0] == steady(np.array([0.3, 0.3])).tolist()[0]
    True
    """
    if totals.dtype.kind == "i" or not len(totals):
        return totals
    step = 2.0 ** (np.ceil(np.log2(float(totals.sum()) or 1.0)) - WEIGHT_DIGITS)
    return np.asarray(np.maximum(np.rint(totals / step), 1.0) * step)


def learn_feature(
    counted: CountedValues, total: float, rules: LevelRules, splits: ModelSplits | None, notes: Notes
) -> FeatureLevels:
    """The levels of one column of a table whose rows weigh ``total`` together."""
    column, values, totals, rows = counted.column, counted.values, counted.totals, counted.rows
    name = column.name
    if column.is_float:
        finite_numbers(column)
    asked = rules.is_named(name) and rules.bins_of(name) is not None
    kind = measures(column, values) if len(values) > MANY or asked else None
    dated = _dated(counted, rules) if kind is None and (len(values) > MANY or asked) else None
    if dated is not None:
        return cut_dates(column, *dated, rules.bins_of(name), rules.strategy, rows)
    if asked and kind is None and values:
        raise InputError(
            Parameter("n_bins"),
            f" names the column {name!r}, which does not hold numbers or times that can be cut",
            remedy="leave it out",
        )
    if kind is None or rules.keeps(name, len(values)):
        feature = _merge_rare(column, values, totals, total, rules.min_frequency)
        return _checked(feature, counted, kind, notes) if kind is None or not asked else feature
    if kind == "times":
        return cut_dates(column, values, totals, rules.bins_of(name), rules.strategy, rows)
    if not asked and _is_numbering(column, len(values), rows):
        notes.identifiers[name] = len(values)
        return left_out(name)
    if splits is not None and name in splits.unreadable:
        notes.unreadable[name] = splits.unreadable[name]
        return left_out(name)
    days = None if asked else dates_as_numbers(values, totals)
    if days is not None:
        notes.cut[name] = days
    own = None if splits is None else splits.of(name)
    return cut_numbers(column, values, totals, rules.bins_of(name), rules.strategy, rows, own)


def _dated(counted: CountedValues, rules: LevelRules) -> tuple[list[Level], NDArray[Any]] | None:
    """Distinct times with their weights, of a column in which they are written as text and which is to be cut."""
    column = counted.column
    if column.categories is not None or rules.bins_of(column.name) is None or not counted.values:
        return None
    times = times_of_texts(counted.values)
    placed = None if times is None else time_places(times)
    if times is None or placed is None:
        return None
    _, first, same = np.unique(np.array(placed[1], dtype=object), return_index=True, return_inverse=True)
    totals = np.bincount(same, weights=counted.totals).astype(counted.totals.dtype)
    return [times[k] for k in first], totals


def _checked(feature: FeatureLevels, counted: CountedValues, kind: str | None, notes: Notes) -> FeatureLevels:
    """The feature unchanged, unless it has too many levels; ``notes`` then records it."""
    column, values, size = counted.column, counted.values, len(feature.levels)
    many = size > MANY_LEVELS and 2 * size > counted.rows
    if kind is not None and (many or (column.is_float and not all(value.is_integer() for value in values))):
        notes.refused[column.name] = len(values)
        return feature
    text = _read_as_text(counted) if kind is None and size > MANY and column.categories is None else None
    if many and text is not None:
        notes.left_out[column.name] = text
    elif many:
        notes.identifiers[column.name] = size
    elif text is not None and text.certain:
        notes.named[column.name] = text
    elif column.categories is None and (alike := alike_but_for_blanks(values)):
        notes.blanks[column.name] = alike
    return left_out(column.name) if many else feature


def _read_as_text(counted: CountedValues) -> AsText | None:
    """What names hold that would be dates or numbers in another writing."""
    return dates_as_text(counted.values, counted.totals) or numbers_as_text(counted.values, counted.totals)


def _is_numbering(column: Column, size: int, rows: int) -> bool:
    """Whether integers only identify rows: there are about as many as rows, and the name says so."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", column.name)
    named = bool(words) and (words[-1].lower() in IDENTIFIERS or column.name in ("index", "Unnamed: 0"))
    if not named or size <= MANY_LEVELS or 2 * size <= rows:
        return False
    return not column.is_float or bool((np.mod(finite_numbers(column), 1.0) == 0.0).all())


def _merge_rare(
    column: Column,
    values: list[Level],
    totals: NDArray[Any],
    total: float,
    min_frequency: float | None,
) -> FeatureLevels:
    ordered = _ordered(values, column.categories)
    rare = _rare_levels(values, totals, total, min_frequency)
    kept = [value for value in ordered if value not in rare]
    other = (other_level(kept),) if rare else ()
    code_of = {value: code for code, value in enumerate(kept)}
    levels = (*kept, *other, *missing_level(column))
    codes = tuple(code_of.get(value, len(kept)) for value in ordered)
    labels = label_levels(levels)
    numbers = column.categories is None and all(map(is_number, ordered))
    return FeatureLevels(
        *(column.name, levels, labels, tuple(ordered), codes), is_ordered=column.is_ordered, of_numbers=numbers
    )


def _ordered(values: list[Level], categories: tuple[Level, ...] | None) -> list[Level]:
    if categories is None:
        return sort_levels(values)
    present = set(values)
    return [category for category in categories if category in present]


def _rare_levels(values: list[Level], totals: NDArray[Any], total: float, min_frequency: float | None) -> set[Level]:
    if min_frequency is None:
        return set()
    least = min_frequency if isinstance(min_frequency, Integral) else min_frequency * total
    return {value for value, own in zip(values, totals, strict=True) if own < least}
