"""Rows with planted interactions or with holes, for tests of what chooses a family."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from exanova.data.sample import Sample
from strategies import (
    Case,
    conditional_means,
    largest,
    on_rows,
    subset_of,
    weights_of,
)

ORTHOGONALITY = 1e-12
seeds = st.integers(0, 2**32 - 1)


def planted(rows=1500, features=8, levels=3, pairs=((0, 3), (2, 5)), triples=(), noise=0.0, kind="equal", seed=0):
    """Rows at random, main effects of every feature, and the interactions that are named."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, levels, (rows, features)), axis=0)
    y = sum(rng.normal(size=levels)[X[:, i]] for i in range(features))
    for subset in (*pairs, *triples):
        table = rng.normal(size=(levels,) * len(subset))
        y = y + 2.0 * table[tuple(X[:, i] for i in subset)]
    y = y + noise * rng.normal(size=len(X))
    return Case(X, weights_of(kind, rng, len(X)), y[:, None], kind)


def taken(anova, order=2):
    """Subsets of an order and higher that a result holds."""
    return {subset_of(names) for names in anova.effects_ if len(names) >= order}


def sparse(kind="equal", features=5, rows=70, seed=2, outputs=1):
    """A support with holes and strong dependence, the values at random."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, features))
    X[:, -1] = np.where(rng.random(rows) < 0.8, X[:, 0], X[:, -1])
    X = np.unique(X, axis=0)
    return Case(X, weights_of(kind, rng, len(X)), rng.normal(size=(len(X), outputs)), kind)


def worst_mean(case, anova):
    effects = on_rows(anova, case.rows)
    means = [conditional_means(case.rows, case.probability, a, values) for a, values in effects.items()]
    return max(float(np.abs(m).max(initial=0.0)) for m in means) / largest(effects)


def codes_of(case):
    return np.ascontiguousarray(case.rows.T).astype(np.uint8)


def sample_of(case):
    return Sample(codes_of(case), case.weight, case.sizes, case.values, len(case.rows))
