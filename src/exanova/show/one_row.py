"""One row, however it is given, as a table that a decomposition and its model read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exanova.data.table import Table, frame_of_kind
from exanova.effects.tables import Schema
from exanova.errors import InputError


def one_row(row: Any, schema: Schema) -> Any:
    """A table of one row from a table of one row, a mapping of features to levels, a series, or a flat array.

    A mapping becomes a table of the library that was fitted; keys that are no features are left aside.
    """
    if isinstance(row, np.ndarray) and row.ndim == 1:
        row = row[None, :]
    elif isinstance(row, Mapping):
        row = _from_mapping(row, schema)
    elif not hasattr(row, "columns") and callable(getattr(row, "to_dict", None)):
        row = _from_mapping(row.to_dict(), schema)  # a row cut out of a pandas table
    table = Table.read(row)
    if table.n_rows != 1:
        raise InputError(f"{table.n_rows:,} rows were given; this picture shows one: give X[k:k+1], or a mapping.")
    return row


def _from_mapping(row: Mapping[Any, Any], schema: Schema) -> Any:
    given = {str(name): level for name, level in row.items()}
    absent = [name for name in schema.features if name not in given]
    if absent:
        raise InputError(
            f"the row has no level for {', '.join(map(repr, absent[:5]))}"
            + (f" and {len(absent) - 5:,} more" if len(absent) > 5 else "")
            + "; give every feature that was fitted, with None where it is missing."
        )
    if schema.kind == "numpy":
        return np.array([[given[name] for name in schema.features]], dtype=object)
    return frame_of_kind(schema.kind, {name: [given[name]] for name in schema.features})
