"""Joining neighbouring bins: the smallest first until each has enough weight, or at least loss until there are few."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.typing import FloatArray, IntArray


def run_of_each(alone: NDArray[np.bool_]) -> list[int]:
    """Starts of the longest runs in which no value stands alone, and of the values that do.

    >>> run_of_each(np.array([False, False, True, True, False]))
    [0, 2, 3, 4]
    """
    new = np.ones(len(alone), dtype=bool)
    new[1:] = alone[1:] | alone[:-1]
    starts: list[int] = np.flatnonzero(new).tolist()
    return starts


def join_lightest(starts: IntArray, weight: NDArray[Any], most: int, least: float) -> IntArray:
    """Starts of bins after joining the smallest with its smaller neighbour until all are large and few enough.

    Args:
        starts: (b,) first value of each bin.
        weight: (k,) weights of the values.
        most: largest number of bins.
        least: smallest weight of a bin.

    >>> join_lightest(np.array([0, 1, 2, 3]), np.array([5, 1, 2, 9]), most=4, least=2).tolist()
    [0, 1, 3]
    """
    kept = starts.tolist()
    totals = np.add.reduceat(weight, starts).tolist()
    while len(kept) > 1:
        k = min(range(len(kept)), key=totals.__getitem__)
        if totals[k] >= least and len(kept) <= most:
            break
        below = k > 0 and (k == len(kept) - 1 or totals[k - 1] <= totals[k + 1])
        upper = k if below else k + 1
        totals[upper - 1] += totals.pop(upper)
        kept.pop(upper)
    return np.array(kept, dtype=np.int64)


def room_around(starts: IntArray, weight: NDArray[Any], share: float) -> tuple[IntArray, IntArray]:
    """How far each cut between bins may move, in values: by no more than a share of the weight of either bin.

    Args:
        starts: (b,) first value of each bin.
        weight: (k,) weights of the values.
        share: part of a bin that may change sides, less than a half.

    Returns:
        low: (b - 1,) the last value that stays below each cut.
        high: (b - 1,) the first value that stays above it.

    >>> low, high = room_around(np.array([0, 10]), np.ones(20), share=0.2)
    >>> low.tolist(), high.tolist()
    ([7], [12])
    """
    reached = np.concatenate([[0], np.cumsum(weight)])
    totals = np.add.reduceat(weight, starts)
    room = np.minimum(totals[1:], totals[:-1]) * share
    cuts = reached[starts[1:]]
    low = np.searchsorted(reached, cuts - room, side="left") - 1
    high = np.searchsorted(reached, cuts + room, side="right") - 1
    return low.astype(np.int64), high.astype(np.int64)


def join_nearest(place: FloatArray, weight: FloatArray, most: int) -> IntArray:
    """Starts (b,) of at most ``most`` bins of neighbours, joined pair by pair at the least loss.

    The loss of joining two bins is the increase of the variance of ``place`` within bins (Ward's criterion).

    Args:
        place: (k,) where each value stands, increasing.
        weight: (k,) weights of the values.
        most: largest number of bins.

    >>> join_nearest(np.array([0.0, 0.1, 5.0, 5.2]), np.ones(4), most=2).tolist()
    [0, 2]
    """
    bins = _Neighbours(place, weight)
    while bins.count > most:
        bins.join_cheapest()
    return np.flatnonzero(bins.weight >= 0)


class _Neighbours:
    """A sequence of bins, and a heap with the loss of joining each with the next."""

    def __init__(self, place: FloatArray, weight: FloatArray) -> None:
        self.count = len(place)
        self.mean, self.weight = place.copy(), weight.copy()
        self.after = np.arange(1, len(place) + 1)
        self.before = np.arange(-1, len(place) - 1)
        self.version = np.zeros(len(place), dtype=np.int64)
        self.heap: list[tuple[float, int, int, int, int]] = []
        for k in range(len(place) - 1):
            self._price(k)

    def join_cheapest(self) -> None:
        """Join the two neighbours whose union loses least."""
        while True:
            _, a, b, version_a, version_b = heapq.heappop(self.heap)
            if (self.version[a], self.version[b]) == (version_a, version_b):
                break
        total = self.weight[a] + self.weight[b]
        self.mean[a] += (self.mean[b] - self.mean[a]) * (self.weight[b] / total)
        self.weight[a], self.weight[b] = total, -1.0
        self.version[[a, b]] += 1  # losses of either that remain in the heap are out of date
        self.after[a] = self.after[b]
        if self.after[a] < len(self.mean):
            self.before[self.after[a]] = a
            self._price(a)
        if self.before[a] >= 0:
            self._price(int(self.before[a]))
        self.count -= 1

    def _price(self, a: int) -> None:
        b = int(self.after[a])
        w, v = self.weight[a], self.weight[b]
        loss = float(w * v / (w + v) * (self.mean[b] - self.mean[a]) ** 2)
        heapq.heappush(self.heap, (loss, a, b, int(self.version[a]), int(self.version[b])))
