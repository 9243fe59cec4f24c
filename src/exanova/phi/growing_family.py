"""``GrowingFamily``: a family that grows in rounds, with its cells and one bitset per indicator.

Bitsets of the indicators are kept from round to round, so that each round packs only the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.design.family import extend, intercept_family, keep_some
from exanova.design.subsets import by_order, canonical_key, proper_parts
from exanova.phi.bitsets import TILE, Bitsets, counting, digits, pack_more
from exanova.phi.gram import single_levels
from exanova.phi.monomials import monomials, reference_levels
from exanova.typing import Codes, FloatArray, IntArray, Subset


class GrowingFamily:
    """A family that grows by subsets of one order at a time, main effects first, with its indicators as bitsets.

    Attributes:
        family: the family so far.
        indicators: its indicators.
    """

    def __init__(self, codes: Codes, weight: NDArray[Any], sizes: Sequence[int], threads: int = 1) -> None:
        self._codes, self._weight, self._threads = codes, weight, threads
        self._planes = planes(codes, weight)
        self._words: list[Bitsets] = [np.zeros((0, 0), dtype=np.uint64) for _ in self._planes]
        self.family = intercept_family(sizes, float(weight.sum()))
        self._reference = reference_levels(self.family)
        self.indicators = monomials(self.family, self._reference)

    def extend(self, subsets: Sequence[Subset]) -> int:
        """Append subsets, preceded by those of their proper subsets that are missing, which cell lookup needs.

        Returns the number of the first of ``subsets`` (on the first call, of the intercept, which is added too).
        """
        missing = {part for s in subsets for part in proper_parts(s)} - set(self.family.position)
        for _, group in by_order(sorted(missing, key=canonical_key)):
            self._append(group)
        first = len(self.family.subsets) if len(self._words[0]) else 0
        self._append(subsets)
        return first

    def _append(self, subsets: Sequence[Subset]) -> None:
        weight = self._weight.astype(np.float64)
        self.family = extend(self.family, subsets, self._codes, weight, self._threads)
        if len(self.indicators) == 1:  # main effects come first, and with them the most frequent levels
            self._reference = reference_levels(self.family)
        self.indicators = monomials(self.family, self._reference)
        singles = single_levels(self.family, self.indicators)
        self._words = [
            pack_more(words, codes, singles, self.indicators)
            for words, (_, codes) in zip(self._words, self._planes, strict=True)
        ]

    def keep_of_last(self, n_before: int, useful: Sequence[int]) -> None:
        """Remove the subsets added after the first ``n_before``, except those numbered ``useful``."""
        first = np.searchsorted(self.indicators.cell, self.family.cell_start)
        kept = np.concatenate([np.arange(first[n_before]), *(np.arange(first[s], first[s + 1]) for s in useful)])
        self.family = keep_some(self.family, n_before, useful)
        self.indicators = monomials(self.family, self._reference)
        self._words = [words[kept] for words in self._words]

    def counts(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """(rows, columns) total weight of the rows common to two indicators; by default all columns."""
        chosen = self._words if columns is None else [words[columns] for words in self._words]
        left = [words[rows] for words in self._words]
        if self._weight.dtype.kind == "f":
            return _weighted_counts(left[0], chosen[0], self._weight.astype(np.float64))
        out = np.zeros((len(rows), len(chosen[0])))
        for own, words, (factor, _) in zip(left, chosen, self._planes, strict=True):
            count_rows(own, words, out, factor, self._threads)
        return out


def count_rows(left: Bitsets, words: Bitsets, out: FloatArray, factor: int, threads: int) -> None:
    """Add ``factor`` times the number of rows common to each bitset of ``left`` and each of ``words`` to ``out``."""
    count_tile = counting(words.size * len(left))
    tiles = [(a, b) for a in range(0, len(left), TILE) for b in range(0, len(words), TILE)]

    def task(tile: tuple[int, int]) -> None:
        i, j = slice(tile[0], min(len(left), tile[0] + TILE)), slice(tile[1], min(len(words), tile[1] + TILE))
        block = np.zeros((i.stop - i.start, j.stop - j.start), dtype=np.int64)
        count_tile(left[i], words[j], block, factor)
        out[i, j] += block

    parallel.run(task, tiles, threads)


def planes(codes: Codes, weight: NDArray[Any]) -> list[tuple[int, Codes]]:
    """(factor, codes of its rows) for each binary digit of whole-number weights; all rows once for real weights."""
    if weight.dtype.kind == "f":
        return [(1, codes)]
    return [(f, codes if len(rows) == codes.shape[1] else codes[:, rows]) for f, rows in digits(weight)]


def _weighted_counts(left: Bitsets, words: Bitsets, weight: FloatArray) -> FloatArray:
    """The same for real weights: bits are unpacked block by block and multiplied by BLAS."""
    out = np.zeros((len(left), len(words)))
    block = 8 * max(64, 2_000_000 // max(1, len(words)))
    for a in range(0, len(weight), block):
        part = weight[a : a + block]
        rows, columns = (_unpacked(bits, a, len(part)) for bits in (left, words))
        out += (rows * part) @ columns.T
    return out


def _unpacked(words: Bitsets, first: int, count: int) -> FloatArray:
    """``count`` bits from bit ``first`` on, a multiple of eight, as zeros and ones."""
    octets = words.view(np.uint8)[:, first // 8 : -(-(first + count) // 8)]
    return np.unpackbits(octets, axis=1, count=count, bitorder="little").astype(np.float64)
