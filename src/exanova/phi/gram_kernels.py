"""Compiled loops of Gram matrices: counting common bits, adding weights of common rows, residues modulo a prime."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import intrinsic

from exanova.compiled import compiled
from exanova.design.pass_kernels import fill_keys

WORDS = 512
"""Words of a bitset processed at once: 4 KB, so that it and its tile stay in the nearest caches."""


@intrinsic  # type: ignore[untyped-decorator]
def population(typing_context: Any, word: Any) -> Any:
    """Number of bits set in a word, by the machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@compiled()
def count_tile(left: Any, right: Any, out: Any, scale: int) -> None:
    """Add ``scale`` times the number of rows common to each pair of bitsets to ``out`` (rows of left, of right).

    Four bitsets are compared with two at a time: six words are loaded for eight comparisons instead of sixteen.
    """
    words = left.shape[1]
    rows, columns = left.shape[0] // 4 * 4, right.shape[0] // 2 * 2
    for a in range(0, words, WORDS):
        b = min(words, a + WORDS)
        for i in range(0, rows, 4):
            for j in range(0, columns, 2):
                count_eight(left, right, i, j, a, b, out, scale)
        for i in range(left.shape[0]):
            for j in range(columns if i < rows else 0, right.shape[0]):
                count = np.uint64(0)
                for w in range(a, b):
                    count += population(left[i, w] & right[j, w])
                out[i, j] += scale * np.int64(count)


@compiled(inline="always")
def count_eight(left: Any, right: Any, i: int, j: int, a: int, b: int, out: Any, scale: int) -> None:
    """The same for bitsets i .. i + 3 of left and j, j + 1 of right, over words a to b."""
    c00 = c01 = c10 = c11 = c20 = c21 = c30 = c31 = np.uint64(0)
    for w in range(a, b):
        first, second = right[j, w], right[j + 1, w]
        word = left[i, w]
        c00 += population(word & first)
        c01 += population(word & second)
        word = left[i + 1, w]
        c10 += population(word & first)
        c11 += population(word & second)
        word = left[i + 2, w]
        c20 += population(word & first)
        c21 += population(word & second)
        word = left[i + 3, w]
        c30 += population(word & first)
        c31 += population(word & second)
    out[i, j] += scale * np.int64(c00)
    out[i, j + 1] += scale * np.int64(c01)
    out[i + 1, j] += scale * np.int64(c10)
    out[i + 1, j + 1] += scale * np.int64(c11)
    out[i + 2, j] += scale * np.int64(c20)
    out[i + 2, j + 1] += scale * np.int64(c21)
    out[i + 3, j] += scale * np.int64(c30)
    out[i + 3, j + 1] += scale * np.int64(c31)


@compiled()
def count_cached(left: Any, right: Any, repeats: int) -> Any:
    """Repeat AND-and-count on two cached bitsets: the limit of the machine, for benchmarks."""
    total = np.uint64(0)
    for k in range(repeats):
        left[0] = np.uint64(k)
        for w in range(left.shape[0]):
            total += population(left[w] & right[w])
    return np.int64(total)


@compiled()
def list_indicators(
    codes: Any,
    order: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    key_start: Any,
    lookup: Any,
    number: Any,
    start: Any,
    listed: Any,
) -> None:
    """Write the indicators that are 1 at every row to ``listed``, in increasing order, beginning at its ``start``.

    ``number`` (keys,): the indicator of every key of every subset, or -1. Without room in ``listed`` they are only
    counted: ``start`` (rows + 1,) is where the indicators of a row would begin.
    """
    rows = codes.shape[1]
    keys, prefix = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
    end, held = np.zeros(rows, dtype=np.int64), np.int64(-1)
    for s in range(order.shape[0]):
        held = fill_keys(codes, members, sizes, chain, lookup, s, order[s], 0, rows, prefix, held, keys)
        for t in range(rows):
            indicator = number[key_start[s] + keys[t]]
            if indicator >= 0:
                if listed.shape[0]:
                    listed[start[t] + end[t]] = indicator
                end[t] += 1
    if not listed.shape[0]:
        start[0] = 0
        for t in range(rows):
            start[t + 1] = start[t] + end[t]


@compiled()
def add_common(start: Any, listed: Any, weight: Any, first: int, last: int, gram: Any) -> None:
    """Add the weight of every row to ``gram`` (lower triangle, rows ``first`` to ``last``) at its pairs of indicators.

    The indicators of row t are ``listed`` from start[t] to start[t + 1], increasing.
    """
    for t in range(start.shape[0] - 1):
        low, high = start[t], start[t + 1]
        while low < high:  # the first of this band, by halving
            middle = (low + high) // 2
            if listed[middle] < first:
                low = middle + 1
            else:
                high = middle
        for a in range(low, start[t + 1]):
            if listed[a] >= last:
                break
            row = gram[listed[a]]
            for b in range(start[t], a + 1):
                row[listed[b]] += weight[t]


@compiled()
def reduce_in_place(flat: Any, prime: float) -> None:
    """Replace whole numbers by their residues modulo a prime; one pass, no division.

    They must be below 2^53 minus the prime: the quotient may be off by one, and its multiple must remain exact.
    """
    inverse = 1.0 / prime
    for k in range(flat.shape[0]):
        rest = flat[k] - np.floor(flat[k] * inverse) * prime
        if rest < 0.0:
            rest += prime
        elif rest >= prime:
            rest -= prime
        flat[k] = rest
