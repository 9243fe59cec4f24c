"""Products of pairs learned by shallow boosted trees: the decomposition beside that of TreeHFD."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from benchmarks.harness import clocked

from exanova import FunctionalANOVA
from exanova.typing import FloatArray, IntArray
from experiments.charts import lines
from experiments.harness import SEED, Check, Report, Row, Settings, Table, below

LEVELS = 3
PAPER = {
    2: (0.9975, 1.54e-19, 1.77e-4, 1.87e-3, 1.33e-5),
    4: (0.9966, 5.65e-18, 4.73e-3, 2.44e-2, 5.57e-4),
    6: (0.9966, 1.42e-16, 8.31e-3, 2.02e-2, 3.81e-4),
    8: (0.9899, 3.57e-16, 8.59e-3, 7.88e-3, 4.89e-5),
    10: (0.9790, 2.72e-16, 6.65e-4, 1.61e-3, 2.26e-6),
}
"""By dimension: R2 of the trees, orthogonality of the paper and of TreeHFD, differences of main effects and Shapley."""


@dataclass(frozen=True)
class Parts:
    """A decomposition at rows: (n, d) main effects, (n, pairs) interactions of the pairs listed, and the mean."""

    mains: FloatArray
    pairs: FloatArray
    names: list[tuple[int, int]]
    mean: float

    @property
    def orthogonality(self) -> float:
        """Largest absolute inner product of an effect with that of a smaller subset, the mean included."""
        of_pairs = [
            abs(float(np.mean(self.pairs[:, k] * part)))
            for k, (i, j) in enumerate(self.names)
            for part in (self.mean, self.mains[:, i], self.mains[:, j])
        ]
        return max([*of_pairs, *np.abs(self.mean * self.mains.mean(axis=0)).tolist()])

    @property
    def shapley(self) -> FloatArray:
        """(n, d) Shapley values."""
        values = self.mains.copy()
        for k, (i, j) in enumerate(self.names):
            values[:, [i, j]] += self.pairs[:, [k]] / 2
        return values

    @property
    def sum(self) -> FloatArray:
        """(n,) the decomposed function."""
        return self.mean + self.mains.sum(axis=1) + self.pairs.sum(axis=1)


def sample(d: int, rows: int) -> tuple[IntArray, FloatArray]:
    """Rows from a random distribution on the grid, probabilities proportional to squared normals; and the target."""
    rng = np.random.default_rng(SEED + d)
    weight = rng.normal(size=LEVELS**d) ** 2
    drawn = rng.choice(LEVELS**d, size=rows, p=weight / weight.sum())
    X = np.stack(np.unravel_index(drawn, (LEVELS,) * d), axis=1).astype(np.int64)
    first, second = rng.normal(size=(2, d // 2))
    return X, ((first * X[:, : d // 2]) * (second * X[:, d // 2 :])).sum(axis=1)


def exact(X: IntArray, values: FloatArray) -> Parts:
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(X, values)
    parts = anova.components(X)
    position = {names: k for k, names in enumerate(parts.subsets)}
    d = X.shape[1]
    pairs = list(combinations(range(d), 2))
    mains = parts.values[:, [position[f"x{i}",] for i in range(d)]]
    return Parts(
        mains, parts.values[:, [position[f"x{i}", f"x{j}"] for i, j in pairs]], pairs, float(parts.values[0, 0])
    )


def by_trees(model: Any, X: IntArray, values: FloatArray) -> Parts:
    """TreeHFD's effects; its intercept is what its effects leave of the mean."""
    from treehfd import XGBTreeHFD

    found = XGBTreeHFD(model)
    found.fit(X, interaction_order=2, verbose=False)
    mains, pairs = found.predict(X, verbose=False)
    names = [(int(i), int(j)) for i, j in found.interaction_list]
    mean = float(values.mean() - mains.sum(axis=1).mean() - pairs.sum(axis=1).mean())
    return Parts(mains, pairs, names, mean)


