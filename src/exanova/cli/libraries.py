"""Optional libraries, imported when they are needed, with what to install when they are not there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from exanova.errors import MissingPackageError

EXTRAS = {"pyarrow": "app", "onnxruntime": "onnx", "onnx": "onnx"}


@cache
def library(name: str) -> Any:
    """A module of an optional library, such as ``pyarrow.csv``.

    >>> library("pyarrow.csv").__name__
    'pyarrow.csv'
    """
    if name.startswith("pyarrow") and find_spec("pandas"):
        import_module("pandas")  # pyarrow would import it in a place where Ctrl-C is lost
    try:
        return import_module(name)
    except ImportError as error:
        extra = EXTRAS[name.partition(".")[0]]
        raise MissingPackageError(
            f'this needs {name}, which cannot be imported ({error}); pip install "exanova[{extra}]".'
        ) from error


def check_installed(names: Sequence[str], what: str) -> None:
    """Refuse to begin what would need a library that is not there at its end."""
    absent = [name for name in names if find_spec(name) is None]
    if absent:
        raise MissingPackageError(f'{what} needs {", ".join(absent)}; pip install "exanova[app]".')
