"""What a level is: its order among others, its label on a page, its place in a JSON file."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from exanova.data.times import pinned, time_place
from exanova.errors import FileFormatError, InputTypeError
from exanova.typing import Level

MISSING_LABEL = "(missing)"
OTHER_LABEL = "(other)"
ANY_VALUE = "(any value)"
"""The one level of a column that is left out, or that a model never splits."""

JOINED_WIDTH = 20
"""Characters of the names that the label of joined levels lists."""


LONG = 12
"""Digits beyond which a shorter text of a number is tried: nobody writes down that many."""

LARGEST_SINGLE = 3.4e38
"""Size up to which a number may be one of single precision."""


def sort_levels(levels: Iterable[Level]) -> list[Level]:
    """Levels in their natural order; mixed types by the name of the type, then by value.

    Times are in time order, whatever their offsets. Objects without an order are sorted by their text.

    >>> sort_levels(["b", 2, "a", 1.5, True])
    [True, 1.5, 2, 'a', 'b']
    """
    listed = list(levels)
    try:
        return sorted(listed, key=_place)
    except TypeError:
        return sorted(listed, key=lambda level: (_family(level), repr(level)))


def shortest(number: float) -> float:
    """A number of single precision with the digits that it was written with; any other number as it is.

    >>> shortest(0.10000000149011612), shortest(0.1), shortest(1 / 1024), shortest(123456792.0)
    (0.1, 0.1, 0.0009765625, 123456792.0)
    """
    digits = repr(number).lstrip("-0.").split("e")[0].replace(".", "")
    if len(digits) < LONG or not abs(number) < LARGEST_SINGLE or number != float(np.float32(number)):
        return number
    return float(str(np.float32(number)))


def label_levels(levels: Sequence[Level]) -> tuple[str, ...]:
    """One label for each level, all different: text, then quoted text, then a number where needed.

    >>> label_levels(["a", "b", None])
    ('a', 'b', '(missing)')
    >>> label_levels([0.10000000149011612, 0.20000000298023224]), label_levels([0.1, 0.10000000149011612])
    (('0.1', '0.2'), ('0.1', '0.10000000149011612'))
    >>> label_levels([1, "1", "(missing)", None])
    ('1', "'1'", "'(missing)'", '(missing)')
    """
    labels = [MISSING_LABEL if level is None else _text(level) for level in levels]
    repeated = {label for label, count in Counter(labels).items() if count > 1}
    quoted = [
        repr(level) if label in repeated and level is not None else label
        for label, level in zip(labels, levels, strict=True)
    ]
    return tuple(_numbered(quoted))


def _text(level: Level) -> str:
    return str(shortest(level)) if type(level) is float else str(level)


def joined_labels(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of levels: that of its only level, or how many there are and the first of them.

    >>> joined_labels([["a"], ["b", "c"], [str(10115 + k) for k in range(214)]])
    ['a', '2 levels: b, c', '214 levels: 10115, 10116, 10117, ...']
    """
    return [group[0] if len(group) == 1 else f"{len(group):,} levels: {_first_of(group)}" for group in groups]


def _first_of(names: Sequence[str]) -> str:
    """As many names as a label has room for, at least one."""
    shown = 1
    while shown < len(names) and sum(map(len, names[: shown + 1])) + 2 * shown <= JOINED_WIDTH:
        shown += 1
    return ", ".join(names[:shown]) + (", ..." if shown < len(names) else "")


def alike_but_for_blanks(levels: Iterable[Level]) -> tuple[str, str] | None:
    """Two texts among the levels that differ only in blanks before or after them, if there are any.

    >>> alike_but_for_blanks(["N", "Y ", "Y"]), alike_but_for_blanks(["N", "Y "])
    (('Y', 'Y '), None)
    """
    seen: dict[str, str] = {}
    for level in levels:
        if isinstance(level, str) and seen.setdefault(level.strip(), level) != level:
            first, second = sorted((seen[level.strip()], level))
            return first, second
    return None


def other_level(levels: Iterable[Level]) -> str:
    """The level that stands for merged rare levels: ``"(other)"``, or the next free name.

    >>> other_level(["a"]), other_level(["a", "(other)"])
    ('(other)', '(other) 2')
    """
    return _numbered([*(level for level in levels if isinstance(level, str)), OTHER_LABEL])[-1]


def level_to_json(level: Level) -> Any:
    """A JSON value from which ``level_from_json`` makes the same level again.

    >>> level_to_json("a"), level_to_json(None), level_to_json(datetime.date(2024, 5, 1))
    ('a', None, {'type': 'date', 'value': '2024-05-01'})
    """
    kind = type(level)
    if level is None or kind in (str, bool, int) or (kind is float and math.isfinite(level)):
        return level
    for name, (of_kind, write, _) in _TAGGED.items():
        if kind is of_kind:
            return {"type": name, "value": write(level)}
    raise InputTypeError(
        f"The level {level!r} of type {kind.__name__} cannot be written to a file; levels may be strings, "
        "numbers, booleans, dates, times, decimals or missing. Convert the column, for example to strings."
    )


def level_from_json(value: Any) -> Level:
    """The level that ``level_to_json`` wrote.

    >>> level_from_json({"type": "decimal", "value": "1.50"})
    Decimal('1.50')
    """
    if not isinstance(value, dict):
        return value
    try:
        return _TAGGED[value["type"]][2](value["value"])
    except (KeyError, ValueError, TypeError, ArithmeticError) as error:
        raise FileFormatError(
            f"The level {value!r} is not one this version writes; the file was altered or is of a later version."
        ) from error


def _place(level: Level) -> tuple[str, Any]:
    return time_place(level) or (_family(level), level)


def _family(level: Level) -> str:
    """Name under which types are ordered; integers and floats are ordered together."""
    return "float" if type(level) is int else type(level).__name__


def _numbered(labels: Sequence[str]) -> list[str]:
    """Append 2, 3, ... to labels that an earlier one has already taken."""
    used: set[str] = set()
    result = []
    for label in labels:
        candidate, number = label, 2
        while candidate in used:
            candidate, number = f"{label} {number}", number + 1
        used.add(candidate)
        result.append(candidate)
    return result


def _microseconds(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


_TAGGED: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, repr, float),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "datetime": (datetime.datetime, lambda value: pinned(value).isoformat(), datetime.datetime.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "timedelta": (datetime.timedelta, _microseconds, lambda value: datetime.timedelta(microseconds=value)),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}
"""Name, type, writer and reader of the levels that JSON has no type for."""
