"""The plan of a selection: it keeps at most its budget, so that its cost is known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exanova.data.sample import Sample
from exanova.select.gains import WIDE
from exanova.shrink import cost
from exanova.shrink.speed import shrinking_seconds
from exanova.solve import price
from exanova.solve.plan import Plan, within_limit
from exanova.solve.planning import unpriced
from exanova.solve.request import Request
from exanova.solve.seconds import FLOPS, LOOKUPS, reading
from exanova.solve.survey import load_of

LASSO_FUNCTIONS = 6000
"""Candidate functions of a lasso without a budget."""

RANKINGS, PAIR_SECONDS = 8, 4e-6
"""Rounds in which all candidates are ranked, and seconds to rank one pair."""

LOCAL_WORK, WIDE_PAIR, WIDE_CELL = 13.0, 1.5e-3, 1e-6
"""Multiplications of the local problem of a pair over the cube of its cells; seconds of a pair with many cells, whose
margins are fitted instead, and of each of its cells."""

COMMON_WORDS = 4e9
"""Words of 64 rows compared in a second."""

JUDGED = 2
"""Selections of a shrunken fit: its own, and another without some rows to evaluate it."""

JUDGING_SQUARES = 5
"""Arrays of (functions, functions) while a selected family is shrunk."""

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
        seconds=reading(sample) + selecting_seconds(request, sample, q, outputs),
        selection=str(request.selection),
    )
    return within_limit(plan)


def selecting_seconds(request: Request, sample: Sample, functions: int, outputs: int) -> float:
    """Seconds of the rounds of a selection, of its fit, and of selecting again without some rows to evaluate it."""
    r, q = float(sample.n_rows), float(functions)
    columns, features = float(mains_of(sample.sizes)), len(sample.varying)
    ranking = columns**2 * r * outputs / FLOPS + features * (features - 1) / 2 * PAIR_SECONDS + _local(sample)
    fit = PASSES * r * q / LOOKUPS + q**3 / FLOPS + q**2 / 2 * r / 64 / COMMON_WORDS
    if not request.shrinkage:
        return RANKINGS * ranking + fit
    return JUDGED * (RANKINGS * ranking + fit + shrinking_seconds(int(r), int(q), outputs))


def _local(sample: Sample) -> float:
    """Seconds of the local problems of all pairs in one round."""
    varying = np.array([sample.sizes[i] for i in sample.varying], dtype=np.float64)
    one, other = np.triu_indices(len(varying), 1)
    cells = np.minimum(varying[one] * varying[other], float(sample.n_rows))
    wide = cells > WIDE
    return float(LOCAL_WORK * (cells[~wide] ** 3).sum() / FLOPS + (WIDE_PAIR + cells[wide] * WIDE_CELL).sum())


def _phases(request: Request, sizes: Sequence[int], functions: int, load: price.Load) -> tuple[int, ...]:
    """Bytes of the selection and, if it comes afterwards, of the exact fit of the selected family."""
    ranking = price.screening(sizes, load, request.threads)
    refitting = price.eliminating(functions, load)
    if request.selection == "screen":
        return ranking + price.growing_fit(functions, load), _judging(request, functions, load)
    if request.selection == "canonical":
        # Functions chosen modulo primes are fitted by moments afterwards.
        growing = price.growing_fit(functions, load)
        return (growing, refitting) if request.ties == "share" else (growing,)
    offered = min(LASSO_FUNCTIONS, 4 * (request.max_terms or LASSO_FUNCTIONS)) + sum(n - 1 for n in sizes)
    return ranking, price.lasso(min(offered, functions_within(sizes, request.max_order)), load), refitting


def _judging(request: Request, functions: int, load: price.Load) -> int:
    """Bytes of shrinking the selected family, or of leaving rows out of its exact fit."""
    squares = 8 * JUDGING_SQUARES * min(functions, load.distinct) ** 2 if request.shrinkage else 0
    blocks = cost.leaving_out(functions, load) if request.sampled else 0
    return blocks + max(0, squares - price.eliminating(functions, load))


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
