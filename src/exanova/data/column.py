"""One column, whatever library it came from, as plain values and a mask of the missing ones.

Every library has its own scalars (``numpy.int64``, ``pandas.Timestamp``, ``pandas.NA``). Here they become the
ones of Python, so that the same data gives the same levels wherever it was stored.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.errors import InputTypeError
from exanova.typing import Level

PLAIN_TYPES: frozenset[type] = frozenset(
    {
        *(str, int, float, bool, bytes, type(None), uuid.UUID, decimal.Decimal),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)
"""Types of cells that are kept as they are."""

CANNOT_BE_MISSING: frozenset[type] = PLAIN_TYPES - {float, decimal.Decimal, type(None)}
"""Types of which no value stands for a missing one."""


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, shape (n,).

    Attributes:
        name: the name of the column.
        values: (n,) numbers and booleans as a NumPy array, everything else as an object array of Python scalars.
            Where ``missing`` is true the entry is a filler without meaning (``None`` in object arrays).
        missing: (n,) true for null, NaN, ``None``, ``pandas.NA`` and NaT.
        categories: the categories of a categorical or enum dtype in their own order, else ``None``.
    """

    name: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    categories: tuple[Level, ...] | None = None

    @property
    def is_float(self) -> bool:
        """Whether the cells are floating-point numbers (a categorical dtype of floats is not)."""
        return self.values.dtype.kind == "f"

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are integers or floating-point numbers."""
        return self.values.dtype.kind in "iuf"

    @classmethod
    def from_array(cls, name: str, values: NDArray[Any]) -> Column:
        """Read a one-dimensional NumPy array of any dtype.

        >>> column = Column.from_array("a", np.array([1.5, np.nan]))
        >>> column.is_float, column.missing.tolist()
        (True, [False, True])
        """
        kind = values.dtype.kind
        values = np.ascontiguousarray(values)  # a column of a C-ordered table is slow to read more than once
        if kind in "biu":
            return cls(name, values, np.zeros(len(values), dtype=bool))
        if kind == "f":
            return cls(name, values, np.isnan(values))
        if kind in "mM":
            return cls.from_cells(name, _python_times(values))
        if kind in "OUST":
            return cls.from_cells(name, values.tolist())
        raise InputTypeError(
            f"Column {name!r} has the dtype {values.dtype}, which has no levels; expected numbers, booleans, "
            "strings, dates or Python objects. Convert the column, for example to strings."
        )

    @classmethod
    def from_cells(cls, name: str, cells: Iterable[Any]) -> Column:
        """Read any Python objects; cells that are all numbers or all booleans become a numeric column.

        >>> Column.from_cells("a", [1, None, 3]).values.dtype.kind
        'i'
        >>> Column.from_cells("a", [np.str_("u"), float("nan")]).values.tolist()
        ['u', None]
        """
        values, missing, types = plain_cells(cells)
        numbers = _as_numbers(values, missing, types)
        return cls(name, _one_spelling(values, types) if numbers is None else numbers, missing)


def plain_cells(cells: Iterable[Any]) -> tuple[NDArray[Any], NDArray[np.bool_], frozenset[type]]:
    """Python scalars (n,), with ``None`` where missing, the mask (n,), and the types of those not missing."""
    listed = list(cells)
    types = set(map(type, listed))
    if not types <= PLAIN_TYPES:
        listed = [plain_scalar(cell) for cell in listed]
        types = set(map(type, listed))
    if types <= CANNOT_BE_MISSING:
        missing = np.zeros(len(listed), dtype=bool)
    else:
        missing = np.fromiter(map(is_missing, listed), dtype=bool, count=len(listed))
    values = np.fromiter(listed, dtype=object, count=len(listed))
    if missing.any():
        values[missing] = None
        types = set(map(type, values[~missing]))
    return values, missing, frozenset(types)


def plain_scalar(cell: Any) -> Any:
    """The Python scalar that ``cell`` stands for; ``None`` when it is missing.

    Objects that exist only in pandas (intervals, periods) become their text, so that levels never need pandas.

    >>> plain_scalar(np.int8(3)), plain_scalar(np.datetime64("2024-05-01"))
    (3, datetime.date(2024, 5, 1))
    """
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return _python_times(np.array([cell]))[0]
    if isinstance(cell, np.generic):
        return cell.item()
    if type(cell).__module__.partition(".")[0] == "pandas":
        return _pandas_scalar(cell)
    return cell


def is_missing(cell: Any) -> bool:
    """Whether a Python scalar stands for a missing value."""
    if cell is None:
        return True
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    return isinstance(cell, float) and cell != cell


def _pandas_scalar(cell: Any) -> Any:
    kind = type(cell).__name__
    if kind in ("NAType", "NaTType"):
        return None
    # A Python datetime has no nanoseconds: two instants must not become one level.
    if kind == "Timestamp" and not cell.nanosecond:
        return cell.to_pydatetime()
    if kind == "Timedelta" and not cell.nanoseconds:
        return cell.to_pytimedelta()
    return str(cell)


def _python_times(values: NDArray[Any]) -> list[Any]:
    """Dates, datetimes or timedeltas; their text where Python has no type fine enough."""
    if np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as"):
        coarse = values.astype(f"{values.dtype.kind}8[us]")
        if not np.array_equal(coarse.astype(values.dtype), values, equal_nan=True):
            return [None if np.isnat(value) else str(value) for value in values]
        values = coarse
    return list(values.tolist())


def _one_spelling(values: NDArray[Any], types: frozenset[type]) -> NDArray[Any]:
    """Equal numbers written alike (``True`` and 1.0 as 1), or the level would be the one that came first."""
    if float not in types and not {int, bool} <= types:
        return values
    cells = [_whole(cell) if isinstance(cell, int | float) else cell for cell in values]
    return np.fromiter(cells, dtype=object, count=len(cells))


def _whole(number: float) -> float:
    return int(number) if isinstance(number, int) or number.is_integer() else number


def _as_numbers(values: NDArray[Any], missing: NDArray[np.bool_], types: frozenset[type]) -> NDArray[Any] | None:
    """A boolean, integer or float array when every cell is of that kind, else ``None``."""
    if types == {bool}:
        dtype: type = np.bool_
    elif types and types <= {int, bool}:
        dtype = np.int64
    elif types and types <= {int, float, bool}:
        dtype = np.float64
    else:
        return None
    filled = np.where(missing, np.nan if dtype is np.float64 else 0, values)
    try:
        numbers: NDArray[Any] = filled.astype(dtype)
    except OverflowError:  # Python integers have no bound; such a column stays one of objects.
        return None
    return numbers if dtype is not np.float64 or (numbers == filled)[~missing].all() else None
