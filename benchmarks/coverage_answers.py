"""What one sample of a population says: fitted, and asked for every interval (:mod:`benchmarks.coverage`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.coverage_truth import Mask, Truth
from benchmarks.populations import Population
from exanova import FunctionalANOVA
from exanova.typing import FloatArray, IntArray

LEVEL = 0.95
"""Level of the intervals."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates of one sample with the ends of their intervals, in the places of the population; NaN where none."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    rows: FloatArray

    def covers(self, truth: FloatArray, slack: float) -> Mask:
        """Whether each interval holds the true value."""
        return np.asarray((self.low - slack <= truth) & (truth <= self.high + slack))


@dataclass(frozen=True, eq=False)
class Answers:
    """What one sample says, and the seconds of its fit and of its errors.

    Attributes:
        cells, shapley, l1, l2: intervals of cells, of Shapley values at rows, and of importances of effects.
        mean_shapley: intervals of the mean absolute Shapley values of features.
        units: (cells,) rows in each cell, or clusters where those were drawn.
        bias: (S,) what the squared norm of each effect is too large by on the average.
        unidentified: (cells,) those without an interval because the sample does not determine the effect.
        seconds: of the fit, and of its errors.
    """

    cells: Intervals
    shapley: Intervals
    l1: Intervals
    l2: Intervals
    mean_shapley: Intervals
    units: FloatArray
    bias: FloatArray
    unidentified: Mask
    seconds: tuple[float, float]


def ask(truth: Truth, n: int, cluster: int, said: bool, rng: np.random.Generator, shrunk: bool) -> Answers:
    """Draw one sample, fit it, and ask for every interval."""
    p = truth.population
    rows, labels = (p.draw(n, rng), None) if cluster == 1 else p.draw_clusters(n, cluster, rng)
    X, values = p.X.iloc[rows].reset_index(drop=True), p.values[rows]
    anova = exact(p, handle_unknown="ignore", shrinkage="auto" if shrunk else None)
    start = time.perf_counter()
    anova.fit(X, values, clusters=labels if said else None)
    middle = time.perf_counter()
    anova.errors()
    end = time.perf_counter()
    tables = [anova.importance(kind, by="subset", stderr=True, level=LEVEL) for kind in ("l2", "l1")]
    value, debiased = (truth.by_subset(tables[0], key) for key in ("value", "debiased"))
    squares, absolute = (from_table(truth.by_subset, table) for table in tables)
    cells, unidentified = intervals_of_cells(truth, anova)
    explained = anova.explain(truth.rows, stderr=True)
    return Answers(
        cells,
        Intervals(explained.values, *explained.interval(LEVEL), np.full(explained.values.shape, np.nan)),
        absolute,
        squares,
        from_table(truth.by_feature, anova.importance("shapley", level=LEVEL)),
        cells.rows if labels is None else clusters_in_cells(truth, X, labels),
        value - debiased,
        unidentified,
        (middle - start, end - middle),
    )


def exact(population: Population, **choices: Any) -> FunctionalANOVA:
    """An exact fit of a sample, unless it is said otherwise."""
    chosen = {"shrinkage": None} | choices
    return FunctionalANOVA(max_order=population.order, sampled=True, n_jobs=1, verbose=False, **chosen)


def from_table(order: Callable[[Any, str], FloatArray], table: Any) -> Intervals:
    """Intervals of importances as the table has them, in the order of the population."""
    value, low, high = (order(table, key) for key in ("value", "low", "high"))
    return Intervals(value, low, high, np.full(value.shape, np.nan))


def clusters_in_cells(truth: Truth, X: Any, labels: IntArray) -> FloatArray:
    """(cells,) how many of the clusters drawn have rows in each cell."""
    out = np.zeros(len(truth.values))
    for name, places in truth.places.items():
        if not name:
            out[places[()]] = len(np.unique(labels))
            continue
        for levels, own in X.assign(**{"a cluster": labels}).groupby(list(name), sort=False)["a cluster"]:
            out[places[tuple(str(level) for level in levels)]] = own.nunique()
    return out


def intervals_of_cells(truth: Truth, anova: FunctionalANOVA) -> tuple[Intervals, Mask]:
    """Every cell of the population in this sample, and which of them have no interval for want of identification."""
    size = len(truth.values)
    out = np.full((4, size), np.nan)
    out[3] = 0.0
    unidentified = np.zeros(size, dtype=bool)
    for name, effect in anova.effects_.items():
        places = truth.places[name]
        own = np.array([places[levels] for levels in effect.levels])
        low, high = effect.interval(LEVEL)
        out[:, own] = effect.values[:, 0], low[:, 0], high[:, 0], effect.rows
        unidentified[own] = effect.identified is False
    return Intervals(*out), unidentified
