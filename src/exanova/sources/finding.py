"""The files that a path, a pattern, a folder or a list of these names."""

from __future__ import annotations

import glob
import os
from typing import Any

from exanova.errors import InputError
from exanova.sources.files import SUFFIXES

PATTERN = "*?["


def find_files(X: Any) -> list[str]:
    """The files that a path, a pattern, a folder or a list of these names, in alphabetical order.

    >>> find_files("no/such/*.parquet")
    Traceback (most recent call last):
    exanova.errors.InputError: no file matches 'no/such/*.parquet'; check the pattern and the folder it starts in.
    """
    if isinstance(X, str | os.PathLike):
        return _of_one(os.fspath(X))
    paths = [path for one in X for path in _of_one(os.fspath(one))]
    repeated = sorted({path for path in paths if paths.count(path) > 1}) if len(paths) != len(set(paths)) else []
    if repeated:
        raise InputError(f"{repeated[0]!r} is named more than once; its rows would count twice. Name every file once.")
    if not paths:
        raise InputError("a list without a single path was given in place of a table", expected="paths of files")
    return paths


def _of_one(path: str) -> list[str]:
    if os.path.isdir(path):
        paths = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if _is_known(name) and not name.startswith((".", "_"))
        ]
        if not paths:
            raise InputError(f"the folder {path!r} holds no file of a known format", expected=", ".join(SUFFIXES))
        return sorted(paths)
    if not os.path.exists(path) and any(mark in path for mark in PATTERN):
        paths = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
        if not paths:
            raise InputError(f"no file matches {path!r}", remedy="check the pattern and the folder it starts in")
        return sorted(paths)
    return [path]


def _is_known(name: str) -> bool:
    stem = name.lower().removesuffix(".gz")
    return os.path.splitext(stem)[1] in SUFFIXES
