"""The driver: from codes, weights and model values to the value of every effect at every cell.

Whatever the route, the result is the same kind of thing: an index of cells and one array of values over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from exanova.basis.tables import Basis, build_basis, join, on_cells, on_functions, on_rows
from exanova.design import passes
from exanova.design.cells import CellIndex, complete_index, extend
from exanova.moments.gram import collect, projected_gram
from exanova.moments.modular import are_counts
from exanova.parallel import blas_threads, suitable_blas
from exanova.progress import Progress
from exanova.solve.choice import FLOATING, ROUNDED, PaperChoice, can_be_solved
from exanova.solve.dense import solve_dense
from exanova.solve.evidence import Shrinkage, Solution
from exanova.solve.grid import margins, solve_grid
from exanova.solve.matrix_free import Rows, solve_matrix_free
from exanova.solve.moments import solve_kept, solve_moments
from exanova.solve.plan import EVEN, Plan, Request, dense_applies, is_product, make_plan, orders_of
from exanova.solve.top_down import groups_of_shapes, solve_top_down
from exanova.typing import Codes, FloatArray, Subset

FEW_ITERATIONS, GRID_ITERATIONS = 1000, 5000
"""Iterations on a grid where something else would be quick too, and where it would not."""

LARGE_STACK = 20_000
"""Cells of tables of the same shape, on the average, from which they are worth a fit of their own."""


@dataclass(frozen=True)
class Decomposition:
    """Every effect at every cell, with the evidence of the solve.

    Attributes:
        index: cells of the family.
        values: (cells, m) effects.
        plan: what was planned.
        solution: evidence; its coefficients belong to ``basis``.
        basis: the functions used, ``None`` on the grid route, where they are implicit.
        saturated: whether the family spans every function on the support.
        shrinkage: what shrinking found out, where it was asked for.
    """

    index: CellIndex
    values: FloatArray
    plan: Plan
    solution: Solution
    basis: Basis | None
    saturated: bool
    shrinkage: Shrinkage | None = None

    def selected(self) -> list[tuple[Subset, tuple[int, ...]]] | None:
        """(A, z) of the paper's functions that were kept, in order; ``None`` for functions without a z."""
        if self.basis is None or self.basis.labels is None:
            return None
        kept = self.solution.kept
        return [
            (subset, tuple(z))
            for s, subset in enumerate(self.index.subsets)
            for z, taken in zip(self.basis.labels[s].tolist(), kept[self.basis.functions_of(s)], strict=True)
            if taken
        ]


@dataclass(frozen=True)
class Data:
    """The arrays of a support with model values: codes (d, r), weight (r,), values (r, m).

    ``within`` (r, m) is the variance of the values that were averaged at each row, ``None`` where there is none.
    """

    codes: Codes
    weight: NDArray[np.int64] | NDArray[np.float64]
    sizes: tuple[int, ...]
    values: FloatArray
    rows: int
    within: FloatArray | None = None

    @property
    def probability(self) -> FloatArray:
        """(r,) weights over their total."""
        return np.asarray(self.weight / self.weight.sum(), dtype=np.float64)


def decompose(data: Data, request: Request, progress: Progress | None = None) -> Decomposition:
    """Plan, then run the route the plan chose."""
    weight = data.weight.astype(np.float64)
    plan, index = make_plan(request, data.codes, weight, data.sizes, data.values.shape[1], data.rows)
    return run_plan(data, request, plan, index, progress or Progress(enabled=False))


def run_plan(data: Data, request: Request, plan: Plan, index: CellIndex | None, progress: Progress) -> Decomposition:
    """Run a plan that was made for these data."""
    with blas_threads(request.threads):
        if index is None:
            return _by_grid(data, request, plan, progress)
        if plan.route == "dense":
            return _by_dense(data, request, plan, index)
        if plan.route == "matrix-free":
            return _by_matrix_free(data, request, plan, index, progress)
        return _by_moments(data, request, plan, index, progress)


def _by_dense(data: Data, request: Request, plan: Plan, index: CellIndex) -> Decomposition:
    grown = _Growing(data, request, index)
    root = np.sqrt(data.probability)
    # Orders that were asked for are listed even where lower ones leave nothing to them.
    until_full = request.max_order is None and request.family is None
    solution = solve_dense(
        grown.blocks(), root, data.values, request.ties, stop_at_rank=len(root) if until_full else len(root) + 1
    )
    solution = replace(solution, method=solution.method + grown.how)
    values = on_cells(grown.index, grown.basis, solution.coefficients)
    return _finished(data, plan, grown.index, grown.basis, solution, values)


