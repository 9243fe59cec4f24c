"""Moments route: Gamma from the moments, elimination, and refinement with residuals taken from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from exanova import tolerances
from exanova.solve.elimination import Factor, Ties, factorise, null_links, solve
from exanova.solve.evidence import Solution
from exanova.typing import FloatArray

REFINEMENTS = 8

ProjectResidual = Callable[[FloatArray | None], FloatArray]
"""(q, m) coefficients (``None``: all zero) to the (q, m) projections of what they leave of the model values."""


def solve_moments(gamma: FloatArray, orders: Sequence[slice], project: ProjectResidual, ties: Ties) -> Solution:
    """Solve Gamma c = mu by elimination; ``project`` gives mu - Gamma c straight from the rows.

    Gamma is only a factor here: its rounding slows refinement down, it does not enter the answer.
    """
    factor = factorise(gamma, orders, ties)
    coefficients, residual, steps = refine(factor, project)
    kept = np.ones(len(gamma), dtype=bool)
    if ties == "first":
        for part in factor.orders:
            kept[part.pivots[part.rank :] + part.columns.start] = False
    return Solution(
        coefficients=coefficients,
        kept=kept,
        rank_by_order=tuple(part.rank for part in factor.orders),
        smallest_kept=min(part.smallest for part in factor.orders),
        largest_dropped=max(part.dropped for part in factor.orders),
        ties=null_links(factor),
        iterations=steps,
        residual=residual,
        method="elimination of the Gram matrix",
        converged=within_tolerance(residual, len(gamma)),
    )


def within_tolerance(residual: float, functions: int) -> bool:
    """Whether the normal equations are met to rounding."""
    return bool(residual <= tolerances.NORMAL_EQUATIONS * np.sqrt(functions))


def refine(factor: Factor, project: ProjectResidual, limit: int = REFINEMENTS) -> tuple[FloatArray, float, int]:
    """Solve, then solve for what is left, until nothing is gained: coefficients, residual, steps."""
    left = project(None)
    scale = max(float(np.abs(left).max(initial=0.0)), np.finfo(np.float64).tiny)
    coefficients, best = np.zeros_like(left), np.inf
    for step in range(limit):
        candidate = coefficients + solve(factor, left)
        left = project(candidate)
        residual = float(np.abs(left).max(initial=0.0)) / scale
        if residual >= best:
            return coefficients, best, step
        coefficients, gained, best = candidate, best / residual if residual else np.inf, residual
        if best <= tolerances.ITERATIVE or gained < 2 or (step and best <= tolerances.NORMAL_EQUATIONS):
            return coefficients, best, step + 1
    return coefficients, best, limit
