"""An effect for display: neighbouring levels whose values do not differ beyond their error are joined.

Groups begin as single levels. The two neighbouring groups with the smallest difference relative to its error are
joined, as long as the difference is within chance; the value of a group is the mean of its levels. The remaining groups
differ from their neighbours.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from exanova.argument_checks import check_level
from exanova.data.run_labels import run_label
from exanova.errors import InputError
from exanova.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from exanova.effects.effect import Effect


class OfGroups:
    """The uncertainty of an effect with joined levels, transformed exactly from that of the levels.

    Attributes:
        means: (g, c) the matrix that takes values of levels to those of groups.
    """

    cheap, lonely = True, ""

    def __init__(self, means: FloatArray, covariance: FloatArray, rows: FloatArray, identified: bool | None) -> None:
        self.means = means
        self._covariance = means @ covariance @ means.T
        self._rows, self._identified = rows, identified

    def stderr_of(self, s: int) -> FloatArray:
        """(g, m) standard errors."""
        return np.sqrt(np.maximum(np.diagonal(self._covariance, axis1=1, axis2=2), 0.0)).T

    def covariance_of(self, s: int) -> FloatArray:
        """(m, g, g) covariances."""
        return self._covariance

    def reach_of(self, s: int, level: float) -> FloatArray | float:
        """Half-width of an interval of one group."""
        return _limit(level, 1)

    def critical_of(self, s: int, level: float) -> FloatArray:
        """(m,) half-width of a band for all groups together: that of as many independent values (Sidak)."""
        return np.full(len(self._covariance), _limit(level, len(self._rows)))

    def rows_of(self, s: int) -> FloatArray:
        """(g,) rows of each group."""
        return self._rows

    def identified(self, s: int) -> bool | None:
        """Whether the rows determine the effect."""
        return self._identified

    def has_stderr(self, s: int) -> bool:
        """Whether there are standard errors: without them nothing is joined."""
        return True

    def means_of(self, s: int) -> FloatArray:
        """(g, m) not known of groups."""
        return np.full((len(self._rows), len(self._covariance)), np.nan)

    def certain_of(self, s: int) -> FloatArray:
        """Unknown for groups."""
        raise InputError("this effect has joined levels; use the original effect for its certain part.")


def neighbours_alike(values: FloatArray, weight: FloatArray, covariance: FloatArray, limit: float) -> IntArray:
    """Group of each of c levels in order: neighbours no further apart than ``limit`` standard errors, in any output.

    Args:
        values: (c, m) values of the levels.
        weight: (c,) their probabilities.
        covariance: (m, c, c) of the values.
        limit: in standard errors of a difference.

    >>> values = np.array([[0.0], [0.1], [3.0]])
    >>> neighbours_alike(values, np.full(3, 1 / 3), np.full((1, 3, 3), 0.0) + np.eye(3) * 0.01, 1.96).tolist()
    [0, 0, 1]
    """
    group = np.arange(len(values))
    while group[-1] > 0:
        means = group_means(group, weight)
        steps = np.diff(np.eye(group[-1] + 1), axis=0) @ means
        variance = np.einsum("gc,mcd,gd->gm", steps, covariance, steps)
        error = np.sqrt(np.maximum(variance, 0.0))
        apart = np.abs(steps @ values)
        ratio = np.divide(apart, error, out=np.where(apart > 0, np.inf, 0.0), where=error > 0).max(axis=1)
        least = int(np.argmin(ratio))
        if not ratio[least] <= limit:
            break
        group[group > least] -= 1
    return group


def group_means(group: IntArray, weight: FloatArray) -> FloatArray:
    """(g, c) the matrix that takes values of levels to the means of groups."""
    member = (group[None, :] == np.arange(group[-1] + 1)[:, None]) * weight
    return np.asarray(member / member.sum(axis=1, keepdims=True))


def joined_effect(effect: Effect, level: float) -> Effect:
    """The effect with neighbouring levels joined; levels without a position in the order are not joined."""
    feature = effect.feature
    check_level(level)
    if feature is None or not effect.knowledge:
        return effect
    placed = min(feature.ordered, len(effect.levels))
    if placed < 2 or not effect.has_stderr:
        return effect
    covariance = effect.knowledge.covariance_of(effect.number)
    limit = _limit(level, placed - 1)
    own = slice(0, placed)
    group = neighbours_alike(effect.values[own], effect.probability[own], covariance[:, own, own], limit)
    every = np.concatenate([group, group[-1] + 1 + np.arange(len(effect.levels) - placed)])
    means = group_means(every, effect.probability)
    member = (every[None, :] == np.arange(every[-1] + 1)[:, None]).astype(np.float64)
    firsts = [int(np.flatnonzero(row)[0]) for row in member]
    lasts = [int(np.flatnonzero(row)[-1]) for row in member]
    return replace(
        effect,
        levels=tuple((run_label(feature, *ends),) for ends in zip(firsts, lasts, strict=True)),
        probability=member @ effect.probability,
        values=means @ effect.values,
        knowledge=OfGroups(means, covariance, member @ effect.rows, effect.identified),
        feature=None,
    )


def _limit(level: float, count: int) -> float:
    """Standard errors that none of that many normal values exceeds, with this probability, if they are independent."""
    return NormalDist().inv_cdf(0.5 + 0.5 * level ** (1.0 / count))
