"""From a budget to a family: main effects first, then a selection; and the exact fit of the selected family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.basis.functions import Basis, build_basis, on_cells, order_slices
from exanova.data.sample import Sample
from exanova.design.family import Family, build_family
from exanova.design.subsets import canonical_key, close_downward
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.parallel import blas_threads
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select.canonical import take_in_order, whole_subsets
from exanova.select.growing_fit import GrowingFit
from exanova.select.lasso import choose_by_lasso
from exanova.select.record import Selection
from exanova.select.screening import screen
from exanova.solve.choice import FLOATING, ROUNDED, PaperChoice, SpanChoice, can_be_solved
from exanova.solve.evidence import AtRows, Solution, Solved
from exanova.solve.moments_route import Projections, solve_kept
from exanova.solve.plan import Plan
from exanova.solve.request import Request
from exanova.solve.run import decompose
from exanova.typing import Subset


@dataclass(frozen=True, eq=False)
class Chosen:
    """A family selected under a budget.

    Attributes:
        subsets: the family, closed downward and in canonical order.
        selection: how it was chosen.
        exactly: decompose over it without shrinkage.
    """

    subsets: tuple[Subset, ...]
    selection: Selection
    exactly: Callable[[], Solved]


def select_family(sample: Sample, request: Request, plan: Plan, progress: Progress) -> Chosen:
    """Select a family under the budget of ``request``."""
    if not sample.varying:
        nothing = Selection(request.selection or "screen", request.max_terms, (), "no feature varies")
        return to_decompose(sample, request, ((),), nothing, progress)
    with blas_threads(request.threads):
        if request.selection == "lasso":
            return to_decompose(sample, request, *choose_by_lasso(sample, request, progress), progress)
        return _by_growth(sample, request, plan, progress)


def to_decompose(
    sample: Sample, request: Request, subsets: tuple[Subset, ...], selection: Selection, progress: Progress
) -> Chosen:
    """A family over which the model is decomposed once it has been chosen."""
    return Chosen(subsets, selection, lambda: decompose(sample, _over(request, subsets), progress))


def _over(request: Request, subsets: tuple[Subset, ...]) -> Request:
    """The same request for a selected family."""
    order = max(map(len, subsets))
    return replace(request, subsets=subsets, max_order=order, selection=None, max_terms=None, candidates=None)


def check_budget(sizes: tuple[int, ...], max_terms: int) -> None:
    """Refuse a budget that is too small for the main effects.

    >>> check_budget((3, 2), 4)
    """
    mains = 1 + sum(n - 1 for n in sizes)
    if max_terms < mains:
        raise InputError(
            Parameter("max_terms", max_terms),
            f" is below the {mains:,} functions of the intercept and the main effects",
            remedy=[
                f"give at least {mains:,}, bin numbers more coarsely with ",
                Parameter("n_bins"),
                ", or merge rare levels with ",
                Parameter("min_frequency"),
            ],
        )


def _by_growth(sample: Sample, request: Request, plan: Plan, progress: Progress) -> Chosen:
    assert request.max_terms is not None
    # Under a penalty, functions may be more than the rows.
    budget = request.max_terms if request.ridge else min(request.max_terms, sample.n_rows)
    check_budget(sample.sizes, request.max_terms)
    mains: list[Subset] = [(i,) for i in sample.varying]
    if request.selection == "canonical" and request.ties == "share":
        return to_decompose(sample, request, *_canonical_family(sample, request, mains, budget, progress), progress)
    how = FLOATING
    if request.selection == "canonical" and request.basis == "paper":
        solved, selection = _canonical_functions(sample, request, plan, mains, budget, progress)
        if can_be_solved(solved.solution, sample.weight):
            return Chosen(tuple(solved.family.subsets), selection, lambda: solved)
        how = ROUNDED
    by_function = request.ties == "first"
    fit = GrowingFit(sample, request, budget + budget // 16 + 64, budget if by_function else None)
    fit.add(mains)
    if request.selection == "canonical":
        selection = take_in_order(sample, request, fit, budget, progress)
    else:
        selection = screen(sample, request, fit, budget, progress)
    subsets = tuple(close_downward(fit.family.subsets))
    return Chosen(subsets, selection, lambda: _grown(sample, request, plan, fit, subsets, how, progress))


def _grown(
    sample: Sample,
    request: Request,
    plan: Plan,
    fit: GrowingFit,
    subsets: tuple[Subset, ...],
    how: str,
    progress: Progress,
) -> Solved:
    """The decomposition over a family that has grown, from its factor."""
    progress.phase("solving")
    # A small direction dropped in the order of arrival need not be rounding: later functions may contain it.
    doubtful = fit.dropped > tolerances.rank_of_gram(fit.basis.n_functions)
    solution = None if request.ties == "share" and doubtful else fit.solve()
    if solution is None or (request.ties == "share" and not solution.converged):
        # Nearly redundant functions may have come first: the selected family is eliminated again, with pivoting.
        return decompose(sample, _over(request, subsets), progress, fit.known_gram())
    solution = replace(solution, method=solution.method.replace(FLOATING, how))
    solved = in_canonical_order(sample, request, plan, fit.family, fit.basis, solution, fit.at_rows)
    return replace(solved, gram=fit.gram(solved.family))


def _canonical_family(
    sample: Sample, request: Request, mains: list[Subset], budget: int, progress: Progress
) -> tuple[tuple[Subset, ...], Selection]:
    """Complete subsets in canonical order within the budget."""
    span = SpanChoice(sample.codes, sample.sizes, request.threads)
    span.add(mains)
    selection = take_in_order(sample, request, span, budget, progress)
    subsets, selection = whole_subsets(span, selection, budget)
    return tuple(close_downward(subsets)), selection


def _canonical_functions(
    sample: Sample, request: Request, plan: Plan, mains: list[Subset], budget: int, progress: Progress
) -> tuple[Solved, Selection]:
    """The paper's functions in canonical order within the budget, selected exactly and solved for afterwards.

    In the order of arrival their pivots become too small for a factor in floating point, so that the solve, with
    pivoting, comes after the selection.
    """
    choice = PaperChoice(sample.codes, sample.weight, sample.sizes, request.threads, budget)
    choice.add(mains)
    selection = take_in_order(sample, request, choice, budget, progress)
    progress.phase("solving")
    useful = [s for s, own in zip(choice.family.subsets, choice.chosen, strict=True) if len(own) or len(s) < 2]
    subsets = close_downward(useful)
    family = build_family(sample.codes, sample.mass, sample.sizes, subsets, request.threads)
    chosen = [choice.chosen[choice.family.position[s]] for s in family.subsets]
    # A subset of order 2 or higher without selected functions is only needed for the cells of others.
    basis = only_some(
        build_basis(family, "paper", orthonormal=False),
        [len(subset) < 2 or len(own) > 0 for subset, own in zip(family.subsets, chosen, strict=True)],
    )
    kept = np.zeros(basis.n_functions, dtype=bool)
    kept[np.concatenate([start + own for start, own in zip(basis.start[:-1], chosen, strict=True)])] = True
    solution = _solve_chosen(sample, request, family, basis, kept)
    if choice.rank >= budget:
        # Functions considered after the rank limit was reached are not dependent, only not needed.
        last = int(np.flatnonzero(kept)[-1])
        solution = replace(solution, null=solution.null[:, ~solution.null[last + 1 :].any(axis=0)])
    solution = replace(solution, method=f"elimination of the Gram matrix, {choice.how}")
    return _finished(sample, plan, family, basis, solution), selection


def _solve_chosen(sample: Sample, request: Request, family: Family, basis: Basis, kept: NDArray[np.bool_]) -> Solution:
    """Coefficients of the functions ``kept`` (q,): their Gram matrix is eliminated with pivoting inside each order."""
    phi = Phi(family, sample, request.threads)
    gamma = phi.gram(basis)
    gamma[range(1, len(gamma)), range(1, len(gamma))] += request.ridge
    project = Projections(phi, basis, sample, phi.analyse(sample.weighted_values), request.ridge)
    return solve_kept(gamma, order_slices(family, basis), project, kept)


def in_canonical_order(
    sample: Sample,
    request: Request,
    plan: Plan,
    family: Family,
    basis: Basis,
    solution: Solution,
    at_rows: AtRows | None = None,
) -> Solved:
    """Sort the subsets of a decomposition into canonical order."""
    order = sorted(range(len(family.subsets)), key=lambda s: canonical_key(family.subsets[s]))
    subsets = [family.subsets[s] for s in order]
    sorted_index = build_family(sample.codes, sample.mass, sample.sizes, subsets, request.threads)
    functions = np.concatenate([np.arange(basis.start[s], basis.start[s + 1]) for s in order]).astype(np.int64)
    sorted_basis = Basis(
        tuple(basis.tables[s] for s in order),
        np.concatenate([[0], np.cumsum([basis.tables[s].shape[1] for s in order])]).astype(np.int64),
        None if basis.labels is None else tuple(basis.labels[s] for s in order),
    )
    sorted_solution = replace(
        solution,
        coefficients=solution.coefficients[functions],
        kept=solution.kept[functions],
        null=solution.null[functions],
        independent=None if solution.independent is None else solution.independent[functions],
    )
    if at_rows is not None:
        cells = np.concatenate([np.arange(family.cell_start[s], family.cell_start[s + 1]) for s in order])
        at_rows = at_rows.only(cells)
    return _finished(sample, plan, sorted_index, sorted_basis, sorted_solution, at_rows)


def _finished(
    sample: Sample, plan: Plan, family: Family, basis: Basis, solution: Solution, at_rows: AtRows | None = None
) -> Solved:
    priced = replace(
        plan,
        subsets=len(family.subsets),
        cells=family.n_cells,
        functions=basis.n_functions,
        functions_by_order=_functions_by_order(family, basis),
    )
    values = on_cells(family, basis, solution.coefficients) if at_rows is None else at_rows.effects
    return Solved(family, values, priced, solution, basis, solution.rank == sample.n_rows, at_rows=at_rows)


def only_some(basis: Basis, wanted: Sequence[bool]) -> Basis:
    """The functions of some subsets; the others have none."""
    tables = tuple(t if use else np.zeros((t.shape[0], 0)) for t, use in zip(basis.tables, wanted, strict=True))
    assert basis.labels is not None
    labels = tuple(z if use else z[:0] for z, use in zip(basis.labels, wanted, strict=True))
    return Basis(tables, np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64), labels)


def _functions_by_order(family: Family, basis: Basis) -> tuple[int, ...]:
    sizes = np.array([len(s) for s in family.subsets])
    return tuple(int(np.diff(basis.start)[sizes == k].sum()) for k in range(int(sizes.max()) + 1))
