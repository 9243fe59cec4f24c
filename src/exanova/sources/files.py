"""Files in blocks: Parquet, Arrow and CSV. Any problem with a file is one error that names it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exanova.errors import InputError
from exanova.packages import package
from exanova.sources import parts
from exanova.sources.not_utf8 import where_not_utf8
from exanova.sources.text_cells import CellEvidence, as_cells, dotted, evidence_of

SUFFIXES = {
    **{".parquet": "parquet", ".pq": "parquet"},
    **{".feather": "arrow", ".arrow": "arrow", ".ipc": "arrow"},
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv"},
}
"""The format of a file by its suffix; ``.gz`` may follow that of CSV."""

TEXT_FORMATS = ("csv", "tsv")

INDEX = re.compile(r"__index_level_\d+__")

CSV_BYTES = 2**25
"""Bytes of CSV that are parsed at once."""


@dataclass(frozen=True)
class TextOptions:
    """How the cells of CSV are read.

    Attributes:
        separator: between cells, or ``None`` for that of the format.
        missing: texts that are missing values, besides the empty one.
        text: columns that stay text; ``("all",)`` for every column.
        decimal: the decimal point of numbers.
    """

    separator: str | None = None
    missing: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    decimal: str = "."


@dataclass(frozen=True)
class FilePart:
    """One file.

    Attributes:
        path: where it is.
        format: ``"parquet"``, ``"arrow"``, ``"csv"`` or ``"tsv"``.
        stamp: size and time of the last change when it was first read: a file that changes is refused.
        options: how CSV is read.
        kinds: kinds of the columns of CSV, as pairs; empty before they are known.
        without_values: columns without a single value, and the Arrow types that they have in other files.
    """

    path: str
    format: str
    stamp: tuple[int, int]
    options: TextOptions = TextOptions()
    kinds: tuple[tuple[str, str], ...] = ()
    without_values: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The path, quoted."""
        return repr(self.path)

    def schema(self) -> Any:
        """Names and types of its columns; the types of CSV are those of its text."""
        with explained(self.path):
            schema = _READERS[self.format][0](self)
            kept = set(columns_of(schema.names))
            return package("pyarrow").schema([field for field in schema if field.name in kept])

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows, some at a time, with these columns."""
        self.check_unchanged()
        with explained(self.path):
            for block in _READERS[self.format][1](self, list(columns)):
                if block.num_rows:
                    block.validate(full=True)
                    yield self._typed(block)
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if the file has changed since it was first read."""
        if stamp_of(self.path) != self.stamp:
            raise InputError(
                f"{self.name} changed while it was read",
                remedy="Read a copy that nothing writes to, and fit again",
            )

    def evidence(self, columns: Sequence[str]) -> dict[str, CellEvidence]:
        """What the cells of CSV are, by column, from one pass over the file."""
        evidence = dict.fromkeys(columns, CellEvidence())
        for block in FilePart(self.path, self.format, self.stamp, self.options).blocks(columns):
            for name in columns:
                evidence[name] = evidence[name].and_of(evidence_of(dotted(block.column(name), self.options.decimal)))
        return evidence

    def _typed(self, block: Any) -> Any:
        for name, kind in self.without_values:
            if name in block.column_names:
                nulls = package("pyarrow").nulls(block.num_rows, kind)
                block = block.set_column(block.column_names.index(name), name, nulls)
        for name, kind in self.kinds:
            if name in block.column_names:
                column = as_cells(dotted(block.column(name), self.options.decimal), kind)
                if column is not None:
                    block = block.set_column(block.column_names.index(name), name, column)
        return block


def file_part(path: str, options: TextOptions) -> FilePart:
    """A file as a part; its suffix determines its format.

    >>> file_part("no such file.csv", TextOptions())
    Traceback (most recent call last):
    exanova.errors.InputError: 'no such file.csv' cannot be read: No such file or directory.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() != ".gz"]
    chosen = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if chosen is None:
        raise InputError(
            f"the format of {path!r} cannot be determined from its suffix",
            expected=", ".join(SUFFIXES),
            remedy="rename it, or give the files one by one",
        )
    return FilePart(path, chosen, stamp_of(path), options)


def stamp_of(path: str) -> tuple[int, int]:
    """Size and time of the last change of a file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    return status.st_size, status.st_mtime_ns


