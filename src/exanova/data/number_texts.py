"""Columns of numbers that were read as text, because some cells are not numbers or all are written in another way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.as_text import MOSTLY, AsText, held
from exanova.data.feature import is_number
from exanova.messages import Action, Parts
from exanova.typing import Level

PLAIN = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
FIGURES = r"[+-]?(\d{1,3}([.,' \u00a0\u202f]\d{3})+|\d+)?([.,]\d*)?([eE][+-]?\d+)?"
UNIT = r"([$\u20ac\u00a3\u00a5%\u2030]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|kg|km|cm|mm|ms|min)"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
WRITTEN = re.compile(rf"\s*\(?[+-]?({UNIT}\s?)?(?=[+-]?[.,]?\d){FIGURES}(\s?{UNIT})?\)?\s*")


TO_NUMBERS = "Convert such columns to numbers, for example by pandas.to_numeric"


def numbers_as_text(values: Sequence[Level], totals: NDArray[Any]) -> AsText | None:
    """What a column of distinct values (k,) with these totals (k,) holds, if most are or look like numbers.

    ``None`` if most are not, or if all are whole numbers: those may be codes.

    >>> numbers_as_text(["12,345.60", "7,001.00", "n/a"], np.array([1, 1, 1])).written
    2
    >>> numbers_as_text(["red", "blue", "7"], np.array([1, 1, 1])) is None
    True
    """
    texts = [value if isinstance(value, str) else "" for value in values]
    plain = np.array([is_number(v) or bool(PLAIN.fullmatch(t)) for v, t in zip(values, texts, strict=True)], bool)
    written = ~plain & np.array([bool(WRITTEN.fullmatch(text)) for text in texts], bool)
    found = held("number", values, totals, plain, written)
    if found is None:
        return None
    whole = np.array([isinstance(v, int) or t.strip(" +-").isdigit() for v, t in zip(values, texts, strict=True)], bool)
    decimal = totals[(plain | written) & ~whole].sum() > MOSTLY * totals.sum()
    return None if plain.all() and not decimal else replace(found, rewrite=_rewrite(found), certain=bool(decimal))


def _rewrite(found: AsText) -> Parts:
    if not found.written:
        return TO_NUMBERS
    words: list[Any] = ["Write such cells as 1234.5"]
    if DECIMAL_COMMA.fullmatch(found.example.strip()):
        words += ["; where the comma is the decimal point, ", Action("decimal", ",", "replace it by a point")]
    return words
