"""A sample of rows for the explorer of a report: which rows, and their Shapley values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.data.table import Table
from exanova.data.values import align, is_model
from exanova.decomposition import Decomposition
from exanova.effects.rows import fitted_part
from exanova.errors import OutsideSupportWarning
from exanova.explain.explanation import Explanation, make_explanation
from exanova.explain.shapley import shapley_values
from exanova.query import Work, bytes_at_rows, check_memory
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows and what explains them.

    Attributes:
        rows: (k,) positions of the rows in the table they come from.
        total: rows of that table.
        given: whether the table was given, and is not that of the distinct rows of the fit.
        explanation: Shapley values of the rows.
    """

    rows: IntArray
    total: int
    given: bool
    explanation: Explanation


def draw(source: Decomposition, X: Any, model: Any, size: int) -> Sample | None:
    """At most ``size`` rows of ``X``, or of the rows of the fit without it; ``None`` if neither is there."""
    return _from_support(source, size) if X is None else _from_table(source, X, model, size)


def spread(predictions: FloatArray, size: int) -> IntArray:
    """Rows (k <= size) whose predictions (n, m) are spread from the lowest to the highest of each output.

    The same rows for the same predictions, in the order they had.

    >>> spread(np.array([[0.0], [5.0], [1.0], [9.0], [3.0]]), 3).tolist()
    [0, 3, 4]
    """
    n, m = predictions.shape
    if n <= size:
        return np.arange(n)
    each = max(1, size // m)
    places = np.linspace(0, n - 1, each).round().astype(np.int64)
    chosen = np.argsort(predictions[:, :size], axis=0, kind="stable")[places]
    return np.unique(chosen)


def _from_support(source: Decomposition, size: int) -> Sample | None:
    state = source
    if state.support is None:
        return None
    codes, _ = state.support
    what = f"the fitted part of {codes.shape[1]:,} rows"
    needed = bytes_at_rows(state.index, state.values.shape[1], codes.shape[1], Work(what))
    check_memory(what, needed, state.settings.memory_limit)
    rows = spread(fitted_part(state.index, state.values, codes), size)
    chosen = np.ascontiguousarray(codes[:, rows])
    values = shapley_values(state.index, state.values, chosen)
    outside = np.zeros(len(rows), dtype=np.bool_)
    explanation = make_explanation(state.schema, values, state.values[0], chosen, outside, None)
    return Sample(rows, codes.shape[1], False, explanation)


def _from_table(source: Decomposition, X: Any, model: Any, size: int) -> Sample:
    table = Table.read(X)
    predictions = source.predict(table)
    rows = spread(predictions.reshape(table.n_rows, -1), size)
    given = model is not None and not is_model(model)
    at_rows = align(model, table.n_rows, index=table.index, kept=rows).values if given else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # given for all rows above, and said of each row
        explanation = source.explain(table.rows(rows), at_rows)
    return Sample(rows, table.n_rows, True, explanation)
