"""Variance components by marginal likelihood: how much of the model is main effects, pairs, and neither.

First one ratio for each order; then, around it, one for each subset, whose logarithm is expected within about one of
its order's, nearer where rows are few (``Pulled``): subsets that say nothing are held back further.

The search is a damped Newton iteration over log lambda_k with the average information in place of the curvature. It
ends where the next step is expected to raise the log-likelihood by less than ``ENOUGH``: the remaining gain is far
below what the rows can determine. A ratio that only grows or only decreases stops at its bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from exanova import tolerances
from exanova.shrink.likelihood import Evaluation, Likelihood
from exanova.typing import FloatArray, IntArray

ENOUGH = 0.02
"""Gain in log-likelihood that is not worth another factorisation: ratios that differ by 2 are all plausible."""

ENOUGH_BY_SUBSET = 0.1
"""The same for the ratios of all subsets together."""

ENOUGH_PER_ROW = 2e-4
"""The same for every row: with many rows the fit hardly depends on the ratios."""

SPREAD_OF_SUBSETS = 1.0
"""Variance that is expected of the logarithms of the ratios of subsets of one order. Measured on eight tables: 0.3
gains half as much, 3 and more lose on tables of some hundred rows."""

FULL_SPREAD_ROWS = 1000
"""Rows from which that variance is granted. A few hundred rows determine the ratios of subsets poorly, and leaving
rows out under ratios that were fitted to them is too optimistic: with 0.3 on 350 rows of Diabetes, R2 of rows left
out was 0.012 nearer to that of rows held out, and the latter 0.003 better."""

LARGEST_RATIO = 14.0
"""Logarithm of the largest ratio lambda considered, and of one over the smallest."""

LARGEST_EIGENVALUE = 1e12
"""Rows times ratio up to which 1 + an eigenvalue that is zero but for rounding stays positive."""

STEPS = 40

FLAT = float(np.sqrt(tolerances.EPS))
"""Curvature, relative to the largest, that is added to one that may be zero but for rounding."""

SIMILAR = 0.5
"""Logarithms of ratios that differ by less may be shared: the fit hardly depends on them."""

LONGEST_STEP = 3.0
"""Longest step in a logarithm: a factor of 20."""


@dataclass(frozen=True)
class VarianceComponents:
    """Variances chosen by likelihood, for one output in its normalised unit.

    Attributes:
        orders: sizes of the subsets, from 1 on.
        variance: sigma_k^2 of each order: the variance the prior expects of all its effects together.
        by_subset: whether subsets of one order have their own variances, ``variance`` being their sum.
        residual: tau^2.
        converged: whether the likelihood was maximised.
        rows: distinct rows it was maximised on, with their counts.
        steps: factorisations it took.
    """

    orders: tuple[int, ...]
    variance: tuple[float, ...]
    residual: float
    converged: bool
    rows: int
    steps: int = 0
    by_subset: bool = False


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where a search ended: the likelihood there, whether it is a maximum, and the number of evaluations."""

    evaluation: Evaluation
    converged: bool
    steps: int


@dataclass(frozen=True, eq=False)
class Pulled:
    """A likelihood times a normal prior of its logarithms: few rows leave them near the centre, many move them.

    Attributes:
        likelihood: the likelihood of the rows.
        centre: (K,) where the logarithms are expected.
        variance: how far from there.
    """

    likelihood: Likelihood
    centre: FloatArray
    variance: float

    @property
    def count(self) -> float:
        """Rows, equal ones counted."""
        return self.likelihood.count

    @property
    def components(self) -> int:
        """K."""
        return self.likelihood.components

    def at(self, logs: FloatArray) -> Evaluation:
        """Evaluate at the logarithms (K,) of the ratios."""
        evaluation, away = self.likelihood.at(logs), logs - self.centre
        return replace(
            evaluation,
            loss=evaluation.loss + 0.5 * float(away @ away) / self.variance,
            gradient=evaluation.gradient + away / self.variance,
            information=evaluation.information + np.eye(len(logs)) / self.variance,
        )


