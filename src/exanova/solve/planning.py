"""From a request and a sample to a plan: survey the cells order by order, choose a route, estimate its cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exanova.data.sample import Sample
from exanova.design.family import intercept_family
from exanova.errors import InputError
from exanova.solve import price
from exanova.solve.low_orders import arrow_feature
from exanova.solve.plan import Plan, refuse, within_limit
from exanova.solve.request import Request, orders_of
from exanova.solve.routes import ROUTES, Route
from exanova.solve.seconds import local_work
from exanova.solve.survey import Survey, complete_survey, dense_applies, is_product
from exanova.solve.traits import traits_of
from exanova.typing import Subset

MOMENTS_FUNCTIONS = 15_000
"""Functions above which passes over the rows cost less than a factorisation."""

GRID_FUNCTIONS = 200
"""Functions of a complete table from which the grid is tried before an orthogonal factorisation."""

QUICK, MUCH = 3.0, 3.0
"""Seconds of a Gram matrix, and their ratio to those of passes level by level, from which the latter are used: they do
not determine which subsets are redundant."""


def make_plan(request: Request, sample: Sample, outputs: int = 1) -> tuple[Plan, Survey]:
    """Survey the cells order by order and choose a route; raises if the plan does not fit in memory."""
    whole = _as_a_whole(request, sample, outputs)
    if whole is not None:
        return within_limit(priced(request, whole, ROUTES["grid"])), whole
    family = intercept_family(sample.sizes, float(sample.mass.sum()))
    survey = Survey(sample, outputs, (1,), family)
    cost = None
    for subsets in orders_of(request, sample.varying):
        _check_listing(survey, subsets, request)
        survey = survey.extended(subsets, request.threads)
        cost = _affordable(request, survey, len(subsets[0]))
        if request.every_order and survey.functions >= sample.n_rows:
            break
    return _plan_at(request, survey, *(cost or _affordable(request, survey))), survey


def _affordable(request: Request, survey: Survey, order: int | None = None) -> tuple[Route, int]:
    """The route of a surveyed family and its memory; raises if that does not fit. ``order`` is the highest listed."""
    route = choose(request, survey)
    memory = _memory(request, survey, route)
    if memory > request.memory_limit:
        refuse(_plan_at(request, survey, route, memory), order)
    return route, memory


def next_order(request: Request, plan: Plan, survey: Survey) -> tuple[Plan, Survey] | None:
    """The plan with one more order, if all orders are requested and there is another one; else ``None``."""
    if not request.every_order or survey.family is None:
        return None
    listed, varying = len(survey.family.subsets[-1]), survey.sample.varying
    if listed >= len(varying):
        return None
    subsets = list(orders_of(replace(request, max_order=listed + 1), varying))[-1]
    _check_listing(survey, subsets, request)
    wider = survey.extended(subsets, request.threads)
    return within_limit(priced(request, wider, ROUTES[plan.route]), listed + 1), wider


def unpriced(request: Request, sample: Sample) -> Plan:
    """The plan before the survey, without cost."""
    r, d, limit = sample.n_rows, len(sample.varying), request.memory_limit
    return Plan(sample.rows, r, d, request.max_order, 0, 0, 0, (), request.route, 0, limit, 0, r)


def priced(request: Request, survey: Survey, route: Route | None = None) -> Plan:
    """The plan for a surveyed family, by the requested route or the one chosen."""
    route = route or choose(request, survey)
    return _plan_at(request, survey, route, _memory(request, survey, route))


def _plan_at(request: Request, survey: Survey, route: Route, memory: int) -> Plan:
    """The plan for a surveyed family by a route that takes so much memory."""
    return replace(
        unpriced(request, survey.sample),
        subsets=survey.subsets,
        cells=survey.cells,
        functions=survey.functions,
        functions_by_order=survey.by_order,
        route=route.name,
        memory=memory,
        passes=route.passes(survey),
        local_work=0.0 if survey.family is None else local_work(survey.family, 0),
        seconds=route.seconds(survey),
    )


def choose(request: Request, survey: Survey) -> Route:
    """The requested route, or the most accurate one that is cheap enough."""
    named = request.route if request.route != "auto" else "matrix-free" if survey.has_large_pairs else "moments"
    refusal = ROUTES[named].refusal(request, survey)
    if refusal:
        raise InputError(refusal)
    if survey.has_large_pairs:
        return ROUTES["matrix-free"]
    if request.route != "auto":
        return ROUTES[request.route]
    even = request.basis == "pure" and survey.is_even
    if dense_applies(survey.sample.n_rows, survey.functions, even=even) and not request.ridge:
        return ROUTES["dense"]
    if request.is_plain and _is_faster_by_levels(survey):
        return ROUTES["matrix-free"]
    if _is_faster_completed(request, survey):
        return ROUTES["completion"]
    too_many = survey.functions > MOMENTS_FUNCTIONS
    beyond = too_many or _memory(request, survey, ROUTES["moments"]) > request.memory_limit
    return ROUTES["matrix-free" if request.is_plain and beyond else "moments"]


def _is_faster_completed(request: Request, survey: Survey) -> bool:
    """Whether all orders are found faster, and within the memory limit, by filling in the missing cells."""
    route, enough = ROUTES["completion"], survey.functions >= survey.sample.n_rows
    shrinks = request.shrinkage and request.sampled  # by Gram matrices, whatever the route
    if not enough or shrinks or route.refusal(request, survey) is not None:
        return False
    fits = _memory(request, survey, route) <= request.memory_limit
    return fits and route.seconds(survey) < ROUTES["moments"].seconds(survey)


def _is_faster_by_levels(survey: Survey) -> bool:
    """Whether a feature of many levels makes passes over the rows much faster than a Gram matrix."""
    assert survey.family is not None
    mains = survey.family.restricted(int(np.searchsorted(survey.family.layout.order, 2)))
    applies = len(survey.rows_of_levels) if len(survey.by_order) > 2 else arrow_feature(mains) is not None
    if not applies:
        return False
    moments = ROUTES["moments"].seconds(survey)
    return moments > QUICK and moments > MUCH * ROUTES["matrix-free"].seconds(survey)


def _as_a_whole(request: Request, sample: Sample, outputs: int) -> Survey | None:
    """The survey of a complete table that uses the grid route; ``None`` if another route is chosen."""
    if request.route not in ("auto", "grid"):
        return None
    survey = complete_survey(sample, outputs)
    refusal = ROUTES["grid"].refusal(request, survey)
    if request.route == "grid":
        if refusal:
            raise InputError(refusal)
        return survey
    worth = refusal is None and (survey.functions >= GRID_FUNCTIONS or is_product(sample))
    return survey if worth else None


def _memory(request: Request, survey: Survey, route: Route) -> int:
    """Peak memory of a fit by one route, in bytes."""
    measuring = price.measuring(survey.keys, survey.cells, survey.subsets, survey.load)
    listing = 0 if survey.family is None else price.listing(survey.keys, survey.subsets)
    needed = route.memory(request, survey)
    return survey.load.peak(needed, listing, measuring, few_arrays=traits_of(route.name).iterates)


def _check_listing(survey: Survey, subsets: list[Subset], request: Request) -> None:
    """Refuse one more order if listing its cells alone would not fit in memory."""
    family = survey.family
    assert family is not None
    prefix = np.array([family.position[s[:-1]] for s in subsets])
    keys = (family.cell_start[prefix + 1] - family.cell_start[prefix]) * family.sizes[[s[-1] for s in subsets]]
    needed = price.listing(int(family.n_keys + keys.sum()), len(family.subsets) + len(subsets))
    if needed > request.memory_limit:
        refuse(replace(unpriced(request, survey.sample), memory=needed), len(subsets[0]))
