"""Elimination of the lower orders in the matrix-free route, exactly: by a Gram matrix, or without that of one feature.

The main effects of one feature are orthogonal to each other, whatever its levels. With b the feature of most levels and
o all others, the Gram matrix of main effects is an arrow,

    [ I    C ]                        c_o = (G - C^T C)^+ (mu_o - C^T mu_b)
    [ C^T  G ]     and therefore      c_b = mu_b - C c_o,

so that only a matrix over the functions of the others is factorised: one column of 30,000 levels costs no more than its
counts with the others. The null directions of the arrow are (-C n, n), n those of G - C^T C, and the shortest solution
is what remains of any solution after projecting them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exanova.basis.functions import Basis, build_basis, order_slices
from exanova.data.sample import Sample
from exanova.design.family import Family, build_family
from exanova.parallel import suitable_blas
from exanova.phi.operator import Phi
from exanova.solve import elimination
from exanova.solve.elimination import Factor, factorise, null_space
from exanova.typing import FloatArray

ARROW_LEVELS = 500
"""Levels of a feature from which its main effects are eliminated without a matrix of their own."""


class LowOrders(Protocol):
    """The lower orders after elimination."""

    @property
    def rank_by_order(self) -> tuple[int, ...]:
        """Rank added by each order, the intercept first."""
        ...

    @property
    def smallest(self) -> float:
        """Smallest squared direction kept."""
        ...

    @property
    def dropped(self) -> float:
        """Largest squared direction treated as rounding."""
        ...

    @property
    def null(self) -> FloatArray:
        """(q, k) basis of the linear dependences among the functions."""
        ...

    def solve(self, projections: FloatArray) -> FloatArray:
        """(q, m) shortest coefficients with Gamma c = projections."""
        ...


@dataclass(frozen=True)
class Whole:
    """Elimination of the Gram matrix of all functions."""

    factor: Factor

    @property
    def rank_by_order(self) -> tuple[int, ...]:
        """Rank added by each order, the intercept first."""
        return tuple(part.rank for part in self.factor.orders)

    @property
    def smallest(self) -> float:
        """Smallest squared direction kept."""
        return min(part.smallest for part in self.factor.orders)

    @property
    def dropped(self) -> float:
        """Largest squared direction treated as rounding."""
        return max(part.dropped for part in self.factor.orders)

    @property
    def null(self) -> FloatArray:
        """(q, k) basis of the linear dependences among the functions."""
        return null_space(self.factor)

    def solve(self, projections: FloatArray) -> FloatArray:
        """(q, m) shortest coefficients with Gamma c = projections."""
        return elimination.solve(self.factor, projections)


@dataclass(frozen=True)
class Arrow:
    """Intercept and main effects, those of one feature eliminated first.

    Attributes:
        own: the functions of that feature among all.
        cross: (own, others) C, with a column of zeros for the intercept.
        factor: factor of the intercept and of G - C^T C.
        null: (q, k) orthonormal basis of the dependences.
    """

    own: slice
    cross: FloatArray
    factor: Factor
    null: FloatArray

    @property
    def rank_by_order(self) -> tuple[int, ...]:
        """Rank added by each order, the intercept first."""
        intercept, others = (part.rank for part in self.factor.orders)
        return intercept, self.own.stop - self.own.start + others

    @property
    def smallest(self) -> float:
        """Smallest squared direction kept."""
        return Whole(self.factor).smallest

    @property
    def dropped(self) -> float:
        """Largest squared direction treated as rounding."""
        return Whole(self.factor).dropped

    def solve(self, projections: FloatArray) -> FloatArray:
        """(q, m) shortest coefficients with Gamma c = projections."""
        own = projections[self.own]
        others = np.delete(projections, self.own, axis=0) - self.cross.T @ own
        coefficients = _assembled(self.own, self.cross, elimination.solve(self.factor, others), own)
        return np.asarray(coefficients - self.null @ (self.null.T @ coefficients))


def eliminate(sample: Sample, family: Family, basis: Basis, threads: int) -> LowOrders:
    """Eliminate all functions of a family: as an arrow if it consists of main effects, one of them with many levels."""
    largest = arrow_feature(family)
    if largest is None:
        return Whole(factorise(Phi(family, sample, threads).gram(basis), order_slices(family, basis), "share"))
    return _arrow(sample, family, basis, largest, threads)


def arrow_feature(family: Family) -> int | None:
    """Number of the subset whose main effects are eliminated first; ``None`` if the family is no arrow."""
    order = family.layout.order
    if order.max() != 1:
        return None
    cells = np.where(order == 1, np.diff(family.cell_start), 0)
    largest = int(cells.argmax())
    return largest if cells[largest] >= ARROW_LEVELS else None


def _arrow(sample: Sample, family: Family, basis: Basis, largest: int, threads: int) -> Arrow:
    kept = [s for k, s in enumerate(family.subsets) if k != largest]
    others = build_family(sample.codes, sample.mass, sample.sizes, kept, threads)
    functions = build_basis(others)
    cross = _cross(sample, family, basis, largest)
    gram = Phi(others, sample, threads).gram(functions)
    with suitable_blas(float(len(gram)) ** 3 / 3):
        gram -= cross.T @ cross
        factor = factorise(gram, [slice(0, 1), slice(1, len(gram))], "share")
        null = null_space(factor)
    own = basis.functions_of(largest)
    whole = _assembled(own, cross, null, np.zeros((len(cross), null.shape[1])))
    with suitable_blas(0):
        return Arrow(own, cross, factor, np.linalg.qr(whole)[0])


def _assembled(own: slice, cross: FloatArray, others: FloatArray, projections: FloatArray) -> FloatArray:
    """(q, m) coefficients of all functions from those of the others and the projections on the feature's own."""
    return np.vstack([others[: own.start], projections - cross @ others, others[own.start :]])


def _cross(sample: Sample, family: Family, basis: Basis, largest: int) -> FloatArray:
    """(own, others) inner products of the functions of one feature with those of the others, intercept first."""
    own = basis.tables[largest]
    columns = [np.zeros((own.shape[1], 1))]
    feature = family.subsets[largest][0]
    for s, subset in enumerate(family.subsets):
        if len(subset) == 1 and s != largest:
            sizes = int(family.sizes[feature]), int(family.sizes[subset[0]])
            key = sample.codes[feature].astype(np.int64) * sizes[1] + sample.codes[subset[0]]
            flat = np.bincount(key, weights=sample.probability, minlength=sizes[0] * sizes[1])
            counts: FloatArray = np.asarray(flat, dtype=np.float64).reshape(sizes)
            columns.append(own.T @ (basis.tables[s].T @ counts.T).T)
    return np.hstack(columns)
