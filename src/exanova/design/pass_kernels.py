"""Compiled inner loops of the passes; imported only when the work is large enough to pay for it.

Each kernel walks the rows in blocks that stay in cache and processes all subsets on one block before the next, so
that each code is read from memory once per pass. Kernels release the interpreter lock; callers split the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.compiled import compiled

BLOCK = 4096
"""Rows per block."""

SMALL_TABLE = 512
"""Keys of the largest table that is kept in four copies."""


@compiled()
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
    prefix: Any,
    held: int,
    keys: Any,
) -> int:
    """Write the keys of rows a..b in subset ``s`` to ``keys``; all rows must lie in the support.

    From order 3 on, the cells of its prefix go to ``prefix``. Where the lookup of the prefix begins tells prefixes
    apart; ``held`` is the place of the one whose cells are there already, and that of the new one is returned:
    neighbouring subsets often have the same prefix.
    """
    if order == 0:
        keys[: b - a] = 0
        return held
    if order > 2 and chain[s, order - 2] == held:
        fill_last(codes, members[s, order - 1], sizes, a, b, prefix, keys)
        return held
    first = members[s, 0]
    for t in range(b - a):
        keys[t] = np.int32(codes[first, a + t])
    for j in range(1, order):
        if j > 1:
            held = chain[s, j - 1]
            for t in range(b - a):
                prefix[t] = lookup[held + keys[t]]
        fill_last(codes, members[s, j], sizes, a, b, prefix if j > 1 else keys, keys)
    return held


@compiled(inline="always")
def fill_last(codes: Any, feature: int, sizes: Any, a: int, b: int, cells: Any, keys: Any) -> None:
    """Write the keys of rows a..b from the ``cells`` of a prefix and the levels of one more feature."""
    size = np.int32(sizes[feature])
    for t in range(b - a):
        keys[t] = cells[t] * size + np.int32(codes[feature, a + t])


@compiled()
def fill_keys_checked(
    codes: Any, members: Any, sizes: Any, chain: Any, lookup: Any, s: int, order: int, a: int, b: int, keys: Any
) -> None:
    """The same for rows that may lie outside the support: -1 for an unknown level or an unobserved prefix."""
    keys[: b - a] = 0
    for j in range(order):
        feature = members[s, j]
        size = np.int32(sizes[feature])
        start = chain[s, j - 1] if j > 1 else 0
        for t in range(b - a):
            key = keys[t]
            if j > 1 and key >= 0:
                key = lookup[start + key]
            level = np.int32(codes[feature, a + t])
            keys[t] = key * size + level if key >= 0 and 0 <= level < size else np.int32(-1)


@compiled()
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
    """Add the values of every row to its key in subsets first..last of ``out``, which begins at key ``base``.

    Neighbouring rows often fall in the same cell, and each addition must wait for the one before it. Small tables
    are therefore kept in four copies, which rows use in turn and which are added up after each block.
    """
    r, m = values.shape
    keys, prefix = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    turns = np.zeros((4, SMALL_TABLE * m))
    for a in range(0, r, BLOCK):
        b, held = min(r, a + BLOCK), np.int64(-1)
        for s in range(first, last):
            held = fill_keys(codes, members, sizes, chain, lookup, s, order[s], a, b, prefix, held, keys)
            start = key_start[s] - base
            size = key_start[s + 1] - key_start[s]
            if size > SMALL_TABLE:
                for t in range(b - a):
                    for o in range(m):
                        out[start + keys[t], o] += values[a + t, o]
                continue
            add_in_turns(keys, values, a, b, turns)
            for k in range(size):
                for o in range(m):
                    c = k * m + o
                    out[start + k, o] += (turns[0, c] + turns[1, c]) + (turns[2, c] + turns[3, c])
                    turns[0, c] = turns[1, c] = turns[2, c] = turns[3, c] = 0.0


@compiled()
def add_in_turns(keys: Any, values: Any, a: int, b: int, turns: Any) -> None:
    """Add rows a..b to four copies of a small table, row t to copy t modulo 4."""
    m = values.shape[1]
    whole = (b - a) // 4 * 4
    if m == 1:
        for t in range(0, whole, 4):
            turns[0, keys[t]] += values[a + t, 0]
            turns[1, keys[t + 1]] += values[a + t + 1, 0]
            turns[2, keys[t + 2]] += values[a + t + 2, 0]
            turns[3, keys[t + 3]] += values[a + t + 3, 0]
    else:
        for t in range(0, whole, 4):
            for o in range(m):
                turns[0, keys[t] * m + o] += values[a + t, o]
                turns[1, keys[t + 1] * m + o] += values[a + t + 1, o]
                turns[2, keys[t + 2] * m + o] += values[a + t + 2, o]
                turns[3, keys[t + 3] * m + o] += values[a + t + 3, o]
    for t in range(whole, b - a):
        for o in range(m):
            turns[t - whole, keys[t] * m + o] += values[a + t, o]


@compiled()
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
    inside: bool,
    out: Any,
) -> None:
    """Add the values at the keys of rows first..last, over all subsets, to ``out``; ``inside``: all are observed."""
    m = out.shape[1]
    keys, prefix = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    for a in range(first, last, BLOCK):
        b, held = min(last, a + BLOCK), np.int64(-1)
        for s in range(order.shape[0]):
            start = key_start[s]
            if inside:
                held = fill_keys(codes, members, sizes, chain, lookup, s, order[s], a, b, prefix, held, keys)
                if m == 1:
                    for t in range(b - a):
                        out[a + t, 0] += tables[start + keys[t], 0]
                else:
                    for t in range(b - a):
                        for o in range(m):
                            out[a + t, o] += tables[start + keys[t], o]
                continue
            fill_keys_checked(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            for t in range(b - a):
                if keys[t] >= 0:
                    for o in range(m):
                        out[a + t, o] += tables[start + keys[t], o]


@compiled()
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
            fill_keys_checked(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            start = key_start[s]
            for t in range(b - a):
                if keys[t] < 0 or lookup[start + keys[t]] < 0:
                    out[a + t] = True
