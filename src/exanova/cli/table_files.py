"""Tables on disk: CSV, TSV, JSON lines (gzip too), Parquet and Feather, read into memory with pyarrow.

Cells of CSV and TSV are read as text, empty ones as missing values; ``columns.py`` converts them. The other formats
have types.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exanova.cli.columns import Kind, typed
from exanova.cli.text import listed, one_line, visible
from exanova.data.arrow import as_categories
from exanova.errors import InputError
from exanova.packages import package
from exanova.sources.files import columns_of
from exanova.sources.not_utf8 import where_not_utf8

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
}
FORMATS = ("csv", "tsv", "jsonl", "parquet", "feather")
STDIN = "-"
GZIP = b"\x1f\x8b"
CONVERT = "convert it, for example by `iconv -f latin1 -t utf-8`"
"""What to do with a file in another encoding."""

OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class ReadOptions:
    """How tables are read.

    Attributes:
        format: one of ``FORMATS``, or ``None`` to use the suffix of the file.
        separator: field separator of CSV, or ``None`` for the default.
        missing: texts read as missing in CSV and TSV, in addition to the empty one.
        text: columns of CSV and TSV that stay text even if all cells are numbers; ``("all",)`` for every column.
        categories: columns that become categorical, as boosters with native categories expect them; ``("all",)`` for
            every column of text.
        decimal: the decimal point of numbers in CSV and TSV.
    """

    format: str | None = None
    separator: str | None = None
    missing: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    decimal: str = "."

    def words(self) -> list[str]:
        """The options to read the same file again.

        >>> ReadOptions(format="csv", missing=("?",)).words()
        ['--format', 'csv', '--missing', '?']
        """
        decimal = None if self.decimal == "." else self.decimal
        given = {"--format": self.format, "--separator": self.separator, "--decimal": decimal}
        options = [word for option, value in given.items() if value is not None for word in (option, value)]
        return options + [word for text in self.missing for word in ("--missing", text)]

    def __post_init__(self) -> None:
        if self.format not in (None, *FORMATS):
            raise InputError(f"--format {self.format!r} was given; expected one of {', '.join(FORMATS)}.")
        if self.separator is not None and len(self.separator) != 1:
            raise InputError(f"--separator {self.separator!r} was given; expected one character, such as ';'.")
        if self.decimal not in (".", ","):
            raise InputError(f"--decimal {self.decimal!r} was given; expected ',' or '.'.")


@dataclass(frozen=True)
class OpenedFile:
    """Bytes that can be read more than once.

    Attributes:
        name: the path as it was typed, or "standard input".
        open: makes a new pyarrow stream over the decompressed bytes.
        start: the first bytes, decompressed.
    """

    name: str
    open: Callable[[], Any]
    start: bytes


def read_table(path: str, reading: ReadOptions, kinds: Mapping[str, Kind] | None = None) -> Any:
    """The table in a file, or on standard input for ``-``, as a pyarrow table.

    Args:
        path: a path, or ``-``.
        reading: how to read it.
        kinds: kinds of columns that are already known.

    Raises:
        InputError: if it cannot be read; the message gives the reason in one sentence.
    """
    chosen = reading.format or _format_of(path)
    source = _source(path)
    with _explained(source.name, chosen, source.open):
        table = _read(source, chosen, reading)
        table.validate(full=True)
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise InputError(f"{source.name} has more than one column called {listed(repeated)}; rename or drop them.")
    table = table.select(columns_of(table.column_names))
    check_known("--text", reading.text, table.column_names)
    if not table.num_rows:
        raise InputError(f"{source.name} has {table.num_columns} columns and no rows.")
    return _with_categories(
        typed(table, *_kinds(table, chosen, reading, kinds or {}), reading.decimal), reading.categories
    )


def display_name(path: str) -> str:
    """A file in a message."""
    return "standard input" if path == STDIN else repr(path)


def check_known(option: str, names: tuple[str, ...], columns: Sequence[str]) -> None:
    """Refuse names of columns that a table does not have; ``all`` names every column."""
    unknown = [name for name in names if name not in columns and names != ("all",)]
    if unknown:
        raise InputError(f"{option} names {listed(unknown)}, but there is no such column in the table.")


def _with_categories(table: Any, names: tuple[str, ...]) -> Any:
    """The table with some columns, or all of text, as categories."""
    check_known("--categories", names, table.column_names)
    return as_categories(table, None if names == ("all",) else names) if names else table


def _kinds(table: Any, chosen: str, reading: ReadOptions, kinds: Mapping[str, Kind]) -> tuple[dict[str, Kind], Kind]:
    """The kinds that are known by column, and the kind of the other columns."""
    if chosen not in ("csv", "tsv"):
        return dict(kinds), "as is"
    if reading.text == ("all",) and "all" not in table.column_names:
        return dict(kinds), "text"
    return {**dict.fromkeys(reading.text, "text"), **kinds}, "any"


def _format_of(path: str) -> str:
    if path == STDIN:
        return "csv"
    name = Path(path)
    suffix = name.with_suffix("").suffix if name.suffix.lower() == ".gz" else name.suffix
    if suffix.lower() not in SUFFIXES:
        raise InputError(
            f"the format of {path!r} cannot be determined from its suffix (known: {', '.join(SUFFIXES)}, and .gz after "
            f"a text format); give --format {'|'.join(FORMATS)}."
        )
    return SUFFIXES[suffix.lower()]


def _source(path: str) -> OpenedFile:
    """The bytes of a file, of standard input or of a pipe; the last two are kept, since they can be read only once."""
    arrow = package("pyarrow")
    name = "standard input" if path == STDIN else repr(path)
    try:
        if path != STDIN and stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as handle:
                is_compressed = handle.read(2) == GZIP
            opened: tuple[Callable[..., Any], Any] = (arrow.OSFile, path)
        else:
            body = _all_of(path)
            is_compressed = body[:2] == GZIP
            opened = (arrow.BufferReader, body)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error

    def fresh() -> Any:
        stream = opened[0](opened[1])
        return arrow.CompressedInputStream(stream, "gzip") if is_compressed else stream

    with _explained(name, "gzip"):
        start = bytes(fresh().read(4))
    return OpenedFile(name, fresh, start)


def _all_of(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    with open(path, "rb") as handle:
        return handle.read()


def _read(source: OpenedFile, chosen: str, reading: ReadOptions) -> Any:
    if not source.start:
        raise InputError(f"{source.name} is empty.")
    if chosen == "parquet":
        return package("pyarrow.parquet").read_table(source.open())
    if chosen == "feather":
        return package("pyarrow.feather").read_table(source.open())
    encoding = next((e for mark, e in OTHER_ENCODINGS.items() if source.start.startswith(mark)), None)
    if encoding:
        raise InputError(f"{source.name} is {encoding}; save it as UTF-8.")
    return _read_json_lines(source) if chosen == "jsonl" else _read_delimited(source, chosen, reading)


def _read_delimited(source: OpenedFile, chosen: str, reading: ReadOptions) -> Any:
    arrow, csv = package("pyarrow"), package("pyarrow.csv")
    separator = reading.separator or {"csv": ",", "tsv": "\t"}[chosen]
    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    read = csv.ReadOptions(use_threads=False)  # otherwise errors do not name the row
    with csv.open_csv(source.open(), read_options=read, parse_options=parse) as stream:
        names = stream.schema.names
    _check_header(source.name, names, separator)
    convert = csv.ConvertOptions(
        column_types={name: arrow.string() for name in names},
        null_values=["", *reading.missing],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    return csv.read_csv(source.open(), read_options=read, parse_options=parse, convert_options=convert)


def _check_header(name: str, columns: list[str], separator: str) -> None:
    other = next((c for c in ";\t|," if c != separator and len(columns) == 1 and c in columns[0]), None)
    if other:
        raise InputError(
            f"the header of {name} is the single column {visible(columns[0])[:60]!r}; "
            f"if {visible(other)!r} is the field separator, add --separator '{visible(other)}'."
        )


def _read_json_lines(source: OpenedFile) -> Any:
    """One object per line; text that looks like a date stays text, as in CSV."""
    arrow, json = package("pyarrow"), package("pyarrow.json")
    table = json.read_json(source.open())
    dates = [field.name for field in table.schema if arrow.types.is_timestamp(field.type)]
    if dates:
        schema = arrow.schema([(name, arrow.string()) for name in dates])
        table = json.read_json(source.open(), parse_options=json.ParseOptions(explicit_schema=schema))
    return table


@contextmanager
def _explained(name: str, chosen: str, reopened: Callable[[], Any] | None = None) -> Iterator[None]:
    """Turn errors of pyarrow into one sentence; text that is not UTF-8 is looked for in the bytes."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text{_first_wrong(reopened)}; {CONVERT}.") from error
    except (OSError, ValueError, NotImplementedError, KeyError) as error:  # errors of pyarrow are of these kinds
        if re.search(r"invalid UTF-?8", str(error), re.IGNORECASE):
            raise InputError(f"{name} is not UTF-8 text{_first_wrong(reopened)}; {CONVERT}.") from error
        raise InputError(f"{name} cannot be read as {chosen}: {_reason(str(error))}") from error


def _first_wrong(reopened: Callable[[], Any] | None) -> str:
    """Where the first byte is that is not UTF-8, after a colon."""
    where = "" if reopened is None else where_not_utf8(reopened())
    return f": {where}" if where else ""


def _reason(message: str) -> str:
    """The message of pyarrow, without contents of the file."""
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if ragged:
        where = f"line {ragged[1]}" if ragged[1] else "a line"
        cells = "1 cell" if ragged[3] == "1" else f"{ragged[3]} cells"
        if ragged[2] == "1":
            return f"{where} has {cells}, but the header has 1; give the field separator, such as --separator ';'."
        return f"{where} has {cells}, but the header has {ragged[2]}; correct it, or quote cells with commas."
    if "Truncated" in message or "zlib" in message:
        return f"it is truncated or damaged ({one_line(message, 80)}); copy it again."
    return one_line(message, 160).rstrip(".") + "."
