"""Compilation of inner loops: cached on disk if possible, else once per process; and when it is worth its time.

Compiled loops are cached in the first of these directories that can be written to: the one that ``NUMBA_CACHE_DIR``
names, the one of the source file, the user's cache directory, and a private directory among the temporary files. In a
container where no file can be written at all, loops are compiled in each process, which takes a few seconds and does
not change results.

Numba itself takes a fifth of a second to import, so that modules with compiled loops are imported only where the work
is large enough.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from typing import Any

REFUSED = "cannot cache function"
"""Beginning of numba's error message if it cannot cache a compiled loop."""

_missed: dict[str, float] = {}
"""Seconds that each module of compiled loops would have saved in this process so far."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that releases the interpreter lock; ``options`` are passed to ``numba.njit``.

    >>> @compiled()
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    import numba

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError as error:
            if not str(error).startswith(REFUSED):
                raise
        return _compiled_elsewhere(numba, function, options)

    return decorate


def _compiled_elsewhere(numba: Any, function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The same with a cache among the temporary files, or with none."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, private_directory()
    try:
        return numba.njit(nogil=True, cache=bool(numba.config.CACHE_DIR), **options)(function)
    except RuntimeError as error:
        if not str(error).startswith(REFUSED):
            raise
        return numba.njit(nogil=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def private_directory() -> str:
    """A directory among the temporary files that no other user can write to; empty if there is none.

    What is cached is run, so that a directory that someone else has made is not used.
    """
    user = os.getuid() if hasattr(os, "getuid") else None  # temporary files of Windows are the user's own
    try:
        path = os.path.join(tempfile.gettempdir(), "exanova" if user is None else f"exanova-{user}")
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return ""
    own = user is None or (stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o022)
    return path if own else ""


def worth_loading(module: str, saved: float, price: float) -> bool:
    """Whether to use the compiled loops of a module, which would save ``saved`` seconds this time.

    They are used if they are loaded already, or if all that they would have saved in this process exceeds the price of
    loading them: many small pieces of work are worth it together, one alone is not.

    >>> [worth_loading("exanova.example", saved=0.4, price=1.0) for _ in range(4)]
    [False, False, True, True]
    """
    if module in sys.modules:
        return True
    _missed[module] = _missed.get(module, 0.0) + saved
    return _missed[module] > price
