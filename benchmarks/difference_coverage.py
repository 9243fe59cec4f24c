"""Do 95 % intervals of differences cover? ``python -m benchmarks.difference_coverage [--quick]``.

Samples are drawn from a population whose parts are known: three dependent features, a group that depends on one of
them, and outputs with noise. Every sample is fitted, the gap between groups is split, and the intervals of its parts
are held against the parts in the population: over the rows of the fit, and over other rows. One process, one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from exanova import FunctionalANOVA
from exanova.typing import FloatArray

REACH = 1.959963984540054
NOISE = 0.5
SIZES = (3, 2, 3)
FEATURES = ["a", "b", "c"]
KINDS = ("subsets", "features", "total", "residual")


def population() -> tuple[pd.DataFrame, FloatArray, FloatArray]:
    """Every combination of levels and groups, its probability, and the mean of the output there."""
    table = pd.DataFrame(list(product(*map(range, SIZES), (0, 1))), columns=[*FEATURES, "group"])
    a, b, c, g = (table[name].to_numpy() for name in table)
    p = np.array([0.5, 0.3, 0.2])[a] * np.where(b == a % 2, 0.7, 0.3) * np.array([0.3, 0.4, 0.3])[c]
    p = p * np.where(g == 1, 0.3 + 0.2 * a, 0.7 - 0.2 * a)
    return table, p / p.sum(), 0.5 * a + b * (c == 1) + 0.3 * (c == 2) + 0.2 * g


def truth(order: int) -> dict[str, FloatArray]:
    """The parts of the gap in the population."""
    table, p, mean = population()
    anova = FunctionalANOVA(sampled=False, max_order=order).fit(table[FEATURES], mean, sample_weight=p)
    return parts(anova, table, mean, p)[0]


def parts(anova: Any, table: pd.DataFrame, outputs: Any, weight: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values and standard errors of every kind of part."""
    found = anova.difference(table, by=table["group"].to_numpy() == 1, model=outputs, sample_weight=weight)[0]
    values = {"subsets": found.by_subset[1:, 0], "features": found.by_feature[:, 0]}
    errors = {"subsets": found.by_subset_stderr[1:, 0], "features": found.by_feature_stderr[:, 0]}
    values |= {"total": found.total, "residual": found.residual}
    errors |= {"total": found.total_stderr, "residual": found.residual_stderr}
    return values, errors


def drawn(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, FloatArray]:
    """Rows of the population with their noisy outputs."""
    table, p, mean = population()
    rows = rng.choice(len(table), n, p=p)
    return table.iloc[rows].reset_index(drop=True), mean[rows] + NOISE * rng.normal(size=n)


def coverage(n: int, repeats: int, order: int, shrinkage: str | None, other: bool, seed: int = 0) -> dict[str, Any]:
    """Share of the intervals of every kind that cover, and the mean standard error over the spread of the values."""
    rng, known = np.random.default_rng(seed), truth(order)
    held: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        table, y = drawn(rng, n)
        anova = FunctionalANOVA(max_order=order, shrinkage=shrinkage, sampled=True)  # type: ignore[arg-type]
        anova.fit(table[FEATURES], y)
        values, errors = parts(anova, *(drawn(rng, n) if other else (table, y)))
        for kind in KINDS:
            held[kind].append((values[kind], errors[kind]))
    facts = {}
    for kind, pairs in held.items():
        value, error = (np.array(column) for column in zip(*pairs, strict=True))
        if np.isfinite(error).all():
            covered = np.abs(value - known[kind]) <= REACH * error
            ratio = np.median(error.mean(axis=0) / value.std(axis=0, ddof=1))
            facts[kind] = {"coverage": round(float(covered.mean()), 3), "stderr_over_spread": round(float(ratio), 3)}
    return facts


def main(arguments: list[str] | None = None) -> int:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    for n, order, shrinkage, other in product((500, 2000), (1, 2), (None, "auto"), (False, True)):
        facts = coverage(n, 20 if quick else 400, order, shrinkage, other)
        case = {"rows": n, "max_order": order, "shrinkage": shrinkage, "other_rows": other}
        print(json.dumps({**case, **facts}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
