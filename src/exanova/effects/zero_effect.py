"""What is known of an effect that is zero: one of its features has a single level."""

from __future__ import annotations

import numpy as np

from exanova.typing import FloatArray


class Zero:
    """What is known of an effect that is zero because one of its features has a single level."""

    cheap, lonely = True, ""

    def __init__(self, cells: int, outputs: int) -> None:
        self._shape = (cells, outputs)

    def stderr_of(self, s: int) -> FloatArray:
        """(c, m) zeros."""
        return np.zeros(self._shape)

    def reach_of(self, s: int, level: float) -> FloatArray | float:
        """Zero."""
        return 0.0

    def covariance_of(self, s: int) -> FloatArray:
        """(m, c, c) zeros."""
        return np.zeros((self._shape[1], self._shape[0], self._shape[0]))

    def critical_of(self, s: int, level: float) -> FloatArray:
        """(m,) zeros."""
        return np.zeros(self._shape[1])

    def rows_of(self, s: int) -> FloatArray:
        """(c,) not known."""
        return np.full(self._shape[0], np.nan)

    def identified(self, s: int) -> bool | None:
        """It is."""
        return True

    def has_stderr(self, s: int) -> bool:
        """It has."""
        return True

    def certain_of(self, s: int) -> FloatArray:
        """(m,) zeros."""
        return np.zeros(self._shape[1])

    def means_of(self, s: int) -> FloatArray:
        """(c, m) not known."""
        return np.full(self._shape, np.nan)