class _Growing:
    """Hands out the functions order by order and remembers which were asked for."""

    def __init__(self, data: Data, request: Request, surveyed: CellIndex) -> None:
        self._data, self._request, self._surveyed = data, request, surveyed
        self.index = surveyed.restricted(1)
        self.basis = build_basis(self.index, request.basis, orthonormal=request.ties == "share")
        is_paper = request.basis == "paper" and request.ties == "first"
        exact = is_paper and are_counts(data.weight)
        self._choice = PaperChoice(data.codes, data.weight, data.sizes, request.threads) if exact else None
        self._floating = request.ties == "first" and not exact

    @property
    def how(self) -> str:
        """How functions were chosen, where some were."""
        return f", {self._choice.how}" if self._choice else f", {FLOATING}" if self._floating else ""

    def blocks(self) -> Iterator[tuple[FloatArray, NDArray[np.bool_] | None]]:
        """(r, k) functions of each order, the intercept first, and which of them raise the rank, if that is known."""
        yield np.ones((self._data.codes.shape[1], 1)), None
        varying = [i for i, n in enumerate(self._data.sizes) if n > 1]
        for subsets in orders_of(self._request, varying):
            chosen = self._choice.add(subsets) if self._choice else None
            if chosen is not None and len(subsets[0]) == 1:
                chosen = chosen[1:]  # the first call tells of the intercept too
            yield self._next(subsets), chosen

    def _next(self, subsets: list[Subset]) -> FloatArray:
        first = len(self.index.subsets)
        if len(self._surveyed.subsets) > first:
            self.index = self._surveyed.restricted(first + len(subsets))
        else:
            weight = self._data.weight.astype(np.float64)
            self.index = extend(self.index, subsets, self._data.codes, weight, self._request.threads)
        orthonormal = self._request.ties == "share"
        new = build_basis(self.index, self._request.basis, orthonormal=orthonormal, first=first)
        self.basis = join(self.basis, new)
        return on_rows(self.index, new, range(first, len(self.index.subsets)), self._data.codes)


def _by_moments(data: Data, request: Request, plan: Plan, index: CellIndex, progress: Progress) -> Decomposition:
    rank_wanted = data.codes.shape[1]
    while True:
        basis = build_basis(index, request.basis, orthonormal=request.ties == "share")
        moments = collect(index, data.codes, data.weight, data.values, threads=request.threads, progress=progress)
        progress.phase("eliminating")
        gamma = projected_gram(moments, basis)
        gamma[range(1, len(gamma)), range(1, len(gamma))] += request.ridge
        orders = _order_slices(index, basis)
        projector = Projector(data, request, index, basis, moments.sums / float(index.weight[0]))
        known = _exact_choice(data, request, index, basis)
        if known is None:
            solution = solve_moments(gamma, orders, projector, request.ties)
        else:
            solution = replace(solve_kept(gamma, orders, projector, known[0]), method=known[1])
            if not can_be_solved(solution, data.weight):
                rounded = solve_moments(gamma, orders, projector, request.ties)
                solution = replace(rounded, method=f"{rounded.method}, {ROUNDED}")
        wider = _next_order(data, request, index) if solution.rank < rank_wanted else None
        if wider is None:
            break
        index = wider
    values = on_cells(index, basis, solution.coefficients)
    return _finished(data, plan, index, basis, solution, values)


def _by_matrix_free(data: Data, request: Request, plan: Plan, index: CellIndex, progress: Progress) -> Decomposition:
    basis = build_basis(index)
    rows = Rows(data.codes, data.weight, data.values, request.threads)
    solution = solve_matrix_free(rows, index, basis, progress)
    values = on_cells(index, basis, solution.coefficients)
    return Decomposition(index, values, plan, solution, basis, False)


def _exact_choice(data: Data, request: Request, index: CellIndex, basis: Basis) -> tuple[NDArray[np.bool_], str] | None:
    """The paper's greedy choice, exactly, and how it was made; ``None`` where functions are not those of the paper."""
    if request.ties != "first" or basis.labels is None or request.ridge:
        return None
    choice = PaperChoice(data.codes, data.weight, data.sizes, request.threads)
    return choice.add_family(index.subsets), f"elimination of the Gram matrix, {choice.how}"


@dataclass(frozen=True)
class Projector:
    """Projections of what coefficients leave of the model values, straight from the rows.

    Attributes:
        sums: (cells, m) sums of the weighted model values.
    """

    data: Data
    request: Request
    index: CellIndex
    basis: Basis
    sums: FloatArray

    def __call__(self, coefficients: FloatArray | None) -> FloatArray:
        """(q, m) projections of what ``coefficients`` leave (of the model values themselves for ``None``)."""
        if coefficients is None:
            return on_functions(self.index, self.basis, self.sums)
        tables = self.index.to_keys(on_cells(self.index, self.basis, coefficients))
        left = self.data.values - passes.gather(self.index.layout, self.data.codes, tables, self.request.threads)
        weighted = self.data.probability[:, None] * left
        sums = passes.scatter(self.index.layout, self.data.codes, weighted, threads=self.request.threads)
        left_over = on_functions(self.index, self.basis, sums[self.index.cell_key])
        left_over[1:] -= self.request.ridge * coefficients[1:]
        return left_over


