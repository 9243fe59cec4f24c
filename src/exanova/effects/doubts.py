"""Why a result may be wrong although nothing that was measured on its effects shows it.

Conditional means and residuals tell whether effects are pure and fitted. They do not tell whether a direction was taken
for redundant that is only light: then a determined effect is shared. Where weights or directions are light, the rank is
therefore decided exactly, on the support alone, and compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exanova import tolerances
from exanova.data.sample import Sample
from exanova.solve.choice import FLOATING, ROUNDED, span_ranks
from exanova.solve.evidence import Solved
from exanova.solve.request import Request

EXACT_RANK = 3000
"""Functions up to which a doubtful rank is decided exactly, in seconds."""


def doubts(sample: Sample, found: Solved, request: Request) -> tuple[str, ...]:
    """The first reason for doubt, with its remedy; nothing where there is none."""
    checks: list[Callable[[Sample, Solved, Request], str | None]] = [
        _impossible_rank,
        _too_uneven,
        _rounded_choice,
    ]
    if found.basis is not None and not _is_clear(sample, found):
        checks += [_light_direction, _floating_choice, _too_large_to_decide, _wrong_rank]
    reasons = (check(sample, found, request) for check in checks)
    return tuple(reason for reason in reasons if reason is not None)[:1]


def _is_clear(sample: Sample, found: Solved) -> bool:
    """Whether neither weights nor directions come near what rounding could hide."""
    heavy = _lightest_weight(sample) >= tolerances.GRAM_DIRECTION
    return heavy and not found.solution.smallest_kept < tolerances.GRAM_DIRECTION


def _lightest_weight(sample: Sample) -> float:
    return float(sample.weight.min() / sample.weight.max())


def _span(sample: Sample) -> str:
    return f"the weights span {-np.log10(_lightest_weight(sample)):.0f} orders of magnitude"


def _impossible_rank(sample: Sample, found: Solved, request: Request) -> str | None:
    rank, rows = found.solution.rank, sample.codes.shape[1]
    every_order = found.plan.max_order is None and not found.plan.selection
    if found.solution.rank_known and (rank > rows or (every_order and rank < rows)):
        return f"rank {rank:,} was found on {rows:,} rows, where all orders have rank {rows:,}; try route='dense'"
    return None


def _too_uneven(sample: Sample, found: Solved, request: Request) -> str | None:
    iterates = found.plan.route in ("matrix-free", "grid")
    limit = tolerances.UNEVEN_ITERATIONS if iterates else tolerances.UNEVEN
    if _lightest_weight(sample) < limit:
        return f"{_span(sample)}, more than floating point holds; leave out or merge the lightest rows"
    return None


def _light_direction(sample: Sample, found: Solved, request: Request) -> str | None:
    smallest = found.solution.smallest_kept
    if found.plan.route != "dense" and smallest < tolerances.GRAM_DIRECTION:
        return (
            f"a direction of {smallest:.1e} was kept, too light for a Gram matrix to give it in full; "
            "route='dense' sees it, if it fits in memory"
        )
    return None


def _rounded_choice(sample: Sample, found: Solved, request: Request) -> str | None:
    if ROUNDED in found.solution.method:
        return (
            "functions were chosen in floating point, and exact arithmetic chooses others; ties='share' needs no choice"
        )
    return None


def _floating_choice(sample: Sample, found: Solved, request: Request) -> str | None:
    # Of pure functions the rank by order is compared below, which tells as much.
    if FLOATING in found.solution.method and (request.basis == "paper" or request.selection):
        return (
            f"{_span(sample)} and functions were chosen in floating point, which cannot tell light ones from redundant "
            "ones; ties='share' makes no such choice"
        )
    return None


def _is_cut(request: Request) -> bool:
    """Whether a budget may have cut a subset, so that not all functions of the family take part."""
    return request.selection is not None and request.ties == "first"


def _too_large_to_decide(sample: Sample, found: Solved, request: Request) -> str | None:
    count = len(found.solution.kept)
    if count > EXACT_RANK and not _is_cut(request):
        return (
            f"{_span(sample)} and the lightest direction is {found.solution.smallest_kept:.1e}: the rank of {count:,} "
            "functions cannot be told from rounding; merge rare levels, or use fewer functions"
        )
    return None


def _wrong_rank(sample: Sample, found: Solved, request: Request) -> str | None:
    """Compare with the rank of every order, decided exactly."""
    solution = found.solution
    if len(solution.kept) > EXACT_RANK or _is_cut(request):
        return None
    exact = span_ranks(sample.codes, sample.sizes, found.index.subsets, request.threads)
    if solution.rank_known and exact != solution.rank_by_order:
        here, there = (" + ".join(map(str, ranks)) for ranks in (solution.rank_by_order, exact))
        return f"rank {here} was found in floating point, and it is {there}; try route='dense'"
    if not solution.rank_known and sum(exact) < solution.rank:
        return f"{_span(sample)} and functions depend on each other, which iterations cannot settle; try route='dense'"
    return None
