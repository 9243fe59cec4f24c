"""Explanations of all rows of real tables, one number a feature or one a pair: beside shap, shapiq and woodelf.

One output of the model, the probability of one class, since shapiq explains one at a time. The models are trained on
ordinal codes, which is what the peers can read; ours receives the text, and encodes it in the model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import tables
from benchmarks.harness import Facts
from benchmarks.peers.answers import Rows, compared, fit_of, orthogonality, store
from benchmarks.peers.measuring import Counted, Job, Settings, growing
from exanova import FunctionalANOVA
from exanova.typing import FloatArray, Subset

CLASSES = {"car": "unacc", "nursery": "not_recom", "mushroom": "p"}
ORDERS = {"car": None, "nursery": None, "mushroom": 2}
MODELS = ("forest", "network")
BACKGROUND = 100
"""Rows the marginal peers average over: the number from which shap advises to sample, and the default of shapiq."""

BUDGET = 2048
"""Coalitions shapiq may evaluate for a row; all of them where there are fewer."""

SAMPLED = 2
"""Rows whose model calls are looked at one by one."""

Predict = Callable[[Any], FloatArray]


@dataclass(frozen=True)
class Case:
    """A table of text, the same as codes, and a model of codes."""

    X: pd.DataFrame
    codes: FloatArray
    model: Any
    encoder: Any

    def predict(self, codes: Any) -> FloatArray:
        """Probability of the class that is explained."""
        return np.asarray(self.model.predict_proba(np.asarray(codes, dtype=np.float64))[:, 1])

    def predict_text(self, rows: pd.DataFrame) -> FloatArray:
        """The same from text."""
        return self.predict(self.encoder.transform(rows))

    @cached_property
    def rows(self) -> Rows:
        """All rows, equally likely."""
        return Rows.of(self.codes)

    @cached_property
    def order(self) -> Any:
        """The rows in random order: the first few are a fair sample."""
        return np.random.default_rng(1).permutation(len(self.codes))

    @cached_property
    def background(self) -> FloatArray:
        """The rows that marginal peers average over."""
        chosen = np.random.default_rng(0).choice(len(self.codes), min(BACKGROUND, len(self.codes)), replace=False)
        return self.codes[chosen]


def jobs(settings: Settings) -> dict[str, Job]:
    """Every measurement, ours first."""
    found: dict[str, Job] = {}
    chosen = ("car",) if settings.quick else CLASSES
    for kind, peers in (("local", LOCAL), ("pairs", PAIRS)):
        for name in chosen:
            for model in MODELS[:1] if settings.quick else MODELS:
                found[f"{kind} {model} / {name} / exanova"] = partial(ours, settings, kind, name, model)
                for who, maker in peers.items():
                    found[f"{kind} {model} / {name} / {who}"] = partial(peer, settings, kind, name, model, maker)
    return found


def load(settings: Settings, name: str, kind: str) -> Case:
    """The table and its model, which the first job trains and keeps."""
    import joblib
    from sklearn.preprocessing import OrdinalEncoder

    X, labels = tables.read(settings.data, name)
    encoder = OrdinalEncoder().set_output(transform="default")
    codes = encoder.fit_transform(X)
    path = settings.work / f"model-{name}-{kind}.joblib"
    if not path.exists():
        joblib.dump(trained(settings, kind, codes, (labels == CLASSES[name]).to_numpy(dtype=int)), path)
    return Case(X, codes, joblib.load(path), encoder)


def trained(settings: Settings, kind: str, codes: FloatArray, y: Any) -> Any:
    """A forest of 100 trees, or a network of 64 and 32 units; on one thread, as many small calls want it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    if kind == "forest":
        return RandomForestClassifier(10 if settings.quick else 100, random_state=0, n_jobs=1).fit(codes, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier((64, 32), max_iter=10 if settings.quick else 100, random_state=0).fit(codes, y)


def subsets(kind: str, d: int) -> list[Subset]:
    """What is asked for."""
    return list(combinations(range(d), 1 if kind == "local" else 2))


def as_answer(kind: str, values: Any, d: int) -> dict[Subset, FloatArray]:
    """(n, k) values by subset."""
    return {subset: np.asarray(values[:, k]) for k, subset in enumerate(subsets(kind, d))}


def kept(settings: Settings, kind: str, name: str, model: str) -> Path:
    """Where our answer lies, in the random order of the rows."""
    return settings.work / f"{kind}-{name}-{model}.npz"


def ours(settings: Settings, kind: str, name: str, model: str) -> Facts:
    """The whole: the decomposition of all rows, then the rows that are asked for."""
    case = load(settings, name, model)
    counted = Counted(case.predict_text)

    def explain(rows: Any) -> tuple[FunctionalANOVA, FloatArray]:
        counted.rows = 0
        anova = FunctionalANOVA(shrinkage=None, max_order=ORDERS[name], n_jobs=settings.threads).fit(case.X, counted)
        return anova, read(anova, kind, case.X.iloc[rows])

    facts, (anova, values) = growing(explain, case.order, math.inf)
    answer = as_answer(kind, values, case.codes.shape[1])
    store(kept(settings, kind, name, model), answer)
    certificate = anova.certificate_
    facts |= {"model_rows": counted.rows, "never": 0.0, "route": certificate.route, "r2": float(certificate.r2[0])}
    return facts | described(kind, answer, case, base=float(anova.intercept_[0]))


def read(anova: FunctionalANOVA, kind: str, X: pd.DataFrame) -> FloatArray:
    """(n, k) Shapley values, or pairs of the k-SII of order two; a pair with a constant column is 0."""
    if kind == "local":
        return anova.explain(X).values
    found = anova.interactions(X, index="k-SII", order=2)
    place = {name: i for i, name in enumerate(anova.feature_names_in_)}
    number = {subset: k for k, subset in enumerate(subsets(kind, len(place)))}
    out = np.zeros((len(X), len(number)))
    for k, names in enumerate(found.subsets):
        if len(names) == 2:
            out[:, number[place[names[0]], place[names[1]]]] = found.values[:, k]
    return out


def described(kind: str, answer: dict[Subset, FloatArray], case: Case, base: float) -> Facts:
    """Conditional means where all rows were explained; whether Shapley values add up to the model."""
    count = len(next(iter(answer.values())))
    chosen = case.order[:count]
    facts: Facts = {}
    if count == len(case.order):
        facts["orthogonality"] = orthogonality(answer, Rows.of(case.codes[chosen]))
    if kind == "local":
        whole = answer | {(): np.full(count, base)}
        facts["reconstruction"] = fit_of(whole, case.predict(case.codes[chosen]), np.full(count, 1 / count))[
            "reconstruction"
        ]
    return facts


@dataclass(frozen=True)
class Explainer:
    """A peer ready to explain: (k, d) codes to (k, subsets) values, and its base value."""

    explain: Callable[[Any], FloatArray]
    base: Callable[[], float]


Maker = Callable[[Case, Predict, str], Explainer]
"""Builds a peer for a case from the model as a function, for one number a feature or one a pair."""


def kernel_shap(case: Case, predict: Predict, kind: str) -> Explainer:
    import shap

    explainer = shap.KernelExplainer(predict, case.background)
    return Explainer(lambda codes: explainer.shap_values(codes, silent=True), lambda: float(explainer.expected_value))


def tree_shap(case: Case, predict: Predict, kind: str) -> Explainer:
    """All classes come out at once; an interaction is split between [i, j] and [j, i]."""
    import shap

    explainer = shap.TreeExplainer(case.model)
    pairs = tuple(np.array(subsets("pairs", case.codes.shape[1])).T)

    def explain(codes: Any) -> FloatArray:
        if kind == "local":
            return np.asarray(explainer.shap_values(codes)[:, :, 1])
        return np.asarray(2.0 * explainer.shap_interaction_values(codes)[:, pairs[0], pairs[1], 1])

    return Explainer(explain, lambda: float(explainer.expected_value[1]))


def shapiq_any(case: Case, predict: Predict, kind: str) -> Explainer:
    import shapiq

    d = case.codes.shape[1]
    order, index = (1, "SV") if kind == "local" else (2, "k-SII")
    explainer = shapiq.TabularExplainer(
        predict, case.background, index=index, max_order=order, sample_size=BACKGROUND, random_state=0
    )
    budget = min(2**d, BUDGET)
    return one_by_one(lambda row: explainer.explain(row, budget=budget), kind, d, lambda: explainer.baseline_value)


def shapiq_trees(case: Case, predict: Predict, kind: str) -> Explainer:
    import shapiq

    order, index = (1, "SV") if kind == "local" else (2, "k-SII")
    explainer = shapiq.TreeExplainer(case.model, index=index, max_order=order, class_index=1)
    return one_by_one(explainer.explain, kind, case.codes.shape[1], lambda: explainer.baseline_value)


def woodelf_trees(case: Case, predict: Predict, kind: str) -> Explainer:
    """The marginal game over all rows of the table; of two classes it explains the first, ours the second."""
    import woodelf

    columns = [f"x{i}" for i in range(case.codes.shape[1])]
    rows = pd.DataFrame(case.codes, columns=columns)
    explainer = woodelf.WoodelfExplainer(case.model, rows)
    pairs = tuple(np.array(subsets("pairs", case.codes.shape[1])).T)

    def explain(codes: Any) -> FloatArray:
        asked = pd.DataFrame(codes, columns=columns)
        if kind == "local":
            return -np.asarray(explainer.shap_values(asked, verbose=False))
        found = explainer.shap_interaction_values(asked, include_interaction_with_itself=False, verbose=False)
        return np.asarray(-2.0 * found[:, pairs[0], pairs[1]])

    return Explainer(explain, lambda: float(case.predict(case.codes).mean()))


def one_by_one(explain: Callable[[Any], Any], kind: str, d: int, base: Callable[[], Any]) -> Explainer:
    """shapiq explains a row at a time."""
    asked = subsets(kind, d)

    def all_of(codes: Any) -> FloatArray:
        found = [explain(row) for row in codes]
        return np.array([[values[subset] for subset in asked] for values in found])

    return Explainer(all_of, lambda: float(base()))


LOCAL: dict[str, Maker] = {
    "shap KernelExplainer": kernel_shap,
    "shap TreeExplainer": tree_shap,
    "shapiq TabularExplainer": shapiq_any,
    "shapiq TreeExplainer": shapiq_trees,
    "woodelf": woodelf_trees,
}
PAIRS: dict[str, Maker] = {
    "shap TreeExplainer": tree_shap,
    "shapiq TabularExplainer": shapiq_any,
    "shapiq TreeExplainer": shapiq_trees,
    "woodelf": woodelf_trees,
}
READS_TREES = (tree_shap, shapiq_trees, woodelf_trees)
"""Peers that send no row to the model."""

AT_ONCE = (woodelf_trees,)
"""Peers whose time hardly depends on how many rows are explained."""


def peer(settings: Settings, kind: str, name: str, model: str, maker: Maker) -> Facts:
    """Building the explainer is part of the time, as fitting is of ours."""
    case = load(settings, name, model)
    counted = Counted(case.predict)
    built: list[Explainer] = []

    def explain(rows: Any) -> FloatArray:
        counted.rows = 0
        built[:] = [maker(case, counted, kind)]
        return built[0].explain(case.codes[rows])

    facts, values = growing(explain, case.order, settings.limit_of_rows, at_once=maker in AT_ONCE)
    answer = as_answer(kind, values, case.codes.shape[1])
    if maker not in READS_TREES:
        facts |= {"model_rows": counted.rows * facts["rows"] // facts["explained"], "never": never(case, maker, kind)}
    facts |= described(kind, answer, case, built[0].base())
    return facts | compared(kept(settings, kind, name, model), answer)


def never(case: Case, maker: Maker, kind: str) -> float:
    """Share of the rows sent to the model that never occur in the table, from a few explanations."""
    counted = Counted(case.predict, keep=True)
    maker(case, counted, kind).explain(case.codes[case.order[:SAMPLED]])
    return case.rows.never(np.concatenate(counted.sent).astype(np.int64).T)
