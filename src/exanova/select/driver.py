"""From a budget to a decomposition: main effects first, then a selection, then the exact fit of what was chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exanova.basis.tables import Basis, on_cells
from exanova.design.cells import CellIndex
from exanova.design.subsets import canonical_key, close_downward
from exanova.errors import InputError
from exanova.moments.gram import cell_index
from exanova.parallel import blas_threads
from exanova.progress import Progress
from exanova.select.canonical import take_in_order
from exanova.select.growth import GrowingFit
from exanova.select.lasso import choose_by_lasso
from exanova.select.report import Selection
from exanova.select.screening import screen
from exanova.select.span import GrowingSpan
from exanova.solve.evidence import Solution
from exanova.solve.plan import Plan, Request, repriced
from exanova.solve.routes import Data, Decomposition, decompose, run_plan
from exanova.typing import Subset


def fit_data(
    data: Data, request: Request, plan: Plan, index: CellIndex | None, progress: Progress
) -> tuple[Decomposition, Selection | None]:
    """Run a plan; ``index`` holds the cells it surveyed, if it did and they are those of ``data``."""
    if request.selection:
        return select_and_fit(data, request, plan, progress)
    if plan.distinct_rows != data.codes.shape[1]:
        return decompose(data, request, progress), None
    priced = repriced(plan, index, data.codes, data.weight.astype(np.float64), data.values.shape[1], request)
    return run_plan(data, request, priced, index, progress), None


def select_and_fit(data: Data, request: Request, plan: Plan, progress: Progress) -> tuple[Decomposition, Selection]:
    """Choose a family under the budget of ``request`` and decompose over it."""
    method = request.selection or "screen"
    if not any(n > 1 for n in data.sizes):
        found = decompose(data, _over(request, ((),)), progress)
        return found, Selection(method, request.max_terms, (), "no feature varies")
    with blas_threads(request.threads):
        if request.selection == "lasso":
            family, selection = choose_by_lasso(data, request, progress)
            return decompose(data, _over(request, family), progress), selection
        return _by_growth(data, request, plan, progress)


def _over(request: Request, family: tuple[Subset, ...]) -> Request:
    """The same request over a family that has been chosen."""
    order = max(map(len, family))
    return replace(request, family=family, max_order=order, selection=None, max_terms=None, candidates=None)


def check_budget(sizes: tuple[int, ...], max_terms: int) -> None:
    """Refuse a budget that does not hold the main effects.

    >>> check_budget((3, 2), 4)
    """
    mains = 1 + sum(n - 1 for n in sizes)
    if max_terms < mains:
        raise InputError(
            f"max_terms={max_terms:,} is below the {mains:,} functions of the intercept and the main effects; "
            f"give at least {mains:,}, or merge levels with min_frequency=."
        )


def _by_growth(data: Data, request: Request, plan: Plan, progress: Progress) -> tuple[Decomposition, Selection]:
    assert request.max_terms is not None
    budget = min(request.max_terms, data.codes.shape[1])
    check_budget(data.sizes, request.max_terms)
    mains: list[Subset] = [(i,) for i, n in enumerate(data.sizes) if n > 1]
    if request.selection == "canonical" and request.ties == "share" and data.weight.dtype.kind == "i":
        family, selection = _canonical_family(data, request, mains, budget, progress)
        return decompose(data, _over(request, family), progress), selection
    by_function = request.ties == "first"
    fit = GrowingFit(data, request, budget + budget // 16 + 64, budget if by_function else None)
    fit.add(mains)
    if request.selection == "canonical":
        selection = take_in_order(data, request, fit, budget, progress)
    else:
        selection = screen(data, request, fit, budget, progress)
    progress.phase("solving")
    solution = fit.solve()
    if not solution.converged and request.ties == "share":
        # Functions nearly expressed by others came before them: the chosen family is eliminated again, with pivoting.
        return decompose(data, _over(request, tuple(close_downward(fit.index.subsets))), progress), selection
    found = in_canonical_order(data, request, plan, fit.index, fit.basis, solution)
    return found, selection


def _canonical_family(
    data: Data, request: Request, mains: list[Subset], budget: int, progress: Progress
) -> tuple[tuple[Subset, ...], Selection]:
    """Whole subsets in canonical order within the budget; what decided their rank is forgotten again."""
    span = GrowingSpan(data, request.threads)
    span.add(mains)
    selection = take_in_order(data, request, span, budget, progress)
    return tuple(close_downward(span.index.subsets)), selection


def in_canonical_order(
    data: Data, request: Request, plan: Plan, index: CellIndex, basis: Basis, solution: Solution
) -> Decomposition:
    """A decomposition whose subsets arrived in any order, with its subsets in canonical order."""
    values = on_cells(index, basis, solution.coefficients)
    order = sorted(range(len(index.subsets)), key=lambda s: canonical_key(index.subsets[s]))
    subsets = [index.subsets[s] for s in order]
    sorted_index = cell_index(data.codes, data.weight.astype(np.float64), data.sizes, subsets, request.threads)
    sorted_values = np.concatenate([values[index.cells_of(s)] for s in order])
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
    )
    by_order = _functions_by_order(sorted_index, sorted_basis)
    priced = replace(
        plan,
        subsets=len(subsets),
        cells=sorted_index.n_cells,
        functions=sorted_basis.n_functions,
        functions_by_order=by_order,
    )
    saturated = solution.rank == data.codes.shape[1]
    return Decomposition(sorted_index, sorted_values, priced, sorted_solution, sorted_basis, saturated)


def _functions_by_order(index: CellIndex, basis: Basis) -> tuple[int, ...]:
    sizes = np.array([len(s) for s in index.subsets])
    return tuple(int(np.diff(basis.start)[sizes == k].sum()) for k in range(int(sizes.max()) + 1))
