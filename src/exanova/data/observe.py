"""From what the user gives to what is decomposed: a table and a model to a support with its values.

The model is called once on each distinct raw row. Rows that become equal when their levels are binned or merged
are averaged; the variance lost in that is kept beside the means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.distinct import distinct_rows, pick_rows
from exanova.data.encoding import Encoding
from exanova.data.learning import learn_codes
from exanova.data.support import Support
from exanova.data.table import Table
from exanova.data.values import ModelValues, align, average, evaluate, is_model
from exanova.data.weights import check_weights, group_totals
from exanova.errors import InputError
from exanova.progress import Progress
from exanova.typing import Codes, IntArray


@dataclass(frozen=True, eq=False)
class Observation:
    """A model seen on a support.

    Attributes:
        encoding: the levels of every feature.
        support: the r distinct encoded rows with their weights.
        values: the outputs of the model on those rows, (r, m), in the same order.
        table_kind: the library of the table that was given (``"numpy"`` for a support).
        n_rows: number of rows that were given.
    """

    encoding: Encoding
    support: Support
    values: ModelValues
    table_kind: str
    n_rows: int


def observe(
    X: Any,
    model: Any,
    *,
    sample_weight: Any = None,
    min_frequency: float | None = None,
    n_bins: int | Mapping[str, int] | None = None,
    strategy: str = "quantile",
    response_method: str = "auto",
    batch_size: int | None = None,
    output_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Observation:
    """Encode ``X``, find its distinct rows and the values of ``model`` on them.

    ``X`` is a table or a ``Support``; ``model`` is a callable, a fitted estimator, or an array of outputs aligned
    with the rows. Rows of weight zero are as good as absent: their levels do not exist, the model never sees them.

    >>> seen = observe(np.array([[0, 1], [1, 1], [0, 1]]), lambda X: X.sum(axis=1))
    >>> seen.support.weight.tolist(), seen.values.values.tolist(), seen.values.calls
    ([2, 1], [[1.0], [2.0]], 2)
    """
    calling = _Calling(model, response_method, batch_size, output_names, progress)
    if isinstance(X, Support):
        if sample_weight is not None or min_frequency is not None or n_bins is not None:
            raise InputError(
                "sample_weight, min_frequency and n_bins describe rows of a table; a Support has its weights "
                "and levels already. Leave them out."
            )
        return _observe_support(X, calling)
    table = Table.read(X)
    n, weight = table.n_rows, check_weights(sample_weight, table.n_rows)
    kept = np.flatnonzero(weight)
    if len(kept) < n:
        table, weight = table.rows(kept), weight[kept]
    encoding, codes, raw = learn_codes(table, weight, min_frequency, n_bins, strategy)
    if is_model(model):
        first, inverse = distinct_rows(raw)
        codes, weight = pick_rows(codes, first), group_totals(weight, inverse, len(first))
        values = calling.on(table, first)
    else:
        values = align(model, n, kept=kept, output_names=output_names)
    support, values = _merge(encoding, codes, weight, values)
    return Observation(encoding, support, values, table.kind, n)


@dataclass(frozen=True)
class _Calling:
    """The model, or the outputs given in its place, and how it is called."""

    model: Any
    response_method: str
    batch_size: int | None
    output_names: Sequence[str] | None
    progress: Progress | None

    def on(self, table: Table, rows: IntArray) -> ModelValues:
        return evaluate(
            self.model,
            table,
            rows,
            response_method=self.response_method,
            batch_size=self.batch_size,
            output_names=self.output_names,
            progress=self.progress,
        )


def _observe_support(support: Support, calling: _Calling) -> Observation:
    encoding = Encoding.from_levels(support.feature_names, support.levels)
    r = support.n_rows
    if is_model(calling.model):
        values = calling.on(Table(support.feature_names, "numpy", support.table()), np.arange(r))
    else:
        values = align(calling.model, r, output_names=calling.output_names)
    return Observation(encoding, support, values, "numpy", r)


def _merge(
    encoding: Encoding, codes: Codes, weight: NDArray[Any], values: ModelValues
) -> tuple[Support, ModelValues]:
    """The support of the encoded rows, and the mean of the values over equal ones."""
    first, group = distinct_rows(codes)
    means, within = average(values.values, group, weight, len(first))
    support = Support.from_distinct(encoding, pick_rows(codes, first), group_totals(weight, group, len(first)))
    return support, replace(values, values=means, within=within)
