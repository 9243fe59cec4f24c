"""Times as levels: counts of any unit become Python dates and times, or text where Python has no type that precise.

Two different instants are never the same level. An aware datetime therefore carries a fixed offset instead of a
zone: inside one zone Python takes the two instants of an hour that daylight saving repeats for equal. What is finer
than a microsecond, or outside the years 1 to 9999, becomes text, and that text sorts among the times.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.typing import IntArray, Level

ATTO = 10**18
"""Counts are compared in attoseconds, the finest unit of NumPy, as integers without bound."""

MICRO = ATTO // 10**6

UNITS = {
    **{"W": 7 * 86400 * ATTO, "D": 86400 * ATTO, "h": 3600 * ATTO, "m": 60 * ATTO, "s": ATTO},
    **{"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1},
}
"""Attoseconds of each unit that has a fixed length."""

NAIVE_EPOCH = datetime.datetime(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
LARGEST_DAYS = datetime.timedelta.max.days

_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{9,18}))?"
_DATE_TEXT = re.compile(r"(-?\d{3,}-\d\d-\d\d)", re.ASCII)
_MOMENT_TEXT = re.compile(rf"(-?\d{{3,}}-\d\d-\d\d) {_CLOCK}(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?", re.ASCII)
_TIME_TEXT = re.compile(_CLOCK, re.ASCII)
_SPAN_TEXT = re.compile(rf"(-?\d+) days \+?{_CLOCK}", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def pinned(moment: datetime.datetime) -> datetime.datetime:
    """The same instant with a fixed offset in place of its zone.

    >>> paris = zoneinfo.ZoneInfo("Europe/Paris")
    >>> print(pinned(datetime.datetime(2024, 10, 27, 2, 30, tzinfo=paris, fold=1)))
    2024-10-27 02:30:00+01:00
    """
    offset = moment.utcoffset()
    return moment.replace(tzinfo=None if offset is None else datetime.timezone(offset), fold=0)


def time_zone(name: str) -> datetime.tzinfo:
    """The zone called ``name``, which may be an offset such as "+05:30"; ``ValueError`` if it is not known."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        span = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return datetime.timezone(-span if sign == "-" else span)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"no time zone called {name!r} is known here") from error


def moment_level(count: int, unit: str, zone: datetime.tzinfo | None = None) -> Level:
    """The instant ``count`` units after 1970 began, UTC if there is a ``zone`` to show it in, else wall time.

    >>> moment_level(1, "s"), moment_level(1, "ns")
    (datetime.datetime(1970, 1, 1, 0, 0, 1), '1970-01-01 00:00:00.000000001')
    """
    seconds, rest = divmod(count * UNITS[unit], ATTO)
    micro, fine = divmod(rest, MICRO)
    shown = _shown(seconds, zone)
    if shown is not None and not fine:
        return shown.replace(microsecond=micro)
    if shown is not None:
        return f"{shown.isoformat(' ')[:19]}{_fraction(rest)}{shown.isoformat()[19:]}"
    return f"{_wide_date(seconds)}{_fraction(rest)}{'' if zone is None else '+00:00'}"


def date_level(days: int) -> Level:
    """The date ``days`` days after 1970-01-01."""
    try:
        return NAIVE_EPOCH.date() + datetime.timedelta(days=days)
    except OverflowError:
        return str(np.datetime64(days, "D"))


def time_level(count: int, unit: str) -> Level:
    """The time of day ``count`` units after midnight.

    >>> time_level(3600, "s"), time_level(1, "ns")
    (datetime.time(1, 0), '00:00:00.000000001')
    """
    seconds, rest = divmod(count * UNITS[unit], ATTO)
    micro, fine = divmod(rest, MICRO)
    hours, minutes, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    if fine or not 0 <= hours < 24:
        return f"{hours:02d}:{minutes:02d}:{second:02d}{_fraction(rest)}"
    return datetime.time(hours, minutes, second, micro)


