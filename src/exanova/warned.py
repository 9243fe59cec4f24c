"""Warnings that name the line which called the package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

BESIDE = (os.path.dirname(os.path.abspath(__file__)) + os.sep, contextlib.__file__)
"""Where frames are no caller's: this package, and the context managers it runs in."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the file and line of the innermost caller outside the package.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("mind the gap")
    >>> str(caught[0].message), caught[0].category.__name__
    ('mind the gap', 'UserWarning')
    """
    warnings.warn(message, category, stacklevel=_frames_to_caller())


def _frames_to_caller() -> int:
    """Number of stack frames from the caller of this function up to code outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(BESIDE):
        frame, level = frame.f_back, level + 1
    return level
