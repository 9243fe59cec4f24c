"""Dates and times written as text, as in CSV files: ISO 8601, and nothing ambiguous."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.as_text import AsText, held
from exanova.data.times import time_place
from exanova.typing import Level

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?(?: ?(Z|[+-]\d\d(?::?\d\d)?))?", re.ASCII
)

MICROSECONDS = 6
"""Digits of a second that a datetime of Python keeps."""


DAY, MONTH, YEAR = (
    r"(?:0?[1-9]|[12]\d|3[01])",
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?",
    r"(\d{4}|'?\d{2})",
)
OTHER_DATES = re.compile(
    rf"({DAY}([./-]){DAY}\2{YEAR}|{DAY}[ -]{MONTH}[ ,-]+{YEAR}|{MONTH}[ ]{DAY},?[ ]{YEAR}|{MONTH}[ -]{YEAR})"
    r"([ ,T]+\d{1,2}:\d{2}(:\d{2})?(\s?[ap]m)?)?",
    re.IGNORECASE,
)
"""Dates in the ways of single countries, such as 05/31/2024, 31.5.24, 31-May-2024 or May-2024."""


TO_DATES = "Write such cells as 2024-05-31, for example by pandas.to_datetime, to have them binned by the calendar"

FIRST_DAY, LAST_DAY = 1900_01_01, 2099_12_31
"""Whole numbers between which each may be a day, such as 20240531."""


def dates_as_text(values: Sequence[Level], totals: NDArray[Any]) -> AsText | None:
    """What a column of distinct values (k,) with these totals (k,) holds, if most are dates but not all can be read.

    >>> dates_as_text(["05/31/2024", "6/1/2024"], np.array([3, 1])).describe()
    "4 of 4 cells look like dates written as '05/31/2024'"
    >>> dates_as_text(["2024-05-31", "unknown"], np.array([3, 1])).describe()
    "3 of 4 cells are dates, 1 is not: 'unknown'"
    """
    texts = [value if isinstance(value, str) else "" for value in values]
    written = np.array([bool(OTHER_DATES.fullmatch(text.strip())) for text in texts], bool)
    plain = np.array([time_of_text(text) is not None for text in texts], bool)
    found = None if plain.all() else held("date", values, totals, plain, written)
    return None if found is None else replace(found, rewrite=TO_DATES)


def dates_as_numbers(values: Sequence[Level], totals: NDArray[Any]) -> AsText | None:
    """The same of whole numbers, if every one of them is a day such as 20240531.

    >>> dates_as_numbers([20240531, 20240601], np.array([1, 1])).example, dates_as_numbers([20240532], np.array([1]))
    ('20240531', None)
    """
    if not all(FIRST_DAY <= value <= LAST_DAY and value == int(value) and _is_day(int(value)) for value in values):
        return None
    days = [int(value) for value in values]
    every = np.ones(len(days), dtype=bool)
    found = held("date", days, totals, ~every, every)
    return None if found is None else replace(found, rewrite=TO_DATES)


def _is_day(number: int) -> bool:
    return time_of_text(f"{number // 10_000}-{number // 100 % 100:02d}-{number % 100:02d}") is not None


def times_of_texts(values: Sequence[Level]) -> list[Level] | None:
    """The times that texts stand for; ``None`` unless every one is a date, a time of day, or a date with a time.

    >>> times_of_texts(["2024-05-01", "2024-05-02"])
    [datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)]
    >>> times_of_texts(["2024-05-01T07:30Z"]), times_of_texts(["2024-05-01", "05/02/2024"])
    ([datetime.datetime(2024, 5, 1, 7, 30, tzinfo=datetime.timezone.utc)], None)
    """
    times = []
    for value in values:
        level = time_of_text(value) if isinstance(value, str) else None
        if level is None:
            return None
        times.append(level)
    return times


def time_of_text(text: str) -> Level:
    """The time that a text stands for; ``None`` if it is not a time, such as 2024-02-30.

    What is finer than a microsecond stays text, as in any other column.

    >>> time_of_text("07:30"), time_of_text("2024-02-30"), time_of_text("2024-05-01 00:00:00.000000001")
    (datetime.time(7, 30), None, '2024-05-01 00:00:00.000000001')
    """
    try:
        if _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
        if _TIME.fullmatch(text):
            return datetime.time.fromisoformat(text)
        moment = _MOMENT.fullmatch(text)
        return None if moment is None else _moment(*moment.groups())
    except ValueError:
        return None


def _moment(date: str, clock: str, second: str | None, fraction: str | None, offset: str | None) -> Level:
    digits, zone = (fraction or "").rstrip("0"), "+00:00" if offset == "Z" else offset or ""
    moment = datetime.datetime.fromisoformat(f"{date}T{clock}{second or ''}{zone}")
    if len(digits) <= MICROSECONDS:
        return moment.replace(microsecond=int(digits.ljust(MICROSECONDS, "0") or 0))
    text = f"{moment.isoformat(' ')[:19]}.{digits.ljust(9, '0')}{moment.isoformat()[19:]}"
    return text if time_place(text) is not None else None
