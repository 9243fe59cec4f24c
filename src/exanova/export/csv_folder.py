"""A decomposition as a folder: every table as CSV and as Parquet, and an index of the files.

The folder is written completely or not at all. In CSV a text that a spreadsheet would execute has an apostrophe in
front (:mod:`exanova.export.harmless`); Parquet holds every text unchanged.
"""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from exanova.decomposition import Decomposition
from exanova.errors import FileWriteError
from exanova.export.contents import Cell, Sheet, effect_sheets, overview
from exanova.export.harmless import file_name, harmless
from exanova.packages import package
from exanova.progress import Progress

INDEX = "index.json"
KIND = "exanova tables in a folder"
"""Marks an index, so that only folders written by an export are ever replaced."""


def write_folder(
    decomposition: Decomposition, path: str | os.PathLike[str], about: Mapping[str, str], progress: Progress
) -> None:
    """Write all tables to a new folder, or to one that an earlier export made."""
    package("pyarrow.parquet")
    target = Path(path)
    _check_replaceable(target)
    made = target.with_name(f".exanova-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        made.mkdir()
        _fill(made, decomposition, about, progress)
        _put_in_place(made, target)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileWriteError(
            f"the folder {os.fspath(path)!r} cannot be written ({reason}); give a path in a folder that exists and may "
            "be written."
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _fill(folder: Path, decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> None:
    """Every table and the index."""
    listed = []
    for number, sheet in enumerate(_numbered(decomposition, about, progress)):
        name = file_name(number, sheet.name) if sheet.subset else sheet.name
        _store(folder / f"{name}.csv", to_csv(sheet))
        _store(folder / f"{name}.parquet", to_parquet(sheet))
        entry: dict[str, Any] = {"table": sheet.name, "about": sheet.about, "lines": sheet.lines}
        entry |= {"features": list(sheet.subset)} if sheet.subset else {}
        listed.append({**entry, "columns": list(sheet.columns), "csv": f"{name}.csv", "parquet": f"{name}.parquet"})
    provenance = dict(zip(*(sheet_columns(decomposition, about)), strict=True))
    index = {"kind": KIND, "version": 1, "provenance": provenance, "tables": listed}
    _store(folder / INDEX, json.dumps(index, indent=1, ensure_ascii=True).encode("ascii") + b"\n")


def sheet_columns(decomposition: Decomposition, about: Mapping[str, str]) -> tuple[list[Cell], list[Cell]]:
    """Names and values of the provenance."""
    columns = next(sheet.columns for sheet in overview(decomposition, about) if sheet.name == "provenance")
    return columns["name"], columns["value"]


def _numbered(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> Iterator[Sheet]:
    yield from overview(decomposition, about)
    yield from effect_sheets(decomposition, progress)


def to_csv(sheet: Sheet) -> bytes:
    """A table as CSV in UTF-8: text in quotes, numbers with all their digits, empty where there is nothing."""
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([harmless(name) for name in sheet.columns])
    for line in zip(*sheet.columns.values(), strict=True):
        writer.writerow([harmless(cell) if isinstance(cell, str) else "" if cell is None else cell for cell in line])
    return sink.getvalue().encode("utf-8", "surrogatepass")


def to_parquet(sheet: Sheet) -> bytes:
    """A table as Parquet: columns of one kind keep it, all others are text."""
    arrow, parquet = package("pyarrow"), package("pyarrow.parquet")
    columns = [arrow.array(*one_kind(cells)) for cells in sheet.columns.values()]
    sink = io.BytesIO()
    parquet.write_table(arrow.table(columns, names=list(map(valid_text, sheet.columns))), sink)
    return sink.getvalue()


def one_kind(cells: Iterable[Cell]) -> tuple[list[Any], Any]:
    """Cells of one type, and the Arrow type: truth values, whole numbers, real numbers, or text for any mixture."""
    arrow, given = package("pyarrow"), list(cells)
    kinds = {type(cell) for cell in given if cell is not None}
    if kinds == {bool}:
        return given, arrow.bool_()
    if kinds == {int} and all(cell is None or -(2**63) <= cell < 2**63 for cell in given):  # type: ignore[operator]
        return given, arrow.int64()
    if kinds and kinds <= {int, float}:
        return [None if cell is None else float(cell) for cell in given], arrow.float64()
    return [None if cell is None else valid_text(str(cell)) for cell in given], arrow.string()


def valid_text(text: str) -> str:
    """Text that UTF-8 can hold: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _store(path: Path, body: bytes) -> None:
    with open(path, "xb") as handle:
        handle.write(body)
        handle.flush()
        os.fsync(handle.fileno())


def _check_replaceable(target: Path) -> None:
    """Refuse a place that holds anything but an earlier export."""
    if not os.path.lexists(target):
        return
    if target.is_dir() and not any(target.iterdir()):
        return
    kind = None
    with suppress(OSError, ValueError, AttributeError):
        kind = json.loads((target / INDEX).read_bytes()).get("kind")
    if kind != KIND:
        raise FileWriteError(
            f"{os.fspath(target)!r} exists and is not a folder of an earlier export; give another name, or remove it "
            "first."
        )


def _put_in_place(made: Path, target: Path) -> None:
    """Rename the new folder; an earlier export is renamed first and deleted afterwards."""
    if not target.exists():
        os.replace(made, target)
        return
    aside = made.with_suffix(".old")
    os.replace(target, aside)
    try:
        os.replace(made, target)
    except OSError:
        os.replace(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
