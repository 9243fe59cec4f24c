"""Effects of XGBoost on mixed tables: cut at the thresholds of its trees, beside treehfd and TreeSHAP.

Everybody explains the same model on four fifths of the rows and is then asked for the rest. Categories are given as
numbers, which all three accept. Answers are compared as in ``benchmarks.peers``: values of every subset at rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Facts
from benchmarks.mixed_models import TREES, ordinal
from benchmarks.mixed_tables import TABLES
from benchmarks.peers.answers import Rows, fit_of, orthogonality
from exanova import FunctionalANOVA
from exanova.data import Table
from exanova.typing import FloatArray, Subset

CHOSEN = ("housing", "carseats", "diabetes", "cps", "wage")
DEPTHS = (2, 4)

Answer = dict[Subset, FloatArray]
"""(n,) values of each subset at the rows."""

Explain = Callable[[Any, FloatArray, FloatArray], tuple[Answer, Answer]]
"""From a model, the rows it is explained on and new rows to answers at both."""


def by_thresholds(names: list[str], model: Any, seen: FloatArray, new: FloatArray) -> tuple[Answer, Answer]:
    """Ours, cut where the trees split."""
    anova = FunctionalANOVA(strategy="model", handle_unknown="ignore").fit(_frame(names, seen), model)
    subsets = anova.decomposition_.family.subsets
    found = [anova.components(_frame(names, rows)).values for rows in (seen, new)]
    first, second = ({s: values[:, k] for k, s in enumerate(subsets)} for values in found)
    return first, second


def by_treehfd(names: list[str], model: Any, seen: FloatArray, new: FloatArray) -> tuple[Answer, Answer]:
    """The package treehfd, on the partitions of the trees."""
    from treehfd import XGBTreeHFD

    found = XGBTreeHFD(model)
    found.fit(seen, interaction_order=2, verbose=False)

    def at(rows: FloatArray) -> Answer:
        main, pairs = found.predict(rows, verbose=False)
        out: Answer = {(): np.full(len(rows), float(found.eta0))}
        out |= {(i,): main[:, i] for i in range(rows.shape[1])}
        return out | {tuple(sorted(map(int, pair))): pairs[:, k] for k, pair in enumerate(found.interaction_list)}

    return at(seen), at(new)


def by_treeshap(names: list[str], model: Any, seen: FloatArray, new: FloatArray) -> tuple[Answer, Answer]:
    """Shapley interaction values of TreeSHAP: what a pair has counts in both orders of its features."""
    import shap

    explainer = shap.TreeExplainer(model)

    def at(rows: FloatArray) -> Answer:
        values = np.asarray(explainer.shap_interaction_values(rows), dtype=np.float64)
        base = float(np.ravel(explainer.expected_value)[0])
        out: Answer = {(): np.full(len(rows), base)}
        out |= {(i,): values[:, i, i] for i in range(rows.shape[1])}
        pairs = [(i, j) for i in range(rows.shape[1]) for j in range(i + 1, rows.shape[1])]
        return out | {(i, j): values[:, i, j] + values[:, j, i] for i, j in pairs}

    return at(seen), at(new)


PEERS: dict[str, Callable[[list[str], Any, FloatArray, FloatArray], tuple[Answer, Answer]]] = {
    "exanova": by_thresholds,
    "treehfd": by_treehfd,
    "TreeSHAP": by_treeshap,
}
PACKAGES = {"treehfd": "treehfd", "TreeSHAP": "shap"}


def measured(name: str, depth: int) -> Facts:
    """Everybody on one table and depth."""
    from xgboost import XGBRegressor

    table = TABLES[name]()
    X = ordinal(table.X).fit_transform(table.X)
    numbers = X.to_numpy(dtype=np.float64)
    model = XGBRegressor(n_estimators=TREES, max_depth=depth, learning_rate=0.1, n_jobs=1, random_state=0)
    model.fit(numbers, table.y)
    model.get_booster().feature_names = None
    order = np.random.default_rng(0).permutation(len(X))
    seen, new = np.split(order, [int(0.8 * len(order))])
    names = [f"x{k}" for k in range(X.shape[1])]
    facts: Facts = {"title": table.title, "rows": len(X), "columns": X.shape[1], "depth": depth, "found": {}}
    cut = FunctionalANOVA(strategy="model").fit(_frame(names, numbers[seen]), model)
    facts["lost"] = float(cut.certificate_.loss.levels[0])
    facts["levels"] = max(map(len, cut.categories_))
    codes = cut.decomposition_.encoding.encode(Table.read(_frame(names, numbers[seen]))).T
    for who, explain in PEERS.items():
        if who in PACKAGES and not find_spec(PACKAGES[who]):
            continue
        facts["found"][who] = judged(partial(explain, names), model, numbers[seen], numbers[new], codes)
    return facts


def judged(explain: Explain, model: Any, seen: FloatArray, new: FloatArray, codes: Any) -> Facts:
    """Seconds, conditional means, the sum on new rows, and what another order of the rows changes on new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explain(model, seen[:60], new[:10])  # kernels are compiled once
        start = time.process_time()
        here, there = explain(model, seen, new)
        seconds = time.process_time() - start
        again = explain(model, seen[np.random.default_rng(1).permutation(len(seen))], new)[1]
    values = np.asarray(model.predict(new), dtype=np.float64)
    spread = float(np.abs(values - values.mean()).max())
    none = np.zeros(len(new))
    changed = max(float(np.abs(there.get(s, none) - again.get(s, none)).max()) for s in {*there, *again})
    sums = fit_of(there, values, np.full(len(new), 1.0 / len(new)))
    rows = Rows.of(codes)
    return {
        "seconds": seconds,
        "orthogonality": orthogonality(here, rows),
        "held_out": sums["r2"],
        "changed": changed / spread,
    }


def _frame(names: list[str], rows: FloatArray) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=names)
