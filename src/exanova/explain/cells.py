"""The cells of rows next to their levels: a number and its interval, a name and the levels it was joined with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.intervals import number_text
from exanova.data.levels import MISSING_LABEL
from exanova.data.periods import time_text
from exanova.data.table import Table
from exanova.typing import IntArray

Cells: TypeAlias = tuple[NDArray[Any] | None, ...]
"""One array (n,) for each feature, ``None`` where the level of a row determines its cell."""


OPEN_ENDED = ("< ", ">= ", "before ", "from ")
"""Beginnings of the names of intervals without a lower or an upper end, which are sentences already."""


def cells_of(table: Table, encoding: Encoding) -> Cells:
    """The cells of every feature that is cut, or whose levels were merged; missing ones are ``None`` or NaN."""
    table = table.select(encoding.names)
    return tuple(_cells(table.column(feature.name)) if hides(feature) else None for feature in encoding.features)


def hides(feature: FeatureLevels) -> bool:
    """Whether a level of the feature has several values; false for a feature that is left out."""
    return not feature.is_lossless and not feature.is_left_out


def cell_text(cell: Any) -> str | None:
    """A cell in full, as short as it is exact; ``None`` if it is missing.

    >>> cell_text(38.4), cell_text(np.float32(0.1)), cell_text(120000.0), cell_text(float("nan"))
    ('38.4', '0.1', '120000', None)
    """
    if cell is None or cell != cell:
        return None
    if isinstance(cell, np.floating):
        return number_text(float(str(cell)))
    return number_text(cell) if isinstance(cell, float) else time_text(cell)


def with_level(cell: Any, level: str) -> str:
    """A cell with the level it falls into, where that adds information.

    >>> with_level(38.4, "[38, 40)"), with_level("10115", "214 levels: 10115, ..."), with_level(0.0, "0")
    ('38.4 (in [38, 40))', '10115 (in 214 levels: 10115, ...)', '0')
    >>> with_level(70.5, ">= 65")
    '70.5 (>= 65)'
    """
    text = cell_text(cell)
    if text is None or level == MISSING_LABEL or text == level:
        return level
    return f"{text} ({within(level)})"


def within(level: str) -> str:
    """How a sentence says that a value belongs to an interval or to joined levels.

    >>> within("[38, 40)"), within("< 38"), within("from 2024-01-01")
    ('in [38, 40)', '< 38', 'from 2024-01-01')
    """
    return level if level.startswith(OPEN_ENDED) else f"in {level}"


def taken(cells: Cells, rows: Any) -> Cells:
    """The cells of some rows."""
    return tuple(None if own is None else own[rows] for own in cells)


def chosen(cells: Cells, features: Any) -> Cells:
    """The cells of some features."""
    places: IntArray = np.atleast_1d(np.arange(len(cells))[features])
    return tuple(cells[k] for k in places.tolist())


def as_texts(cells: Cells, levels: NDArray[Any]) -> NDArray[Any]:
    """(..., d) levels as text, with the cells where they add information."""
    out = np.array(levels, dtype=object)
    for k, own in enumerate(cells):
        if own is not None:
            out[..., k] = _as_texts(own, out[..., k])
    return out


def _as_texts(cells: Any, levels: Any) -> Any:
    if not np.ndim(levels):
        return with_level(cells, str(levels))
    pairs: Sequence[Any] = list(zip(cells, levels, strict=True))
    made = np.empty(len(pairs), dtype=object)
    made[:] = [with_level(cell, str(level)) for cell, level in pairs]
    return made


def _cells(column: Column) -> NDArray[Any]:
    values = column.values
    if not column.missing.any():
        return np.array(values)
    if values.dtype.kind == "f":
        return np.where(column.missing, np.nan, values)
    gone = values.astype(object)
    gone[column.missing] = None
    return gone
