"""All pairs of a family with one feature of many levels: a solve level by level of that feature, and its refinement.

Let b be the feature of most levels, S the blocks of :mod:`exanova.solve.level_blocks` (its pairs), F the functions
without b. Shortest coefficients of pairs are c = Phi^T a, where a has no part in the lower orders and

    (I - P) (S + F_2 F_2^T) (I - P) a = (I - P) g,         F_2 pairs without b, P the lower orders, g the fitted values.

Pairs with b are pure: their projection is S less that on main effects, where a vanishes. So everything but a small
matrix over F separates by levels (Woodbury; main effects without b, which a must not contain, enter with an infinite
factor). Two steps:

1. fitted values g: project on each level's functions, then fit the rest by F without its part there, a small matrix;
2. a: conjugate gradients with the inverse above as preconditioner. The inverse is exact but for a term delta that keeps
   it bounded, so that a few iterations suffice for any distribution of the levels.

Without this, thousands of iterations do not converge where a level has about as many rows as functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, build_basis
from exanova.data.sample import Sample
from exanova.design.family import Family, build_family
from exanova.parallel import suitable_blas
from exanova.phi.operator import Phi
from exanova.solve.cgls import Step, preconditioned
from exanova.solve.level_blocks import LevelBlocks
from exanova.solve.operators import Reduced, RunOfSubsets
from exanova.typing import FloatArray, IntArray

DELTA = 1e-6
"""Added to squared directions of the blocks: small against those of functions, large against rounding."""

CONSTRAINT = 1e-8
"""Inverse of the factor that keeps main effects out of the solution of a preconditioner."""

MOST_OTHERS = 4000
"""Functions without the feature up to which a matrix over them is factorised."""

MOST_PAIRED = 500
"""Levels of all features it is paired with, up to which the levels of a feature are factorised."""

FEWEST_LEVELS = 64
"""Levels of a feature from which its pairs are solved level by level."""

ROW_BYTES = 16_000_000
"""Memory of the functions without the feature at one block of rows."""

REFINED = 3
"""Corrections of the fitted values from recomputed residuals."""

ITERATIONS, FRUITLESS = 200, 5
"""Largest number of iterations with the preconditioner, and of iterations without a smaller residual."""


def level_feature(family: Family) -> int | None:
    """The feature whose pairs are solved level by level; ``None`` if no feature has enough levels, or the others have
    too many functions, or there are higher orders than pairs."""
    if family.layout.order.max() != 2:
        return None
    members = [s for s in family.subsets if len(s) == 2]
    feature = max({i for s in members for i in s}, key=lambda i: (int(family.sizes[i]), -i))
    few = family.sizes[feature] < FEWEST_LEVELS or paired_levels(family, feature) > MOST_PAIRED
    return None if few or functions_without(family, feature) > MOST_OTHERS else feature


def functions_without(family: Family, feature: int) -> int:
    """Largest number of functions of the subsets without ``feature``, except the empty one."""
    cells = np.diff(family.cell_start)
    return int(sum(cells[k] for k, s in enumerate(family.subsets) if s and feature not in s))


def paired_levels(family: Family, feature: int) -> int:
    """Levels of all features that ``feature`` is paired with."""
    return int(sum(family.sizes[i] for s in family.subsets if len(s) == 2 and feature in s for i in s if i != feature))


@dataclass(frozen=True, eq=False)
class ByLevels:
    """The preconditioner and what it is made of.

    Attributes:
        blocks: pairs with the feature.
        others: functions without it, intercept included.
        absorbed: (t, t) pseudo-inverse of the Gram matrix of these functions without their part in the blocks.
        inverse: (t, t) inverse of the matrix of the Woodbury formula.
        reduced: the functions of the pairs without their part in lower orders.
    """

    blocks: LevelBlocks
    others: RunOfSubsets
    absorbed: FloatArray
    inverse: FloatArray
    reduced: Reduced

    @classmethod
    def of(cls, sample: Sample, family: Family, feature: int, reduced: Reduced, threads: int) -> ByLevels:
        """Factorise the levels, and the matrices over the functions without the feature."""
        paired = sorted({i for s in family.subsets if len(s) == 2 and feature in s for i in s} - {feature})
        kept = [s for s in family.subsets if feature not in s]
        without = build_family(sample.codes, sample.mass, sample.sizes, kept, threads)
        basis = build_basis(without)
        blocks = LevelBlocks(sample, feature, paired, DELTA)
        with suitable_blas(float(sample.n_rows) * basis.n_functions**2):
            absorbed, coupled = _matrices(sample, without, basis, blocks)
        pairs = np.repeat(without.layout.order > 1, np.diff(basis.start))
        with suitable_blas(0):
            inverse = np.linalg.inv(coupled + np.diag(np.where(pairs, 1.0, CONSTRAINT)))
            absorbed = _pseudo_inverse(absorbed)
        others = RunOfSubsets(sample, without, basis, slice(0, len(kept)), threads)
        return cls(blocks, others, absorbed, inverse, reduced)

    def residual(self, y: FloatArray) -> FloatArray:
        """(r, m) the part of the values at the rows that no function of the family explains."""
        left = y - self.blocks.project(y)
        for _ in range(REFINED):
            explained = self.others.synthesise(self.absorbed @ self.others.analyse(left))
            left = left - (explained - self.blocks.project(explained))
        return left - self.blocks.project(left)

    def precondition(self, v: FloatArray) -> FloatArray:
        """(r, m) the inverse of the system, but for ``DELTA``, applied to values at the rows."""
        w = self.blocks.solve(v)
        coupled = self.inverse @ self.others.analyse(w)
        return self.reduced.without_low(w - self.blocks.solve(self.others.synthesise(coupled)))

    def solve(self, values: FloatArray, scale: FloatArray, step: Step | None) -> tuple[FloatArray, int]:
        """(q, m) shortest coefficients of the higher orders, and the iterations used."""
        target = self.reduced.without_low(values - self.residual(values))
        a, used = preconditioned(self.reduced, target, self.precondition, ITERATIONS, FRUITLESS, scale, step)
        return self.reduced.analyse(self.reduced.without_low(a)), used


def _pseudo_inverse(gram: FloatArray) -> FloatArray:
    """Pseudo-inverse of a Gram matrix of parts of unit columns."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > tolerances.rank_of_gram(len(gram))
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def _matrices(sample: Sample, family: Family, basis: Basis, blocks: LevelBlocks) -> tuple[FloatArray, FloatArray]:
    """F^T (I - U U^T) F and F^T M^-1 F, summed stack by stack; F the functions, U and M the blocks."""
    phi, size = Phi(family, sample), basis.n_functions
    cells = np.stack([phi.cells(s) for s in range(len(family.subsets))])
    absorbed, coupled = np.zeros((size, size)), np.zeros((size, size))
    for stack in blocks.stacks:
        step = max(1, len(stack.rows) * _rows_at_once(size) // max(1, stack.rows.size))
        for a in range(0, len(stack.rows), step):
            part = stack.part(slice(a, a + step))
            f = _functions(basis, cells, part.rows) * part.root[:, :, None]
            f -= part.means(f)
            inner = (np.swapaxes(part.vectors, 1, 2) @ f).reshape(-1, size)
            flat, squares = f.reshape(-1, size), part.squares.reshape(-1, 1)
            own = flat.T @ flat
            absorbed += own - inner.T @ (np.sign(squares) * inner)
            coupled += own / blocks.delta + inner.T @ ((1.0 / (squares + blocks.delta) - 1.0 / blocks.delta) * inner)
    return absorbed, coupled


def _rows_at_once(functions: int) -> int:
    return max(1, ROW_BYTES // (8 * functions))


def _functions(basis: Basis, cells: IntArray, rows: IntArray) -> FloatArray:
    """(b, n, t) functions at the rows of a stack; padding repeats the last row and has no weight."""
    at = np.minimum(rows, cells.shape[1] - 1)
    return np.concatenate([basis.table(s)[cells[s][at]] for s in range(len(cells))], axis=2)
