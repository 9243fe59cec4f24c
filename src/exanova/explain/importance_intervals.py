"""Confidence intervals of importances, which cannot be negative and whose estimates are skewed near zero.

Squared norms. With effects T estimated as normal deviates around the truth, X = sum of w_a T_a^2 is distributed about
as g times a noncentral chi-square with k degrees of freedom and noncentrality theta / g, theta being the true value:
mean theta + g k, variance 2 g^2 k + 4 g theta. So g k is the upward bias of X, its delta-method variance 4 g X gives g,
near zero and away from it. An interval holds every theta under which X is not unusual: it ends at 0 for an effect that
is not distinguishable from zero, and becomes the normal one for a clear effect. For shrunken effects the upper end is
that of the posterior, theta / g around X / g: shrinkage may have removed a part. Their lower end is the same as above,
because no posterior of a square contains zero.

A clear importance varies in proportion to itself: where rows, or clusters, of the cells that carry it were drawn more
often, effect and error grow together. Its upper end is at least that of an interval on the scale of logarithms.

Mean absolute values. |T_a| is too large on the average by se_a b(t), b(t) = 2 phi(t) - 2 t Phi(-t), if T_a is t
standard errors from zero: much where an effect is weak, nothing where it is clear. The interval is normal around the
value without that bias, cut at zero; of shrunken effects it reaches up from the value with what the posterior adds.
Where an effect is weak that is not enough, because the absolute value has a kink: the interval then holds also that of
the root of the squared norm, times the ratio of the two.
"""

from __future__ import annotations

import numpy as np

from exanova.design.family import Family
from exanova.effects.norms import absolute_norms
from exanova.infer.bands import quantile
from exanova.typing import FloatArray

LARGEST_NONCENTRALITY = 1e4
"""Noncentrality beyond which a chi-square is a normal distribution to four digits."""


def interval_of_squares(
    value: FloatArray, bias: FloatArray, stderr: FloatArray, level: float, posterior: bool
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of sums of squares with their upward bias (or posterior variance) and standard errors.

    >>> low, high = interval_of_squares(np.array([1.0]), np.array([0.5]), np.array([1.4]), 0.95, posterior=False)
    >>> low.tolist(), (high > 2).tolist()
    ([0.0], [True])
    """
    from scipy.special import chndtrix

    tail, reach = (1.0 - level) / 2.0, quantile(level) * stderr
    low, high = np.maximum(value - bias - reach, 0.0), value + (bias if posterior else -bias) + reach
    usable = (value > 0) & (stderr > 0) & (bias > 0)
    g = np.divide(stderr**2, 4.0 * value, out=np.ones_like(value), where=usable)
    usable &= value / g < LARGEST_NONCENTRALITY
    x, k = value[usable] / g[usable], bias[usable] / g[usable]
    ends = _inverted(x, k, tail)
    low[usable], high[usable] = ends[0] * g[usable], ends[1] * g[usable]
    if posterior:
        high[usable] = chndtrix(1.0 - tail, k, x) * g[usable]
    return low, np.maximum(_proportional(value - bias, reach, high), 0.0)


def _proportional(value: FloatArray, reach: FloatArray, high: FloatArray) -> FloatArray:
    """Upper ends that are at least those on the scale of logarithms, for values that are clearly above zero."""
    clear = (value > reach) & (value > 0)
    ratio = np.divide(reach, value, out=np.zeros_like(value), where=clear)
    return np.where(clear, np.maximum(high, value * np.exp(ratio)), high)


def _inverted(x: FloatArray, k: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
    """Noncentralities under which x is at the upper and at the lower quantile; 0 where none is small enough."""
    from scipy.special import chndtr, chndtrinc

    at_zero = chndtr(x, k, 0.0)
    low = np.where(at_zero > 1.0 - tail, chndtrinc(x, k, 1.0 - tail), 0.0)
    high = np.where(at_zero > tail, chndtrinc(x, k, tail), x)  # so small that no noncentrality explains it
    return np.nan_to_num(low), np.asarray(high)


def bias_of_absolutes(family: Family, values: FloatArray, stderr: FloatArray, posterior: bool) -> FloatArray:
    """(S, m) by how much E|f_A| is too large on the average, or what a posterior adds to it."""
    out = absolute_norms(family, bias_of_each(values, stderr, posterior))
    out[0] = 0.0
    return out


def bias_of_each(values: FloatArray, stderr: FloatArray, posterior: bool) -> FloatArray:
    """By how much the absolute value of each estimate is too large on the average, or what a posterior adds to it.

    >>> bias_of_each(np.array([0.0, 100.0]), np.array([1.0, 1.0]), posterior=False).round(3).tolist()
    [0.798, 0.0]
    """
    from scipy.special import ndtr

    t = np.abs(np.divide(values, stderr, out=np.full_like(values, np.inf), where=stderr > 0))
    if not posterior:  # the square of an estimate is too large by one on the average
        t = np.sqrt(np.maximum(t**2 - 1.0, 0.0))
    t = np.minimum(t, 40.0)
    each = stderr * 2.0 * (np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi) - t * ndtr(-t))
    return np.asarray(np.maximum(each, 0.0))


def interval_of_absolutes(
    value: FloatArray, bias: FloatArray, stderr: FloatArray, level: float, posterior: bool
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of mean absolute values."""
    reach = quantile(level) * stderr
    high = _proportional(value - bias, reach, value + (bias if posterior else -bias) + reach)
    return np.maximum(value - bias - reach, 0.0), np.maximum(high, 0.0)
