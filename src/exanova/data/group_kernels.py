"""Compiled loops that group equal rows: by direct numbering if few combinations are possible, else by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.compiled import compiled

BLOCK = 4096
"""Rows whose keys are computed at once, feature by feature, so that they stay in the nearest cache."""

SLOTS = 4096
"""Slots of a hash table at first; it grows so that at most half of them are taken."""

SPREAD = 0x9E3779B97F4A7C15
"""Odd multiplier whose products have well mixed high bits (2^64 over the golden ratio)."""


@compiled()
def fill_keys(codes: Any, lowest: Any, factors: Any, a: int, b: int, keys: Any) -> None:
    """Keys of rows a..b: the sum over features of (code - lowest) times a factor, modulo 2^64."""
    keys[: b - a] = 0
    for i in range(codes.shape[0]):
        row, low, factor = codes[i], np.uint64(lowest[i]), factors[i]
        for t in range(b - a):
            keys[t] += (np.uint64(row[a + t]) - low) * factor


@compiled()
def number_rows(codes: Any, lowest: Any, factors: Any, numbers: Any, first: Any, group: Any) -> int:
    """Number the distinct rows in the order of their first occurrence, by a table ``numbers`` of all keys, -1 at first.

    Writes the first row of each to ``first`` and the number of each row to ``group``; returns how many there are.
    """
    n, count = codes.shape[1], 0
    keys = np.empty(BLOCK, dtype=np.uint64)
    for a in range(0, n, BLOCK):
        b = min(n, a + BLOCK)
        fill_keys(codes, lowest, factors, a, b, keys)
        for t in range(b - a):
            number = numbers[keys[t]]
            if number < 0:
                number = count
                numbers[keys[t]] = number
                first[count] = a + t
                count += 1
            group[a + t] = number
    return count


@compiled()
def hash_rows(codes: Any, lowest: Any, factors: Any, exact: bool, first: Any, group: Any, own: Any) -> int:
    """The same by a hash table. ``own`` has room for the key of each distinct row.

    Keys that are ``exact`` are equal for equal rows alone; others are compared code by code when they are equal.
    """
    n, count, bits = codes.shape[1], 0, 12
    keys = np.empty(BLOCK, dtype=np.uint64)
    slots = np.full(SLOTS, -1, dtype=np.int32)
    while slots.shape[0] > 1 << bits:
        bits += 1
    for a in range(0, n, BLOCK):
        b = min(n, a + BLOCK)
        fill_keys(codes, lowest, factors, a, b, keys)
        if 2 * (count + b - a) > slots.shape[0]:
            while 2 * (count + b - a) > 1 << bits:
                bits += 1
            slots = rehashed(own, count, bits)
        last = np.uint64((1 << bits) - 1)
        for t in range(b - a):
            key = keys[t]
            place = (key * np.uint64(SPREAD)) >> np.uint64(64 - bits)
            number = slots[place]
            while number >= 0 and not (own[number] == key and (exact or same(codes, first[number], a + t))):
                place = (place + np.uint64(1)) & last
                number = slots[place]
            if number < 0:
                number = count
                slots[place] = number
                own[count] = key
                first[count] = a + t
                count += 1
            group[a + t] = number
    return count


@compiled()
def rehashed(own: Any, count: int, bits: int) -> Any:
    """A table of 2^bits slots with the keys of the first ``count`` distinct rows."""
    slots = np.full(1 << bits, -1, dtype=np.int32)
    last = np.uint64((1 << bits) - 1)
    for number in range(count):
        place = (own[number] * np.uint64(SPREAD)) >> np.uint64(64 - bits)
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & last
        slots[place] = number
    return slots


@compiled()
def same(codes: Any, one: int, other: int) -> bool:
    """Whether two rows are equal."""
    for i in range(codes.shape[0]):  # noqa: SIM110 - no generators in compiled code
        if codes[i, one] != codes[i, other]:
            return False
    return True
