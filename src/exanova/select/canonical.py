"""Canonical selection under a budget: functions in the order of the paper until the rank is reached.

With the paper's functions and ``ties="first"`` this keeps the same functions as a greedy search with one rank test per
candidate. With ``ties="share"`` complete subsets are kept, as long as their rank fits the budget; which of them raise
the rank is decided exactly, for any weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exanova.data.sample import Sample
from exanova.progress import Progress
from exanova.select.gains import PairScreen, cost
from exanova.select.growing_fit import GrowingFit
from exanova.select.record import Round, Selection
from exanova.solve.choice import SpanChoice
from exanova.solve.request import Request, orders_of
from exanova.typing import Subset

Growing = GrowingFit | SpanChoice
"""A growing family with a known rank."""

SMALLEST_BATCH, LARGEST_BATCH = 256, 4096
"""Smallest and largest number of functions tested in one batch."""


def take_in_order(sample: Sample, request: Request, fit: Growing, budget: int, progress: Progress) -> Selection:
    """Append subsets of order two and higher in canonical order until the rank is ``budget``."""
    rounds: list[Round] = []
    stopped = "all subsets were considered"
    for subsets in orders_of(request, sample.varying):
        if len(subsets[0]) == 1:
            continue
        before = fit.rank
        useful = _pairs_with_functions(sample, request, subsets) if len(subsets[0]) == 2 else subsets
        offered, taken = _take_order(sample, fit, useful, budget, progress)
        looked_at = len(subsets) if offered == len(useful) else subsets.index(useful[offered])
        added = min(fit.rank, budget) - before
        rounds.append(Round(len(subsets[0]), looked_at, taken, added, before + added))
        if fit.rank >= min(budget, sample.codes.shape[1]):
            spanned = "the family spans every function on the support"
            stopped = "the budget is used up" if fit.rank >= budget else spanned
            break
    return Selection("canonical", budget, tuple(rounds), stopped)


def _pairs_with_functions(sample: Sample, request: Request, pairs: list[Subset]) -> list[Subset]:
    """Pairs with at least one function; the others add nothing to their main effects in any basis."""
    screen = PairScreen(sample.codes, sample.probability, sample.sizes, request.threads)
    some = screen.dimensions()[screen.numbers(pairs)] > 0
    return [pair for pair, has_functions in zip(pairs, some, strict=True) if has_functions]


def _take_order(
    sample: Sample, fit: Growing, subsets: list[Subset], budget: int, progress: Progress
) -> tuple[int, int]:
    """Append subsets of one order in batches until the rank is reached; returns the numbers considered and kept.

    A batch has about as many functions as are missing to the rank, more if few of the last batch raised it.
    Subsets that do not raise the rank are not kept: lower orders and earlier subsets express them.
    """
    done = taken = 0
    rate = 1.0
    limit = min(budget, sample.codes.shape[1])
    while done < len(subsets) and fit.rank < limit:
        progress.phase(f"taking subsets of order {len(subsets[0])}: rank {fit.rank:,} of {budget:,}")
        batch, functions = _batch(sample.sizes, subsets[done:], (limit - fit.rank) / rate)
        before = fit.rank
        taken += fit.add_useful(batch)
        done += len(batch)
        rate = max(0.02, (fit.rank - before) / max(1, functions))
    return done, taken


def _batch(sizes: tuple[int, ...], subsets: list[Subset], wanted: float) -> tuple[list[Subset], int]:
    """The first subsets with about ``wanted`` functions, within the limits of a batch."""
    room = min(max(wanted, SMALLEST_BATCH), LARGEST_BATCH)
    functions = 0
    for k, subset in enumerate(subsets, start=1):
        functions += cost(sizes, subset)
        if functions >= room:
            return subsets[:k], functions
    return subsets, functions


def whole_subsets(span: SpanChoice, selection: Selection, budget: int) -> tuple[list[Subset], Selection]:
    """Subsets that raise the rank, as long as all their functions fit the budget; the last round is cut accordingly."""
    gained = span.rank_of_subset()
    inside = (gained > 0) & (np.cumsum(gained) <= budget)
    chosen = [subset for subset, use in zip(span.family.subsets, inside, strict=True) if use or len(subset) < 2]
    if selection.rounds:
        *earlier, last = selection.rounds
        own = inside & (span.family.layout.order == last.order)
        functions, rank = int(gained[own].sum()), int(gained[inside].sum())
        last = replace(last, taken=int(np.count_nonzero(own)), functions=functions, rank=rank)
        selection = replace(selection, rounds=(*earlier, last))
    return chosen, selection
