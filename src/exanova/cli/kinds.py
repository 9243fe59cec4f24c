"""What kind of level a cell of text is: a number, a boolean, or the text itself.

The rule for CSV, which knows no types. A column whose cells are all numbers is read as numbers, so that levels
are in their natural order and can be binned, unless a number is written in a way that numbers are not, such as
``007``: then it is a code, and stays text. ``true`` and ``false``, in one spelling, are booleans. Everything else is
text, ``NA`` and ``null`` too, which mean a missing value only between numbers. New rows are read as the kinds that
were learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exanova.cli.libraries import library
from exanova.cli.text import visible
from exanova.errors import InputError

Kind = Any
"""``"any"`` (whatever the rule says), ``"number"``, ``"boolean"``, ``"text"``, ``"as is"``, or a type of pyarrow."""

INTEGER = r"^(0|-?[1-9][0-9]*)$"
NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
BETWEEN_NUMBERS = r"^(#?N/?A|n/a|[Nn]a[Nn]|NAN|NaT|null|NULL|None)$"
"""Texts that stand for a missing value in a column of numbers."""

BOOLEANS = ({"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"})


def typed(table: Any, kinds: Mapping[str, Kind], others: Kind = "any") -> Any:
    """The table with each column read as the kind asked for; a column that is not of that kind stays as it is.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": ["9", "10", None], "code": ["007", "12", "x"], "yes": ["true", "false", "true"]})
    >>> [str(field.type) for field in typed(table, {}).schema]
    ['int64', 'string', 'bool']
    """
    for k, name in enumerate(table.column_names):
        column = _as_kind(table.column(k), kinds.get(name, others))
        if column is not None:
            table = table.set_column(k, name, column)
    return table


def kinds_of(table: Any) -> dict[str, Kind]:
    """The kinds of the columns of a table, to read another one alike."""
    types = library("pyarrow").types

    def kind(of: Any) -> Kind:
        if types.is_integer(of) or types.is_floating(of):
            return "number"
        return "boolean" if types.is_boolean(of) else "text" if _is_text(of) else of

    return {field.name: kind(field.type) for field in table.schema}


def learned_kinds(anova: Any) -> dict[str, Kind]:
    """The kinds of the levels a decomposition has learned."""
    return {feature.name: _kind_of_levels(feature) for feature in anova.decomposition_.encoding.features}


def as_numbers(table: Any, name: str, option: str) -> Any:
    """A column as a float64 array of NumPy, for a prediction or a weight; an error that shows the cell if it is not."""
    arrow, compute = library("pyarrow"), library("pyarrow.compute")
    column = table.column(name)
    numbers = _numbers(column) if _is_text(column.type) else column
    if numbers is None:
        wrong = compute.invert(compute.match_substring_regex(compute.fill_null(column, ""), NUMBER))
        row = compute.index(wrong, True).as_py()
        hint = ", such as the probability of a class" if option == "--prediction" else ""
        raise InputError(
            f"{option} {name!r} holds {visible(column[row].as_py())!r} in row {row}; expected numbers{hint}."
        )
    if numbers.null_count:
        row = compute.index(compute.is_null(numbers), True).as_py()
        raise InputError(f"{option} {name!r} is missing in {numbers.null_count:,} rows, the first is row {row}.")
    try:
        return numbers.cast(arrow.float64()).to_numpy()
    except (ValueError, NotImplementedError) as error:  # errors of pyarrow are of these kinds
        raise InputError(f"{option} {name!r} is of type {column.type}; expected a column of numbers.") from error


def _kind_of_levels(feature: Any) -> Kind:
    kinds = {type(value) for value in feature.values}
    if feature.edges or (kinds and kinds <= {int, float}):
        return "number"
    if kinds == {bool} or kinds == {str}:
        return "boolean" if kinds == {bool} else "text"
    arrow = library("pyarrow")
    try:
        return arrow.array(list(feature.values)).type  # dates, times, decimals
    except arrow.ArrowException:
        return "as is"


def _as_kind(column: Any, kind: Kind) -> Any:
    """The column as this kind, or ``None`` if it is that already or cannot be."""
    arrow = library("pyarrow")
    if kind == "text":
        return column.cast(arrow.string()) if arrow.types.is_integer(column.type) else None
    if kind == "as is" or not _is_text(column.type):
        return None
    if isinstance(kind, arrow.DataType):
        return _cast(column, kind)
    numbers = _numbers(column) if kind != "boolean" else None
    return _booleans(column) if numbers is None and kind != "number" else numbers


def _numbers(column: Any) -> Any:
    """Text as int64 or float64; ``None`` if a cell is no number."""
    arrow, compute = library("pyarrow"), library("pyarrow.compute")
    distinct = column.unique().drop_null()
    distinct = distinct.filter(compute.invert(compute.match_substring_regex(distinct, BETWEEN_NUMBERS)))
    whole = _all_match(distinct, INTEGER)
    if not len(distinct) or not (whole or _all_match(distinct, NUMBER)):
        return None
    is_word = compute.match_substring_regex(column, BETWEEN_NUMBERS)
    present = compute.if_else(is_word, arrow.NULL, column)
    return _cast(present, arrow.int64() if whole else arrow.float64())  # too many digits: a code, not a quantity


def _cast(column: Any, to: Any) -> Any:
    try:
        return column.cast(to)
    except library("pyarrow").ArrowException:
        return None


def _booleans(column: Any) -> Any:
    compute = library("pyarrow.compute")
    distinct = set(column.unique().drop_null().slice(0, 3).to_pylist())
    spelling = next((pair for pair in BOOLEANS if distinct and distinct <= pair), None)
    return None if spelling is None else compute.equal(column, max(spelling))


def _all_match(texts: Any, pattern: str) -> bool:
    compute = library("pyarrow.compute")
    return bool(compute.all(compute.match_substring_regex(texts, pattern)).as_py())


def _is_text(of: Any) -> bool:
    types = library("pyarrow").types
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))
