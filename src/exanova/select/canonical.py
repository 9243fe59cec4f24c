"""Canonical selection under a budget: functions in the order of the paper until the rank is reached.

With the paper's functions and ``ties="first"`` this keeps, function by function, what a greedy search with one rank
test for each candidate keeps. With ``ties="share"`` whole subsets are kept, as long as their rank fits.
"""

from __future__ import annotations

import numpy as np

from exanova.progress import Progress
from exanova.select.gains import cost
from exanova.select.growth import GrowingFit
from exanova.select.report import Round, Selection
from exanova.solve.plan import Request, orders_of
from exanova.solve.routes import Data
from exanova.typing import Subset


def take_in_order(data: Data, request: Request, fit: GrowingFit, budget: int, progress: Progress) -> Selection:
    """Append subsets of order two and higher in canonical order until the rank is ``budget``."""
    varying = [i for i, n in enumerate(data.sizes) if n > 1]
    rounds: list[Round] = []
    stopped = "every subset was offered"
    for subsets in orders_of(request, varying):
        order = len(subsets[0])
        if order == 1:
            continue
        looked_at, before = _take_order(data, fit, subsets, budget, progress), fit.rank
        rounds.append(Round(order, looked_at, looked_at, 0, min(fit.rank, budget), float("nan"), float("nan")))
        if fit.rank >= budget or fit.rank == before == data.codes.shape[1]:
            stopped = "the budget is used up" if fit.rank >= budget else "every function on the support is spanned"
            break
    if request.ties == "share":
        fit.truncate(_whole_subsets(fit, budget))
    return Selection("canonical", budget, tuple(rounds), stopped)


def _take_order(data: Data, fit: GrowingFit, subsets: list[Subset], budget: int, progress: Progress) -> int:
    """Append subsets of one order in batches of about as many functions as the rank still lacks."""
    done = 0
    while done < len(subsets) and fit.rank < budget and fit.rank < data.codes.shape[1]:
        progress.phase(f"taking subsets of order {len(subsets[0])}")
        room, batch = max(256, budget - fit.rank), []
        for subset in subsets[done:]:
            batch.append(subset)
            room -= cost(data.sizes, subset)
            if room <= 0:
                break
        fit.add(batch)
        done += len(batch)
    return done


def _whole_subsets(fit: GrowingFit, budget: int) -> int:
    """How many of the first subsets together have a rank of at most ``budget``."""
    cumulated = np.cumsum(fit.rank_of_subset())
    return int(np.searchsorted(cumulated, budget, side="right"))
