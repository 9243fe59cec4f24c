"""A decomposition as a workbook for Excel and similar programs: one sheet per table, pairs also as matrices.

Text stays text, whatever it begins with: a cell that would be taken for a formula is marked as text in the file itself,
so that it reads back unchanged. The same decomposition always gives the same bytes.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.norms import absolute_norms
from exanova.explain.relativities import Relativities
from exanova.export.contents import Cell, Sheet, effect_sheet, overview, tariff_sheets
from exanova.export.harmless import FORMULA, in_xml, sheet_names
from exanova.packages import package
from exanova.progress import Progress

LINES, COLUMNS = 1_048_575, 16_000
"""Lines of a sheet without its header, and levels of a feature across a matrix: a sheet has 16,384 columns."""

EFFECT_SHEETS = 500
"""Effects with a sheet of their own, the strongest ones; the others share sheets."""

TOGETHER = "further effects"
"""Name of the sheet that effects without one of their own share."""

WIDEST, NARROWEST = 60, 9
"""Largest and smallest width of a column, in characters."""

EXACT = 10**15
"""Whole numbers from which Excel, whose numbers have fifteen digits, gets text instead."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every part of the file: the earliest that the format knows."""


def to_workbook(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> bytes:
    """The bytes of a workbook."""
    package("openpyxl")
    from openpyxl import Workbook

    sheets = list(_all_sheets(decomposition, about))
    names = sheet_names(sheet.name for sheet in sheets)
    _tell_where(sheets, names)
    book = Workbook(write_only=True)
    for sheet, name in zip(sheets, names, strict=True):
        matrices = _matrices(decomposition, sheet) if len(sheet.subset) == 2 else []
        _write(book.create_sheet(name), sheet, matrices)
        progress.step(bool(sheet.subset))
    return _bytes_of(book)


def tariff_workbook(tariff: Relativities) -> bytes:
    """The bytes of a workbook of the tariff alone."""
    package("openpyxl")
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for sheet in (part for whole in tariff_sheets(tariff) for part in _in_parts(whole)):
        _write(book.create_sheet(sheet.name), sheet, [])
    return _bytes_of(book)


def _all_sheets(decomposition: Decomposition, about: Mapping[str, str]) -> Iterator[Sheet]:
    """The overview, the effects in canonical order, and those without a sheet of their own; long ones in parts."""
    for sheet in overview(decomposition, about):
        yield from _in_parts(sheet)
    own = set(_strongest(decomposition, EFFECT_SHEETS))
    for s in sorted(own):
        names = decomposition.schema.names(decomposition.family.subsets[s])
        yield from _in_parts(effect_sheet(decomposition, decomposition.effects[names]))
    others = [s for s in range(1, len(decomposition.family.subsets)) if s not in own]
    if others:
        yield from _in_parts(_together(decomposition, others))


def _tell_where(sheets: Sequence[Sheet], names: Sequence[str]) -> None:
    """Add the sheet of each effect to the list of effects, because long names are truncated."""
    place = {sheet.name: name for sheet, name in zip(sheets, names, strict=True) if sheet.subset}
    for sheet in sheets:
        if not sheet.subset and {"subset", "norm1", "norm2"} <= sheet.columns.keys():
            sheet.columns["sheet"] = [place.get(str(subset), TOGETHER) for subset in sheet.columns["subset"]]


def _strongest(decomposition: Decomposition, count: int) -> list[int]:
    norms = absolute_norms(decomposition.family, decomposition.values)[1:].sum(axis=1)
    return [int(s) for s in 1 + np.argsort(-norms, kind="stable")[:count]]


def _in_parts(sheet: Sheet) -> Iterator[Sheet]:
    if sheet.lines <= LINES:
        yield sheet
        return
    for part, start in enumerate(range(0, sheet.lines, LINES), start=1):
        columns = {name: cells[start : start + LINES] for name, cells in sheet.columns.items()}
        yield Sheet(f"{sheet.name} ({part})", sheet.about, columns)


def _together(decomposition: Decomposition, numbers: Sequence[int]) -> Sheet:
    """Many effects in one table: the subset, its levels side by side, then the columns of an effect."""
    order = decomposition.order
    levels = [f"level {k + 1}" for k in range(order)]
    columns: dict[str, list[Cell]] = {"subset": [], **{name: [] for name in levels}}
    for s in numbers:
        names = decomposition.schema.names(decomposition.family.subsets[s])
        sheet = effect_sheet(decomposition, decomposition.effects[names])
        cells = list(sheet.columns.values())
        columns["subset"] += [sheet.name] * sheet.lines
        for k, name in enumerate(levels):
            columns[name] += cells[k] if k < len(names) else [None] * sheet.lines
        for name, values in zip(_after_levels(decomposition), cells[len(names) :], strict=True):
            columns.setdefault(name, []).extend(values)
    return Sheet(TOGETHER, "The effects that have no sheet of their own.", columns)


def _after_levels(decomposition: Decomposition) -> tuple[str, ...]:
    schema = decomposition.schema
    return ("probability", "rows", *schema.value_columns, *schema.stderr_columns, "identified")


def _matrices(decomposition: Decomposition, sheet: Sheet) -> list[list[Cell]]:
    """The values of a pair as matrices, one below the other: value and standard error per output, then rows."""
    if sheet.grid is None:
        return []
    features = decomposition.schema.features
    first, second = (decomposition.schema.labels[features.index(name)] for name in sheet.subset)
    if len(second) > COLUMNS:
        return []
    after = list(sheet.columns)[2:-1]  # probability, rows, values, standard errors
    lines: list[list[Cell]] = []
    for column in [*after[2:], after[1]]:
        cells = sheet.columns[column]
        if any(cell is not None for cell in cells):
            lines += [*_matrix(column, sheet, cells, (first, second)), []]
    return lines[:-1]


def _matrix(
    title: str, sheet: Sheet, cells: Sequence[Cell], labels: tuple[Sequence[str], Sequence[str]]
) -> Iterator[list[Cell]]:
    """One matrix with its heading and its levels; combinations never observed are empty."""
    rows: list[list[Cell]] = [[None] * len(labels[1]) for _ in labels[0]]
    for i, j, cell in zip(*sheet.grid.tolist(), cells, strict=True):
        rows[i][j] = cell
    yield [f"{title}: {sheet.subset[0]} down, {sheet.subset[1]} across", *labels[1]]
    yield from ([label, *row] for label, row in zip(labels[0], rows, strict=True))


def _write(page: Any, sheet: Sheet, matrices: list[list[Cell]]) -> None:
    """Fill one sheet: header in bold and frozen, widths by content, a format for each column of numbers."""
    from openpyxl.utils import get_column_letter

    page.freeze_panes = "A2"
    for k, (name, cells) in enumerate(sheet.columns.items(), start=1):
        longest = max((len(str(cell)) for cell in (name, *cells[:200]) if not isinstance(cell, float)), default=0)
        page.column_dimensions[get_column_letter(k)].width = min(WIDEST, max(NARROWEST, longest + 2))
    formats = [_format(name, cells) for name, cells in sheet.columns.items()]
    page.append([_cell(page, name, bold=True) for name in sheet.columns] + _beside(page, matrices, 0))
    lines: Iterator[Any] = zip(*sheet.columns.values(), strict=True)
    for k, (line, _) in enumerate(zip_longest(lines, matrices[1:]), start=1):
        own = [None] * len(formats) if line is None else line
        cells = [_cell(page, cell, number) for cell, number in zip(own, formats, strict=True)]
        page.append(cells + _beside(page, matrices, k))


def _beside(page: Any, matrices: list[list[Cell]], line: int) -> list[Any]:
    """The cells of the matrices in one line of the sheet, after an empty column."""
    cells = matrices[line] if line < len(matrices) else []
    return [None, *(_cell(page, cell) for cell in cells)] if cells else []


def _format(name: str, cells: Sequence[Cell]) -> str:
    """A number format: shares in per cent, counts in full, other numbers with digits according to their size."""
    numbers = [abs(cell) for cell in cells if isinstance(cell, float)]
    if name.startswith("probability"):
        return "0.00%"
    if not numbers:
        return "#,##0" if name.startswith("rows") else "General"
    largest = max(numbers)
    if largest == 0.0 or not 1e-4 <= largest < 1e9:
        return "0.0000E+00"
    return "0." + "0" * max(2, 4 - math.floor(math.log10(largest)))


def _cell(page: Any, value: Cell, number: str = "General", bold: bool = False) -> Any:
    """A cell: text as text whatever it looks like, numbers as numbers."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    if value is None:
        return None
    if isinstance(value, int) and abs(value) >= EXACT:
        value = str(value)
    if not isinstance(value, str):
        cell = WriteOnlyCell(page, value)
        cell.number_format = "General" if isinstance(value, bool) else number
        return cell
    cell = WriteOnlyCell(page, in_xml(value))
    cell.data_type = "s"
    if FORMULA.match(value):
        cell.quotePrefix = True
    if bold:
        cell.font = Font(bold=True)
    return cell


def _bytes_of(book: Any) -> bytes:
    """A workbook as bytes, without the time at which it was written."""
    body, sink = io.BytesIO(), io.BytesIO()
    book.save(body)
    with zipfile.ZipFile(body) as given, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename == "docProps/core.xml":
                content = re.sub(rb"<dcterms:(created|modified)[^>]*>[^<]*</dcterms:\1>", b"", content)
            part = zipfile.ZipInfo(entry.filename, EPOCH)
            part.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(part, content)
    return sink.getvalue()
