"""Confidence intervals of values that are read at rows."""

from __future__ import annotations

from exanova.argument_checks import check_level
from exanova.errors import InputError
from exanova.infer.bands import student
from exanova.typing import FloatArray


def value_intervals(
    values: FloatArray, stderr: FloatArray | None, freedom: FloatArray | None, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of ``values`` with their standard errors and degrees of freedom, of the same shape.

    >>> import numpy as np
    >>> low, high = value_intervals(np.array([1.0]), np.array([0.5]), np.array([10.0]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.114], [2.114])
    """
    check_level(level)
    if stderr is None or freedom is None:
        raise InputError("these values have no standard errors; compute them with stderr=True.")
    half = student(float(level), freedom) * stderr
    return values - half, values + half
