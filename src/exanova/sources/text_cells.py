"""What the cells of a text format are: numbers, booleans or text, decided from all of them, block by block.

The rule for CSV, which has no types: a column whose cells are all numbers is read as numbers, so that its levels are in
their natural order and can be binned, unless a number is written like a code, such as ``007``; then the column stays
text. ``true`` and ``false``, in one spelling, are booleans. Everything else is text, including ``NA`` and ``null``,
which stand for a missing value only in a column of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from exanova.packages import package

INTEGER = r"^(0|-?[1-9][0-9]*)$"
NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
INFINITE = r"^[+-]?([Ii]nf|INF|[Ii]nfinity|INFINITY)$"
"""Texts that stand for an infinity in a column of numbers, which is refused."""

BETWEEN_NUMBERS = r"^(#?N/?A|n/a|[Nn]a[Nn]|NAN|NaT|null|NULL|None)$"
"""Texts that stand for a missing value in a column of numbers."""

BOOLEANS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


@dataclass(frozen=True)
class CellEvidence:
    """What the cells of a column have been so far; missing ones say nothing.

    Attributes:
        numbers: whether any cell is a number.
        whole, real: whether all that are not words for a missing value are whole numbers, or numbers.
        short: whether all whole numbers fit in 64 bits.
        spellings: positions in ``BOOLEANS`` that all cells so far agree with.
        cells: whether there are any cells.
    """

    numbers: bool = False
    whole: bool = True
    real: bool = True
    short: bool = True
    spellings: tuple[int, ...] = (0, 1, 2)
    cells: bool = False

    def and_of(self, other: CellEvidence) -> CellEvidence:
        """What the cells of both are."""
        return CellEvidence(
            self.numbers or other.numbers,
            self.whole and other.whole,
            self.real and other.real,
            self.short and other.short,
            tuple(k for k in self.spellings if k in other.spellings),
            self.cells or other.cells,
        )

    @property
    def kind(self) -> str:
        """``"integer"``, ``"real"``, ``"boolean"`` or ``"text"``."""
        if self.numbers and self.whole:
            return "integer" if self.short else "text"  # too many digits: a code, not a quantity
        if self.numbers and self.real:
            return "real"
        return "boolean" if self.cells and self.spellings else "text"


def evidence_of(column: Any) -> CellEvidence:
    """What the cells of a chunked array of text are."""
    compute = package("pyarrow.compute")
    distinct = column.unique().drop_null()
    if not len(distinct):
        return CellEvidence()
    few = set(distinct.slice(0, 3).to_pylist())
    spellings = tuple(k for k, pair in enumerate(BOOLEANS) if few <= set(pair))
    rest = distinct.filter(compute.invert(compute.match_substring_regex(distinct, BETWEEN_NUMBERS)))
    if not len(rest):
        return CellEvidence(spellings=spellings, cells=True)
    finite = rest.filter(compute.invert(compute.match_substring_regex(rest, INFINITE)))
    if not len(finite):
        return CellEvidence(whole=False, spellings=spellings, cells=True)
    evidence = CellEvidence(True, _all_match(rest, INTEGER), True, True, spellings, True)
    if evidence.whole:
        return replace(evidence, short=_cast(rest, package("pyarrow").int64()) is not None)
    return replace(evidence, real=_all_match(finite, NUMBER))


def dotted(column: Any, decimal: str) -> Any:
    """The texts of a chunked array with points in place of ``decimal``; other points are then no part of a number.

    >>> import pyarrow as pa
    >>> dotted(pa.chunked_array([["0,5", "1.000", "a"]]), ",").to_pylist()
    ['0.5', "1'000", 'a']
    """
    if decimal == ".":
        return column
    compute = package("pyarrow.compute")
    return compute.replace_substring(compute.replace_substring(column, ".", "'"), decimal, ".")


def as_cells(column: Any, kind: str) -> Any:
    """A chunked array of text converted to a kind; ``None`` if it cannot be, or if it is to stay text."""
    arrow, compute = package("pyarrow"), package("pyarrow.compute")
    if kind in ("integer", "real"):
        is_word = compute.match_substring_regex(column, BETWEEN_NUMBERS)
        present = compute.if_else(is_word, arrow.NULL, column)
        return _cast(present, arrow.int64() if kind == "integer" else arrow.float64())
    if kind != "boolean":
        return None
    distinct = set(column.unique().drop_null().slice(0, 3).to_pylist())
    spelling = next((pair for pair in BOOLEANS if distinct <= set(pair)), None)
    return None if spelling is None else compute.equal(column, spelling[1])


def _cast(column: Any, to: Any) -> Any:
    try:
        return column.cast(to)
    except package("pyarrow").ArrowException:
        return None


def _all_match(texts: Any, pattern: str) -> bool:
    compute = package("pyarrow.compute")
    return bool(compute.all(compute.match_substring_regex(texts, pattern)).as_py())
