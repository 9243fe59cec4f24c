"""The noise in shrunken effects: how a residual moves the posterior mean, and the bias of shrinkage.

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

from exanova.basis.functions import Basis
from exanova.design.family import Family
from exanova.shrink.coordinates import Prior
from exanova.shrink.posterior import OutputGroup, Posterior
from exanova.typing import FloatArray


def inverse_of(posterior: Posterior, part: OutputGroup, family: Family, basis: Basis) -> FloatArray:
    """(q, q) n L S M S L^T for the outputs of a part, with 1 for the intercept, which is not shrunk."""
    scale, factors = posterior.scale(part), columns_on_functions(posterior.prior, family, basis)
    inner = scale[:, None] * part.spread.covariance(np.eye(len(scale))) * scale
    half = np.zeros((basis.n_functions, len(scale)))
    for functions, own, factor in factors:
        half[functions] = factor @ inner[own]
    out = np.zeros((basis.n_functions, basis.n_functions))
    for functions, own, factor in factors:
        out[:, functions] = half[:, own] @ factor.T
    out *= posterior.count
    out[0, 0] = 1.0
    return out


def inverse_on_columns(posterior: Posterior, part: OutputGroup) -> FloatArray:
    """(1 + k, 1 + k) the same between the columns themselves, where functions are too many: n S M S."""
    scale = posterior.scale(part)
    out = np.zeros((len(scale) + 1, len(scale) + 1))
    out[1:, 1:] = scale[:, None] * part.spread.covariance(np.eye(len(scale))) * scale
    out *= posterior.count
    out[0, 0] = 1.0
    return out


def columns_as_basis(prior: Prior, family: Family) -> Basis:
    """The intercept and the columns of a prior in place of all functions."""
    tables = [np.zeros((n, 0)) for n in np.diff(family.cell_start).tolist()]
    tables[0] = np.ones((1, 1))
    for s, _, table in prior.groups():
        tables[s] = table
    start = np.concatenate([[0], np.cumsum([table.shape[1] for table in tables])]).astype(np.int64)
    return Basis(tuple(tables), start)


def columns_on_functions(prior: Prior, family: Family, basis: Basis) -> list[tuple[slice, slice, FloatArray]]:
    """For each subset with columns, its functions, its columns, and L: the columns in terms of the functions."""
    out = []
    for s, own, table in prior.groups():
        weighted = family.probability_of(s)[:, None] * table
        out.append((basis.functions_of(s), own, basis.table(s).T @ weighted))
    return out
