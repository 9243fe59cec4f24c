"""The plan of a fit with the cost beyond its route: shrinkage, or rows left out of the exact fit."""

from __future__ import annotations

from dataclasses import replace

from exanova.basis.functions import too_large_for_tables
from exanova.data.sample import Sample
from exanova.phi.gram import gram_seconds
from exanova.shrink import cost
from exanova.shrink.evaluate import CHEAP_WORK, LARGEST
from exanova.shrink.left_out import FEWEST_SAMPLED
from exanova.shrink.speed import (
    drifting_seconds,
    kernel_seconds,
    leaving_out_seconds,
    ranking_seconds,
    shrinking_seconds,
)
from exanova.shrink.unshrunk import bytes_of, why_not
from exanova.solve import price
from exanova.solve.plan import Plan
from exanova.solve.price import Load
from exanova.solve.request import Request
from exanova.solve.seconds import pass_seconds, passes_and_local_work, reading
from exanova.solve.survey import Survey
from exanova.solve.traits import traits_of

SHRINKING_PASSES = 12
"""Passes over the rows of a shrunken fit."""


def completed(plan: Plan, survey: Survey, request: Request, sample: Sample, outputs: int) -> Plan:
    """The plan with the memory and seconds of shrinkage, if effects will be shrunk, or of leaving rows out."""
    family, load = survey.family, survey.load
    if family is None:
        return plan
    r, q = sample.n_rows, plan.functions
    listing = price.listing(survey.keys, survey.subsets)
    measuring = price.measuring(survey.keys, survey.cells, survey.subsets, load)
    if request.shrinkage and why_not(sample, request, plan, family) is None:
        needed = max(bytes_of(q, family, load), cost.ranking(q, load))
        shrinking = with_refits(load.peak(needed, listing, measuring), load, request)
        by_functions = cost.way(r, q, bool(too_large_for_tables(family).any())) == "functions"
        if by_functions:
            common = passes_and_local_work(survey, SHRINKING_PASSES, 2 * q) + gram_seconds(family, q, sample.weight)
        else:
            common = reading(sample) + SHRINKING_PASSES * pass_seconds(survey) + kernel_seconds(family)
        shrunk = shrinking_seconds(r, q, outputs, survey.subsets) + ranking_seconds(q)
        shrunk += drifting_seconds(r, q, outputs, family)
        return replace(plan, memory=shrinking, seconds=common + shrunk)
    plan = replace(plan, memory=with_refits(plan.memory, load, request))
    if not _leaves_rows_out(request, plan, survey):
        return plan
    more = gram_seconds(family, q, sample.weight) + leaving_out_seconds(r, q)
    held = load.peak(cost.leaving_out(q, load))
    memory = max(plan.memory, held) if held <= request.memory_limit else plan.memory
    return replace(plan, memory=memory, seconds=plan.seconds + more)


def with_refits(memory: int, load: Load, request: Request) -> int:
    """The memory of a fit that leaves clusters out and fits the others again, unless that is beyond the limit."""
    again = memory + load.beside_refits
    return again if load.clustered is not None and request.sampled and again <= request.memory_limit else memory


def _leaves_rows_out(request: Request, plan: Plan, survey: Survey) -> bool:
    """Whether rows will be left out of the exact fit one at a time: if that is cheap, or shrinkage was requested."""
    q, r = float(plan.functions), survey.sample.n_rows
    if not request.sampled or request.ridge or q > LARGEST or traits_of(plan.route).iterates or plan.selection:
        return False
    return request.shrinkage or q**2 * (q + min(r, max(q, FEWEST_SAMPLED))) <= CHEAP_WORK
