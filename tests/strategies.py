"""Random supports with model values, and what tests read off a result by its public names alone.

The shape of a support (levels, holes, duplicate and constant columns) is drawn by Hypothesis; the numbers on it
come from a generator whose seed it draws. ``EXANOVA_EXAMPLES=50`` searches fifty times as long.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.errors import InexactWarning

EFFORT = int(os.environ.get("EXANOVA_EXAMPLES", "1"))
MODERATE = ("equal", "counts", "real")
ALL_WEIGHTS = (*MODERATE, "extreme")


def examples(count):
    """The number of examples of a test, times EXANOVA_EXAMPLES."""
    return settings(max_examples=count * EFFORT)


@dataclass(frozen=True)
class Case:
    """Distinct rows (r, d) of levels 0, 1, .. that all occur, their weights (r,) and model values (r, m)."""

    rows: np.ndarray
    weight: np.ndarray
    values: np.ndarray
    kind: str

    @property
    def probability(self):
        return self.weight / self.weight.sum()

    @property
    def sizes(self):
        return tuple(int(n) for n in self.rows.max(axis=0) + 1)

    @property
    def is_complete(self):
        return len(self.rows) == np.prod(self.sizes)

    def with_values(self, values):
        return replace(self, values=values)


def renumbered(rows):
    """The same rows with the levels that occur numbered 0, 1, .."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1)


def weights_of(kind, rng, r):
    """Positive weights of one of the kinds: counts are integers, extreme ones span ten orders of magnitude."""
    if kind == "equal":
        return np.ones(r, dtype=np.int64)
    if kind == "counts":
        return rng.integers(1, 9, r)
    if kind == "real":
        return rng.uniform(0.2, 3.0, r)
    weight = 10.0 ** rng.uniform(-10, 0, r)
    weight[rng.integers(r)] = 1e-10
    weight[rng.integers(r)] = 1.0
    return weight


@st.composite
def supports(draw, weights=ALL_WEIGHTS, max_features=4, max_levels=4, max_rows=60, max_outputs=3, complete=None):
    """A ``Case``: holes unless ``complete``, perhaps a repeated and a constant column, columns in any order.

    A single row, and features of a single level, have few laws to break: they are drawn, but seldom.
    """
    levels = st.sampled_from([*range(2, max_levels + 1)] * 3 + [1])
    features = draw(st.sampled_from([*range(2, max_features + 1)] * 3 + [1]), label="features")
    sizes = draw(st.lists(levels, min_size=features, max_size=features), label="sizes")
    while np.prod(sizes) > max_rows and (complete or complete is None):
        sizes[int(np.argmax(sizes))] -= 1
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    grid = np.array(list(product(*map(range, sizes))))
    if complete is None:
        complete = draw(st.booleans(), label="complete")
    if complete:
        rows = rng.permutation(grid)
    else:
        most = min(len(grid), max_rows)
        holes = draw(st.sampled_from([1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8]), label="share of the rows left out")
        rows = rng.choice(grid, max(1, most - max(1, int(holes * most))), replace=False)
        extra = [rows[:, [draw(st.integers(0, len(sizes) - 1))]]] if draw(st.booleans(), label="duplicate") else []
        extra += [np.zeros((len(rows), 1), dtype=int)] if draw(st.booleans(), label="constant") else []
        rows = np.hstack([rows, *extra])[:, rng.permutation(len(sizes) + len(extra))][:, :max_features]
        rows = np.unique(rows, axis=0)
        rows = rows[rng.permutation(len(rows))]
    kind = draw(st.sampled_from(weights), label="weights")
    m = draw(st.integers(1, max_outputs), label="outputs")
    values = rng.integers(-8, 9, (len(rows), m)) / 4.0
    return Case(renumbered(rows), weights_of(kind, rng, len(rows)), values, kind)


def fit(case, **parameters):
    """A fitted FunctionalANOVA; an InexactWarning is let through, for the certificate says the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        return FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(
            case.rows, case.values, sample_weight=case.weight
        )


def subset_of(names):
    """Column positions of features called x0, x1, .."""
    return tuple(int(name[1:]) for name in names)


def tables(anova):
    """{subset: {levels: (m,) value}} of a fitted object, read from its effect tables."""
    out = {}
    for names in anova.effects_:
        effect = anova.effects_[names]
        cells = [tuple(map(int, levels)) for levels in effect.levels]
        out[subset_of(names)] = dict(zip(cells, effect.values, strict=True))
    return out


def on_rows(anova, rows):
    """{subset: (r, m) values of its effect on the rows}, read from the effect tables cell by cell."""
    return {
        subset: np.array([table[tuple(row[list(subset)].tolist())] for row in rows])
        for subset, table in tables(anova).items()
    }


def largest(effects):
    """The largest value of any effect: the scale every tolerance is relative to."""
    return max(float(np.abs(values).max()) for values in effects.values()) or 1.0


def proper_subsets(subset):
    return [b for order in range(len(subset)) for b in combinations(subset, order)]


def conditional_means(rows, probability, subset, values):
    """E[f_A 1{x_B = b}] for every B strictly inside A and every b: f_A against every function of fewer features."""
    means = []
    for smaller in proper_subsets(subset):
        for cell in np.unique(rows[:, list(smaller)], axis=0):
            inside = (rows[:, list(smaller)] == cell).all(axis=1)
            means.append((probability * inside) @ values)
    return np.array(means).reshape(-1, values.shape[1])


def given_means(rows, probability, subset, values):
    """(m,) the largest |E[f_A | x_B = b]| over every B strictly inside A and every b that occurs."""
    worst = np.zeros(values.shape[1])
    for smaller in proper_subsets(subset):
        for cell in np.unique(rows[:, list(smaller)], axis=0):
            inside = probability * (rows[:, list(smaller)] == cell).all(axis=1)
            worst = np.maximum(worst, np.abs(inside @ values) / inside.sum())
    return worst


def spread(case):
    """(m,) the largest deviation of each output from its mean: what checks are measured against; 1 if there is none."""
    deviation = np.abs(case.values - case.probability @ case.values).max(axis=0)
    return np.where(deviation > 1e-15 * np.abs(case.values).max(axis=0), deviation, 1.0)


def difference(first, second):
    """The largest difference between two results on the same rows, relative to the largest effect."""
    assert set(first) >= set(second) or set(second) >= set(first)
    apart = 0.0
    for subset in set(first) | set(second):  # a subset that one of them did not list has no effect there
        a, b = first.get(subset, 0.0), second.get(subset, 0.0)
        apart = max(apart, float(np.abs(a - b).max()))
    return apart / max(largest(first), largest(second))
