"""Places between the levels of a column of numbers, and beyond them, for numbers that were never observed.

Numbers are in order. A gap between two neighbouring levels is divided into equal steps of about the smallest gap of the
column, and a number that falls into it takes the nearest place inside: whole numbers that were never observed have
their own. All numbers below the first level share one place, and so do all above the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exanova.typing import FloatArray, IntArray

MOST_STEPS = 15
"""Places in one gap at most: a finer position changes little."""

MOST_PLACES = 200
"""Places of a column from which every gap has one alone, in its middle."""

FEWEST_LEVELS = 3
"""Numbers from which a column has an order: two may just as well be names."""


@dataclass(frozen=True, eq=False)
class Between:
    """The V places of a column with N levels that are numbers; the code of a place is N' + its number (N' >= N levels).

    Attributes:
        edges: (V - 1,) numbers at which a place ends, ascending; an edge belongs to the place above it.
        lower, upper: (V,) codes of the levels around each place; the same one beyond the ends.
        share: (V,) how far it is from the lower to the upper, from 0 to 1.
        labels: (V,) what it is called.
    """

    edges: FloatArray
    lower: IntArray
    upper: IntArray
    share: FloatArray
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.lower)

    def find(self, numbers: FloatArray) -> IntArray:
        """(n,) the place of each of (n,) numbers, none of which is a level."""
        return np.searchsorted(self.edges, numbers, side="right")


def between(levels: Sequence[float], labels: Sequence[str]) -> Between | None:
    """The places of ascending levels; ``None`` where these are too few or not in order.

    >>> places = between([2, 4, 5], ["2", "4", "5"])
    >>> places.labels, places.share.tolist()
    (('below 2', 'between 2 and 4', 'between 4 and 5', 'above 5'), [0.0, 0.5, 0.5, 0.0])
    >>> places.find(np.array([1.0, 3.0, 4.5, 9.0])).tolist()
    [0, 1, 2, 3]
    """
    place = np.array(levels, dtype=np.float64)
    gaps = np.diff(place)
    if len(place) < FEWEST_LEVELS or not np.isfinite(place).all() or not (gaps > 0).all():
        return None
    steps = _steps(gaps)
    first = np.repeat(np.arange(len(gaps)), steps)
    inside = np.arange(len(first)) - np.repeat(np.cumsum(steps) - steps, steps)
    share = (inside + 1.0) / (steps[first] + 1.0)
    start = place[first] + np.where(inside > 0, (inside + 0.5) / (steps[first] + 1.0), 0.0) * gaps[first]
    last = len(place) - 1
    names = [f"between {labels[k]} and {labels[k + 1]}" for k in first.tolist()]
    return Between(
        np.append(start, place[-1]),
        np.concatenate([[0], first, [last]]),
        np.concatenate([[0], first + 1, [last]]),
        np.concatenate([[0.0], share, [0.0]]),
        (f"below {labels[0]}", *names, f"above {labels[last]}"),
    )


def _steps(gaps: FloatArray) -> IntArray:
    """(N - 1,) how many places each gap has."""
    with np.errstate(over="ignore"):  # a ratio too large for a number is cut like any other
        ratios = np.minimum(gaps / gaps.min(), MOST_STEPS + 1)
    steps = np.clip(np.rint(ratios) - 1, 1, MOST_STEPS).astype(np.int64)
    return steps if steps.sum() <= MOST_PLACES else np.ones(len(gaps), dtype=np.int64)
