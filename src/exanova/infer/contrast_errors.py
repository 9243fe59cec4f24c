"""Standard errors of differences between the means of effects over two sets of rows.

With alpha_i = +w_i / W_A in the first set, -w_i / W_B in the second and 0 elsewhere, the difference of the means of a
sum of effects h(x) = sum over A of c_A f_A(x_A) is lambda^T T, where lambda sums alpha over the rows of each cell,
times c_A. It varies for two reasons:

    the rows      moving weight to row i of the first set moves its mean by  (W / W_A) (h(x_i) - mean over A of h)
    the effects   moving weight to row i of the fit moves T by psi_i, and the difference by  lambda^T psi_i

For rows of the fit the influence is the sum of the two; for other rows the two variances add up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.infer.posterior_errors import PosteriorErrors
from exanova.infer.refits import RefitErrors
from exanova.infer.same_rows import SameRows, other_rows
from exanova.infer.stored_errors import StoredErrors
from exanova.infer.uncertainty import Uncertainty
from exanova.infer.units import fewest_units, raw_variances
from exanova.typing import FloatArray, IntArray


def own_influence(values: FloatArray, weight: NDArray[Any], side: IntArray) -> FloatArray:
    """(n, f) influence of the weight of every row on the difference of the means of ``values`` (n, f).

    Args:
        values: what is averaged.
        weight: (n,) weights.
        side: (n,) +1 in the first set, -1 in the second, 0 in neither.
    """
    out, total = np.zeros(values.shape), float(weight.sum())
    for sign in (1, -1):
        own = side == sign
        mass = weight[own].astype(np.float64)
        out[own] = sign * total / mass.sum() * (values[own] - mass @ values[own] / mass.sum())
    return out


def rows_variances(own: FloatArray, weight: NDArray[Any], side: IntArray) -> FloatArray:
    """(f,) variances that come from other rows alone, whose influence is ``own`` (n, f); NaN for a set of one row."""
    used = side != 0
    draws = other_rows(weight[used], side[used])
    if fewest_units(draws, side[used]) < 2:
        return np.full(own.shape[1], np.nan)
    share = float(weight[used].sum()) / float(weight.sum())
    return raw_variances(draws, own[used] * share)


def contrast_variances(
    uncertainty: Uncertainty,
    output: int,
    weights: FloatArray,
    own: FloatArray,
    of_rows: Callable[[FloatArray], FloatArray],
    same: SameRows | None,
) -> FloatArray:
    """(f,) variances of differences lambda^T T with ``weights`` lambda (cells, f), in normalised units.

    Args:
        uncertainty: of the effects.
        output: number of the output.
        weights: lambda.
        own: (n, f) influence of the rows themselves, in normalised units.
        of_rows: own (n, f) to the (f,) variances that come from other rows alone.
        same: which rows of the fit they are; ``None`` for other rows.
    """
    engine = uncertainty.engine
    if same is None or isinstance(engine, RefitErrors | StoredErrors):
        return engine.variances(output, weights) + of_rows(own)
    moved = engine.influences(output, weights)
    moved = own + (moved[same.place] if isinstance(moved, np.ndarray) else moved)
    out = raw_variances(same.draws, moved)
    return out + engine.given_rows(output, weights) if isinstance(engine, PosteriorErrors) else out
