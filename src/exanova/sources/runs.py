"""Rows counted under a memory limit: rows beyond it go to disk in sorted runs, which are merged at the end.

Runs are merged a range of rows at a time. The ranges are those of the packed codes, so that all rows that are equal are
in one of them, and the result is what one merge in memory would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.mapped import release
from exanova.data.packing import Words, order_of
from exanova.errors import MemoryLimitError
from exanova.messages import Parameter
from exanova.sources.counting_passes import CountedRows, merge_rows
from exanova.sources.disk import disk_array, give_back, on_disk
from exanova.sources.tally import ENTRIES, Tally, merge_tallies, part_of, together

COPIES_OF_TALLY = 7
"""Copies of the counted rows, with all their sums, that are in memory while they are merged with others."""

SHARE = 0.2
"""Fraction of the memory limit that rows may take while they are merged; beyond it they go to disk."""

PIVOTS = 1024
"""Rows of each run that the ranges of a merge are chosen from."""


@dataclass
class Runs:
    """Rows that were counted so far.

    Attributes:
        limit: bytes that everything may take.
        waiting: what is in memory.
        runs: what went to disk, each in ascending order.
        rest: what else was found in the rows on disk.
    """

    limit: int
    waiting: list[CountedRows] = field(default_factory=list)
    runs: list[Tally] = field(default_factory=list)
    rest: list[CountedRows] = field(default_factory=list)

    def add(self, rows: CountedRows) -> None:
        """Take the rows of one more block."""
        self.waiting.append(rows)
        grown = sum(map(len, self.waiting[1:])) > len(self.waiting[0])
        if self._needed() > self.room or (len(self.waiting) > 2 and grown):
            self.waiting = [merge_rows(self.waiting)]
            if 2 * self._needed() > self.room:
                self._spill()

    def finish(self) -> CountedRows | None:
        """All rows, merged."""
        if not self.runs:
            return merge_rows(self.waiting) if self.waiting else None
        if self.waiting:
            self.waiting = [merge_rows(self.waiting)]
            self._spill()
        rest = merge_rows(self.rest)
        runs, self.runs = self.runs, []
        tally = merge_runs(runs, self.room)
        give_back()
        return replace(rest, tally=tally, on_disk=True, room=self.room)

    def would_spill(self, rows: int, outputs: int, words: int) -> bool:
        """Whether about that many distinct rows take too much memory."""
        return merging(rows, outputs, words) > self.room

    @property
    def room(self) -> float:
        """Bytes that rows may take while they are merged."""
        return SHARE * self.limit

    def _needed(self) -> int:
        return sum(_merging(rows.tally) for rows in self.waiting)

    def _spill(self) -> None:
        rows = self.waiting.pop()
        tally = rows.tally
        if tally.replicates is not None:
            refuse(len(tally), _merging(tally), self.limit)
        self.runs.append(stored(together(tally)))
        give_back()
        self.rest.append(replace(rows, tally=part_of(tally, np.zeros(len(tally), dtype=bool))))  # a view would keep all


def merging(rows: int, outputs: int, words: int) -> int:
    """Bytes while this many rows are merged: each has its words, its weight, and three sums per output."""
    return COPIES_OF_TALLY * 8 * (words + 1 + 3 * outputs) * rows


def _merging(tally: Tally) -> int:
    extra = 0 if tally.replicates is None else 3 * tally.replicates.nbytes
    return merging(len(tally), tally.lowest.shape[1], len(tally.words)) + extra


def refuse(rows: int, needed: float, limit: int) -> None:
    """Raise the error of rows that are too many to be counted in memory and cannot go to disk."""
    raise MemoryLimitError(
        f"about {rows:,} distinct rows were counted so far, and merging them takes about "
        f"{needed / 1e6:,.0f} MB; the memory limit is {limit / 1e6:,.0f} MB",
        remedy=[
            "Use fewer bins (",
            Parameter("n_bins"),
            "), merge rare levels (",
            Parameter("min_frequency"),
            "), leave columns out, or give a larger ",
            Parameter("memory_limit"),
        ],
    )


def stored(tally: Tally) -> Tally:
    """A copy of a tally on disk."""
    arrays = {name: getattr(tally, name) for name in ENTRIES}
    kept: dict[str, Any] = {name: None if array is None else on_disk(array) for name, array in arrays.items()}
    return replace(tally, words=on_disk(tally.words), **kept)


def merge_runs(runs: Sequence[Tally], room: float) -> Tally:
    """Sorted tallies on disk as one on disk, of which no more than ``room`` bytes are merged at once."""
    count = sum(map(len, runs))
    bytes_of_row = sum(map(_merging, runs)) / max(1, count)
    out, start = _empty_like(runs[0], count), 0
    for pieces in ranges(runs, max(1, int(room / bytes_of_row))):
        merged = merge_tallies(pieces)
        _put(out, merged, slice(start, start + len(merged)))
        start += len(merged)
        release(*out.arrays, *(array for run in runs for array in run.arrays))
    highest = np.max([run.highest for run in runs], axis=0)
    return replace(part_of(out, slice(0, start)), highest=highest)


def ranges(runs: Sequence[Tally], rows: int) -> Iterator[list[Tally]]:
    """The same range of each run, one range after the other, of about that many rows together."""
    bounds = [_places(run.words, keys) for keys in (_keys(runs, rows),) for run in runs]
    for k in range(len(bounds[0]) - 1):
        yield [part_of(run, slice(own[k], own[k + 1])) for run, own in zip(runs, bounds, strict=True)]


def _keys(runs: Sequence[Tally], rows: int) -> Words:
    """(w, k) words at which ranges begin, from some rows of every run."""
    steps = [max(1, min(len(run) // PIVOTS, rows // (2 * len(runs)))) for run in runs]
    some = [run.words[:, ::step] for run, step in zip(runs, steps, strict=True)]
    counts = np.concatenate([np.full(own.shape[1], step) for own, step in zip(some, steps, strict=True)])
    words = np.concatenate(some, axis=1)
    order = order_of(words)
    numbers = np.cumsum(counts[order]) // rows
    return words[:, order[np.flatnonzero(np.diff(numbers, prepend=0))]]


def _places(words: Words, keys: Words) -> list[int]:
    """Where ranges that begin with ``keys`` (w, k) begin in ascending words (w, n); 0 first and n last."""
    inner = [place_of(words, keys[:, k]) for k in range(keys.shape[1])]
    return [0, *inner, words.shape[1]]


def place_of(words: Words, key: NDArray[np.uint64]) -> int:
    """The first of ascending words (w, n) that is not before ``key`` (w,).

    >>> place_of(np.array([[1, 1, 2], [0, 5, 0]], dtype=np.uint64), np.array([1, 3], dtype=np.uint64))
    1
    """
    low, high = 0, words.shape[1]
    for word, value in zip(words, key, strict=True):
        own = word[low:high]
        low, high = low + int(np.searchsorted(own, value, "left")), low + int(np.searchsorted(own, value, "right"))
        if low == high:
            break
    return low


def _empty_like(tally: Tally, count: int) -> Tally:
    arrays = {name: getattr(tally, name) for name in ENTRIES}
    made: dict[str, Any] = {
        name: None if array is None else disk_array((count, *array.shape[1:]), array.dtype)
        for name, array in arrays.items()
    }
    return replace(tally, words=disk_array((len(tally.words), count), np.uint64), **made)


def _put(out: Tally, rows: Tally, place: slice) -> None:
    out.words[:, place] = rows.words
    for name in ENTRIES:
        if getattr(out, name) is not None:
            getattr(out, name)[place] = getattr(rows, name)
