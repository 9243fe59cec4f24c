"""Exports of a decomposition: a workbook, a folder, JSON, SQL, Markdown or LaTeX, by the name of the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import PurePath
from typing import Any

from exanova.argument_checks import ABOUT, are_texts, check_mapping, check_path
from exanova.atomic_files import write_whole
from exanova.decomposition import Decomposition
from exanova.errors import InputError
from exanova.export.csv_folder import write_folder
from exanova.export.json_tables import to_json
from exanova.export.score_sql import to_sql
from exanova.export.typeset import to_latex, to_markdown
from exanova.export.workbook import to_workbook
from exanova.messages import Parameter
from exanova.progress import Progress

FORMATS: Mapping[str, Callable[..., bytes]] = {
    ".xlsx": to_workbook,
    ".json": to_json,
    ".sql": to_sql,
    ".md": to_markdown,
    ".tex": to_latex,
}
"""The writer for each suffix; a path without a suffix, or that ends in a slash, is a folder."""


def write_export(
    decomposition: Decomposition,
    path: str | os.PathLike[str],
    *,
    about: Mapping[str, str] | None = None,
    **sql: Any,
) -> None:
    """Write a decomposition in the format that a path names, completely or not at all.

    Args:
        decomposition: the decomposition.
        path: ends in one of ``FORMATS``, or names a folder.
        about: further facts to add to the provenance.
        sql: options of :func:`exanova.export.score_sql.to_sql`; ``None`` for those that were not given.
    """
    check_mapping("about", about, ABOUT)
    facts = {str(name): str(value) for name, value in (about or {}).items()}
    given = {name: value for name, value in sql.items() if value is not None}
    suffix = suffix_of(path)
    if given and suffix != ".sql":
        raise InputError(
            Parameter(next(iter(given))), f" was given for {os.fspath(path)!r}", expected="a name that ends in .sql"
        )
    with closing(Progress(decomposition.settings.verbose)) as progress:
        progress.phase("exporting effects", len(decomposition.family.subsets) - 1)
        if not suffix:
            write_folder(decomposition, path, facts, progress)
        else:
            options = _checked(given) if suffix == ".sql" else {}
            write_whole(path, FORMATS[suffix](decomposition, facts, progress, **options))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The suffix that decides on the format; empty for a folder.

    >>> suffix_of("book.XLSX"), suffix_of("tables/")
    ('.xlsx', '')
    """
    check_path(path)
    text = os.fspath(path)
    if not text:
        raise InputError.given("path", text, "the path of a file or a folder")
    suffix = "" if text.endswith(("/", os.sep)) or os.path.isdir(text) else PurePath(text).suffix.lower()
    if suffix and suffix not in FORMATS:
        raise InputError(
            f"{text!r} was given; an export is written as {', '.join(FORMATS)}, or as a folder (a name that ends in "
            "/): give such a path."
        )
    return suffix


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of SQL, each of the type it should have."""
    keep = given.get("keep", ())
    if not are_texts(keep):
        raise InputError.given("keep", keep, "a list of names of columns")
    table = given.get("table", "rows")
    if not isinstance(table, str) or not table:
        raise InputError.given("table", table, "the name of a table")
    return dict(given)
