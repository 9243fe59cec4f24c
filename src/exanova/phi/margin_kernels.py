"""Compiled loops of margins: counting rows in the cells of up to four features, and reading a Gram matrix from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.compiled import compiled

BLOCK = 4096
"""Rows counted at once: their keys stay in the nearest cache while every fourth feature is added to three."""


@compiled()
def count_cells(codes: Any, weight: Any, sizes: Any, members: Any, start: Any, first: int, last: int, out: Any) -> None:
    """Add the weight of every row to its cell in margins ``first`` to ``last`` of ``out``, which begins at the first.

    ``members`` (n, 4) names the features of each margin, -1 after the last. Margins with the same first three features
    follow each other and share the keys of those.
    """
    r = codes.shape[1]
    keys = np.empty(BLOCK, dtype=np.int32)
    base = start[first]
    u = first
    while u < last:
        v = u + 1
        while v < last and members[v, 0] == members[u, 0] and members[v, 1] == members[u, 1]:
            if members[v, 2] != members[u, 2]:
                break
            v += 1
        for a in range(0, r, BLOCK):
            b = min(r, a + BLOCK)
            keys[: b - a] = 0
            for j in range(3):
                feature = members[u, j]
                if feature >= 0:
                    size, row = np.int32(sizes[feature]), codes[feature]
                    for t in range(b - a):
                        keys[t] = keys[t] * size + np.int32(row[a + t])
            for x in range(u, v):
                own = out[start[x] - base : start[x + 1] - base]
                feature = members[x, 3]
                if feature < 0:
                    for t in range(b - a):
                        own[keys[t]] += weight[a + t]
                    continue
                size, row = np.int32(sizes[feature]), codes[feature]
                for t in range(b - a):
                    own[keys[t] * size + np.int32(row[a + t])] += weight[a + t]
        u = v


@compiled()
def sum_out(table: Any, members: Any, sizes: Any, kept: Any, out: Any) -> None:
    """Sum a margin of features ``members`` over those that ``kept`` (a bit for each of its places) leaves out."""
    out[:] = 0
    strides = np.zeros(4, dtype=np.int64)
    extent = np.ones(4, dtype=np.int64)
    step = 1
    for j in range(3, -1, -1):
        if members[j] >= 0:
            extent[j] = sizes[members[j]]
            if kept >> j & 1:
                strides[j] = step
                step *= extent[j]
    k = 0
    for a in range(extent[0]):
        for b in range(extent[1]):
            for c in range(extent[2]):
                here = a * strides[0] + b * strides[1] + c * strides[2]
                for d in range(extent[3]):
                    out[here + d * strides[3]] += table[k]
                    k += 1


@compiled()
def read_block(
    gram: Any, table: Any, strides: Any, first: Any, levels: Any, members: Any, left: int, right: int, offsets: Any
) -> None:
    """Write the block of subsets ``left`` <= ``right`` to the lower triangle of ``gram``.

    An entry is the weight of the rows in both cells: one cell of the margin of their union, and 0 if the two cells
    differ in a common feature.

    Args:
        gram: (q, q) the Gram matrix of indicators.
        table: the margin of the union.
        strides: (d,) distance of neighbouring levels of each feature in ``table``.
        first: (S + 1,) where the indicators of each subset begin.
        levels: (q, 2) levels of the features of each indicator.
        members: (S, 2) features of each subset, -1 after the last.
        left, right: the two subsets, by number.
        offsets: room for the places of the indicators of ``left``.
    """
    ours = np.full(2, -1)  # place in left of each feature of right, if it is there
    for j in range(2):
        for i in range(2):
            if members[right, j] >= 0 and members[left, i] == members[right, j]:
                ours[j] = i
    nothing = np.full(2, -1)
    a0, a1 = first[left], first[left + 1]
    for a in range(a0, a1):
        offsets[a - a0] = place_of(strides, levels[a], members[left], nothing)
    shared = ours[0] >= 0 or ours[1] >= 0
    for b in range(first[right], first[right + 1]):
        place = place_of(strides, levels[b], members[right], ours)
        for a in range(a0, a1):
            if shared and not agree(levels[a], levels[b], ours):
                gram[b, a] = 0
            else:
                gram[b, a] = table[place + offsets[a - a0]]


@compiled()
def apply_block(
    values: Any, out: Any, table: Any, strides: Any, first: Any, levels: Any, members: Any, left: int, right: int
) -> None:
    """Add the products of the block of subsets ``left`` <= ``right`` and its transpose with ``values`` to ``out``."""
    ours, nothing = np.full(2, -1), np.full(2, -1)
    for j in range(2):
        for i in range(2):
            if members[right, j] >= 0 and members[left, i] == members[right, j]:
                ours[j] = i
    for b in range(first[right], first[right + 1]):
        place = place_of(strides, levels[b], members[right], ours)
        for a in range(first[left], first[left + 1]):
            if not agree(levels[a], levels[b], ours):
                continue
            weight = table[place + place_of(strides, levels[a], members[left], nothing)]
            for o in range(values.shape[1]):
                out[b, o] += weight * values[a, o]
                if left != right:
                    out[a, o] += weight * values[b, o]


@compiled()
def place_of(strides: Any, levels: Any, members: Any, ours: Any) -> int:
    """Place of a cell in a margin, without the features that ``ours`` has already."""
    place = 0
    for j in range(2):
        if members[j] >= 0 and ours[j] < 0:
            place += strides[members[j]] * levels[j]
    return place


@compiled()
def agree(left: Any, right: Any, ours: Any) -> Any:
    """Whether two cells have the same levels of the features in common."""
    first = ours[0] < 0 or left[ours[0]] == right[0]
    return first and (ours[1] < 0 or left[ours[1]] == right[1])


@compiled()
def read_margins(
    gram: Any,
    tables: Any,
    start: Any,
    base: int,
    unions: Any,
    sizes: Any,
    wanted: Any,
    position: Any,
    first: Any,
    levels: Any,
    members: Any,
    values: Any,
    out: Any,
) -> None:
    """Write every block whose union is one of ``wanted`` to the lower triangle of ``gram``, or multiply by it.

    Args:
        gram: (q, q) the Gram matrix of indicators.
        tables: the margins that were counted, from position ``base`` on.
        start: (n + 1,) where each of them begins.
        base: where ``tables`` begins.
        unions: (n, 4) features of each, -1 after the last.
        sizes: (d,) levels of each feature.
        wanted: (w, 2) a margin and the places of it to keep, as bits: the unions to read.
        position: (d + 1, d + 1) number of the subset of two features, of one (last column), of none (last of all); -1
            if the family does not have it.
        first, levels, members: as for ``read_block``.
        values, out: (q, m) if they have rows, the product of the matrix with ``values`` is added to ``out`` instead.
    """
    d = sizes.shape[0]
    strides = np.zeros(d, dtype=np.int64)
    offsets = np.empty((first[1:] - first[:-1]).max(), dtype=np.int64)
    features = np.full(4, d)
    summed = np.empty(0, dtype=tables.dtype)
    for w in range(wanted.shape[0]):
        union, kept = wanted[w, 0], wanted[w, 1]
        table = tables[start[union] - base : start[union + 1] - base]
        count = 0
        size = 1
        for j in range(4):
            if unions[union, j] >= 0 and kept >> j & 1:
                features[count] = unions[union, j]
                size *= sizes[unions[union, j]]
                count += 1
        step = 1
        for j in range(count - 1, -1, -1):
            strides[features[j]] = step
            step *= sizes[features[j]]
        if size < table.shape[0]:
            if summed.shape[0] < size:
                summed = np.empty(size, dtype=tables.dtype)
            sum_out(table, unions[union], sizes, kept, summed[:size])
            table = summed[:size]
        for left in range(1 << count):
            a = number_of(position, features, left, count, d)
            if a < 0:
                continue
            for right in range(1 << count):
                if left | right == (1 << count) - 1:
                    b = number_of(position, features, right, count, d)
                    if b >= a and values.shape[0]:
                        apply_block(values, out, table, strides, first, levels, members, a, b)
                    elif b >= a:
                        read_block(gram, table, strides, first, levels, members, a, b, offsets)


@compiled()
def number_of(position: Any, features: Any, chosen: int, count: int, d: int) -> int:
    """Number of the subset of the chosen (bits) features; -1 for more than two, or if the family does not have it."""
    first, second, taken = d, d, 0
    for j in range(count):
        if chosen >> j & 1:
            if taken == 0:
                first = features[j]
            else:
                second = features[j]
            taken += 1
    return position[first, second] if taken <= 2 else -1
