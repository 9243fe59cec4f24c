"""The fit on rows that come in blocks: the sums that ``measure_fit`` needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exanova.effects.certificate import FitErrors, measure_fit
from exanova.typing import FloatArray


@dataclass
class FitSums:
    """Weight, mean, squared deviations and squared errors of the rows so far.

    >>> sums = FitSums()
    >>> for half in np.array([[[0.0], [1.0]], [[2.0], [3.0]]]):
    ...     sums.add(half, half, np.ones(2))
    >>> sums.fit().r2.tolist()
    [1.0]
    """

    weight: float = 0.0
    mean: FloatArray | float = 0.0
    apart: FloatArray | float = 0.0
    errors: FloatArray | float = 0.0
    largest: FloatArray | float = 0.0

    def add(self, values: FloatArray, fitted: FloatArray, weight: FloatArray) -> None:
        """Add rows with values and fitted parts (n, m) and weights (n,)."""
        own = float(weight.sum())
        mean = (weight @ values) / own
        total = self.weight + own
        shift = mean - self.mean
        self.apart = self.apart + weight @ (values - mean) ** 2 + shift**2 * (self.weight * own / total)
        self.mean = self.mean + shift * (own / total)
        self.errors = self.errors + weight @ (values - fitted) ** 2
        self.largest = np.maximum(self.largest, np.abs(values - fitted).max(axis=0))
        self.weight = total

    def fit(self) -> FitErrors:
        """The result of ``measure_fit`` for all rows, from two rows with the same mean, variance and error."""
        spread = np.sqrt(np.asarray(self.apart) / self.weight)
        values = np.stack([self.mean - spread, self.mean + spread])
        error = np.sqrt(np.asarray(self.errors) / self.weight)
        measured = measure_fit(values, values - error, np.full(2, 0.5))
        return replace(measured, largest=np.asarray(self.largest))
