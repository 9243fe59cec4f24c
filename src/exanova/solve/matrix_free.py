"""Matrix-free route: families whose Gram matrix does not fit in memory, by conjugate gradients over passes of the rows.

Intercept, main effects and further orders with few enough functions are eliminated exactly. For the others,

    E = (I - P) Phi,   P the projection on these lower orders, Phi the functions of the higher ones,

and conjugate gradients on E from zero converge to the minimum-norm solution: lower orders have priority, and
redundancy among the higher ones is shared (jointly, if there are several). Bases are orthonormal in every subset, so
the diagonal blocks are identities; eliminating the lower orders is the only other preconditioning. One iteration is
one pass from cells to rows and one back, by products of matrices for dense families of pairs; memory is a few vectors
over rows and cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, on_cells, on_functions, order_slices, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.solve.cgls import conjugate_gradients
from exanova.solve.elimination import Factor, factorise, solve
from exanova.solve.evidence import Solution
from exanova.typing import FloatArray

MOST_ITERATIONS = 2000

MOST_ELIMINATED = 6000
"""Functions of lower orders that are eliminated exactly: a Gram matrix of 300 MB."""


NEARLY_SQUARE = (0.85, 1.3)
"""Functions over rows between which the smallest directions are so small that the iterations do not converge."""


def expected_iterations(rows: int, functions: int) -> int:
    """Iterations to expect: those of random functions, for these numbers of functions and rows.

    Squared singular values of a random matrix of aspect ratio a lie between (1 - sqrt(a))^2 and (1 + sqrt(a))^2, and
    each iteration gains as much as the ratio of these roots allows. Measured on columns of 366 levels with others:
    22, 34, 53 and 140 iterations where this says 31, 45, 60 and 115.

    >>> expected_iterations(55_295, 10_491), expected_iterations(7_897, 9_222)
    (45, 2000)
    """
    ratio = functions / rows
    if NEARLY_SQUARE[0] <= ratio <= NEARLY_SQUARE[1]:
        return MOST_ITERATIONS
    root = math.sqrt(ratio)
    condition = (1.0 + root) / abs(1.0 - root)
    return min(MOST_ITERATIONS, math.ceil(condition * math.log(2.0 / tolerances.ITERATIVE) / 2.0))


class Block:
    """The functions of a run of subsets as an operator between coefficients and rows."""

    def __init__(self, sample: Sample, family: Family, basis: Basis, subsets: slice, threads: int) -> None:
        self._p, self._family, self._basis = sample.probability[:, None], family, basis
        self._functions = slice(int(basis.start[subsets.start]), int(basis.start[subsets.stop]))
        self._phi = Phi(family, sample, threads, subsets=subsets, repeated=True)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self._functions.stop - self._functions.start

    def synthesise(self, c: FloatArray) -> FloatArray:
        """(r, m) values at the rows, for (size, m) coordinates."""
        everything = np.zeros((self._basis.n_functions, c.shape[1]))
        everything[self._functions] = c
        return self._phi.synthesise(on_cells(self._family, self._basis, everything))

    def analyse(self, y: FloatArray) -> FloatArray:
        """(size, m) inner products with (r, m) values."""
        return on_functions(self._family, self._basis, self._phi.analyse(self._p * y))[self._functions]


@dataclass(frozen=True)
class Reduced:
    """E = (I - P) Phi of the higher orders."""

    low: Block
    high: Block
    factor: Factor
    p: FloatArray

    def without_low(self, y: FloatArray) -> FloatArray:
        """(I - P) y."""
        return y - self.low.synthesise(solve(self.factor, self.low.analyse(y)))

    def synthesise(self, c: FloatArray) -> FloatArray:
        """E c."""
        return self.without_low(self.high.synthesise(c))

    def analyse(self, y: FloatArray) -> FloatArray:
        """Phi^T diag(p) y; exact for y already without main effects."""
        return self.high.analyse(y)


def solve_matrix_free(sample: Sample, family: Family, basis: Basis, threads: int, progress: Progress) -> Solution:
    """Coefficients over all functions of ``basis``."""
    split, count, p = _eliminated(family, basis), len(family.subsets), sample.probability[:, None]
    low, high = (Block(sample, family, basis, run, threads) for run in (slice(0, split), slice(split, count)))
    factor = _low_factor(sample, family.restricted(split), basis.restricted(split), threads)
    reduced = Reduced(low, high, factor, p)
    progress.phase("conjugate gradients")
    target = reduced.without_low(sample.values)
    # The residual of the lower orders may be pure rounding, so that the scale is that of the model itself.
    scale = np.sqrt(np.asarray((p * sample.values**2).sum(axis=0)))
    c, residual, iterations = conjugate_gradients(reduced, target, MOST_ITERATIONS, progress.step, scale)
    left = sample.values - high.synthesise(c)
    below = solve(factor, low.analyse(left))
    below = below + solve(factor, low.analyse(left - low.synthesise(below)))  # one step of refinement
    sizes = family.layout.order
    return Solution(
        coefficients=np.vstack([below, c]),
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=(
            *(part.rank for part in factor.orders),
            *(int(basis.dimensions[sizes == k].sum()) for k in range(len(factor.orders), int(sizes.max()) + 1)),
        ),
        smallest_kept=min(part.smallest for part in factor.orders),
        largest_dropped=max(part.dropped for part in factor.orders),
        null=np.zeros((basis.n_functions, 0)),
        iterations=iterations,
        residual=residual,
        method="conjugate gradients over passes of the rows",
        converged=residual <= tolerances.NORMAL_EQUATIONS * np.sqrt(basis.n_functions),
        rank_known=False,
    )


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


def _low_factor(sample: Sample, family: Family, basis: Basis, threads: int) -> Factor:
    """Factor of the lower orders, in order."""
    return factorise(Phi(family, sample, threads).gram(basis), order_slices(family, basis), "share")
