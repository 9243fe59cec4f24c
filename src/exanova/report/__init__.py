"""The report of a decomposition, written to a file as HTML, JSON or Markdown by its suffix; README.md explains how."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from exanova.atomic_files import write_whole
from exanova.decomposition import Decomposition
from exanova.errors import InputError, InputTypeError
from exanova.messages import Parameter
from exanova.report.explorer import MOST_FREQUENT, GivenRows
from exanova.report.html import to_html
from exanova.report.markdown import to_markdown
from exanova.report.summary import Summary, summarise


def write_report(
    decomposition: Decomposition,
    path: str | os.PathLike[str],
    *,
    X: Any,
    model: Any,
    id: Any,
    by: str | None,
    since: Any,
    groups: Mapping[str, Sequence[str]] | None,
    base: Any,
    title: str | None,
    about: Mapping[str, str] | None,
) -> None:
    """Summarise a decomposition and write the report to a file, completely or not at all.

    Raises:
        InputError: if the suffix is none of those known, or a model or a column of names is given without rows.
        MissingPackageError: if the page needs a package that is not installed.
        FileWriteError: if the place cannot be written.
    """
    made = _format(path)
    if model is not None and X is None:
        raise InputError("a model was given without rows; give both, report(path, X=table, model=model), or neither.")
    for parameter, column in (("id", id), ("by", by)):
        if column is not None and X is None:
            raise InputError(
                Parameter(parameter, column), " was given without rows; give the table that has this column: X=table."
            )
    if by is not None and not isinstance(by, str):
        raise InputTypeError(Parameter("by", by), " was given", expected="the name of a column of X")
    if base != MOST_FREQUENT and decomposition.link == "identity":
        raise InputError(
            Parameter("base"), " is for a tariff", remedy=["fit with ", Parameter("link", "log"), ", or leave it out"]
        )
    given = GivenRows(X, model, id=id, by=by, since=since, groups=groups, base=base)
    summary = summarise(decomposition, given, title=title, about=about)
    write_whole(path, made(summary).encode("utf-8"))


def _format(path: str | os.PathLike[str]) -> Callable[[Summary], str]:
    suffix = PurePath(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"{os.fspath(path)!r} was given; a report is written as {', '.join(FORMATS)}: "
            "give a path that ends in one of these."
        )
    return FORMATS[suffix]


FORMATS: Mapping[str, Callable[[Summary], str]] = {
    ".html": to_html,
    ".htm": to_html,
    ".json": Summary.to_json,
    ".md": to_markdown,
}
"""The writer for each suffix."""
