"""Times cut into periods: by the calendar where it fits their span, else into intervals that begin at round times.

Levels are intervals in time order. A calendar unit is chosen by the number of periods in which rows occur; a period
without rows joins the one before it. Times with an offset are binned by their local time.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.binning import cut_positions
from exanova.data.segments import room_around
from exanova.data.times import time_places
from exanova.typing import IntArray, Level

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86400, 7 * 86400

FIRST = datetime.datetime(1, 1, 1)
"""A Monday: whole weeks since then begin on Mondays."""

SPANS = tuple(
    datetime.timedelta(microseconds=micro)
    for micro in (*(10**k for k in range(7)), *(s * 10**6 for s in (15, 60, 900, HOUR, 6 * HOUR, DAY, WEEK)))
)
"""Durations of which edges between durations are multiples."""


@dataclass(frozen=True)
class Unit:
    """A period of the calendar: a number of months from the year 0, or a number of seconds from the year 1."""

    months: int = 0
    seconds: int = 0

    def numbers(self, walls: NDArray[Any]) -> IntArray:
        """Which period each wall time (n,) of dtype datetime64 lies in.

        >>> Unit(months=3).numbers(np.array(["0001-05-01"], dtype="M8[us]")).tolist()
        [5]
        """
        if self.months:
            return (walls.astype("M8[M]").astype(np.int64) + 1970 * 12) // self.months
        since = walls.astype("M8[s]") - np.datetime64(FIRST, "s")
        return since.astype(np.int64) // self.seconds

    def number(self, wall: datetime.datetime) -> int:
        """Which period a wall time lies in."""
        return int(self.numbers(np.array([wall], dtype="M8[us]"))[0])

    def start(self, number: int) -> datetime.datetime:
        """When a period begins."""
        if self.months:
            year, month = divmod(number * self.months, 12)
            return datetime.datetime(max(year, datetime.MINYEAR), month + 1, 1)
        return FIRST + number * datetime.timedelta(seconds=self.seconds)

    def text(self, first: int, last: int) -> str:
        """The periods from ``first`` to ``last``, which may be the same.

        >>> Unit(months=3).text(8092, 8093), Unit(months=60).text(398, 398)
        ('2023 Q1 to 2023 Q2', '1990 to 1994')
        """
        begin, end = self._name(self.start(first)), self._name(self._last_day(last))
        return begin if begin == end else f"{begin} to {end}"

    def _last_day(self, number: int) -> datetime.datetime:
        try:
            return self.start(number + 1) - datetime.timedelta(days=1)
        except (OverflowError, ValueError):
            return datetime.datetime.max

    def _name(self, day: datetime.datetime) -> str:
        if self.months >= 12:
            return f"{day.year:04d}"
        if self.months == 3:
            return f"{day.year:04d} Q{(day.month + 2) // 3}"
        return f"{day.year:04d}-{day.month:02d}" if self.months else day.date().isoformat()


UNITS = (
    *(Unit(seconds=s) for s in (1, MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, WEEK)),
    *(Unit(months=m) for m in (1, 3, 12, 60, 120, 600, 1200)),
)
"""From the shortest to the longest."""


@dataclass(frozen=True)
class Cut:
    """How times are cut where the calendar is not used.

    Attributes:
        most: largest number of intervals, also of periods of the calendar.
        strategy: how they are cut.
        least: smallest weight of an interval.
        slack: part of an interval that may change sides for a rounder edge.
    """

    most: int
    strategy: str = "quantile"
    least: float = 0.0
    slack: float = 0.0


def cut_times(
    values: Sequence[Level], weight: NDArray[Any], cut: Cut, *, calendar: bool
) -> tuple[tuple[Level, ...], tuple[str, ...]]:
    """Edges (b + 1,) and labels (b,) of the periods of times (k,), which are in time order and all of one family.

    Args:
        values: distinct times in their order.
        weight: (k,) their weights.
        cut: how many periods, and how to cut where the calendar is not used.
        calendar: whether to look for a unit of the calendar first.

    >>> days = [datetime.date(2024, month, 3) for month in (1, 2, 4, 5)]
    >>> edges, labels = cut_times(days, np.ones(4), Cut(4), calendar=True)
    >>> labels
    ('2024-01 or before', '2024-02 to 2024-03', '2024-04', '2024-05 or later')
    """
    walls = [_wall(value) for value in values]
    if calendar and all(wall is not None for wall in walls):
        periods = _by_calendar(values, [wall for wall in walls if wall is not None], cut.most)
        if periods is not None:
            return periods
    _, places = time_places(values) or ("", [])
    seconds = np.array([place - places[0] for place in places], dtype=np.float64)
    starts, _ = cut_positions(seconds, weight, cut.most, cut.strategy, cut.least)
    below, above = room_around(starts, weight, cut.slack)
    tight = zip(starts[1:] - 1, starts[1:], strict=True)
    inner = [
        _round_time([(values[a], values[b], walls[b]) for a, b in pairs])
        for pairs in zip(tight, zip(below, above, strict=True), strict=True)
    ]
    edges = (values[0], *inner, values[-1])
    return edges, _interval_texts(edges)


def _by_calendar(
    values: Sequence[Level], walls: Sequence[datetime.datetime], most: int
) -> tuple[tuple[Level, ...], tuple[str, ...]] | None:
    """As many periods with rows as ``most`` allows, of the longest unit that gives so many; ``None`` if only one."""
    unit, starts, numbers = UNITS[-1], np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    clock = np.array(walls, dtype="M8[us]")
    for longer in reversed(UNITS):
        # Of two zones a later instant may have an earlier wall time; periods go on counting.
        counted = np.maximum.accumulate(longer.numbers(clock))
        begins = np.flatnonzero(np.diff(counted, prepend=counted[0] - 1))
        if len(starts) < len(begins) <= most:
            unit, starts, numbers = longer, begins, counted
    if len(starts) < 2:
        return None
    firsts = numbers[starts].tolist()
    inner = [
        _edge(values[p - 1], values[p], unit.start(first)) for p, first in zip(starts[1:], firsts[1:], strict=True)
    ]
    edges = (values[0], *inner, values[-1])
    is_clock = isinstance(values[0], datetime.time) or 0 < unit.seconds < DAY
    return edges, _interval_texts(edges) if is_clock else _period_texts(unit, firsts, int(numbers[-1]))


def _period_texts(unit: Unit, firsts: Sequence[int], last: int) -> tuple[str, ...]:
    ends = [first - 1 for first in firsts[1:]] + [last]
    texts = [unit.text(*pair) for pair in zip(firsts, ends, strict=True)]
    texts[0] = f"{unit.text(ends[0], ends[0]).rpartition(' to ')[2]} or before"
    texts[-1] = f"{unit.text(firsts[-1], firsts[-1]).partition(' to ')[0]} or later"
    return tuple(texts)


def _interval_texts(edges: Sequence[Level]) -> tuple[str, ...]:
    shown = [time_text(edge) for edge in edges]
    if len(shown) == 2:
        return (f"{shown[0]} to {shown[1]}",)
    inner = [f"[{low}, {high})" for low, high in pairwise(shown[1:-1])]
    if (time_places(edges) or ("",))[0] == "timedelta":
        return (f"< {shown[1]}", *inner, f">= {shown[-2]}")
    return (f"before {shown[1]}", *inner, f"{shown[-2]} or later")


def time_text(level: Level) -> str:
    """A time as short as it is exact.

    >>> time_text(datetime.datetime(2024, 5, 1)), time_text(datetime.time(7, 30)), time_text(datetime.timedelta(3))
    ('2024-05-01', '07:30', '3 days')
    """
    if isinstance(level, datetime.timedelta):
        whole = level == datetime.timedelta(level.days)
        return f"{level.days} days" if whole else str(level).replace(" day,", " days,").replace(",", "")
    if not isinstance(level, datetime.datetime | datetime.time):
        return str(level)
    clock = level.time() if isinstance(level, datetime.datetime) else level
    digits = "auto" if clock.second or clock.microsecond else "minutes"
    if isinstance(level, datetime.datetime) and level.tzinfo is None and clock == datetime.time():
        return level.date().isoformat()
    return level.isoformat(" ", digits) if isinstance(level, datetime.datetime) else level.isoformat(digits)


def _round_time(gaps: Sequence[tuple[Level, Level, datetime.datetime | None]]) -> Level:
    """The start of the longest unit in one of the gaps, each (low, high, wall time of high); the first high if none is.

    An edge lies in a gap if ``low < edge <= high``; of gaps in which the same unit begins the first is taken.
    """
    first = gaps[0][1]
    for k in reversed(range(max(len(UNITS), len(SPANS)))):
        for low, high, wall in gaps:
            edge = _start(low, high, wall, k)
            if edge is not None:
                return edge
    return first


def _start(low: Level, high: Level, wall: datetime.datetime | None, k: int) -> Level:
    """Where the last unit number ``k`` up to ``high`` begins, if that is above ``low``; else ``None``."""
    if isinstance(low, datetime.timedelta) and isinstance(high, datetime.timedelta):
        multiple = high // SPANS[k] * SPANS[k] if k < len(SPANS) else low
        return multiple if multiple > low else None
    if wall is None or k >= len(UNITS):
        return None
    edge = _edge(low, high, UNITS[k].start(UNITS[k].number(wall)))
    return None if edge is high else edge


def _edge(low: Level, high: Level, wall: datetime.datetime) -> Level:
    """The wall time as a level of the kind of ``high`` if it lies in ``(low, high]``, else ``high``."""
    if isinstance(high, datetime.time):
        edge: Level = wall.time()
    elif isinstance(high, datetime.date) and not isinstance(high, datetime.datetime):
        edge = wall.date()
    else:
        zone = high.tzinfo if isinstance(high, datetime.datetime) else datetime.datetime.fromisoformat(high).tzinfo
        edge = wall.replace(tzinfo=zone)
    placed = time_places([low, edge, high])
    return edge if placed is not None and placed[1][0] < placed[1][1] <= placed[1][2] else high


def _wall(level: Level) -> datetime.datetime | None:
    """What clock and calendar show at a time; ``None`` for durations and for years that Python does not know."""
    if isinstance(level, datetime.datetime):
        return level.replace(tzinfo=None)
    if isinstance(level, datetime.date):
        return datetime.datetime.combine(level, datetime.time())
    if isinstance(level, datetime.time):
        return datetime.datetime.combine(FIRST.date(), level.replace(tzinfo=None))
    try:
        return datetime.datetime.fromisoformat(level).replace(tzinfo=None)
    except (TypeError, ValueError):
        return None
