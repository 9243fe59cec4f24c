"""The decomposition of least energy among those that differ by dependences, the highest order first.

Given a basis of the dependences among orthonormal functions, one column each, the coefficients of the highest order are
made orthogonal to the dependences there, those of the next order to the dependences that leave the highest order as it
is, and so on: what a lower order can express a higher order does not claim, and within an order the sum of squared
effects is the least possible. This is what elimination from the lowest order up finds for ``ties="share"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Shortening:
    """The dependences of one order, those of higher orders left as they are.

    Attributes:
        functions: the functions of the order.
        columns: (q, k) dependences that are independent in this order.
        factor: (k, k) Cholesky factor of their products in this order.
        smallest, dropped: smallest pivot kept and largest one treated as rounding, for columns of unit norm.
    """

    functions: slice
    columns: FloatArray
    factor: FloatArray
    smallest: float
    dropped: float

    @property
    def rank(self) -> int:
        """Number of these dependences."""
        return len(self.factor)

    def shortened(self, coefficients: FloatArray) -> FloatArray:
        """(q, m) coefficients less those multiples of the dependences that make the order shortest."""
        from scipy.linalg import cho_solve

        inside = self.columns[self.functions].T @ coefficients[self.functions]
        return np.asarray(coefficients - self.columns @ cho_solve((self.factor, True), inside, check_finite=False))

    def remaining(self, coefficients: FloatArray) -> float:
        """Largest product of (q, m) coefficients with a dependence in this order, relative to the norms of both."""
        own = self.columns[self.functions]
        inside = np.abs(own.T @ coefficients[self.functions]).max(axis=1)
        sizes = np.sqrt(np.einsum("ij,ij->j", own, own)) * np.linalg.norm(coefficients, axis=0).max()
        return float(np.divide(inside, sizes, out=np.zeros_like(inside), where=sizes > 0).max(initial=0.0))


def shortenings(columns: FloatArray, orders: Sequence[slice], count: int) -> list[Shortening]:
    """The steps from the highest order down, for (q, k) columns that span ``count`` dependences among q functions."""
    out: list[Shortening] = []
    rounding = tolerances.rank_of_columns(*columns.shape)
    scale = np.maximum(np.sqrt(np.einsum("ij,ij->j", columns, columns)), tolerances.SMALLEST_COLUMN)
    for functions in reversed(orders):
        if not count:
            break
        pivots, lower, dropped = _factorised(columns[functions], scale, count, rounding)
        rank, kept, others = lower.shape[1], pivots[: lower.shape[1]], pivots[lower.shape[1] :]
        if rank:
            own = columns if len(kept) == columns.shape[1] else columns[:, kept]
            square = lower[:rank]
            smallest = float(np.square(np.diagonal(square)).min())
            out.append(Shortening(functions, own, square * scale[kept, None], smallest, dropped))
            columns, count = _without(columns, own, others, lower, scale, kept), count - rank
            scale = scale[others]
            if smallest < 1.0:  # multiples of light columns bring their rounding along
                rounding *= tolerances.RANK_GAP / np.sqrt(smallest)
            if smallest < tolerances.LIGHT_CELL:
                out[-1] = _orthonormal(out[-1])
    return out


def _without(
    columns: FloatArray, own: FloatArray, others: IntArray, lower: FloatArray, scale: FloatArray, kept: IntArray
) -> FloatArray:
    """The other columns less those multiples of the ``kept`` ones that make them vanish in the order."""
    from scipy.linalg import solve_triangular

    if not len(others):
        return columns[:, :0]
    rank = len(kept)
    parts = solve_triangular(lower[:rank], lower[rank:].T, lower=True, trans="T", check_finite=False)
    return np.asarray(columns[:, others] - own @ (parts * scale[others] / scale[kept, None]))


def _factorised(rows: FloatArray, scale: FloatArray, most: int, rounding: float) -> tuple[IntArray, FloatArray, float]:
    """As ``_pivoted`` for the products of (n, k) columns over their ``scale``, without them where pivots are light.

    A product of columns keeps half of their digits; ``rounding`` is what they themselves may have.
    """
    with suitable_blas(float(rows.size) * rows.shape[1] / 2):
        gram = rows.T @ rows
        gram /= np.outer(scale, scale)
        pivoted = _pivoted(gram, most)
        _, lower, dropped = pivoted
        light = np.square(np.diagonal(lower)).min(initial=1.0) < tolerances.LIGHT_CELL
        return (
            _pivoted_columns(rows / scale, most, rounding) if light or dropped > tolerances.ROUNDED_PIVOT else pivoted
        )


def _pivoted_columns(columns: FloatArray, most: int, rounding: float) -> tuple[IntArray, FloatArray, float]:
    """As ``_pivoted`` for the products of (n, k) columns, from an orthogonal factorisation."""
    from scipy.linalg import qr

    upper, pivots = qr(columns, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diagonal(upper))
    rank = min(most, int((diagonal > rounding).sum()))
    signs = np.where(np.diagonal(upper)[:rank] < 0, -1.0, 1.0)
    lower = (signs[:, None] * upper[:rank]).T
    return np.asarray(pivots, dtype=np.int64), np.asarray(lower), float(np.square(diagonal[rank:]).max(initial=0.0))


def _orthonormal(step: Shortening) -> Shortening:
    """The same dependences, orthonormal in their order, so that no equations with light pivots are left to solve."""
    from scipy.linalg import solve_triangular

    columns, upper = step.columns, np.asarray(step.factor.T)
    for _ in range(2):
        columns = solve_triangular(upper, columns.T, trans="T", check_finite=False).T
        upper = np.asarray(np.linalg.qr(columns[step.functions])[1])
    return replace(step, columns=columns, factor=upper.T)


def _pivoted(gram: FloatArray, most: int) -> tuple[IntArray, FloatArray, float]:
    """Columns in the order of elimination, (k, rank) their factor with a rank of at most ``most``, largest pivot left.

    Without pivoting, which takes longer, if all columns are independent.
    """
    from scipy.linalg.lapack import dpstrf

    size, tolerance = len(gram), tolerances.rank_of_gram(len(gram))
    if size <= most:
        try:
            lower = np.linalg.cholesky(gram)
            if np.square(np.diagonal(lower)).min(initial=1.0) > tolerance:
                return np.arange(size), np.asarray(lower, dtype=np.float64), 0.0
        except np.linalg.LinAlgError:
            pass
    diagonal = np.diagonal(gram).copy()
    if diagonal.max(initial=0.0) <= tolerance:  # LAPACK always takes a first pivot
        return np.arange(size), np.zeros((size, 0)), float(diagonal.max(initial=0.0))
    lower, pivots, rank, _ = dpstrf(np.asfortranarray(gram), tol=tolerance, lower=1)
    lower, order = np.tril(lower)[:, : min(rank, most)], np.asarray(pivots, dtype=np.int64) - 1
    left = diagonal[order] - np.square(lower).sum(axis=1)
    return order, lower, float(np.abs(left[lower.shape[1] :]).max(initial=0.0))
