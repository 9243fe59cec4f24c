"""Where to cut sorted numbers: positions between neighbouring values, by quantiles, widths or centres.

A cut is a position p: the values before p go below, those from p on above. Positions depend on the weighted
distribution only: a row of weight two is two rows. A value with more rows than a bin should have is a bin of its own,
and the others are cut around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.segments import join_lightest, run_of_each
from exanova.errors import InputError
from exanova.messages import choices
from exanova.typing import FloatArray, IntArray

STRATEGIES = ("quantile", "uniform", "kmeans", "model")


def cut_positions(
    values: FloatArray, weight: NDArray[Any], n_bins: int, strategy: str, least: float = 0.0
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Where to cut sorted distinct values (k,) of weights (k,) into at most ``n_bins`` bins.

    Args:
        values: sorted numbers without repetition.
        weight: their weights.
        n_bins: most bins.
        strategy: "quantile", "uniform" or "kmeans".
        least: smallest weight of a bin; smaller ones are joined with a neighbour.

    Returns:
        starts: (b,) position of the first value of each bin; the first is 0.
        alone: (b,) whether the bin is a single value with more than its share of the weight.

    >>> starts, alone = cut_positions(np.array([-1.0, 0, 1, 2, 3]), np.array([2, 90, 3, 3, 2]), 4, "quantile")
    >>> starts.tolist(), alone.tolist()
    ([0, 1, 2, 3], [False, True, False, False])
    """
    if strategy == "quantile":
        # As many values as bins: each is a bin of its own.
        heavy = weight * n_bins > weight.sum() if len(values) > n_bins else np.ones(len(values), dtype=bool)
        starts = _around(weight, heavy, n_bins, least)
    else:
        heavy = np.zeros(len(values), dtype=bool)
        starts = _positions(values, _edges(values, weight, n_bins, strategy))
    starts = join_lightest(starts, weight, n_bins, least)
    sizes = np.diff(np.append(starts, len(values)))
    return starts, (sizes == 1) & heavy[starts]


def bin_codes(values: FloatArray, edges: FloatArray) -> IntArray:
    """Bin of each value (n,), from 0 to ``len(edges) - 2``.

    >>> bin_codes(np.array([-9.0, 0.0, 2.0, 9.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [0, 0, 1, 1]
    """
    return np.searchsorted(edges[1:-1], values, side="right").astype(np.int64)


def _around(weight: NDArray[Any], heavy: NDArray[np.bool_], n_bins: int, least: float) -> IntArray:
    """Starts (b,) of bins: each value of large weight alone, and the runs between them cut by quantiles."""
    runs = run_of_each(heavy)
    others = float(weight[~heavy].sum())
    spare = max(1, n_bins - int(heavy.sum()))
    starts = []
    for begin, end in zip(runs, [*runs[1:], len(heavy)], strict=True):
        own = weight[begin:end]
        share = spare * float(own.sum()) / others if not heavy[begin] else 1.0
        bins = max(1, round(share))
        if least:
            bins = max(1, min(bins, int(own.sum() / least)))
        starts.append(begin + _quantiles(own, bins))
    return np.concatenate(starts)


def _quantiles(weight: NDArray[Any], n_bins: int) -> IntArray:
    """Starts (b,) of the bins between the quantiles k / n_bins, by the inverted distribution function.

    Both sides are multiplied by ``n_bins`` so that counts are compared as integers.
    """
    reached = np.cumsum(weight) * n_bins
    wanted = np.arange(n_bins + 1) * weight.sum()
    low = np.minimum(np.searchsorted(reached, wanted, side="left"), len(weight) - 1)
    # Where the distribution function is flat the quantile lies between two values: the cut is above the lower one.
    starts = np.unique(np.where(reached[low] == wanted, low + 1, low)[1:-1])
    return np.concatenate([[0], starts[(starts > 0) & (starts < len(weight))]]).astype(np.int64)


def _positions(values: FloatArray, edges: FloatArray) -> IntArray:
    """Starts (b,) of the bins between edges; a value on an edge belongs to the bin above."""
    starts = np.unique(np.searchsorted(values, edges[1:-1], side="left"))
    return np.concatenate([[0], starts[(starts > 0) & (starts < len(values))]]).astype(np.int64)


def _edges(values: FloatArray, weight: NDArray[Any], n_bins: int, strategy: str) -> FloatArray:
    if strategy == "uniform":
        return np.linspace(values[0], values[-1], n_bins + 1)
    if strategy == "kmeans":
        return _between_centres(values, weight, min(n_bins, len(values)))
    raise InputError.given("strategy", strategy, *choices("strategy", STRATEGIES))


def _between_centres(values: FloatArray, weight: NDArray[Any], n_bins: int) -> FloatArray:
    """Edges half-way between the centres of a one-dimensional k-means that starts from uniform bins."""
    from sklearn.cluster import KMeans

    uniform = np.linspace(values[0], values[-1], n_bins + 1)
    start = (uniform[1:] + uniform[:-1])[:, None] * 0.5
    clusters = KMeans(n_clusters=n_bins, init=start, n_init=1, tol=0.0)
    clusters.fit(values[:, None], sample_weight=weight.astype(np.float64))
    centres = np.sort(clusters.cluster_centers_[:, 0])
    return np.concatenate([values[:1], (centres[1:] + centres[:-1]) * 0.5, values[-1:]])
