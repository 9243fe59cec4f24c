"""Thresholds for rounding and for checks: all of the library, each with its reason.

Nothing else in the package compares a floating-point number with a literal to tell rounding from a value. How far one
algorithm iterates, and what it leaves out as too small to matter, are named constants of its module.
"""

from __future__ import annotations

import math

import numpy as np

from exanova.typing import FloatArray

EPS = float(np.finfo(np.float64).eps)

SMALLEST_MODEL, LARGEST_MODEL = 1e-140, 1e140
"""Sizes of model values between which squares, and sums of squares under weights, are ordinary numbers."""

ORTHOGONALITY = 2**22 * EPS
"""Largest conditional mean of an effect, relative to the largest deviation of the model from its mean: about 1e-9.
Rounding is some 1e-16 over the square root of the probability of the rarest cell, 1e-11 at a probability of 1e-10."""

RECONSTRUCTION = 2**22 * EPS
"""Largest error of the sum of all effects when they can express the model, relative to the same: about 1e-9."""

CANCELLED = 2**6 * EPS
"""A sum of terms that cancel, relative to the sum of their sizes: below that it is rounding and shown as zero."""

NO_ERROR = math.sqrt(EPS)
"""Standard error, relative to the scale of the output, below which it is rounding: it is the root of a variance, which
keeps errors of EPS where its terms cancel. About 1e-8."""

UNCHANGED = 2**12 * EPS
"""Largest difference between two fits, relative to the spread of what they decompose, that counts as none: about 1e-12.
Fits of the same rows, in any order and by any route, differ by less."""

REST_OF_LEVEL = 1e-9
"""Share of a level's probability in no part that another fit has, below which it is the rounding of shares."""

RESIDUAL_MEAN = 2**22 * EPS
"""Largest mean of the residual in a cell, relative to the same; a least-squares fit leaves none. About 1e-9."""

NORMAL_EQUATIONS = 64 * EPS
"""Refinement stops once the projected residual is this small against the projections themselves."""

ITERATIVE = 4 * EPS
"""Conjugate gradients stop at this relative residual; what they then leave is measured, not assumed."""

GRAM_DIRECTION = 64 * math.sqrt(EPS)
"""Squared directions and shares of weight below this lose half their digits and more in a Gram matrix: about 1e-6."""

UNEVEN, UNEVEN_ITERATIONS = 1e-14, 1e-10
"""Smallest weight over the largest below which effects in the rarest cells keep too few digits: in an orthogonal
factorisation, and in iterations. Determined by comparison with exact fractions."""

LIGHT_CELL = 1e-9
"""Probability of a cell over the largest below which pure functions are made orthogonal once more, and squared
directions of dependences below which these are made orthonormal. Effects that differ only there would have
errors of up to a third of machine epsilon over this ratio: 1e-7."""

STRONGEST = 1e-12
"""Sizes that differ by less than this part of the largest are equally large: of equal ones the first comes first."""

SHARING = 2**36 * EPS
"""Largest uncertainty of how subsets share what several of them can express: about 1e-5. It is what worst-case theory
gives; compared with exact fractions, effects were off by at most a fiftieth of it."""

PRODUCT = 64 * EPS
"""A pmf this close, cell by cell and relatively, to the product of its margins is treated as independent."""


DEPENDENCE = 1e-6
"""Part of a subset in an orthonormal basis of the dependences among functions above which it takes part in one. True
parts are of order one or as small as the weights of rare cells; rounding, also of the paper's ill-conditioned
functions, stays below."""


WELL_CONDITIONED = 1e-3
"""Smallest pivot of a Cholesky factor over its largest from which columns are made orthonormal by their Gram matrix:
rounding errors grow with the square of the ratio, and so stay far below ``DEPENDENCE``."""


RANK_GAP = 16.0
"""A kept direction closer than this to a dropped one makes the rank doubtful."""

NEAR_REDUNDANT = 0.1
"""Variance of a unit combination of main effects below which its features count as nearly redundant: two features of a
correlation above 0.9."""

REPEATS = 1e-3
"""Largest difference between two outputs of a model at the same row, relative to their spread, that is left as a trace
of noise: it adds a millionth to the variance."""

SINGLE = 1e-6
"""The same relative to the output itself: models compute in single precision, in another order in another call."""

HOLDS = 0.8
"""Part of R2 on the rows of the fit that has to remain on other rows for the fit to hold there."""

CANCELS = 2.0
"""Summed variance of the effects over that of the model from which they have to be read together."""


def purity(cells: int) -> float:
    """Largest margin an orthonormal function may keep: rounding grows with the square root of the sum.

    >>> purity(4) < 1e-13
    True
    """
    return 32 * EPS * math.sqrt(cells)


def unchanged(spread: FloatArray, means: FloatArray) -> FloatArray:
    """Largest difference that counts as none between two fits of this spread and these means, of any shape.

    >>> unchanged(np.array([1.0]), np.array([1e6])) < 1e-7
    array([ True])
    """
    return np.asarray(UNCHANGED * spread + CANCELLED * np.abs(means))


def rank_of_columns(rows: int, columns: int) -> float:
    """Smallest singular value of unit columns that counts as a new direction (orthogonal factorisations).

    Singular values carry an error of about ``eps * sqrt(columns)``; the margin of 64 keeps repeated
    projections below it. Directions of probability 1e-20 are resolved.
    """
    return 64 * EPS * math.sqrt(max(rows, columns))


def rank_of_gram(columns: int) -> float:
    """Smallest pivot of a Gram matrix with unit diagonal that counts as a new direction.

    Pivots are squares, so that the same noise weighs as much as a singular value of 1e-8 would.
    Real data show nothing between 1e-14 and 1e-4.
    """
    return 512 * EPS * max(columns, 64)


GROWING = 1e-8
"""Squared directions below which a function that arrives in a growing factor counts as expressed by those before it.
Without pivoting, a smaller pivot would spread rounding over everything that follows."""

VARIES = 2**12 * EPS
"""Variance of a direction, relative to the largest of an effect, below which the direction does not vary: 1e-12. The
covariances are sums of squares, good to some 1e-15 of their largest."""

DISTINCT = 1e-6
"""Part of an effect in directions that do not vary, relative to the effect, from which it is no rounding: the square
root of ``VARIES``."""

SAME_SHARE = 1e-9
"""Relative difference of the weights of equal rows below which they are alike."""

NO_RESIDUAL = 1e-10
"""Smallest part of its noise (one minus its leverage) that the residual of a row is divided by; below is rounding."""

LEAST_SQUARES = 2**6 * EPS
"""Iterations for least squares stop at this relative residual: about 1e-14."""

FREE = 1e-6
"""Part of the noise of a row that its residual keeps (one minus its leverage), below which it keeps nothing but
rounding: the row alone decides its own fit, and its residual is zero."""

SMALLEST_COLUMN = 1e-8
"""Smallest norm of a column, of values of about one, that is scaled to one: functions that vanish leave rounding."""

ROUNDED_PIVOT = 1e-13
"""Largest pivot of products of unit columns that is left as rounding without a closer look; theirs is some 1e-15."""

DEPENDENT_COLUMNS = 1e-9
"""Singular value of a few columns, relative to the largest, below which they depend on each other: far above rounding,
and far below the shares of clusters that the columns hold."""

ZERO_ERROR = 1e-9
"""A standard error, relative to the largest of its page, below which it is rounding: roots of variances that cancel."""
