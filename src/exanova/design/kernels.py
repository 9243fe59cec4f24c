"""Compiled inner loops of the passes; imported only when the work is large enough to pay for it.

Each kernel walks the rows in blocks that stay in cache and lets every subset go over a block in turn, so that
a code is read from memory once a pass. Kernels release the interpreter lock; who calls them splits the work.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

BLOCK = 4096


@numba.njit(nogil=True, cache=True, inline="never")  # type: ignore[untyped-decorator]
def fill_keys(
    codes: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    lookup: Any,
    s: int,
    order: int,
    a: int,
    b: int,
    keys: Any,
) -> None:
    """Write the key of rows a..b inside subset ``s`` to ``keys``; -1 for an unknown level or an unseen prefix."""
    if order == 0:
        keys[: b - a] = 0
        return
    first = members[s, 0]
    for t in range(b - a):
        keys[t] = np.int32(codes[first, a + t])
    for j in range(1, order):
        feature = members[s, j]
        size = np.int32(sizes[feature])
        start = chain[s, j - 1]
        if j > 1:
            for t in range(b - a):
                if keys[t] >= 0:
                    keys[t] = lookup[start + keys[t]]
        for t in range(b - a):
            level = np.int32(codes[feature, a + t])
            keys[t] = keys[t] * size + level if keys[t] >= 0 and level >= 0 else -1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def scatter_kernel(
    codes: Any,
    values: Any,
    order: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    key_start: Any,
    lookup: Any,
    first: int,
    last: int,
    base: int,
    out: Any,
) -> None:
    """Add the values of every row to its key in subsets first..last of ``out``, which begins at key ``base``."""
    r, m = values.shape
    keys = np.empty(BLOCK, dtype=np.int32)
    for a in range(0, r, BLOCK):
        b = min(r, a + BLOCK)
        for s in range(first, last):
            fill_keys(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            start = key_start[s] - base
            if m == 1:
                for t in range(b - a):
                    out[start + keys[t], 0] += values[a + t, 0]
            else:
                for t in range(b - a):
                    for o in range(m):
                        out[start + keys[t], o] += values[a + t, o]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def gather_kernel(
    codes: Any,
    tables: Any,
    order: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    key_start: Any,
    lookup: Any,
    first: int,
    last: int,
    out: Any,
) -> None:
    """Add to rows first..last of ``out`` the values of their keys in every subset."""
    m = out.shape[1]
    keys = np.empty(BLOCK, dtype=np.int32)
    for a in range(first, last, BLOCK):
        b = min(last, a + BLOCK)
        for s in range(order.shape[0]):
            fill_keys(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            start = key_start[s]
            for t in range(b - a):
                if keys[t] >= 0:
                    for o in range(m):
                        out[a + t, o] += tables[start + keys[t], o]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def outside_kernel(
    codes: Any,
    order: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    key_start: Any,
    lookup: Any,
    first: int,
    last: int,
    out: Any,
) -> None:
    """Mark the rows first..last that fall in an unobserved cell of some subset."""
    keys = np.empty(BLOCK, dtype=np.int32)
    for a in range(first, last, BLOCK):
        b = min(last, a + BLOCK)
        for s in range(order.shape[0]):
            fill_keys(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            start = key_start[s]
            for t in range(b - a):
                if keys[t] < 0 or lookup[start + keys[t]] < 0:
                    out[a + t] = True
