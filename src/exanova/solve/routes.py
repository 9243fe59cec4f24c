"""The five routes from a sample and a family to effects, in one registry.

| route | needs | how |
|---|---|---|
| grid | a complete table, all orders | conjugate gradients on tensors, no matrix |
| dense | few rows or few functions | orthogonal factorisation of the functions on the rows |
| moments | a Gram matrix that fits | Gram matrix of counts, elimination order by order, refinement from the rows |
| matrix-free | pure functions, shared ties | lower orders eliminated, conjugate gradients over passes of the rows |
| completion | the same, all orders | missing cells filled in, decomposition from the highest order down |

Each is one :class:`Route`: its name, when it is not applicable, its cost, and its solve. A new route is one more entry
of :data:`ROUTES`; ``planning.choose`` decides when it is used. Every route returns a ``Solved``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import Basis, build_basis, join, on_cells, order_slices
from exanova.data.sample import Sample
from exanova.design.family import Family, complete_family, extend
from exanova.parallel import suitable_blas
from exanova.phi.counted_family import CountedFamily
from exanova.phi.gram import CommonRows
from exanova.phi.operator import FEW_VALUES, Phi
from exanova.phi.residues import are_counts
from exanova.progress import Progress
from exanova.solve import price, seconds
from exanova.solve.choice import FLOATING, ROUNDED, PaperChoice, can_be_solved
from exanova.solve.completion import solve_completion
from exanova.solve.dense import solve_dense
from exanova.solve.evidence import AtRows, Solution, Solved, first_functions
from exanova.solve.grid import margins, solve_grid
from exanova.solve.matrix_free import largest_pair, solve_matrix_free
from exanova.solve.moments_route import Projections, solve_kept, solve_moments
from exanova.solve.plan import Plan
from exanova.solve.refusals import completion_refusal, dense_refusal, grid_refusal, matrix_free_refusal, tables_refusal
from exanova.solve.request import Request, orders_of
from exanova.solve.survey import EVEN, Survey, dense_applies, is_product
from exanova.solve.top_down import groups_of_shapes, solve_top_down
from exanova.typing import FloatArray, Subset

FEW_ITERATIONS, GRID_ITERATIONS = 1000, 5000
"""Largest number of iterations on a grid if another route would be fast too, and if not."""

LARGE_STACK = 20_000
"""Average number of cells per stack of tables of one shape from which a separate fit of each stack is worthwhile."""


KnownGram = Callable[[Family], tuple[Basis, FloatArray]]
"""From a family to functions of its subsets and their Gram matrix, Fortran order, which may be overwritten."""


@dataclass(frozen=True)
class SolveJob:
    """The input of a route; ``known`` functions are used if they are all that the plan counts."""

    sample: Sample
    request: Request
    plan: Plan
    survey: Survey
    progress: Progress
    known: KnownGram | None = None

    @property
    def family(self) -> Family:
        """The family that was surveyed."""
        assert self.survey.family is not None
        return self.survey.family


@dataclass(frozen=True)
class Route:
    """One way to solve.

    Attributes:
        name: its name in ``route=`` and in the certificate.
        refusal: why the route is not applicable to a request and a surveyed table, in words; ``None`` if it is.
        memory: bytes of its own work.
        passes: passes over the rows.
        seconds: seconds on two cores, without the passes.
        solve: the solve itself.
    """

    name: str
    refusal: Callable[[Request, Survey], str | None]
    memory: Callable[[Request, Survey], int]
    passes: Callable[[Survey], int]
    seconds: Callable[[Survey], float]
    solve: Callable[[SolveJob], Solved]


def _all_orders_at_once(sample: Sample, p: FloatArray, shape: tuple[int, ...]) -> bool:
    """Whether one fit of all orders is faster than separate fits from the highest order down.

    It is under independence (one iteration), and for even weights unless there are many large tables of one shape.
    """
    per_stack = np.prod([n + 1 for n in shape]) / max(1, groups_of_shapes(shape))
    return bool(p.max() <= EVEN * p.min() and per_stack <= LARGE_STACK) or is_product(sample)


def _by_grid(job: SolveJob) -> Solved:
    sample, request = job.sample, job.request
    varying = sample.varying
    shape = tuple(sample.sizes[i] for i in varying)
    levels = [sample.codes[i].astype(np.int64) for i in varying]
    place = np.ravel_multi_index(levels, shape) if shape else np.zeros(1, dtype=np.int64)
    p, f = np.empty(int(np.prod(shape))), np.empty((int(np.prod(shape)), sample.n_outputs))
    p[place], f[place] = sample.probability, sample.values
    job.progress.phase("conjugate gradients")
    solve = solve_grid if _all_orders_at_once(sample, p, shape) else solve_top_down
    # If a factorisation would be cheap, very uneven weights are left to it after some iterations.
    cheap = request.route == "auto" and dense_applies(len(p), len(p), even=False)
    limit = FEW_ITERATIONS if cheap else GRID_ITERATIONS
    # Each product along an axis multiplies the whole table by a matrix of the size of that axis.
    with suitable_blas(float(np.prod([n + 1 for n in shape])) * max(shape, default=1) * f.shape[1]):
        grid = solve(p.reshape(shape), f.reshape(*shape, -1), limit, job.progress.step)
        weights = margins(p.reshape(*shape, 1))[..., 0] * float(sample.weight.sum())
    family = complete_family(sample.sizes, varying, weights)
    count = job.plan.functions
    solution = Solution(
        coefficients=np.zeros((0, sample.n_outputs)),
        kept=np.ones(count, dtype=bool),
        rank_by_order=job.plan.functions_by_order,
        smallest_kept=float("nan"),
        largest_dropped=0.0,
        null=np.zeros((count, 0)),
        iterations=grid.iterations,
        residual=grid.residual,
        method="conjugate gradients on the grid" + (", from the top down" if solve is solve_top_down else ""),
        converged=grid.converged,
    )
    return Solved(family, _flat(family, varying, grid.effects), job.plan, solution, None, True)


def _flat(family: Family, varying: list[int], effects: FloatArray) -> FloatArray:
    """Values of an extended tensor in the order of the cells of ``family``."""
    parts = []
    for subset in family.subsets:
        place = tuple(slice(1, None) if i in subset else 0 for i in varying)
        parts.append(effects[place].reshape(-1, effects.shape[-1]))
    return np.concatenate(parts)


def _by_dense(job: SolveJob) -> Solved:
    sample, request = job.sample, job.request
    grown = _OrderByOrder(sample, request, job.family)
    root = np.sqrt(sample.probability)
    # Requested orders are listed even if lower ones explain everything.
    stop = len(root) if request.every_order else len(root) + 1
    solution = solve_dense(grown.blocks(), root, sample.values, request.ties, stop_at_rank=stop)
    solution = replace(solution, method=solution.method + grown.how)
    solved = finished(sample, job.plan, grown.family, grown.basis, solution)
    return replace(solved, gram=grown.gram_of_mains)


class _OrderByOrder:
    """Yields the functions order by order and keeps those that were used.

    Attributes:
        gram_of_mains: Gram matrix of the intercept and main effects, if these are pure and few.
    """

    def __init__(self, sample: Sample, request: Request, surveyed: Family) -> None:
        self._sample, self._request, self._surveyed = sample, request, surveyed
        self.family = surveyed.restricted(1)
        self.basis = build_basis(self.family, request.basis, orthonormal=request.ties == "share")
        is_paper = request.basis == "paper" and request.ties == "first"
        exact = is_paper and are_counts(sample.weight)
        self._choice = PaperChoice(sample.codes, sample.weight, sample.sizes, request.threads) if exact else None
        self._floating = request.ties == "first" and not exact
        self.gram_of_mains: FloatArray | None = None

    @property
    def how(self) -> str:
        """How functions were chosen, if some were."""
        return f", {self._choice.how}" if self._choice else f", {FLOATING}" if self._floating else ""

    def blocks(self) -> Iterator[tuple[FloatArray, NDArray[np.bool_] | None]]:
        """(r, k) functions of each order, the intercept first, and which of them raise the rank, if that is known."""
        yield np.ones((self._sample.n_rows, 1)), None
        for subsets in orders_of(self._request, self._sample.varying):
            chosen = self._choice.add(subsets) if self._choice else None
            if chosen is not None and len(subsets[0]) == 1:
                chosen = chosen[1:]  # the first call includes the intercept
            block = self._next(subsets)
            if len(subsets[0]) == 1 and self._request.is_plain and block.size <= FEW_VALUES:
                mains = np.hstack([np.ones((len(block), 1)), block])
                self.gram_of_mains = (self._sample.probability[:, None] * mains).T @ mains
            yield block, chosen

    def _next(self, subsets: list[Subset]) -> FloatArray:
        first, sample, request = len(self.family.subsets), self._sample, self._request
        if len(self._surveyed.subsets) > first:
            self.family = self._surveyed.restricted(first + len(subsets))
        else:
            self.family = extend(self.family, subsets, sample.codes, sample.mass, request.threads)
        new = build_basis(self.family, request.basis, orthonormal=request.ties == "share", first=first)
        self.basis = join(self.basis, new)
        return Phi(self.family, sample).functions(new, range(first, len(self.family.subsets)))


def _by_moments(job: SolveJob) -> Solved:
    sample, request, family = job.sample, job.request, job.family
    if job.known is not None:
        basis, gamma = job.known(family)
        if basis.n_functions == job.plan.functions:
            return _eliminated(job, basis, gamma)
    basis = build_basis(family, request.basis, orthonormal=request.ties == "share")
    phi = Phi(family, sample, request.threads)
    is_paper = request.ties == "first" and basis.labels is not None and not request.ridge
    common = phi.common_rows(job.progress) if is_paper and sample.counts is not None else None
    known = _exact_choice(sample, request, family, common) if is_paper else None
    gamma = phi.gram(basis, progress=job.progress, common=common)
    return _eliminated(job, basis, gamma, known)


def _eliminated(
    job: SolveJob, basis: Basis, gamma: FloatArray, known: tuple[NDArray[np.bool_], str] | None = None
) -> Solved:
    """Solve with a Gram matrix, for all functions or for those ``known`` to raise the rank (and how that is known)."""
    sample, request, family = job.sample, job.request, job.family
    phi = Phi(family, sample, request.threads)
    kept = first_functions(family, basis) if request.is_plain else 0
    first = gamma[:kept, :kept].copy() if kept else None
    job.progress.phase("eliminating")
    gamma[range(1, len(gamma)), range(1, len(gamma))] += request.ridge
    orders = order_slices(family, basis)
    sums = phi.analyse_blocks(lambda rows: sample.probability[rows, None] * sample.values[rows])
    project = Projections(phi, basis, sample, sums, request.ridge, None if known is None else known[0])
    if known is None:
        solution = solve_moments(gamma, orders, project, request.ties)
        solved = finished(sample, job.plan, family, basis, solution, project.at_rows(solution.coefficients))
        return replace(solved, gram=first)
    solution = replace(solve_kept(gamma, orders, project, known[0]), method=known[1])
    if not can_be_solved(solution, sample.weight):
        project = Projections(phi, basis, sample, sums, request.ridge)
        rounded = solve_moments(gamma, orders, project, request.ties)
        solution = replace(rounded, method=f"{rounded.method}, {ROUNDED}")
    return finished(sample, job.plan, family, basis, solution, project.at_rows(solution.coefficients))


def _exact_choice(
    sample: Sample, request: Request, family: Family, common: CommonRows | None
) -> tuple[NDArray[np.bool_], str]:
    """The paper's greedy choice, exactly, and how it was made; ``common``: its common rows, if weights are counts."""
    counted = CountedFamily(family, common) if common else None
    choice = PaperChoice(sample.codes, sample.weight, sample.sizes, request.threads, counted=counted)
    return choice.add_family(family.subsets), f"elimination of the Gram matrix, {choice.how}"


