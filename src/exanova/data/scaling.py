"""The unit of each output: what is decomposed is (f - mean) / unit, so that only what varies is measured.

A model of mean 1e12 that varies by 1, or one that varies by 1e-100, has to be decomposed to the same number of digits
as any other. Each output is centred near its weighted mean and divided by a power of two just above its largest
deviation. Both steps are undone on the effects. Dividing by a power of two is exact. The centre is rounded to a few
binary digits of the unit, so that subtracting it is exact for whole numbers and for numbers of nearly its own size,
and so that it does not depend on the order in which rows are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.recoding import blocks
from exanova.errors import InputError
from exanova.typing import FloatArray

CENTRE_STEPS = 16
"""Steps per unit that the centre is rounded to."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the values of a model were normalised: f = centre + unit * normalised.

    Attributes:
        centre: (m,) a round number near the weighted mean of each output.
        unit: (m,) powers of two; 1 for an output that does not vary.
    """

    centre: FloatArray
    unit: FloatArray

    def normalised(self, values: FloatArray) -> FloatArray:
        """(.., m) model values, centred and divided by their unit; zero for an output that does not vary."""
        varies = self.unit > 0
        return np.asarray((values - self.centre) * (varies / np.where(varies, self.unit, 1.0)))

    def effects(self, normalised: FloatArray) -> FloatArray:
        """(cells, m) effects in units of the model; the first cell is the intercept, which takes the centre back."""
        out = normalised * self.unit
        out[0] += self.centre
        return np.asarray(out)


def find_scaling(values: FloatArray, weight: NDArray[Any]) -> Scaling:
    """The scaling of (n, m) model values on rows of weight (n,).

    An output whose values differ by no more than the rounding of its mean counts as constant; its unit is 0.

    >>> scaling = find_scaling(np.array([[1e12], [1e12 + 3.0]]), np.array([1, 1]))
    >>> scaling.centre.tolist(), scaling.unit.tolist(), scaling.normalised(np.array([[1e12]])).tolist()
    ([1000000000001.5], [2.0], [[-0.75]])
    """
    total = float(weight.sum())
    low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
    if not len(values):
        low = high = np.zeros(values.shape[1])
    return scaling_between(low, high, lambda base: base + _sum_around(values, weight, base) / total)


def _sum_around(values: FloatArray, weight: NDArray[Any], base: FloatArray) -> FloatArray:
    """(m,) weighted sum of (n, m) values less ``base``, block by block of rows."""
    out = np.zeros(values.shape[1])
    for rows in blocks(len(values)):
        out += weight[rows].astype(np.float64) @ (values[rows] - base)
    return out


def scaling_between(low: FloatArray, high: FloatArray, mean_around: Callable[[FloatArray], FloatArray]) -> Scaling:
    """The scaling of outputs between ``low`` and ``high`` (m,).

    ``mean_around(base)`` is their weighted mean (m,), found from the deviations from ``base``. It is called twice: the
    first result has lost the digits below its own rounding. Sums of whole numbers are exact both times, and so do not
    depend on the order of the rows.
    """
    _check_magnitude(low, high)
    centre = mean_around(np.zeros(len(low)))
    centre = mean_around(_rounded(centre, *_unit(centre, low, high)))
    varies, unit = _unit(centre, low, high)
    spread = np.maximum(high - centre, centre - low)
    too_small = varies & (spread < tolerances.SMALLEST_MODEL)
    if too_small.any():
        raise InputError(
            f"The model varies by {spread[too_small].max():.1e}; the squares of such numbers vanish. "
            f"Multiply its outputs so that they vary by at least {tolerances.SMALLEST_MODEL:.0e}."
        )
    return Scaling(_rounded(centre, varies, unit), np.where(varies, unit, 0.0))


def _unit(centre: FloatArray, low: FloatArray, high: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which outputs vary, and the power of two just above their largest deviation; 1 for the others."""
    spread = np.maximum(high - centre, centre - low)
    varies = spread > tolerances.EPS * np.abs(centre)
    return varies, np.exp2(np.ceil(np.log2(np.where(varies, spread, 1.0))))


def _rounded(centre: FloatArray, varies: NDArray[np.bool_], unit: FloatArray) -> FloatArray:
    return np.where(varies, np.rint(centre / unit * CENTRE_STEPS) / CENTRE_STEPS * unit, centre)


def _check_magnitude(low: FloatArray, high: FloatArray) -> None:
    """Refuse model values whose squares cannot be added up."""
    largest = float(np.maximum(np.abs(low), np.abs(high)).max(initial=0.0))
    if largest > tolerances.LARGEST_MODEL:
        raise InputError(
            f"The model has outputs as large as {largest:.1e}; the squares of such numbers overflow. "
            f"Divide its outputs so that they stay below {tolerances.LARGEST_MODEL:.0e}."
        )
