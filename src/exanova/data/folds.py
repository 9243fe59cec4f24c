"""Parts of the rows that are left out in turn, and when enough of them were."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exanova.typing import FloatArray, IntArray

FOLDS, ENOUGH_ROWS, ENOUGH_CLUSTERS = 5, 2000, 100
"""Parts that are left out in turn, and the numbers of rows and clusters left out at which this stops."""


def folds_of(unit: IntArray, seed: int | None) -> tuple[IntArray, int]:
    """(k,) the part in which the unit 0, 1, .. of every row is left out, at random, and the number of parts."""
    count = int(unit.max()) + 1
    parts = min(FOLDS, count)
    return np.asarray(np.random.default_rng(seed).permutation(count) % parts)[unit], parts


def enough_left_out(left_out: NDArray[np.bool_], cluster: IntArray | None, counts: FloatArray | None = None) -> bool:
    """Whether the rows ``left_out`` (k,) suffice to evaluate a fit; of clusters, more than a few have to be.

    Each stands for ``counts`` (k,) rows, or for one.
    """
    if (left_out.sum() if counts is None else counts[left_out].sum()) < ENOUGH_ROWS:
        return False
    return cluster is None or len(np.unique(cluster[left_out])) >= ENOUGH_CLUSTERS
