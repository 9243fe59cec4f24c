"""How much outputs differ between equal raw rows: noise, as opposed to the effect of bins.

A table in memory groups its raw rows. Here a raw row is a hash of 64 bits, and where they are too many to keep, only
those of the smallest hashes are: which depends on the rows alone, and all rows of one kind are in or out together. The
variance between them is then measured on some millions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

MOST_RAW = 2**21
"""Distinct raw rows that are kept."""


@dataclass(frozen=True, eq=False)
class RawSums:
    """Sums over equal raw rows, of those whose hash is below 2^(64 - halved).

    The words of the tally are the hash, and below it those of the encoded row.
    """

    tally: Tally
    halved: int = 0

    def __len__(self) -> int:
        return len(self.tally)

    def noise(self, within: FloatArray) -> FloatArray:
        """(m,) mean variance between equal raw rows, never more than that ``within`` (m,) encoded rows."""
        tally = together(self.tally)
        assert tally.first is not None
        assert tally.second is not None
        inside = np.maximum(tally.second - tally.first**2 / tally.weight[:, None], 0.0).sum(axis=0)
        return np.asarray(np.minimum(inside / tally.weight.sum(), within))


def raw_sums(hashes: NDArray[np.uint64], words: Words, values: FloatArray, weight: FloatArray) -> RawSums:
    """The sums over rows with these hashes (n,), words (w, n), outputs (n, m) and weights (n,)."""
    keys = np.concatenate([hashes[None, :], words])
    return _fewer(RawSums(together(tally_rows(keys, values, weight, np.ones(len(weight)), True))))


def merge_raw(several: Sequence[RawSums]) -> RawSums:
    """The sums over all rows, from those of their parts."""
    halved = max(one.halved for one in several)
    return _fewer(RawSums(merge_tallies([_below(one.tally, halved) for one in several]), halved))


def raw_hashes(encoding: Encoding, table: Table) -> NDArray[np.uint64]:
    """(n,) a hash of every row as it was given."""
    out = np.zeros(table.n_rows, dtype=np.uint64)
    for feature in encoding.features:
        out = mixed(out ^ _cell_hashes(feature, table.column(feature.name)))
    return out


def _fewer(sums: RawSums) -> RawSums:
    while len(sums) > MOST_RAW and sums.halved < 63:
        sums = RawSums(_below(sums.tally, sums.halved + 1), sums.halved + 1)
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