def columns_of(names: Sequence[str]) -> list[str]:
    """The columns of a file, without the index that pandas stores beside them.

    >>> columns_of(["a", "__index_level_0__"])
    ['a']
    """
    return [name for name in names if not INDEX.fullmatch(name)]


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn errors of the operating system and of pyarrow into one sentence that names the file."""
    try:
        yield
    except InputError:
        raise
    except (
        OSError,
        ValueError,
        NotImplementedError,
        KeyError,
        EOFError,
    ) as error:  # errors of pyarrow are of these kinds
        if "invalid utf" in str(error).lower() or isinstance(error, UnicodeDecodeError):
            raise InputError(
                f"{path!r} is not UTF-8 text: {_where_not_utf8(path)}", remedy="Convert it, for example from Latin-1"
            ) from error
        first = str(error).strip().splitlines()[0][:160].rstrip(".") if str(error).strip() else type(error).__name__
        raise InputError(
            f"{path!r} cannot be read: {first}",
            remedy="Copy or write the file again, or leave it out",
        ) from error


def _where_not_utf8(path: str) -> str:
    """Where the first byte of a file is that is not UTF-8."""
    with package("pyarrow").input_stream(path) as stream:  # decompresses by the suffix
        return where_not_utf8(stream) or "some of its cells"


def _parquet_schema(part: FilePart) -> Any:
    return package("pyarrow.parquet").read_schema(part.path)


def _parquet_blocks(part: FilePart, columns: list[str]) -> Iterator[Any]:
    arrow = package("pyarrow")
    with package("pyarrow.parquet").ParquetFile(part.path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(parts.BLOCK_ROWS, columns=columns, use_threads=False):
            yield arrow.Table.from_batches([batch]).select(columns)


def _arrow_schema(part: FilePart) -> Any:
    with package("pyarrow").OSFile(part.path) as handle:
        return _opened_arrow(handle).schema


def _arrow_blocks(part: FilePart, columns: list[str]) -> Iterator[Any]:
    arrow = package("pyarrow")
    with arrow.OSFile(part.path) as handle:
        reader = _opened_arrow(handle)
        count = getattr(reader, "num_record_batches", None)
        batches = reader if count is None else map(reader.get_batch, range(count))
        for batch in batches:
            whole = arrow.Table.from_batches([batch]).select(columns)
            for start in range(0, whole.num_rows, parts.BLOCK_ROWS):
                yield whole.slice(start, parts.BLOCK_ROWS)


def _opened_arrow(handle: Any) -> Any:
    """A reader of a file, or of a stream, of Arrow."""
    ipc = package("pyarrow.ipc")
    start = bytes(handle.read(6))
    handle.seek(0)
    return ipc.open_file(handle) if start == b"ARROW1" else ipc.open_stream(handle)


def _text_schema(part: FilePart) -> Any:
    with _opened_text(part, None) as reader:
        return reader.schema


def _text_blocks(part: FilePart, columns: list[str]) -> Iterator[Any]:
    arrow = package("pyarrow")
    with _opened_text(part, columns) as reader:
        for batch in reader:
            yield arrow.Table.from_batches([batch]).select(columns)


def _opened_text(part: FilePart, columns: list[str] | None) -> Any:
    """A reader of CSV with every cell as text; of all columns, or of some."""
    arrow, csv = package("pyarrow"), package("pyarrow.csv")
    separator = part.options.separator or {"csv": ",", "tsv": "\t"}[part.format]
    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    names = columns
    if names is None:
        with csv.open_csv(part.path, parse_options=parse, read_options=csv.ReadOptions(use_threads=False)) as reader:
            names = reader.schema.names
    convert = csv.ConvertOptions(
        column_types={name: arrow.string() for name in names},
        include_columns=names if columns is not None else [],
        null_values=["", *part.options.missing],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    read = csv.ReadOptions(use_threads=False, block_size=CSV_BYTES)
    return csv.open_csv(part.path, read_options=read, parse_options=parse, convert_options=convert)


_READERS: dict[str, tuple[Callable[[FilePart], Any], Callable[[FilePart, list[str]], Iterator[Any]]]] = {
    "parquet": (_parquet_schema, _parquet_blocks),
    "arrow": (_arrow_schema, _arrow_blocks),
    "csv": (_text_schema, _text_blocks),
    "tsv": (_text_schema, _text_blocks),
}
"""Of each format: how its schema is read, and its blocks."""
