"""Measurements of a result on the rows: the fitted part, and means of model and residual on cells.

A route that refines its solution on the rows has made these passes for the effects it returns; for the others this
module makes one pass from cells to rows, and one or two back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exanova.data.sample import Sample
from exanova.effects.norms import covariances
from exanova.phi.operator import Phi
from exanova.solve.evidence import AtRows, Solved
from exanova.typing import FloatArray

TOGETHER = 4
"""Outputs up to which model and residual share a pass: it reads codes once, but holds twice as many numbers."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements on the rows of a fit, in normalised units.

    Attributes:
        fitted: (r, m) sum of all effects at every distinct row.
        covariance: (S, m) Cov(f_A, f) of every effect with the model.
        variance: (m,) Var f of the model as it was given.
        residual_means: (m,) largest absolute mean of the residual in any cell of the family.
    """

    fitted: FloatArray
    covariance: FloatArray
    variance: FloatArray
    residual_means: FloatArray


def passed(sample: Sample, solved: Solved, threads: int = 1) -> Solved:
    """The same result with a pass over the rows, where rows will be left out by their leverage: that reads it too."""
    if solved.passed_over or solved.solution.leverage is None:
        return solved
    return replace(solved, at_rows=_pass_over(sample, solved, threads))


def measure(sample: Sample, solved: Solved, threads: int = 1) -> Measured:
    """Measure a result on its own rows, unless the last pass was over these very effects."""
    known = solved.passed_over or _pass_over(sample, solved, threads)
    share = solved.family.weight / solved.family.weight[0]
    return Measured(
        known.fitted,
        covariances(solved.family, solved.values, known.model),
        sample.variance + sample.within_variance,
        (np.abs(known.residual) / share[:, None]).max(axis=0),
    )


def _pass_over(sample: Sample, solved: Solved, threads: int) -> AtRows:
    """The effects at the rows, and expectations of model and residual in every cell: one pass if outputs are few."""
    phi = Phi(solved.family, sample, threads)
    fitted = phi.synthesise(solved.values)
    p, m = sample.probability, sample.n_outputs

    def model(rows: slice) -> FloatArray:
        return np.asarray(p[rows, None] * sample.values[rows])

    def residual(rows: slice) -> FloatArray:
        return np.asarray(p[rows, None] * (sample.values[rows] - fitted[rows]))

    if m > TOGETHER:
        return AtRows(solved.values, fitted, phi.analyse_blocks(model), phi.analyse_blocks(residual))
    sums = phi.analyse_blocks(lambda rows: np.hstack([model(rows), residual(rows)]))
    return AtRows(solved.values, fitted, sums[:, :m], sums[:, m:])
