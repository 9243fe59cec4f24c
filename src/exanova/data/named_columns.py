"""Columns of a table given by name for what is not a feature: predictions, weights, clusters, strata, replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.support import Support
from exanova.data.table import Table
from exanova.errors import InputError, InputTypeError

NUMBERS = frozenset({int, float, bool, Decimal})
"""Types of cells that are numbers, where a column is not stored as an array of numbers."""


def take_named(X: Any, model: Any, others: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any], list[str] | None]:
    """A table without the columns that were given by name, and these columns in place of their names.

    Args:
        X: a table.
        model: the name of a column of predictions, a list of such names, or anything else, which is returned.
        others: what else may be named, by parameter.

    Returns:
        X, model and others with columns in place of names, and the names of the outputs if these are columns.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": ["u", "v"], "p": [0.5, 1.5]})
    >>> rest, outputs, _, names = take_named(table, "p", {})
    >>> list(rest.columns), outputs.tolist(), names
    (['a'], [0.5, 1.5], ['p'])
    """
    outputs = [model] if isinstance(model, str) else _names(model)
    named = {parameter: names for parameter, value in others.items() if (names := _named(value))}
    taken = [*outputs, *(name for names in named.values() for name in names)]
    if not taken:
        return X, model, dict(others), None
    table = _with_names(X, taken)
    rest = table.select([name for name in table.names if name not in taken])
    arguments = {parameter: _of_table(table, value) for parameter, value in others.items()}
    if not outputs:
        return rest.native, model, arguments, None
    values = _columns(table, outputs, "predictions")
    return rest.native, values[:, 0] if isinstance(model, str) else values, arguments, outputs


def _with_names(X: Any, taken: Sequence[str]) -> Table:
    """The table, which has columns of these names."""
    if isinstance(X, Support) or (table := Table.read(X)).kind == "numpy":
        raise InputError(
            f"columns were given by name ({', '.join(map(repr, taken))}), but X has no named columns; give arrays, or "
            "a table with names."
        )
    absent = list(dict.fromkeys(name for name in taken if name not in table.names))
    if absent:
        raise InputError(
            f"The table has no column {', '.join(map(repr, absent))}; its columns are "
            f"{', '.join(map(repr, table.names[:20]))}",
            remedy="Give names of its columns. Labels are not outputs: use class probabilities, or one 0/1 column per "
            "class",
        )
    return table


def _named(value: Any) -> list[str]:
    """The columns that an argument names: by one name, or, of replicate weights, by a pair of names and a scale."""
    if isinstance(value, str):
        return [value]
    return _names(value[0]) if isinstance(value, tuple) and value else []


def _of_table(table: Table, value: Any) -> Any:
    """An argument with the columns of the table in place of their names."""
    if isinstance(value, str):
        return _cells(table, value)
    names = _named(value)
    return (_columns(table, names, "replicate weights"), *value[1:]) if names else value


def _names(model: Any) -> list[str]:
    is_list = isinstance(model, list | tuple) and bool(model) and all(isinstance(name, str) for name in model)
    return list(model) if is_list else []


def _cells(table: Table, name: str) -> NDArray[Any]:
    column = table.column(name)
    values = np.array(column.values, dtype=object) if column.missing.any() else np.asarray(column.values)
    if column.missing.any():
        values[column.missing] = None
    return values


def _columns(table: Table, names: Sequence[str], what: str) -> NDArray[np.float64]:
    """(n, m) columns of numbers, NaN where they are missing."""
    columns = (as_numbers(table.column(name), what) for name in names)
    return np.stack([np.where(missing, np.nan, values) for values, missing in columns], axis=1)


def as_numbers(column: Column, what: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column of numbers, booleans or decimals as float64 (n,), whatever in missing cells, and which these are (n,).

    >>> as_numbers(Column.from_cells("p", [Decimal("0.5"), None]), "predictions")[1].tolist()
    [False, True]
    """
    cells = column.cells
    if cells.dtype.kind == "O" and column.categories is None:
        kinds = set(map(type, cells.tolist())) - {type(None)}
        if kinds and kinds <= NUMBERS:
            cells = np.array([np.nan if cell is None else float(cell) for cell in cells.tolist()])
    if cells.dtype.kind not in "biuf":
        raise InputTypeError(f"the column {column.name!r} of {what} does not hold numbers", expected="numbers")
    values = cells.astype(np.float64)
    return (values if column.codes is None else values[column.codes]), column.missing
