"""Models in ONNX files: tables to tensors, tensors to numbers.

The inputs are either one for each feature, under its name, or a single tensor with one column a feature, as converters
from scikit-learn make them. Of the outputs those with real numbers are read: probabilities of a classifier, with the
names of its classes where the file tells them, or the predictions of a regression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.cli.libraries import library
from exanova.cli.text import listed, one_line
from exanova.errors import InputError, ModelError

DTYPES: dict[str, Any] = {
    "tensor(string)": object,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
REAL = ("tensor(float)", "tensor(double)", "tensor(float16)")


class OnnxModel:
    """A session of onnxruntime as the library calls a model.

    Attributes:
        classes_: names of the outputs; known once the model was called, ``None`` if the file does not tell them.
    """

    def __init__(self, path: str, threads: int) -> None:
        runtime = library("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # what is wrong is raised as well
        try:
            self._session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the errors of onnxruntime have no common ancestor
            reason = one_line(error, 200).rstrip(".")
            raise InputError(f"--model {path!r} is not an ONNX file that can be read: {reason}.") from error
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
        return library("onnx").load(self._path)

    def wanted(self, columns: Sequence[str]) -> list[str] | None:
        """The columns that its inputs name, in their order; ``None`` if it has one input for all features."""
        by_plain_name = {_plain_name(column): column for column in columns}
        names = [i.name for i in self._inputs]
        found = [n if n in columns else by_plain_name.get(_plain_name(n), n) for n in names]
        one_for_all = len(names) == 1 and (_width(self._inputs[0]) != 1 or found[0] not in columns)
        return None if one_for_all else found

    def __call__(self, table: Any) -> NDArray[Any]:
        """The outputs at the rows of a pyarrow table whose columns are those of ``wanted``."""
        feeds = self._feeds(table)
        outputs = self._session.get_outputs()
        chosen = _numeric(outputs)
        values = self._session.run([o.name for o in chosen], feeds)
        if chosen[0].type.startswith("seq(map"):
            return self._of_maps(values[0])
        if len(values) > 1:  # one output for each class, under its name
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
                f"the model takes {width} features and was given {table.num_columns}: {listed(table.column_names)}. "
                "Choose them, in its order, with --features."
            )
        return {self._inputs[0].name: _tensor(table, range(table.num_columns), self._inputs[0].type)}

    def _of_maps(self, rows: Sequence[dict[Any, float]]) -> NDArray[Any]:
        """Probabilities given as one dictionary a row, from class to number."""
        classes = list(rows[0])
        self.classes_ = tuple(map(str, classes))
        return np.array([[row[c] for c in classes] for row in rows], dtype=np.float64)


def _numeric(outputs: Sequence[Any]) -> list[Any]:
    """The outputs that hold what the model says of a row, and not only which label it prefers."""
    maps = [o for o in outputs if o.type.startswith("seq(map")]
    real = [o for o in outputs if o.type in REAL]
    if not maps and not real:
        raise ModelError(f"the model has the outputs {_described(outputs)}; expected one of real numbers.")
    named = [o for o in real if "prob" in o.name.lower()]
    return maps[:1] or named[:1] or real


def _tensor(table: Any, columns: Sequence[int], kind: str) -> NDArray[Any]:
    """Columns side by side as the type of an input; a missing value is NaN, and an empty text among text."""
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
        raise ModelError(f"column {name!r} has missing values, and the model takes {kind}, which has none.")
    try:
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
    except (TypeError, ValueError) as error:
        raise ModelError(f"column {name!r} does not hold numbers ({error}), and the model takes {kind}.") from error
    if whole and not np.array_equal(numbers, np.round(numbers)):
        raise ModelError(f"column {name!r} does not hold whole numbers, and the model takes {kind}.")
    return numbers


def _width(given: Any) -> int | None:
    """Columns of an input, if the file fixes them."""
    last = given.shape[-1] if len(given.shape) == 2 else 1
    return last if isinstance(last, int) else None


def _plain_name(name: str) -> str:
    """A name as converters write it: no character but letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _described(nodes: Sequence[Any]) -> str:
    return ", ".join(f"{n.name} {n.type}" for n in nodes[:8]) or "nothing"
