"""Input in place of a table as a ``Source``: paths, patterns, folders, datasets, lazy frames, relations."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from exanova.errors import InputError
from exanova.packages import package
from exanova.sources.engines import engine_source
from exanova.sources.files import SUFFIXES, TEXT_FORMATS, FilePart, TextOptions, file_part
from exanova.sources.parts import Source
from exanova.sources.text_cells import CellEvidence

PATTERN = "*?["


def is_source(X: Any) -> bool:
    """Whether ``X`` is read in blocks: a path, a list of paths, a dataset, a lazy frame or a relation.

    >>> is_source("data/*.parquet"), is_source([[1, 2], [3, 4]])
    (True, False)
    """
    return _are_paths(X) or isinstance(X, Source) or engine_source(X) is not None


def open_source(X: Any, options: TextOptions | None = None) -> Source:
    """Open ``X`` as a source; raises if there is nothing to read, or if its parts do not fit together."""
    if isinstance(X, Source):
        return X
    if _are_paths(X):
        return _open_files(X, options or TextOptions())
    opened = engine_source(X)
    assert opened is not None, "asked of sources alone"
    return opened()


def find_files(X: Any) -> list[str]:
    """The files that a path, a pattern, a folder or a list of these names, in alphabetical order.

    >>> find_files("no/such/*.parquet")
    Traceback (most recent call last):
    exanova.errors.InputError: no file matches 'no/such/*.parquet'; check the pattern and the folder it starts in.
    """
    if isinstance(X, str | os.PathLike):
        return _of_one(os.fspath(X))
    found = [path for one in X for path in _of_one(os.fspath(one))]
    repeated = sorted({path for path in found if found.count(path) > 1}) if len(found) != len(set(found)) else []
    if repeated:
        raise InputError(f"{repeated[0]!r} is named more than once; its rows would count twice. Name every file once.")
    if not found:
        raise InputError("a list without a single path was given in place of a table", expected="paths of files")
    return found


def _are_paths(X: Any) -> bool:
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(one, str | os.PathLike) for one in X)


def _of_one(path: str) -> list[str]:
    if os.path.isdir(path):
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if _is_known(name) and not name.startswith((".", "_"))
        ]
        if not found:
            raise InputError(f"the folder {path!r} holds no file of a known format", expected=", ".join(SUFFIXES))
        return sorted(found)
    if not os.path.exists(path) and any(mark in path for mark in PATTERN):
        found = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
        if not found:
            raise InputError(f"no file matches {path!r}", remedy="check the pattern and the folder it starts in")
        return sorted(found)
    return [path]


def _is_known(name: str) -> bool:
    stem = name.lower().removesuffix(".gz")
    return os.path.splitext(stem)[1] in SUFFIXES


def _open_files(X: Any, options: TextOptions) -> Source:
    files = [file_part(path, options) for path in find_files(X)]
    empty = [file.name for file in files if not file.stamp[0]]
    if empty:
        raise InputError(f"{', '.join(empty[:5])} is empty", remedy="Write the file again, or leave it out")
    schemas = [file.schema() for file in files]
    _check_columns(files, schemas)
    names = tuple(schemas[0].names)
    files = with_kinds(files, names, options)
    label = repr(os.fspath(X)) if isinstance(X, str | os.PathLike) else f"the list of {len(files)} files"
    return Source(tuple(files), names, label)


def with_kinds(files: Sequence[FilePart], names: Sequence[str], options: TextOptions) -> list[FilePart]:
    """The files, those of CSV with the kinds of the columns ``names``, which a pass over their cells tells."""
    texts = [file for file in files if file.format in TEXT_FORMATS]
    kinds = _kinds_of_text(texts, names, options) if texts and names else ()
    return [replace(file, kinds=kinds) if file.format in TEXT_FORMATS else file for file in files]


def _kinds_of_text(
    texts: Sequence[FilePart], names: Sequence[str], options: TextOptions
) -> tuple[tuple[str, str], ...]:
    """The kind of every column of CSV, from the cells of all files."""
    everything = options.text == ("all",) and "all" not in names
    open_to = [] if everything else [name for name in names if name not in options.text]
    found = dict.fromkeys(open_to, CellEvidence())
    for file in texts:
        own = file.evidence(open_to)
        found = {name: found[name].and_of(own[name]) for name in open_to}
    return tuple((name, evidence.kind) for name, evidence in found.items())


def _check_columns(files: Sequence[FilePart], schemas: Sequence[Any]) -> None:
    """Raise if a file repeats a column, or has other columns or types than the first; every difference at once."""
    first = schemas[0]
    repeated = sorted({name for name in first.names if first.names.count(name) > 1})
    if repeated:
        raise InputError(
            f"{files[0].name} has more than one column called {', '.join(map(repr, repeated))}; rename or drop them."
        )
    wrong = [
        f"{file.name} {difference}"
        for file, schema in zip(files[1:], schemas[1:], strict=True)
        if (difference := _difference(first, schema))
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more files" if len(wrong) > 3 else ""
        raise InputError(
            f"the files do not have the same columns as {files[0].name}: {'; '.join(wrong[:3])}{more}",
            remedy="Give files with the same columns and types, or convert those that differ",
        )


def _difference(first: Any, other: Any) -> str:
    """What a schema has that the first has not, in words; empty if they are alike, in any order."""
    lacks = [name for name in first.names if name not in other.names]
    adds = [name for name in other.names if name not in first.names]
    if lacks or adds:
        said = [f"lacks {', '.join(map(repr, lacks))}"] * bool(lacks) + [f"adds {', '.join(map(repr, adds))}"] * bool(
            adds
        )
        return " and ".join(said)
    types = [
        f"{name!r} is {other.field(name).type} in place of {first.field(name).type}"
        for name in first.names
        if _type(first, name) != _type(other, name)
    ]
    return ", ".join(types)


def _type(schema: Any, name: str) -> Any:
    """The type of a column as far as its values go: the width of codes and the layout of text are ignored."""
    arrow = package("pyarrow")
    found = schema.field(name).type
    if arrow.types.is_dictionary(found):
        return "categories", str(found.value_type).replace("large_", ""), found.ordered
    return arrow.string() if found in (arrow.large_string(), arrow.string_view()) else found
