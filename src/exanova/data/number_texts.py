"""Columns of numbers that were read as text, because some cells are not numbers or all are written in another way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.feature import is_number
from exanova.messages import Action, Parts, count_of
from exanova.typing import Level

MOSTLY = 0.5
"""Share of the cells from which a column holds numbers, and the others are to be explained."""

LONGEST = 30
"""Characters of a cell that are shown."""

PLAIN = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
FIGURES = r"[+-]?(\d{1,3}([.,' \u00a0\u202f]\d{3})+|\d+)?([.,]\d*)?([eE][+-]?\d+)?"
UNIT = r"([$\u20ac\u00a3\u00a5%\u2030]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|kg|km|cm|mm|ms|min)"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
WRITTEN = re.compile(rf"\s*\(?[+-]?({UNIT}\s?)?(?=[+-]?[.,]?\d){FIGURES}(\s?{UNIT})?\)?\s*")


@dataclass(frozen=True)
class NumbersAsText:
    """What a column of text holds.

    Attributes:
        cells: cells that are not missing, or different values where weights do not count cells.
        counted: whether cells were counted.
        numbers: how many are numbers.
        written: how many look like numbers written in another way: with separators, a unit or a decimal comma.
        example: the most frequent of those; without any, the most frequent of the rest; empty without any.
        decimal: whether most of all these have a decimal part, a separator or a unit, as no code has.
    """

    cells: int
    counted: bool
    numbers: int
    written: int
    example: str
    decimal: bool

    @property
    def remedy(self) -> Parts:
        """What to do about it."""
        if not self.written:
            return ["Correct these cells, or ", Action("missing", self.example, "make them missing")]
        plain: list[Any] = ["Write such cells as 1234.5"]
        if DECIMAL_COMMA.fullmatch(self.example.strip()):
            plain += ["; where the comma is the decimal point, ", Action("decimal", ",", "replace it by a point")]
        return plain

    def describe(self) -> str:
        """What was found, in words.

        >>> numbers_as_text(["1.5", "2.25", "3 EUR"], np.array([2, 2, 1])).describe()
        "4 of 5 cells are numbers, 1 looks like a number written as '3 EUR'"
        """
        of = f" of {count_of(self.cells, 'cell')}" if self.counted else f" of {self.cells:,} different values"
        rest = self.cells - self.numbers - self.written
        parts = []
        if self.numbers:
            parts.append((self.numbers, "is a number", "are numbers"))
        if self.written:
            as_ = f"written as {self.example!r}"
            parts.append((self.written, f"looks like a number {as_}", f"look like numbers {as_}"))
        elif rest:
            parts.append((rest, f"is not: {self.example!r}", f"are not, such as {self.example!r}"))
        texts = [f"{n:,}{of if not k else ''} {one if n == 1 else many}" for k, (n, one, many) in enumerate(parts)]
        return ", ".join(texts)


def numbers_as_text(values: Sequence[Level], totals: NDArray[Any]) -> NumbersAsText | None:
    """What a column of distinct values (k,) with these totals (k,) holds, if most are or look like numbers.

    ``None`` if all are numbers, or most are not. Totals that are not counts of rows are not used.

    >>> numbers_as_text(["12,345.60", "7,001.00", "n/a"], np.array([1, 1, 1])).written
    2
    >>> numbers_as_text(["red", "blue", "7"], np.array([1, 1, 1])) is None
    True
    """
    counted = totals.dtype.kind == "i"
    counts = totals.astype(np.int64) if counted else np.ones(len(values), dtype=np.int64)
    texts = [value if isinstance(value, str) else "" for value in values]
    number = np.array([is_number(v) or bool(PLAIN.fullmatch(t)) for v, t in zip(values, texts, strict=True)], bool)
    written = ~number & np.array([bool(WRITTEN.fullmatch(text)) for text in texts], bool)
    like = number | written
    if number.all() or counts[like].sum() <= MOSTLY * counts.sum():
        return None
    shown = written if written.any() else ~like
    example = str(values[int(np.argmax(np.where(shown, counts, 0)))])[:LONGEST]
    whole = np.array([isinstance(v, int) or t.strip(" +-").isdigit() for v, t in zip(values, texts, strict=True)], bool)
    decimal = counts[like & ~whole].sum() > MOSTLY * counts.sum()
    return NumbersAsText(
        int(counts.sum()), counted, int(counts[number].sum()), int(counts[written].sum()), example, bool(decimal)
    )
