"""``Knowledge``: what is known about the uncertainty of effects. Standard errors and zero effects provide it."""

from __future__ import annotations

from typing import Protocol

from exanova.typing import FloatArray


class Knowledge(Protocol):
    """The uncertainty of the effects, subset by subset; computed on first use."""

    @property
    def cheap(self) -> bool:
        """Whether standard errors are known or cheap to compute."""

    @property
    def lonely(self) -> str:
        """Why a stratum has too few units for standard errors, in words; empty where all have enough."""

    def stderr_of(self, s: int) -> FloatArray:
        """(c, m) standard errors."""

    def reach_of(self, s: int, level: float) -> FloatArray | float:
        """(c, 1) half-width of an interval of each cell, in standard errors, or one for all."""

    def covariance_of(self, s: int) -> FloatArray:
        """(m, c, c) covariances of the values."""

    def critical_of(self, s: int, level: float) -> FloatArray:
        """(c, m) or (m,) half-width of a simultaneous band over all cells, in standard errors."""

    def rows_of(self, s: int) -> FloatArray:
        """(c,) rows in each cell."""

    def identified(self, s: int) -> bool | None:
        """Whether the rows determine the effect."""

    def has_stderr(self, s: int) -> bool:
        """Whether the effect has standard errors."""

    def certain_of(self, s: int) -> FloatArray:
        """(m,) norm of the part that no other subset can express."""

    def means_of(self, s: int) -> FloatArray:
        """(c, m) mean of the model at each level of a main effect; NaN where it is not known."""
