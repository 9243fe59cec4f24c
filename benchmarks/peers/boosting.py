"""Main effects and pairs of boosted trees, ten thousand rows of dependent categories: beside treehfd."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Facts
from benchmarks.peers.answers import Rows, compared, fit_of, orthogonality, store
from benchmarks.peers.measuring import Counted, Job, Settings, measured
from exanova import FunctionalANOVA
from exanova.typing import FloatArray, Subset

DEPTHS = (2, 6)
TREES = 100
CUTS = (-0.43, 0.43)
"""Where a standard normal variable is cut in three levels of about equal size."""


def sizes(settings: Settings, depth: int) -> list[int]:
    """Numbers of features."""
    if settings.quick:
        return [4]
    return [4, 8, 12, 16, 20] if depth == 2 else [4, 6, 8, 12, 20]


def jobs(settings: Settings) -> dict[str, Job]:
    """Every measurement, ours first."""
    found: dict[str, Job] = {}
    for depth in DEPTHS[:1] if settings.quick else DEPTHS:
        for d in sizes(settings, depth):
            found[f"boosting depth {depth} / {d} / exanova"] = partial(ours, settings, depth, d)
            found[f"boosting depth {depth} / {d} / treehfd"] = partial(tree_hfd, settings, depth, d)
    return found


def table(settings: Settings, d: int) -> tuple[Any, FloatArray]:
    """(n, d) levels 0, 1, 2, neighbours correlated by 0.6, and a product of two linear forms of them."""
    n = 1000 if settings.quick else 10_000
    rng = np.random.default_rng(d)
    hidden = rng.normal(size=(n, d))
    for i in range(1, d):
        hidden[:, i] = 0.6 * hidden[:, i - 1] + 0.8 * hidden[:, i]
    X = np.digitize(hidden, CUTS)
    half = d // 2
    first, second = rng.normal(size=(5, half)), rng.normal(size=(5, d - half))
    return X, ((X[:, :half] @ first.T) * (X[:, half:] @ second.T)).sum(axis=1)


def trained(settings: Settings, depth: int, X: Any, y: FloatArray) -> Any:
    import xgboost

    trees = 10 if settings.quick else TREES
    model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, n_jobs=settings.threads, random_state=0)
    return model.fit(X.astype(np.float64), y)


def kept(settings: Settings, depth: int, d: int) -> Path:
    """Where our answer lies."""
    return settings.work / f"boosting-{depth}-{d}.npz"


def described(answer: dict[Subset, FloatArray], X: Any, model: Any) -> Facts:
    """What is measured on every answer."""
    rows, values = Rows.of(X), np.asarray(model.predict(X.astype(np.float64)), dtype=np.float64)
    return {"orthogonality": orthogonality(answer, rows), **fit_of(answer, values, rows.p)}


def ours(settings: Settings, depth: int, d: int) -> Facts:
    """From rows and the model to the contribution of every subset to every row."""
    X, y = table(settings, d)
    model = trained(settings, depth, X, y)
    counted = Counted(lambda rows: model.predict(rows.astype(np.float64)))

    def work() -> tuple[FunctionalANOVA, Any]:
        counted.rows = 0
        anova = FunctionalANOVA(shrinkage=None, max_order=2, n_jobs=settings.threads).fit(X, counted)
        return anova, anova.components(X)

    facts, (anova, parts) = measured(work, settings.limit)
    answer = {s: parts.values[:, k] for k, s in enumerate(anova.decomposition_.family.subsets)}
    store(kept(settings, depth, d), answer)
    facts |= {"route": anova.certificate_.route, "model_rows": counted.rows, "never": 0.0}
    return facts | described(answer, X, model)


def tree_hfd(settings: Settings, depth: int, d: int) -> Facts:
    """The same rows and model; every round of the trees is asked for by itself, which counts as a part of the model."""
    from treehfd import XGBTreeHFD

    X, y = table(settings, d)
    model = trained(settings, depth, X, y)
    rows = X.astype(np.float64)

    def work() -> tuple[Any, Any]:
        found = XGBTreeHFD(model)
        found.fit(rows, interaction_order=2, verbose=False)
        return found, found.predict(rows, verbose=False)

    facts, (found, (main, pairs)) = measured(work, settings.limit)
    answer: dict[Subset, FloatArray] = {(): np.full(len(X), float(found.eta0))}
    answer |= {(i,): main[:, i] for i in range(d)}
    answer |= {tuple(sorted(map(int, pair))): pairs[:, k] for k, pair in enumerate(found.interaction_list)}
    facts |= {"model_rows": len(X), "never": 0.0}
    return facts | described(answer, X, model) | compared(kept(settings, depth, d), answer)
