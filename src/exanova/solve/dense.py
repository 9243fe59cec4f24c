"""Dense route: orthogonal factorisation of the functions on the rows, order by order. The most accurate route.

The columns sqrt(p) phi are factorised without forming their Gram matrix, so that directions of probability 1e-20 can
be distinguished from rounding; a Gram matrix would lose them below 1e-12. For order k, with U the orthonormal
directions of the lower orders,

    E_k = (I - U U^T) Phi_k = U_k diag(s_k) V_k^T   (share: singular vectors, minimum-norm solution)
                            = U_k R_k               (first: Gram-Schmidt in the given order, skipping)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.solve.elimination import Ties
from exanova.solve.evidence import Solution
from exanova.typing import FloatArray, IntArray

REFINEMENTS = 3

Chosen = NDArray[np.bool_] | None
"""(k,) which functions of an order raise the rank, if that was decided exactly."""


@dataclass(frozen=True)
class _Order:
    """Directions added by one order, E = u core, and the part of Phi that lies in lower orders."""

    phi: FloatArray
    u: FloatArray
    below: FloatArray
    kept: IntArray
    solve: Callable[[FloatArray], FloatArray]
    null: Callable[[], FloatArray]
    smallest: float
    dropped: float


def solve_dense(
    blocks: Iterable[tuple[FloatArray, Chosen]], root: FloatArray, values: FloatArray, ties: Ties, stop_at_rank: int
) -> Solution:
    """Fit ``values`` by the functions of all orders, lowest first.

    Args:
        blocks: for each order, (r, k) functions on the rows and, if that was decided exactly, which of them raise the
            rank; not consumed further once the rank is ``stop_at_rank``.
        root: (r,) square roots of the probabilities.
        values: (r, m) model values.
        ties: how redundancy inside an order is resolved.
        stop_at_rank: rank at which everything is explained.
    """
    orders: list[_Order] = []
    basis = np.zeros((len(root), 0))
    for block, chosen in blocks:
        orders.append(_add_order(root[:, None] * block, basis, ties, chosen))
        basis = np.hstack([basis, orders[-1].u])
        if basis.shape[1] >= stop_at_rank:
            break
    coefficients, residual, steps = _refine(orders, root[:, None] * values)
    null, independent = _dependences(orders)
    return Solution(
        coefficients=np.vstack(coefficients),
        kept=np.concatenate([part.kept for part in orders]),
        rank_by_order=tuple(part.u.shape[1] for part in orders),
        smallest_kept=min(part.smallest for part in orders),
        largest_dropped=max(part.dropped for part in orders),
        null=null,
        independent=independent,
        iterations=steps,
        residual=residual,
        method="orthogonal factorisation",
        leverage=np.einsum("ij,ij->i", basis, basis),
    )


def _add_order(phi: FloatArray, basis: FloatArray, ties: Ties, chosen: Chosen) -> _Order:
    below = basis.T @ phi
    rest = phi - basis @ below
    again = basis.T @ rest  # the second projection removes rounding errors of the first
    below, rest = below + again, rest - basis @ again
    tolerance = tolerances.rank_of_columns(*phi.shape)
    if ties == "share":
        return _shared(phi, below, rest, tolerance, basis)
    return _in_order(phi, below, rest, tolerance, basis, chosen)


def _shared(phi: FloatArray, below: FloatArray, rest: FloatArray, tolerance: float, basis: FloatArray) -> _Order:
    with suitable_blas(0):
        u, s, vt = np.linalg.svd(rest, full_matrices=False)
    rank = min(int(np.count_nonzero(s > tolerance)), len(phi) - basis.shape[1])
    v = vt[:rank].T

    def shortest(target: FloatArray) -> FloatArray:
        return np.asarray(v @ (target / s[:rank, None]))

    def null() -> FloatArray:
        if len(vt) == phi.shape[1]:  # all singular vectors were computed
            return vt[rank:].T
        with suitable_blas(0):
            return np.asarray(np.linalg.qr(v, mode="complete")[0][:, rank:])

    everything = np.ones(phi.shape[1], dtype=bool)
    dropped = float(s[rank:].max(initial=0.0)) ** 2
    smallest = float(s[rank - 1]) ** 2 if rank else 1.0
    return _Order(phi, _outside(basis, u[:, :rank]), below, everything, shortest, null, smallest, dropped)


def _outside(basis: FloatArray, u: FloatArray) -> FloatArray:
    """Make directions ``u`` orthogonal to ``basis`` again: normalising short ones has magnified rounding errors."""
    rest = u - basis @ (basis.T @ u)
    with suitable_blas(0):
        q, r = np.linalg.qr(rest)
    return np.asarray(q * np.sign(np.diagonal(r)))


def _in_order(
    phi: FloatArray, below: FloatArray, rest: FloatArray, tolerance: float, basis: FloatArray, chosen: Chosen
) -> _Order:
    from scipy.linalg import solve_triangular

    # The paper's functions do not have unit norm, and rounding errors are proportional to their norm.
    length = np.linalg.norm(phi, axis=0)
    length = np.where(length > 0, length, 1.0)
    q, kept, refused = gram_schmidt(rest / length, tolerance, basis, chosen)
    r = np.triu(q.T @ rest[:, kept])
    extra = np.setdiff1d(np.arange(phi.shape[1]), kept)

    def null() -> FloatArray:
        out = np.zeros((phi.shape[1], len(extra)))
        out[extra, np.arange(len(extra))] = 1.0
        if len(extra) and len(kept):
            out[kept] = -solve_triangular(r, q.T @ rest[:, extra])
        return out

    def selected(target: FloatArray) -> FloatArray:
        out = np.zeros((phi.shape[1], target.shape[1]))
        out[kept] = solve_triangular(r, target)
        return out

    mask = np.zeros(phi.shape[1], dtype=bool)
    mask[kept] = True
    smallest = float(np.square(np.diagonal(r) / length[kept]).min(initial=1.0))
    return _Order(phi, q, below, mask, selected, null, smallest, refused**2)


def gram_schmidt(
    columns: FloatArray, tolerance: float, basis: FloatArray, chosen: Chosen = None
) -> tuple[FloatArray, IntArray, float]:
    """Orthonormal directions of the columns that raise the rank, in order; their numbers; largest norm rejected.

    ``chosen`` (k,) marks the columns that raise the rank; by default, those with a residual on earlier ones.

    Directions are kept orthogonal to the orthonormal ``basis`` of earlier ones too. A short direction is projected
    again after normalising, which magnifies rounding errors.
    """
    rows, count = basis.shape
    q = np.empty((rows, min(rows, count + columns.shape[1])), order="F")
    q[:, :count] = basis
    kept: list[int] = []
    refused = 0.0
    for j in range(columns.shape[1]):
        known = q[:, : count + len(kept)]
        v = _projected(known, _projected(known, columns[:, j]))
        norm = float(np.linalg.norm(v))
        is_new = norm > tolerance if chosen is None else bool(chosen[j]) and norm > 0
        if is_new and known.shape[1] < rows:
            v = _projected(known, v / norm)
            q[:, known.shape[1]] = v / np.linalg.norm(v)
            kept.append(j)
        else:
            refused = max(refused, norm)
    return q[:, count : count + len(kept)], np.array(kept, dtype=np.int64), refused


def _projected(known: FloatArray, v: FloatArray) -> FloatArray:
    """``v`` less its part in the span of the orthonormal columns of ``known``."""
    return np.asarray(v - known @ (known.T @ v))


def _refine(orders: list[_Order], target: FloatArray) -> tuple[list[FloatArray], float, int]:
    """Solve, then solve for the residual of the projections until it stops decreasing."""
    total = [np.zeros((part.phi.shape[1], target.shape[1])) for part in orders]
    scale = max(_projection_size(orders, target), tolerances.EPS)
    left, best = target, np.inf
    for step in range(REFINEMENTS + 1):
        size = _projection_size(orders, left) / scale
        if step and (size >= best / 2 or size <= tolerances.ITERATIVE):
            return total, min(size, best), step
        best = min(best, size) if step else np.inf
        correction = _back_substitute(orders, left)
        total = [c + delta for c, delta in zip(total, correction, strict=True)]
        left = target - _evaluate(orders, total)
    return total, _projection_size(orders, left) / scale, REFINEMENTS


def _back_substitute(orders: list[_Order], target: FloatArray) -> list[FloatArray]:
    coefficients: list[FloatArray] = []
    for k in range(len(orders) - 1, -1, -1):
        part = orders[k]
        first = sum(p.u.shape[1] for p in orders[:k])
        rows = slice(first, first + part.u.shape[1])
        wanted = part.u.T @ target
        for above, c in zip(orders[k + 1 :], coefficients, strict=True):
            wanted = wanted - above.below[rows] @ c
        coefficients.insert(0, part.solve(wanted))
    return coefficients


def _evaluate(orders: list[_Order], coefficients: list[FloatArray]) -> FloatArray:
    return np.asarray(sum(part.phi @ c for part, c in zip(orders, coefficients, strict=True)))


def _projection_size(orders: list[_Order], left: FloatArray) -> float:
    return max(float(np.abs(part.u.T @ left).max(initial=0.0)) for part in orders)


def _dependences(orders: list[_Order]) -> tuple[FloatArray, FloatArray | None]:
    """(q, k) basis of the dependences among the functions or, if smaller, (q, rank) of their orthogonal complement."""
    size, rank = sum(part.phi.shape[1] for part in orders), sum(part.u.shape[1] for part in orders)
    if size - rank <= rank:
        return _null_space(orders), None
    rows = np.hstack([part.phi for part in orders])
    with suitable_blas(0):
        return np.zeros((size, 0)), np.linalg.svd(rows, full_matrices=False)[2][:rank].T


def _null_space(orders: list[_Order]) -> FloatArray:
    """(q, k) basis of the dependences among the functions, order by order, each with its terms of lower orders."""
    start = np.cumsum([0] + [part.phi.shape[1] for part in orders])
    columns = [np.zeros((int(start[-1]), 0))]
    for k, part in enumerate(orders):
        own = part.null()
        if not own.shape[1]:
            continue
        directions = [np.zeros((p.phi.shape[1], own.shape[1])) for p in orders]
        directions[k] = own
        for lower in range(k - 1, -1, -1):
            first = sum(p.u.shape[1] for p in orders[:lower])
            rows = slice(first, first + orders[lower].u.shape[1])
            wanted = -sum(orders[above].below[rows] @ directions[above] for above in range(lower + 1, k + 1))
            directions[lower] = orders[lower].solve(np.asarray(wanted))
        columns.append(np.vstack(directions))
    return np.hstack(columns)
