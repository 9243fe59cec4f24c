"""Elimination order by order: a Cholesky factorisation of Gamma in which lower orders come first.

    Gamma = R^T R,   R block upper trapezoidal, one block of rows per order.

Lower orders have priority: each order is factorised after projecting out the lower ones. ``ties`` decides how
redundancy inside an order is resolved:

share   pivoted Cholesky S = P L L^T P^T, and the minimum-norm solution of L^T P^T c = t (the pseudo-inverse), which
        does not depend on the order of rows, columns or levels.
first   Cholesky in the order given, skipping a column whose pivot vanishes. This keeps the same columns as a greedy
        search that tests the rank one function at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.typing import FloatArray, IntArray

Ties = Literal["share", "first"]
PANEL = 128


@dataclass(frozen=True)
class OrderFactor:
    """Factor of one order after the lower ones: S = P L L^T P^T.

    Attributes:
        columns: the functions of this order among all.
        pivots: (k,) functions in the order of elimination; the first ``rank`` carry the factor.
        lower: (k, rank) L, its first ``rank`` rows lower triangular.
        dropped: largest pivot that was treated as rounding.
        row_space: (k, t) orthonormal basis of the range of L or of its orthogonal complement, whichever is smaller;
            ``None`` if solutions need no projection.
    """

    columns: slice
    pivots: IntArray
    lower: FloatArray
    dropped: float
    row_space: FloatArray | None = None

    @property
    def rank(self) -> int:
        """Rank added by this order."""
        return int(self.lower.shape[1])

    @property
    def smallest(self) -> float:
        """Smallest pivot that was kept."""
        return float(np.square(np.diagonal(self.lower)).min(initial=1.0))


@dataclass(frozen=True)
class Factor:
    """Factors of all orders and, for each, the rows of R to the right of its own block."""

    orders: tuple[OrderFactor, ...]
    right: tuple[FloatArray, ...]


def factorise(gamma: FloatArray, orders: Sequence[slice], ties: Ties, tolerance: float | None = None) -> Factor:
    """Factorise a Gram matrix with unit diagonal; ``gamma`` (Fortran order) is overwritten.

    >>> gram = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]], order="F")
    >>> factor = factorise(gram, [slice(0, 1), slice(1, 3)], "share")
    >>> [f.rank for f in factor.orders]
    [1, 1]
    """
    from scipy.linalg import solve_triangular

    tolerance = tolerances.rank_of_gram(len(gamma)) if tolerance is None else tolerance
    factors, right = [], []
    for columns in orders:
        block = np.asfortranarray(gamma[columns, columns])
        factor = (_pivoted if ties == "share" else _in_order)(block, columns, tolerance)
        later = slice(columns.stop, len(gamma))
        rows = gamma[columns, later][factor.pivots[: factor.rank]]
        rows = solve_triangular(factor.lower[: factor.rank], rows, lower=True, check_finite=False)
        if later.start < later.stop and factor.rank:
            gamma[later, later] -= (rows.T @ rows).T  # the same, in the order of gamma
        factors.append(factor)
        right.append(rows)
    return Factor(tuple(factors), tuple(right))


def solve(factor: Factor, projections: FloatArray) -> FloatArray:
    """Coefficients (q, m) with Gamma c = projections, shortest or supported on the kept functions."""
    from scipy.linalg import solve_triangular

    halves, remaining = [], projections.copy()
    for part, right in zip(factor.orders, factor.right, strict=True):
        top = part.pivots[: part.rank] + part.columns.start
        half = solve_triangular(part.lower[: part.rank], remaining[top], lower=True, check_finite=False)
        remaining[part.columns.stop :] -= right.T @ half
        halves.append(half)
    coefficients = np.zeros_like(projections)
    for part, right, half in reversed(list(zip(factor.orders, factor.right, halves, strict=True))):
        target = half - right @ coefficients[part.columns.stop :]
        coefficients[part.pivots + part.columns.start] = _shortest(part, target)
    return coefficients


def dependences(factor: Factor) -> tuple[FloatArray, FloatArray | None]:
    """(q, k) basis of the dependences among the functions or, if smaller, (q, rank) of their orthogonal complement."""
    size, rank = factor.orders[-1].columns.stop, sum(part.rank for part in factor.orders)
    if size - rank <= rank:
        return null_space(factor), None
    return np.zeros((size, 0)), orthonormal_columns(_rows_of_factor(factor, size, rank).T)


def _rows_of_factor(factor: Factor, size: int, rank: int) -> FloatArray:
    """(rank, q) R with Gamma = R^T R."""
    out, first = np.zeros((rank, size)), 0
    for part, right in zip(factor.orders, factor.right, strict=True):
        rows = slice(first, first + part.rank)
        out[rows, part.pivots + part.columns.start] = (
            np.tril(part.lower).T if part.rank == len(part.pivots) else part.lower.T
        )
        out[rows, part.columns.stop : part.columns.stop + right.shape[1]] = right
        first = rows.stop
    return out


def null_space(factor: Factor) -> FloatArray:
    """(q, k) basis of the linear dependences among the functions: one for each function that did not raise the rank.

    >>> gram = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]], order="F")
    >>> null_space(factorise(gram, [slice(0, 1), slice(1, 3)], "first")).ravel().tolist()
    [0.0, -1.0, 1.0]
    """
    size = factor.orders[-1].columns.stop
    columns = [_null_of_order(factor, k, size) for k in range(len(factor.orders))]
    return np.hstack(columns)


def _null_of_order(factor: Factor, k: int, size: int) -> FloatArray:
    """Functions of one order that did not raise the rank, as combinations of kept ones and of lower orders."""
    from scipy.linalg import solve_triangular

    part = factor.orders[k]
    dropped = part.pivots[part.rank :] + part.columns.start
    direction = np.zeros((size, len(dropped)))
    if not len(dropped):
        return direction
    direction[dropped, np.arange(len(dropped))] = 1.0
    direction[part.pivots[: part.rank] + part.columns.start] = -solve_triangular(
        part.lower[: part.rank], part.lower[part.rank :].T, lower=True, trans="T", check_finite=False
    )
    for below, right in reversed(list(zip(factor.orders[:k], factor.right[:k], strict=True))):
        width = part.columns.stop - below.columns.stop
        target = -right[:, :width] @ direction[below.columns.stop : part.columns.stop]
        direction[below.pivots + below.columns.start] = _shortest(below, target)
    return direction


def _shortest(part: OrderFactor, target: FloatArray) -> FloatArray:
    """Solve L^T c = target with c supported on the kept functions; for "share", project it on the range of L."""
    from scipy.linalg import solve_triangular

    out = np.zeros((len(part.pivots), target.shape[1]))
    if part.rank:
        out[: part.rank] = solve_triangular(part.lower[: part.rank], target, lower=True, trans="T", check_finite=False)
    if part.row_space is None:
        return out
    inside = part.row_space @ (part.row_space.T @ out)
    return inside if part.row_space.shape[1] == part.rank else out - inside


def row_space(lower: FloatArray) -> FloatArray | None:
    """Orthonormal basis of the range of a (k, rank) factor, or of its complement if that is strictly smaller."""
    from scipy.linalg import solve_triangular

    size, rank = lower.shape
    if rank in (0, size):
        return None
    if size - rank >= rank:
        return orthonormal_columns(lower)
    null = solve_triangular(lower[:rank], lower[rank:].T, lower=True, trans="T", check_finite=False)
    return orthonormal_columns(np.vstack([-null, np.eye(size - rank)]))


def orthonormal_columns(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of independent columns, by an orthogonal factorisation."""
    with suitable_blas(0):
        return np.linalg.qr(columns)[0]


