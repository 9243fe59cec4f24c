"""Files the command writes: checked before the work begins, written whole at its end, never over another unasked."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exanova.cli.libraries import library
from exanova.errors import ExanovaError, FileWriteError, InputError
from exanova.files import write_whole

STDOUT = "-"
TABLES = (".csv", ".tsv", ".parquet", ".feather")


@dataclass(frozen=True)
class Target:
    """A file to be written.

    Attributes:
        option: the option that asked for it.
        path: where.
        suffixes: what its name may end in; empty if that does not matter.
    """

    option: str
    path: str
    suffixes: tuple[str, ...] = ()


class Targets:
    """All files of one run."""

    def __init__(self, targets: Iterable[Target], inputs: Sequence[str | None], force: bool) -> None:
        self._targets = tuple(targets)
        self._force = force
        self._done: list[str] = []
        self._check_apart([path for path in inputs if path is not None])
        for target in self._targets:
            _check_suffix(target)
            self._check_place(target)
            _check_writable(target)

    def write(self, option: str, write: Callable[[str], None]) -> None:
        """Let ``write`` make the file of an option, if it was asked for; what is done is told if this fails."""
        target = next((t for t in self._targets if t.option == option), None)
        if target is None:
            return
        try:
            self._check_place(target)
            write(target.path)
        except ExanovaError as error:
            done = f" Written before that: {', '.join(map(repr, self._done))}." if self._done else ""
            raise FileWriteError(f"{option}: {error}{done}") from error
        self._done.append(target.path)

    def _check_apart(self, inputs: Sequence[str]) -> None:
        """No file is read and written in one run, nor written twice."""
        seen = {_identity(path): f"{path!r} is read" for path in inputs}
        for target in self._targets:
            identity = _identity(target.path)
            if identity in seen:
                raise InputError(
                    f"{target.option} {target.path!r} cannot be written: {seen[identity]} in the same run."
                )
            seen[identity] = f"{target.option.removeprefix('--')} is written there"

    def _check_place(self, target: Target) -> None:
        path = Path(target.path)
        if path.is_dir():
            raise FileWriteError(f"{target.option} {target.path!r} is a folder; give the name of a file.")
        if not os.path.lexists(path):
            return
        if not self._force:
            raise FileWriteError(f"{target.option} {target.path!r} exists; add --force to replace it.")
        if path.exists() and not path.is_file():
            raise FileWriteError(f"{target.option} {target.path!r} is a device or a pipe; give the name of a file.")


def write_table(path: str, table: Any) -> None:
    """Write a pyarrow table in the format that the suffix tells, or as CSV to standard output for ``-``."""
    body = _encoded(table, Path(path).suffix.lower() if path != STDOUT else ".csv")
    if path == STDOUT:
        emit(body)
    else:
        write_whole(path, body)


def emit(body: bytes) -> None:
    """Write all of ``body`` to standard output, which may be without a buffer and then takes it piece by piece."""
    sys.stdout.flush()
    left = memoryview(body)
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def _encoded(table: Any, suffix: str) -> bytes:
    sink = io.BytesIO()
    if suffix == ".parquet":
        library("pyarrow.parquet").write_table(table, sink)
    elif suffix == ".feather":
        library("pyarrow.feather").write_feather(table, sink)
    else:
        csv = library("pyarrow.csv")
        csv.write_csv(table, sink, csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
    return sink.getvalue()


def _check_suffix(target: Target) -> None:
    if target.suffixes and Path(target.path).suffix.lower() not in target.suffixes:
        raise InputError(f"{target.option} {target.path!r} has to end in {', '.join(target.suffixes)}.")


def _check_writable(target: Target) -> None:
    """Make a file without a name beside the target, which fails where the target would."""
    folder = Path(target.path).parent
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".exanova-"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileWriteError(
            f"{target.option} {target.path!r} cannot be written: {str(folder)!r}: {reason}."
        ) from error


def _identity(path: str) -> str:
    return os.path.realpath(path)
