"""Models given on the command line: an ONNX file, a function of a module, or a pickle that is trusted.

Whatever it is, the library calls it with a pyarrow table of the features. A function or an estimator of Python receives
a pandas dataframe where pandas is installed and that table where it is not; an estimator that was fitted on plain
arrays receives an array.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from exanova.cli.text import listed, nearest, one_line
from exanova.errors import InputError, ModelError

PICKLES = (".joblib", ".pkl", ".pickle")


class Model(Protocol):
    """A model as the library calls it; ``classes_`` are the names of its outputs, if it has any."""

    classes_: Any

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """Which of these columns it asks for, in its order; ``None`` if it does not say."""

    def __call__(self, table: Any) -> Any:
        """The outputs at the rows of a pyarrow table."""


class PythonModel:
    """A function, or an estimator by its probabilities or else its predictions."""

    def __init__(self, respond: Callable[[Any], Any], names: Any, classes: Any, plain: bool, explained: Any) -> None:
        self._respond, self._names, self._plain = respond, names, plain
        self.explained_model = explained  # read for the thresholds of its trees
        self.classes_ = classes

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """The names of the features it was fitted on, if it was fitted on a dataframe."""
        return None if self._names is None else [str(name) for name in self._names]

    def __call__(self, table: Any) -> Any:
        """The outputs at the rows of a pyarrow table."""
        given = _array(table) if self._plain else table.to_pandas() if find_spec("pandas") else table
        try:
            return self._respond(given)
        except Exception as error:  # a model may raise anything
            raise ModelError(
                f"the model raised {_named(error)}. It was given {table.num_rows:,} rows as a "
                f"{type(given).__module__.partition('.')[0]} {type(given).__name__} with {listed(table.column_names)}."
            ) from error


def load_model(given: str, trust_pickle: bool, threads: int) -> Model:
    """The model that ``--model`` names.

    Raises:
        InputError: if it cannot be loaded, or is a pickle and was not said to be trusted.
    """
    suffix = Path(given).suffix.lower()
    if suffix in (".onnx", *PICKLES) and not Path(given).is_file():
        raise InputError(f"--model {given!r}: there is no such file.")
    if suffix == ".onnx":
        from exanova.cli.onnx import OnnxModel

        return OnnxModel(given, threads)
    if suffix in PICKLES:
        return _of_python(_from_pickle(given, trust_pickle), given)
    if ":" in given:
        return _of_python(_from_module(given), given)
    raise InputError(
        f"--model {given!r} is neither a file .onnx, {', '.join(PICKLES)} nor a function package.module:function."
    )


def _from_pickle(path: str, trusted: bool) -> Any:
    if not trusted:
        raise InputError(
            f"--model {path!r} is a pickle, and loading a pickle runs whatever program is in it; add --trust-pickle "
            "if you know who made it. An ONNX file needs no trust."
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # a pickle may raise anything
        raise InputError(f"--model {path!r} cannot be loaded: {_named(error)}.") from error


def _from_module(given: str) -> Any:
    module_name, _, path = given.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module may raise anything, and end itself as a script does
        raise InputError(f"--model {given!r}: {module_name!r} cannot be imported: {_named(error)}.") from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InputError(f"--model {given!r}: there is no {name!r} in {module_name!r}.{nearest(name, dir(found))}")
        found = getattr(found, name)
    return found


def _of_python(found: Any, given: str) -> Model:
    method = next((getattr(found, name) for name in ("predict_proba", "predict") if hasattr(found, name)), None)
    respond = found if method is None else method
    if isinstance(found, type) or not callable(respond):
        raise InputError(
            f"--model {given!r} is of type {type(found).__name__}; expected a function or a fitted estimator."
        )
    names = getattr(found, "feature_names_in_", None)
    plain = names is None and hasattr(found, "n_features_in_")
    return PythonModel(respond, names, getattr(found, "classes_", None), plain, found)


def _array(table: Any) -> Any:
    """A two-dimensional array: of numbers if all columns are, else of objects."""
    import numpy as np

    columns = [table.column(k).to_numpy() for k in range(table.num_columns)]
    numeric = all(column.dtype.kind in "biuf" for column in columns)
    out = np.empty((table.num_rows, len(columns)), dtype=np.float64 if numeric else object)
    for k, column in enumerate(columns):
        out[:, k] = column
    return out


def _named(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", 300).rstrip(".")
