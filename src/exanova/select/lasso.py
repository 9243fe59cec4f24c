"""Group lasso: a sparse path over subsets on the precomputed Gamma, its penalty chosen by held-out fidelity.

Main effects are not penalised; they are eliminated, so that the path lives on the Schur complement S of the
interactions. A subset enters or stays out as a whole:

    minimise  c^T S c / 2 - c^T t + penalty * sum over A of sqrt(k_A) |c_A|.

Pure bases are orthonormal in each subset, so the norms of all groups are on one scale. Accelerated proximal
gradients, warm from one penalty to the next. (The usual libraries solve the lasso of single columns; shrinking all
functions of a subset together, for all outputs, is what makes the result a family of subsets.)
The path only chooses; the decomposition is then fitted again, exactly, without any penalty. So a family is judged by
its refit too: judged by shrunk coefficients, every further subset would pay by letting the others shrink less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from exanova.basis.tables import Basis, build_basis, dimensions, on_cells, on_functions
from exanova.data.sample import NewRows, Sample
from exanova.design.family import Family, build_family
from exanova.design.subsets import close_downward
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select.gains import PairScreen, cost
from exanova.select.record import Round, Selection
from exanova.solve.elimination import factorise, solve
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray, Subset

HELD_OUT = 0.2
"""Share of the distinct rows the penalty is chosen on."""

PENALTIES = 24
SMALLEST = 3e-3
"""Length of the path, and its last penalty as a share of the first that takes nothing."""

ITERATIONS = 300
CHANGE = 1e-5
"""A penalty is done when an iteration changes the coefficients by less than this share of their norm."""

MOST_CANDIDATES = 6000
"""Functions a path without a budget may start from: those with the largest gains."""


@dataclass(frozen=True)
class GroupProblem:
    """Schur complement, target and groups of the penalised functions."""

    gram: FloatArray
    target: FloatArray
    start: IntArray

    @property
    def weight(self) -> FloatArray:
        """(groups,) square roots of the group sizes."""
        return np.sqrt(np.diff(self.start))


def choose_by_lasso(sample: Sample, request: Request, progress: Progress) -> tuple[tuple[Subset, ...], Selection]:
    """The family, closed downward, whose path predicts held-out rows best, within the budget."""
    train, held = sample.split(HELD_OUT, request.random_state)
    family = _candidates(train, request, progress)
    index = build_family(train.codes, train.mass, sample.sizes, family, request.threads)
    basis = build_basis(index)
    progress.phase("Gram matrix of the candidates")
    problem, backward, mains = _problem(train, index, basis, request)
    price = dimensions(
        build_family(sample.codes, sample.mass, sample.sizes, family, request.threads)
    )  # on all rows, not train
    best, best_family, rounds = -np.inf, [s for s in index.subsets if len(s) < 2], []
    largest = _norms(problem, problem.target) / np.where(problem.weight > 0, problem.weight, 1.0)
    top = float(largest.max(initial=0.0))
    state, unfinished = np.zeros_like(problem.target), 0
    progress.phase("lasso path", PENALTIES)
    for penalty in top * np.geomspace(1.0, SMALLEST, PENALTIES):
        state, converged = descend(problem, float(penalty), state)
        unfinished += not converged
        inside = np.concatenate([np.ones(mains, dtype=bool), _norms(problem, state) > 0])
        chosen = close_downward(subset for subset, kept in zip(index.subsets, inside, strict=True) if kept)
        functions = int(price[[index.position[s] for s in chosen]].sum())
        refit = refitted(problem, [index.position[s] - mains for s in chosen if len(s) > 1])
        score = _score(held, index, on_cells(index, basis, backward(refit)), request.threads)
        order = max(map(len, chosen))
        rounds.append(
            Round(order, len(index.subsets), len(chosen), functions, functions, score, float(penalty / (top or 1.0)))
        )
        progress.step()
        if request.max_terms is not None and functions > request.max_terms:
            break
        if score > best:
            best, best_family = score, chosen
    stopped = f"held-out R2 of the best refit: {best:.4f}"
    if unfinished:
        stopped += f"; {unfinished} of {len(rounds)} penalties did not converge in {ITERATIONS} iterations"
    return tuple(best_family), Selection("lasso", request.max_terms, tuple(rounds), stopped)


def descend(problem: GroupProblem, penalty: float, start: FloatArray) -> tuple[FloatArray, bool]:
    """Minimiser of the penalised problem by accelerated proximal gradients, from ``start``; whether it converged."""
    step = 1.0 / max(_largest_eigenvalue(problem.gram), np.finfo(np.float64).tiny)
    point, ahead, momentum = start, start, 1.0
    for _ in range(ITERATIONS):
        moved = shrink(problem, ahead - step * (problem.gram @ ahead - problem.target), step * penalty)
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        change = moved - point
        if np.sum(change * (ahead - moved)) > 0:  # momentum points uphill: start it again
            following, momentum = 1.0, 1.0
        ahead = moved + (momentum - 1.0) / following * change
        point, momentum = moved, following
        if np.linalg.norm(change) <= CHANGE * max(float(np.linalg.norm(point)), np.finfo(np.float64).tiny):
            return point, True
    return point, False


def refitted(problem: GroupProblem, groups: Sequence[int]) -> FloatArray:
    """(q, m) coefficients without any penalty of the groups that were chosen, zero elsewhere."""
    coefficients = np.zeros_like(problem.target)
    numbers = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.arange(problem.start[g], problem.start[g + 1]) for g in groups)]
    )
    if len(numbers):
        chosen = np.asfortranarray(problem.gram[np.ix_(numbers, numbers)])
        coefficients[numbers] = solve(factorise(chosen, [slice(0, len(numbers))], "share"), problem.target[numbers])
    return coefficients


def shrink(problem: GroupProblem, values: FloatArray, amount: float) -> FloatArray:
    """Shorten every group by ``amount`` times the root of its size, to zero at most.

    >>> problem = GroupProblem(np.eye(3), np.zeros((3, 1)), np.array([0, 2, 3]))
    >>> shrink(problem, np.array([[3.0], [4.0], [0.5]]), 1.0).round(6).ravel().tolist()
    [2.151472, 2.868629, 0.0]
    """
    norms = _norms(problem, values)
    factor = np.maximum(0.0, 1.0 - amount * problem.weight / np.where(norms > 0, norms, 1.0))
    return np.asarray(values * np.repeat(factor, np.diff(problem.start))[:, None])


def _norms(problem: GroupProblem, values: FloatArray) -> FloatArray:
    squares = np.concatenate([[0.0], np.cumsum(np.square(values).sum(axis=1))])
    return np.sqrt(np.maximum(0.0, np.diff(squares[problem.start])))


def _largest_eigenvalue(gram: FloatArray) -> float:
    """An upper estimate by Lanczos steps from a random start: enough for a step length."""
    from scipy.sparse.linalg import eigsh

    if len(gram) < 16:
        return float(np.linalg.eigvalsh(gram).max(initial=0.0))
    start = np.random.default_rng(0).standard_normal(len(gram))  # a plain start may miss the largest direction
    found = eigsh(gram, k=1, which="LA", v0=start, tol=1e-2, return_eigenvectors=False)
    return 1.05 * float(found[0])


def _candidates(train: Sample, request: Request, progress: Progress) -> list[Subset]:
    """Candidate subsets with their parts: those permitted, the best by gain when they are too many."""
    if request.candidates is not None:
        return close_downward([*request.candidates, *((i,) for i, n in enumerate(train.sizes) if n > 1)])
    varying = train.varying
    if request.max_order is not None and request.max_order < 2:
        return close_downward((i,) for i in varying)
    limit = MOST_CANDIDATES if request.max_terms is None else min(MOST_CANDIDATES, 4 * request.max_terms)
    if request.max_order is None or request.max_order > 2:
        everything = _all_within(varying, request.max_order, train.sizes, limit)
        if everything is not None:
            return everything
    progress.phase("screening candidates")
    mean = train.probability @ train.values
    gains = PairScreen(train.codes, train.probability, train.sizes, request.threads).gains(train.values - mean)
    order = gains.best_first()
    kept = order[np.cumsum(gains.functions[order]) <= limit]
    return close_downward([*((i,) for i in varying), *(gains.subsets[k] for k in kept)])


def _all_within(varying: list[int], max_order: int | None, sizes: tuple[int, ...], limit: int) -> list[Subset] | None:
    """Every subset up to an order, unless they have more than ``limit`` functions; listed no further than that."""
    highest = len(varying) if max_order is None else min(max_order, len(varying))
    listed: list[Subset] = []
    functions = 0
    for subset in chain.from_iterable(combinations(varying, k) for k in range(highest + 1)):
        functions += cost(sizes, subset)
        if functions > limit:
            return None
        listed.append(subset)
    return listed


def _problem(
    train: Sample, index: Family, basis: Basis, request: Request
) -> tuple[GroupProblem, Callable[[FloatArray], FloatArray], int]:
    """Eliminate intercept and main effects; also the way back to all coefficients, and how many subsets
    are not penalised."""
    phi = Phi(index, train, request.threads)
    gamma = phi.gram(basis)
    mu = on_functions(index, basis, phi.analyse(train.weighted_values))
    mains = sum(1 for s in index.subsets if len(s) < 2)
    first = int(basis.start[mains])
    low = factorise(np.asfortranarray(gamma[:first, :first]), [slice(0, 1), slice(1, first)], "share")
    cross, high = gamma[:first, first:], gamma[first:, first:]
    reduced = solve(low, np.ascontiguousarray(cross))
    problem = GroupProblem(high - cross.T @ reduced, mu[first:] - reduced.T @ mu[:first], basis.start[mains:] - first)

    def backward(state: FloatArray) -> FloatArray:
        return np.vstack([solve(low, mu[:first] - cross @ state), state])

    return problem, backward, mains


def _score(held: Sample, index: Family, values: FloatArray, threads: int) -> float:
    """Mean R2 over the outputs on held-out rows."""
    fitted = Phi(index, NewRows(held.codes), threads).synthesise(values)
    p = held.probability
    mean = p @ held.values
    variance = (p @ (held.values - mean) ** 2).sum()
    return float(1.0 - (p @ (held.values - fitted) ** 2).sum() / variance) if variance > 0 else 1.0
