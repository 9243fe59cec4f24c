"""Compilation of inner loops: cached on disk if possible, else once per process.

Numba caches compiled loops next to the source file or in the user's cache directory (``NUMBA_CACHE_DIR`` sets another
folder). If it can write to none of them, as in a container with read-only folders, it refuses to compile with a cache;
loops are then compiled in each process, which takes a few seconds and does not change results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

REFUSED = "cannot cache function"
"""Beginning of numba's error message if it has no place to cache a compiled loop."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that releases the interpreter lock; ``options`` are passed to ``numba.njit``.

    >>> @compiled()
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError as error:
            if not str(error).startswith(REFUSED):
                raise
        return numba.njit(nogil=True, **options)(function)

    return decorate
