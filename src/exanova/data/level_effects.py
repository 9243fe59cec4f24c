"""Preliminary effects of single levels, with their errors: how much do the levels of a column differ?

An additive fit of all columns, every column shrunk by its own variance component, leaves for one column the partial
residual e = y - effects of the others. A level k of that column is then described by

    its mean    E[e | k],                                   error  noise / rows of k
    its slopes  along every other column z (standardised):  error  noise / sum of (z - mean of z in k)^2

so that levels with equal means but different interactions with another column are distinguished. Slopes that do
not differ between levels beyond chance are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from exanova.typing import Codes, FloatArray, IntArray

SWEEPS = 5
"""Rounds of the additive fit: effects of correlated columns settle in a few."""

MEANS_DIFFER, SLOPES_DIFFER = 2.33, 4.0
"""Standard deviations above chance at which levels differ in their means (1 in 100) and in a slope (of many)."""

POINTS, STEPS = 81, 200
"""Grid and steps of the distribution of effects: more change nothing that errors would not hide."""

TINY = 1e-150
"""In place of zero in a denominator whose numerator is zero too, and of an error that is zero."""

Component: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""(K, m) each: estimates, their information, what is expected of them given the rows, and its variance."""


@dataclass(frozen=True, eq=False)
class LevelEffects:
    """Effects of the K levels of a column, in q components: a mean per output and the slopes that differ.

    Attributes:
        probability: (K,) of each level.
        estimates: (K, q) centred components.
        information: (K, q) rows behind each of them.
        expected: (K, q) the components given the rows: estimates shrunk towards the others, as far as their errors
            allow.
        variance: (K, q) their variance given the rows.
    """

    probability: FloatArray
    estimates: FloatArray
    information: FloatArray
    expected: FloatArray
    variance: FloatArray

    @property
    def uncertainty(self) -> float:
        """Mean variance of the components given the rows, summed over them."""
        return float(self.probability @ self.variance.sum(axis=1))

    def only(self, levels: list[int]) -> LevelEffects:
        """Some of the levels."""
        arrays = (self.probability, self.estimates, self.information, self.expected, self.variance)
        return LevelEffects(*(array[levels] for array in arrays))


def additive_residual(
    codes: Codes, sizes: tuple[int, ...], values: FloatArray, weight: FloatArray
) -> tuple[FloatArray, list[FloatArray]]:
    """Residual (n, m) of an additive fit, and the effect (levels, m) of every column in it.

    Args:
        codes: (d, n) level of every column.
        sizes: levels of each column.
        values: (n, m) outputs.
        weight: (n,) weights that count rows.
    """
    residual = values - weight @ values / weight.sum()
    effects = [np.zeros((size, values.shape[1])) for size in sizes]
    for _ in range(SWEEPS):
        for j, own in enumerate(codes):
            residual += effects[j][own]
            effects[j] = _shrunken_means(own, sizes[j], residual, weight)
            residual -= effects[j][own]
    return residual, effects


def level_effects(
    codes: Codes,
    sizes: tuple[int, ...],
    column: int,
    residual: FloatArray,
    effects: list[FloatArray],
    weight: FloatArray,
) -> LevelEffects:
    """Means and slopes of the levels of one column, from the residual and effects of ``additive_residual``."""
    own, size = codes[column], sizes[column]
    partial = residual + effects[column][own]
    rows = _sums(own, weight, size)
    means = _over(_level_sums(own, size, partial, weight), rows)
    inside = partial - means[own]
    noise = weight @ inside**2 / max(weight.sum() - size, 1.0)
    peak = _peakedness(inside, weight)
    parts = [_component(means, np.repeat(rows[:, None], len(noise), axis=1), noise, rows, peak, MEANS_DIFFER)]
    for j, slope in _directions(codes, sizes, column, effects):
        parts.append(_slopes(own, rows, inside, slope[codes[j]], weight))
    kept = [part for k, part in enumerate(parts) if k == 0 or part[2].any()]
    return LevelEffects(rows / rows.sum(), *(np.concatenate(arrays, axis=1) for arrays in zip(*kept, strict=True)))


def _shrunken_means(own: IntArray, size: int, values: FloatArray, weight: FloatArray) -> FloatArray:
    """(size, m) means of the levels of a column, shrunk by how far they differ beyond their error."""
    rows = _sums(own, weight, size)
    sums = _level_sums(own, size, values, weight)
    means = _over(sums, rows)
    total = rows.sum()
    noise = weight @ (values - means[own]) ** 2 / max(total - size, 1.0)
    between = np.maximum(rows @ means**2 - size * noise, 0.0) / total
    signal = rows[:, None] * between
    return np.asarray(means * np.divide(signal, signal + noise, out=np.zeros_like(signal), where=signal + noise > 0))


