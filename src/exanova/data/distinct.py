"""Distinct rows of a table of codes, exactly: numbered where few combinations can occur, else hashed and verified."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exanova.typing import Codes, IntArray

SEED = 20240229
"""Of the multipliers: fixed, so that nothing varies from one run to the next."""


def distinct_rows(codes: Codes) -> tuple[IntArray, IntArray]:
    """Distinct columns of ``codes`` (d, n), that is distinct rows of the table.

    Returns:
        first: (r,) position of the first occurrence of each distinct row, increasing.
        inverse: (n,) which of the distinct rows each row is.

    >>> first, inverse = distinct_rows(np.array([[0, 1, 0], [2, 2, 2]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0])
    """
    found = _counted_groups(codes)
    if found is None:
        _, first, inverse = np.unique(hash_rows(codes), return_index=True, return_inverse=True)
        found = (first, inverse) if _agree(codes, first[inverse]) else _exact_groups(codes)
    first, inverse = found
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[inverse].astype(np.int64)


def pick_rows(codes: Codes, first: IntArray) -> Codes:
    """The rows ``first`` (r,) of ``codes`` (d, n); the same array when they are all of them."""
    return codes if len(first) == codes.shape[1] else codes[:, first]


def hash_rows(codes: Codes) -> NDArray[np.uint64]:
    """A 64-bit hash of each row, shape (n,): the sum of its codes times fixed random odd numbers."""
    generator = np.random.default_rng(SEED)
    multipliers = generator.integers(0, 2**64, size=len(codes), dtype=np.uint64) | np.uint64(1)
    hashes = np.zeros(codes.shape[1], dtype=np.uint64)
    for feature, multiplier in zip(codes, multipliers, strict=True):
        hashes += feature.astype(np.uint64) * multiplier
    return hashes


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
