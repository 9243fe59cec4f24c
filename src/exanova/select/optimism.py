"""How much of a fit a selection may owe to noise, where it is not repeated on other rows.

Functions that were chosen because they fit these rows predict each row too well, even when the row is left out of the
fit: it took part in the choice. Of all families that could have been chosen, the best fits noise like a family of

    q + 2 sqrt(q log N) + 2 log N

functions at most, with q chosen functions and N families: the expected maximum of N chi-squares with q degrees of
freedom. That bound holds for any search among these families, however greedy. If a fit with so many functions would
still describe other rows, so does the selected one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, log, sqrt

from exanova.data.sample import Sample
from exanova.select.record import Selection
from exanova.select.selection_plan import selecting_seconds
from exanova.solve.request import Request
from exanova.solve.seconds import LOOKUPS
from exanova.typing import Subset

CHEAP_SECONDS = 0.1
"""Expected seconds up to which an exact fit repeats its selection without some rows."""


def follows_values(selection: Selection) -> bool:
    """Whether the selection used the values of the rows; the canonical one uses levels alone."""
    return selection.method != "canonical"


def repeats_cheaply(selection: Selection, sample: Sample, request: Request, times: int) -> bool:
    """Whether a screening may be repeated ``times`` times, judging by its plan and by the subsets it scored."""
    if selection.method != "screen":
        return False
    higher = sum(done.looked_at for done in selection.rounds if done.order > 2)
    once = (
        selecting_seconds(request, sample, request.max_terms or 0, sample.n_outputs) + higher * sample.n_rows / LOOKUPS
    )
    return times * once <= CHEAP_SECONDS


def candidates(selection: Selection, request: Request, varying: int) -> int:
    """How many subsets of two and more features the selection chose from.

    A lasso ranks all permitted subsets before its path. Screening also scores subsets of higher orders that its own
    pairs lead to; each round counts those that no earlier round scored.

    >>> from exanova.select.record import Round
    >>> rounds = (Round(2, 10, 3, 3, 9), Round(2, 7, 1, 1, 10), Round(3, 4, 0, 0, 10))
    >>> candidates(Selection("screen", 20, rounds, ""), Request(), 5)
    14
    """
    if selection.method == "lasso":
        if request.candidates is not None:
            return sum(len(subset) > 1 for subset in request.candidates)
        highest = varying if request.max_order is None else min(request.max_order, varying)
        return sum(comb(varying, order) for order in range(2, highest + 1))
    tried: dict[int, int] = {}
    taken: dict[int, int] = {}
    for done in selection.rounds:
        tried[done.order] = max(tried.get(done.order, 0), done.looked_at + taken.get(done.order, 0))
        taken[done.order] = taken.get(done.order, 0) + done.taken
    return sum(tried.values())


def log_families(chosen: int, offered: int) -> float:
    """Logarithm of how many ways there are to choose subsets, at most: h (1 + log(offered / h)), h on either side.

    >>> log_families(10, 10), log_families(0, 10)
    (0.0, 0.0)
    >>> log_families(3, 10) >= log(120)
    True
    """
    apart = min(chosen, offered - chosen)
    return 0.0 if apart <= 0 else apart * (1.0 + log(offered / apart))


def functions_of_noise(functions: float, choices: float) -> float:
    """How many functions fit as much noise as the best ``functions`` of exp(``choices``) families.

    >>> functions_of_noise(10.0, 0.0)
    10.0
    """
    return functions + 2.0 * sqrt(functions * choices) + 2.0 * choices


def largest_growth(
    selection: Selection,
    subsets: Sequence[Subset],
    request: Request,
    varying: int,
    by_order: Sequence[int],
    rows: float,
) -> float:
    """How many times larger the error on other rows may be than leaving out rows says; infinite if rows are few.

    Args:
        selection, subsets: how the family was chosen, and the family.
        request: what was asked.
        varying: features that vary.
        by_order: rank of the fit, order by order.
        rows: independent rows.

    >>> from exanova.select.record import Round
    >>> chosen = Selection("screen", 50, (Round(2, 100, 10, 40, 50),), "")
    >>> pairs = [(0, k) for k in range(1, 11)]
    >>> [round(largest_growth(chosen, pairs, Request(), 15, (1, 9, 40), rows), 2) for rows in (1e2, 1e3, 1e5)]
    [inf, 1.37, 1.0]
    """
    chosen = sum(len(subset) > 1 for subset in subsets)
    offered = max(chosen, candidates(selection, request, varying))
    functions, rank = float(sum(by_order[2:])), float(sum(by_order))
    as_many = rank - functions + functions_of_noise(functions, log_families(chosen, offered))
    if as_many >= rows:
        return float("inf")
    return float(((1.0 - rank / rows) / (1.0 - as_many / rows)) ** 2)
