"""Kinds (number, boolean, text) and roles (feature, prediction, weight) of the columns of a table.

The rule for CSV, which has no types, is in :mod:`exanova.sources.text_cells`. New rows are read as the kinds that were
learned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exanova.cli.text import listed, nearest, split_names, visible
from exanova.errors import InputError
from exanova.packages import package
from exanova.sources.text_cells import NUMBER, as_cells, dotted, evidence_of
from exanova.typing import FloatArray

DECIMAL_COMMA = r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"
"""A number with a decimal comma."""

Kind = Any
"""``"any"`` (by the rule above), ``"number"``, ``"boolean"``, ``"text"``, ``"as is"``, or a type of pyarrow."""


@dataclass(frozen=True)
class Choice:
    """Roles of columns as they were typed.

    Attributes:
        features: lists of names; empty for every column without another role.
        ignore: lists of names that are not features.
        prediction: names of the columns with the model's predictions.
        weight: the column of weights, or ``None``.
        clusters, strata: the columns that say how rows were drawn, or ``None``.
    """

    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    prediction: tuple[str, ...] = ()
    weight: str | None = None
    clusters: str | None = None
    strata: str | None = None

    @property
    def apart(self) -> tuple[str, ...]:
        """Columns that cannot be features, because they have another role."""
        others = (self.weight, self.clusters, self.strata)
        return (*self.prediction, *(name for name in others if name is not None))


@dataclass(frozen=True)
class Data:
    """A table divided into features, predictions and weights.

    Attributes:
        features: a pyarrow table.
        predictions: (n,) or (n, m) numbers, or ``None``.
        weight: (n,) numbers, or ``None``.
        names: names of the predictions.
        drawn: (n,) labels of clusters and of strata, by the parameter of ``fit`` they are for.
    """

    features: Any
    predictions: Any
    weight: Any
    names: tuple[str, ...]
    drawn: Mapping[str, Any] = field(default_factory=dict)

    def counted(self) -> Data:
        """The rows of positive weight, which are those of the fit."""
        if self.weight is None or self.weight.all():
            return self
        kept = self.weight > 0
        predictions = None if self.predictions is None else self.predictions[kept]
        return Data(self.features.filter(kept), predictions, self.weight[kept], self.names)


def divide(table: Any, choice: Choice, where: str, wanted: Sequence[str] | None = None) -> Data:
    """Divide a table into features, predictions and weights.

    Args:
        table: as it was read.
        choice: roles of its columns.
        where: the name of the file, for errors.
        wanted: names of the features in the order of the model, if the model states them.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["u", "v"], "colour": ["red", "blue"], "p": [0.5, 0.25]})
    >>> data = divide(table, Choice(ignore=("id",), prediction=("p",)), "t.csv")
    >>> data.features.column_names, data.predictions.tolist()
    (['colour'], [0.5, 0.25])
    """
    known = table.column_names
    for name in choice.apart:
        _check_known(name, known, where)
    features = chosen_features(choice, known, where, wanted)
    predictions = [as_numbers(table, name, "--prediction") for name in choice.prediction]
    weight = None if choice.weight is None else as_numbers(table, choice.weight, "--weight")
    labels = {"clusters": choice.clusters, "strata": choice.strata}
    drawn = {role: _labels(table, name) for role, name in labels.items() if name is not None}
    return Data(table.select(features), _beside(predictions), weight, choice.prediction, drawn)


def check_columns(table: Any, names: Sequence[str], where: str) -> None:
    """Refuse a table that lacks one of these columns, and suggest the name that was probably meant."""
    for name in names:
        _check_known(name, table.column_names, where)


def typed(table: Any, kinds: Mapping[str, Kind], others: Kind = "any", decimal: str = ".") -> Any:
    """The table with each column converted to its kind; a column that cannot be converted is unchanged.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": ["9", "10", None], "code": ["007", "12", "x"], "yes": ["true", "false", "true"]})
    >>> [str(field.type) for field in typed(table, {}).schema]
    ['int64', 'string', 'bool']
    """
    for k, name in enumerate(table.column_names):
        column = _as_kind(table.column(k), kinds.get(name, others), decimal)
        if column is not None:
            table = table.set_column(k, name, column)
    return table


def kinds_of(table: Any) -> dict[str, Kind]:
    """The kinds of the columns of a table, so that another table can be read in the same way."""
    types = package("pyarrow").types

    def kind(of: Any) -> Kind:
        if types.is_integer(of) or types.is_floating(of):
            return "number"
        return "boolean" if types.is_boolean(of) else "text" if _is_text(of) else of

    return {field.name: kind(field.type) for field in table.schema}


def learned_kinds(anova: Any) -> dict[str, Kind]:
    """The kinds of the levels a decomposition has learned."""
    return kinds_of_features(anova.decomposition_.encoding.features)


def kinds_of_features(features: Sequence[Any]) -> dict[str, Kind]:
    """The kinds of the levels of features, so that a table can be read as the one they were learned from."""
    return {feature.name: _kind_of_levels(feature) for feature in features}


def as_numbers(table: Any, name: str, option: str) -> Any:
    """A prediction or a weight as a float64 array of NumPy; the error shows the first cell that is not a number."""
    arrow, compute = package("pyarrow"), package("pyarrow.compute")
    column = table.column(name)
    numbers = _numbers(column) if _is_text(column.type) else column
    if numbers is None:
        wrong = compute.invert(compute.match_substring_regex(compute.fill_null(column, ""), NUMBER))
        row = compute.index(wrong, True).as_py()
        cell = str(column[row].as_py())
        hint = ", such as probabilities of a class" if option == "--prediction" else ""
        if re.fullmatch(DECIMAL_COMMA, cell):
            hint = "; if the comma is the decimal point of this file, add --decimal ','"
        raise InputError(f"{option} {name!r} holds {visible(cell)!r} in row {row}; expected numbers{hint}.")
    if numbers.null_count:
        row = compute.index(compute.is_null(numbers), True).as_py()
        raise InputError(f"{option} {name!r} is missing in {numbers.null_count:,} rows, the first is row {row}.")
    try:
        return numbers.cast(arrow.float64()).to_numpy()
    except (ValueError, NotImplementedError) as error:  # errors of pyarrow are of these kinds
        raise InputError(f"{option} {name!r} is of type {column.type}; expected a column of numbers.") from error


def predictions(anova: Any, table: Any, names: Sequence[str]) -> FloatArray | None:
    """(n, m) predictions in the columns ``names``, one per output; ``None`` without any."""
    if not names:
        return None
    if len(names) != len(anova.output_names_):
        raise InputError(
            f"{len(names)} columns were given with --prediction, but the decomposition has {len(anova.output_names_)} "
            f"outputs: {listed(anova.output_names_)}; give one column for each, in this order."
        )
    return np.stack([as_numbers(table, name, "--prediction") for name in names], axis=1)


def chosen_features(choice: Choice, known: Sequence[str], where: str, wanted: Sequence[str] | None) -> list[str]:
    """The features among the columns ``known``, by the roles that were typed and what the model states."""
    ignored = _named(choice.ignore, known, where)
    apart = {*ignored, *choice.apart}
    asked = _named(choice.features, known, where)
    both = [name for name in asked if name in apart]
    if both:
        raise InputError(f"{listed(both)} cannot be a feature: another option, such as --prediction, names it too.")
    if wanted is not None:
        return _wanted(wanted, asked, apart, known, where)
    features = list(dict.fromkeys(asked)) or [name for name in known if name not in apart]
    if not features:
        raise InputError(f"{where} has no column left for the features; its columns are {listed(known)}.")
    return features


def _wanted(
    wanted: Sequence[str], asked: Sequence[str], apart: set[str], known: Sequence[str], where: str
) -> list[str]:
    """The features of the model: all of them and no others."""
    for name in wanted:
        _check_known(name, known, f"{where}, which the model needs")
    kept_away = [name for name in wanted if name in apart or (asked and name not in asked)]
    if kept_away:
        raise InputError(f"the model needs {listed(kept_away)}, which the options exclude.")
    other = [name for name in asked if name not in wanted]
    if other:
        raise InputError(f"the model has no feature {listed(other)}; its features are {listed(list(wanted))}.")
    return list(wanted)


def _named(texts: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    names = [name for text in texts for name in split_names(text, known, ",")]
    for name in names:
        _check_known(name, known, where)
    return names


def _check_known(name: str, known: Sequence[str], where: str) -> None:
    if name not in known:
        hint = nearest(name, known)
        raise InputError(f"there is no column {name!r} in {where}.{hint or f' Its columns are {listed(known)}.'}")


def _labels(table: Any, name: str) -> Any:
    """(n,) labels of rows, ``None`` where one is missing."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def _beside(predictions: list[Any]) -> Any:
    """One array, with one column per output if there are several."""
    if not predictions:
        return None
    return predictions[0] if len(predictions) == 1 else np.stack(predictions, axis=1)


