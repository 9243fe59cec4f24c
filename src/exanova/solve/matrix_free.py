"""Matrix-free route: families whose Gram matrix does not fit in memory, by conjugate gradients over passes of the rows.

Intercept, main effects and further orders with few enough functions are eliminated exactly. For the others,

    E = (I - P) Phi,   P the projection on these lower orders, Phi the functions of the higher ones,

and conjugate gradients on E from zero converge to the minimum-norm solution: lower orders have priority, and
redundancy among the higher ones is shared (jointly, if there are several). Bases are orthonormal in every subset, so
the diagonal blocks are identities. Pairs with a feature of many levels are preconditioned level by level
(:mod:`exanova.solve.by_levels`); otherwise eliminating the lower orders is the only preconditioning. One iteration is
one pass from cells to rows and one back, by products of matrices for dense families of pairs; memory is a few vectors
over rows and cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, too_large_for_tables
from exanova.basis.projector import LARGEST_TABLE
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.progress import Progress
from exanova.solve.by_levels import ByLevels, level_feature
from exanova.solve.cgls import conjugate_gradients, relative
from exanova.solve.evidence import Solution
from exanova.solve.low_orders import eliminate
from exanova.solve.operators import Reduced, RunOfSubsets
from exanova.typing import FloatArray

MOST_ITERATIONS = 2000

MOST_ELIMINATED = 6000
"""Functions of lower orders that are eliminated exactly: a Gram matrix of 300 MB."""


LARGEST_PAIR = 400
"""Cells of a pair up to which there is a table of its functions, not a projector."""


def largest_pair(family: Family) -> int:
    """Cells of a pair up to which a fit of this family has a table of its functions."""
    # Pairs are eliminated below triples, which needs tables of them.
    return LARGEST_PAIR if int(family.layout.order.max()) == 2 else LARGEST_TABLE


def expected_iterations(rows: int, functions: int) -> int:
    """Iterations to expect: those of random functions, for these numbers of functions and rows.

    Squared singular values of a random matrix of aspect ratio a lie between (1 - sqrt(a))^2 and (1 + sqrt(a))^2, and
    each iteration gains as much as the ratio of these roots allows. Measured on columns of 366 levels with others:
    22, 34, 53 and 140 iterations where this estimates 31, 45, 60 and 115; on 60 columns of two levels, with 0.96, 1.08
    and 1.22 times as many functions as rows: 1,237, 747 and 295 where this estimates 1,912, 953 and 355.

    >>> expected_iterations(55_295, 10_491), expected_iterations(1_500, 1_831), expected_iterations(900, 900)
    (45, 355, 2000)
    """
    root = math.sqrt(functions / rows)
    if root == 1.0:
        return MOST_ITERATIONS
    condition = (1.0 + root) / abs(1.0 - root)
    return min(MOST_ITERATIONS, math.ceil(condition * math.log(2.0 / tolerances.ITERATIVE) / 2.0))


def solve_matrix_free(sample: Sample, family: Family, basis: Basis, threads: int, progress: Progress) -> Solution:
    """Coefficients over all functions of ``basis``."""
    split, count, p = _eliminated(family, basis), len(family.subsets), sample.probability[:, None]
    low, high = (RunOfSubsets(sample, family, basis, run, threads) for run in (slice(0, split), slice(split, count)))
    lower = eliminate(sample, family.restricted(split), basis.restricted(split), threads)
    reduced = Reduced(low, high, lower, p)
    # The residual of the lower orders may be pure rounding, so that the scale is that of the model itself.
    scale = np.sqrt(np.asarray((p * sample.values**2).sum(axis=0)))
    higher = _higher_orders(sample, family, reduced, scale, threads, progress)
    below, left = _lower_orders(reduced, sample.values - high.synthesise(higher.coefficients))
    residual = max(higher.residual, relative(low.analyse(left), scale))
    sizes, ranks = family.layout.order, lower.rank_by_order
    return Solution(
        coefficients=np.vstack([below, higher.coefficients]),
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=(
            *ranks,
            *(int(basis.dimensions[sizes == k].sum()) for k in range(len(ranks), int(sizes.max()) + 1)),
        ),
        smallest_kept=lower.smallest,
        largest_dropped=lower.dropped,
        null=lower.null if split == count else np.zeros((basis.n_functions, 0)),
        iterations=higher.iterations,
        residual=residual,
        method=higher.method,
        converged=_is_small(residual, basis.n_functions),
        rank_known=split == count,
    )


@dataclass(frozen=True)
class _Higher:
    """(q, m) coefficients of the higher orders, residual of the normal equations, iterations, and how."""

    coefficients: FloatArray
    residual: float
    iterations: int
    method: str


def _higher_orders(
    sample: Sample, family: Family, reduced: Reduced, scale: FloatArray, threads: int, progress: Progress
) -> _Higher:
    """Coefficients of the orders that are not eliminated; level by level of one feature where that applies."""
    target = reduced.without_low(sample.values)
    if not reduced.high.size:
        return _Higher(np.zeros((0, target.shape[1])), 0.0, 2, "elimination of main effects")
    feature = level_feature(family)
    if feature is not None:
        progress.phase("factorising levels")
        solver = ByLevels.of(sample, family, feature, reduced, threads)
        progress.phase("conjugate gradients")
        c, used = solver.solve(sample.values, scale, progress.step)
        residual = relative(reduced.analyse(target - reduced.synthesise(c)), scale)
        if _is_small(residual, reduced.high.size):
            return _Higher(c, residual, used, "levels factorised, conjugate gradients over passes of the rows")
    progress.phase("conjugate gradients")
    c, residual, used = conjugate_gradients(reduced, target, MOST_ITERATIONS, progress.step, scale)
    return _Higher(c, residual, used, "conjugate gradients over passes of the rows")


def _lower_orders(reduced: Reduced, left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(q, m) coefficients of the lower orders for (r, m) values, refined once, and the residual."""
    low, lower = reduced.low, reduced.eliminated
    below = lower.solve(low.analyse(left))
    below = below + lower.solve(low.analyse(left - low.synthesise(below)))
    return below, left - low.synthesise(below)


def _is_small(residual: float, functions: int) -> bool:
    return bool(residual <= tolerances.NORMAL_EQUATIONS * np.sqrt(functions))


def _eliminated(family: Family, basis: Basis) -> int:
    """Number of subsets of the lower orders that are eliminated: at least order one, never the last order."""
    sizes, large = family.layout.order, too_large_for_tables(family)
    split = int(np.searchsorted(sizes, 1, side="right"))
    for order in range(2, int(sizes.max())):
        upto = int(np.searchsorted(sizes, order, side="right"))
        if large[:upto].any() or basis.start[upto] > MOST_ELIMINATED:
            break
        split = upto
    return split
