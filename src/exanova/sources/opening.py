"""Input in place of a table as a ``Source``: paths, patterns, folders, datasets, lazy frames, relations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from exanova.errors import InputError
from exanova.sources.engines import engine_source
from exanova.sources.files import TEXT_FORMATS, FilePart, TextOptions, file_part
from exanova.sources.finding import find_files
from exanova.sources.parts import Source
from exanova.sources.same_columns import check_columns, with_types
from exanova.sources.text_cells import CellEvidence


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
    assert opened is not None, "only sources are opened"
    return opened()


def _are_paths(X: Any) -> bool:
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(one, str | os.PathLike) for one in X)


def _open_files(X: Any, options: TextOptions) -> Source:
    files = [file_part(path, options) for path in find_files(X)]
    empty = [file.name for file in files if not file.stamp[0]]
    if empty:
        raise InputError(f"{', '.join(empty[:5])} is empty", remedy="Write the file again, or leave it out")
    files, schemas = with_types(files, [file.schema() for file in files])
    check_columns(files, schemas)
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
    by_column = dict.fromkeys(open_to, CellEvidence())
    for file in texts:
        own = file.evidence(open_to)
        by_column = {name: by_column[name].and_of(own[name]) for name in open_to}
    return tuple((name, evidence.kind) for name, evidence in by_column.items())
