"""Arrays in temporary files: what does not fit in memory is mapped from disk, and deleted with its last reference.

A file has no name once it is open, so that it disappears however the process ends. Its space is reserved before
anything is written: a full disk is one error, and not a crash in the middle of a pass.
"""

from __future__ import annotations

import os
import tempfile
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.mapped import TRIMMED_FROM, release, trim
from exanova.errors import FileWriteError
from exanova.packages import package

ZEROS = 2**22
"""Bytes written at once where a file system cannot reserve space."""


def disk_array(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros in a temporary file, mapped into memory.

    >>> disk_array((2, 3), np.uint8).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if not size:
        return np.zeros(shape, dtype=dtype)
    try:
        with tempfile.TemporaryFile(prefix="exanova-") as file:
            _reserve(file, size)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape).view(np.ndarray)
    except OSError as error:
        raise FileWriteError(
            f"{size / 1e6:,.0f} MB of distinct rows do not fit on the disk of {tempfile.gettempdir()!r}: "
            f"{error.strerror or error}",
            remedy="Free some room, or set the environment variable TMPDIR to a folder on a larger disk",
        ) from error


def on_disk(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array in a temporary file."""
    out = disk_array(array.shape, array.dtype)
    out[...] = array
    release(out)
    return out


def give_back(rows: int = TRIMMED_FROM) -> None:
    """Return memory that the allocators of pyarrow and of the C library keep for later to the system.

    Blocks of rows are large and many: what is kept of them would add to the peak of everything that follows. After work
    on few ``rows`` there is nothing to return.
    """
    if rows >= TRIMMED_FROM:
        package("pyarrow").default_memory_pool().release_unused()
    trim(rows)


def _reserve(file: Any, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, ZEROS):
        file.write(bytes(min(ZEROS, size - start)))
    file.flush()
