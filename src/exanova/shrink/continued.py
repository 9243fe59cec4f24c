"""Pairs in cells never observed: the posterior mean there, by the prior that shrinks the observed cells.

The prior of a pair is defined on the whole table of combinations of its levels: g has the covariance K_i times K_j, and
the effect in the observed cells is f = Pi g, what no a(x_i) + b(x_j) can express there
(:mod:`exanova.shrink.cell_kernels`). With X the indicators of the levels of both features, now at all combinations, R
the reading of the observed ones, P their probabilities and G = (R X)^T P R X, the same effect on the whole table is

    f = Pi_+ g,     Pi_+ = 1 - X G^-1 (R X)^T P R,     R Pi_+ = Pi R:

the additive functions that were fitted to the observed cells are subtracted everywhere. With u the sums of precision
times residual over the rows of every observed cell, the posterior mean is

    E[f | rows] = ratio Pi_+ K R^T Pi^T u

on the whole table: in the observed cells it is the effect as fitted, in the others it is that effect continued from
them. It costs two products of tables of levels. Where the observed cells fall apart into parts without a common level,
a constant may move from a to b within each; it is divided so that both have the same sum over their levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exanova.design.continuation import unobserved_cells
from exanova.design.family import Family
from exanova.shrink.cell_kernels import PairKernel
from exanova.shrink.posterior import PosteriorMean
from exanova.shrink.prepared import Prepared
from exanova.typing import FloatArray, IntArray

MOST_NUMBERS = 10_000_000
"""Values in cells never observed that a fit keeps, over all pairs and outputs, the smallest tables first: 80 MB."""


def pairs_to_continue(family: Family, subsets: Sequence[int], outputs: int) -> IntArray:
    """Numbers of the pairs among ``subsets`` that have cells never observed, as far as their tables are kept.

    Larger subsets have keys for the cells of the pairs they begin with, so that these count too.
    """
    pairs = [s for s in subsets if len(family.subsets[s]) == 2 and unobserved_cells(family, s)]
    levels = dict.fromkeys(pairs, 1)
    for subset in family.subsets:
        prefix = family.position[subset[:2]] if len(subset) == 3 else -1
        if prefix in levels:
            levels[prefix] += int(family.sizes[subset[2]])
    sizes = np.array([unobserved_cells(family, s) * levels[s] * outputs for s in pairs], dtype=np.int64)
    smallest = np.argsort(sizes, kind="stable")
    kept = smallest[np.cumsum(sizes[smallest]) <= MOST_NUMBERS]
    return np.sort(np.array(pairs, dtype=np.int64)[kept])


def continuation_bytes(family: Family, outputs: int) -> int:
    """Bytes of the values, at most, while they are put together."""
    pairs = [s for s, subset in enumerate(family.subsets) if len(subset) == 2]
    numbers = outputs * sum(unobserved_cells(family, s) for s in pairs)
    return 16 * min(numbers, MOST_NUMBERS)


def continued(work: Prepared, pairs: IntArray, solved: PosteriorMean, ratio: FloatArray) -> FloatArray:
    """(K, m) a posterior mean in the cells of (P,) pairs that were never observed, given the ratio (S',) of subsets."""
    place = {s: k for k, s in enumerate(work.prior.subsets)}
    sums = np.zeros((0, 0)) if work.has_leading else work.phi.analyse(work.precision[:, None] * solved.residual)
    parts = [np.zeros((0, solved.residual.shape[1]))]
    for s in pairs.tolist():
        k, kernel = place[s], work.rows.of.kernels[place[s]]
        assert isinstance(kernel, PairKernel)
        if work.has_leading:
            own = slice(int(work.prior.start[k]), int(work.prior.start[k + 1]))
            table = kernel.continued_leading(solved.coordinates[own])
        else:
            table = ratio[k] * kernel.continued(sums[work.family.cells_of(s)])
        parts.append(_on_unobserved(work.family, s, table))
    return np.concatenate(parts)


def _on_unobserved(family: Family, s: int, table: FloatArray) -> FloatArray:
    """(k, m) the values of a pair on all combinations (N_i, N_j, m) in those that never occurred."""
    unseen = np.ones(table.shape[:2], dtype=bool)
    unseen[tuple(family.codes_of(s))] = False
    return np.asarray(table[unseen])
