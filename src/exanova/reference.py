"""The paper, literally: the functions phi, the system Gamma c = mu and Algorithm 1. Small, readable and slow.

The paper is "Exact Functional ANOVA Decomposition for Categorical Inputs Models" (Ferrere, Bousquet, Gamboa,
Loubes, Muré); every function below names the definition it implements. Nothing in the package calls this
module: it serves readers of the paper, as an oracle for tests, and as a baseline for benchmarks.

A support is given as ``codes``, shape (d, r), with levels ``0..N_i - 1`` all observed and the r columns
distinct, and ``p``, shape (r,), their probabilities. Model values ``F`` have shape (r, m), or (r,) for one
output.

On a complete table the functions phi of a subset are orthogonal to every function of fewer of its features.
Where combinations are missing they are not (see :func:`phi`); the rest of the package uses pure bases.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from math import prod
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from exanova.errors import InputError
from exanova.typing import Codes, FloatArray, Subset

Index: TypeAlias = tuple[Subset, tuple[int, ...]]
"""One element (A, z) of the paper's index space: a subset and one level, never the last, for each member."""

StopReason: TypeAlias = Literal["full rank", "max_rank", "max_seconds", "no more candidates"]
"""Why Algorithm 1 ended: full rank, a budget was reached, or there were no more candidates."""

RANK_TOLERANCE = 1e-10
"""A candidate whose part outside the span is below this fraction of its norm does not raise the rank.

For a dependent candidate this fraction is about 1e-15 due to rounding, a little more once nearly dependent columns
have been kept; for independent functions of real tables it is far larger.
"""


