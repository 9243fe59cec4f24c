"""Completion route: every order of a table with missing cells, without a matrix over the functions.

A function on the observed cells is completed by one of the lowest order that suffices
(:mod:`exanova.solve.completing`), which is decomposed from its highest order down (:mod:`exanova.solve.purifying`). The
functions of that order that vanish on the observed cells, decomposed in the same way, are the dependences among the
functions of the family, and say by how much energy can be saved (:mod:`exanova.solve.least_energy`). What the effects
leave of the model at the rows is decomposed once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, order_slices
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.solve.choice import span_ranks
from exanova.solve.completing import Completion, completion_of
from exanova.solve.evidence import AtRows, Solution
from exanova.solve.least_energy import Shortening, shortenings
from exanova.solve.low_cells import LowCells
from exanova.solve.moments_route import Projections, within_tolerance
from exanova.solve.purifying import purified
from exanova.typing import FloatArray

REFINEMENTS = 4


class NotEveryFunction(Exception):
    """The functions of a family are not all functions on the rows: a higher order is needed."""


def solve_completion(
    sample: Sample, family: Family, basis: Basis, threads: int, progress: Progress
) -> tuple[Solution, AtRows | None]:
    """Coefficients over the functions of all subsets up to an order that suffices, and what they give at the rows."""
    progress.phase("completing the table")
    completion = completion_of(LowCells.of(family, sample.codes), sample.codes)
    if not (_suffices(sample, family, threads) if completion.suffices is None else completion.suffices):
        raise NotEveryFunction
    progress.phase("decomposing from the highest order down")
    orders = order_slices(family, basis)
    decomposed = _Decomposed(completion, family, basis)
    first, dependences = decomposed.with_dependences(sample.values)
    steps = shortenings(dependences, orders, basis.n_functions - sample.n_rows)
    project = _projections(sample, family, basis, threads)
    coefficients, residual, used = _refined(decomposed, steps, project, first)
    redundant = {step.functions.start: step.rank for step in steps}
    clear = len(steps) <= 1 and not any(step.dropped for step in steps)
    solution = Solution(
        coefficients=coefficients,
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=tuple(part.stop - part.start - redundant.get(part.start, 0) for part in orders),
        smallest_kept=float("nan") if clear else min(step.smallest for step in steps),
        largest_dropped=max((step.dropped for step in steps), default=0.0),
        null=_columns(steps, basis.n_functions),
        iterations=used,
        residual=residual,
        method="completion of the table",
        converged=within_tolerance(residual, basis.n_functions),
    )
    return solution, project.at_rows(coefficients)


def _suffices(sample: Sample, family: Family, threads: int) -> bool:
    """Whether the functions of the family are all functions on the rows, exactly."""
    return sum(span_ranks(sample.codes, sample.sizes, family.subsets, threads)) == sample.n_rows


@dataclass(frozen=True, eq=False)
class _Decomposed:
    """From values at the rows to coefficients, of some decomposition."""

    completion: Completion
    family: Family
    basis: Basis

    def __call__(self, values: FloatArray) -> FloatArray:
        """(q, m) coefficients for (r, m) values at the rows."""
        return self._purified(self.completion.completed(values))

    def with_dependences(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(q, m) coefficients for (r, m) values at the rows, and (q, k) of functions that vanish there."""
        outputs = values.shape[1]
        tables = self.completion.vanishing(outputs)
        free = tables.shape[1] - outputs
        tables[:, free:] = self.completion.completed(values)
        pure = self._purified(tables)
        return pure[:, free:].copy(), pure[:, :free]

    def _purified(self, on_low_cells: FloatArray) -> FloatArray:
        low = self.completion.low
        return purified(self.family, self.basis, low, low.to_tables(on_low_cells))


def _projections(sample: Sample, family: Family, basis: Basis, threads: int) -> Projections:
    phi = Phi(family, sample, threads)
    sums = phi.analyse_blocks(lambda rows: sample.probability[rows, None] * sample.values[rows])
    return Projections(phi, basis, sample, sums)


def _refined(
    decomposed: _Decomposed, steps: list[Shortening], project: Projections, coefficients: FloatArray
) -> tuple[FloatArray, float, int]:
    """Coefficients of least energy, the residual of their equations and the number of passes.

    What is left at the rows is decomposed as well, until it is rounding.
    """
    sample = project.sample
    scale = max(float(np.abs(project(None)).max(initial=0.0)), np.finfo(np.float64).tiny)
    best, residual, used = coefficients, np.inf, 0
    shortest = _shortest(steps, coefficients)
    while used < REFINEMENTS:
        used += 1
        size = float(np.abs(project(shortest)).max(initial=0.0)) / scale
        size = max([size, *(step.remaining(shortest) for step in steps)])
        if size >= residual:
            break
        best, residual, at_rows = shortest, size, project.at_rows(shortest)
        small = tolerances.NORMAL_EQUATIONS if used > 1 else tolerances.ITERATIVE
        if residual <= small or at_rows is None:
            break
        shortest = _shortest(steps, shortest + decomposed(sample.values - at_rows.fitted))
    return best, residual, used


def _shortest(steps: list[Shortening], coefficients: FloatArray) -> FloatArray:
    for step in steps:
        coefficients = step.shortened(coefficients)
    return coefficients


def _columns(steps: list[Shortening], size: int) -> FloatArray:
    """(q, k) all dependences, side by side."""
    columns = [step.columns for step in steps]
    if not columns:
        return np.zeros((size, 0))
    return columns[0] if len(columns) == 1 else np.hstack(columns)
