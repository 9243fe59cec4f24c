"""The file format of a decomposition: arrays and JSON, with version and checksum, written atomically.

Layout, all integers little-endian:

    8 bytes   magic
    4 bytes   version of the format
    8 bytes   length of the header
    header    JSON: the document, and for every array its name, dtype, shape and position
    arrays    raw bytes, one after the other, each aligned to a multiple of 8
    32 bytes  SHA-256 of everything before

Arrays are not compressed, every length is checked against the size of the file before reading, and no two arrays share
bytes: a file cannot make its reader allocate more than its own size. Nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_path
from exanova.atomic_files import write_whole
from exanova.errors import FileFormatError

MAGIC = b"EXANOVA\n"
VERSION = 2
"""Version of the format: 1 for files of exanova 0.1, 2 for files of 0.2. It increases in the first release that writes
something earlier releases cannot read. All earlier versions can be read."""

HEAD = struct.Struct("<8sIQ")
DIGEST = 32
DTYPES = ("<f8", "<i8", "<i4", "|u1")


def write(path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the file of a decomposition; after a crash either the old or the new file exists.

    Raises:
        FileWriteError: if the file cannot be written.
    """
    write_whole(path, encode(document, arrays))


def encode(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a file."""
    places, parts, at = [], [], 0
    for name, array in arrays.items():
        stored = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if stored.dtype.str not in DTYPES:
            raise FileFormatError(f"array {name!r} of dtype {stored.dtype} cannot be stored.")
        places.append({"name": name, "dtype": stored.dtype.str, "shape": list(array.shape), "at": at})
        padding = -stored.nbytes % 8
        parts.append(stored.tobytes() + bytes(padding))
        at += stored.nbytes + padding
    header = json.dumps({"document": document, "arrays": places}, default=_plain).encode("ascii")
    header += b" " * (-(HEAD.size + len(header)) % 8)
    body = HEAD.pack(MAGIC, VERSION, len(header)) + header + b"".join(parts)
    return body + hashlib.sha256(body).digest()


def _plain(value: Any) -> Any:
    """Convert parameter values that JSON does not support: NumPy numbers, and mappings other than dictionaries."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def read(path: str | os.PathLike[str], noun: str = "decomposition") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays of a file; ``noun`` is what it should hold, for error messages.

    Raises:
        FileFormatError: if it is not a file of this format, is truncated, was altered, or is of a later version.
    """
    check_path(path)
    try:
        with open(path, "rb") as handle:
            body = handle.read(len(MAGIC))
            if body == MAGIC:  # otherwise it is not one of our files and need not be read completely
                body += handle.read()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise FileFormatError(
            f"{os.fspath(path)!r} cannot be read ({getattr(error, 'strerror', None) or error}); "
            f"give the path of a saved {noun}."
        ) from error
    return decode(body, os.fspath(path), noun)


def decode(
    body: bytes, name: str = "the file", noun: str = "decomposition"
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays in the bytes of a file."""
    if not body.startswith(MAGIC):
        raise FileFormatError(f"{name!r} is not a {noun} saved by exanova.")
    if len(body) < HEAD.size + DIGEST:
        raise FileFormatError(f"{name!r} is truncated: {len(body)} bytes; save it again.")
    _, version, length = HEAD.unpack_from(body)
    if hashlib.sha256(body[:-DIGEST]).digest() != body[-DIGEST:]:
        raise FileFormatError(f"{name!r} is truncated or was altered: its checksum does not match; save it again.")
    if not 1 <= version <= VERSION:
        raise FileFormatError(
            f"{name!r} has version {version} of the format, this exanova reads 1 to {VERSION}; update exanova."
        )
    if HEAD.size + length > len(body) - DIGEST:
        raise FileFormatError(f"{name!r} has a header longer than the file.")
    try:
        header = json.loads(body[HEAD.size : HEAD.size + length])
        arrays, at = {}, HEAD.size + length
        for entry in header["arrays"]:
            arrays[str(entry["name"])], at = _array(body, HEAD.size + length, at, entry)
        document = header["document"]
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise FileFormatError(f"{name!r} has a header that cannot be read: {error}") from error
    return document, arrays


def _array(body: bytes, start: int, at: int, entry: Mapping[str, Any]) -> tuple[NDArray[Any], int]:
    """A copy of one array of the file, which begins at ``at`` or later, and the position where it ends."""
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"unknown dtype {entry['dtype']!r}")
    dtype, shape, place = np.dtype(entry["dtype"]), entry["shape"], entry["at"]
    if not all(type(n) is int and 0 <= n <= len(body) for n in (*shape, place)):
        raise ValueError(f"array {entry['name']!r} has an impossible shape or position")
    first, count = start + place, prod(shape)
    end = first + count * dtype.itemsize
    if first < at or end > len(body) - DIGEST:
        raise ValueError(f"array {entry['name']!r} extends beyond its part of the file")
    return np.frombuffer(body, dtype=dtype, count=count, offset=first).reshape(shape).copy(), end