def _component(
    estimates: FloatArray, information: FloatArray, noise: FloatArray, rows: FloatArray, peak: FloatArray, limit: float
) -> Component:
    """A component of K levels, centred; nothing is expected of outputs in which they do not differ beyond chance.

    By chance the sum of squares has as many times the noise as there are levels, with a variance of 2 for each and more
    where single rows lie far out (``peak``) and levels have few.
    """
    total = np.maximum(information.sum(axis=0), TINY)
    centred = np.where(information > 0, estimates - (information * estimates).sum(axis=0) / total, 0.0)
    squared = (information * centred**2).sum(axis=0)
    known = (information > 0) & (rows[:, None] > 0)
    freedom = np.maximum(known.sum(axis=0) - 1.0, 1.0)
    chance = np.sqrt(2.0 * freedom + peak * np.where(known, 1.0 / np.maximum(rows[:, None], 1.0), 0.0).sum(axis=0))
    excess = squared - freedom * noise
    differs = (excess > limit * chance * noise) & (squared > 0)
    expected, variance = np.zeros_like(centred), np.zeros_like(centred)
    for k in np.flatnonzero(differs):
        error = np.sqrt(noise[k] / np.maximum(information[:, k], TINY))
        expected[:, k], variance[:, k] = given_the_others(centred[:, k], error)
    return centred, information, expected, variance


def given_the_others(estimates: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(K,) means and (K,) variances of what is estimated, given that all K come from one distribution.

    The distribution is that of the largest likelihood on a grid: it may be a few points, where levels are of a few
    kinds, or wide, where each is its own.

    >>> means, _ = given_the_others(np.array([-1.1, -0.9, -1.0, 1.1, 0.9, 1.0]), np.full(6, 0.2))
    >>> means.round(1).tolist()
    [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]
    """
    points = np.linspace(estimates.min(), estimates.max(), POINTS)
    distance = (estimates[:, None] - points) / np.maximum(error, TINY)[:, None]
    likelihood = np.exp(-0.5 * (distance**2 - (distance**2).min(axis=1, keepdims=True)))
    share = np.full(POINTS, 1.0 / POINTS)
    for _ in range(STEPS):
        belief = likelihood * share
        belief /= belief.sum(axis=1, keepdims=True)
        share = belief.mean(axis=0)
    means = belief @ points
    return means, np.maximum(belief @ points**2 - means**2, 0.0)


def _peakedness(values: FloatArray, weight: FloatArray) -> FloatArray:
    """(m,) how far the fourth moment of values exceeds that of a normal distribution: the excess kurtosis, if any."""
    second = weight @ values**2 / weight.sum()
    fourth = weight @ values**4 / weight.sum()
    ratio: FloatArray = np.divide(fourth, second**2, out=np.zeros_like(second), where=second > 0)
    return np.maximum(ratio - 3.0, 0.0)


def _directions(
    codes: Codes, sizes: tuple[int, ...], column: int, effects: list[FloatArray]
) -> Iterator[tuple[int, FloatArray]]:
    """For every other column that varies, a number for each of its levels, standardised: its place, and its effect."""
    for j, own in enumerate(codes):
        if j == column or sizes[j] < 2:
            continue
        share = np.bincount(own, minlength=sizes[j]) / len(own)
        for numbers in (np.arange(sizes[j], dtype=np.float64), *effects[j].T)[: 1 if sizes[j] == 2 else None]:
            centred = numbers - share @ numbers
            size = np.sqrt(share @ centred**2)
            if size > 0:
                yield j, centred / size


def _slopes(own: IntArray, rows: FloatArray, inside: FloatArray, z: FloatArray, weight: FloatArray) -> Component:
    """The slopes of residuals along z within every level, as a component; rows may differ in their noise."""
    size = len(rows)
    z = z - _over(_level_sums(own, size, z[:, None], weight), rows)[own, 0]
    squares = _sums(own, weight * z**2, size)
    moved = inside * z[:, None]
    slopes = _over(_level_sums(own, size, moved, weight), squares)
    information = np.repeat(squares[:, None], inside.shape[1], axis=1)
    lost = weight.sum() / max(weight.sum() - 2.0 * size, 1.0)  # a mean and a slope were taken from every level
    noise = lost * (weight @ moved**2) / max(squares.sum(), TINY)
    return _component(slopes, information, noise, rows, _peakedness(moved, weight), SLOPES_DIFFER)


def _level_sums(own: IntArray, size: int, values: FloatArray, weight: FloatArray) -> FloatArray:
    return np.column_stack([_sums(own, weight * column, size) for column in values.T])


def _sums(own: IntArray, numbers: FloatArray, size: int) -> FloatArray:
    """(K,) sum of numbers in each level."""
    return np.bincount(own, numbers, size).astype(np.float64)


def _over(sums: FloatArray, rows: FloatArray) -> FloatArray:
    """(K, m) sums over (K,) rows; 0 for a level without rows."""
    return np.divide(sums, rows[:, None], out=np.zeros_like(sums), where=rows[:, None] > 0)
