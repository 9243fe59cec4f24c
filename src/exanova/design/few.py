"""Keys of all subsets at once, for a few rows and many subsets.

``passes`` loops over subsets, which for a single row and a thousand subsets is a thousand Python steps. Here step j
handles the j-th feature of all subsets together, so that there are only as many steps as the highest order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exanova.design.passes import Layout
from exanova.typing import Codes, IntArray

ROWS, MORE_ROWS = 64, 1500
"""Rows up to which the keys of all subsets are held at once, whatever their number, and where memory allows."""

NUMBERS = 4_000_000
"""Rows times subsets times outputs that take little memory."""


def applies(rows: int, subsets: int, outputs: int = 1) -> bool:
    """Whether all subsets are looked up at once for this number of rows."""
    return rows <= ROWS or (rows <= MORE_ROWS and rows * subsets * outputs <= NUMBERS)


def keys_of_subsets(layout: Layout, codes: Codes) -> IntArray:
    """(S, n) key of every row in every subset; the same keys as ``passes.keys_of_rows`` for each subset.

    >>> from exanova.design.family import extend, intercept_family
    >>> codes = np.array([[0, 1], [0, 1]], dtype=np.uint8)
    >>> family = extend(intercept_family([2, 2], 2.0), [(0,), (1,)], codes, np.ones(2))
    >>> family = extend(family, [(0, 1)], codes, np.ones(2))
    >>> keys_of_subsets(family.layout, np.array([[0, 1, -1], [1, 1, 0]])).tolist()
    [[0, 0, 0], [0, 1, -1], [1, 1, 0], [1, 3, -1]]
    """
    keys = np.zeros((len(layout.order), codes.shape[1]), dtype=np.int64)
    for j in range(int(layout.order[-1])):
        own = slice(int(np.searchsorted(layout.order, j, side="right")), None)  # subsets of more than j features
        key, features = keys[own], layout.members[own, j]
        if j > 1:
            cell = layout.lookup[layout.chain[own, j - 1, None] + np.maximum(key, 0)]
            key = np.where(key >= 0, cell, -1)
        level, size = codes[features].astype(np.int64), layout.sizes[features, None]
        keys[own] = np.where((key >= 0) & (level >= 0) & (level < size), key * size + level, -1)
    return keys


def outside(layout: Layout, codes: Codes) -> NDArray[np.bool_]:
    """(n,) whether a row falls in a cell of some subset that was never observed."""
    keys = keys_of_subsets(layout, codes)
    cells = layout.lookup[layout.key_start[:-1, None] + np.maximum(keys, 0)]
    return np.asarray(((keys < 0) | (cells < 0)).any(axis=0))
