"""Leave-one-out prediction of rows: the fit without each row, in closed form, for shrunken and for exact fits.

A fit that is linear in the values predicts a row left out with the error e_i / (1 - h_i), e_i being its residual and
h_i the weight of its own value in its fitted value. The functions stay the same. With Lambda the penalty on the
coefficients and t_i the functions at row i,

    h_i = p_i t_i^T (Gamma + Lambda)^-1 t_i:   one triangular solve per row, q^2 operations.

That leaves out a distinct row as a whole. Of c_i equal rows, one alone has the part h_i / c_i: other rows drawn in the
same way repeat combinations that occur, as often as these do, and one row left out of many equal ones says so. Where
equal rows have different values, each has its own deviation from their mean; where they have different weights, each
has its own part of h_i (:mod:`exanova.shrink.equal_rows`).

Without a row that is alone in a cell, the cell was never observed and its effect counts as 0: a prediction of that row
lacks what the fit without it would say there. So do the errors of shrunken fits (``Alone``), which also follow the
ratios, as these would be without the row (:mod:`exanova.shrink.drift`). Bins and numbers are read from their neighbours
instead, as new rows are, and so are pairs that are continued: the posterior mean without the row says how.

An exact fit has Lambda = 0, and h_i = 1 for a row that alone determines a direction: of the fits without it that meet
the others equally well, the one is meant in which low orders express what they can, and higher ones use least energy.
That is the limit of a vanishing penalty that is far smaller on low orders, which therefore stands in for zero
(``vanishing``); nothing has to be inverted that has no inverse. Equal penalties would be another fit: pairs outnumber
main effects and would take most of what both can express.

Where rows are many, some are left out, drawn at random, and the mean square of all errors is estimated by the mean
square of all residuals times a ratio of the sampled ones, with its standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.shrink.equal_rows import DISTINCT, Equal
from exanova.typing import FloatArray, IntArray

ROWS_PER_FUNCTION = 0.4
"""Rows left out for each function: these cost about one factorisation, and determine R2 to some thousandths."""

FEWEST_SAMPLED = 1000
"""Rows that are all left out, however few functions there are."""

VANISHING = float(np.sqrt(tolerances.EPS))
"""Penalty that stands in for none on functions of unit length: directions of true data weigh 1e-4 and more."""

LOW, HIGH = 0.1, 100.0
"""The same for main effects and for the highest order, relative to ``VANISHING``: as far apart as rounding in a Gram
matrix permits on one side, and directions of true data on the other."""

ALONE = 1e4 * VANISHING
"""1 - h below which a row counts as determining a direction alone."""

LEAST_KEPT = 0.05
"""Smallest 1 - h that a residual is divided by to estimate its variance: below, it carries too little information."""

FREE_INTERCEPT = 1e3
"""Length of the intercept where one penalty is on every function, so that it has next to none."""

BLOCK_BYTES = 64_000_000
"""Memory of the functions at one block of rows."""

AtRows = Callable[[IntArray], FloatArray]
"""(n,) numbers of rows to (n, q) the functions there."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Errors of rows predicted by the others.

    Attributes:
        rows: (N,) numbers of the rows that were left out, one at a time.
        residual: (N, m) their values less what the fit without them predicts.
        mse: (m,) mean square of such errors over all rows; estimated where not all were left out.
        stderr: (m,) standard error of that estimate; 0 where all rows were left out.
        alone: how many of them alone determine a direction of the fit.
        repeated: (m,) how much larger the variance of the residual is than one that takes equal rows for independent.
    """

    rows: IntArray
    residual: FloatArray
    mse: FloatArray
    stderr: FloatArray
    alone: int = 0
    repeated: FloatArray | float = 1.0


def rows_to_leave_out(rows: int, functions: int, fits: int = 1, seed: int = 0) -> IntArray:
    """Numbers of the rows to leave out: all, or some drawn at random where all would cost more than the fit.

    Several ``fits`` with a factor of their own share the work.

    >>> [len(rows_to_leave_out(rows, 5000)) for rows in (1000, 10**6)], len(rows_to_leave_out(10**6, 5000, fits=3))
    ([1000, 2000], 1000)
    """
    wanted = max(FEWEST_SAMPLED, int(ROWS_PER_FUNCTION * functions) // max(1, fits))
    if rows <= wanted:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, wanted, replace=False))


@dataclass(frozen=True, eq=False)
class Alone:
    """Effects of cells in which a row is alone: without the row such a cell was never observed, and counts as 0.

    Attributes:
        subsets: (S', N) in which subsets each of the rows that are left out is alone.
        fitted: (N, m) the sum of their effects at the row, and how its error moves with the ratios
            (:mod:`exanova.shrink.drift`).
    """

    subsets: NDArray[np.bool_]
    fitted: FloatArray


def left_out_of_shrunk(
    lower: FloatArray,
    at_rows: AtRows,
    residual: FloatArray,
    precision: FloatArray,
    rows: IntArray,
    equal: Equal = DISTINCT,
    alone: tuple[Alone, IntArray] | None = None,
) -> LeftOut:
    """Leave rows out of a shrunken fit with the factor ``lower`` (q, q) of I + S Z^T D Z S.

    ``at_rows`` gives Z S, ``precision`` (r,) is the diagonal of D. The mean is fitted too, without a penalty. With
    ``alone`` goes the subset (q,) of every column.
    """
    probability = precision / precision.sum()
    chosen = None if alone is None else (lambda part: alone[0].subsets[:, part][alone[1]])
    lengths, _, follows = _at_rows(lower, at_rows, rows, None, chosen)
    kept = 1.0 - probability[rows] - precision[rows] * lengths
    lost = None if alone is None else (alone[0].fitted, precision[rows] * follows)
    return _summarised(residual, residual[rows], kept, probability, rows, equal, lost)


def left_out_by_rows(
    lower: FloatArray,
    residual: FloatArray,
    precision: FloatArray,
    equal: Equal = DISTINCT,
    alone: tuple[Alone, Callable[[FloatArray], FloatArray]] | None = None,
) -> LeftOut:
    """The same from the factor ``lower`` (r, r) of D^-1 + Z S^2 Z^T: 1 - h is the diagonal of its inverse over D.

    With ``alone`` goes a function: for each row, its line of that inverse times that of the kernels it is alone in.
    """
    from scipy.linalg.lapack import dpotri

    inverse, _ = dpotri(lower, lower=1)
    probability = precision / precision.sum()
    kept = np.diagonal(inverse) / precision - probability
    lost = None
    if alone is not None:
        lost = alone[0].fitted, alone[1](np.tril(inverse) + np.tril(inverse, -1).T)
    return _summarised(residual, residual, kept, probability, np.arange(len(probability)), equal, lost)


def left_out_of_exact(
    gamma: FloatArray,
    coefficients: FloatArray,
    at_rows: AtRows,
    residual: FloatArray,
    probability: FloatArray,
    rows: IntArray,
    order: IntArray,
    equal: Equal = DISTINCT,
    ridge: float = 0.0,
) -> LeftOut:
    """Leave rows out of a least-squares fit, or of one with a ``ridge``.

    Args:
        gamma: (q, q) Gram matrix of the functions, the intercept first, singular or not.
        coefficients: (q, m) of the fit.
        at_rows: the functions at rows.
        residual: (r, m) of the fit.
        probability: (r,) of the rows.
        rows: (N,) rows to leave out.
        order: (q,) of the functions.
        equal: the equal rows behind each.
        ridge: the penalty of the fit on all functions but the intercept.
    """
    from scipy.linalg import cho_solve
    from scipy.linalg.lapack import dpotrf

    penalty = np.full(len(gamma), ridge) if ridge else vanishing(order)
    penalty[0] = 0.0
    lower, failed = dpotrf(gamma + np.diag(penalty), lower=1, clean=1)
    if failed:
        raise ArithmeticError("the Gram matrix is not positive in floating point")
    # The residual that the penalty would leave, without its cancellation in rows that determine a direction alone.
    moved = np.zeros_like(coefficients)
    if not ridge:
        moved = cho_solve((lower, True), penalty[:, None] * coefficients, check_finite=False)
    lengths, change, _ = _at_rows(lower, at_rows, rows, moved)
    return _summarised(residual, residual[rows] + change, 1.0 - probability[rows] * lengths, probability, rows, equal)


def left_out_by_products(
    functions: FloatArray,
    values: FloatArray,
    probability: FloatArray,
    order: IntArray,
    equal: Equal = DISTINCT,
    ridge: float = 0.0,
) -> LeftOut:
    """The same for every row, from the inner products (r, r) of rows: cheaper where functions are more than rows.

    Args:
        functions: (r, q) at the rows, the intercept first; overwritten.
        values: (r, m) of the model.
        probability: (r,) of the rows.
        order: (q,) of the functions.
        equal: the equal rows behind each.
        ridge: the penalty of the fit on all functions but the intercept.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    if not ridge:
        functions *= np.sqrt(VANISHING / vanishing(order))
    functions[:, 0] = FREE_INTERCEPT
    noise = (ridge or VANISHING) / probability
    lower, failed = dpotrf(functions @ functions.T + np.diag(noise), lower=1, overwrite_a=1)
    if failed:
        raise ArithmeticError("the inner products of rows are not positive in floating point")
    inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    residual = noise[:, None] * (inverse @ (values - probability @ values))
    kept = noise * np.diagonal(inverse)
    return _summarised(residual, residual, kept, probability, np.arange(len(kept)), equal)


def vanishing(order: IntArray) -> FloatArray:
    """(q,) penalties that stand in for none, in multiples of ``VANISHING``: far smaller on low orders.

    >>> [(vanishing(np.arange(k)) / VANISHING).round(2).tolist() for k in (2, 4)]
    [[1.0, 1.0], [0.1, 0.1, 3.16, 100.0]]
    """
    highest = int(order.max(initial=1))
    if highest < 2:
        return np.full(len(order), VANISHING)
    above = (np.maximum(order, 1) - 1) / (highest - 1)
    return np.asarray(VANISHING * LOW ** (1.0 - above) * HIGH**above)


def left_out_by_leverage(
    leverage: FloatArray, residual: FloatArray, probability: FloatArray, equal: Equal = DISTINCT
) -> LeftOut | None:
    """Leave every row out of a least-squares fit with known h (r,); ``None`` if a row determines a direction alone."""
    kept = 1.0 - leverage
    if kept.min(initial=1.0) < ALONE:
        return None
    return _summarised(residual, residual, kept, probability, np.arange(len(kept)), equal)


def _at_rows(
    lower: FloatArray,
    at_rows: AtRows,
    rows: IntArray,
    coefficients: FloatArray | None = None,
    chosen: Callable[[slice], NDArray[np.bool_]] | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(N,) |R^-1 t_i|^2, (N, m) t_i^T c and (N,) the part of the former from chosen functions, some rows at a time."""
    from scipy.linalg import solve_triangular

    coefficients = np.zeros((len(lower), 0)) if coefficients is None else coefficients
    lengths, sums = np.empty(len(rows)), np.empty((len(rows), coefficients.shape[1]))
    parts = np.zeros(len(rows))
    step = max(16, BLOCK_BYTES // (8 * max(1, len(lower))))
    for first in range(0, len(rows), step):
        part = slice(first, min(len(rows), first + step))
        functions = at_rows(rows[part])
        sums[part] = functions @ coefficients
        half = solve_triangular(lower, functions.T, lower=True, check_finite=False)
        lengths[part] = np.square(half).sum(axis=0)
        if chosen is not None:
            own = chosen(part)
            some = np.flatnonzero(own.any(axis=0))
            whole = solve_triangular(lower, half[:, some], lower=True, trans=1, check_finite=False)
            parts[first + some] = np.einsum("iq,qi,qi->i", functions[some], whole, own[:, some])
    return lengths, sums, parts


def _summarised(
    residual: FloatArray,
    own: FloatArray,
    kept: FloatArray,
    probability: FloatArray,
    rows: IntArray,
    equal: Equal,
    lost: tuple[FloatArray, FloatArray] | None = None,
) -> LeftOut:
    """Errors from residuals ``own`` (N, m) and 1 - h (N,); a single row has nothing to be predicted from.

    Deviations from the mean of equal rows, whose variance is counted elsewhere, grow likewise. ``lost`` are
    effects (N, m) that are not there without the row, and how far (N,) they follow its error.
    """
    copies = np.broadcast_to(equal.copies, probability.shape)[rows]
    within = np.broadcast_to(np.asarray(equal.within, dtype=np.float64), residual.shape)[rows]
    as_a_whole, kept = kept, 1.0 - (1.0 - kept) / copies
    repeated = _repeated(probability[rows, None], own, within, as_a_whole, kept)
    alone = int((kept < ALONE).sum())
    kept = np.maximum(kept, tolerances.NO_RESIDUAL)
    errors = own / kept[:, None] if len(probability) > 1 else np.zeros_like(own)
    if lost is not None:
        errors = errors + lost[0] - lost[1][:, None] * errors
    if equal.unequal is None:
        square = probability[rows, None] * (errors**2 + within * (1.0 / kept[:, None] ** 2 - 1.0))
    else:
        square = probability[rows, None] * equal.unequal.squares(rows, own, 1.0 - as_a_whole, within, lost)
    if len(rows) == len(probability):
        return LeftOut(rows, errors, square.sum(axis=0), np.zeros(own.shape[1]), alone, repeated)
    plain = probability[rows, None] * residual[rows] ** 2
    ratio = square.sum(axis=0) / np.where(plain.any(axis=0), plain.sum(axis=0), 1.0)
    mse = np.einsum("r,rm,rm->m", probability, residual, residual) * ratio
    apart = (square - ratio * plain) * (len(probability) / len(rows))
    finite = 1.0 - len(rows) / len(probability)
    return LeftOut(rows, errors, mse, np.sqrt(finite * np.square(apart).sum(axis=0)), alone, repeated)


def _repeated(
    p: FloatArray, residual: FloatArray, within: FloatArray, as_a_whole: FloatArray, one: FloatArray
) -> FloatArray:
    """(m,) the variance of the residual over that which takes equal rows for independent draws of it.

    A residual that is a function of the inputs is the same in equal rows, and a fit follows it in all of them at once:
    the factor is 1 - h of the distinct row as a whole, not of each of its copies.
    """
    whole, each = (np.maximum(kept, LEAST_KEPT)[:, None] for kept in (as_a_whole, one))
    each_sum = (p * (residual**2 / each + within)).sum(axis=0)
    whole_sum = (p * (residual**2 / whole + within)).sum(axis=0)
    return np.asarray(np.divide(whole_sum, each_sum, out=np.ones(residual.shape[1]), where=each_sum > 0))
