"""The fit of a selected family, and the evaluation of a selection with its fit on rows not used for it.

Leave-one-out errors in closed form ignore the selection, which used all rows. So part of the rows is held out, the
selection is repeated on the others, and its fit is evaluated on those held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from exanova.data.sample import NewRows, Sample
from exanova.design.family import build_family
from exanova.errors import InputError
from exanova.parallel import blas_threads
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select.budget import Chosen, select_family, to_decompose
from exanova.select.record import Selection
from exanova.select.selection_plan import mains_of, plan_selection
from exanova.shrink.fit import fit_family
from exanova.shrink.ratios import KnownRatios, known_ratios
from exanova.shrink.unshrunk import never_shrunk
from exanova.solve.evidence import Solved
from exanova.solve.plan import Plan
from exanova.solve.request import Request
from exanova.typing import FloatArray, Subset

HELD_OUT = 0.2
"""Fraction of the rows on which a selection is evaluated."""

FEW_ROWS, SPLITS = 2000, 3
"""Distinct rows up to which a selection is evaluated on several random splits, and how many: one is too noisy."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A fit repeated on part of the rows and evaluated on the others.

    Attributes:
        mse: (m,) mean squared error on held-out rows, in normalised units.
        splits: random splits it is averaged over.
    """

    mse: FloatArray
    splits: int


def fit_selected(sample: Sample, request: Request, plan: Plan, progress: Progress) -> tuple[Solved, Selection]:
    """Select a family under a budget, then fit it: shrunk if that is requested and the rows are a sample."""
    chosen = choose_family(sample, request, plan, progress)
    with blas_threads(request.threads):
        if not request.shrinkage:
            return chosen.exactly(), chosen.selection
        known = partial(ratios_of_others, sample, request, progress)
        return fit_family(sample, request, chosen.subsets, progress, chosen.exactly, known), chosen.selection


def choose_family(sample: Sample, request: Request, plan: Plan, progress: Progress) -> Chosen:
    """Select a family; if effects will be shrunk, screening uses the residual of shrunken effects too.

    With about as many main effects as rows, an exact fit of them leaves no residual.
    """
    if request.selection != "screen" or not request.shrinkage or never_shrunk(request) or not sample.varying:
        return select_family(sample, request, plan, progress)
    held_back = replace(request, ridge=ridge_of_mains(sample, request, progress))
    chosen = select_family(sample, held_back, plan, progress)
    return to_decompose(sample, request, chosen.subsets, chosen.selection, progress)


def ridge_of_mains(sample: Sample, request: Request, progress: Progress) -> float:
    """Penalty on orthonormal functions under which main effects are shrunk according to their likelihood.

    A function of variance s under noise tau^2 on n rows has the penalty tau^2 / (n s); its order has the ratio
    lambda = q s / tau^2 for q functions. The outputs share one penalty.
    """
    mains = ((), *((i,) for i in sample.varying))
    family = build_family(sample.codes, sample.mass, sample.sizes, mains, request.threads)
    ratios = known_ratios(sample, request, family, progress)
    if not ratios:
        return 0.0
    ratio = float(np.exp(np.median([logs[1] for logs in ratios.values()])))
    return (mains_of(sample.sizes) - 1) / (float(sample.copies.sum()) * ratio)


def ratios_of_others(sample: Sample, request: Request, progress: Progress) -> KnownRatios | None:
    """Variance components of a selected family, from rows that did not select it; ``None`` where rows are too few.

    Subsets that were chosen because they fit the noise of some rows look strong on those. So half of the rows select a
    family with the same budget, and the likelihood of the other half gives the variance components of its orders.
    """
    if min(request.max_terms or sample.n_rows, sample.n_rows) <= mains_of(sample.sizes):
        return None
    try:
        chooses, tells = sample.split(0.5, request.random_state)
    except InputError:
        return None
    chosen = choose_family(chooses, request, plan_selection(request, chooses, sample.n_outputs), progress)
    return ratios_on_part(tells, request, chosen.subsets, progress)


def ratios_on_part(part: Sample, request: Request, subsets: tuple[Subset, ...], progress: Progress) -> KnownRatios:
    """Variance components of a family on part of the rows; levels without a row there have no function there."""
    own, request = with_own_levels(part, request)
    family = build_family(own.codes, own.mass, own.sizes, subsets, request.threads)
    return known_ratios(own, request, family, progress)


def with_own_levels(part: Sample, request: Request) -> tuple[Sample, Request]:
    """Part of the rows with the levels that occur there numbered again, and the request for them."""
    levels = part.levels_present()
    ordered, neighboured = (
        tuple(int(present[:first].sum()) for present, first in zip(levels, firsts, strict=bool(firsts)))
        for firsts in (request.ordered, request.neighboured)
    )
    own = part.without_absent_levels()
    named = (_that_vary(request.subsets, own), _that_vary(request.candidates, own))
    return own, replace(request, ordered=ordered, neighboured=neighboured, subsets=named[0], candidates=named[1])


def _that_vary(subsets: tuple[Subset, ...] | None, part: Sample) -> tuple[Subset, ...] | None:
    """The subsets without a feature that is constant in part of the rows."""
    varying = set(part.varying)
    return None if subsets is None else tuple(s for s in subsets if varying.issuperset(s))


def errors_on(judges: Sample, solved: Solved, threads: int) -> FloatArray:
    """(m,) mean squared errors of a fit on other rows with the same codes."""
    rows, read = NewRows(judges.codes.astype(np.int32)), solved.everywhere
    fitted = Phi(read.family, rows, threads).synthesise(read.values)
    return np.asarray(judges.probability @ (judges.values - fitted) ** 2)


def splits_of(sample: Sample) -> int:
    """Random splits on which a selection from these rows is evaluated."""
    return SPLITS if sample.n_rows <= FEW_ROWS else 1


def judge_selection(sample: Sample, request: Request, progress: Progress) -> Judged:
    """Repeat a selection with a fixed budget on part of the rows, and evaluate it on the others."""

    def fit(train: Sample) -> Solved:
        return fit_selected(train, request, plan_selection(request, train, sample.n_outputs), progress)[0]

    return judge_fits(sample, request, fit)


def judge_fits(sample: Sample, request: Request, fit: Callable[[Sample], Solved]) -> Judged:
    """Fit part of the rows, and evaluate that fit on the others.

    Other rows drawn in the same way repeat combinations that occur as often as these do, so raw rows are held out.
    Their noise is counted elsewhere: of their squared errors, those from the mean of all equal rows are taken off.
    """
    splits, losses = splits_of(sample), []
    for k in range(splits):
        train, held, known = sample.split_raw(HELD_OUT, request.random_state + 1 + k)
        errors = errors_on(held, fit(train), request.threads)
        losses.append(errors - held.probability @ (held.values - known) ** 2)
    return Judged(np.mean(losses, axis=0), splits)


def with_budget(request: Request, budget: int | None) -> Request:
    """The same request with the budget that was found for it."""
    return replace(request, max_terms=budget, auto_terms=False)
