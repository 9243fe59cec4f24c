"""The equal rows behind each distinct one: how many, how their values differ, and which share each has in their weight.

A fit without one of several equal rows loses only that row's share of their weight. Rows of equal weight all lose the
same, so that their number and the variance of their values are enough. Rows of unequal weight do not: row j of the
distinct row i, with the share s_j of its weight, has the leverage h_i s_j, and is missed by e_j / (1 - h_i s_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.data.draws import Draws
from exanova.data.sample import Sample, group_sums
from exanova.data.weights import group_totals
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Unequal:
    """Raw rows of unequal weight; an entry may stand for several of them.

    Attributes:
        group: (k,) distinct row of each.
        part: (k,) its share of the weight of the distinct row.
        share: (k,) the same for one row; where an entry stands for rows of several weights, their mean, weighted by
            them.
        apart: (k, m) its values less those of the distinct row; ``None`` where equal rows have equal values.
        counts: (r,) raw rows behind each distinct one.
    """

    group: IntArray
    part: FloatArray
    share: FloatArray
    apart: FloatArray | None
    counts: FloatArray

    @classmethod
    def of(cls, sample: Sample, draws: Draws, outputs: IntArray | None) -> Unequal | None:
        """The raw rows of a sample; ``None`` where equal rows have equal weights."""
        total = group_totals(draws.weight, draws.group, sample.n_rows)
        part = draws.weight / total[draws.group]
        share = part / draws.counts
        if draws.squares is not None:  # at least as much; squares of very small weights are 0 in floating point
            share = np.maximum(share, draws.squares / draws.weight / total[draws.group])
        counts = group_totals(draws.counts, draws.group, sample.n_rows)
        if np.abs(share * counts[draws.group] - 1.0).max(initial=0.0) <= tolerances.SAME_SHARE:
            return None
        apart = None if draws.values is None else draws.values - sample.values[draws.group]
        apart = apart if apart is None or outputs is None else apart[:, outputs]
        return cls(draws.group, part, share, apart, counts)

    @property
    def copies(self) -> FloatArray:
        """(r,) how many rows of equal weight would have the same mean leverage."""
        return 1.0 / group_totals(self.part * self.share, self.group, len(self.counts))

    def squares(
        self,
        rows: IntArray,
        residual: FloatArray,
        leverage: FloatArray,
        within: FloatArray,
        lost: tuple[FloatArray, FloatArray] | None,
    ) -> FloatArray:
        """(N, m) mean squares of the errors of the raw rows behind ``rows`` (N,), less the variance ``within`` them.

        Args:
            rows: distinct rows.
            residual: (N, m) of their fit.
            leverage: (N,) of each as a whole.
            within: (N, m) variance of their values.
            lost: effects (N, m) that are not there without a raw row of mean weight, and how far (N,) they follow it.
        """
        place = np.full(len(self.counts), -1)
        place[rows] = np.arange(len(rows))
        mine = place[self.group] >= 0
        at, share, part = place[self.group[mine]], self.share[mine], self.part[mine, None]
        apart = np.zeros((len(at), residual.shape[1])) if self.apart is None else self.apart[mine]
        kept = np.maximum(1.0 - leverage[at] * share, tolerances.NO_RESIDUAL)[:, None]
        errors = (residual[at] + apart) / kept
        if lost is not None:
            errors += lost[0][at] * (share * self.counts[rows][at])[:, None] - lost[1][at, None] * errors
        unknown = np.maximum(within - group_sums(part * apart**2, at, len(rows)), 0.0)
        grown = group_sums(part / kept**2, at, len(rows))
        return np.asarray(group_sums(part * errors**2, at, len(rows)) + unknown * grown - within)


@dataclass(frozen=True, eq=False)
class Equal:
    """The equal rows behind each distinct one.

    Attributes:
        copies: (r,) how many there are; 1 leaves out distinct rows as a whole.
        within: (r, m) variance of their values, or 0.
        unequal: the rows themselves, where their weights differ.
    """

    copies: FloatArray | float = 1.0
    within: FloatArray | float = 0.0
    unequal: Unequal | None = None

    @classmethod
    def of(cls, sample: Sample, outputs: IntArray | None = None) -> Equal:
        """The rows behind the distinct ones of a sample, for all outputs or some."""
        within: FloatArray | float = 0.0
        if sample.within is not None:
            within = sample.within if outputs is None else sample.within[:, outputs]
        weighted = sample.draws is not None and sample.draws.kind == "probability"
        unequal = Unequal.of(sample, sample.draws, outputs) if weighted and sample.draws is not None else None
        return cls(sample.copies if unequal is None else unequal.copies, within, unequal)


DISTINCT = Equal()
"""Distinct rows are left out as a whole."""


def takes_weights_for_alike(sample: Sample) -> bool:
    """Whether rows of unequal weight were added up as they were read, so that only their mean leverage is known."""
    draws = sample.draws
    if draws is None or draws.squares is None:
        return False
    return bool((draws.squares * draws.counts > draws.weight**2 * (1.0 + tolerances.SAME_SHARE)).any())
