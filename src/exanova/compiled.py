"""How inner loops are compiled: once for all processes where the result can be kept, else once for each process.

Numba keeps compiled loops beside the source file or in the user's cache directory (``NUMBA_CACHE_DIR`` names another
place). Where it may write to none of them, as in a container with read-only folders, it refuses to compile at all;
a loop is then compiled anew in each process, which takes a few seconds and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

REFUSED = "cannot cache function"
"""How numba's error begins where it has no place to keep a compiled loop."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function without the interpreter lock; ``options`` are further ones of ``numba.njit``.

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
