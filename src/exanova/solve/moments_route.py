"""Moments route: Gamma from the moments, elimination, and refinement with residuals taken from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.basis.functions import Basis, on_cells, on_functions
from exanova.data.sample import Sample
from exanova.parallel import suitable_blas
from exanova.phi.operator import Phi
from exanova.solve.elimination import Factor, Ties, dependences, factorise, solve
from exanova.solve.evidence import AtRows, Solution
from exanova.typing import FloatArray

REFINEMENTS = 8

ProjectResidual = Callable[[FloatArray | None], FloatArray]
"""From (q, m) coefficients (``None``: all zero) to the (q, m) projections of their residual."""


@dataclass(eq=False)
class Projections:
    """Projections of the residual of given coefficients, computed from the rows; the best pass is kept.

    Attributes:
        phi: the operator between cells and rows.
        basis: the functions.
        sample: the rows with their values.
        sums: (cells, m) sums of the weighted values.
        ridge: a penalty on squared coefficients, except the intercept's.
        kept: (q,) functions that are solved for, if not all: the best pass is the one with the smallest projections on
            these.
    """

    phi: Phi
    basis: Basis
    sample: Sample
    sums: FloatArray
    ridge: float = 0.0
    kept: NDArray[np.bool_] | None = None
    _best: tuple[float, FloatArray, AtRows] | None = field(default=None, init=False)

    def __call__(self, coefficients: FloatArray | None) -> FloatArray:
        """(q, m) projections of the residual of ``coefficients`` (of the model values themselves for ``None``)."""
        family, basis = self.phi.family, self.basis
        if coefficients is None:
            return on_functions(family, basis, self.sums)
        effects, fitted = on_cells(family, basis, coefficients), np.empty_like(self.sample.values)
        sums = self.phi.analyse_residual(effects, fitted)
        out = on_functions(family, basis, sums)
        out[1:] -= self.ridge * coefficients[1:]
        size = float(np.abs(out if self.kept is None else out[self.kept]).max(initial=0.0))
        if self._best is None or size < self._best[0]:
            self._best = size, coefficients, AtRows(effects, fitted, self.sums, sums)
        return out

    def at_rows(self, coefficients: FloatArray) -> AtRows | None:
        """What the pass for ``coefficients``, the same array, found; ``None`` if it was not kept."""
        return self._best[2] if self._best is not None and self._best[1] is coefficients else None


def solve_moments(gamma: FloatArray, orders: Sequence[slice], project: ProjectResidual, ties: Ties) -> Solution:
    """Solve Gamma c = mu by elimination; ``project`` computes mu - Gamma c from the rows.

    Gamma only preconditions the refinement: its rounding errors slow convergence but do not affect the result.
    """
    with suitable_blas(float(len(gamma)) ** 3 / 3):
        factor = factorise(gamma, orders, ties)
        coefficients, residual, steps = refine(factor, project)
        null, independent = dependences(factor)
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
        null=null,
        independent=independent,
        iterations=steps,
        residual=residual,
        method="elimination of the Gram matrix",
        converged=within_tolerance(residual, len(gamma)),
    )


def solve_kept(
    gamma: FloatArray, orders: Sequence[slice], project: ProjectResidual, kept: NDArray[np.bool_]
) -> Solution:
    """Solve for functions already known to be independent; the others get no coefficient.

    Inside each order these functions are eliminated with pivoting, which is more accurate for small directions.
    """
    numbers = np.flatnonzero(kept)
    before = np.concatenate([[0], np.cumsum(kept)])
    inner = [slice(int(before[part.start]), int(before[part.stop])) for part in orders]
    factor = factorise(np.asfortranarray(gamma[np.ix_(numbers, numbers)]), inner, "share", tolerance=0.0)

    passed: list[tuple[FloatArray, FloatArray]] = []

    def project_kept(coefficients: FloatArray | None) -> FloatArray:
        if coefficients is None:
            return project(None)[numbers]
        passed.append((coefficients, everything(coefficients)))
        return project(passed[-1][1])[numbers]

    def everything(coefficients: FloatArray) -> FloatArray:
        out = np.zeros((len(kept), coefficients.shape[1]))
        out[numbers] = coefficients
        return out

    reduced, residual, steps = refine(factor, project_kept)
    # The very array that was passed over the rows, so that what the pass found is known to be of these coefficients.
    coefficients = next((whole for own, whole in passed if own is reduced), None)
    coefficients = everything(reduced) if coefficients is None else coefficients
    return Solution(
        coefficients=coefficients,
        kept=kept,
        rank_by_order=tuple(part.stop - part.start for part in inner),
        smallest_kept=min(part.smallest for part in factor.orders),
        largest_dropped=0.0,
        null=_null_of_dropped(factor, gamma, kept),
        iterations=steps,
        residual=residual,
        method="exact selection modulo primes, elimination of the Gram matrix",
        converged=within_tolerance(residual, len(numbers)) and all(p.rank == len(p.pivots) for p in factor.orders),
    )


def _null_of_dropped(factor: Factor, gamma: FloatArray, kept: NDArray[np.bool_]) -> FloatArray:
    """(q, k) each function that was not kept, as a combination of kept ones."""
    numbers, others = np.flatnonzero(kept), np.flatnonzero(~kept)
    null = np.zeros((len(kept), len(others)))
    if len(others):
        null[others, np.arange(len(others))] = 1.0
        null[numbers] = -solve(factor, gamma[np.ix_(numbers, others)])
    return null


def within_tolerance(residual: float, functions: int) -> bool:
    """Whether the normal equations hold up to rounding."""
    return bool(residual <= tolerances.NORMAL_EQUATIONS * np.sqrt(functions))


def refine(factor: Factor, project: ProjectResidual, limit: int = REFINEMENTS) -> tuple[FloatArray, float, int]:
    """Solve, then solve for the residual until it stops decreasing: coefficients, residual, steps."""
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
