"""The content of a dataset file: reading, checks of shape and hash, writing in the same form."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.datasets.catalogue import Entry
from exanova.errors import FileFormatError


@dataclass(frozen=True)
class Text:
    """Rows of text in the order of the file: split, if there is one, inputs and class, joined by commas."""

    lines: list[str]


@dataclass(frozen=True)
class Images:
    """(n, pixels) grey values and (n,) digits, both of type uint8."""

    pixels: NDArray[np.uint8]
    digits: NDArray[np.uint8]


Content = Text | Images


def parse(entry: Entry, body: bytes) -> Content:
    """The content of a file.

    Raises:
        FileFormatError: if it is not a file of this kind, or its columns are not those of the dataset.
    """
    try:
        return _parse_images(body) if entry.is_images else _parse_text(entry, gzip.decompress(body))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"{entry.file} is not the expected file ({error}); replace it with the original."
        ) from error


def _parse_images(body: bytes) -> Images:
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    return Images(images.reshape(len(images), -1), labels)


def _parse_text(entry: Entry, body: bytes) -> Text:
    header, *lines = body.decode("utf-8").removesuffix("\n").split("\n")
    if tuple(header.split(",")) != entry.header:
        raise ValueError(f"its columns begin with {header[:60]!r}, not with {','.join(entry.header)[:60]!r}")
    return Text(lines)


def unparse(entry: Entry, content: Content) -> bytes:
    """The file of a content, as :func:`parse` reads it."""
    if isinstance(content, Images):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, images=content.pixels.reshape(-1, 28, 28), labels=content.digits)
        return buffer.getvalue()
    text = "\n".join([",".join(entry.header), *content.lines]) + "\n"
    return gzip.compress(text.encode("utf-8"), mtime=0)


def check(entry: Entry, content: Content, origin: str) -> None:
    """Refuse a content that is not the dataset, saying in what it differs.

    Raises:
        FileFormatError: if the shape, the number of classes or the hash is another.
    """
    actual, expected = shape(entry, content), (*entry.shape, entry.classes)
    if actual != expected:
        raise FileFormatError(
            f"{origin} has {actual[0]:,} rows, {actual[1]:,} inputs and {actual[2]} classes; expected {expected[0]:,}, "
            f"{expected[1]:,} and {expected[2]}. {REMEDY}"
        )
    if (computed := digest(content)) != entry.digest:
        raise FileFormatError(
            f"{origin} has the right shape but other rows: their sha256 is {computed}, expected {entry.digest}. "
            f"{REMEDY}"
        )


REMEDY = "Get the original from the source of the dataset, or remove the file to have it downloaded."


def shape(entry: Entry, content: Content) -> tuple[int, int, int]:
    """Rows, inputs (of the row that has most) and distinct classes."""
    if isinstance(content, Images):
        return (*content.pixels.shape, len(np.unique(content.digits)))
    beside = len(entry.header) - len(entry.features)
    widest = max((line.count(",") + 1 for line in content.lines), default=beside)
    return len(content.lines), widest - beside, len(set(classes(content.lines)))


def classes(lines: list[str]) -> list[str]:
    """The class of each row."""
    return [line.rpartition(",")[2] for line in lines]


def splits(lines: list[str]) -> list[str]:
    """The split of each row, in a dataset that has one."""
    return [line.partition(",")[0] for line in lines]


def digest(content: Content) -> str:
    """sha256 of the rows in sorted order, so that neither compression nor the order of the rows matters.

    A row of text is its line; a row of an image is its pixels and its digit, one byte each.

    >>> digest(Text(["a,b,0", "c,d,1"])) == digest(Text(["c,d,1", "a,b,0"]))
    True
    """
    if isinstance(content, Images):
        rows = np.ascontiguousarray(np.column_stack([content.pixels, content.digits]))
        return hashlib.sha256(np.sort(rows.view(f"V{rows.shape[1]}").ravel()).tobytes()).hexdigest()
    return hashlib.sha256("\n".join(sorted(content.lines)).encode("utf-8")).hexdigest()


def table(entry: Entry, content: Text) -> Any:
    """The inputs as text: a pandas table if there is pandas, else a NumPy array. Fields hold no commas or quotes."""
    try:
        import pandas as pd
    except ImportError:
        cells = [line.split(",") for line in content.lines]
        columns = [entry.header.index(name) for name in entry.features]
        return np.array(cells)[:, columns]
    text = io.StringIO("\n".join([",".join(entry.header), *content.lines]))
    return pd.read_csv(text, dtype=str, keep_default_na=False)[list(entry.features)]
