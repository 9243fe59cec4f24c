"""The fit on other clusters: rows that were drawn together are left out together, and the others fitted again.

Rows of a cluster are alike. A row left out alone is predicted by its neighbours, which says nothing about clusters that
were not drawn. So whole clusters are left out, a fifth of them at a time, and predicted by the same fit to the others.
Levels that occur in no other cluster are unknown then: their effects count as 0, as for any new row.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from exanova.data.sample import Sample
from exanova.effects.at_rows import fitted_part
from exanova.errors import ExanovaError
from exanova.fitting import fit_sample, plan_fit
from exanova.progress import Progress
from exanova.select.selected_fit import with_own_levels
from exanova.solve.request import Request
from exanova.typing import Codes, FloatArray, IntArray

METHOD = "leaving out a fifth of the clusters at a time"

FOLDS, ENOUGH_ROWS, ENOUGH_CLUSTERS = 5, 2000, 100
"""Parts that are left out in turn, and the numbers of rows and clusters left out at which this stops."""


def errors_on_clusters(sample: Sample, request: Request, progress: Progress) -> FloatArray | None:
    """(m,) mean squared error on clusters that were left out, beside the variance within equal rows.

    ``None`` if there is one cluster only, or if the others cannot be fitted.
    """
    draws = sample.draws
    assert draws is not None
    assert draws.cluster is not None
    fold, parts = folds_of(draws.cluster, request.random_state)
    if parts < 2:
        return None
    left_out, fitted = np.zeros(len(fold), dtype=bool), np.zeros((len(fold), sample.n_outputs))
    for k in range(parts):
        if enough_left_out(left_out, draws.cluster):
            break
        out = fold == k
        try:
            fitted[out] = _predicted(sample, ~out, request, progress)[draws.group[out]]
        except ExanovaError:
            return None
        left_out |= out
    rows = sample.values[draws.group]
    values = rows if draws.values is None else draws.values
    missed = (values - fitted) ** 2 - (values - rows) ** 2
    p = draws.weight[left_out] / draws.weight[left_out].sum()
    return np.asarray(p @ missed[left_out])


def _predicted(sample: Sample, kept: NDArray[np.bool_], request: Request, progress: Progress) -> FloatArray:
    """(r, m) every distinct row predicted by the fit to the raw rows ``kept`` (k,)."""
    return predicted_by(sample.of_draws(kept), sample.codes, request, progress)


def predicted_by(part: Sample, others: Codes, request: Request, progress: Progress) -> FloatArray:
    """(n, m) what the fit to some rows predicts at the codes (d, n) of others; levels that it lacks are unknown."""
    number = [np.where(has, np.cumsum(has) - 1, -1) for has in part.levels_present()]
    own, asked = with_own_levels(part, request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows has warned
        solved, _ = fit_sample(own, asked, *plan_fit(asked, own, own.n_outputs), progress)
    codes = np.stack([new[row] for new, row in zip(number, others, strict=True)]).astype(np.int32)
    return fitted_part(solved.everywhere, codes, request.threads)


def folds_of(unit: IntArray, seed: int | None) -> tuple[IntArray, int]:
    """(k,) the part in which the unit 0, 1, .. of every row is left out, at random, and the number of parts."""
    count = int(unit.max()) + 1
    parts = min(FOLDS, count)
    return np.asarray(np.random.default_rng(seed).permutation(count) % parts)[unit], parts


def enough_left_out(left_out: NDArray[np.bool_], cluster: IntArray | None) -> bool:
    """Whether the rows ``left_out`` (k,) suffice to evaluate a fit; of clusters, more than a few have to be."""
    if left_out.sum() < ENOUGH_ROWS:
        return False
    return cluster is None or len(np.unique(cluster[left_out])) >= ENOUGH_CLUSTERS
