"""Distinct rows of a table of codes, exactly: numbered where few combinations can occur, else hashed and verified."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.typing import Codes, IntArray

SEED = 20240229
"""Seed of the multipliers: fixed, so that nothing varies from one run to the next."""

COMPILED_FROM = 1_000_000
"""Rows from which compiled loops, which need no sorting and no copies, are worth loading."""

DIRECT = 2**22
"""Combinations that may occur up to which rows are numbered by a table of all of them, whatever the number of rows."""


def distinct_rows(codes: Codes) -> tuple[IntArray, IntArray]:
    """Distinct columns of ``codes`` (d, n), that is distinct rows of the table.

    Returns:
        first: (r,) position of the first occurrence of each distinct row, increasing.
        inverse: (n,) which of the distinct rows each row is.

    >>> first, inverse = distinct_rows(np.array([[0, 1, 0], [2, 2, 2]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0])
    """
    n = codes.shape[1]
    if COMPILED_FROM <= n < 2**31:
        return _compiled_groups(codes)
    grouped = _counted_groups(codes)
    if grouped is None:
        _, first, inverse = np.unique(hash_rows(codes), return_index=True, return_inverse=True)
        grouped = (first, inverse) if _agree(codes, first[inverse]) else _exact_groups(codes)
    first, inverse = grouped
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[inverse].astype(np.int64)


def pick_rows(codes: Codes, first: IntArray) -> Codes:
    """The rows ``first`` (r,) of ``codes`` (d, n); the same array when they are all of them."""
    return codes if len(first) == codes.shape[1] else codes[:, first]


def hash_rows(codes: Codes) -> NDArray[np.uint64]:
    """A 64-bit hash of each row, shape (n,): the sum of its codes times fixed random odd numbers."""
    hashes = np.zeros(codes.shape[1], dtype=np.uint64)
    for feature, multiplier in zip(codes, _multipliers(len(codes)), strict=True):
        hashes += feature.astype(np.uint64) * multiplier
    return hashes


def _multipliers(count: int) -> NDArray[np.uint64]:
    generator = np.random.default_rng(SEED)
    return generator.integers(0, 2**64, size=count, dtype=np.uint64) | np.uint64(1)


def _compiled_groups(codes: Codes) -> tuple[IntArray, IntArray]:
    """The result by compiled loops: one pass over the rows, and no array of their size but the result."""
    from exanova.data import group_kernels

    n = codes.shape[1]
    lowest = np.array([int(feature.min()) for feature in codes], dtype=object)
    widths = [int(feature.max()) - low + 1 for feature, low in zip(codes, lowest, strict=True)]
    exact, possible = math.prod(widths) <= 2**64, math.prod(widths)
    places = [math.prod(widths[i + 1 :]) for i in range(len(widths))]
    factors = np.array(places, dtype=np.uint64) if exact else _multipliers(len(codes))
    low = np.array([value % 2**64 for value in lowest], dtype=np.uint64)
    group: NDArray[Any] = np.empty(n, dtype=np.int32)
    first: IntArray = np.empty(min(n, possible), dtype=np.int64)
    if possible <= max(DIRECT, n):
        numbers = np.full(possible, -1, dtype=np.int32)
        count = group_kernels.number_rows(codes, low, factors, numbers, first, group)
    else:
        own = np.empty(n, dtype=np.uint64)
        count = group_kernels.hash_rows(codes, low, factors, exact, first, group, own)
    return first[:count].copy(), group


def _counted_groups(codes: Codes) -> tuple[IntArray, IntArray] | None:
    """First occurrence of each distinct row and group of each row; ``None`` if more keys than rows are possible."""
    n = codes.shape[1]
    if not n or codes.max() > np.iinfo(np.int64).max:
        return None
    lowest = [int(feature.min()) for feature in codes]
    widths = [int(feature.max()) - low + 1 for feature, low in zip(codes, lowest, strict=True)]
    if math.prod(widths) > n:
        return None
    keys = np.zeros(n, dtype=np.int64)
    for feature, low, width in zip(codes, lowest, widths, strict=True):
        keys *= width
        keys += feature.astype(np.int64, copy=False) - low
    first = np.full(math.prod(widths), n, dtype=np.int64)
    first[keys[::-1]] = np.arange(n)[::-1]
    occurs = first < n
    return first[occurs], (np.cumsum(occurs) - 1)[keys]


def _agree(codes: Codes, representative: IntArray) -> bool:
    """Whether every row equals its representative (n,)."""
    repeated = np.flatnonzero(representative != np.arange(len(representative)))
    origin = representative[repeated]
    return all(np.array_equal(feature[repeated], feature[origin]) for feature in codes)


def _exact_groups(codes: Codes) -> tuple[IntArray, IntArray]:
    """First occurrence of each distinct row and group of each row, by lexicographic sorting."""
    order = np.lexsort(codes)
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for feature in codes:
        ordered = feature[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new].astype(np.int64), inverse
