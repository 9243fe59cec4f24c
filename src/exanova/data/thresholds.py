"""Bins of a numeric column between the thresholds of a tree model.

Between two neighbouring thresholds such a model does not change, so that a cut at all of them loses nothing. Only
thresholds with rows on both sides count. Where they are too many, neighbours are joined at the least loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.data.intervals import round_between
from exanova.data.levels import shortest
from exanova.data.segments import join_nearest
from exanova.data.splits import ColumnSplits
from exanova.typing import FloatArray, IntArray

ROUNDING = 5e-7
"""An edge may be this far from its threshold, relatively, to be shorter to write; never past the value of a row."""


def cut_at_thresholds(values: FloatArray, weight: FloatArray, splits: ColumnSplits, most: int) -> tuple[float, ...]:
    """Edges (b + 1,) of at most ``most`` bins of sorted distinct values (k,), with weights (k,), at the thresholds.

    Bins without values do not exist. All splits between the same two values are one.

    >>> splits = ColumnSplits(np.array([1.5, 1.7, 8.0]), np.ones(3))
    >>> cut_at_thresholds(np.array([1.0, 2.0, 3.1]), np.ones(3), splits, 8)
    (1.0, 1.5, 3.1)
    """
    place = np.searchsorted(values, splits.edge, side="left")
    inside = (place > 0) & (place < len(values))
    starts, first = np.unique(place[inside], return_index=True)
    edge = splits.edge[inside][first]
    if len(starts) >= most:
        summed: Any = np.bincount(place[inside], weights=splits.strength[inside], minlength=len(values))
        kept = _strongest(starts, summed[starts], weight, most)
        starts, edge = starts[kept], edge[kept]
    whole = bool((values == np.floor(values)).all())
    inner = [_edge(values, int(p), float(e), whole) for p, e in zip(starts, edge, strict=True)]
    return (float(values[0]), *inner, float(values[-1]))


def _strongest(starts: IntArray, strength: FloatArray, weight: FloatArray, most: int) -> IntArray:
    """Which of the cuts (c,) to keep for ``most`` bins: neighbours between which the model differs least are joined.

    The position of a bin is the sum of the square roots of the strengths below it: strength is a variance, its root a
    distance.
    """
    floor = float(strength.max()) * np.finfo(np.float64).eps
    place = np.concatenate([[0.0], np.cumsum(np.sqrt(np.maximum(strength, floor)))])
    rows = np.add.reduceat(weight, np.concatenate([[0], starts]))
    return join_nearest(place, rows, most)[1:] - 1


def _edge(values: FloatArray, place: int, edge: float, whole: bool) -> float:
    """An edge with few digits, next to the threshold, between the same two values."""
    low, high = float(values[place - 1]), float(values[place])
    if whole:
        return float(np.ceil(edge))
    room = ROUNDING * abs(edge)
    if not room:
        return edge
    # Between both values as they are and as they are written, if they are of single precision.
    lowest, highest = max(low, shortest(low), edge - room), min(high, shortest(high), edge + room)
    return round_between(lowest, highest) if lowest < highest else high
