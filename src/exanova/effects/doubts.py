"""Reasons why a result may be wrong that measurements on its effects do not show.

Conditional means and residuals show whether effects are pure and fitted. They do not show whether a small direction was
treated as redundant, so that a determined effect is shared. If weights or directions are small, the rank is therefore
computed exactly, on the support alone, and compared. Nor do they show how accurately the dependences along which
effects are shared are known; that is measured on the rows, for random dependences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, on_cells
from exanova.data.sample import Sample
from exanova.messages import Parameter, Part, Words
from exanova.phi.operator import Phi
from exanova.solve.choice import FLOATING, ROUNDED, span_ranks
from exanova.solve.elimination import orthonormalised
from exanova.solve.evidence import Solution, Solved
from exanova.solve.request import Request
from exanova.solve.traits import traits_of
from exanova.typing import FloatArray

EXACT_RANK = 3000
"""Functions up to which a doubtful rank is computed exactly, which takes seconds."""

TRY_DENSE: tuple[Part, ...] = ("try ", Parameter("route", "dense"))

PROBES = 8
"""Number of random dependences that are evaluated on the rows."""


def doubts(sample: Sample, solved: Solved, request: Request) -> tuple[str, ...]:
    """The first reason for doubt, with its remedy; empty if there is none."""
    checks: list[Callable[[Sample, Solved, Request], str | None]] = [
        _impossible_rank,
        _too_uneven,
        _rounded_choice,
    ]
    if solved.basis is not None and not _is_clear(sample, solved):
        checks += [_light_direction, _floating_choice, _too_large_to_decide, _wrong_rank, _rough_sharing]
    reasons = (check(sample, solved, request) for check in checks)
    return tuple(reason for reason in reasons if reason is not None)[:1]


def _is_clear(sample: Sample, solved: Solved) -> bool:
    """Whether all weights and directions are well above rounding."""
    heavy = _lightest_weight(sample) >= tolerances.GRAM_DIRECTION
    return heavy and not solved.solution.smallest_kept < tolerances.GRAM_DIRECTION


def _lightest_weight(sample: Sample) -> float:
    return float(sample.weight.min() / sample.weight.max())


def _span(sample: Sample) -> str:
    return f"the weights span {-np.log10(_lightest_weight(sample)):.0f} orders of magnitude"


def _impossible_rank(sample: Sample, solved: Solved, request: Request) -> str | None:
    rank, rows = solved.solution.rank, sample.codes.shape[1]
    every_order = solved.plan.max_order is None and not solved.plan.selection
    if solved.solution.rank_known and (rank > rows or (every_order and rank < rows)):
        return Words(f"the computed rank is {rank:,}, but all orders on {rows:,} rows have rank {rows:,}; ", *TRY_DENSE)
    return None


def _too_uneven(sample: Sample, solved: Solved, request: Request) -> str | None:
    iterates = traits_of(solved.plan.route).iterates
    limit = tolerances.UNEVEN_ITERATIONS if iterates else tolerances.UNEVEN
    if _lightest_weight(sample) < limit:
        return f"{_span(sample)}, too much for floating point; leave out or merge the rows with the smallest weights"
    return None


def _light_direction(sample: Sample, solved: Solved, request: Request) -> str | None:
    smallest, route = solved.solution.smallest_kept, traits_of(solved.plan.route)
    if not (route.orthogonal or route.by_pattern) and smallest < tolerances.GRAM_DIRECTION:
        return Words(
            f"a direction of {smallest:.1e} was kept, which is too small to be accurate in a Gram matrix; ",
            Parameter("route", "dense"),
            " resolves it, if it fits in memory",
        )
    return None


def _rounded_choice(sample: Sample, solved: Solved, request: Request) -> str | None:
    if ROUNDED in solved.solution.method:
        return Words(
            "functions were chosen in floating point, and exact arithmetic would choose others; ",
            Parameter("ties", "share"),
            " needs no choice",
        )
    return None


def _floating_choice(sample: Sample, solved: Solved, request: Request) -> str | None:
    # For pure functions the rank by order is compared below, which is just as informative.
    if FLOATING in solved.solution.method and (request.basis == "paper" or request.selection):
        return Words(
            f"{_span(sample)} and functions were chosen in floating point, which cannot distinguish small functions "
            "from redundant ones; ",
            Parameter("ties", "share"),
            " makes no such choice",
        )
    return None


def _is_cut(request: Request) -> bool:
    """Whether a budget may have cut a subset, so that not all functions of the family are used."""
    return request.selection is not None and request.ties == "first"


def _too_large_to_decide(sample: Sample, solved: Solved, request: Request) -> str | None:
    count = len(solved.solution.kept)
    if count > EXACT_RANK and not _is_cut(request) and not traits_of(solved.plan.route).by_pattern:
        return (
            f"{_span(sample)} and the smallest direction is {solved.solution.smallest_kept:.1e}, so that the rank of "
            f"{count:,} functions is uncertain due to rounding; merge rare levels, or use fewer functions"
        )
    return None


def _wrong_rank(sample: Sample, solved: Solved, request: Request) -> str | None:
    """Compare with the exact rank of every order."""
    solution = solved.solution
    if len(solution.kept) > EXACT_RANK or _is_cut(request):
        return None
    exact = span_ranks(sample.codes, sample.sizes, solved.family.subsets, request.threads)
    if solution.rank_known and exact != solution.rank_by_order:
        here, there = (" + ".join(map(str, ranks)) for ranks in (solution.rank_by_order, exact))
        return Words(f"the rank in floating point is {here}, the exact rank is {there}; ", *TRY_DENSE)
    if not solution.rank_known and sum(exact) < solution.rank:
        return Words(
            f"{_span(sample)} and functions depend on each other, which iterations cannot resolve; ", *TRY_DENSE
        )
    return None


def _rough_sharing(sample: Sample, solved: Solved, request: Request) -> str | None:
    """Report if the dependences along which effects are shared are not accurate enough."""
    if request.ties != "share" or solved.basis is None:
        return None
    error = _sharing_error(sample, solved, solved.basis, request.threads)
    if error <= tolerances.SHARING:
        return None
    merge: tuple[Part, ...] = ("leave out or merge the rows with the smallest weights",)
    remedy = merge if traits_of(solved.plan.route).orthogonal else TRY_DENSE
    return Words(
        f"weights or directions are so small that effects shared by several subsets may have an error of {error:.1e} "
        "of the model's spread; ",
        *remedy,
    )


def _sharing_error(sample: Sample, solved: Solved, basis: Basis, threads: int) -> float:
    """Error of shared effects in the rarest cell, relative to the model.

    A dependence vanishes on the rows. The norm of a computed one on the rows, over the smallest kept direction, is its
    angle with a true one; and a function of unit norm can be as large as 1 / sqrt(probability) in a cell.
    """
    null, independent = solved.solution.null, solved.solution.independent
    count = null.shape[1] if independent is None else len(null) - independent.shape[1]
    if not count:
        return 0.0
    tables = on_cells(solved.family, basis, _random_dependences(solved.solution))
    left = Phi(solved.family, sample, threads).synthesise(tables)
    size = np.sqrt(count * (sample.probability @ left**2).max())
    smallest = 1.0 if traits_of(solved.plan.route).by_pattern else min(1.0, solved.solution.smallest_kept)
    return float(size / np.sqrt(smallest * sample.probability.min()))


def _random_dependences(solution: Solution) -> FloatArray:
    """(q, PROBES) random dependences of unit norm among the functions."""
    drawn = np.random.default_rng(0).normal(size=(len(solution.null), PROBES))
    if solution.independent is None:
        basis = orthonormalised(solution.null)
        probes = basis @ (basis.T @ drawn)
    else:
        probes = drawn - solution.independent @ (solution.independent.T @ drawn)
    return np.asarray(probes / np.linalg.norm(probes, axis=0))
