"""Levels learned from one table and replayed on any other: cells to codes, codes to levels.

An encoding is a frozen record without data. Codes are feature-major, shape (d, n), so that each feature is
contiguous; level ``k`` of feature ``i`` is ``encoding.levels[i][k]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.argument_checks import check_choice
from exanova.data.between import Between
from exanova.data.column import Column
from exanova.data.every_column import EveryColumn
from exanova.data.factor import factorize
from exanova.data.feature import FeatureLevels
from exanova.data.levels import MISSING_LABEL, level_from_json, level_to_json
from exanova.data.table import Table
from exanova.errors import FileFormatError, InputError, UnknownLevelError
from exanova.messages import Parameter, count_of
from exanova.typing import Codes, IntArray, Level


@dataclass(frozen=True)
class Encoding:
    """The levels of every feature, in the order of the columns.

    >>> encoding = Encoding.from_levels(["colour", "size"], [["blue", "red"], [1, 2, None]])
    >>> table = Table.read(np.array([["red", 2], ["blue", None]], dtype=object))
    >>> encoding.encode(table).tolist()
    [[1, 0], [1, 2]]
    >>> encoding.labels[1]
    ('1', '2', '(missing)')
    """

    features: tuple[FeatureLevels, ...]

    @classmethod
    def from_levels(cls, names: Sequence[str], levels: Sequence[Sequence[Level]]) -> Encoding:
        """An encoding with these levels, in this order, for each of the features ``names``."""
        return cls(tuple(FeatureLevels.of(*pair) for pair in zip(names, levels, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def levels(self) -> tuple[tuple[Level, ...], ...]:
        """Levels of each feature, in the order of their codes."""
        return tuple(feature.levels for feature in self.features)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Labels of the levels, for display; unique inside a feature."""
        return tuple(feature.labels for feature in self.features)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each feature."""
        return tuple(len(feature.levels) for feature in self.features)

    @property
    def ordered(self) -> tuple[int, ...]:
        """(d,) how many levels of each feature, from the first on, a prior takes to be in order."""
        return tuple(feature.placed for feature in self.features)

    @property
    def neighboured(self) -> tuple[int, ...]:
        """(d,) how many levels of each feature would be read from their neighbours if no row had them."""
        return tuple(feature.neighboured for feature in self.features)

    @property
    def between(self) -> tuple[Between | None, ...]:
        """(d,) the places of numbers never observed, ``None`` for features that have none."""
        return tuple(feature.between for feature in self.features)

    @property
    def is_lossless(self) -> bool:
        """Whether no feature was binned or had rare levels merged."""
        return all(feature.is_lossless for feature in self.features)

    def encode(self, table: Table, handle_unknown: str = "error", *, between: bool = False) -> Codes:
        """Codes of a table, int64 of shape (d, n), C-contiguous.

        Columns are found by name (by position in a NumPy array). A level that was not learned raises, or has
        the code -1 with ``handle_unknown="ignore"``; it is never mapped to the merged rare levels, which were learned.
        With ``between`` too, a number never observed has the code of its place between those that were.
        """
        check_choice("handle_unknown", handle_unknown, ("error", "ignore"))
        table = table.select(self.names)
        codes = np.empty((len(self.features), table.n_rows), dtype=np.int64)
        wrong = EveryColumn()
        for row, feature in zip(codes, self.features, strict=True):
            with wrong.noted():
                column = table.column(feature.name)
                row[:] = feature.encode(column)
                if handle_unknown == "error" and row.min() < 0:
                    raise _unknown(column, row, between and feature.between is not None)
                if between and handle_unknown == "ignore":
                    row[:] = feature.read_between(column, row)
        wrong.give()
        return codes

    def raw_codes(self, table: Table) -> Codes:
        """A code for each raw value, shape (d, n), before any binning or merging; -1 where it is missing.

        Rows with the same raw codes are the same to a model. If ``is_lossless``, ``encode`` gives the same partition.
        """
        table = table.select(self.names)
        codes = np.empty((len(self.features), table.n_rows), dtype=np.int64)
        for row, name in zip(codes, self.names, strict=True):
            row[:] = factorize(table.column(name))[1]
        return codes

    def decode(self, codes: Codes) -> dict[str, Codes]:
        """The levels of codes (d, n), as one object array (n,) for each feature."""
        if len(codes) != len(self.features):
            raise InputError(f"{len(codes)} rows of codes were given for {len(self.features)} features.")
        return {feature.name: _decode(feature, row) for feature, row in zip(self.features, codes, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """The encoding as plain lists, numbers and text."""
        return {"features": [_feature_to_json(feature) for feature in self.features]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Encoding:
        """The encoding that ``to_json`` wrote."""
        try:
            return cls(tuple(_feature_from_json(entry) for entry in document["features"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"The encoding in the file cannot be read: {error}") from error


def _decode(feature: FeatureLevels, codes: Codes) -> Codes:
    if codes.size and not 0 <= codes.min() <= codes.max() < len(feature.levels):
        raise InputError(
            f"Codes of feature {feature.name!r} run from {codes.min()} to {codes.max()}; "
            f"expected 0 to {len(feature.levels) - 1}."
        )
    levels = np.empty(len(feature.levels), dtype=object)
    levels[:] = feature.levels
    return levels[codes]


def _unknown(column: Column, codes: IntArray, between: bool) -> UnknownLevelError:
    rows = np.flatnonzero(codes < 0)
    cells = dict.fromkeys(column.values[rows[~column.missing[rows]]].tolist())
    distinct = [*map(repr, cells), *[MISSING_LABEL] * bool(column.missing[rows].any())]
    shown = ", ".join(distinct[:5]) + (f" and {len(distinct) - 5} more" if len(distinct) > 5 else "")
    return UnknownLevelError(
        f"Column {column.name!r} holds unknown levels: {shown} ({count_of(len(rows), 'row')}, the first is "
        f"row {rows[0]})",
        remedy=[
            "Give rows with known levels, fit again with these rows, or pass ",
            Parameter("handle_unknown", "ignore"),
            ", which reads numbers between their neighbours" if between else "",
        ],
    )


def _feature_to_json(feature: FeatureLevels) -> dict[str, Any]:
    return {
        "name": feature.name,
        "levels": [level_to_json(level) for level in feature.levels],
        "labels": list(feature.labels),
        "values": [level_to_json(value) for value in feature.values],
        "codes": list(feature.codes),
        "edges": [level_to_json(edge) for edge in feature.edges],
        **({"ordered": True} if feature.is_ordered else {}),
        **({"left_out": True} if feature.is_left_out else {}),
        **({"numbers": True} if feature.of_numbers else {}),
    }


def _feature_from_json(entry: dict[str, Any]) -> FeatureLevels:
    return FeatureLevels(
        name=str(entry["name"]),
        levels=tuple(level_from_json(level) for level in entry["levels"]),
        labels=tuple(str(label) for label in entry["labels"]),
        values=tuple(level_from_json(value) for value in entry["values"]),
        codes=tuple(int(code) for code in entry["codes"]),
        edges=tuple(map(_edge_from_json, entry["edges"])),
        is_ordered=bool(entry.get("ordered", False)),
        is_left_out=bool(entry.get("left_out", False)),
        of_numbers=bool(entry.get("numbers", False)),
    )


def _edge_from_json(value: Any) -> Level:
    return level_from_json(value) if isinstance(value, dict | str) else float(value)
