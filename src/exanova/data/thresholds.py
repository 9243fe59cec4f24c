"""Where a model of trees splits a column of numbers, and the cut of the column at those thresholds.

Between two neighbouring thresholds such a model does not change, so that a cut at all of them loses nothing. Only
thresholds with rows on both sides count. Where they are too many, neighbours are joined at the least loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exanova.data.intervals import round_between
from exanova.data.segments import join_nearest
from exanova.errors import InputError
from exanova.typing import FloatArray, IntArray

ROUNDING = 5e-7
"""An edge may be this far from its threshold, relatively, to be shorter to write; never past the value of a row."""

LARGEST = 1e38
"""Thresholds beyond this stand for infinity."""


@dataclass(frozen=True, eq=False)
class ColumnSplits:
    """The splits of one column: a value goes to the upper side from ``edge`` on.

    Attributes:
        edge: (s,) the smallest number that goes to the upper side.
        strength: (s,) what the split explains, in any unit.
    """

    edge: FloatArray
    strength: FloatArray


@dataclass
class ModelSplits:
    """The splits of a model by column, while trees are read and after.

    Attributes:
        found: edges and strengths of the splits of each column.
        unreadable: columns that the model does not split as numbers, with the reason.
    """

    found: dict[str, list[tuple[FloatArray, FloatArray]]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, column: str | None, edge: FloatArray, strength: FloatArray) -> None:
        """Take in splits of a column; ``None`` is a feature that a pipeline made."""
        if column is not None and len(edge):
            self.found.setdefault(column, []).append((edge, strength))

    def of(self, column: str) -> ColumnSplits:
        """The splits of a column, none if the model does not read it; raises if they cannot be told."""
        if column in self.unreadable:
            raise InputError(
                f"strategy='model' cannot tell where the model splits column {column!r}: {self.unreadable[column]}. "
                f"Use strategy='quantile', or keep its values as levels with n_bins={{{column!r}: None}}."
            )
        parts = self.found.get(column, [])
        empty = np.empty(0)
        edge, strength = (np.concatenate([empty, *(part[k] for part in parts)]) for k in (0, 1))
        return ColumnSplits(edge, strength)


def read_splits(model: Any, names: Sequence[str]) -> ModelSplits:
    """The splits of a model on the columns ``names`` of a table.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit(np.array([[0.0], [1.0], [9.0]]), [0, 0, 1])
    >>> read_splits(tree, ["age"]).of("age").edge.round(5).tolist()
    [5.0]
    """
    from exanova.data.trees import read_trees

    return read_trees(model, names)


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


def edges_of(threshold: FloatArray, *, closed: bool, single: bool) -> FloatArray:
    """The smallest float64 (s,) that goes to the upper side of each threshold.

    Args:
        threshold: (s,) thresholds of a model.
        closed: whether the threshold itself goes to the lower side (``<=``), or to the upper one (``<``).
        single: whether the model rounds values to float32 before it compares them.

    >>> edges_of(np.array([2.0]), closed=False, single=False).tolist()
    [2.0]
    """
    if not single:
        return np.nextafter(threshold, np.inf) if closed else threshold
    near = threshold.astype(np.float32)
    if closed:
        low = np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
        high = np.nextafter(low, np.float32(np.inf))
    else:
        high = np.where(near < threshold, np.nextafter(near, np.float32(np.inf)), near)
        low = np.nextafter(high, np.float32(-np.inf))
    # Numbers between two neighbours are rounded to the nearer one, and the middle to the one whose last bit is even.
    middle: FloatArray = (low.astype(np.float64) + high.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) == high, middle, np.nextafter(middle, np.inf))


def collect(
    splits: ModelSplits,
    names: Sequence[str | None],
    feature: IntArray,
    threshold: FloatArray,
    strength: FloatArray,
    **comparison: bool,
) -> None:
    """Take in the splits (s,) of many nodes at once, ``feature`` being positions in ``names``."""
    usable = np.isfinite(threshold) & (np.abs(threshold) < LARGEST)
    edge = edges_of(threshold[usable], **comparison)
    feature, strength = feature[usable], strength[usable]
    for position in np.unique(feature).tolist():
        own = feature == position
        splits.add(names[position], edge[own], strength[own])


def _strongest(starts: IntArray, strength: FloatArray, weight: FloatArray, most: int) -> IntArray:
    """Which of the cuts (c,) to keep for ``most`` bins: neighbours that the model tells apart least are joined.

    A bin stands where the square roots of the strengths below it add up to: strength is variance, its root a distance.
    """
    floor = float(strength.max()) * np.finfo(np.float64).eps
    place = np.concatenate([[0.0], np.cumsum(np.sqrt(np.maximum(strength, floor)))])
    rows = np.add.reduceat(weight, np.concatenate([[0], starts]))
    return join_nearest(place, rows, most)[1:] - 1


def _edge(values: FloatArray, place: int, edge: float, whole: bool) -> float:
    """An edge that can be quoted, next to the threshold, between the same two values."""
    low, high = float(values[place - 1]), float(values[place])
    if whole:
        return float(np.ceil(edge))
    room = ROUNDING * abs(edge)
    return round_between(max(low, edge - room), min(high, edge + room)) if room else edge