def _by_matrix_free(job: SolveJob) -> Solved:
    basis = build_basis(job.family, largest_pair=largest_pair(job.family))
    solution = solve_matrix_free(job.sample, job.family, basis, job.request.threads, job.progress)
    values = on_cells(job.family, basis, solution.coefficients)
    return Solved(job.family, values, job.plan, solution, basis, False)


def _by_completion(job: SolveJob) -> Solved:
    basis = build_basis(job.family)
    solution, at_rows = solve_completion(job.sample, job.family, basis, job.request.threads, job.progress)
    return finished(job.sample, job.plan, job.family, basis, solution, at_rows)


def finished(
    sample: Sample, plan: Plan, family: Family, basis: Basis, solution: Solution, at_rows: AtRows | None = None
) -> Solved:
    """Effects on cells from the coefficients of functions; ``at_rows``: what a pass over the rows found for them."""
    values = on_cells(family, basis, solution.coefficients) if at_rows is None else at_rows.effects
    return Solved(family, values, plan, solution, basis, solution.rank == sample.n_rows, at_rows=at_rows)


def _grid_memory(request: Request, survey: Survey) -> int:
    return price.grid(survey.cells, len(survey.sample.varying), survey.load, even=survey.is_even)


def _dense_memory(request: Request, survey: Survey) -> int:
    assert survey.family is not None
    return price.dense(survey.functions, survey.family, survey.load)


