"""From a column of a database to the code of its level: the rule of an encoding as a CASE expression.

A level that was not learned has no code (NULL), nor has a value that cannot be one, such as infinity in a column of
bins.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from exanova.data.feature import UNKNOWN, FeatureLevels
from exanova.errors import InputError
from exanova.export.sql_literals import Dialect, literal, one_of, real
from exanova.typing import Level

JOINED_FROM = 64
"""Values of a column from which they are looked up in a joined table; below that a CASE is easier to read."""

MOST_JOINS = 50
"""Columns that are looked up that way at most: SQLite joins no more than 64 tables."""

BRANCHES = 16
"""Branches of one CASE; more are nested, so that time grows with the logarithm of their number."""


@dataclass(frozen=True)
class Coded:
    """A column and the expression of its code.

    Attributes:
        code: expression of the code.
        impossible: condition that the column holds what no level can be; empty if it cannot.
        table: lines of the table that is joined to look codes up; empty for none.
        on: condition of that join.
    """

    code: str
    impossible: str = ""
    table: tuple[str, ...] = ()
    on: str = ""


def coded(feature: FeatureLevels, column: str, dialect: Dialect, joined: str = "", between: bool = False) -> Coded:
    """The code of a column.

    Args:
        feature: the levels and the rule.
        column: expression of the column.
        dialect: how to write it.
        joined: name of a table to look values up in, if there are many; empty to use a CASE for any number.
        between: whether numbers never observed have the codes of their places between those that were.
    """
    if feature.edges:
        return _of_bins(feature, column, dialect)
    kind = _kind(feature)
    shown = f"CAST({column} AS VARCHAR)" if kind == "text" and dialect.name == "duckdb" else column
    missing = _missing(column, kind == "number", dialect)
    other = _places(feature, column, dialect) if between and feature.between is not None else ""
    if joined and len(feature.values) >= JOINED_FROM:
        lines = tuple(
            f"({literal(value, dialect)}, {code})" for value, code in zip(feature.values, feature.codes, strict=True)
        )
        otherwise = f'COALESCE({joined}."c", {other})' if other else f'{joined}."c"'
        code = f"CASE WHEN {missing} THEN {_code(feature.missing_code)} ELSE {otherwise} END"
        return Coded(code, "", lines, f'{shown} = {joined}."v"')
    return Coded(_by_values(feature, shown, missing, dialect, other))


def _places(feature: FeatureLevels, column: str, dialect: Dialect) -> str:
    """The code of the place of a number that is not a level; NULL for what is not a finite number."""
    assert feature.between is not None
    edges = [real(edge, dialect) for edge in feature.between.edges.tolist()]
    codes = [str(len(feature.levels) + k) for k in range(len(feature.between))]
    place = stairs(f"CAST({column} AS {dialect.real})", edges, codes)
    return f"CASE WHEN {_impossible(column, dialect)} THEN NULL ELSE {place} END"


def _by_values(feature: FeatureLevels, column: str, missing: str, dialect: Dialect, other: str) -> str:
    groups: dict[int, list[Level]] = {}
    for value, code in zip(feature.values, feature.codes, strict=True):
        groups.setdefault(code, []).append(value)
    lines = [f"WHEN {one_of(column, values, dialect)} THEN {code}" for code, values in groups.items() if code >= 0]
    lines += [f"ELSE {other}"] if other else []
    return "\n      ".join([f"CASE WHEN {missing} THEN {_code(feature.missing_code)}", *lines]) + " END"


def _of_bins(feature: FeatureLevels, column: str, dialect: Dialect) -> Coded:
    """Edges belong to the bin above them; the first and the last bin reach beyond their ends."""
    times = feature.is_of_times
    value = _comparable_time(column, dialect) if times else f"CAST({column} AS {dialect.real})"
    edges = [_edge(edge, dialect) for edge in feature.edges[1:-1]]
    codes = [_code(code) for code in feature.codes[: len(edges) + 1]]
    missing = _missing(column, not times, dialect)
    impossible = "" if times else _impossible(column, dialect)
    checked = f"\n      WHEN {impossible} THEN NULL" if impossible else ""
    code = (
        f"CASE WHEN {missing} THEN {_code(feature.missing_code)}{checked}\n      ELSE {stairs(value, edges, codes)} END"
    )
    return Coded(code, f"({column} IS NOT NULL AND {impossible})" if impossible else "")


def stairs(value: str, edges: Sequence[str], leaves: Sequence[str]) -> str:
    """The leaf between the edges that a value lies between, nested where there are many.

    >>> stairs("x", ["1", "2"], ["'a'", "'b'", "'c'"])
    "CASE WHEN x < 1 THEN 'a' WHEN x < 2 THEN 'b' ELSE 'c' END"
    """
    if not edges:
        return leaves[0]
    if len(leaves) > BRANCHES:
        size = -(-len(leaves) // BRANCHES)
        starts = range(0, len(leaves), size)
        inner = [stairs(value, edges[k : k + size - 1], leaves[k : k + size]) for k in starts]
        return stairs(value, [edges[k - 1] for k in starts if k], inner)
    steps = [f"WHEN {value} < {edge} THEN {leaf}" for edge, leaf in zip(edges, leaves[:-1], strict=True)]
    return f"CASE {' '.join(steps)} ELSE {leaves[-1]} END"


def _code(code: int) -> str:
    return "NULL" if code == UNKNOWN else str(code)


def _missing(column: str, is_number: bool, dialect: Dialect) -> str:
    """Null, and NaN where numbers can be that."""
    if not is_number or dialect.name == "sqlite":
        return f"{column} IS NULL"
    if dialect.has_nan:
        return f"{column} IS NULL OR CAST({column} AS {dialect.real}) = CAST('NaN' AS {dialect.real})"
    return f"{column} IS NULL OR {column} <> {column}"


def _impossible(column: str, dialect: Dialect) -> str:
    """Condition that the column is not a finite number."""
    if dialect.name == "sqlite":  # where a column may hold anything
        return f"(typeof({column}) NOT IN ('integer', 'real') OR {column} IN (9e999, -9e999))"
    largest = real(1.7976931348623157e308, dialect)
    return f"(CAST({column} AS {dialect.real}) > {largest} OR CAST({column} AS {dialect.real}) < -{largest})"


def _comparable_time(column: str, dialect: Dialect) -> str:
    """Text of times that sorts as they do, where they are text."""
    return column if dialect.has_times else f"replace({column}, 'T', ' ')"


def _edge(edge: Level, dialect: Dialect) -> str:
    if isinstance(edge, int | float):
        return real(float(edge), dialect)
    if not dialect.has_times and isinstance(edge, datetime.datetime) and edge.time() == datetime.time():
        return literal(edge.date(), dialect) if edge.tzinfo is None else literal(edge, dialect)  # before any time of it
    return literal(edge, dialect)


KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("text", (str,)),
    ("truth value", (bool,)),
    ("number", (int, float, decimal.Decimal)),
    ("binary", (bytes,)),
    ("uuid", (uuid.UUID,)),
    ("datetime", (datetime.datetime,)),
    ("date", (datetime.date,)),
    ("time", (datetime.time,)),
    ("duration", (datetime.timedelta,)),
)
"""Kinds of values, of which a column of a database holds one. In Python a boolean is an int, and a datetime a date."""


def _kind(feature: FeatureLevels) -> str:
    kinds = list(dict.fromkeys(map(_kind_of, feature.values)))
    if len(kinds) > 1:
        raise InputError(
            f"the column {feature.name!r} holds levels of several kinds ({', '.join(kinds)}), and a column of a "
            "database has one; convert it, for example to text, and fit again."
        )
    return kinds[0] if kinds else "text"


def _kind_of(value: Level) -> str:
    return next((name for name, types in KINDS if isinstance(value, types)), type(value).__name__)
