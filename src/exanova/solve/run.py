"""Run a plan: its route, further orders if all are requested, and a fallback that the certificate reports."""

from __future__ import annotations

from dataclasses import replace

from exanova.data.sample import Sample
from exanova.parallel import blas_threads
from exanova.progress import Progress
from exanova.solve.completion import NotEveryFunction
from exanova.solve.evidence import Solved
from exanova.solve.plan import Plan
from exanova.solve.planning import make_plan, next_order
from exanova.solve.request import Request
from exanova.solve.routes import ROUTES, KnownGram, SolveJob
from exanova.solve.survey import Survey
from exanova.solve.traits import traits_of


def decompose(
    sample: Sample, request: Request, progress: Progress | None = None, known: KnownGram | None = None
) -> Solved:
    """Plan, then run the plan."""
    plan, survey = make_plan(request, sample, sample.n_outputs)
    return run_plan(sample, request, plan, survey, progress or Progress(enabled=False), known)


def run_plan(
    sample: Sample,
    request: Request,
    plan: Plan,
    survey: Survey,
    progress: Progress,
    known: KnownGram | None = None,
) -> Solved:
    """Run a plan that was made for this sample; ``known``: functions of its family and their Gram matrix."""
    with blas_threads(request.threads):
        solved = _first(SolveJob(sample, request, plan, survey, progress, known))
        if traits_of(plan.route).whole and request.route == "auto" and not solved.solution.converged:
            return decompose(sample, replace(request, route="dense"), progress)
        while traits_of(plan.route).repeats and solved.solution.rank < sample.n_rows:
            wider = next_order(request, plan, survey)
            if wider is None:
                break
            plan, survey = wider
            solved = ROUTES[plan.route].solve(SolveJob(sample, request, plan, survey, progress))
    return solved


def _first(job: SolveJob) -> Solved:
    """The result of a route, with as many orders more as it needs at least."""
    while True:
        try:
            return ROUTES[job.plan.route].solve(job)
        except NotEveryFunction:
            wider = next_order(job.request, job.plan, job.survey)
            assert wider is not None  # the functions of all features are all functions
            job = replace(job, plan=wider[0], survey=wider[1])
