"""Download of a dataset through scikit-learn, and its translation into the rows of the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.datasets.catalogue import Entry
from exanova.datasets.content import Content, Images, Text


def fetch(number: int) -> tuple[Any, Any]:
    """Inputs and class of an OpenML table, as pandas holds them."""
    from sklearn.datasets import fetch_openml

    # The checked and translated rows are kept by us; a second copy in scikit-learn's folder would be of no use.
    fetched = fetch_openml(data_id=number, as_frame=True, parser="pandas", cache=False)
    return fetched.data, fetched.target


def translated(entry: Entry, inputs: Any, labels: Any) -> Content:
    """What was downloaded, with cells written as in the original: columns go by position, names are ours."""
    first, last = entry.openml.rows or (0, len(inputs))
    inputs, labels = inputs.iloc[first:last], labels.iloc[first:last]
    if entry.is_images:
        return Images(inputs.to_numpy(dtype=np.uint8), labels.astype(int).to_numpy(dtype=np.uint8))
    columns = [as_text(inputs.iloc[:, k], entry.openml.values) for k in range(inputs.shape[1])]
    if entry.train is not None:
        columns.insert(0, np.where(np.arange(len(inputs)) < entry.train, "train", "test"))
    columns.append(as_text(labels, entry.openml.classes))
    return Text([",".join(row) for row in zip(*(column.tolist() for column in columns), strict=True)])


def as_text(column: Any, spelling: Mapping[str, str]) -> NDArray[np.str_]:
    """Cells as text: whole numbers without a point, quotes removed, a missing value as a question mark."""
    cells = column.astype(object).where(column.notna(), "?").astype(str).to_numpy(dtype=str)
    levels, codes = np.unique(cells, return_inverse=True)
    written = [str(level).strip("'\"").removesuffix(".0") for level in levels]
    return np.array([spelling.get(level, level) for level in written])[codes]