def _kind_of_levels(feature: Any) -> Kind:
    kinds = {type(value) for value in (feature.edges if feature.is_of_times else feature.values)}
    if (feature.edges and not feature.is_of_times) or (kinds and kinds <= {int, float}):
        return "number"
    if kinds == {bool} or kinds == {str}:
        return "boolean" if kinds == {bool} else "text"
    arrow = package("pyarrow")
    try:
        return arrow.array(list(feature.values or feature.edges)).type  # dates, times, decimals
    except arrow.ArrowException:
        return "as is"


def _as_kind(column: Any, kind: Kind, decimal: str) -> Any:
    """The column converted to this kind, or ``None`` if there is nothing to convert or it cannot be done."""
    arrow = package("pyarrow")
    if kind == "text" and not _is_text(column.type):
        return column.cast(arrow.string()) if arrow.types.is_integer(column.type) else None
    if kind == "text":  # numbers have a point, for they may be predictions or weights
        return None if decimal == "." or _numbers(dotted(column, decimal)) is None else dotted(column, decimal)
    if kind == "as is" or not _is_text(column.type):
        return None
    if isinstance(kind, arrow.DataType):
        return _cast(column, kind)
    numbers = _numbers(dotted(column, decimal)) if kind != "boolean" else None
    return _booleans(column) if numbers is None and kind != "number" else numbers


def _numbers(column: Any) -> Any:
    """Text as int64 or float64; ``None`` if a cell is not a number."""
    kind = evidence_of(column).kind
    return as_cells(column, kind) if kind in ("integer", "real") else None


def _booleans(column: Any) -> Any:
    return as_cells(column, "boolean") if evidence_of(column).spellings and column.null_count < len(column) else None


def _cast(column: Any, to: Any) -> Any:
    try:
        return column.cast(to)
    except package("pyarrow").ArrowException:
        return None


def _is_text(of: Any) -> bool:
    types = package("pyarrow").types
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))
