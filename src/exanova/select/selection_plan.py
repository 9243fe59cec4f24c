"""The plan of a selection: it keeps at most its budget, so that its cost is known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exanova.data.sample import Sample
from exanova.solve import price
from exanova.solve.plan import STARTING, Plan, within_limit
from exanova.solve.planning import unpriced
from exanova.solve.request import Request
from exanova.solve.seconds import COMMON_WORDS, FLOPS, LOOKUPS
from exanova.solve.survey import load_of

LASSO_FUNCTIONS = 6000
"""Candidate functions of a lasso without a budget."""

PASSES = 16
"""Passes over the rows: rounds of screening, and the refinement of the selected family."""


def plan_selection(request: Request, sample: Sample, outputs: int = 1) -> Plan:
    """The plan for a factor of the size of the budget and the ranking of candidates; raises if it does not fit."""
    r, mains = sample.n_rows, mains_of(sample.sizes)
    q = request.max_terms or LASSO_FUNCTIONS
    q = q if request.shrinkage and request.max_terms else min(q, r)
    load = load_of(sample, outputs)
    plan = replace(
        unpriced(request, sample),
        functions=q,
        functions_by_order=(1, mains - 1, max(0, q - mains)),
        route=f"{request.selection} selection",
        memory=load.peak(*_phases(request, sample.sizes, q, load)),
        passes=PASSES,
        seconds=STARTING + PASSES * r * q / LOOKUPS + q**3 / FLOPS + q**2 / 2 * r / 64 / COMMON_WORDS,
        selection=str(request.selection),
    )
    return within_limit(plan)


def _phases(request: Request, sizes: Sequence[int], functions: int, load: price.Load) -> tuple[int, ...]:
    """Bytes of the selection and, if it comes afterwards, of the exact fit of the selected family."""
    ranking = price.screening(sizes, load, request.threads)
    refitting = price.eliminating(functions, load)
    if request.selection == "screen":
        return (ranking + price.growing_fit(functions, load),)
    if request.selection == "canonical":
        # Functions chosen modulo primes are fitted by moments afterwards.
        growing = price.growing_fit(functions, load)
        return (growing, refitting) if request.ties == "share" else (growing,)
    offered = min(LASSO_FUNCTIONS, 4 * (request.max_terms or LASSO_FUNCTIONS)) + sum(n - 1 for n in sizes)
    return ranking, price.lasso(min(offered, functions_within(sizes, request.max_order)), load), refitting


def mains_of(sizes: Sequence[int]) -> int:
    """Functions of the intercept and the main effects."""
    return 1 + sum(n - 1 for n in sizes)


def functions_within(sizes: Sequence[int], max_order: int | None) -> int:
    """Functions of all subsets up to an order, if every combination occurs."""
    by_order = [1]
    for n in sizes:
        by_order = [a + b for a, b in zip([*by_order, 0], [0, *(k * (n - 1) for k in by_order)], strict=True)]
        by_order = by_order[: None if max_order is None else max_order + 1]
    return sum(by_order)
