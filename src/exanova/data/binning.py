"""Numbers to intervals: edges of bins, and the bin of each value, as scikit-learn's ``KBinsDiscretizer`` does.

Bin ``k`` of the edges ``e_0 < ... < e_K`` is ``[e_k, e_(k+1))``, the last one closed; a value outside falls in
the first or the last bin. Edges depend on the weighted distribution only: a row of weight two is two rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.errors import InputError
from exanova.messages import choices
from exanova.typing import FloatArray, IntArray

STRATEGIES = ("quantile", "uniform", "kmeans")


def bin_edges(values: FloatArray, weight: NDArray[Any], n_bins: int, strategy: str) -> FloatArray:
    """At most ``n_bins + 1`` strictly increasing edges for sorted distinct values (k,) of weights (k,).

    >>> bin_edges(np.array([0.0, 1.0, 4.0]), np.array([1, 1, 2]), 2, "uniform").tolist()
    [0.0, 2.0, 4.0]
    >>> bin_edges(np.array([0.0, 1.0, 4.0]), np.array([1, 1, 2]), 2, "quantile").tolist()
    [0.0, 2.5, 4.0]
    """
    if strategy == "uniform":
        edges = np.linspace(values[0], values[-1], n_bins + 1)
    elif strategy == "quantile":
        edges = _quantiles(values, weight, n_bins)
    elif strategy == "kmeans":
        edges = _between_centres(values, weight, n_bins)
    else:
        raise InputError.given("strategy", strategy, *choices("strategy", STRATEGIES))
    return np.unique(edges)


def bin_codes(values: FloatArray, edges: FloatArray) -> IntArray:
    """Bin of each value (n,), from 0 to ``len(edges) - 2``.

    >>> bin_codes(np.array([-9.0, 0.0, 2.0, 9.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [0, 0, 1, 1]
    """
    return np.searchsorted(edges[1:-1], values, side="right").astype(np.int64)


def bin_labels(edges: FloatArray) -> tuple[str, ...]:
    """Intervals as text, with as many digits as it takes to tell the edges apart.

    >>> bin_labels(np.array([0.5, 1.25, 3.0]))
    ('[0.5, 1.25)', '[1.25, 3]')
    """
    for digits in range(4, 18):
        shown = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(shown)) == len(shown):
            break
    closing = [")"] * (len(shown) - 2) + ["]"]
    return tuple(f"[{a}, {b}{end}" for a, b, end in zip(shown[:-1], shown[1:], closing, strict=True))


def _quantiles(values: FloatArray, weight: NDArray[Any], n_bins: int) -> FloatArray:
    """Quantiles k / n_bins by the inverted distribution function, averaged where it is flat.

    Both sides are multiplied by ``n_bins`` so that counts are compared as integers.
    """
    reached = np.cumsum(weight) * n_bins
    wanted = np.arange(n_bins + 1) * weight.sum()
    low = np.minimum(np.searchsorted(reached, wanted, side="left"), len(values) - 1)
    high = np.where(reached[low] == wanted, np.minimum(low + 1, len(values) - 1), low)
    averaged: FloatArray = values[low] + (values[high] - values[low]) / 2
    return averaged


def _between_centres(values: FloatArray, weight: NDArray[Any], n_bins: int) -> FloatArray:
    """Edges half-way between the centres of a one-dimensional k-means that starts from uniform bins."""
    from sklearn.cluster import KMeans

    uniform = np.linspace(values[0], values[-1], n_bins + 1)
    start = (uniform[1:] + uniform[:-1])[:, None] * 0.5
    clusters = KMeans(n_clusters=n_bins, init=start, n_init=1, tol=0.0)
    clusters.fit(values[:, None], sample_weight=weight.astype(np.float64))
    centres = np.sort(clusters.cluster_centers_[:, 0])
    return np.concatenate([values[:1], (centres[1:] + centres[:-1]) * 0.5, values[-1:]])
