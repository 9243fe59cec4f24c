"""The datasets of the paper by name, from a folder or, with internet, from OpenML.

A folder is given as an argument or by the environment variable ``EXANOVA_DATA``. Datasets in no folder are downloaded
through scikit-learn and kept in the cache in the same form: in ``exanova`` inside ``$XDG_CACHE_HOME`` or ``~/.cache``.

Wherever rows come from, shape and hash are checked. The hash is that of the rows as text, sorted, so that a file may be
compressed anew and a table may come in another order; OpenML's columns are taken by position, and its cells are
written as in the original first. Rows that are only a part of an OpenML table (Poker Hand, MNIST) or that are split by
position (Dota2) must come in the original order to pass. Other files are refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.atomic_files import write_whole
from exanova.datasets import openml
from exanova.datasets.catalogue import CATALOGUE, Entry
from exanova.datasets.content import Content, Images, check, classes, parse, splits, table, unparse
from exanova.errors import DatasetError, InputError
from exanova.warned import warn

__all__ = ["Dataset", "load", "names"]

VARIABLE = "EXANOVA_DATA"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with the class of each row.

    Attributes:
        name: its name here.
        X: (n, d) inputs: text, as a pandas table if pandas is installed and as a NumPy array otherwise; the grey
            values of images always as an array of type uint8.
        y: (n,) classes, an array of text, or of digits.
        feature_names: names of the inputs.
        description: one line about it.
        source: who published it.
        origin: the file it was read from.
        split: (n,) "train" or "test" where the dataset says so, else ``None``.
    """

    name: str
    X: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    description: str
    source: str
    origin: str
    split: NDArray[np.str_] | None = field(default=None, repr=False)


def names() -> tuple[str, ...]:
    """The names :func:`load` knows.

    >>> names()[:3]
    ('car', 'nursery', 'mushroom')
    """
    return tuple(CATALOGUE)


def load(name: str, data: str | os.PathLike[str] | None = None) -> Dataset:
    """A dataset by name.

    Looked for in the folder ``data`` (by default the one that ``EXANOVA_DATA`` names), then in the cache, then on
    OpenML.

    Raises:
        InputError: for a name there is not.
        DatasetError: if it is in no folder and cannot be downloaded.
        FileFormatError: if what was found is not the dataset.
    """
    if name not in CATALOGUE:
        raise InputError(f"there is no dataset {name!r}; the datasets are {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    folder = data if data is not None else os.environ.get(VARIABLE)
    places = [Path(folder) / entry.file] if folder else []
    kept = cache() / entry.file
    path = next((place for place in (*places, kept) if place.is_file()), None)
    if path is None:
        path, content = kept, download(name, entry, kept, folder)
    else:
        content = parse(entry, path.read_bytes())
        check(entry, content, str(path))
    X, y, split = parts(entry, content)
    return Dataset(name, X, y, entry.features, entry.title, entry.source, str(path), split)


def parts(entry: Entry, content: Content) -> tuple[Any, NDArray[Any], NDArray[np.str_] | None]:
    """Inputs, classes, split."""
    if isinstance(content, Images):
        return content.pixels, content.digits, None
    y, split = (np.array(cells, dtype=str) for cells in (classes(content.lines), splits(content.lines)))
    return table(entry, content), y, None if entry.train is None else split


def cache() -> Path:
    """The folder of what was downloaded."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exanova"


def download(name: str, entry: Entry, kept: Path, folder: str | os.PathLike[str] | None) -> Content:
    """Download a dataset, check it and cache it; a file that fails the check is not cached."""
    try:
        inputs, labels = openml.fetch(entry.openml.number)
    except (OSError, ImportError, ValueError) as error:  # OpenML's own complaints are ValueErrors
        looked = f"not in {os.fspath(folder)}" if folder else f"{VARIABLE} is not set"
        raise DatasetError(
            f"the dataset {name!r} is not here: {looked}, {kept} does not exist, and OpenML (dataset "
            f"{entry.openml.number}) cannot be read ({error}). Put {entry.file} in a folder and name it by "
            f"load({name!r}, folder) or by {VARIABLE}, or try again with internet and pandas."
        ) from error
    content = openml.translated(entry, inputs, labels)
    check(entry, content, f"dataset {entry.openml.number} of OpenML")
    keep(kept, unparse(entry, content))
    return content


def keep(path: Path, body: bytes) -> None:
    """Write a file of the cache; where that cannot be done the download still counts."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, body)
    except OSError as error:
        warn(f"the download could not be kept in {path} and will be repeated ({error}).")
