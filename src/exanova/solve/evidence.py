"""What a solve returns: effects on cells, with rank, conditioning, redundancy and iterations as evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import Basis
from exanova.design.continuation import Continuation, Everywhere, everywhere
from exanova.design.family import Family
from exanova.solve.plan import Plan
from exanova.typing import FloatArray, IntArray, Subset

KEPT_GRAM = 1000
"""Functions up to which the whole Gram matrix is kept after the solve, in 8 MB: rows are left out with it."""


@dataclass(frozen=True)
class Solution:
    """Coefficients of the functions and the evidence of the solve.

    Attributes:
        coefficients: (q, m), zero for functions that were not kept.
        kept: (q,) bool, under ``ties="first"`` the functions selected; all True under ``ties="share"``.
        rank_by_order: rank added by each order, the intercept being order 0.
        smallest_kept: smallest squared direction that raised the rank (1 when all are orthogonal); if conjugate
            gradients solve for the higher orders, among the orders that were eliminated; NaN where the pattern of the
            cells decides, except for which of several orders dependences belong to.
        largest_dropped: largest squared direction treated as rounding (0 when none was dropped).
        null: (q, k) basis of the linear dependences among the functions on the rows; no columns if there are none or
            they were not determined.
        independent: if the dependences outnumber the rank, in place of ``null``: (q, rank) an orthonormal basis of
            their orthogonal complement.
        iterations: refinement steps or conjugate gradient iterations.
        residual: norm of the residual of the normal equations, relative to the projections.
        method: how the system was solved, in a few words.
        converged: whether the residual met its tolerance.
        rank_known: whether the rank was determined; if not, ``rank_by_order`` counts functions.
        leverage: (r,) part of the value of each distinct row in its own fitted value, if the route knows it.
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
    leverage: FloatArray | None = None

    @property
    def rank(self) -> int:
        """Dimension of the fitted space, the intercept included."""
        return sum(self.rank_by_order)


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Results of a shrunken fit besides its effects, in normalised units.

    Attributes:
        described: the variance components and how they were estimated, in words; or why nothing was shrunk.
        effective: effective number of functions of each order from 1 on, averaged over the outputs.
        left_out: (N, m) leave-one-out residuals of distinct rows.
        left_out_rows: (N,) numbers of these rows: all, or a random sample.
        left_out_mse: (m,) mean squared leave-one-out residual over all rows, estimated if not all were left out.
        left_out_stderr: (m,) standard error of that estimate; 0 if all rows were left out.
        posterior: the posterior, which gives the variance of any linear statistic.
        least_squares: (m,) mean squared residual of a least-squares fit of the same functions.
        continuation: the effects of pairs in cells never observed, by the prior; ``None`` where there are none.
    """

    described: str
    effective: tuple[float, ...] = ()
    left_out: FloatArray | None = None
    left_out_rows: IntArray | None = None
    left_out_mse: FloatArray | None = None
    left_out_stderr: FloatArray | None = None
    posterior: Any = None
    least_squares: FloatArray | None = None
    continuation: Continuation | None = None


@dataclass(frozen=True, eq=False)
class AtRows:
    """What a pass over the rows found for given effects, in normalised units.

    Attributes:
        effects: (cells, m) the effects.
        fitted: (r, m) their sum at every distinct row.
        model, residual: (cells, m) expectations of the model and of its residual in every cell.
    """

    effects: FloatArray
    fitted: FloatArray
    model: FloatArray
    residual: FloatArray

    def only(self, cells: IntArray) -> AtRows:
        """The same for cells in another order, by their numbers."""
        return AtRows(self.effects[cells], self.fitted, self.model[cells], self.residual[cells])


@dataclass(frozen=True, eq=False)
class Solved:
    """Every effect at every cell, with the evidence of the solve: the result of each route and each selection.

    Attributes:
        family: the family and its cells.
        values: (cells, m) effects.
        plan: the plan that was run.
        solution: evidence; its coefficients belong to ``basis``.
        basis: the functions used, ``None`` on the grid route, where they are implicit.
        saturated: whether the family spans every function on the support.
        shrinkage: results of shrinkage, if it was requested.
        at_rows: what the last pass over the rows found for these very ``values``, if the route made one.
        gram: (k, k) Gram matrix of the first functions, if the route has made it: of all of them if they are few, else
            of the intercept and main effects.
    """

    family: Family
    values: FloatArray
    plan: Plan
    solution: Solution
    basis: Basis | None
    saturated: bool
    shrinkage: Shrinkage | None = None
    at_rows: AtRows | None = None
    gram: FloatArray | None = None

    @cached_property
    def everywhere(self) -> Everywhere:
        """The effects as new rows read them."""
        return everywhere(self.family, self.values, None if self.shrinkage is None else self.shrinkage.continuation)

    @property
    def passed_over(self) -> AtRows | None:
        """``at_rows``, if it belongs to these very effects."""
        return self.at_rows if self.at_rows is not None and self.at_rows.effects is self.values else None

    def paper_functions(self) -> list[tuple[Subset, tuple[int, ...]]] | None:
        """(A, z) of the paper's functions that were kept, in order; ``None`` for functions without a z."""
        if self.basis is None or self.basis.labels is None:
            return None
        kept = self.solution.kept
        return [
            (subset, tuple(z))
            for s, subset in enumerate(self.family.subsets)
            for z, taken in zip(self.basis.labels[s].tolist(), kept[self.basis.functions_of(s)], strict=True)
            if taken
        ]


def first_functions(family: Family, basis: Basis) -> int:
    """Number of functions whose Gram matrix is kept: all, or those of intercept and main effects."""
    if basis.n_functions <= KEPT_GRAM:
        return basis.n_functions
    return int(basis.start[int(np.searchsorted(family.layout.order, 2))])
