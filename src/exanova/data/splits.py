"""The splits of a tree model by column: the smallest number that goes to the upper side of each.

Models compare with ``<`` or ``<=``, in float32 or float64; both are converted to one number per split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exanova.messages import Parameter, Part
from exanova.typing import FloatArray, IntArray

INSTEAD: tuple[Part, ...] = ("use ", Parameter("strategy", "quantile"))
"""What to do where thresholds cannot be read."""

LARGEST = 1e38
"""Thresholds beyond this stand for infinity."""


@dataclass(frozen=True, eq=False)
class ColumnSplits:
    """The splits of one column: a value goes to the upper side from ``edge`` on.

    Attributes:
        edge: (s,) the smallest number that goes to the upper side.
        strength: (s,) gain of the split, in any unit.
    """

    edge: FloatArray
    strength: FloatArray


@dataclass
class ModelSplits:
    """The splits of a model by column, while trees are read and after.

    Attributes:
        splits: edges and strengths of the splits of each column.
        unreadable: columns that the model does not split as numbers, with the reason.
    """

    splits: dict[str, list[tuple[FloatArray, FloatArray]]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, column: str | None, edge: FloatArray, strength: FloatArray) -> None:
        """Add splits of a column; ``None`` is a feature that a pipeline derived."""
        if column is not None and len(edge):
            self.splits.setdefault(column, []).append((edge, strength))

    def of(self, column: str) -> ColumnSplits:
        """The splits of a column that is not ``unreadable``, none if the model does not read it."""
        parts = self.splits.get(column, [])
        empty = np.empty(0)
        edge, strength = (np.concatenate([empty, *(part[k] for part in parts)]) for k in (0, 1))
        return ColumnSplits(edge, strength)


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
