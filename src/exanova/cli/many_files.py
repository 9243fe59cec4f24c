"""Commands on folders and patterns of files: read in blocks, explained in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exanova.cli.columns import Choice, check_columns, chosen_features, learned_kinds, typed
from exanova.cli.table_files import STDIN, ReadOptions, check_known
from exanova.cli.text import listed
from exanova.errors import FileWriteError, InputError
from exanova.packages import package
from exanova.progress import Progress
from exanova.sources.files import SUFFIXES, FilePart, TextOptions, file_part
from exanova.sources.finding import PATTERN, find_files
from exanova.sources.opening import open_source, with_kinds
from exanova.sources.parts import Source

TOGETHER = ("parquet", "feather", "csv", "tsv")
"""Formats that are read in blocks; the suffix of each file determines its format."""


STREAMED_BYTES = 2**28
"""Size of a single file from which it is read in blocks as well, and never loaded completely."""


def in_blocks(path: str, reading: ReadOptions) -> bool:
    """Whether rows are read in blocks: those of several files, or of one large file of a format that can be."""
    return is_many(path) or is_large(path, reading)


def is_large(path: str, reading: ReadOptions) -> bool:
    """Whether a path names one large file of a known suffix; columns made categorical are read completely."""
    if path == STDIN or not os.path.isfile(path) or os.path.getsize(path) < STREAMED_BYTES:
        return False
    known = SUFFIXES.get(os.path.splitext(path.lower().removesuffix(".gz"))[1])
    asked = {"feather": "arrow"}.get(reading.format or "", reading.format)
    return known is not None and asked in (None, known) and not reading.categories


def is_many(path: str) -> bool:
    """Whether a path names a folder, or files by a pattern.

    >>> is_many("data/*.parquet"), is_many("data.csv"), is_many("-")
    (True, False, False)
    """
    if path == STDIN or os.path.isfile(path):
        return False
    return os.path.isdir(path) or any(mark in path for mark in PATTERN)


def open_files(
    path: str,
    reading: ReadOptions,
    choice: Choice,
    wanted: Callable[[Sequence[str]], Sequence[str] | None] | None = None,
) -> Source:
    """The files, with the columns that have a role; ``wanted(names)`` says which features a model needs."""
    source = open_source(path, _options(reading))
    names = list(source.names)
    check_known("--text", reading.text, names)
    check_columns(_Named(names), choice.apart, repr(path))
    features = chosen_features(choice, names, repr(path), None if wanted is None else wanted(names))
    return replace(source, names=(*features, *choice.apart))


def fit_arguments(choice: Choice, model: Any) -> Mapping[str, Any]:
    """The arguments of ``fit`` for these roles of columns."""
    names = list(choice.prediction)
    given = model if model is not None else names[0] if len(names) == 1 else names
    drawn = {"clusters": choice.clusters, "strata": choice.strata}
    return {"model": given, "sample_weight": choice.weight, **drawn}


@dataclass(frozen=True)
class Explaining:
    """How the rows of files are explained.

    Attributes:
        data: the files.
        reading: how to read them.
        columns: columns to read besides the features.
        folder: where to write: a folder, or a file for the rows of a single one.
        force: whether files may be replaced.
    """

    data: str
    reading: ReadOptions
    columns: tuple[str, ...]
    folder: str
    force: bool

    def run(self, anova: Any, explain: Callable[[Any], tuple[Any, int]]) -> tuple[int, int]:
        """Write a file of Parquet for every file, one block at a time; for a single file, the one that is named.

        ``explain`` turns a block into a table of pyarrow and the number of rows outside the support. Returns the
        numbers of rows, and of rows outside the support.
        """
        files = [file_part(path, _options(self.reading)) for path in find_files(self.data)]
        targets = _targets(files, self.folder, self.force) if is_many(self.data) else [self._target()]
        kinds = learned_kinds(anova)
        wanted = list(dict.fromkeys([*map(str, anova.feature_names_in_), *self.columns]))
        for file in files:
            check_columns(_Named(file.schema().names), wanted, file.name)
        others = [name for name in self.columns if name not in anova.feature_names_in_]
        files = with_kinds(files, others, _options(self.reading))
        progress, rows, outside = Progress(), 0, 0
        progress.phase("explaining rows")
        try:
            for file, target in zip(files, targets, strict=True):
                with _whole_file(target) as write:
                    for block in file.blocks(wanted):
                        values, new = explain(typed(block, kinds, "as is", self.reading.decimal))
                        write(values)
                        rows, outside = rows + block.num_rows, outside + new
                        progress.step(block.num_rows)
        finally:
            progress.close()
        return rows, outside

    def _target(self) -> Path:
        """The file that the values of a single file go to."""
        target = Path(self.folder)
        if target.exists() and (not self.force or target.samefile(self.data)):
            raise InputError(f"{self.folder!r} already exists", remedy="give another file, or --force")
        return target


@contextmanager
def dask_client(address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, closed afterwards; ``None`` without an address."""
    if address is None:
        yield None
        return
    distributed = package("distributed")
    try:
        client = distributed.Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--dask {address!r} was given, but no scheduler answers there",
            expected="an address such as tcp://127.0.0.1:8786",
        ) from error
    with client:
        yield client


@dataclass(frozen=True)
class _Named:
    """Names of columns, as a table has them."""

    column_names: Sequence[str]


def _options(reading: ReadOptions) -> TextOptions:
    if reading.format not in (None, *TOGETHER):
        raise InputError(f"--format {reading.format} is not read in blocks", expected=listed(list(TOGETHER)))
    return TextOptions(reading.separator, reading.missing, reading.text, reading.decimal)


def _targets(files: Sequence[FilePart], folder: str, force: bool) -> list[Path]:
    """Where the values of each file go: an existing or new folder, one name per file."""
    place = Path(folder)
    stems = [Path(file.path).name.split(".")[0] for file in files]
    names = stems if len(set(stems)) == len(stems) else [f"{k:05d}" for k in range(len(stems))]
    targets = [place / f"{name}.parquet" for name in names]
    if {os.path.realpath(target.parent) for target in targets} & {
        os.path.realpath(Path(file.path).parent) for file in files
    }:
        raise InputError("--output is the folder of the data; give another one.")
    present = [str(target) for target in targets if target.exists()]
    if present and not force:
        raise InputError(f"{present[0]!r} already exists", remedy="give another folder, or --force")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileWriteError(f"--output {folder!r} is not a folder that can be written: {error.strerror}.") from error
    return targets


@contextmanager
def _whole_file(target: Path) -> Iterator[Callable[[Any], None]]:
    """Writes tables to a file of Parquet that appears under its name when it is complete."""
    parquet, partial = package("pyarrow.parquet"), target.with_suffix(".partial")
    writers: list[Any] = []

    def write(table: Any) -> None:
        if not writers:
            writers.append(parquet.ParquetWriter(partial, table.schema))
        writers[0].write_table(table)

    try:
        yield write
        if writers:
            writers[0].close()
            partial.replace(target)
    finally:
        for writer in writers:
            writer.close()
        partial.unlink(missing_ok=True)
