"""Automatic choice of the budget: budgets that double, each evaluated on held-out rows.

Where all subsets are affordable no budget is needed: the likelihood shrinks what the rows do not support. In high
dimension screening proposes subsets, and the gain on the rows it uses always favours more of them. So screening runs on
part of the rows (``Sample.split``), with one budget after the other; the fit of each family is evaluated on the
held-out rows; and the smallest budget about as good as the best is used on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from exanova.data.sample import Sample
from exanova.errors import InputError
from exanova.progress import Progress
from exanova.select.gains import cost as cost_of
from exanova.select.record import Selection, Trial
from exanova.select.selected_fit import HELD_OUT, errors_on, fit_selected, with_budget
from exanova.select.selection_plan import functions_within, mains_of, plan_selection
from exanova.shrink import cost
from exanova.solve.evidence import Solved
from exanova.solve.plan import Plan
from exanova.solve.request import Request
from exanova.typing import FloatArray

FIRST = 32
"""Functions beyond the main effects of the first budget, at least; every further budget has twice as many."""

PATIENCE = 2
"""Number of consecutive budgets without improvement after which the search ends."""

AS_GOOD = 0.002
"""Share of the variance by which a smaller budget may be worse than the best and be preferred."""


def needs_no_budget(request: Request, sample: Sample, outputs: int) -> bool:
    """Whether all candidates are affordable, so that shrinkage chooses among them and a budget is not needed."""
    if not (request.auto_terms and request.shrinkage and request.sampled):
        return False
    if request.basis != "pure" or request.ties != "share" or request.ridge:
        return False
    functions = functions_within(sample.sizes, request.max_order)
    if request.candidates is not None:
        functions = sum(cost_of(sample.sizes, subset) for subset in request.candidates)
    return cost.affords_all(sample.n_rows, functions, outputs)


def all_candidates(request: Request) -> Request:
    """The request for all candidates at once."""
    return replace(
        request, subsets=request.candidates, candidates=None, selection=None, max_terms=None, auto_terms=False
    )


def fit_automatic(sample: Sample, request: Request, plan: Plan, progress: Progress) -> tuple[Solved, Selection]:
    """Find the budget with the best fit on held-out rows and use it on all rows; only main effects if rows are few."""
    trials = try_budgets(sample, request, progress)
    budget = mains_of(sample.sizes)
    if trials:
        budget = trials[where_to_stop(np.array([[1.0 - trial.r2] for trial in trials]), np.ones(1))].budget
    solved, selection = fit_selected(sample, with_budget(request, budget), plan, progress)
    return solved, replace(selection, trials=tuple(trials))


def try_budgets(sample: Sample, request: Request, progress: Progress) -> list[Trial]:
    """The fit on held-out rows for budgets that double, until it stops improving; none if no row can be held out."""
    try:
        train, held = sample.split_to_choose(HELD_OUT, request.random_state)
    except InputError:  # too few rows
        return []
    variance = held.probability @ (held.values - train.probability @ train.values) ** 2
    trials: list[Trial] = []
    for budget in budgets(sample, request):
        progress.phase(f"trying a budget of {budget:,} functions")
        asked = with_budget(request, budget)
        solved = fit_selected(train, asked, plan_selection(asked, train, sample.n_outputs), progress)[0]
        r2 = 1.0 - _relative(errors_on(held, solved, request.threads), variance)
        functions = int(solved.plan.functions)
        stuck = bool(trials) and functions <= trials[-1].functions
        trials.append(Trial(budget, functions, r2))
        best = int(np.argmax([trial.r2 > max(t.r2 for t in trials) - AS_GOOD for trial in trials]))
        if stuck or len(trials) - 1 - best >= PATIENCE:
            break
    return trials


def budgets(sample: Sample, request: Request) -> Iterator[int]:
    """The main effects alone, then budgets that double the number of further functions, up to the largest."""
    assert request.max_terms is not None
    mains = mains_of(sample.sizes)
    largest, more = max(mains, request.max_terms), max(FIRST, mains // 4)
    yield mains
    while mains + more < largest:
        yield mains + more
        more *= 2
    if largest > mains:
        yield largest


def where_to_stop(errors: FloatArray, variance: FloatArray) -> int:
    """Number of the smallest family that is about as good as the best: ``errors`` (F, m), ``variance`` (m,).

    >>> where_to_stop(np.array([[0.5], [0.2], [0.1], [0.0999], [0.12]]), np.array([1.0]))
    2
    """
    relative = np.array([_relative(one, variance) for one in errors])
    return int(np.flatnonzero(relative <= relative.min() + AS_GOOD)[0])


def _relative(errors: FloatArray, variance: FloatArray) -> float:
    """Mean over the outputs that vary of their error as a share of their variance."""
    varying = variance > 0
    return float((errors[varying] / variance[varying]).mean()) if varying.any() else 0.0