def compared(d: int, rows: int, trees: int) -> dict[str, float]:
    """One line of the table."""
    from xgboost import XGBRegressor

    X, y = sample(d, rows)
    model = XGBRegressor(n_estimators=trees, max_depth=2, n_jobs=2, random_state=SEED).fit(X, y)
    values = model.predict(X).astype(np.float64)
    exact(X, values)  # compiles
    seconds, ours = clocked(lambda: exact(X, values))
    other_seconds, theirs = clocked(lambda: by_trees(model, X, values))
    l1 = [np.abs(parts.mains).mean(axis=0) for parts in (ours, theirs)]
    return {
        "r2": 1 - float(np.mean((values - y) ** 2) / np.var(y)),
        "ours": ours.orthogonality,
        "theirs": theirs.orthogonality,
        "mains": float(np.linalg.norm(l1[0] - l1[1])),
        "shapley": float(((ours.shapley - theirs.shapley) ** 2).sum(axis=1).mean()),
        "sum": float(np.abs(ours.sum - values).max()),
        "their sum": float(np.abs(theirs.sum - values).max()),
        "seconds": seconds,
        "their seconds": other_seconds,
        "cells": len(np.unique(X, axis=0)) / LEVELS**d,
    }


def run(settings: Settings) -> Report:
    rows, trees, dimensions = (500, 20, (2, 4)) if settings.quick else (10_000, 100, tuple(PAPER))
    found = {d: compared(d, rows, trees) for d in dimensions}
    worst = {key: max(facts[key] for facts in found.values()) for key in ("ours", "theirs", "sum", "mains", "shapley")}
    return Report(
        title="TreeHFD",
        about=(
            "d variables of three levels under a random distribution on the grid, n = 10,000 rows drawn from it, and a "
            "sum of products of pairs of variables, learned by trees of depth 2, so that main effects and pairs are "
            "all there is. TreeHFD decomposes the trees one by one; here the model is a column of numbers. What is "
            "decomposed is the model under the empirical distribution of the rows, as in TreeHFD."
        ),
        model="XGBoost, 100 trees of depth 2.",
        rows=[
            Row("orthogonality, the exact form", "2e-19 to 4e-16", spread(found, "ours"), chief=True),
            Row("orthogonality, TreeHFD", "2e-4 to 9e-3", spread(found, "theirs"), WHY, chief=True),
            Row("difference of main effects", "2e-3 to 2e-2", spread(found, "mains")),
            Row("difference of Shapley values", "2e-6 to 6e-4", spread(found, "shapley")),
            Row("seconds, TreeHFD over ours", "", ratios(found), "the same rows and machine, one run each"),
        ],
        tables=[table_of(found)],
        figures=[picture(settings, found)],
        checks=[
            below("largest inner product of nested effects", worst["ours"], 1e-12),
            below("error of the sum of the effects", worst["sum"], 1e-4),
            Check("TreeHFD is further from orthogonal", f"{worst['theirs']:.1e}", worst["theirs"] > worst["ours"]),
        ],
        remarks=[
            "Orthogonality is the paper's measure: the largest |E[f_A f_B]| over B strictly inside A. Main effects "
            "differ by the Euclidean distance of the vectors of their L1 norms, Shapley values by the mean over "
            "the rows of their squared distance. The model answers in single precision, which bounds how well any "
            "sum can meet it."
        ],
    )


WHY = "other random weights and distributions than the paper's, drawn once"


def spread(found: dict[int, dict[str, float]], key: str) -> str:
    values = [facts[key] for facts in found.values()]
    return f"{min(values):.0e} to {max(values):.0e}"


def ratios(found: dict[int, dict[str, float]]) -> str:
    values = [facts["their seconds"] / facts["seconds"] for facts in found.values()]
    return f"{min(values):.0f} to {max(values):.0f}"


def table_of(found: dict[int, dict[str, float]]) -> Table:
    """Two lines a dimension: the paper's, and ours."""
    lines = []
    for d, facts in found.items():
        r2, *others = PAPER[d]
        lines.append([str(d), "the paper", f"{r2:.4f}", *(f"{value:.1e}" for value in others), ""])
        measured = [f"{facts[key]:.1e}" for key in ("ours", "theirs", "mains", "shapley")]
        lines.append(["", "here", f"{facts['r2']:.4f}", *measured, f"{100 * facts['cells']:.0f} %"])
    header = ["d", "", "R2 of the trees", "exact", "TreeHFD", "main effects", "Shapley values", "cells that occur"]
    return Table("Orthogonality of both, and their difference:", header, lines)


def picture(settings: Settings, found: dict[int, dict[str, float]]) -> Any:
    records = [
        {"series": name, "x": d, "y": facts[key]}
        for name, key in (("exact", "ours"), ("TreeHFD", "theirs"))
        for d, facts in found.items()
    ]
    chart = lines(records, x="number of variables", y="largest inner product", title="Orthogonality of nested effects")
    return settings.figure("tree-hfd.svg", chart, "Largest inner product of an effect with that of a smaller subset.")
