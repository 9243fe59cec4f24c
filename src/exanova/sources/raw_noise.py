"""How much outputs differ between equal raw rows: noise, as opposed to the effect of bins.

A table in memory groups its raw rows. Here a raw row is a hash of 64 bits, and where they are too many to keep, only
those of the smallest hashes are: which depends on the rows alone, and all rows of one kind are in or out together. The
variance between them is then measured on some millions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.packing import Words
from exanova.data.table import Table
from exanova.sources.sketch import cell_hashes, mixed
from exanova.sources.tally import Tally, merge_tallies, part_of, tally_rows, together
from exanova.typing import FloatArray

MOST_RAW, FEWEST_RAW, RAW_VALUE = 2**21, 2**14, 42
"""Distinct raw rows that are kept: most, and fewest where memory is short; and bytes for each number of one of them
while they are merged."""


@dataclass(frozen=True, eq=False)
class RawSums:
    """Sums over equal raw rows, of those whose hash is below 2^(64 - halved).

    The words of the tally are the hash, and below it those of the encoded row. No more than ``most`` are kept.
    """

    tally: Tally
    halved: int
    most: int

    def __len__(self) -> int:
        return len(self.tally)

    def noise(self, within: FloatArray) -> FloatArray:
        """(m,) mean variance between equal raw rows, never more than that ``within`` (m,) encoded rows."""
        tally = together(self.tally)
        assert tally.first is not None
        assert tally.second is not None
        inside = np.maximum(tally.second - tally.first**2 / tally.weight[:, None], 0.0).sum(axis=0)
        return np.asarray(np.minimum(inside / tally.weight.sum(), within))


def most_raw(room: float, words: int, outputs: int) -> int:
    """How many raw rows are kept within ``room`` bytes, of so many words and outputs each."""
    return int(min(MOST_RAW, max(FEWEST_RAW, room / merging_raw(1, words, outputs))))


def merging_raw(rows: int, words: int, outputs: int) -> int:
    """Bytes while so many raw rows are merged: of each its hash and words, its weight, and three sums per output."""
    return RAW_VALUE * (words + 2 + 3 * outputs) * rows


def raw_sums(hashes: NDArray[np.uint64], words: Words, values: FloatArray, weight: FloatArray, most: int) -> RawSums:
    """The sums over rows with these hashes (n,), words (w, n), outputs (n, m) and weights (n,), of at most so many."""
    keys = np.concatenate([hashes[None, :], words])
    return _fewer(RawSums(together(tally_rows(keys, values, weight, np.ones(len(weight)), True)), 0, most))


def merge_raw(several: Sequence[RawSums]) -> RawSums:
    """The sums over all rows, from those of their parts."""
    halved = max(one.halved for one in several)
    merged = merge_tallies([_below(one.tally, halved) for one in several])
    return _fewer(replace(several[0], tally=merged, halved=halved))


def raw_hashes(encoding: Encoding, table: Table) -> NDArray[np.uint64]:
    """(n,) a hash of every row as it was given."""
    out = np.zeros(table.n_rows, dtype=np.uint64)
    for feature in encoding.features:
        out = mixed(out ^ _cell_hashes(feature, table.column(feature.name)))
    return out


def _fewer(sums: RawSums) -> RawSums:
    while len(sums) > sums.most and sums.halved < 63:
        sums = replace(sums, tally=_below(sums.tally, sums.halved + 1), halved=sums.halved + 1)
    return sums


def _below(own: Tally, halved: int) -> Tally:
    """The rows whose hash is below 2^(64 - halved); they come first."""
    if not halved:
        return own
    count = int(np.searchsorted(own.words[0], np.uint64(1) << np.uint64(64 - halved)))
    return part_of(own, slice(0, count))


def _cell_hashes(feature: FeatureLevels, column: Column) -> NDArray[np.uint64]:
    """(n,) a number for every cell: its code where levels are lossless, else a hash."""
    return feature.encode(column).astype(np.uint64) if feature.is_lossless else cell_hashes(column)
