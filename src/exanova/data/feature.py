"""The levels of one feature, and the rule from a cell to its code: a list of values, bins, or one code for all."""

from __future__ import annotations

import datetime
import decimal
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from exanova.data.between import FEWEST_LEVELS, Between, between
from exanova.data.binning import bin_codes
from exanova.data.column import Column
from exanova.data.factor import factorize, lookup_codes
from exanova.data.levels import label_levels
from exanova.data.text_times import time_of_text
from exanova.data.times import time_places
from exanova.errors import InputError, InputTypeError
from exanova.typing import FloatArray, IntArray, Level

NO_INFINITY = "Replace infinite values by finite numbers, or by NaN to make them missing values"

UNKNOWN = -1
"""Code of a level that was not learned."""


@dataclass(frozen=True)
class FeatureLevels:
    """The levels of one feature and the rule that leads from a cell to its code.

    Attributes:
        name: the name of the column.
        levels: what each code means; ``None`` is the level of missing values.
        labels: the same as text, without repetition.
        values: every raw value that was learned, or ``()`` for a feature that is cut or left out.
        codes: the code of each raw value, or of each bin (-1 for a bin that was empty).
        edges: the edges of the bins, numbers or times, or ``()``.
        is_ordered: whether a dtype says that the levels are in order.
        is_left_out: whether every value has the same code, as those of an identifier.
        of_numbers: whether the values are numbers in order that are not binned.
    """

    name: str
    levels: tuple[Level, ...]
    labels: tuple[str, ...]
    values: tuple[Level, ...]
    codes: tuple[int, ...]
    edges: tuple[Level, ...] = ()
    is_ordered: bool = False
    is_left_out: bool = False
    of_numbers: bool = False

    @classmethod
    def of(cls, name: str, levels: Sequence[Level]) -> FeatureLevels:
        """A feature whose raw values are its levels."""
        known = tuple(level for level in levels if level is not None)
        codes = tuple(k for k, level in enumerate(levels) if level is not None)
        return cls(name, tuple(levels), label_levels(levels), known, codes)

    @property
    def missing_code(self) -> int:
        """Code of missing values; -1 if none were learned."""
        return next((k for k, level in enumerate(self.levels) if level is None), UNKNOWN)

    @property
    def is_lossless(self) -> bool:
        """Whether different raw values always have different codes."""
        return not self.edges and not self.is_left_out and len(set(self.codes)) == len(self.codes)

    @property
    def joined(self) -> dict[str, tuple[Level, ...]]:
        """Raw values of every level that has more than one, by its label.

        >>> FeatureLevels("job", ("a", "2 levels: b, c"), ("a", "2 levels: b, c"), ("a", "b", "c"), (0, 1, 1)).joined
        {'2 levels: b, c': ('b', 'c')}
        """
        members: dict[int, list[Level]] = {}
        for value, code in zip(self.values, self.codes, strict=False):
            members.setdefault(code, []).append(value)
        return {self.labels[code]: tuple(values) for code, values in sorted(members.items()) if len(values) > 1}

    @property
    def ordered(self) -> int:
        """How many levels, from the first on, are in order: bins, dates and declared orders; 0 where there is none."""
        known = [level for level in self.levels if level is not None]
        if self.is_ordered:
            own = set(self.values)
            return sum(level in own for level in known)  # rare levels that were merged have no position in the order
        dates = all(isinstance(level, datetime.date | datetime.time | datetime.timedelta) for level in known)
        return len(known) if self.edges or (known and dates) else 0

    @property
    def placed(self) -> int:
        """How many levels, from the first on, a prior takes to be in order: ``ordered``, or the levels of numbers."""
        return self.ordered or (0 if self.between is None else self._numbers)

    @property
    def neighboured(self) -> int:
        """How many levels, from the first on, would be read from their neighbours if no row had them.

        Those are bins, since a column would then be cut otherwise, and numbers, if others remain in order.
        """
        if self.edges:
            return self.ordered
        return self.placed if self.between is not None and self._numbers > FEWEST_LEVELS else 0

    @cached_property
    def between(self) -> Between | None:
        """Places of numbers never observed, whose codes follow those of the levels; ``None`` if it has none."""
        count = self._numbers if self.of_numbers else 0
        return between([float(level) for level in self.levels[:count]], self.labels) if count else None

    @property
    def _numbers(self) -> int:
        """How many levels, from the first on, are numbers; rare ones that were merged have no position."""
        return next((k for k, level in enumerate(self.levels) if not is_number(level)), len(self.levels))

    @property
    def is_of_times(self) -> bool:
        """Whether the edges are times and not numbers."""
        return bool(self.edges) and not isinstance(self.edges[0], int | float)

    @property
    def has_increasing_edges(self) -> bool:
        """Whether edges are all of a kind and in order; a last bin of one value begins and ends there."""
        placed = time_places(self.edges) if self.is_of_times else ("numbers", np.array(self.edges).tolist())
        if placed is None or not all(a < b for a, b in pairwise(placed[1][:-1])):
            return False
        return all(a <= b for a, b in pairwise(placed[1][-2:]))

    def encode(self, column: Column) -> IntArray:
        """Codes (n,) of a column; -1 where the level is unknown."""
        if self.is_left_out:
            return np.zeros(len(column.missing), dtype=np.int64)
        if self.is_of_times:
            values, raw = factorize(column)
            return self._recode_times(column.name, values)[raw]
        if self.edges:
            return self._encode_bins(column)
        return lookup_codes(column, self._code_of, self.missing_code)

    def read_between(self, column: Column, codes: IntArray) -> IntArray:
        """The codes (n,) of a column with those of places in place of unknown ones, where it holds numbers there."""
        rows = np.flatnonzero((codes < 0) & ~column.missing)
        if self.between is None or not len(rows):
            return codes
        cells = column.values[rows].tolist()
        numbers = np.array([float(cell) if is_number(cell) else np.nan for cell in cells])
        known = np.isfinite(numbers)
        out = codes.astype(np.int64)
        out[rows[known]] = len(self.levels) + self.between.find(numbers[known])
        return out

    def recode(self, values: Sequence[Level]) -> IntArray:
        """Codes of learned raw values (k,), and last the code of missing cells: shape (k + 1,).

        ``recode(values)[codes]`` encodes what ``factorize`` returned, -1 reading the last place.
        """
        if self.is_left_out:
            return np.zeros(len(values) + 1, dtype=np.int64)
        if self.is_of_times:
            return self._recode_times(self.name, values)
        if self.edges:
            bins = bin_codes(np.array(values, dtype=np.float64), np.array(self.edges))
            return np.append(np.array(self.codes, dtype=np.int64)[bins], self.missing_code)
        code_of = self._code_of
        return np.array([*(code_of[value] for value in values), self.missing_code], dtype=np.int64)

    @property
    def _code_of(self) -> dict[Level, int]:
        return dict(zip(self.values, self.codes, strict=True))

    def _encode_bins(self, column: Column) -> IntArray:
        numbers = finite_numbers(column)
        code_of_bin = np.array(self.codes, dtype=np.int64)
        codes = code_of_bin[bin_codes(numbers, np.array(self.edges))]
        codes[column.missing] = self.missing_code
        return codes

    def _recode_times(self, name: str, values: Sequence[Level]) -> IntArray:
        family, edges = time_places(self.edges) or ("", [])
        placed = time_places(values, family) or time_places([_read(value) for value in values], family)
        if placed is None:
            wrong = next(value for value in values if time_places([_read(value)], family) is None)
            raise InputTypeError(
                f"Column {name!r} is cut by time, but holds {wrong!r} of type {type(wrong).__name__}",
                expected=f"a {family}, as when it was fitted",
                remedy="Convert the column",
            )
        codes = [self.codes[bisect_right(edges, place, 1, len(edges) - 1) - 1] for place in placed[1]]
        return np.array([*codes, self.missing_code], dtype=np.int64)


def _read(value: Level) -> Level:
    """A time that is written as text, or the value unchanged."""
    return time_of_text(value) or value if isinstance(value, str) else value


def finite_numbers(column: Column) -> FloatArray:
    """The cells of a numeric column as float64 (n,), 0 where missing; raises on text and on infinities."""
    filled = np.where(column.missing, 0, column.values)
    if not column.is_numeric:
        wrong = next((cell for cell in filled.tolist() if not is_number(cell)), None)
        if wrong is not None:
            raise InputTypeError(
                f"Column {column.name!r} is binned, but holds a value of type {type(wrong).__name__}",
                expected="numbers",
            )
    numbers: FloatArray = filled.astype(np.float64)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"Column {column.name!r} holds an infinite value, first in row {row}", remedy=NO_INFINITY)
    return numbers


def is_number(cell: Any) -> bool:
    """Whether a cell is a real number; a boolean is not."""
    return isinstance(cell, int | float | decimal.Decimal) and not isinstance(cell, bool)
