"""Memory that goes back to the system: pages of files that arrays are mapped from, and what the C library keeps."""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIMMED_FROM = 50_000
"""Rows from which freed memory is returned at once; on fewer that takes longer than the rest."""


def mapping_of(array: Any) -> mmap.mmap | None:
    """The map that an array is a view of; ``None`` for one that is in memory.

    >>> mapping_of(np.zeros(3)) is None
    True
    """
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def release(*arrays: NDArray[Any] | None) -> None:
    """Let the pages of mapped arrays go from memory; they are read again from the file when they are needed."""
    for array in arrays:
        mapped = mapping_of(array)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def trim(rows: int) -> None:
    """Return freed memory to the system after work on this many rows: it would add to every later peak."""
    malloc_trim = _trimming() if rows >= TRIMMED_FROM else None
    if malloc_trim is not None:
        malloc_trim(0)


@cache
def _trimming() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
