"""Group lasso: a sparse path over subsets on the precomputed Gamma, with the penalty chosen on held-out rows.

Main effects are not penalised; they are eliminated, so that the path uses the Schur complement S of the interactions.
A subset is selected as a whole or not at all:

    minimise  c^T S c / 2 - c^T t + penalty * sum over A of sqrt(k_A) |c_A|.

Pure bases are orthonormal in each subset, so the norms of all groups are on one scale. The solver is accelerated
proximal gradients with warm starts along the path. (Common libraries solve the lasso of single columns; to select a
family of subsets, all functions of a subset must be shrunk together, for all outputs.)
The path only selects a family, which is then fitted exactly, without a penalty. Each family on the path is therefore
scored by its refit: scored by the shrunk coefficients, larger families would look better only because they are shrunk
less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from exanova.basis.functions import Basis, build_basis, dimensions, on_cells, on_functions
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
"""Fraction of the distinct rows held out to choose the penalty."""

PENALTIES = 24
SMALLEST = 3e-3
"""Number of penalties, and the last one as a fraction of the first, at which no subset is selected."""

ITERATIONS = 300
CHANGE = 1e-5
"""Converged when an iteration changes the coefficients by less than this fraction of their norm."""

MOST_CANDIDATES = 6000
"""Largest number of candidate functions without a budget; those with the largest gains are used."""


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
    """The family on the path, closed downward and within the budget, that predicts held-out rows best."""
    train, held = sample.split_to_choose(HELD_OUT, request.random_state)
    subsets = _candidates(train, request, progress)
    family = build_family(train.codes, train.mass, sample.sizes, subsets, request.threads)
    basis = build_basis(family)
    progress.phase("Gram matrix of the candidates")
    problem, backward, mains = _problem(train, family, basis, request)
    price = dimensions(
        build_family(sample.codes, sample.mass, sample.sizes, subsets, request.threads)
    )  # on all rows, not train
    best, best_family, rounds = -np.inf, [s for s in family.subsets if len(s) < 2], []
    largest = _norms(problem, problem.target) / np.where(problem.weight > 0, problem.weight, 1.0)
    top = float(largest.max(initial=0.0))
    state, unfinished = np.zeros_like(problem.target), 0
    progress.phase("lasso path", PENALTIES)
    for penalty in top * np.geomspace(1.0, SMALLEST, PENALTIES):
        state, converged = descend(problem, float(penalty), state)
        unfinished += not converged
        inside = np.concatenate([np.ones(mains, dtype=bool), _norms(problem, state) > 0])
        chosen = close_downward(subset for subset, kept in zip(family.subsets, inside, strict=True) if kept)
        functions = int(price[[family.position[s] for s in chosen]].sum())
        refit = refitted(problem, [family.position[s] - mains for s in chosen if len(s) > 1])
        score = _score(held, family, on_cells(family, basis, backward(refit)), request.threads)
        order = max(map(len, chosen))
        rounds.append(
            Round(order, len(family.subsets), len(chosen), functions, functions, score, float(penalty / (top or 1.0)))
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
    """Minimiser of the penalised problem by accelerated proximal gradients from ``start``, and whether it converged."""
    step = 1.0 / max(_largest_eigenvalue(problem.gram), np.finfo(np.float64).tiny)
    point, ahead, momentum = start, start, 1.0
    for _ in range(ITERATIONS):
        moved = shrink(problem, ahead - step * (problem.gram @ ahead - problem.target), step * penalty)
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        change = moved - point
        if np.sum(change * (ahead - moved)) > 0:  # momentum points uphill: restart it
            following, momentum = 1.0, 1.0
        ahead = moved + (momentum - 1.0) / following * change
        point, momentum = moved, following
        if np.linalg.norm(change) <= CHANGE * max(float(np.linalg.norm(point)), np.finfo(np.float64).tiny):
            return point, True
    return point, False


def refitted(problem: GroupProblem, groups: Sequence[int]) -> FloatArray:
    """(q, m) unpenalised coefficients of the selected groups, zero elsewhere."""
    coefficients = np.zeros_like(problem.target)
    numbers = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.arange(problem.start[g], problem.start[g + 1]) for g in groups)]
    )
    if len(numbers):
        chosen = np.asfortranarray(problem.gram[np.ix_(numbers, numbers)])
        coefficients[numbers] = solve(factorise(chosen, [slice(0, len(numbers))], "share"), problem.target[numbers])
    return coefficients


def shrink(problem: GroupProblem, values: FloatArray, amount: float) -> FloatArray:
    """Reduce the norm of every group by ``amount`` times the square root of its size, but not below zero.

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
    """Largest eigenvalue by Lanczos steps from a random start, accurate enough for a step length."""
    from scipy.sparse.linalg import eigsh

    if len(gram) < 16:
        return float(np.linalg.eigvalsh(gram).max(initial=0.0))
    start = np.random.default_rng(0).standard_normal(len(gram))  # a constant start may miss the largest eigenvector
    largest = eigsh(gram, k=1, which="LA", v0=start, tol=1e-2, return_eigenvectors=False)
    return 1.05 * float(largest[0])


def _candidates(train: Sample, request: Request, progress: Progress) -> list[Subset]:
    """Candidate subsets with all of their subsets: all permitted ones or, if too many, those with the best gains."""
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
    """Every subset up to an order, unless they have more than ``limit`` functions; listing stops at that point."""
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
    train: Sample, family: Family, basis: Basis, request: Request
) -> tuple[GroupProblem, Callable[[FloatArray], FloatArray], int]:
    """Eliminate intercept and main effects.

    Returns the problem, a function from its coefficients to those of all functions, and the number of subsets that are
    not penalised.
    """
    phi = Phi(family, train, request.threads)
    gamma = phi.gram(basis)
    mu = on_functions(family, basis, phi.analyse(train.weighted_values))
    mains = sum(1 for s in family.subsets if len(s) < 2)
    first = int(basis.start[mains])
    low = factorise(np.asfortranarray(gamma[:first, :first]), [slice(0, 1), slice(1, first)], "share")
    cross, high = gamma[:first, first:], gamma[first:, first:]
    reduced = solve(low, np.ascontiguousarray(cross))
    problem = GroupProblem(high - cross.T @ reduced, mu[first:] - reduced.T @ mu[:first], basis.start[mains:] - first)

    def backward(state: FloatArray) -> FloatArray:
        return np.vstack([solve(low, mu[:first] - cross @ state), state])

    return problem, backward, mains


def _score(held: Sample, family: Family, values: FloatArray, threads: int) -> float:
    """Mean R2 over the outputs on held-out rows."""
    fitted = Phi(family, NewRows(held.codes), threads).synthesise(values)
    p = held.probability
    mean = p @ held.values
    variance = (p @ (held.values - mean) ** 2).sum()
    return float(1.0 - (p @ (held.values - fitted) ** 2).sum() / variance) if variance > 0 else 1.0
