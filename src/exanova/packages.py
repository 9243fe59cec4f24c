"""Optional packages, imported on demand; if one is missing, the error says what to install."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from exanova.errors import MissingPackageError

EXTRAS = {
    "pyarrow": "app",
    "polars": "polars",
    "distributed": "dask",
    "openpyxl": "xlsx",
    "onnxruntime": "onnx",
    "onnx": "onnx",
}
"""Extra of exanova that installs each package."""


@cache
def package(name: str) -> Any:
    """An optional package or one of its modules, such as ``pyarrow.csv``.

    >>> package("pyarrow.csv").__name__
    'pyarrow.csv'
    """
    if name.startswith("pyarrow") and find_spec("pandas"):
        import_module("pandas")  # pyarrow would import it at a point where Ctrl-C is ignored
    try:
        return import_module(name)
    except ImportError as error:
        extra = EXTRAS[name.partition(".")[0]]
        raise MissingPackageError(
            f"{name} is needed and cannot be imported ({error})", remedy=f'install it: pip install "exanova[{extra}]"'
        ) from error


def check_installed(names: Sequence[str], what: str) -> None:
    """Raise an error in advance if one of these packages is missing."""
    absent = [name for name in names if find_spec(name) is None]
    if absent:
        raise MissingPackageError(f"{what} needs {', '.join(absent)}", remedy='install it: pip install "exanova[app]"')
