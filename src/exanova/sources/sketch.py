"""Estimated number of distinct rows of a source, from the smallest hashes of its rows, in the pass that counts values.

A row is hashed to 64 bits, and the smallest few thousand different hashes are kept. They do not depend on how rows were
split, and sketches of parts are merged. If the k-th smallest of evenly spread hashes is a fraction h of the range,
there are about (k - 1) / h of them, give or take a share of 1 / sqrt(k); fewer than k are counted exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.factor import factorize
from exanova.data.table import Table

Hashes: TypeAlias = NDArray[np.uint64]
"""(n,) hashes of rows or cells; as a sketch ascending, each once, and no more than ``KEPT``."""

KEPT = 4096
"""Hashes that a sketch keeps: the error is then about 1.6 %."""

ERRORS = 6.0
"""Standard errors of an estimate beyond which a number is taken to be another one."""

MIXER = np.uint64(0x9E3779B97F4A7C15)


def sketch_of(hashes: Hashes) -> Hashes:
    """The sketch of rows with these hashes (n,).

    >>> sketch_of(np.array([5, 3, 5], dtype=np.uint64)).tolist()
    [3, 5]
    """
    if len(hashes) > 2 * KEPT:
        # Of evenly spread hashes, this bound keeps more than enough; where it does not, all of them are sorted.
        below = hashes[hashes <= np.partition(hashes, 2 * KEPT)[2 * KEPT]]
        lowest = np.unique(below)
        if len(lowest) >= KEPT:
            return lowest[:KEPT]
    return np.unique(hashes)[:KEPT]


def merge_sketches(several: Sequence[Hashes]) -> Hashes:
    """The sketch of all rows, from those of their parts."""
    return np.unique(np.concatenate(several))[:KEPT] if several else np.zeros(0, dtype=np.uint64)


def distinct_about(sketch: Hashes) -> int:
    """The estimated number of distinct rows of a sketch.

    >>> distinct_about(np.arange(10, dtype=np.uint64))
    10
    """
    if len(sketch) < KEPT:
        return len(sketch)
    return int((KEPT - 1) / (float(sketch[-1]) / 2.0**64))


def surely_fewer(sketch: Hashes, rows: int) -> bool:
    """Whether fewer than that many rows are distinct: exactly if the sketch holds all, else beyond its error.

    >>> surely_fewer(np.arange(9, dtype=np.uint64), 10), surely_fewer(np.arange(10, dtype=np.uint64), 10)
    (True, False)
    """
    margin = 0.0 if len(sketch) < KEPT else ERRORS / KEPT**0.5
    return distinct_about(sketch) < (1.0 - margin) * rows


def row_hashes(table: Table, names: Sequence[str]) -> Hashes:
    """(n,) a hash of every row, from its cells in the columns ``names``."""
    out = np.zeros(table.n_rows, dtype=np.uint64)
    for name in names:
        out = mixed(out ^ cell_hashes(table.column(name)))
    return out


def cell_hashes(column: Column) -> Hashes:
    """(n,) a number for every cell: the bits of numbers, hashes of text."""
    if column.codes is None and column.is_numeric:
        bits = np.where(column.missing, np.nan, column.values.astype(np.float64)) + 0.0
        return bits.view(np.uint64)
    values, codes = factorize(column)
    own = [int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "big") for value in values]
    return np.array([*own, 0], dtype=np.uint64)[codes]


def mixed(bits: Hashes) -> Hashes:
    """Bits that all depend on all bits (the finaliser of SplitMix64)."""
    bits = bits + MIXER
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
