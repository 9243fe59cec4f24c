"""``Provenance``: the origin of a decomposition; recorded by the fit, kept in files, shown in reports and exports."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import Any

from exanova import __version__
from exanova.argument_checks import are_texts, check_mapping, check_path
from exanova.data.observe import Observation
from exanova.errors import InputError, InputTypeError

LONGEST_SETTING = 200
"""Characters of a setting that are recorded; the file of a decomposition has its parameters in full."""


@dataclass(frozen=True)
class Provenance:
    """Where a decomposition comes from: the attribute ``provenance_`` of a :class:`FunctionalANOVA`.

    It contains no rows, and of the model only hashes.

    Attributes:
        version: version of exanova that made the fit.
        date: when it was made, in UTC; with the environment variable ``SOURCE_DATE_EPOCH``, the time given there.
        settings: names and values, as text, of the parameters and of what was given to ``fit`` beside rows and model.
        seed: the parameter ``random_state``.
        rows: number of rows that were given.
        distinct_rows: number of distinct rows among them, once encoded.
        total_weight: sum of the weights of the rows; their number if no weights were given.
        weighted: whether weights were given.
        table_hash: SHA-256 of names, levels, rows, weights and outputs, as they were fitted.
        command: the command line, if the command made the fit.
        files: role ("data", "model"), path as it was given, and SHA-256 of the content of each file.

    >>> import numpy as np
    >>> from exanova import FunctionalANOVA
    >>> anova = FunctionalANOVA(max_order=1).fit(np.array([["a"], ["a"], ["b"]]), np.array([0.0, 0.0, 1.0]))
    >>> anova.provenance_.rows, anova.provenance_.distinct_rows, dict(anova.provenance_.settings)["max_order"]
    (3, 2, '1')
    """

    version: str
    date: str
    settings: tuple[tuple[str, ...], ...]
    seed: int | None
    rows: int
    distinct_rows: int
    total_weight: float
    weighted: bool
    table_hash: str
    command: str = ""
    files: tuple[tuple[str, ...], ...] = ()

    def with_origin(
        self, command: Sequence[str] = (), files: Mapping[str, str | os.PathLike[str]] | None = None
    ) -> Provenance:
        """The same record with a command line and with the hashes of files, by their roles."""
        if not are_texts(command):
            raise InputTypeError.given("command", command, "the words of a command line, as a list of texts")
        check_mapping("files", files, "{'data': 'loans.csv'}")
        for path in (files or {}).values():
            check_path(path, "files")
        hashed = tuple((role, os.fspath(path), file_hash(path)) for role, path in (files or {}).items())
        return replace(self, command=shlex.join(command) or self.command, files=(*self.files, *hashed))

    def facts(self) -> list[tuple[str, str]]:
        """Everything as pairs of a name and a text, for people to read."""
        return list(self._facts())

    def _facts(self) -> Iterator[tuple[str, str]]:
        weights = f"total weight {self.total_weight:,.15g}" if self.weighted else "no weights"
        yield "Made by", f"exanova {self.version}"
        yield "Date", self.date
        distinct = f"{self.distinct_rows:,} distinct" if self.distinct_rows else "as moments"
        yield "Rows", f"{self.rows:,} given, {distinct}, {weights}"
        yield "Settings", ", ".join(f"{name}={value}" for name, value in self.settings)
        yield "Seed", str(self.seed)
        yield "Hash of the table as fitted", f"sha256 {self.table_hash}"
        for role, path, digest in self.files:
            yield f"File: {role}", f"{path} (sha256 {digest})"
        if self.command:
            yield "Command", self.command

    def _repr_html_(self) -> str:
        lines = (f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in self.facts())
        return f"<table>{''.join(lines)}</table>"

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def trace(
    observed: Observation,
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
    clock: Callable[[], float] = time.time,
) -> Provenance:
    """The record of a fit.

    Args:
        observed: the rows and the model as they were observed.
        parameters: those of the estimator.
        given: further arguments of ``fit``; ``None`` for those that were not given.
        clock: seconds since 1970.
    """
    settings = {name: _text(value) for name, value in sorted(parameters.items())}
    settings |= {name: _argument(value) for name, value in given.items() if value is not None}
    seed = parameters.get("random_state")
    return Provenance(
        version=__version__,
        date=timestamp(clock),
        settings=tuple(settings.items()),
        seed=None if seed is None else int(seed),
        rows=observed.sample.rows,
        distinct_rows=observed.sample.n_rows,
        total_weight=observed.total_weight,
        weighted=given.get("sample_weight") is not None or observed.sample.is_distribution,
        table_hash=observed.table_hash,
    )


def timestamp(clock: Callable[[], float] = time.time) -> str:
    """The time of a clock in UTC, to the second; that of ``SOURCE_DATE_EPOCH`` where it is set.

    >>> timestamp(lambda: 0.0) if "SOURCE_DATE_EPOCH" not in os.environ else "1970-01-01T00:00:00Z"
    '1970-01-01T00:00:00Z'
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.fromtimestamp(clock() if fixed is None else int(fixed), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH is {fixed!r}; expected whole seconds since 1970. Correct it "
            "or unset it."
        ) from error
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the content of a file, as hexadecimal digits."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{os.fspath(path)!r} cannot be read ({reason}); give the path of a file.") from error


def _text(value: Any) -> str:
    """A parameter as text, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]}... ({len(text):,} characters)"


def _argument(value: Any) -> str:
    """An argument of ``fit``: a number or a word unchanged; for rows and labels only that they were given."""
    return repr(value) if isinstance(value, str | int | float) else "given"