def spread_of_subsets(rows: float) -> float:
    """Variance that is expected of the logarithms of the ratios of subsets, for this number of rows.

    >>> spread_of_subsets(250), spread_of_subsets(10**5)
    (0.25, 1.0)
    """
    return SPREAD_OF_SUBSETS * min(1.0, rows / FULL_SPREAD_ROWS)


def bounds(rows: float) -> tuple[float, float]:
    """Smallest and largest logarithm of a ratio, for this number of rows.

    >>> bounds(1000)
    (-14.0, 14.0)
    """
    return -LARGEST_RATIO, min(LARGEST_RATIO, math.log(LARGEST_EIGENVALUE / max(1, rows)))


def maximise(likelihood: Likelihood, start: FloatArray | None = None, enough: float = ENOUGH) -> Maximum:
    """Maximise a likelihood from the logarithms ``start`` (K,), all ratios 1 unless given."""
    low, high = bounds(likelihood.count)
    enough = max(enough, ENOUGH_PER_ROW * likelihood.count)
    here = likelihood.at(np.zeros(likelihood.components) if start is None else np.clip(start, low, high))
    damping, steps = 0.0, 1
    while steps < STEPS:
        move, promised = _step(here, damping, low, high)
        if promised < enough:
            return Maximum(here, True, steps)
        there = likelihood.at(here.logs + move)
        steps += 1
        if there.loss < here.loss:
            here, damping = there, damping / 8.0
        else:
            damping = max(8.0 * damping, float(np.abs(np.diagonal(here.information)).max()), ENOUGH)
    return Maximum(here, False, steps)


def _step(here: Evaluation, damping: float, low: float, high: float) -> tuple[FloatArray, float]:
    """A damped Newton step inside the bounds, and the gain in log-likelihood that it promises."""
    at_bound = ((here.logs <= low) & (here.gradient > 0)) | ((here.logs >= high) & (here.gradient < 0))
    move, free = np.zeros_like(here.logs), np.flatnonzero(~at_bound)
    if len(free):
        # Where the likelihood is flat, the size of the gradient stands in for the curvature.
        curvature = here.information[np.ix_(free, free)].copy()
        least = np.abs(here.gradient[free]) / LONGEST_STEP + FLAT * (1.0 + np.abs(curvature).max())
        curvature[np.diag_indices_from(curvature)] += least + damping
        step = -np.linalg.solve(curvature, here.gradient[free])
        move[free] = step * (LONGEST_STEP / max(LONGEST_STEP, float(np.abs(step).max())))
        move = np.clip(here.logs + move, low, high) - here.logs
    return move, float(-here.gradient @ move)


def alike(logs: FloatArray, most: int) -> list[IntArray]:
    """At most this many groups of outputs with similar (m, K) logarithms, measured from the first of each group.

    >>> [group.tolist() for group in alike(np.array([[0.0, 1.0], [5.0, 1.0], [0.5, 0.5]]), 2)]
    [[0, 2], [1]]
    """
    apart = SIMILAR
    while True:
        left, groups = np.arange(len(logs)), []
        while len(left):
            near = np.abs(logs[left] - logs[left[0]]).max(axis=1, initial=0.0) <= apart
            groups.append(left[near])
            left = left[~near]
        if len(groups) <= most:
            return groups
        apart *= 1.5


def described(components: tuple[VarianceComponents, ...]) -> str:
    """Variance components in words, as shares of the variance that the prior expects of the first output.

    >>> described((VarianceComponents((1, 2), (3.0, 0.5), 0.5, True, 100),))
    'order 1 75 %, order 2 12 %, residual 12 % of the prior variance; likelihood maximised on 100 rows'
    """
    first = components[0]
    total = sum(first.variance) + first.residual or 1.0
    shares = [f"order {k} {100 * v / total:.0f} %" for k, v in zip(first.orders, first.variance, strict=True)]
    shares.append(f"residual {100 * first.residual / total:.0f} %")
    outcome = "maximised" if all(c.converged for c in components) else "NOT maximised"
    more = f" (output 1 of {len(components)})" if len(components) > 1 else ""
    return f"{', '.join(shares)} of the prior variance{more}; likelihood {outcome} on {first.rows:,} rows"
