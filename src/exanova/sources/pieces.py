"""Rows that were counted, a piece at a time: all of them where they are in memory, some where they are on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exanova.data.mapped import release
from exanova.data.packing import Words, pack_rows, unpack_rows
from exanova.data.scaling import Scaling
from exanova.data.values import means_from_sums
from exanova.sources.counting_passes import CountedRows, RowCounter
from exanova.sources.runs import merging
from exanova.sources.tally import Tally, onto, part_of, together
from exanova.typing import Codes, FloatArray, IntArray

PIECE_ROWS, FEWEST_ROWS = 2**20, 2**14
"""Rows on disk that are in memory at once: most, and fewest where memory is short."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some of the rows that were counted; those that are equal once encoded are all in it.

    Attributes:
        own: the k rows as they were counted, apart by their outputs, clusters and strata.
        codes: (d + u, k) their levels, then the numbers of clusters and strata.
        group: (k,) which distinct row each of them is.
        main: the distinct rows.
    """

    own: Tally
    codes: Codes
    group: IntArray
    main: Tally


@dataclass(frozen=True, eq=False)
class Pieces:
    """All rows that were counted, to be read more than once."""

    rows: CountedRows
    counter: RowCounter

    def __iter__(self) -> Iterator[Piece]:
        if not self.rows.on_disk:
            yield self.whole
            return
        tally = self.rows.tally
        for part in self._cuts():
            yield piece_of(part_of(tally, part), self.counter)
            release(*tally.arrays)

    @cached_property
    def whole(self) -> Piece:
        """All rows as one piece."""
        return piece_of(self.rows.tally, self.counter)

    @cached_property
    def n_distinct(self) -> int:
        """Number of distinct rows."""
        if self.rows.on_disk and not self.counter.units:
            return len(self.rows.tally)
        return sum(len(piece.main) for piece in self)

    @cached_property
    def _rows_at_once(self) -> int:
        """Rows of a piece: as many as may be merged at once."""
        tally = self.rows.tally
        of_row = merging(1, tally.lowest.shape[1], len(tally.words))
        return int(min(PIECE_ROWS, max(FEWEST_ROWS, self.rows.room / of_row)))

    def _cuts(self) -> Iterator[slice]:
        start, end = 0, len(self.rows.tally)
        while start < end:
            stop = self._end_of_group(min(start + self._rows_at_once, end))
            yield slice(start, stop)
            start = stop

    def _end_of_group(self, stop: int) -> int:
        """The end of the distinct row that the row before ``stop`` belongs to."""
        words = self.rows.tally.words
        if not self.counter.units:
            return stop
        while stop < words.shape[1]:
            window = slice(stop - 1, stop + self._rows_at_once)
            group = group_of(own_words(unpack_rows(words[:, window], self.counter.sizes), self.counter))
            same = int(np.searchsorted(group, 1)) - 1
            stop += same
            if same < len(group) - 1:
                break
        return stop


def piece_of(tally: Tally, counter: RowCounter) -> Piece:
    """Rows of a tally with their distinct rows."""
    codes = unpack_rows(tally.words, counter.sizes)
    words = own_words(codes, counter) if counter.units else tally.words
    main = together(onto(tally, words) if counter.units else tally)
    return Piece(tally, codes, group_of(words), main)


def own_words(codes: Codes, counter: RowCounter) -> Words:
    """Words of the levels alone, without clusters and strata."""
    return pack_rows(codes[: len(counter.encoding.sizes)], counter.encoding.sizes)


def group_of(words: Words) -> IntArray:
    """(k,) which distinct row each is, of ascending words.

    >>> group_of(np.array([[4, 4, 7]], dtype=np.uint64)).tolist()
    [0, 0, 1]
    """
    new = np.zeros(words.shape[1], dtype=np.int64)
    for word in words:
        new[1:] |= word[1:] != word[:-1]
    return np.cumsum(new)


def means_of(tally: Tally, scaling: Scaling | None = None) -> tuple[FloatArray, FloatArray]:
    """Means (k, m) of the rows of a tally and variances within them (k, m), normalised if there is a scaling."""
    assert tally.first is not None
    assert tally.second is not None
    if scaling is None:  # copies, which become the results
        return means_from_sums(tally.weight, tally.lowest.copy(), tally.first, tally.second.copy())
    unit = np.where(scaling.unit > 0, scaling.unit, np.inf)
    lowest = scaling.normalised(tally.lowest)
    return means_from_sums(tally.weight, lowest, tally.first / unit, tally.second / unit**2)