def orthonormalised(columns: FloatArray) -> FloatArray:
    """(q, k) an orthonormal basis of the span of independent columns, by the Gram matrix of those far from dependent.

    That takes half as long as an orthogonal factorisation.
    """
    triangle = triangle_of(columns)
    return orthonormal_columns(columns) if triangle is None else times_inverse(triangle, columns.T).T


def times_inverse(triangle: FloatArray | None, columns: FloatArray) -> FloatArray:
    """(k, n) columns times the inverse of a lower triangle; as they are without one."""
    from scipy.linalg import solve_triangular

    if triangle is None:
        return columns
    with suitable_blas(float(columns.size) * len(triangle)):
        return np.asarray(solve_triangular(triangle, columns, lower=True, check_finite=False))


def triangle_of(columns: FloatArray) -> FloatArray | None:
    """Lower triangle L for which columns times L^-T are orthonormal; ``None`` if they are close to dependent."""
    norms = np.maximum(np.sqrt(np.einsum("ij,ij->j", columns, columns)), np.finfo(np.float64).tiny)
    with suitable_blas(float(columns.size) * columns.shape[1]):
        gram = columns.T @ columns
        gram /= norms[:, None]
        gram /= norms
        try:
            factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            return None
    pivots = np.diagonal(factor)
    if pivots.min(initial=1.0) < tolerances.WELL_CONDITIONED * pivots.max(initial=1.0):
        return None
    return np.asarray(factor * norms[:, None])


