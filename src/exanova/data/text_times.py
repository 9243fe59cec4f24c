"""Dates and times written as text, as in CSV files: ISO 8601, and nothing ambiguous."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

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


def dates_written_otherwise(values: Sequence[Level]) -> str:
    """One of the texts (k,) if all are dates that are not written in the international way; else empty.

    >>> dates_written_otherwise(["05/31/2024", "6/1/2024"]), dates_written_otherwise(["05/31/2024", "red"])
    ('05/31/2024', '')
    """
    texts = [value.strip() if isinstance(value, str) else "" for value in values]
    return texts[0] if texts and all(map(OTHER_DATES.fullmatch, texts)) else ""


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
