"""Sets of rows to compare: two tables, the groups of a column, each within the strata of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.alignment import to_rows
from exanova.data.column import Column
from exanova.data.levels import label_levels
from exanova.data.periods import time_text
from exanova.data.table import Table
from exanova.errors import InputError
from exanova.typing import IntArray

MOST_GROUPS = 50
"""Groups or strata up to which rows are compared; columns with more are probably numbers or identifiers."""

WHOLE = 1e15
"""Size up to which whole numbers are written without an exponent."""

OTHERS = "all others"


@dataclass(frozen=True, eq=False)
class RowSets:
    """Two sets among n rows.

    Attributes:
        names: of the first and of the second set.
        side: (n,) +1 in the first, -1 in the second, 0 in neither.
        stratum: the stratum both are in, or ``None``.
    """

    names: tuple[str, str]
    side: IntArray
    stratum: str | None = None

    @property
    def title(self) -> str:
        """The two sets, and the stratum they are in."""
        return f"{' against '.join(self.names)}{'' if self.stratum is None else f', within {self.stratum}'}"


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per row.

    Attributes:
        names: the different labels, in order.
        codes: (n,) which of them each row has.
        column: name of the column they come from, if any.
    """

    names: tuple[str, ...]
    codes: IntArray
    column: str = ""

    def name(self, k: int) -> str:
        """A label with the column it comes from."""
        return f"{self.column}={self.names[k]}" if self.column else self.names[k]

    def among(self, kept: NDArray[np.bool_]) -> Labels:
        """The labels of the rows ``kept`` (n,)."""
        return Labels(self.names, self.codes[kept], self.column)


def read_labels(table: Table, given: Any, parameter: str) -> Labels:
    """The labels of the rows: a column by its name, or one label (or truth value) per row.

    >>> read_labels(Table.read(np.array([["a"], ["b"]])), np.array([True, False]), "by").names
    ('True', 'False')
    """
    if isinstance(given, str):
        column = table.column(given)
    else:
        labels = np.asarray(to_rows(given, table.index, f"The labels of {parameter}="))
        if labels.shape != (table.n_rows,):
            raise InputError(
                f"{parameter}= has the shape {labels.shape}; expected the name of a column, or ({table.n_rows},): one "
                "label for each row."
            )
        column = Column.from_array(parameter, labels)
    return _numbered(column, parameter, given)


def group_sets(groups: Labels, strata: Labels | None) -> tuple[list[RowSets], list[str]]:
    """The sets to compare, and the strata in which there is nothing to compare, in words.

    Two groups are compared with each other, more of them each with all others; within strata, if there are any.
    """
    whole = Labels(("",), np.zeros(len(groups.codes), dtype=np.int64))
    compared, left_out = [], []
    every = strata or whole
    for k in range(len(every.names)):
        inside, name = every.codes == k, every.name(k)
        present = np.unique(groups.codes[inside]).tolist()
        if len(present) < 2:
            left_out.append(name)
            continue
        for sets in _pairs(groups, inside, present):
            compared.append(RowSets(*sets, name if strata else None))
    if not compared:
        raise InputError(
            f"there is only one group, {groups.names[int(groups.codes[0])]!r}",
            expected="at least two groups" + (" in some stratum" if strata else ""),
        )
    return compared, left_out


def _pairs(groups: Labels, inside: NDArray[np.bool_], present: list[int]) -> list[tuple[tuple[str, str], IntArray]]:
    if len(present) == 2:
        first, second = present
        side = np.where(groups.codes == first, 1, np.where(groups.codes == second, -1, 0)) * inside
        return [((groups.names[first], groups.names[second]), side)]
    return [((groups.names[k], OTHERS), np.where(groups.codes == k, 1, -1) * inside) for k in present]


def _numbered(column: Column, parameter: str, given: Any) -> Labels:
    """Labels in the order of their values: numbers by size, true before false, everything else by text, missing last.

    Values that are written alike have different labels, as levels do.
    """
    keys = [
        None if gone else (isinstance(v, bool), v)
        for v, gone in zip(column.values.tolist(), column.missing, strict=True)
    ]
    different = sorted(set(keys), key=_rank)
    if len(different) > MOST_GROUPS:
        raise InputError(
            f"{parameter}={column.name!r} has {len(different):,} different values",
            expected=f"up to {MOST_GROUPS} groups",
            remedy="give a column with few different values, or one label per row, such as an interval of a number",
        )
    place = {key: k for k, key in enumerate(different)}
    codes = np.array([place[key] for key in keys], dtype=np.int64)
    labels = label_levels([None if key is None else _shown(key[1]) for key in different])
    return Labels(labels, codes, column.name if isinstance(given, str) else "")


def _shown(value: Any) -> Any:
    """A value as its label has it: whole numbers without a decimal point, times as short as they are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE:
        return int(value)
    return value if isinstance(value, bool | int | float | str) else time_text(value)


def _rank(key: tuple[bool, Any] | None) -> tuple[int, Any, str]:
    if key is None:
        return 3, 0, ""
    value = key[1]
    if isinstance(value, bool):
        return 0, not value, ""
    return (1, value, "") if isinstance(value, int | float) else (2, 0, str(value))
