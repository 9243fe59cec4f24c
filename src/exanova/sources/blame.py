"""Which file an engine could not read, where the engine does not say.

An error of polars, Dask or Spark rarely names the file. The files that a lazy frame reads are then read here, one after
the other, until one of them cannot be read or has other columns than the first.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlparse

from exanova.errors import ExanovaError
from exanova.sources.files import TextOptions, file_part
from exanova.sources.finding import find_files
from exanova.sources.same_columns import check_columns


def file_error(paths: Sequence[str], columns: Sequence[str]) -> ExanovaError | None:
    """The error of the first of these files that cannot be read, or is unlike the first; ``None`` if there is none."""
    local = [path for path in map(_local, paths) if path is not None]
    if not local:
        return None
    try:
        files = [file_part(path, TextOptions()) for path in find_files(local)]
        schemas = [file.schema() for file in files]
        for file, schema in zip(files, schemas, strict=True):
            for _ in file.blocks([name for name in columns if name in schema.names]):
                pass
        check_columns(files, schemas)
    except ExanovaError as error:
        return error
    return None


def paths_of_polars(frame: Any) -> list[str]:
    """The paths and patterns that a lazy frame of polars reads; none where its plan cannot be inspected."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the form of a plan in JSON may change
            plan = json.loads(frame.serialize(format="json"))
    except Exception:
        return []
    return list(dict.fromkeys(_named_paths(plan)))


def paths_of_dask(frame: Any) -> list[str]:
    """The paths that a data frame of Dask reads; none where its expression cannot be inspected."""
    paths: list[str] = []
    try:
        for node in frame.expr.walk():
            given = getattr(node, "path", None) or getattr(node, "filename", None)
            paths += [given] if isinstance(given, str) else map(str, given or ())
    except Exception:
        return []
    return list(dict.fromkeys(paths))


def paths_of_spark(frame: Any) -> list[str]:
    """The files that a data frame of PySpark reads; none where it cannot tell."""
    try:
        return sorted(frame.inputFiles())
    except Exception:
        return []


def _named_paths(node: Any) -> Iterator[str]:
    """The entries of all lists called ``Paths`` in a plan."""
    if isinstance(node, dict):
        for name, inside in node.items():
            if name == "Paths" and isinstance(inside, list):
                yield from (one["inner"] if isinstance(one, dict) else one for one in inside)
            else:
                yield from _named_paths(inside)
    elif isinstance(node, list):
        for inside in node:
            yield from _named_paths(inside)


def _local(path: str) -> str | None:
    """A path of this machine; ``None`` for an address elsewhere.

    >>> _local("file:///data/a%20b.parquet"), _local("s3://data/a.parquet"), _local("a.parquet")
    ('/data/a b.parquet', None, 'a.parquet')
    """
    address = urlparse(path)
    if address.scheme == "file":
        return unquote(address.path)
    return None if "://" in path else path
