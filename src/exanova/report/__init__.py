"""The report of a decomposition, written to a file as HTML, JSON or Markdown by its suffix; README.md explains how."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from exanova.argument_checks import ABOUT, check_mapping, check_path, check_text, is_choice
from exanova.atomic_files import write_whole
from exanova.decomposition import Decomposition, decomposition_of
from exanova.errors import InputError, InputTypeError
from exanova.messages import Parameter
from exanova.report.explorer import MOST_FREQUENT, GivenRows
from exanova.report.html import to_html
from exanova.report.markdown import to_markdown
from exanova.report.summary import Summary, summarise


@dataclass(frozen=True, eq=False)
class ReportArguments:
    """The arguments of ``report`` that say what it shows besides the decomposition; its docstring explains each.

    Attributes:
        X, model, id: rows for the row explorer, the model or its outputs at them, and their identifiers.
        by: the column of ``X`` whose groups are compared.
        since: an earlier fit.
        groups: groups of features.
        base: base levels of the tariff.
    """

    X: Any
    model: Any
    id: Any
    by: str | None
    since: Any
    groups: Mapping[str, Sequence[str]] | None
    base: Any

    def check(self, link: str) -> None:
        """Refuse arguments that contradict each other or the link of the fit."""
        if self.model is not None and self.X is None:
            raise InputError(
                "a model was given without rows; give both, report(path, X=table, model=model), or neither."
            )
        for parameter, column in (("id", self.id), ("by", self.by)):
            if column is not None and self.X is None:
                raise InputError(
                    Parameter(parameter, column),
                    " was given without rows; give the table that has this column: X=table.",
                )
        if self.since is not None:
            decomposition_of(self.since, "since")
        if self.by is not None and not isinstance(self.by, str):
            raise InputTypeError(Parameter("by", self.by), " was given", expected="the name of a column of X")
        if not is_choice(self.base, [MOST_FREQUENT]) and link == "identity":
            raise InputError(
                Parameter("base"),
                " is for a tariff",
                remedy=["fit with ", Parameter("link", "log"), ", or leave it out"],
            )

    def read(self) -> GivenRows:
        """The rows with everything else that was given, read once."""
        return GivenRows(
            self.X, self.model, id=self.id, by=self.by, since=self.since, groups=self.groups, base=self.base
        )


def write_report(
    decomposition: Decomposition,
    path: str | os.PathLike[str],
    arguments: ReportArguments,
    *,
    title: str | None,
    about: Mapping[str, str] | None,
) -> None:
    """Summarise a decomposition and write the report to a file, completely or not at all.

    Raises:
        InputError: if the suffix is unknown, or a model or a column of names is given without rows.
        MissingPackageError: if the page needs a package that is not installed.
        FileWriteError: if the place cannot be written.
    """
    made = _format(path)
    check_text("title", title)
    check_mapping("about", about, ABOUT)
    arguments.check(decomposition.link)
    summary = summarise(decomposition, arguments.read(), title=title, about=about)
    write_whole(path, made(summary).encode("utf-8"))


def _format(path: str | os.PathLike[str]) -> Callable[[Summary], str]:
    check_path(path)
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
