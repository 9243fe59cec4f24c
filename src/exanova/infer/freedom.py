"""Degrees of freedom of standard errors: how well the rows of a cell determine the spread of its value.

A standard error is an estimate itself, from as many squares as there are independent units. Residuals of a fit know
less than as many rows: 1 - h each, with h the leverage, n - rank of all rows together, and n_c - 1 of the n_c rows of a
level if that level is all a fit has. That sum over the rows of a cell is what Student's t is taken for. Clusters count
as clusters with rows in the cell, less one, and replicate weights as columns, less one.

A sum of effects has the degrees of freedom of its parts, weighted by their variances (Welch and Satterthwaite):
(sum of v)^2 / sum of v^2 / freedom.
"""

from __future__ import annotations

import numpy as np

from exanova.design.family import Family
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.units import raw_rows
from exanova.phi.operator import Phi
from exanova.typing import FloatArray


def cell_freedom(fitted: FittedSample, family: Family, free: FloatArray | None) -> FloatArray:
    """(cells,) degrees of freedom of the standard error of every cell, at least one.

    ``free`` (k,) is 1 - h at every raw row, or ``None`` where residuals are not used.
    """
    sample = fitted.sample
    draws = raw_rows(sample)
    if draws.replicates is not None:
        return np.full(family.n_cells, max(1.0, draws.replicates.shape[1] - 1.0))
    clusters = fitted.clusters_of_cells(family)
    if clusters is not None:
        return np.maximum(clusters - 1.0, 1.0)
    rows = fitted.rows_of_cells(family)
    if free is None:
        return np.maximum(rows - 1.0, 1.0)
    counts = draws.counts
    by_row = np.stack([np.bincount(draws.group, w, sample.n_rows) for w in (counts * free, counts)], axis=1)
    sums = Phi(family, sample, fitted.request.threads).analyse(by_row.astype(np.float64))
    return np.asarray(np.maximum(rows * sums[:, 0] / sums[:, 1], 1.0))


def joint_freedom(variance: FloatArray, freedom: FloatArray) -> FloatArray:
    """Degrees of freedom of sums whose independent parts, along the first axis, have these variances and freedoms.

    >>> joint_freedom(np.array([1.0, 1.0]), np.array([10.0, 10.0])).tolist()
    20.0
    >>> joint_freedom(np.array([0.0, 0.0]), np.array([10.0, 10.0])).tolist()
    inf
    """
    total, each = variance.sum(axis=0), (variance**2 / freedom).sum(axis=0)
    return np.asarray(np.divide(total**2, each, out=np.full(np.shape(total), np.inf), where=each > 0))
