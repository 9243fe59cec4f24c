"""Bitsets over the rows (one bit per row, one bitset per indicator), and the Gram matrix by counting common bits.

Integer weights are split into binary digits: the rows whose weight has digit b form one set of bitsets, whose counts
enter with the factor 2^b. Every entry is an exact integer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exanova import parallel
from exanova.phi.monomials import Monomials
from exanova.typing import Codes, IntArray

TILE = 64
"""Bitsets per side of a tile: large enough to reuse rows from cache, small enough to balance the threads."""

COMPILED_FROM = 4_000_000
"""Words to compare from which a compiled loop is loaded. It takes 0.3 ns per word, NumPy 1 ns, and loading it from a
cache half a second."""

BLOCK_WORDS = 65_536
"""Words that are compared at once without a compiled loop."""

Bitsets = np.ndarray[tuple[int, int], np.dtype[np.uint64]]


def pack(codes: Codes, feature_levels: list[tuple[int, int]], basis: Monomials) -> Bitsets:
    """(q, words) one bitset for each indicator over the rows of ``codes``.

    ``feature_levels`` gives (feature, level) of each indicator of one feature, by its number.
    """
    return pack_more(np.zeros((0, 0), dtype=np.uint64), codes, feature_levels, basis)


def pack_more(known: Bitsets, codes: Codes, feature_levels: list[tuple[int, int]], basis: Monomials) -> Bitsets:
    """The same when the bitsets of the first indicators are already ``known``."""
    rows = codes.shape[1]
    words = np.zeros((len(basis), -(-rows // 64)), dtype=np.uint64)
    a = len(known)
    if a:
        words[:a] = known
    else:
        pack_singles(words, codes, feature_levels)
        a = 1 + len(feature_levels)
    while a < len(basis):
        b = min(len(basis), a + 1024)
        late = np.flatnonzero(basis.prefix[a:b] >= a)  # a prefix must be packed before its extensions
        b = a + int(late[0]) if len(late) else b
        np.bitwise_and(words[basis.prefix[a:b]], words[basis.last[a:b]], out=words[a:b])
        a = b
    return words


def pack_singles(words: Bitsets, codes: Codes, feature_levels: list[tuple[int, int]]) -> None:
    """Pack the constant and the indicators of single features."""
    octets = words.view(np.uint8)
    width = -(-codes.shape[1] // 8)
    octets[0, :width] = np.packbits(np.ones(codes.shape[1], dtype=bool), bitorder="little")
    for q, (feature, level) in enumerate(feature_levels, start=1):
        octets[q, :width] = np.packbits(codes[feature] == level, bitorder="little")


def digits(weight: IntArray) -> list[tuple[int, IntArray]]:
    """(factor, rows) for each binary digit that occurs in the weights.

    >>> [(factor, rows.tolist()) for factor, rows in digits(np.array([1, 2, 3]))]
    [(1, [0, 2]), (2, [1, 2])]
    """
    planes = [(1 << b, np.flatnonzero((weight >> b) & 1)) for b in range(int(weight.max()).bit_length())]
    return [(factor, rows) for factor, rows in planes if len(rows)]


def counting(words: int) -> Callable[[Bitsets, Bitsets, IntArray, int], None]:
    """How to count the common rows of a tile if ``words`` words are compared in all."""
    if words < COMPILED_FROM:
        return _count_few
    from exanova.phi.gram_kernels import count_tile

    count: Callable[[Bitsets, Bitsets, IntArray, int], None] = count_tile
    return count


def _count_few(left: Bitsets, right: Bitsets, out: IntArray, factor: int) -> None:
    """Add ``factor`` times the number of rows common to each pair of bitsets to ``out`` (rows of left, of right)."""
    step = max(1, BLOCK_WORDS // max(1, right.size))
    for a in range(0, len(left), step):
        rows = slice(a, a + step)
        common = np.bitwise_count(left[rows, None] & right[None])
        out[rows] += factor * np.einsum("ijk->ij", common, dtype=np.int64)


def count_common(
    words: Bitsets,
    out: IntArray,
    factor: int,
    threads: int,
    step: Callable[[int], None] | None = None,
) -> None:
    """Add ``factor`` times the number of rows common to every two bitsets to the symmetric matrix ``out``."""
    q, count_tile = len(words), counting(words.size * len(words) // 2)
    pieces = [slice(a, min(q, a + TILE)) for a in range(0, q, TILE)]
    tiles = [(i, j) for j in pieces for i in pieces if i.start <= j.start]

    def task(tile: tuple[slice, slice]) -> None:
        i, j = tile
        block = np.zeros((i.stop - i.start, j.stop - j.start), dtype=np.int64)
        count_tile(words[i], words[j], block, factor)
        out[i, j] += block
        if i.start != j.start:
            out[j, i] += block.T
        if step:
            step(1)

    parallel.run(task, tiles, threads)
