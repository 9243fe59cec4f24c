"""Models given on the command line: an ONNX file, a Python function, or a pickle that the user trusts.

The library calls each of them with a pyarrow table of the features. A Python function or estimator then receives a
pandas dataframe if pandas is installed and the pyarrow table otherwise; an estimator fitted on plain arrays receives an
array. An ONNX model has either one input per feature, under its name, or a single tensor with one column per feature,
as converters from scikit-learn write it. Its real outputs are used: class probabilities, with the names of the classes
if the file has them, or predictions of a regression.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from exanova.cli.text import listed, nearest, one_line
from exanova.data.class_outputs import class_outputs
from exanova.errors import InputError, ModelError
from exanova.packages import package

PICKLES = (".joblib", ".pkl", ".pickle")
DTYPES: dict[str, Any] = {
    "tensor(string)": object,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
REAL = ("tensor(float)", "tensor(double)", "tensor(float16)")


class Model(Protocol):
    """A model as the library calls it; ``classes_`` are the names of its outputs, or ``None``."""

    classes_: Any

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """The columns it needs, in its order; ``None`` if the model does not state them."""

    def __call__(self, table: Any) -> Any:
        """The outputs at the rows of a pyarrow table."""


class PythonModel:
    """A function, or the class probabilities (otherwise the predictions) of an estimator."""

    def __init__(self, respond: Callable[[Any], Any], names: Any, classes: Any, plain: bool, explained: Any) -> None:
        self._respond, self._names, self._plain = respond, names, plain
        self._classes, self._every = classes, not hasattr(explained, "predict_proba")
        self.explained_model = explained  # read for the thresholds of its trees
        self.classes_ = classes

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """The names of its features, if it was fitted on a dataframe."""
        return None if self._names is None else [str(name) for name in self._names]

    def __call__(self, table: Any) -> Any:
        """The outputs at the rows of a pyarrow table."""
        given = _array(table) if self._plain else table.to_pandas() if find_spec("pandas") else table
        try:
            returned = self._respond(given)
        except Exception as error:  # a model may raise anything
            raise ModelError(
                f"the model raised {_named(error)}. It was called on {table.num_rows:,} rows, a "
                f"{type(given).__module__.partition('.')[0]} {type(given).__name__} with the columns "
                f"{listed(table.column_names)}.{_about_categories(table)}"
            ) from error
        outputs, self.classes_ = class_outputs(returned, self._classes, self._every)
        return outputs


def _about_categories(table: Any) -> str:
    """Advice for a model that was given text and expects categories."""
    text = [name for name, kind in zip(table.column_names, table.schema.types, strict=True) if "string" in str(kind)]
    if not text:
        return ""
    return (
        " If it was trained on categorical columns, name them with --categories (--categories all for every column of "
        "text), or give a Parquet file, which keeps them."
    )


class OnnxModel:
    """A model in an ONNX file.

    Attributes:
        classes_: names of the outputs, set by the first call; ``None`` if the file has none.
    """

    def __init__(self, path: str, threads: int) -> None:
        runtime = package("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # errors are raised as well
        try:
            self._session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the errors of onnxruntime have no common ancestor
            reason = one_line(error, 200).rstrip(".")
            raise InputError(f"--model {path!r} cannot be read as ONNX: {reason}.") from error
        self._inputs = self._session.get_inputs()
        unread = [i for i in self._inputs if i.type not in DTYPES]
        if unread or not self._inputs:
            raise InputError(
                f"--model {path!r} has the inputs {_described(self._inputs)}; expected tensors of features."
            )
        self.classes_: tuple[str, ...] | None = None
        self._path = path

    @property
    def explained_model(self) -> Any:
        """The graph of the file, for the thresholds of its trees."""
        return package("onnx").load(self._path)

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """The columns named by its inputs, in their order; ``None`` if one input takes all features."""
        by_plain_name = {_plain_name(column): column for column in columns}
        names = [i.name for i in self._inputs]
        wanted = [n if n in columns else by_plain_name.get(_plain_name(n), n) for n in names]
        one_for_all = len(names) == 1 and (_width(self._inputs[0]) != 1 or wanted[0] not in columns)
        return None if one_for_all else wanted

    def __call__(self, table: Any) -> NDArray[Any]:
        """The outputs at the rows of a pyarrow table whose columns are those of ``wanted``."""
        feeds = self._feeds(table)
        outputs = self._session.get_outputs()
        chosen = _numeric(outputs)
        values = self._session.run([o.name for o in chosen], feeds)
        if chosen[0].type.startswith("seq(map"):
            return self._of_maps(values[0])
        if len(values) > 1:  # one output per class, under its name
            self.classes_ = tuple(o.name for o in chosen)
            return np.stack([np.ravel(v) for v in values], axis=1)
        array = np.asarray(values[0])
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array

    def _feeds(self, table: Any) -> dict[str, NDArray[Any]]:
        if len(self._inputs) == table.num_columns:
            return {i.name: _tensor(table, [k], i.type) for k, i in enumerate(self._inputs)}
        width = _width(self._inputs[0])
        if width not in (None, table.num_columns):
            raise ModelError(
                f"the model takes {width} features and the table has {table.num_columns}: "
                f"{listed(table.column_names)}. Choose them, in the order of the model, with --features."
            )
        return {self._inputs[0].name: _tensor(table, range(table.num_columns), self._inputs[0].type)}

    def _of_maps(self, rows: Sequence[dict[Any, float]]) -> NDArray[Any]:
        """Probabilities given as one dictionary per row, from class to number."""
        classes = list(rows[0])
        if len(classes) == 2:
            self.classes_ = (f"P({classes[1]})",)
            return np.array([row[classes[1]] for row in rows], dtype=np.float64)
        self.classes_ = tuple(map(str, classes))
        return np.array([[row[c] for c in classes] for row in rows], dtype=np.float64)


def load_model(given: str, trust_pickle: bool, threads: int) -> Model:
    """The model that ``--model`` names.

    Raises:
        InputError: if it cannot be loaded, or is a pickle and ``--trust-pickle`` was not given.
    """
    suffix = Path(given).suffix.lower()
    if suffix in (".onnx", *PICKLES) and not Path(given).is_file():
        raise InputError(f"--model {given!r}: there is no such file.")
    if suffix == ".onnx":
        return OnnxModel(given, threads)
    if suffix in PICKLES:
        return _of_python(_from_pickle(given, trust_pickle), given)
    if ":" in given:
        return _of_python(_from_module(given), given)
    raise InputError(
        f"--model {given!r} was given; expected a file ending in .onnx, {', '.join(PICKLES)}, or a function "
        "package.module:name."
    )


def _from_pickle(path: str, trusted: bool) -> Any:
    if not trusted:
        raise InputError(
            f"--model {path!r} is a pickle, and loading a pickle can run any code; add --trust-pickle if you trust its "
            "origin, or use an ONNX file, which cannot run code."
        )
    import joblib

    _find_modules_here()
    try:
        return joblib.load(path)
    except Exception as error:  # a pickle may raise anything
        raise InputError(f"--model {path!r} cannot be loaded: {_named(error)}.") from error


def _find_modules_here() -> None:
    """Let modules in the working folder be found, as Python itself does: those of a function, and those of a pickle."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _from_module(given: str) -> Any:
    module_name, _, path = given.partition(":")
    _find_modules_here()
    try:
        target: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module may raise anything, and end itself as a script does
        raise InputError(f"--model {given!r}: {module_name!r} cannot be imported: {_named(error)}.") from error
    for name in path.split("."):
        if not hasattr(target, name):
            raise InputError(f"--model {given!r}: there is no {name!r} in {module_name!r}.{nearest(name, dir(target))}")
        target = getattr(target, name)
    return target


