"""One column, whatever library it came from, as plain values and a mask of the missing ones.

Every library has its own scalars (``numpy.int64``, ``pandas.Timestamp``, ``pandas.NA``). This module converts them to
Python scalars, so that the same data gives the same levels in every library.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.recoding import code_type
from exanova.data.times import array_levels, moment_level, pinned, span_level
from exanova.errors import InputTypeError
from exanova.typing import IntArray, Level

PLAIN_TYPES: frozenset[type] = frozenset(
    {
        *(str, int, float, bool, bytes, type(None), uuid.UUID, decimal.Decimal),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)
"""Types of cells that are kept unchanged."""

SEVERAL_SPELLINGS: frozenset[type] = frozenset({decimal.Decimal, datetime.datetime})
"""Types of which equal values may have different texts, such as 1.5 and 1.50, or one instant at two offsets."""

MAY_BE_EQUAL = SEVERAL_SPELLINGS | {bool, int, float}

LEVELS = "strings, numbers, booleans, dates or missing values"
CONVERT = "Convert such columns, for example to strings, or drop them"

CANNOT_BE_MISSING: frozenset[type] = PLAIN_TYPES - {float, decimal.Decimal, type(None)}
"""Types without a missing value."""


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, shape (n,).

    Attributes:
        name: the name of the column.
        cells: (n,) numbers and booleans as a NumPy array, everything else as an object array of Python scalars.
            Where ``missing`` is true the entry is a filler without meaning (``None`` in object arrays). With
            ``codes``, the (k + 1,) different values instead, and ``None`` last.
        missing: (n,) true for null, NaN, ``None``, ``pandas.NA`` and NaT.
        categories: the categories of a categorical or enum dtype in their own order, else ``None``.
        codes: (n,) which of ``cells`` each cell is, -1 where missing; ``None`` if the column has no codes.
        is_ordered: whether the dtype says that its categories are in order.
    """

    name: str
    cells: NDArray[Any]
    missing: NDArray[np.bool_]
    categories: tuple[Level, ...] | None = None
    codes: IntArray | None = None
    is_ordered: bool = False

    @cached_property
    def values(self) -> NDArray[Any]:
        """The cells (n,), whether they are kept as codes or not."""
        return self.cells if self.codes is None else self.cells[self.codes]

    @property
    def different(self) -> list[Level]:
        """The values that codes point to, none twice; some may occur in no row."""
        return list(self.cells[:-1])

    @property
    def is_float(self) -> bool:
        """Whether the cells are floating-point numbers (a categorical dtype of floats is not)."""
        return self.cells.dtype.kind == "f"

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are integers or floating-point numbers."""
        return self.cells.dtype.kind in "iuf"

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
            return cls.from_codes(name, *array_levels(values))
        if kind in "OUST":
            return cls.from_cells(name, values.tolist())
        raise InputTypeError(
            f"Column {name!r} has the dtype {values.dtype}, which has no levels",
            expected=LEVELS,
            remedy=CONVERT,
        )

    @classmethod
    def from_codes(
        cls,
        name: str,
        levels: Sequence[Level],
        codes: IntArray,
        categories: tuple[Level, ...] | None = None,
        is_ordered: bool = False,
    ) -> Column:
        """A column of different levels (k,) and codes (n,) into them, -1 where missing.

        >>> Column.from_codes("a", ["u", "v"], np.array([1, -1, 0])).values.tolist()
        ['v', None, 'u']
        """
        cells = np.empty(len(levels) + 1, dtype=object)
        cells[:-1] = levels
        return cls(name, cells, codes < 0, categories, codes, is_ordered)

    @classmethod
    def from_cells(cls, name: str, cells: Iterable[Any]) -> Column:
        """Read any Python objects; cells that are all numbers or all booleans become a numeric column.

        >>> Column.from_cells("a", [1, None, 3]).values.dtype.kind
        'i'
        >>> Column.from_cells("a", [np.str_("u"), float("nan")]).values.tolist()
        ['u', None]
        """
        cells = list(cells)
        texts = coded_texts(cells)
        if texts is not None:
            return cls.from_codes(name, *texts)
        values, missing, types = plain_cells(cells)
        if complex in types:
            raise InputTypeError(f"Column {name!r} holds complex numbers", expected=LEVELS, remedy=CONVERT)
        numbers = _as_numbers(values, missing, types)
        return cls(name, _one_spelling(values, types) if numbers is None else numbers, missing)

    def at(self, rows: IntArray) -> Column:
        """The cells at ``rows`` (k,)."""
        cells = self.cells[rows] if self.codes is None else self.cells
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, cells=cells, missing=self.missing[rows], codes=codes)


def coded_texts(cells: Sequence[Any]) -> tuple[list[str], IntArray] | None:
    """The strings (k,) among the cells as they first occur, and codes (n,) into them, -1 where missing.

    ``None`` if some cell is neither a string nor missing.

    >>> levels, codes = coded_texts(["v", None, "u", "v"])
    >>> levels, codes.tolist()
    (['v', 'u'], [0, -1, 1, 0])
    """
    if not cells or not _is_text(cells[0]):
        return None
    try:
        code_of = dict.fromkeys(cells, -1)
    except TypeError:  # a cell that cannot be a level
        return None
    if not all(map(_is_text, code_of)):
        return None
    levels = [cell for cell in code_of if type(cell) is str]
    code_of.update(zip(levels, range(len(levels)), strict=True))
    codes = np.fromiter(map(code_of.__getitem__, cells), dtype=code_type(len(levels)), count=len(cells))
    return levels, codes


def _is_text(cell: Any) -> bool:
    return type(cell) is str or is_missing(plain_scalar(cell))


def plain_cells(cells: Iterable[Any]) -> tuple[NDArray[Any], NDArray[np.bool_], frozenset[type]]:
    """Python scalars (n,), with ``None`` where missing, the mask (n,), and the types of those not missing."""
    listed = list(cells)
    types = set(map(type, listed))
    if not types <= PLAIN_TYPES or datetime.datetime in types:
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

    Periods of pandas become the time at which they begin, and its intervals their text: levels never need pandas.

    >>> plain_scalar(np.int8(3)), plain_scalar(np.datetime64("2024-05-01"))
    (3, datetime.date(2024, 5, 1))
    """
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return next(iter(array_levels(np.array([cell]))[0]), None)
    if isinstance(cell, np.generic):
        return cell.item()
    if cell is np.ma.masked:
        return None
    if type(cell).__module__.partition(".")[0] == "pandas":
        return _pandas_scalar(cell)
    return pinned(cell) if type(cell) is datetime.datetime and cell.tzinfo is not None else cell


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
    if kind == "Timestamp":
        return moment_level(int(cell.asm8.astype(np.int64)), cell.unit, cell.tzinfo)
    if kind == "Timedelta":
        return span_level(int(cell.asm8.astype(np.int64)), cell.unit)
    if kind == "Period":
        return _period_start(cell)
    return str(cell)


