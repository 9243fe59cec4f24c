"""What a solve returns: effects on cells, and beside them rank, conditioning, redundancy, iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova.basis.tables import Basis
from exanova.design.family import Family
from exanova.solve.plan import Plan
from exanova.typing import FloatArray, Subset


@dataclass(frozen=True)
class Solution:
    """Coefficients of the functions and what was found on the way.

    Attributes:
        coefficients: (q, m), zero for functions that were not kept.
        kept: (q,) bool, under ``ties="first"`` the functions selected; all True under ``ties="share"``.
        rank_by_order: rank added by each order, the intercept being order 0.
        smallest_kept: smallest squared direction that counted as new (1 when all are orthogonal); where conjugate
            gradients solve for the higher orders, among those that were eliminated.
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
        left_out: (r, m) residual of every distinct row in the fit without it.
        variance: (cells, m) posterior variance of every effect in every cell.
        least_squares: (m,) mean squared residual of a least-squares fit of the same functions.
    """

    described: str
    effective: tuple[float, ...] = ()
    left_out: FloatArray | None = None
    variance: FloatArray | None = None
    least_squares: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Solved:
    """Every effect at every cell, with the evidence of the solve: what each route and each selection returns.

    Attributes:
        index: the family and its cells.
        values: (cells, m) effects.
        plan: what was planned.
        solution: evidence; its coefficients belong to ``basis``.
        basis: the functions used, ``None`` on the grid route, where they are implicit.
        saturated: whether the family spans every function on the support.
        shrinkage: what shrinking found out, where it was asked for.
    """

    index: Family
    values: FloatArray
    plan: Plan
    solution: Solution
    basis: Basis | None
    saturated: bool
    shrinkage: Shrinkage | None = None

    def selected(self) -> list[tuple[Subset, tuple[int, ...]]] | None:
        """(A, z) of the paper's functions that were kept, in order; ``None`` for functions without a z."""
        if self.basis is None or self.basis.labels is None:
            return None
        kept = self.solution.kept
        return [
            (subset, tuple(z))
            for s, subset in enumerate(self.index.subsets)
            for z, taken in zip(self.basis.labels[s].tolist(), kept[self.basis.functions_of(s)], strict=True)
            if taken
        ]
