"""Labels of neighbouring levels shown as one: runs of bins, periods or ordered categories."""

from __future__ import annotations

from exanova.data.feature import FeatureLevels
from exanova.data.intervals import have_single_ends, interval_labels
from exanova.data.periods import time_text


def run_label(feature: FeatureLevels, first: int, last: int) -> str:
    """The levels from ``first`` to ``last`` of a feature whose levels are in order, as one label.

    >>> age = FeatureLevels("age", tuple("abc"), ("< 30", "[30, 50)", ">= 50"), (), (0, 1, 2), (18.0, 30.0, 50.0, 90.0))
    >>> run_label(age, 0, 1), run_label(age, 1, 2), run_label(age, 1, 1)
    ('< 50', '>= 30', '[30, 50)')
    >>> run_label(FeatureLevels.of("size", ["S", "M", "L"]), 0, 1)
    'S to M'
    """
    if first == last:
        return feature.labels[first]
    if feature.edges:
        bins = [k for k, code in enumerate(feature.codes) if first <= code <= last]
        ends = bins[0], bins[-1] + 1
        if not feature.is_of_times:
            return _interval(feature, *ends)
        if feature.labels[first].startswith(("before ", "[")) or feature.labels[last].startswith("["):
            return _times(feature, *ends)
        return _periods(feature, first, last)
    return f"{feature.labels[first]} to {feature.labels[last]}"


def _interval(feature: FeatureLevels, low: int, high: int) -> str:
    """The interval between two edges, by their numbers."""
    edges = [float(edge) for edge in feature.edges]
    kept = sorted({0, low, high, len(edges) - 1})
    whole = all(edge.is_integer() for edge in edges)
    single = not whole and have_single_ends(edges)
    labels = interval_labels([edges[k] for k in kept], [False] * (len(kept) - 1), whole, single)
    return labels[kept.index(low)]


def _times(feature: FeatureLevels, low: int, high: int) -> str:
    start, end = time_text(feature.edges[low]), time_text(feature.edges[high])
    if low == 0:
        return f"before {end}" if high < len(feature.edges) - 1 else f"{start} to {end}"
    return f"{start} or later" if high == len(feature.edges) - 1 else f"[{start}, {end})"


def _periods(feature: FeatureLevels, first: int, last: int) -> str:
    """Periods of the calendar: from the beginning of the first to the end of the last."""
    start = feature.labels[first].partition(" to ")[0]
    end = feature.labels[last].rpartition(" to ")[2]
    if start.endswith(" or before"):
        return "any time" if end.endswith(" or later") else f"{end} or before"
    return f"{start} or later" if end.endswith(" or later") else f"{start} to {end}"
