"""Codes in small integers, block by block: counted, translated and spread without copies in wide integers.

NumPy widens an array of indices to 64 bits before it uses it; for ten million codes of one byte these are 80 MB. This
module does it one block at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.typing import IntArray

BLOCK = 65_536
"""Codes widened at once: their copies stay in the second-level cache."""


def code_type(levels: int) -> type[np.signedinteger[Any]]:
    """The smallest signed type for codes of that many levels, one code more, and -1.

    >>> code_type(100).__name__, code_type(128).__name__
    ('int8', 'int16')
    """
    types = (np.int8, np.int16, np.int32, np.int64)
    return next(kind for kind in types if levels <= np.iinfo(kind).max)


def recoded(table: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """``table[codes]``, of the dtype of ``table``; code -1 reads its last place.

    >>> recoded(np.array([7, 8, 0], dtype=np.int8), np.array([1, -1, 0])).tolist()
    [8, 0, 7]
    """
    out = np.empty(len(codes), dtype=table.dtype)
    for rows in blocks(len(codes)):
        out[rows] = table[codes[rows]]
    return out


def is_identity(table: NDArray[Any]) -> bool:
    """Whether ``recoded`` by a table, its last place for -1, changes nothing."""
    return bool(table[-1] == -1 and (table[:-1] == np.arange(len(table) - 1)).all())


def occurrences(codes: NDArray[Any], size: int, lowest: int = 0) -> IntArray:
    """(size,) how often each of the integers from ``lowest`` on occurs among (n,) ``codes``.

    >>> occurrences(np.array([-1, 2, 2], dtype=np.int8), 4, lowest=-1).tolist()
    [1, 0, 0, 2]
    """
    counts = np.zeros(size, dtype=np.int64)
    for rows in blocks(len(codes), size):
        counts += np.bincount(places(codes[rows], lowest), minlength=size)
    return counts


def blocks(length: int, size: int = 0) -> list[slice]:
    """Blocks of ``range(length)``, none shorter than ``size`` (but the last), for sums into that many places."""
    step = max(BLOCK, size)
    return [slice(a, min(a + step, length)) for a in range(0, length, step)]


def places(values: NDArray[Any], lowest: int) -> IntArray:
    """(n,) integers of any type minus the lowest of them. Widened first: a difference of two int8 need not be one."""
    if values.dtype.itemsize < 8:
        return np.asarray(np.subtract(values, lowest, dtype=np.int64) if lowest else values.astype(np.int64))
    return np.asarray((values - values.dtype.type(lowest)).astype(np.int64, copy=False))