def _of_python(target: Any, given: str) -> Model:
    method = next((getattr(target, name) for name in ("predict_proba", "predict") if hasattr(target, name)), None)
    respond = target if method is None else method
    if isinstance(target, type) or not callable(respond):
        raise InputError(
            f"--model {given!r} is of type {type(target).__name__}; expected a function or a fitted estimator."
        )
    names = getattr(target, "feature_names_in_", None)
    plain = names is None and hasattr(target, "n_features_in_")
    return PythonModel(respond, names, getattr(target, "classes_", None), plain, target)


def _array(table: Any) -> Any:
    """A two-dimensional array, numeric if all columns are."""
    columns = [table.column(k).to_numpy() for k in range(table.num_columns)]
    numeric = all(column.dtype.kind in "biuf" for column in columns)
    out = np.empty((table.num_rows, len(columns)), dtype=np.float64 if numeric else object)
    for k, column in enumerate(columns):
        out[:, k] = column
    return out


def _named(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", 300).rstrip(".")


def _numeric(outputs: Sequence[Any]) -> list[Any]:
    """The outputs that hold numbers, as opposed to predicted labels."""
    maps = [o for o in outputs if o.type.startswith("seq(map")]
    real = [o for o in outputs if o.type in REAL]
    if not maps and not real:
        raise ModelError(f"the model has the outputs {_described(outputs)}; expected one of real numbers.")
    named = [o for o in real if "prob" in o.name.lower()]
    return maps[:1] or named[:1] or real


def _tensor(table: Any, columns: Sequence[int], kind: str) -> NDArray[Any]:
    """Columns side by side as the type of an input; a missing value becomes NaN, or empty text."""
    out = np.empty((table.num_rows, len(columns)), dtype=DTYPES[kind])
    for place, k in enumerate(columns):
        cells = table.column(k).to_pylist()
        out[:, place] = _texts(cells) if kind == "tensor(string)" else _reals(cells, table.column_names[k], kind)
    return out


def _texts(cells: list[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _reals(cells: list[Any], name: str, kind: str) -> NDArray[Any]:
    whole = "int" in kind or "bool" in kind
    if whole and None in cells:
        raise ModelError(
            f"column {name!r} has missing values, which the model's input of type {kind} cannot represent."
        )
    try:
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
    except (TypeError, ValueError) as error:
        raise ModelError(f"column {name!r} does not hold numbers ({error}), and the model takes {kind}.") from error
    if whole and not np.array_equal(numbers, np.round(numbers)):
        raise ModelError(f"column {name!r} does not hold whole numbers, and the model takes {kind}.")
    return numbers


def _width(given: Any) -> int | None:
    """Number of columns of an input, if the file fixes it."""
    last = given.shape[-1] if len(given.shape) == 2 else 1
    return last if isinstance(last, int) else None


def _plain_name(name: str) -> str:
    """A name as converters write it: letters, digits and underscores only."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _described(nodes: Sequence[Any]) -> str:
    return ", ".join(f"{n.name} {n.type}" for n in nodes[:8]) or "nothing"
