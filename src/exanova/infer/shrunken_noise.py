"""The noise in shrunken effects: how a residual moves the posterior mean, and what shrinking takes away.

With columns Z = Phi L, their standard deviations S in units of tau, rows of precision D = n diag(omega) and
M = (I + S Z^T D Z S)^-1, the posterior mean is linear in the values: coordinates c = L S M S Z^T D y of the functions
Phi. The weight of a row moves it by its residual times n L S M S L^T t_i. So n L S M S L^T stands where an exact fit
has Gamma^-1, and becomes it as the prior widens.

Given the rows, the posterior covariance tau^2 M of z is the sum of two parts: tau^2 (M - M^2), the spread that noise of
variance tau^2 makes, and tau^2 M^2, the square of what shrinking takes away as the prior expects it. The first is
measured from the residuals of the rows instead, which need not be alike or independent; the second is taken from here.
"""

from __future__ import annotations

import numpy as np

from exanova.shrink.posterior import Part, Posterior, Spread
from exanova.typing import FloatArray


def inverse_of(posterior: Posterior, part: Part, functions: int) -> FloatArray:
    """(q, q) n L S M S L^T for the outputs of a part, with 1 for the intercept, which is not shrunk."""
    prior, columns = posterior.prior, len(part.scale)
    inner = part.scale[:, None] * _mean_map(part.spread, columns) * part.scale
    out = np.zeros((functions, functions))
    out[0, 0] = 1.0
    for row, left in zip(prior.groups(), prior.factors, strict=True):
        inner[row[1]] = left @ inner[row[1]]
    for column, right in zip(prior.groups(), prior.factors, strict=True):
        inner[:, column[1]] = inner[:, column[1]] @ right.T
    out[1:, 1:] = posterior.count * inner
    return out


def _mean_map(spread: Spread, columns: int) -> FloatArray:
    """(columns, columns) M."""
    return spread.covariance(np.eye(columns))
