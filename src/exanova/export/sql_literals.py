"""Values and names as SQL writes them: quoted identifiers, exact numbers, dates; one record per dialect."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import Level

WHOLE = 2**63
"""Whole numbers from which SQLite has none."""

SHIFT = 62
"""Powers of two that SQLite can write as a whole number."""

LOST = frozenset("\0\r")
"""Characters that end a text of SQL, or that reading a file as text changes into others."""

SAFE_DIGITS, SAFE_POWER = 15, 22
"""Decimals that any reader of numbers turns into the nearest double: this many digits, and this power of ten."""


@dataclass(frozen=True)
class Dialect:
    """How one family of databases writes what the standard does not define.

    Attributes:
        name: its name.
        real: type of floating-point numbers.
        materialized: words that make a common table expression be computed once.
        has_times: whether there are types for dates and times; else they are text.
        has_nan: whether a real number can be NaN, which is then equal to itself.
        folds_case: whether names that differ by case alone are the same.
        character: function that makes a character of its code; empty where there is none.
        has_nul: whether text can hold the character with the code 0.
    """

    name: str
    real: str = "DOUBLE PRECISION"
    materialized: str = ""
    has_times: bool = True
    has_nan: bool = False
    folds_case: bool = False
    character: str = ""
    has_nul: bool = True


DIALECTS = {
    "standard": Dialect("standard"),
    "duckdb": Dialect("duckdb", "DOUBLE", "MATERIALIZED ", has_nan=True, folds_case=True, character="chr"),
    "sqlite": Dialect("sqlite", "REAL", "MATERIALIZED ", has_times=False, folds_case=True, character="char"),
    "postgres": Dialect("postgres", "DOUBLE PRECISION", "MATERIALIZED ", has_nan=True, character="chr", has_nul=False),
}
"""Dialects by name; the standard one is for databases that are close to it."""


def identifier(name: str) -> str:
    """A name in double quotes.

    >>> print(identifier('the "b" column'))
    "the ""b"" column"
    """
    if not name or set(name) & LOST:
        raise InputError(
            f"the column {name!r} has a name that a file of SQL cannot hold; expected at least one character, and none "
            "with the code 0 or 13. Rename the column and fit again."
        )
    return '"' + name.replace('"', '""') + '"'


def text(value: str, dialect: Dialect) -> str:
    """A text in single quotes.

    >>> text("it's", DIALECTS["standard"])
    "'it''s'"
    """
    if not set(value) & LOST:
        return "'" + value.replace("'", "''") + "'"
    if not dialect.character or ("\0" in value and not dialect.has_nul):
        raise InputError(
            f"the level {value!r} holds a character with the code 0 or 13, which {dialect.name} SQL cannot write",
            remedy=[Parameter("dialect", "duckdb"), " and ", Parameter("dialect", "sqlite"), " can"],
        )
    parts = [part for part in re.split("([\0\r])", value) if part]
    written = [f"{dialect.character}({ord(part)})" if part in LOST else text(part, dialect) for part in parts]
    return f"({' || '.join(written)})"


def real(value: float, dialect: Dialect) -> str:
    """A floating-point number, exactly; the exponent makes it one in every dialect.

    SQLite does not read every decimal as the nearest double. Decimals it may misread are written as a whole number and
    powers of two, which it computes without rounding.

    >>> real(0.5, DIALECTS["standard"]), real(-3.0, DIALECTS["duckdb"])
    ('0.5e0', '-3.0e0')
    """
    if not math.isfinite(value):
        return _infinite(value, dialect)
    shown = repr(float(value))
    written = shown if "e" in shown else f"{shown}e0"
    return written if dialect.name != "sqlite" or _is_safe(shown) else _by_powers(value)


def literal(level: Level, dialect: Dialect) -> str:
    """A level of any type."""
    for kind, write in WRITERS:
        if isinstance(level, kind):
            return write(level, dialect)
    raise InputError(
        f"the level {level!r} of type {type(level).__name__} has no literal in SQL; convert the column, for example to "
        "text."
    )


def one_of(expression: str, levels: Sequence[Level], dialect: Dialect) -> str:
    """The condition that an expression is one of some levels."""
    written = [literal(level, dialect) for level in levels]
    return f"{expression} = {written[0]}" if len(written) == 1 else f"{expression} IN ({', '.join(written)})"


def _is_safe(shown: str) -> bool:
    mantissa, _, exponent = shown.lstrip("-").partition("e")
    digits = mantissa.replace(".", "").strip("0")
    after = len(mantissa.partition(".")[2])
    power = int(exponent or 0)
    return len(digits) <= SAFE_DIGITS and power - after >= -SAFE_POWER and power + len(mantissa) <= SAFE_POWER


def _by_powers(value: float) -> str:
    """A number as a whole number times or over powers of two."""
    mantissa, exponent = math.frexp(value)
    whole, power = int(mantissa * 2**53), exponent - 53
    written = f"CAST({whole} AS REAL)"
    sign = "*" if power > 0 else "/"
    for step in [SHIFT] * (abs(power) // SHIFT) + [abs(power) % SHIFT]:
        written += f" {sign} {2**step}" if step else ""
    return f"({written})"


def _infinite(value: float, dialect: Dialect) -> str:
    sign = "-" if value < 0 else ""
    return f"{sign}9e999" if dialect.name == "sqlite" else f"CAST('{sign}Infinity' AS {dialect.real})"


def _whole(level: int, dialect: Dialect) -> str:
    if dialect.name == "sqlite" and not -WHOLE <= level < WHOLE:
        raise InputError(f"the level {level} is beyond the whole numbers of SQLite; convert the column to text.")
    return f"({level + 1} - 1)" if level == -WHOLE else str(level)


def _binary(level: bytes, dialect: Dialect) -> str:
    if dialect.name == "duckdb":
        return "'" + "".join(f"\\x{byte:02X}" for byte in level) + "'::BLOB"
    return f"'\\x{level.hex()}'::bytea" if dialect.name == "postgres" else f"X'{level.hex().upper()}'"


def _decimal(level: decimal.Decimal, dialect: Dialect) -> str:
    return real(float(level), dialect) if dialect.name == "sqlite" else f"{level:f}"


def _datetime(level: datetime.datetime, dialect: Dialect) -> str:
    """A moment; as text, in the order of time, where there is no type for it."""
    shown = f"'{level.isoformat(' ')}'"
    if not dialect.has_times:
        if level.tzinfo is not None:
            raise _no_time("times with an offset", dialect)
        return shown
    if level.tzinfo is None:
        return f"TIMESTAMP {shown}"
    return f"{'TIMESTAMPTZ' if dialect.name == 'duckdb' else 'TIMESTAMP WITH TIME ZONE'} {shown}"


def _date(level: datetime.date, dialect: Dialect) -> str:
    return f"DATE '{level.isoformat()}'" if dialect.has_times else f"'{level.isoformat()}'"


def _clock(level: datetime.time, dialect: Dialect) -> str:
    return f"TIME '{level.isoformat()}'" if dialect.has_times else f"'{level.isoformat()}'"


def _duration(level: datetime.timedelta, dialect: Dialect) -> str:
    if not dialect.has_times:
        raise _no_time("durations", dialect)
    return f"INTERVAL '{level // datetime.timedelta(microseconds=1)} microseconds'"


def _no_time(what: str, dialect: Dialect) -> InputError:
    return InputError(
        f"a column holds {what}, for which {dialect.name} has no type",
        remedy=["Use ", Parameter("dialect", "duckdb"), ", or convert the column and fit again"],
    )


WRITERS: tuple[tuple[type, Callable[[Any, Dialect], str]], ...] = (
    (bool, lambda level, dialect: "TRUE" if level else "FALSE"),
    (int, _whole),
    (float, real),
    (decimal.Decimal, _decimal),
    (str, text),
    (bytes, _binary),
    (uuid.UUID, lambda level, dialect: text(str(level), dialect)),
    (datetime.datetime, _datetime),
    (datetime.date, _date),
    (datetime.time, _clock),
    (datetime.timedelta, _duration),
)
"""The writer for levels of each type; in Python a boolean is an int and a datetime a date, so that they come first."""
