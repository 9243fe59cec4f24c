"""The driver of a fit: plan it, then solve for the given family, shrink its effects, or select a family under a budget.

request, sample  ->  plan_fit  ->  plan, survey  ->  fit_sample  ->  effects with the evidence of the solve
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from exanova.basis.projector import LARGEST_TABLE
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.parallel import blas_threads
from exanova.progress import Progress
from exanova.select.automatic import all_candidates, fit_automatic, needs_no_budget
from exanova.select.record import Selection
from exanova.select.selected_fit import fit_selected
from exanova.select.selection_plan import plan_selection
from exanova.shrink.fit import fit_shrunk
from exanova.shrink.planned import completed
from exanova.shrink.unshrunk import why_not
from exanova.solve.evidence import Shrinkage, Solved
from exanova.solve.plan import Plan, within_limit
from exanova.solve.planning import make_plan, priced
from exanova.solve.request import Request
from exanova.solve.routes import ROUTES
from exanova.solve.run import run_plan
from exanova.solve.survey import Survey

MOST_LISTED = 3000
"""Functions of a complete table up to which its effects are shrunk if the rows are a sample."""


def plan_fit(request: Request, sample: Sample, outputs: int = 1) -> tuple[Plan, Survey | None]:
    """The plan of a fit and the survey of its cells; no survey if a selection will choose the subsets."""
    if needs_no_budget(request, sample, outputs):
        return _plan_family(all_candidates(request), sample, outputs)
    if request.selection:
        return plan_selection(request, sample, outputs), None
    return _plan_family(request, sample, outputs)


def _plan_family(request: Request, sample: Sample, outputs: int) -> tuple[Plan, Survey]:
    plan, survey = make_plan(request, sample, outputs)
    return completed(plan, survey, request, sample, outputs), survey


def fit_sample(
    sample: Sample, request: Request, plan: Plan, survey: Survey | None, progress: Progress
) -> tuple[Solved, Selection | None]:
    """Run a plan; a plan made for other rows (before some were held out) is made again."""
    if not _made_for(plan, survey, sample):
        plan, survey = plan_fit(request, sample, sample.n_outputs)
    if survey is None:
        return (fit_automatic if request.auto_terms else fit_selected)(sample, request, plan, progress)
    request = all_candidates(request) if request.auto_terms else request
    reason = "" if request.shrinkage else None
    if request.shrinkage:
        family = _listed_family(sample, request, survey)
        reason = why_not(sample, request, plan, family)
        if reason is None and family is not None:
            with blas_threads(request.threads):
                exactly = partial(_fit_exactly, sample, request, plan, survey, progress)
                return fit_shrunk(sample, request, plan, family, progress, exactly), None
    solved = _fit_exactly(sample, request, plan, survey, progress)
    return (solved if reason is None else replace(solved, shrinkage=Shrinkage(reason))), None


def _made_for(plan: Plan, survey: Survey | None, sample: Sample) -> bool:
    """Whether a plan was made for these rows: as many distinct ones, of the same total weight."""
    if plan.distinct_rows != sample.n_rows:
        return False
    return survey is None or bool(survey.sample.weight.sum() == sample.weight.sum())


def _listed_family(sample: Sample, request: Request, survey: Survey) -> Family | None:
    """The family that effects are shrunk over; of a complete table it is listed where its functions are few enough."""
    if survey.family is not None:
        return survey.family
    if not request.sampled or survey.functions > MOST_LISTED or _has_no_table(sample):
        return None
    return make_plan(replace(request, route="dense"), sample, sample.n_outputs)[1].family


def _has_no_table(sample: Sample) -> bool:
    """Whether all features of a complete table together have too many cells for a table of their functions."""
    return len(sample.varying) > 2 and sample.n_rows > LARGEST_TABLE


def _fit_exactly(sample: Sample, request: Request, plan: Plan, survey: Survey, progress: Progress) -> Solved:
    if sample.n_outputs != survey.outputs:  # known only now
        survey = replace(survey, sample=sample, outputs=sample.n_outputs)
        known = within_limit(priced(request, survey, ROUTES[plan.route]))
        known = completed(known, survey, request, sample, sample.n_outputs)
        plan = replace(known, model_calls=plan.model_calls)
    return run_plan(sample, request, plan, survey, progress)
