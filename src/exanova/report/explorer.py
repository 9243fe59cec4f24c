"""Rows of the explorer of a report: the rows shown, their explanations, and the records of both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.table import Table
from exanova.data.values import align, is_model
from exanova.decomposition import Decomposition
from exanova.effects.at_rows import fitted_part
from exanova.errors import OutsideSupportWarning, UnknownFeatureError
from exanova.explain.explanation import Explanation, make_explanation
from exanova.explain.reason_texts import id_texts
from exanova.explain.shapley import shapley_values
from exanova.messages import Parameter
from exanova.queries.query import Work, bytes_at_rows, check_memory
from exanova.show.records import Record
from exanova.show.row_records import waterfall_records
from exanova.typing import FloatArray, IntArray

ROWS, ROW_FEATURES = 200, 50
"""Rows of the explorer, and features that a page lists for each of them."""

ROW_NUMBERS = 20_000
"""Numbers in all rows."""


MOST_FREQUENT = "most frequent"
"""The default base of a tariff."""


class GivenRows:
    """What a report was given besides the decomposition.

    Attributes:
        table: rows, or ``None`` for those of the fit.
        model: the model, or its outputs at these rows, or ``None``.
        ids: (n,) identifiers of the rows, or ``None``.
        by: the column of the table whose groups are compared, if there is one.
        since: an earlier fit, or ``None``.
        groups: names of groups of features and the features of each, or ``None``.
        base: base levels of a tariff.
    """

    def __init__(
        self,
        X: Any = None,
        model: Any = None,
        *,
        id: Any = None,
        by: str | None = None,
        since: Any = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        base: Any = MOST_FREQUENT,
    ) -> None:
        self.X, self.by, self.since, self.groups, self.base = X, by, since, groups, base
        self.table = None if X is None else Table.read(X)
        self.model = model
        self.ids = None if self.table is None else names_of_rows(self.table, id)
        self._predictions: FloatArray | None = None

    def predictions(self, decomposition: Decomposition) -> FloatArray:
        """(n, m) the fitted part at the rows, computed once."""
        assert self.table is not None
        if self._predictions is None:
            self._predictions = decomposition.predict(self.table).reshape(self.table.n_rows, -1)
        return self._predictions


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Rows that the explorer shows, and what explains them.

    Attributes:
        rows: (k,) positions of the rows in the table they come from.
        total: rows of that table.
        given: whether the table was given, and is not that of the distinct rows of the fit.
        explanation: Shapley values of the rows.
        ids: what the rows are called, or ``None``.
    """

    rows: IntArray
    total: int
    given: bool
    explanation: Explanation
    ids: list[str] | None = None


def rows_to_show(decomposition: Decomposition, given: GivenRows) -> ShownRows | None:
    """Some rows of the table given, or of the fit without it; ``None`` if neither is there."""
    size = most_rows(len(decomposition.schema.features), len(decomposition.schema.outputs))
    return _from_fit(decomposition, size) if given.table is None else _from_table(decomposition, given, size)


def most_rows(features: int, outputs: int) -> int:
    """How many rows fit in the explorer."""
    return int(np.clip(ROW_NUMBERS // (min(features, ROW_FEATURES) * outputs), 1, ROWS))


def spread_rows(predictions: FloatArray, size: int) -> IntArray:
    """Rows (k <= size) whose predictions (n, m) are spread from the lowest to the highest of each output.

    The same rows for the same predictions, in the order they had.

    >>> spread_rows(np.array([[0.0], [5.0], [1.0], [9.0], [3.0]]), 3).tolist()
    [0, 3, 4]
    """
    n, m = predictions.shape
    if n <= size:
        return np.arange(n)
    each = max(1, size // m)
    places = np.linspace(0, n - 1, each).round().astype(np.int64)
    chosen = np.argsort(predictions[:, :size], axis=0, kind="stable")[places]
    return np.unique(chosen)


def sample_records(shown: ShownRows) -> Record:
    """Levels and waterfall of each row, and its values, one list per output."""
    e = shown.explanation
    n, m = len(e), len(e.output_names)
    values, held = e.values.reshape(n, -1, m), e.display_cells
    base, residual = e.base_values.reshape(n, m), None if e.residual is None else e.residual.reshape(n, m)
    return {
        "given": shown.given,
        "total": shown.total,
        "features": list(e.feature_names),
        "rows": [
            {
                "row": int(shown.rows[k]),
                "id": None if shown.ids is None else shown.ids[k],
                "outside": bool(e.outside[k]),
                "levels": [str(level) for level in e.display_data[k]],
                "cells": [str(cell) for cell in held[k]],
                "base": base[k].tolist(),
                "values": values[k].T.tolist(),
                "residual": None if residual is None else residual[k].tolist(),
                "waterfall": waterfall_records(e[k]),
            }
            for k in range(n)
        ],
    }


def rows_left_out(shown: ShownRows | None) -> Iterator[str]:
    """A sentence on the rows that are not shown, if there are any."""
    if shown is not None:
        yield from sentence_on_rows(len(shown.rows), shown.total, shown.given)


def sentence_on_rows(count: int, total: int, given: bool) -> Iterator[str]:
    """The sentence, for that many of ``total`` rows."""
    if total > count:
        kind = "rows given" if given else "distinct rows"
        yield (
            f"{total - count:,} of {total:,} {kind} in the row explorer: {count:,} are shown, spread over the "
            "predictions."
        )


def _from_fit(decomposition: Decomposition, size: int) -> ShownRows | None:
    if decomposition.sample is None:
        return None
    codes = decomposition.sample.codes
    what = f"the fitted part of {codes.shape[1]:,} rows"
    needed = bytes_at_rows(decomposition.everywhere, codes.shape[1], Work(what))
    check_memory(what, needed, decomposition.settings.memory_limit)
    rows = spread_rows(fitted_part(decomposition.everywhere, codes), size)
    chosen = np.ascontiguousarray(codes[:, rows])
    values = shapley_values(decomposition.family, decomposition.values, chosen)
    outside = np.zeros(len(rows), dtype=np.bool_)
    explanation = make_explanation(decomposition.schema, values, decomposition.values[0], chosen, outside, None)
    return ShownRows(rows, codes.shape[1], False, explanation)


def _from_table(decomposition: Decomposition, given: GivenRows, size: int) -> ShownRows:
    table, model = given.table, given.model
    assert table is not None
    rows = spread_rows(given.predictions(decomposition), size)
    aligned = model is not None and not is_model(model)
    at_rows = align(model, table.n_rows, index=table.index, kept=rows).values if aligned else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # shown for all rows above, and repeated for each row
        explanation = decomposition.explain(table.rows(rows), at_rows)
    ids = None if given.ids is None else given.ids[rows].tolist()
    return ShownRows(rows, table.n_rows, True, explanation, ids)


def names_of_rows(table: Table, id: Any) -> NDArray[np.object_] | None:
    """Identifiers of the rows of a table: the column ``id``, or one per row, or an index that is not 0, 1, 2, ...

    Raises:
        UnknownFeatureError: if there is no such column.
        InputError: if there is not one for each row.
    """
    if isinstance(id, str) and id not in table.names:
        raise UnknownFeatureError(
            Parameter("id", id),
            f" was given; the table has no such column: its columns are {', '.join(table.names[:20])}.",
        )
    if id is not None:
        return np.array(id_texts(table, id), dtype=object)
    index = table.index
    if index is None or (np.asarray(index) == np.arange(table.n_rows)).all():
        return None
    return np.array([str(value) for value in index], dtype=object)