def _period_start(period: Any) -> Level:
    """When a period begins: a date, or a time if it is shorter than a day."""
    start = period.start_time
    moment = moment_level(int(start.asm8.astype(np.int64)), start.unit)
    whole_days = (period.end_time - start).days >= 1 or period.freqstr.upper().startswith(("D", "B"))
    return moment.date() if whole_days and isinstance(moment, datetime.datetime) else moment


def _one_spelling(values: NDArray[Any], types: frozenset[type]) -> NDArray[Any]:
    """Equal cells written alike (``True`` and 1.0 as 1), or the level would be the one that came first."""
    if float in types or {int, bool} <= types:
        cells = [_whole(cell) if isinstance(cell, int | float) else cell for cell in values]
        values = np.fromiter(cells, dtype=object, count=len(cells))
    return _one_of_equals(values) if types & SEVERAL_SPELLINGS else values


def _one_of_equals(values: NDArray[Any]) -> NDArray[Any]:
    """Of equal cells with different texts (1.5 and 1.50, one instant at two offsets) the one that sorts first."""
    chosen: dict[Any, Any] = {}
    for cell in values:
        if type(cell) in MAY_BE_EQUAL:
            chosen[cell] = min(chosen.get(cell, cell), cell, key=str)
    cells = [chosen[cell] if type(cell) in MAY_BE_EQUAL else cell for cell in values]
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