def _moments_memory(request: Request, survey: Survey) -> int:
    assert survey.family is not None
    return price.moments(survey.functions, survey.family, survey.load)


def _matrix_free_memory(request: Request, survey: Survey) -> int:
    assert survey.family is not None
    return price.matrix_free(survey.by_order, survey.family, survey.load, request.threads, survey.rows_of_levels)


def _completion_memory(request: Request, survey: Survey) -> int:
    assert survey.family is not None
    return price.completion(survey.functions, survey.low_cells, survey.family, survey.load)


ROUTES: dict[str, Route] = {
    route.name: route
    for route in (
        Route(
            "grid",
            grid_refusal,
            _grid_memory,
            lambda survey: 2,
            seconds.grid,
            _by_grid,
        ),
        Route("dense", dense_refusal, _dense_memory, lambda survey: len(survey.by_order) + 2, seconds.dense, _by_dense),
        Route(
            "moments",
            tables_refusal,
            _moments_memory,
            lambda survey: len(survey.by_order) + 6,
            seconds.moments,
            _by_moments,
        ),
        Route(
            "matrix-free",
            matrix_free_refusal,
            _matrix_free_memory,
            lambda survey: 2 * seconds.iterations_of(survey),
            seconds.matrix_free,
            _by_matrix_free,
        ),
        Route(
            "completion",
            completion_refusal,
            _completion_memory,
            lambda survey: len(survey.by_order) + 6,
            seconds.completion,
            _by_completion,
        ),
    )
}
"""Every route by its name."""