def span_level(count: int, unit: str) -> Level:
    """The duration of ``count`` units.

    >>> span_level(90, "s"), span_level(-1, "ns")
    (datetime.timedelta(seconds=90), '-1 days +23:59:59.999999999')
    """
    seconds, rest = divmod(count * UNITS[unit], ATTO)
    micro, fine = divmod(rest, MICRO)
    days, of_day = divmod(seconds, 86400)
    if fine or abs(days) > LARGEST_DAYS:
        sign = "+" if days < 0 else ""
        return f"{days} days {sign}{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}{_fraction(rest)}"
    return datetime.timedelta(days, of_day, micro)


def array_levels(values: NDArray[Any]) -> tuple[list[Level], IntArray]:
    """Distinct levels of an array of dtype datetime64 or timedelta64 (n,), and codes (n,); -1 for NaT.

    >>> array_levels(np.array(["2024-05-01", "NaT"], dtype="datetime64[D]"))
    ([datetime.date(2024, 5, 1)], array([ 0, -1]))
    """
    unit, step = np.datetime_data(values.dtype)
    if unit in ("Y", "M") and values.dtype.kind == "M":
        values, unit, step = values.astype("datetime64[D]"), "D", 1
    return count_levels(values.view(np.int64), np.isnat(values), _reader(values.dtype.kind, unit, step))


def count_levels(
    counts: NDArray[Any], missing: NDArray[np.bool_], level: Callable[[int], Level]
) -> tuple[list[Level], IntArray]:
    """The levels of the distinct counts that are not missing, and codes (n,) into them; -1 where missing."""
    distinct, inverse = np.unique(counts[~missing], return_inverse=True)
    codes = np.full(len(counts), -1, dtype=np.int64)
    codes[~missing] = inverse
    return [level(count) for count in distinct.tolist()], codes


def time_place(level: Level) -> tuple[str, int] | None:
    """The position of a time among others: a family of comparable times and a number; ``None`` for anything else."""
    for kind, place in _PLACES:
        if isinstance(level, kind):
            return place(level)
    return None


def time_places(levels: Sequence[Level], family: str | None = None) -> tuple[str, list[int]] | None:
    """The family of times and the place of each in it, ``None`` if they are not all times of one family.

    Args:
        levels: what may be times.
        family: the family to place them in; dates and datetimes without offset can be placed among each other.

    >>> time_places([datetime.date(1, 1, 2), datetime.date(1, 1, 1)])
    ('date', [2, 1])
    """
    many = _places_at_once(levels)
    if many is not None and family in (None, many[0]):
        return many
    places = []
    for level in levels:
        place = time_place(level)
        if place is None or (family is not None and (place := _moved(place, family)) is None):
            return None
        family = place[0]
        places.append(place[1])
    return None if family is None else (family, places)


def _places_at_once(levels: Sequence[Level]) -> tuple[str, list[int]] | None:
    """The places of levels that are all dates, or all datetimes without offset; ``None`` for others."""
    types = set(map(type, levels))
    if types == {datetime.date}:
        days = np.array(levels, dtype="M8[D]").astype(np.int64) + NAIVE_EPOCH.toordinal()
        return "date", days.tolist()
    if types == {datetime.datetime} and all(level.tzinfo is None for level in levels):
        return "datetime", [micro * MICRO for micro in np.array(levels, dtype="M8[us]").astype(np.int64).tolist()]
    return None


def _moved(place: tuple[str, int], family: str) -> tuple[str, int] | None:
    """A place of one family in another: a date is its midnight, and a datetime falls on a date."""
    epoch = NAIVE_EPOCH.toordinal()
    if place[0] == family:
        return place
    if (place[0], family) == ("date", "datetime"):
        return family, (place[1] - epoch) * UNITS["D"]
    if (place[0], family) == ("datetime", "date"):
        return family, place[1] // UNITS["D"] + epoch
    return None


def _reader(kind: str, unit: str, step: int) -> Callable[[int], Level]:
    """What a count of an array means; durations without a fixed length stay numbers."""
    if unit not in UNITS:
        return lambda count: count * step
    if kind == "m":
        return lambda count: span_level(count * step, unit)
    if unit in ("D", "W"):
        days = UNITS[unit] // UNITS["D"] * step
        return lambda count: date_level(count * days)
    return lambda count: moment_level(count * step, unit)


