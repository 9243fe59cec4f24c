"""What the rows say about a result, in one pass each way: the fitted part, and means of model and residual on cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.data.sample import Sample
from exanova.effects.norms import covariances
from exanova.phi.operator import Phi
from exanova.solve.evidence import Solved
from exanova.typing import FloatArray


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


def measure(sample: Sample, found: Solved, threads: int = 1) -> Measured:
    """Measure a result on its own rows: one pass from cells to rows, and one back for model and residual together."""
    phi, m = Phi(found.family, sample, threads), sample.n_outputs
    fitted = phi.synthesise(found.values)

    def weighted(rows: slice) -> FloatArray:
        values = sample.values[rows]
        return sample.probability[rows, None] * np.hstack([values, values - fitted[rows]])

    sums = phi.analyse_blocks(weighted)
    of_model, of_residual = sums[:, :m], sums[:, m:]
    share = found.family.weight / found.family.weight[0]
    return Measured(
        fitted,
        covariances(found.family, found.values, of_model),
        sample.variance + sample.within_variance,
        (np.abs(of_residual) / share[:, None]).max(axis=0),
    )