def canonical_subsets(d: int, max_order: int | None = None) -> Iterator[Subset]:
    """Subsets of ``range(d)`` by size, then lexicographically: the order that Algorithm 1 fixes on line 2.

    >>> list(canonical_subsets(3, max_order=2))
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    top = d if max_order is None else min(max_order, d)
    for order in range(top + 1):
        yield from combinations(range(d), order)


def functions(sizes: Sequence[int], max_order: int | None = None) -> Iterator[Index]:
    """The index space of pairs (A, z), z in the truncated grid of A (section 3), in canonical order.

    A constant feature has no level below its last, so no subset contains it.

    >>> list(functions([3, 1, 2]))
    [((), ()), ((0,), (0,)), ((0,), (1,)), ((2,), (0,)), ((0, 2), (0, 0)), ((0, 2), (1, 0))]
    """
    for subset in canonical_subsets(len(sizes), max_order):
        for z in product(*(range(sizes[i] - 1) for i in subset)):
            yield subset, z


def cell_probabilities(codes: Codes, p: FloatArray, subset: Subset) -> FloatArray:
    """p_A(x_A) for every row of the support, shape (r,): the probability of the cell of A that contains the row.

    >>> cell_probabilities(np.array([[0, 0, 1], [0, 1, 0]]), np.array([0.5, 0.2, 0.3]), (0,))
    array([0.7, 0.7, 0.3])
    """
    cell = np.zeros(codes.shape[1], dtype=np.int64)
    for i in subset:
        # Renumbering after each feature prevents overflow of the product of level counts.
        _, cell = np.unique(cell * (int(codes[i].max()) + 1) + codes[i], return_inverse=True)
    return np.asarray(np.bincount(cell, weights=p)[cell], dtype=np.float64)


def phi(codes: Codes, p: FloatArray, subset: Subset, z: Sequence[int]) -> FloatArray:
    """phi_A^(z) on the rows of the support, shape (r,): definition "Inverse likelihood mechanism", section 3.

    The product over i in A of 1{x_i = z_i} - 1{x_i = N_i - 1}, divided by p_A(x_A); 1 for the empty subset.

    >>> phi(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), np.full(4, 0.25), (0, 1), (0, 0))
    array([ 4., -4., -4.,  4.])

    The last lemma of the appendix needs every corner of the contrast. On {(0,0), (0,1), (1,0)}, the modified
    example of section 4, one corner is missing and the mean is 1 - 1 - 1, not 0:

    >>> p = np.array([0.5, 0.25, 0.25])
    >>> phi(np.array([[0, 0, 1], [0, 1, 0]]), p, (0, 1), (0, 0)) @ p
    np.float64(-1.0)
    """
    return _signs(codes, subset, z) / cell_probabilities(codes, p, subset)


def _signs(codes: Codes, subset: Subset, z: Sequence[int]) -> FloatArray:
    """The numerator of phi, values in {-1, 0, 1}, shape (r,)."""
    signs = np.ones(codes.shape[1])
    for i, level in zip(subset, z, strict=True):
        last = int(codes[i].max())
        if not 0 <= level < last:
            raise InputError(
                f"Level {level} was given for feature {i}, which has {last + 1} levels: "
                f"expected 0 to {last - 1}, since the last level is the one phi subtracts."
            )
        signs *= (codes[i] == level).astype(float) - (codes[i] == last)
    return signs


def evaluate(codes: Codes, p: FloatArray, selected: Sequence[Index]) -> FloatArray:
    """The given functions side by side on the rows, shape (r, k).

    >>> evaluate(np.array([[0, 1]]), np.array([0.5, 0.5]), [((), ()), ((0,), (0,))])
    array([[ 1.,  2.],
           [ 1., -2.]])
    """
    return np.column_stack([phi(codes, p, subset, z) for subset, z in selected])


def gram(Phi: FloatArray, p: FloatArray) -> FloatArray:
    """Gamma of section 3.3, shape (k, k): the inner products <phi_A, phi_B> in L2(p).

    >>> gram(np.array([[1.0, 2.0], [1.0, -2.0]]), np.array([0.5, 0.5]))
    array([[1., 0.],
           [0., 4.]])
    """
    return np.asarray(Phi.T @ (p[:, None] * Phi))


def projections(Phi: FloatArray, p: FloatArray, F: FloatArray) -> FloatArray:
    """mu(f) of section 3.3, shape (k, m): the inner products <f, phi_A> in L2(p), one column per output.

    >>> projections(np.array([[1.0, 2.0], [1.0, -2.0]]), np.array([0.5, 0.5]), np.array([3.0, 1.0]))
    array([2., 2.])
    """
    return np.asarray((p[:, None] * Phi).T @ F)


def restricted_solve(Phi: FloatArray, p: FloatArray, F: FloatArray) -> FloatArray:
    """Coefficients c, shape (k, m), of Gamma c = mu restricted to k independent functions (section 4).

    >>> restricted_solve(np.array([[1.0, 2.0], [1.0, -2.0]]), np.array([0.5, 0.5]), np.array([3.0, 1.0]))
    array([2. , 0.5])
    """
    try:
        return np.asarray(np.linalg.solve(gram(Phi, p), projections(Phi, p, F)), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"The {Phi.shape[1]} functions given are linearly dependent on the {Phi.shape[0]} rows of the "
            "support; expected independent columns. Choose them with algorithm1 first."
        ) from error


class Expansion(NamedTuple):
    """A representation f = sum of c_A^(z) phi_A^(z), ready for ``effects(*expansion)``."""

    selected: tuple[Index, ...]
    """The k functions, in canonical order."""
    Phi: FloatArray
    """Their values on the rows, shape (r, k)."""
    c: FloatArray
    """Their coefficients, shape (k, m)."""


def full_support_solve(codes: Codes, p: FloatArray, sizes: Sequence[int], F: FloatArray) -> Expansion:
    """The dense |E| x |E| system Gamma c = mu (Proposition "linear system") where every combination occurs.

    There all the functions together are a basis and the decomposition is unique (corollary "full support").

    >>> expansion = full_support_solve(np.array([[0, 1]]), np.array([0.5, 0.5]), [2], np.array([3.0, 1.0]))
    >>> expansion.c
    array([2. , 0.5])
    """
    _check_support(codes, p, sizes)
    if codes.shape[1] != prod(sizes):
        raise InputError(
            f"The support has {codes.shape[1]} rows but the grid of sizes {tuple(sizes)} has {prod(sizes)}; "
            "expected every combination once. Use algorithm1 and restricted_solve on other supports."
        )
    selected = tuple(functions(sizes))
    Phi = evaluate(codes, p, selected)
    return Expansion(selected, Phi, restricted_solve(Phi, p, F))


def effects(selected: Sequence[Index], Phi: FloatArray, c: FloatArray) -> dict[Subset, FloatArray]:
    """f_A = sum over z of c_A^(z) phi_A^(z) on the rows (main theorem), shape (r, m) for each subset.

    >>> expansion = full_support_solve(np.array([[0, 1]]), np.array([0.5, 0.5]), [2], np.array([3.0, 1.0]))
    >>> effects(*expansion)
    {(): array([2., 2.]), (0,): array([ 1., -1.])}
    """
    columns: dict[Subset, list[int]] = {}
    for column, (subset, _) in enumerate(selected):
        columns.setdefault(subset, []).append(column)
    return {subset: np.asarray(Phi[:, own] @ c[own]) for subset, own in columns.items()}


@dataclass(frozen=True)
class GreedyBasis:
    """The result of Algorithm 1."""

    selected: tuple[Index, ...]
    """The k functions kept, in canonical order."""
    Phi: FloatArray
    """Their values on the rows, shape (r, k)."""
    tried: int
    """Number of candidates considered, kept or not."""
    seconds: float
    """Time spent."""
    stopped: StopReason
    """Why the loop ended."""


def algorithm1(
    codes: Codes,
    p: FloatArray,
    sizes: Sequence[int],
    *,
    max_rank: int | None = None,
    max_order: int | None = None,
    max_seconds: float | None = None,
    tolerance: float = RANK_TOLERANCE,
) -> GreedyBasis:
    """Algorithm 1, "Greedy Approach": keep a candidate, in canonical order, only if it raises the rank.

    The rank check is Gram-Schmidt in L2(p) against the kept functions, one candidate at a time: O(k r) for each.
    The budgets are the paper's low-rank approximation: at most ``max_rank`` functions, subsets of at most
    ``max_order`` features, about ``max_seconds`` of time.

    >>> basis = algorithm1(np.array([[0, 0, 1], [0, 1, 0]]), np.array([0.5, 0.25, 0.25]), [2, 2])
    >>> basis.selected, basis.tried, basis.stopped
    ((((), ()), ((0,), (0,)), ((1,), (0,))), 3, 'full rank')
    """
    _check_support(codes, p, sizes)
    start, full_rank = time.perf_counter(), codes.shape[1]
    target = full_rank if max_rank is None else min(max_rank, full_rank)
    selected: list[Index] = []
    columns: list[FloatArray] = []
    Q, root_p, tried, late = np.empty((8, full_rank)), np.sqrt(p), 0, False
    for index, candidate in _candidates(codes, p, sizes, max_order):
        late = max_seconds is not None and time.perf_counter() - start > max_seconds
        if late or len(selected) >= target:
            break
        tried += 1
        direction = _new_direction(Q[: len(selected)], root_p * candidate, tolerance)
        if direction is not None:
            Q = _store(Q, len(selected), direction)
            selected.append(index)
            columns.append(candidate)
    Phi = np.column_stack(columns) if columns else np.empty((full_rank, 0))
    stopped = _stop_reason(len(selected), full_rank, max_rank, late)
    return GreedyBasis(tuple(selected), Phi, tried, time.perf_counter() - start, stopped)


def _candidates(
    codes: Codes, p: FloatArray, sizes: Sequence[int], max_order: int | None
) -> Iterator[tuple[Index, FloatArray]]:
    """``functions`` with their values, shape (r,); p_A is computed once per subset, not for each z."""
    for subset, indices in groupby(functions(sizes, max_order), key=itemgetter(0)):
        likelihood = cell_probabilities(codes, p, subset)
        for _, z in indices:
            yield (subset, z), _signs(codes, subset, z) / likelihood


def _new_direction(Q: FloatArray, y: FloatArray, tolerance: float) -> FloatArray | None:
    """The part of y, shape (r,), orthogonal to the rows of Q, shape (k, r), as a unit vector; None if it vanishes."""
    residual = y - (Q @ y) @ Q
    residual -= (Q @ residual) @ Q  # one pass leaves rounding errors of the size of y; a second removes them
    length = float(np.linalg.norm(residual))
    return residual / length if length > tolerance * float(np.linalg.norm(y)) else None


def _store(Q: FloatArray, k: int, direction: FloatArray) -> FloatArray:
    """Q with ``direction`` in row k, with twice as many rows if it was full."""
    if k == len(Q):
        Q = np.concatenate([Q, np.empty_like(Q)])
    Q[k] = direction
    return Q


def _stop_reason(rank: int, full_rank: int, max_rank: int | None, late: bool) -> StopReason:
    if rank == full_rank:
        return "full rank"
    if rank == max_rank:
        return "max_rank"
    return "max_seconds" if late else "no more candidates"


def _check_support(codes: Codes, p: FloatArray, sizes: Sequence[int]) -> None:
    """Refuse a support whose shapes, probabilities or level counts contradict each other."""
    if codes.ndim != 2 or len(sizes) != codes.shape[0] or p.shape != codes.shape[1:]:
        raise InputError(
            f"Got codes of shape {codes.shape}, p of shape {p.shape} and {len(sizes)} sizes; "
            "expected (d, r), (r,) and d. Pass one row of codes for each feature, one column for each point."
        )
    if not (p > 0).all():
        raise InputError(
            f"The least probability is {p.min()}; expected all positive. Drop the rows of probability zero."
        )
    levels = [np.unique(row) for row in codes]
    if any(not np.array_equal(observed, np.arange(n)) for observed, n in zip(levels, sizes, strict=True)):
        raise InputError(
            f"Got sizes {tuple(sizes)} for features with {tuple(map(len, levels))} observed levels; "
            "expected levels 0 to N_i - 1, all observed. Renumber the levels that occur."
        )
