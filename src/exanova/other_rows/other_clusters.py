"""The fit on other clusters: rows that were drawn together are left out together, and the others fitted again.

Rows of a cluster are alike. A row left out alone is predicted by its neighbours, which says nothing about clusters that
were not drawn. So whole clusters are left out, a fifth of them at a time, and predicted by the same fit to the others.
Levels that occur in no other cluster are unknown then: those of numbers and bins are read from their neighbours, and
the effects of others count as 0, as for any new row.

R2 compares their errors with the variance of the model, which the rows of few clusters understate: these are alike, and
their own mean is too near to them. The mean of C clusters, each left out in turn, would have an R2 of
1 - (C / (C - 1))^2 instead of about -1/C. Half the mean squared difference of two rows of *different* clusters has no
such bias (:func:`variance_across`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from exanova.data.between import Between, between
from exanova.data.folds import enough_left_out, folds_of
from exanova.data.sample import Sample
from exanova.design.between_levels import with_places
from exanova.effects.at_rows import fitted_part
from exanova.errors import ExanovaError
from exanova.fitting import fit_sample, plan_fit
from exanova.progress import Progress
from exanova.select.selected_fit import with_own_levels
from exanova.solve.request import Request
from exanova.solve.survey import load_of
from exanova.typing import Codes, FloatArray, IntArray

METHOD = "leaving out a fifth of the clusters at a time"


def errors_on_clusters(sample: Sample, request: Request, progress: Progress) -> FloatArray | None:
    """(m,) mean squared error on clusters that were left out, beside the variance within equal rows.

    ``None`` if there is one cluster only, or if the others cannot be fitted (within memory, beside all rows).
    """
    draws = sample.draws
    assert draws is not None
    assert draws.cluster is not None
    fold, parts = folds_of(draws.cluster, request.random_state)
    if parts < 2:
        return None
    # What is held meanwhile counts towards the limit.
    beside = load_of(sample, sample.n_outputs).beside_refits
    request = replace(request, memory_limit=max(1, request.memory_limit - beside))
    left_out, fitted = np.zeros(len(fold), dtype=bool), np.zeros((len(fold), sample.n_outputs))
    for k in range(parts):
        if enough_left_out(left_out, draws.cluster, draws.counts):
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


def variance_across(values: FloatArray, weight: FloatArray, cluster: IntArray) -> FloatArray:
    """(m,) variance of the population of clusters: half the mean squared difference of rows of different clusters.

    >>> variance_across(np.array([[1.0], [1.0], [4.0]]), np.ones(3), np.array([0, 0, 1]))
    array([4.5])
    """
    p = weight / weight.sum()
    share = np.bincount(cluster, p)
    means = np.stack([np.bincount(cluster, p * column) for column in values.T], axis=1) / share[:, None]
    inside = (p * share[cluster]) @ (values - means[cluster]) ** 2
    different = 1.0 - float(share @ share)
    return np.asarray((p @ (values - p @ values) ** 2 - inside) / different)


def of_raw_rows(sample: Sample) -> tuple[FloatArray, FloatArray, IntArray]:
    """(k, m) values, (k,) weights and (k,) clusters of the raw rows of a sample that was drawn in clusters."""
    draws = sample.draws
    assert draws is not None
    assert draws.cluster is not None
    values = sample.values[draws.group] if draws.values is None else draws.values
    return values, draws.weight.astype(np.float64), draws.cluster


def _predicted(sample: Sample, kept: NDArray[np.bool_], request: Request, progress: Progress) -> FloatArray:
    """(r, m) every distinct row predicted by the fit to the raw rows ``kept`` (k,)."""
    return predicted_by(sample.of_draws(kept), sample.codes, request, progress)


def predicted_by(part: Sample, others: Codes, request: Request, progress: Progress) -> FloatArray:
    """(n, m) what the fit to some rows predicts at the codes (d, n) of others; levels that it lacks are unknown."""
    own, asked = with_own_levels(part, request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows has warned
        solved, _ = fit_sample(own, asked, *plan_fit(asked, own, own.n_outputs), progress)
    shrunk = solved.shrinkage is not None and solved.shrinkage.continuation is not None
    number, places = _own_codes(part.levels_present(), request.neighboured if shrunk else ())
    codes = np.stack([new[row] for new, row in zip(number, others, strict=True)]).astype(np.int32)
    read = with_places(solved.everywhere, places) if places else solved.everywhere
    return fitted_part(read, codes, request.threads)


def _own_codes(
    present: Sequence[NDArray[np.bool_]], neighboured: Sequence[int]
) -> tuple[list[IntArray], dict[int, Between]]:
    """For each feature the code of every level in a fit to the levels ``present``, -1 for none, and its places.

    Of the first ``neighboured`` levels those that are absent have the code of a place between the present ones.
    """
    number, places = [], {}
    for i, (has, first) in enumerate(zip(present, neighboured or [0] * len(present), strict=True)):
        codes = np.where(has, np.cumsum(has) - 1, -1)
        absent = np.flatnonzero(~has[:first])
        levels = np.flatnonzero(has[:first]).tolist()
        found = between(levels, [str(level) for level in levels]) if len(absent) else None
        if found is not None:
            codes[absent] = int(has.sum()) + found.find(absent.astype(np.float64))
            places[i] = found
        number.append(codes)
    return number, places