def _shown(seconds: int, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    """A whole second as a datetime of Python; ``None`` outside the years it knows."""
    try:
        if zone is None:
            return NAIVE_EPOCH + datetime.timedelta(seconds=seconds)
        moment = EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    try:
        return pinned(moment.astimezone(zone))
    except OverflowError:  # within a day of the first or the last year; the same instant in UTC exists
        return moment


def _wide_date(seconds: int) -> str:
    days, of_day = divmod(seconds, 86400)
    return f"{np.datetime64(days, 'D')} {of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"


def _fraction(atto: int) -> str:
    """A fraction of a second with 9, 12, 15 or 18 digits, as many as it takes; no text for zero."""
    digits = f"{atto:018d}"
    shortest = next((size for size in (9, 12, 15) if not int(digits[size:])), 18)
    return f".{digits[:shortest]}" if atto else ""


def _place_of_moment(moment: datetime.datetime) -> tuple[str, int]:
    if moment.utcoffset() is None:
        return "datetime", _atto(moment.replace(tzinfo=None) - NAIVE_EPOCH)
    return "datetime with offset", _atto(moment - EPOCH)


def _place_of_time(time: datetime.time) -> tuple[str, int] | None:
    place = _clock(time.hour, time.minute, time.second) + time.microsecond * MICRO
    return ("time", place) if time.utcoffset() is None else None


def _place_of_text(text: str) -> tuple[str, int] | None:
    """The place of a text that the functions above write and Python has no time for."""
    for pattern, place in _TEXTS:
        match = pattern.fullmatch(text)
        if match is not None:
            try:
                return place(match.groups())
            except (ValueError, OverflowError):  # a text of another origin, such as "2024-13-01 ..."
                return None
    return None


def _moment_place(parts: Iterable[Any]) -> tuple[str, int] | None:
    date, hour, minute, second, fraction, sign, ahead_hours, ahead_minutes, ahead_seconds = parts
    if fraction is None and _is_known(date):
        return None
    atto = _days(date) * UNITS["D"] + _clock(hour, minute, second, fraction)
    if sign is None:
        return "datetime", atto
    ahead = _clock(ahead_hours, ahead_minutes, ahead_seconds or 0)
    return "datetime with offset", atto - (ahead if sign == "+" else -ahead)


def _date_place(parts: Iterable[Any]) -> tuple[str, int] | None:
    (date,) = parts
    return None if _is_known(date) else ("date", _days(date) + NAIVE_EPOCH.toordinal())


def _time_place(parts: Iterable[Any]) -> tuple[str, int] | None:
    *_, fraction = clock = tuple(parts)
    return None if fraction is None else ("time", _clock(*clock))


def _span_place(parts: Iterable[Any]) -> tuple[str, int] | None:
    days, *clock = parts
    if clock[-1] is None and abs(int(days)) <= LARGEST_DAYS:
        return None
    return "timedelta", int(days) * UNITS["D"] + _clock(*clock)


_TEXTS = (
    (_MOMENT_TEXT, _moment_place),
    (_TIME_TEXT, _time_place),
    (_SPAN_TEXT, _span_place),
    (_DATE_TEXT, _date_place),
)


_PLACES: tuple[tuple[type, Callable[[Any], tuple[str, int] | None]], ...] = (
    (str, _place_of_text),
    (datetime.datetime, _place_of_moment),
    (datetime.date, lambda date: ("date", date.toordinal())),
    (datetime.timedelta, lambda span: ("timedelta", _atto(span))),
    (datetime.time, _place_of_time),
)
"""A datetime is a date too, so that it comes first."""


def _is_known(date: str) -> bool:
    """Whether Python has the year of a date."""
    return datetime.MINYEAR <= int(date[:-6]) <= datetime.MAXYEAR


def _days(date: str) -> int:
    return int(np.datetime64(date, "D").astype(np.int64))


def _clock(hours: Any, minutes: Any, seconds: Any, fraction: str | None = None) -> int:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * ATTO + int((fraction or "0").ljust(18, "0"))


def _atto(span: datetime.timedelta) -> int:
    return span // datetime.timedelta(microseconds=1) * MICRO
