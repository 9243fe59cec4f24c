"""Factorisation of one column: its distinct values and, for each row, which one it holds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import CONVERT, LEVELS, Column
from exanova.data.recoding import blocks, code_type, occurrences, places, recoded
from exanova.errors import InputTypeError
from exanova.typing import IntArray, Level

DIRECT_RANGE = 2**16
"""Integers that span no more than this (or than the number of rows) are counted instead of sorted."""

FEW = 32
"""Largest count of numbers for which looking up each one is faster than finding the distinct ones first."""


def factorize(column: Column) -> tuple[list[Level], IntArray]:
    """Distinct values as Python scalars, and codes (n,) into them; -1 where missing.

    Numbers come sorted, values with codes in the order of those, others in order of first appearance.

    >>> levels, codes = factorize(Column.from_cells("a", ["v", None, "u", "v"]))
    >>> levels, codes.tolist()
    (['v', 'u'], [0, -1, 1, 0])
    """
    if column.codes is not None:
        return _occurring(column.different, column.codes)
    if column.values.dtype == object:
        return _factorize_objects(column)
    if not column.missing.any():
        return _factorize_numbers(column.values)
    present = ~column.missing
    levels, own = _factorize_numbers(column.values[present])
    codes = np.full(len(present), -1, dtype=own.dtype)
    codes[present] = own
    return levels, codes


def lookup_codes(column: Column, known: Mapping[Level, int], missing_code: int) -> IntArray:
    """Codes (n,) of the cells by ``known``; -1 for other values and ``missing_code`` where missing.

    >>> lookup_codes(Column.from_cells("a", [7, 8, 9]), {9: 0, 7: 1}, -1).tolist()
    [1, -1, 0]
    """
    if column.codes is not None:
        return _recode(column.different, column.codes, known, missing_code)
    if column.values.dtype == object:
        return _lookup_objects(column, {**known, None: missing_code})
    if len(column.values) <= FEW:
        few = np.array([known.get(cell, -1) for cell in column.values.tolist()], dtype=np.int64)
        few[column.missing] = missing_code
        return few
    return _recode(*factorize(column), known, missing_code)


def _recode(levels: list[Level], codes: IntArray, known: Mapping[Level, int], missing_code: int) -> IntArray:
    # One place more than there are levels: the code -1 of missing cells reads the last one.
    code_of = [*(known.get(level, -1) for level in levels), missing_code]
    return recoded(np.array(code_of, dtype=code_type(max(code_of))), codes)


def _occurring(levels: list[Level], codes: IntArray) -> tuple[list[Level], IntArray]:
    """The levels that some code (n,) points to, and codes into those."""
    present = occurrences(codes, len(levels) + 1, lowest=-1)[1:] > 0
    if present.all():
        return levels, codes
    renumbered = np.append(np.cumsum(present) - 1, -1).astype(code_type(len(levels)))
    kept = [level for level, occurs in zip(levels, present, strict=True) if occurs]
    return kept, recoded(renumbered, codes)


def _factorize_numbers(values: NDArray[Any]) -> tuple[list[Level], IntArray]:
    if not len(values):
        return [], np.empty(0, dtype=np.int64)
    if values.dtype.kind == "b":
        levels, codes = _factorize_integers(values.view(np.uint8))
        return [bool(level) for level in levels], codes
    if values.dtype.kind in "iu":
        return _factorize_integers(values)
    # Adding zero turns -0.0 into 0.0; which of the two equals were kept would else depend on the order of rows.
    distinct, inverse = np.unique(values + values.dtype.type(0), return_inverse=True)
    return distinct.tolist(), inverse


def _factorize_integers(values: NDArray[Any]) -> tuple[list[Level], IntArray]:
    low, high = int(values.min()), int(values.max())
    if high - low > max(DIRECT_RANGE, len(values)):
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct.tolist(), inverse
    present = occurrences(values, high - low + 1, low) > 0
    levels = [low + position for position in np.flatnonzero(present).tolist()]
    table = (np.cumsum(present) - 1).astype(code_type(len(levels)))
    codes: NDArray[Any] = np.empty(len(values), dtype=table.dtype)
    for rows in blocks(len(values)):
        codes[rows] = table[places(values[rows], low)]
    return levels, codes


def _factorize_objects(column: Column) -> tuple[list[Level], IntArray]:
    cells = column.values.tolist()
    try:
        code_of: dict[Level, int] = dict.fromkeys(cells, -1)
    except TypeError as error:
        raise _unhashable(column) from error
    levels = [cell for cell in code_of if cell is not None]
    code_of.update(zip(levels, range(len(levels)), strict=True))
    return levels, np.fromiter(map(code_of.__getitem__, cells), dtype=np.int64, count=len(cells))


def _lookup_objects(column: Column, code_of: Mapping[Level, int]) -> IntArray:
    cells = column.values.tolist()
    try:
        return np.fromiter(map(code_of.get, cells, repeat(-1)), dtype=np.int64, count=len(cells))
    except TypeError as error:
        raise _unhashable(column) from error


def _unhashable(column: Column) -> InputTypeError:
    row, cell = next((row, cell) for row, cell in enumerate(column.values) if not _is_hashable(cell))
    return InputTypeError(
        f"Column {column.name!r} holds a value of type {type(cell).__name__} in row {row}, which cannot be a level",
        expected=LEVELS,
        remedy=CONVERT,
    )


def _is_hashable(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True
