"""A hash of what was fitted: names, levels, distinct rows, weights and model values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.encoding import Encoding
from exanova.data.mapped import release
from exanova.data.recoding import blocks
from exanova.typing import Codes, FloatArray, IntArray


def fingerprint(encoding: Encoding, codes: Codes, group: IntArray, weight: NDArray[Any], values: FloatArray) -> str:
    """SHA-256 of a table and the outputs of its model, as hexadecimal digits.

    The same rows in the same order, with the same weights and outputs, have the same hash, from whichever library the
    table comes. Outputs are hashed as the model returned them, before anything is computed from them.

    Args:
        encoding: levels of every feature.
        codes: (d, r) levels of the distinct rows.
        group: (k,) distinct row of each output.
        weight: (k,) weight of each output.
        values: (k, m) outputs.

    >>> import numpy as np
    >>> encoding = Encoding.from_levels(["colour"], [["blue", "red"]])
    >>> given = (np.array([[0, 1]]), np.array([0, 1]), np.array([1, 2]), np.array([[0.5], [1.5]]))
    >>> fingerprint(encoding, *given)[:8]
    '89ede6f0'
    """
    digest = hashlib.sha256(json.dumps([encoding.names, encoding.labels]).encode("ascii"))
    arrays: list[tuple[NDArray[Any], str]] = [*((row, "<u4") for row in codes)]
    arrays += [(group, "<i8"), (weight, "<f8"), (values, "<f8")]
    for numbers, kind in arrays:
        for rows in blocks(len(numbers)):
            digest.update(np.ascontiguousarray(numbers[rows], dtype=kind).data)
        release(numbers)
    return digest.hexdigest()
