"""``CountedFamily``: a given family that is gone through subset by subset, with its common rows already counted.

It stands in for a ``GrowingFamily`` where the whole family is known and its Gram matrix of indicators at hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exanova.design.family import Family
from exanova.phi.gram import CommonRows
from exanova.typing import FloatArray, IntArray, Subset


class CountedFamily:
    """The first subsets of a family, more and more of them, with the counts of the rows common to their indicators.

    Args:
        whole: the family, closed downward, lower orders first.
        common: the rows common to its indicators.

    Attributes:
        family: the subsets so far.
        indicators: their indicators.
    """

    def __init__(self, whole: Family, common: CommonRows) -> None:
        self._whole, self._common = whole, common
        self._go_to(1)

    def _go_to(self, subsets: int) -> None:
        self.family = self._whole.restricted(subsets)
        self.indicators = self._common.indicators.restricted(self.family.n_cells)

    def extend(self, subsets: Sequence[Subset]) -> int:
        """Go on by ``subsets``, which come next; the number of the first (on the first call, of the intercept)."""
        first = len(self.family.subsets)
        assert self._whole.subsets[first : first + len(subsets)] == tuple(subsets)
        self._go_to(first + len(subsets))
        return first if first > 1 else 0

    def counts(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """(rows, columns) total weight of the rows common to two indicators; by default all columns so far."""
        if columns is None:
            return self._common.gram[rows, : len(self.indicators)].astype(np.float64)
        return self._common.gram[np.ix_(rows, columns)].astype(np.float64)
