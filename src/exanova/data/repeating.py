"""Whether a model gives the same outputs again: where it does not, what it gave once says little about other rows.

A decomposition is one of a function of the rows. A model that draws at random, that remembers earlier calls, or whose
outputs depend on the other rows of a call is none; where rows have few combinations of levels, nothing else shows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.data.table import Table
from exanova.data.values import ModelValues, evaluate
from exanova.errors import ModelError
from exanova.typing import FloatArray, IntArray

PROBED = 8
"""Rows on which a model is called a second time, at most; never more than half of the rows, so that it sees others."""


def with_second_call(
    values: ModelValues, model: Any, table: Table, rows: IntArray, response_method: str, batch_size: int | None
) -> ModelValues:
    """The values (k, m) of a model at ``rows`` (k,) of a table, with whether it gives them again on a few of these.

    >>> table, rows = Table.read(np.array([[0, 1], [1, 1]])), np.arange(2)
    >>> values = evaluate(lambda X: X.sum(axis=1), table, rows)
    >>> with_second_call(values, lambda X: X.sum(axis=1), table, rows, "auto", None).repeats
    True
    >>> with_second_call(values, lambda X: X.sum(axis=1) + 1, table, rows, "auto", None).repeats
    False
    """
    count = min(PROBED, (len(rows) + 1) // 2)
    chosen = np.linspace(len(rows) - 1, 0, count).astype(np.int64)  # from the last to the first
    try:
        again = evaluate(model, table, rows[chosen], response_method=response_method, batch_size=batch_size).values
    except ModelError:  # it did not raise the first time
        return replace(values, repeats=False)
    return replace(values, repeats=_are_alike(again, values.values[chosen], np.ptp(values.values, axis=0)))


def _are_alike(again: FloatArray, before: FloatArray, spread: FloatArray) -> bool:
    """Whether outputs (k, m) are those from before, up to the rounding of single precision and a trace of noise."""
    if again.shape != before.shape:
        return False
    allowed = tolerances.REPEATS * spread + tolerances.SINGLE * np.abs(before)
    return bool((np.abs(again - before) <= allowed).all())
