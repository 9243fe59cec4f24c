"""Matrix-free route: families whose Gram matrix does not fit, by conjugate gradients over passes of the rows.

Intercept, main effects and as many further orders as are few enough are eliminated exactly. What remains is

    E = (I - P) Phi,   P the projection on these lower orders, Phi the functions of the higher ones,

and conjugate gradients on E from zero converge to the shortest solution: what a lower order can express is not
claimed, and redundancy among the rest is shared (jointly, where several orders are left). Bases are orthonormal in
every subset, so the blocks of the diagonal are identities already; eliminating the lower orders is the rest of the
preconditioning. One iteration is one pass from cells to rows and one back, by products of matrices for dense families
of pairs; memory is a few vectors over rows and cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.basis.tables import Basis, on_cells, on_functions, too_large_for_tables
from exanova.design import passes
from exanova.design.cells import CellIndex
from exanova.design.products import PairProducts, products_are_sooner
from exanova.moments.gram import collect, projected_gram
from exanova.progress import Progress
from exanova.solve.cgls import conjugate_gradients
from exanova.solve.elimination import Factor, factorise, solve
from exanova.solve.evidence import Solution
from exanova.typing import Codes, FloatArray

MOST_ITERATIONS = 2000

MOST_ELIMINATED = 6000
"""Functions of lower orders that are eliminated exactly: a Gram matrix of 300 MB."""


@dataclass(frozen=True)
class Rows:
    """Codes (d, r), weights (r,) and values (r, m) of a support, and threads to use on them."""

    codes: Codes
    weight: NDArray[np.int64] | NDArray[np.float64]
    values: FloatArray
    threads: int

    @property
    def p(self) -> FloatArray:
        """(r, 1) probabilities."""
        return np.asarray(self.weight / self.weight.sum(), dtype=np.float64)[:, None]


class Block:
    """The functions of a run of subsets as an operator between coefficients and rows."""

    def __init__(self, rows: Rows, index: CellIndex, basis: Basis, first: int, last: int) -> None:
        self._rows, self._index, self._basis = rows, index, basis
        self._subsets = slice(first, last)
        self._functions = slice(int(basis.start[first]), int(basis.start[last]))
        self._layout = index.layout.part(first, last)
        self._products = PairProducts(self._layout, rows.codes, rows.threads) if self._is_dense() else None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self._functions.stop - self._functions.start

    def _is_dense(self) -> bool:
        """Whether products of matrices go over the rows sooner than tables are read."""
        is_large = len(self._layout.order) * self._rows.codes.shape[1] >= passes.COMPILED_FROM
        return is_large and products_are_sooner(self._layout)

    def synthesise(self, c: FloatArray) -> FloatArray:
        """(r, m) values at the rows, for (size, m) coordinates."""
        everything = np.zeros((self._basis.n_functions, c.shape[1]))
        everything[self._functions] = c
        tables = self._index.to_keys(on_cells(self._index, self._basis, everything))
        if self._products:
            return self._products.gather(tables)
        return passes.gather(self._layout, self._rows.codes, tables, self._rows.threads)

    def analyse(self, y: FloatArray) -> FloatArray:
        """(size, m) inner products with (r, m) values."""
        index = self._index
        weighted = self._rows.p * y
        if self._products:
            sums = self._products.scatter(weighted)
        else:
            sums = passes.scatter(index.layout, self._rows.codes, weighted, self._subsets, self._rows.threads)
        cells = slice(int(index.cell_start[self._subsets.start]), int(index.cell_start[self._subsets.stop]))
        first_key = int(index.layout.key_start[self._subsets.start])
        full = np.zeros((index.n_cells, y.shape[1]))
        full[cells] = sums[index.cell_key[cells] - first_key]
        return on_functions(index, self._basis, full)[self._functions]


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


def solve_matrix_free(rows: Rows, index: CellIndex, basis: Basis, progress: Progress) -> Solution:
    """Coefficients over all functions of ``basis``."""
    split = _eliminated(index, basis)
    low, high = Block(rows, index, basis, 0, split), Block(rows, index, basis, split, len(index.subsets))
    factor = _low_factor(rows, index.restricted(split), basis.restricted(split))
    reduced = Reduced(low, high, factor, rows.p)
    progress.phase("conjugate gradients")
    target = reduced.without_low(rows.values)
    # What lower orders leave may be nothing but rounding: residuals are measured against the model itself.
    scale = np.sqrt(np.asarray((rows.p * rows.values**2).sum(axis=0)))
    c, residual, iterations = conjugate_gradients(reduced, target, MOST_ITERATIONS, progress.step, scale)
    left = rows.values - high.synthesise(c)
    below = solve(factor, low.analyse(left))
    below = below + solve(factor, low.analyse(left - low.synthesise(below)))  # one step of refinement
    sizes = index.layout.order
    return Solution(
        coefficients=np.vstack([below, c]),
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=(
            *(part.rank for part in factor.orders),
            *(int(basis.dimensions[sizes == k].sum()) for k in range(len(factor.orders), int(sizes.max()) + 1)),
        ),
        smallest_kept=float("nan"),
        largest_dropped=0.0,
        null=np.zeros((basis.n_functions, 0)),
        iterations=iterations,
        residual=residual,
        method="conjugate gradients over passes of the rows",
        converged=residual <= tolerances.NORMAL_EQUATIONS * np.sqrt(basis.n_functions),
        rank_known=False,
    )


def _eliminated(index: CellIndex, basis: Basis) -> int:
    """How many subsets belong to the lower orders that are eliminated: at least order one, never the last order."""
    sizes, large = index.layout.order, too_large_for_tables(index)
    split = int(np.searchsorted(sizes, 1, side="right"))
    for order in range(2, int(sizes.max())):
        upto = int(np.searchsorted(sizes, order, side="right"))
        if large[:upto].any() or basis.start[upto] > MOST_ELIMINATED:
            break
        split = upto
    return split


def _low_factor(rows: Rows, index: CellIndex, basis: Basis) -> Factor:
    """Factor of the lower orders, in order."""
    nothing = np.zeros((rows.codes.shape[1], 1))
    moments = collect(index, rows.codes, rows.weight, nothing, threads=rows.threads)
    gamma = projected_gram(moments, basis)
    ends = np.flatnonzero(np.diff(index.layout.order, append=index.layout.order[-1] + 1)) + 1
    bounds = [0, *(int(basis.start[end]) for end in ends)]
    return factorise(gamma, [slice(a, b) for a, b in pairwise(bounds)], "share")
