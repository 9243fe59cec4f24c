"""Files of moments and of levels: the format of a decomposition, with its checksum; levels as plain JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.apart.moments import Moments, every_cell, identity
from exanova.argument_checks import check_path
from exanova.atomic_files import write_whole
from exanova.data.encoding import Encoding
from exanova.effects import storage
from exanova.errors import FileFormatError
from exanova.phi.margins import margins_of

KIND = "moments"
LEVELS = "exanova levels 1"
"""First entry of a file of levels: what it is, and the version of its format."""


def save_moments(moments: Moments, path: str | os.PathLike[str]) -> None:
    """Write moments to a file with a checksum; it holds no rows."""
    document = {
        "kind": KIND,
        "encoding": moments.encoding.to_json(),
        "max_order": moments.max_order,
        "outputs": list(moments.outputs),
        "single": moments.single,
        "rows": moments.rows,
        "shards": list(moments.shards),
        "min_count": moments.min_count,
    }
    arrays = {name: getattr(moments, name) for name in ("counts", "sums", "squares", "centre")}
    storage.write(path, document, arrays)


def load_moments(path: str | os.PathLike[str]) -> Moments:
    """Read moments; a file that was altered or truncated, or holds something else, is refused."""
    document, arrays = storage.read(path, "file of moments")
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise FileFormatError(f"{os.fspath(path)!r} holds a decomposition, not moments; load it, or show it.")
    try:
        moments = Moments(
            encoding=Encoding.from_json(document["encoding"]),
            max_order=int(document["max_order"]),
            outputs=tuple(map(str, document["outputs"])),
            single=bool(document["single"]),
            rows=int(document["rows"]),
            shards=tuple(map(str, document["shards"])),
            min_count=int(document["min_count"]),
            **arrays,
        )
        _check(moments)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileFormatError(
            f"{os.fspath(path)!r} does not contain whole moments ({error}); collect them again."
        ) from error
    return moments


def is_moments(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a file of moments (or of anything else that exanova stores)."""
    try:
        with open(path, "rb") as handle:
            return handle.read(len(storage.MAGIC)) == storage.MAGIC
    except (OSError, ValueError):
        return False


def save_levels(levels: Encoding, path: str | os.PathLike[str]) -> None:
    """Write levels to a JSON file that sites agree on; it holds the levels of every column and nothing else."""
    document = {"format": LEVELS, **levels.to_json()}
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode("ascii"))


def load_levels(path: str | os.PathLike[str]) -> Encoding:
    """Read a file of levels."""
    check_path(path)
    try:
        with open(path, encoding="utf-8") as handle:
            document: Any = json.load(handle)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(
            f"{os.fspath(path)!r} cannot be read as levels ({reason}); write it with `exanova levels`."
        ) from error
    if not isinstance(document, Mapping) or document.get("format") != LEVELS:
        raise FileFormatError(f"{os.fspath(path)!r} is not a file of levels; write it with `exanova levels`.")
    return Encoding.from_json(dict(document))


def _check(moments: Moments) -> None:
    """Raise if the arrays do not belong to the levels, or hold impossible numbers."""
    if (
        moments.max_order not in (1, 2)
        or moments.rows < 1
        or not moments.shards
        or len(set(moments.shards)) != len(moments.shards)
    ):
        raise ValueError("its order, rows or shards are impossible")
    cells, m = every_cell(moments.sizes, moments.max_order), len(moments.outputs)
    margins = margins_of(cells)
    counts = max(1, 0 if margins is None else margins.n_cells)
    shapes: dict[str, tuple[NDArray[Any], tuple[int, ...]]] = {
        "counts": (moments.counts, (counts,)),
        "sums": (moments.sums, (cells.n_keys, m)),
        "squares": (moments.squares, (m,)),
        "centre": (moments.centre, (m,)),
    }
    wrong = [name for name, (array, shape) in shapes.items() if array.shape != shape or not np.isfinite(array).all()]
    if wrong or moments.counts.min(initial=0) < 0:
        raise ValueError(f"the array {(wrong or ['counts'])[0]!r} does not fit its levels")
    if len(moments.shards) == 1 and moments.shards[0] != identity(moments):
        raise ValueError("its numbers are not those of its shard")