def _pivoted(block: FloatArray, columns: slice, tolerance: float) -> OrderFactor:
    from scipy.linalg.lapack import dpstrf

    if len(block) == 0:
        return OrderFactor(columns, np.zeros(0, dtype=np.int64), np.zeros((0, 0)), 0.0)
    diagonal = np.diagonal(block).copy()
    lower, pivots, rank, _ = dpstrf(block, tol=tolerance, lower=1, overwrite_a=True)
    pivots = np.asarray(pivots, dtype=np.int64) - 1
    if diagonal.max() <= tolerance:  # LAPACK always takes a first pivot
        rank = 0
    if rank < len(block):  # only the lower triangle of a full factor is used
        lower = np.asfortranarray(np.tril(lower)[:, :rank])
    left = diagonal[pivots[rank:]] - np.einsum("ij,ij->i", lower[rank:], lower[rank:])
    return OrderFactor(columns, pivots, lower, float(np.abs(left).max(initial=0.0)), row_space(lower))


def _in_order(block: FloatArray, columns: slice, tolerance: float) -> OrderFactor:
    """Cholesky in the given order, by panels, skipping every column whose pivot is below the tolerance."""
    from scipy.linalg import solve_triangular

    size = len(block)
    rows_of_l: list[FloatArray] = []
    kept: list[int] = []
    dropped = 0.0
    for a in range(0, size, PANEL):
        b = min(size, a + PANEL)
        small, taken, refused, _ = skip_panel(block[a:b, a:b].copy(), tolerance)
        dropped = max(dropped, refused)
        kept.extend(a + t for t in taken)
        below = solve_triangular(small[taken], block[a:, a:b][:, taken].T, lower=True, check_finite=False).T
        column = np.zeros((size, len(taken)))
        column[a:] = below
        column[a:b] = small
        rows_of_l.append(column)
        if b < size and taken:
            block[b:, b:] -= column[b:] @ column[b:].T
    lower = np.hstack(rows_of_l) if rows_of_l else np.zeros((0, 0))
    others = np.setdiff1d(np.arange(size), kept)
    pivots = np.concatenate([np.array(kept, dtype=np.int64), others])
    return OrderFactor(columns, pivots, np.asfortranarray(lower[pivots]), dropped)


def skip_panel(
    block: FloatArray, tolerance: float, at_most: int | None = None, chosen: NDArray[np.bool_] | None = None
) -> tuple[FloatArray, list[int], float, float]:
    """Unblocked Cholesky of one panel that skips vanishing pivots, or all but the ``chosen`` columns.

    Returns:
        the factor (k, kept), the kept columns, the largest pivot rejected, the smallest pivot kept.
    """
    size = len(block)
    factor = np.zeros((size, size))
    taken: list[int] = []
    refused, least = 0.0, 1.0
    for j in range(size):
        if at_most is not None and len(taken) >= at_most:
            break
        known = factor[:, : len(taken)]
        column = block[j:, j] - known[j:] @ known[j]
        pivot = float(column[0])
        if pivot <= (tolerance if chosen is None else 0.0) or (chosen is not None and not chosen[j]):
            refused = max(refused, abs(pivot))
            continue
        factor[j:, len(taken)] = column / np.sqrt(pivot)
        taken.append(j)
        least = min(least, pivot)
    return factor[:, : len(taken)], taken, refused, least
