"""What a solve returns beside its coefficients: rank, conditioning, redundancy, iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Solution:
    """Coefficients of the functions and what was found on the way.

    Attributes:
        coefficients: (q, m), zero for functions that were not kept.
        kept: (q,) bool, under ``ties="first"`` the functions selected; all True under ``ties="share"``.
        rank_by_order: rank added by each order, the intercept being order 0.
        smallest_kept: smallest squared direction that counted as new (1 when all are orthogonal).
        largest_dropped: largest squared direction taken for rounding (0 when nothing was dropped).
        null: (q, k) a basis of the linear dependences among the functions on the rows; no columns where there are none,
            or where they were not determined.
        independent: where dependences outnumber the rank, in place of them: (q, rank) an orthonormal basis of what is
            orthogonal to all of them.
        iterations: refinement steps or conjugate gradient iterations.
        residual: size of the normal equations' residual, relative to the projections.
        method: how the system was solved, in a word or two.
        converged: whether the residual met its tolerance.
        rank_known: whether the rank was determined; otherwise functions are counted.
    """

    coefficients: FloatArray
    kept: NDArray[np.bool_]
    rank_by_order: tuple[int, ...]
    smallest_kept: float
    largest_dropped: float
    null: FloatArray
    iterations: int
    residual: float
    method: str
    converged: bool = True
    rank_known: bool = True
    independent: FloatArray | None = None

    @property
    def rank(self) -> int:
        """Dimension of the fitted space, the intercept included."""
        return sum(self.rank_by_order)


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """What a shrunken fit found out beside its effects, in normalised units.

    Attributes:
        described: the variance components and how they were found, in words; why nothing was shrunk, where so.
        effective: for each order from 1 on, the functions that the rows determine, averaged over the outputs.
        left_out: (N, m) residuals of distinct rows in the fit without them.
        left_out_rows: (N,) numbers of these rows: all, or some drawn at random.
        left_out_mse: (m,) mean square of such residuals over all rows, estimated where not all were left out.
        left_out_stderr: (m,) standard error of that estimate; 0 where all were.
        posterior: the posterior, from which the variance of any linear statistic can be had.
    """

    described: str
    effective: tuple[float, ...] = ()
    left_out: FloatArray | None = None
    left_out_rows: IntArray | None = None
    left_out_mse: FloatArray | None = None
    left_out_stderr: FloatArray | None = None
    posterior: Any = None
