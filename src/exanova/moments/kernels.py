"""Compiled loops over common rows: counted as bits, or added up with weights; imported when a Gram matrix is made."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

WORDS = 512
"""Words of a row handled at once: 4 KB, so that a row and the tile it meets stay in the nearest caches."""


@intrinsic  # type: ignore[untyped-decorator]
def population(typing_context: Any, word: Any) -> Any:
    """Number of bits set in a word, by the machine's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def count_tile(left: Any, right: Any, out: Any, scale: int) -> None:
    """Add ``scale`` times the number of rows common to each pair of bitsets to ``out`` (rows of left, of right)."""
    words = left.shape[1]
    for a in range(0, words, WORDS):
        b = min(words, a + WORDS)
        for i in range(left.shape[0]):
            for j in range(right.shape[0]):
                count = np.uint64(0)
                for w in range(a, b):
                    count += population(left[i, w] & right[j, w])
                out[i, j] += scale * np.int64(count)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def count_cached(left: Any, right: Any, repeats: int) -> Any:
    """AND-and-count of two cached rows again and again: the machine's own limit, for benchmarks."""
    total = np.uint64(0)
    for k in range(repeats):
        left[0] = np.uint64(k)
        for w in range(left.shape[0]):
            total += population(left[w] & right[w])
    return np.int64(total)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def add_common(numbers: Any, weight: Any, first: int, last: int, gram: Any) -> None:
    """Add the weight of every row to ``gram`` (lower triangle, rows ``first`` to ``last``) at its pairs of indicators.

    ``numbers`` (subsets, rows) holds the indicator of each subset that is 1 at a row, rising down a column, or -1.
    """
    active = np.empty(numbers.shape[0], dtype=np.int64)
    for r in range(numbers.shape[1]):
        count = 0
        for s in range(numbers.shape[0]):
            if 0 <= numbers[s, r] < last:
                active[count] = numbers[s, r]
                count += 1
        for a in range(count):
            if active[a] >= first:
                row = gram[active[a]]
                for b in range(a + 1):
                    row[active[b]] += weight[r]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def reduce_in_place(flat: Any, prime: float) -> None:
    """Replace whole numbers below 2^53 by their residues modulo a prime; one pass, no division."""
    inverse = 1.0 / prime
    for k in range(flat.shape[0]):
        rest = flat[k] - np.floor(flat[k] * inverse) * prime
        if rest < 0.0:
            rest += prime
        elif rest >= prime:
            rest -= prime
        flat[k] = rest
