"""Arrays that are mapped from files: letting their pages go from memory between blocks of rows."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
