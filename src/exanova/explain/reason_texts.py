"""From ranked contributions to reasons: names, values, levels and identifiers of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exanova.argument_checks import check_choice, check_whole
from exanova.data.alignment import to_rows
from exanova.data.between import Between
from exanova.data.intervals import number_text
from exanova.data.number_texts import PLAIN
from exanova.data.table import Table, frame_of_kind
from exanova.effects.effect import Schema
from exanova.errors import InputError
from exanova.explain.cells import cell_text, within
from exanova.explain.grouping import Grouping, level_texts
from exanova.explain.ranking import Ranked
from exanova.explain.reasons import Reason, RowReasons
from exanova.messages import Parameter
from exanova.typing import Codes

DIRECTIONS = ("lower", "higher", "both")
MISSING = "(missing)"


def check_reasons(n: Any, direction: Any) -> None:
    """Refuse an invalid number of reasons or direction."""
    check_whole("n", n)
    check_choice("direction", direction, DIRECTIONS)


def one_row(given: Any, schema: Schema) -> Any:
    """A row to compare with, as a table; a mapping from features to values is one."""
    if not isinstance(given, Mapping):
        if isinstance(given, str) or given is None or not hasattr(given, "shape"):
            raise InputError.given("against", given, "'mean', 'best', or one row")
        return given
    absent = [name for name in schema.features if name not in given]
    if absent:
        raise InputError(
            f"the row to compare with has no value of {', '.join(map(repr, absent))}",
            expected="a value for every feature",
        )
    return frame_of_kind("pandas" if schema.kind == "numpy" else schema.kind, {f: [given[f]] for f in schema.features})


def id_texts(X: Any, given: Any) -> list[str] | None:
    """One identifier per row, as text; ``None`` if there is none."""
    if given is None:
        return None
    table = Table.read(X)
    if isinstance(given, str):
        return cell_texts(table, given)
    labels = np.asarray(to_rows(given, table.index, "The identifiers"))
    if labels.shape != (table.n_rows,):
        raise InputError(
            Parameter("id"),
            f" has the shape {labels.shape}",
            expected=f"the name of a column, or one for each of {table.n_rows} rows",
        )
    cells = labels if labels.dtype.kind == "f" else labels.tolist()
    return [cell_text(cell) or MISSING for cell in cells]


def cell_texts(table: Table, name: str) -> list[str]:
    """The cells of a column as text."""
    column = table.column(name)
    cells = column.values if column.values.dtype.kind == "f" else column.values.tolist()
    return [MISSING if gone else cell_text(cell) or "" for cell, gone in zip(cells, column.missing, strict=True)]


@dataclass(frozen=True, eq=False)
class ReasonSettings:
    """The requested reasons.

    Attributes:
        count: largest number per row.
        direction: ``"lower"``, ``"higher"`` or ``"both"``.
        against: ``"mean"``, ``"best"``, or a row.
        output: number of the output.
        stderr: whether to compute standard errors.
    """

    count: int
    direction: str
    against: Any
    output: int
    stderr: bool


@dataclass(frozen=True, eq=False)
class RowTexts:
    """Text about the features of rows.

    Attributes:
        grouping: the groups that contribute; one per feature without groups.
        schema: names and levels of the features.
        table: the rows as they were given; ``None`` if only their levels are known.
        codes: (d, n) their levels.
        ids: an identifier per row, or ``None``.
        places: (d,) the places of numbers never observed, whose codes follow those of the levels.
    """

    grouping: Grouping
    schema: Schema
    table: Table | None
    codes: Codes
    ids: list[str] | None
    places: Sequence[Between | None] = ()

    @cached_property
    def _levels(self) -> list[list[str]]:
        """For each feature, the text of every code."""
        places = self.places or [None] * len(self.schema.labels)
        return [level_texts(*own).tolist() for own in zip(self.schema.labels, places, strict=True)]

    @cached_property
    def _values(self) -> list[list[str]]:
        """For each feature, the cells of all rows as text."""
        if self.table is None:
            return [[own[code] for code in codes] for own, codes in zip(self._levels, self.codes.tolist(), strict=True)]
        texts = [cell_texts(self.table, name) for name in self.schema.features]
        same = [_same_texts(labels) for labels in self._levels]
        return [[own.get(text, text) for text in column] for own, column in zip(same, texts, strict=True)]

    def row(
        self, k: int, ranked: Ranked, fitted: float, compared: float, residual: float | None, outside: Any
    ) -> RowReasons:
        """The reasons for row number ``k``."""
        reasons = [self._reason(k, j, ranked) for j in range(len(ranked.owners))]
        own = None if self.ids is None else self.ids[k]
        return RowReasons(k, own, fitted, compared, residual, bool(outside), tuple(reasons))

    def _reason(self, k: int, j: int, ranked: Ranked) -> Reason:
        owner = int(ranked.owners[j])
        value, level = self._described(k, self.grouping.members[owner])
        return Reason(
            self.grouping.names[owner],
            value,
            level,
            float(ranked.values[j]),
            float(ranked.stderr[j]),
            bool(ranked.unique[j]),
            ranked.distinguishable(j),
            grouped=len(self.grouping.members[owner]) > 1,
        )

    def _described(self, k: int, features: tuple[int, ...]) -> tuple[str, str]:
        """Value and level of one feature, or of several with their names."""
        pairs = [(self._values[i][k], self._levels[i][self.codes[i, k]]) for i in features]
        if len(features) == 1:
            return pairs[0]
        names = self.schema.names(features)
        value = ", ".join(f"{name}={value}" for name, (value, _) in zip(names, pairs, strict=True))
        return value, ", ".join(_held(name, *pair) for name, pair in zip(names, pairs, strict=True))


def _same_texts(labels: Sequence[str]) -> dict[str, str]:
    """The labels of numbers, by the other way in which the cell of a row is written.

    >>> _same_texts(("1.0", "2.5", "1e-05", "a"))
    {'1': '1.0', '0.00001': '1e-05'}
    """
    numbers = {number_text(float(label)): label for label in labels if PLAIN.fullmatch(label)}
    return {text: label for text, label in numbers.items() if text not in labels}


def _held(name: str, value: str, level: str) -> str:
    """A feature of a group with its level.

    >>> _held("sex", "f", "f"), _held("age", "70", ">= 65"), _held("age", "20", "[18, 25)")
    ('sex=f', 'age >= 65', 'age in [18, 25)')
    """
    return f"{name}={level}" if level == value else f"{name} {within(level)}"
