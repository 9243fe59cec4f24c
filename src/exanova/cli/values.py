"""Values of rows as tables: one line a row for Shapley values, one line a row and subset for interactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exanova.cli.libraries import library
from exanova.effects.tables import Schema, free_name
from exanova.explain.explanation import Explanation
from exanova.explain.interactions import Interactions

INTERCEPT = "(intercept)"


def shapley_table(explanation: Explanation) -> Any:
    """``row``, ``base_value``, the features, ``prediction``, ``outside_support``; with several outputs one set each.

    The base value and the features add up to the prediction, which is the fitted part. With several outputs their
    columns begin with the name of the output and a colon.
    """
    schema = explanation.schema
    n, d, m = len(explanation), len(schema.features), len(schema.outputs)
    values, base = np.reshape(explanation.values, (n, d, m)), np.reshape(explanation.base_values, (n, m))
    own = [before + name for before in _prefixes(schema) for name in schema.features]
    columns: dict[str, Any] = {_free("row", own): np.arange(n)}
    for k, before in enumerate(_prefixes(schema)):
        columns[_free(f"{before}base_value", own, columns)] = base[:, k]
        columns.update({free_name(before + name, columns): values[:, i, k] for i, name in enumerate(schema.features)})
        columns[_free(f"{before}prediction", own, columns)] = base[:, k] + values[:, :, k].sum(axis=1)
    columns[_free("outside_support", own, columns)] = explanation.outside
    return library("pyarrow").table(columns)


def interaction_table(found: Interactions) -> Any:
    """``row``, ``subset``, ``order``, ``value`` (or one column an output), ``outside_support``.

    The subset ``(intercept)`` of order 0 is the base value, so that the lines of a row add up to the prediction for the
    indices that divide it.
    """
    schema, n = found.schema, len(found.values)
    m = len(schema.outputs)
    base = np.reshape(found.base_values, (n, 1, m))
    values = np.concatenate([base, np.reshape(found.values, (n, -1, m))], axis=1)
    subsets = [(), *found.subsets]
    columns: dict[str, Any] = {
        "row": np.repeat(np.arange(n), len(subsets)),
        "subset": [" x ".join(s) or INTERCEPT for s in subsets] * n,
        "order": np.tile([len(s) for s in subsets], n),
    }
    for k, name in enumerate(schema.value_columns):
        columns[free_name(name, columns)] = values[:, :, k].ravel()
    columns[free_name("outside_support", columns)] = np.repeat(found.outside, len(subsets))
    return library("pyarrow").table(columns)


def _prefixes(schema: Schema) -> list[str]:
    return [""] if schema.single else [f"{name}:" for name in schema.outputs]


def _free(name: str, own: Sequence[str], columns: Sequence[str] | dict[str, Any] = ()) -> str:
    """A name that no feature has."""
    return free_name(name, {*own, *columns})