def _next_order(data: Data, request: Request, index: CellIndex) -> CellIndex | None:
    """The index with one more order when every order is wanted and one is left; else ``None``."""
    if request.max_order is not None or request.family is not None:
        return None
    varying = [i for i, n in enumerate(data.sizes) if n > 1]
    listed = len(index.subsets[-1])
    if listed >= len(varying):
        return None
    further = Request(max_order=listed + 1, memory_limit=request.memory_limit, route="moments")
    weight = data.weight.astype(np.float64)
    make_plan(further, data.codes, weight, data.sizes, data.values.shape[1], data.rows)
    subsets = list(orders_of(further, varying))[-1]
    return extend(index, subsets, data.codes, weight, request.threads)


def _order_slices(index: CellIndex, basis: Basis) -> list[slice]:
    bounds = [0]
    for s, subset in enumerate(index.subsets):
        if s + 1 == len(index.subsets) or len(index.subsets[s + 1]) > len(subset):
            bounds.append(int(basis.start[s + 1]))
    return [slice(a, b) for a, b in pairwise(bounds)]


def _all_orders_at_once(data: Data, p: FloatArray, shape: tuple[int, ...]) -> bool:
    """Whether one fit of all orders is sooner done than one fit after the other from the highest order down.

    It is under independence, in one iteration, and for even weights unless large tables of the same shape abound.
    """
    per_stack = np.prod([n + 1 for n in shape]) / max(1, groups_of_shapes(shape))
    if p.max() <= EVEN * p.min() and per_stack <= LARGE_STACK:
        return True
    return is_product(data.codes, data.weight.astype(np.float64), data.sizes)


def _by_grid(data: Data, request: Request, plan: Plan, progress: Progress) -> Decomposition:
    varying = [i for i, n in enumerate(data.sizes) if n > 1]
    shape = tuple(data.sizes[i] for i in varying)
    levels = [data.codes[i].astype(np.int64) for i in varying]
    place = np.ravel_multi_index(levels, shape) if shape else np.zeros(1, dtype=np.int64)
    p, f = np.empty(int(np.prod(shape))), np.empty((int(np.prod(shape)), data.values.shape[1]))
    p[place], f[place] = data.probability, data.values
    progress.phase("conjugate gradients")
    solve = solve_grid if _all_orders_at_once(data, p, shape) else solve_top_down
    # Where a factorisation would be cheap, the most uneven weights are left to it after some iterations.
    cheap = request.route == "auto" and dense_applies(len(p), len(p))
    limit = FEW_ITERATIONS if cheap else GRID_ITERATIONS
    # Products along one axis are as long as the table and as narrow as the axis.
    with suitable_blas(float(np.prod([n + 1 for n in shape])) * max(shape, default=1) * f.shape[1]):
        found = solve(p.reshape(shape), f.reshape(*shape, -1), limit, progress.step)
        weights = margins(p.reshape(*shape, 1))[..., 0] * float(data.weight.sum())
    if not found.converged and request.route == "auto":
        dense = Request(**{**request.__dict__, "route": "dense"})
        weight = data.weight.astype(np.float64)
        again, index = make_plan(dense, data.codes, weight, data.sizes, data.values.shape[1], data.rows)
        assert index is not None
        return _by_dense(data, dense, again, index)
    index = complete_index(data.sizes, varying, weights)
    values = _flat(index, varying, found.effects)
    count = plan.functions
    solution = Solution(
        coefficients=np.zeros((0, data.values.shape[1])),
        kept=np.ones(count, dtype=bool),
        rank_by_order=plan.functions_by_order,
        smallest_kept=float("nan"),
        largest_dropped=0.0,
        null=np.zeros((count, 0)),
        iterations=found.iterations,
        residual=found.residual,
        method="conjugate gradients on the grid" + (", from the top down" if solve is solve_top_down else ""),
        converged=found.converged,
    )
    return Decomposition(index, values, plan, solution, None, True)


def _flat(index: CellIndex, varying: list[int], effects: FloatArray) -> FloatArray:
    """Values of an extended tensor in the order of the cells of ``index``."""
    parts = []
    for subset in index.subsets:
        place = tuple(slice(1, None) if i in subset else 0 for i in varying)
        parts.append(effects[place].reshape(-1, effects.shape[-1]))
    return np.concatenate(parts)


def _finished(
    data: Data, plan: Plan, index: CellIndex, basis: Basis, solution: Solution, values: FloatArray
) -> Decomposition:
    return Decomposition(index, values, plan, solution, basis, solution.rank == data.codes.shape[1])
