"""``GrowingFit``: a fit to which subsets are added in rounds, with a residual after each round.

The intercept and the main effects come first; every round appends functions of one order, never lower than before.
Gamma is computed for new functions only and its factor is extended, so that all rounds together cost as much as one
fit of the final family.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from exanova.basis.functions import Basis, on_cells
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.growing_gram import GrowingGram
from exanova.phi.operator import Phi
from exanova.phi.projection import mirrored
from exanova.phi.residues import are_counts
from exanova.solve.choice import FLOATING, PaperChoice
from exanova.solve.elimination import null_space
from exanova.solve.evidence import KEPT_GRAM, AtRows, Solution
from exanova.solve.float_factor import FloatFactor
from exanova.solve.moments_route import Projections, refine, within_tolerance
from exanova.solve.request import Request
from exanova.solve.routes import KnownGram
from exanova.typing import FloatArray, IntArray, Subset


class GrowingFit:
    """The decomposition of a model over a growing family.

    Attributes:
        at_rows: what the last pass of ``solve`` found for its effects, if it was the best.
    """

    def __init__(self, sample: Sample, request: Request, capacity: int, max_rank: int | None = None) -> None:
        self._sample, self._request = sample, request
        # With rounded weights, an exact choice would keep directions too small for a factor without pivoting.
        exact = request.basis == "paper" and request.ties == "first" and are_counts(sample.weight)
        self._choice = (
            PaperChoice(sample.codes, sample.weight, sample.sizes, request.threads, max_rank) if exact else None
        )
        self._gram = GrowingGram(
            sample.codes,
            sample.weight,
            sample.sizes,
            kind=request.basis,
            orthonormal=request.ties == "share",
            threads=request.threads,
        )
        self._factor = FloatFactor(capacity, max_rank)
        self._rows: list[FloatArray] = []
        self._orders: list[int] = [0]
        self._residual, self._left_by = sample.values, 0
        self._sums, self._summed = np.zeros((0, sample.values.shape[1])), 0
        self.at_rows: AtRows | None = None

    @property
    def family(self) -> Family:
        """Cells of the family so far."""
        return self._gram.cells.family

    @property
    def basis(self) -> Basis:
        """Functions of the family so far."""
        return self._gram.basis

    @property
    def rank(self) -> int:
        """Rank so far, the intercept included."""
        return self._factor.rank

    @property
    def dropped(self) -> float:
        """Largest squared direction treated as rounding so far."""
        return self._factor.dropped

    @property
    def full(self) -> bool:
        """Whether the rank has reached its limit."""
        return self._factor.full

    def add(self, subsets: Sequence[Subset]) -> None:
        """Append distinct subsets of one order, which is not lower than any before."""
        before = self._factor.size
        rows = self._gram.add(subsets)
        if self._request.is_plain and before == sum(map(len, self._rows)):
            self._rows.append(rows)
        penalised = np.arange(1 if before == 0 else 0, len(rows))
        rows[penalised, before + penalised] += self._request.ridge
        self._factor.append(rows, self._choice.add(subsets) if self._choice else None)
        order = len(subsets[0])
        if before == 0:
            self._orders = [0, 1]
        if len(self._orders) == order + 2:
            self._orders[-1] = self._factor.size
        else:
            self._orders.append(self._factor.size)

    def add_useful(self, subsets: Sequence[Subset]) -> int:
        """Append subsets, without those that do not raise the rank; returns how many were kept."""
        functions = self._factor.size
        self.add(subsets)
        before = len(self.family.subsets) - len(subsets)
        gained = self.rank_of_subset()
        useful = [s for s in range(before, len(self.family.subsets)) if gained[s]]
        if len(useful) < len(subsets):
            of_subset = self.basis.subset_of_function()[functions:]
            keep = np.isin(of_subset, useful)
            self._factor.forget(keep)
            self._gram.keep_of_last(before, useful)
            self._forget_sums(before)
            self._rows = self._rows[:1]
            self._orders[-1] = self._factor.size
        return len(useful)

    def _forget_sums(self, n_subsets: int) -> None:
        self._summed = min(self._summed, n_subsets)
        self._sums = self._sums[: self.family.cell_start[self._summed]]

    def rank_of_subset(self) -> IntArray:
        """(S,) number of functions of each subset that raised the rank, in the order of arrival."""
        cumulated = np.concatenate([[0], np.cumsum(self._factor.kept)])
        return np.diff(cumulated[self.basis.start])

    def solve(self) -> Solution:
        """Coefficients of all functions so far, refined on the rows."""
        if self._factor.size > KEPT_GRAM:  # no room for them beside a copy of the factor
            self._rows = self._rows[:1]
        factor = self._factor.factor(self._order_slices(), self._request.ties)
        passes = self._passes()
        coefficients, residual, steps = refine(factor, partial(self._projections, passes), limit=8)
        self.at_rows = passes.at_rows(coefficients)
        shown = self._factor.kept.copy() if self._request.ties == "first" else np.ones(self._factor.size, dtype=bool)
        return Solution(
            coefficients=coefficients,
            kept=shown,
            rank_by_order=tuple(part.rank for part in factor.orders),
            smallest_kept=self._factor.smallest,
            largest_dropped=self._factor.dropped,
            null=self._null(null_space(factor)),
            iterations=steps,
            residual=residual,
            method=f"growing elimination of the Gram matrix{self._how()}",
            converged=within_tolerance(residual, self._factor.size),
        )

    def gram(self, family: Family) -> FloatArray | None:
        """(k, k) Gram matrix of the first functions, with the subsets in the order of ``family``, if it was kept."""
        if not self._rows:
            return None
        if sum(map(len, self._rows)) < self._factor.size:
            mains = self._rows[0]  # they come first in any order
            return mirrored(mains.copy())
        return self._sorted(family)[1]

    def known_gram(self) -> KnownGram | None:
        """All functions and their Gram matrix, for the order of a family, if its rows were kept."""
        return self._sorted if self._rows and sum(map(len, self._rows)) == self._factor.size else None

    def _sorted(self, family: Family) -> tuple[Basis, FloatArray]:
        """The functions with their subsets in the order of ``family``, and their Gram matrix, Fortran order."""
        gamma, start = np.zeros((self._factor.size,) * 2), 0
        for rows in self._rows:
            gamma[start : start + len(rows), : rows.shape[1]] = rows
            start += len(rows)
        self._rows = []
        numbers = [self.family.position[s] for s in family.subsets]
        places = [self.basis.functions_of(s) for s in numbers]
        order = np.concatenate([np.arange(place.start, place.stop) for place in places])
        tables = tuple(self.basis.tables[s] for s in numbers)
        start_of = np.concatenate([[0], np.cumsum([table.shape[1] for table in tables])]).astype(np.int64)
        return Basis(tables, start_of), np.asarray(mirrored(gamma)[np.ix_(order, order)]).T

    def _how(self) -> str:
        """How functions were chosen, if some were."""
        if self._request.ties == "share":
            return ""
        return f", {self._choice.how}" if self._choice else f", {FLOATING}"

    def residual(self) -> FloatArray:
        """(r, m) residual of the functions so far, by one solve without refinement."""
        if self._left_by != self._factor.size:
            coefficients = self._factor.solve(self._projections(self._passes(), None))
            fitted = self._phi().synthesise(on_cells(self.family, self.basis, coefficients))
            self._residual, self._left_by = self._sample.values - fitted, self._factor.size
        return self._residual

    def _order_slices(self) -> list[slice]:
        return [slice(a, b) for a, b in pairwise(self._orders)]

    def _passes(self) -> Projections:
        return Projections(self._phi(), self.basis, self._sample, self._sums_of_values(), self._request.ridge)

    def _projections(self, passes: Projections, coefficients: FloatArray | None) -> FloatArray:
        """Projections on the kept functions; under a rank limit the residual may have a part in the others."""
        left = passes(coefficients)
        if self._request.ties == "first":
            left[~self._factor.kept] = 0.0
        return left

    def _sums_of_values(self) -> FloatArray:
        """(cells, m) sums of the model values; only subsets added since the last call need a pass."""
        known, count = self._summed, len(self.family.subsets)
        if known < count:
            sums = self._phi(slice(known, count)).analyse(self._sample.weighted_values)
            new = slice(int(self.family.cell_start[known]), None)
            self._sums, self._summed = np.concatenate([self._sums, sums[new]]), count
        return self._sums

    def _phi(self, subsets: slice | None = None) -> Phi:
        """The cells of the family so far, or of a run of its subsets, at the rows."""
        return Phi(self.family, self._sample, self._request.threads, subsets=subsets)

    def _null(self, null: FloatArray) -> FloatArray:
        """Dependences; functions considered after the rank limit was reached are not dependent, only not needed."""
        if not self.full:
            return null
        last = int(np.flatnonzero(self._factor.kept)[-1])
        return null[:, ~null[last + 1 :].any(axis=0)]
