"""Safe cells and names: texts that look like formulas, names of sheets and of files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from exanova.packages import package

FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
"""Beginnings of texts that spreadsheets execute, or that look like an escaped text."""

MADE_HARMLESS = re.compile(r"'+[=+\-@\t\r＝＋－＠]")

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""A number, which nothing executes."""

SHEET_NAME = 31
"""Characters of the name of a sheet, in units of UTF-16."""

FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that the name of a sheet or of a file may not hold on some system."""

FILE_NAME = 60
"""Characters of a name of a feature that a file name repeats."""

ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""Characters that XML cannot hold (or would turn into others), and the beginning of what looks like their escape."""

LONGEST_CELL = 32_767
"""Characters that a cell of a workbook may hold."""


def harmless(text: str) -> str:
    """Text that a spreadsheet does not execute when it opens a CSV file: with an apostrophe in front where it would.

    >>> harmless("=1+1"), harmless("a=1"), harmless("'=1")
    ("'=1+1", 'a=1', "''=1")
    """
    return f"'{text}" if FORMULA.match(text) else text


def restored(text: str) -> str:
    """The text that :func:`harmless` was given.

    >>> restored("'=1+1"), restored("'quoted'")
    ('=1+1', "'quoted'")
    """
    return text[1:] if MADE_HARMLESS.match(text) else text


def harmless_table(table: Any) -> Any:
    """A pyarrow table for CSV: its names and texts harmless, except texts that are plain numbers."""
    pa, pc = package("pyarrow"), package("pyarrow.compute")

    def safe(column: Any) -> Any:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        executed = pc.match_substring_regex(column, f"^{FORMULA.pattern}")
        marked = pc.and_(executed, pc.invert(pc.match_substring_regex(column, NUMBER)))
        if not pc.any(marked).as_py():
            return column
        return pc.if_else(marked, pc.binary_join_element_wise(pa.scalar("'", column.type), column, ""), column)

    return pa.table([safe(column) for column in table.columns], names=[harmless(name) for name in table.column_names])


def in_xml(text: str) -> str:
    """Text as a cell of a workbook holds it: characters that XML cannot hold as ``_x0007_``, the escape of Excel.

    >>> in_xml("bell" + chr(7)), in_xml("_x0041_")
    ('bell_x0007_', '_x005F_x0041_')
    """
    escaped = ILLEGAL.sub(lambda match: f"_x{ord(match.group()):04X}_", text)
    return escaped if len(escaped) <= LONGEST_CELL else f"{escaped[: LONGEST_CELL - 1]}…"


def sheet_names(names: Iterable[str]) -> list[str]:
    """Names of sheets that Excel accepts: short, without forbidden characters, different even without case.

    >>> sheet_names(["a/b", "A_b", "History", "x" * 40])
    ['a_b', 'A_b ~2', 'History_', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']
    """
    taken: set[str] = set()
    accepted = []
    for name in names:
        base = FORBIDDEN.sub("_", name)
        base = re.sub(r"^'|'$", "_", base) or "_"
        base = f"{base}_" if base.casefold() == "history" else base
        candidate, number = _cut(base), 2
        while candidate.casefold() in taken:
            candidate, number = _cut(base, f" ~{number}"), number + 1
        taken.add(candidate.casefold())
        accepted.append(candidate)
    return accepted


def file_name(number: int, name: str) -> str:
    """A name for a file, without suffix: a number that makes it unique, and the valid characters of the name.

    >>> file_name(3, "job x home/work")
    '0003 job x home_work'
    """
    legible = re.sub(r"[^\w .,()+=-]", "_", name, flags=re.ASCII)[:FILE_NAME].strip(" .")
    return f"{number:04d} {legible}".strip()


def _cut(name: str, end: str = "") -> str:
    """As much of a name as fits with an ending; half of a pair of surrogates is never kept."""
    units = name.encode("utf-16-le")[: 2 * (SHEET_NAME - len(end))]
    return re.sub(r"'$", "_", units.decode("utf-16-le", "ignore")) + end
