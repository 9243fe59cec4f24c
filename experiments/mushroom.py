"""Mushroom: main effects of boosted trees, and importances beside observational TreeSHAP."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.harness import clocked

from exanova import FunctionalANOVA
from exanova.typing import FloatArray
from experiments.charts import bars
from experiments.harness import SEED, Check, Report, Row, Settings, Table, below, equal, split

LEADING = {"odor", "gill-color", "spore-print-color"}
"""The three features the paper names as the most important, by both methods."""

SHOWN = 12


def boosted(X: Any, y: Any, trees: int) -> dict[str, Any]:
    """Probability and predicted class of "poisonous" on all rows, and TreeSHAP's values; trained on four fifths."""
    import shap
    from sklearn.preprocessing import OrdinalEncoder
    from xgboost import XGBClassifier

    codes = OrdinalEncoder(dtype=np.int64).fit_transform(X)
    poisonous = (y == "p").astype(int)
    train, test = split(len(codes))
    model = XGBClassifier(n_estimators=trees, max_depth=5, random_state=SEED, n_jobs=2)
    model.fit(codes[train], poisonous[train])
    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    return {
        "probability": model.predict_proba(codes)[:, 1].astype(np.float64),
        "class": model.predict(codes).astype(np.float64),
        "accuracy": model.score(codes[test], poisonous[test]),
        "tree_shap": np.abs(explainer.shap_values(codes)).mean(axis=0),
    }


def percent(amounts: dict[str, float]) -> dict[str, float]:
    """Shares of the total in per cent, the largest first."""
    total = sum(amounts.values())
    return {name: 100 * amounts[name] / total for name in sorted(amounts, key=lambda name: -amounts[name])}


def l1(anova: FunctionalANOVA) -> dict[str, float]:
    """Share of each feature in the sum of E|f_i|."""
    return percent({names[0]: float(effect.norm1[0]) for names, effect in anova.effects_.items() if len(names) == 1})


def fitted(X: Any, values: FloatArray, **choices: Any) -> FunctionalANOVA:
    return FunctionalANOVA(max_order=1, **{"shrinkage": None, **choices}).fit(X, values)


def run(settings: Settings) -> Report:
    table = settings.load("mushroom")
    found = settings.trained("mushroom", lambda: boosted(table.X, table.y, 10 if settings.quick else 100))
    probability, X = found["probability"], table.X
    fitted(X, probability)  # compiles
    seconds, share = clocked(lambda: fitted(X, probability))
    first = fitted(X, probability, basis="paper", ties="first")
    of_class = fitted(X, found["class"])
    shares = {
        "ties=first, as in the paper": l1(first),
        "TreeSHAP": percent(dict(zip(table.feature_names, found["tree_shap"].tolist(), strict=True))),
        "ties=share, the default": l1(share),
    }
    c = share.certificate_
    return Report(
        title="Mushroom and TreeSHAP",
        about=(
            "8,124 mushrooms with 22 properties, and the probability that one is poisonous. Main effects alone rebuild "
            "the model. Of their 96 functions 86 are independent, so that they are not unique: several "
            "properties carry the same information, and how much is credited to which of them depends on the rule for "
            "redundancy."
        ),
        model="XGBoost, 100 trees of depth 5, on levels as numbers.",
        rows=[
            Row("accuracy of the model", "1.00", f"{float(found['accuracy']):.4f}", "on a fifth of the rows, held out"),
            Row("rank of the main effects", "86", f"{c.rank}", f"of {c.n_functions} functions", chief=True),
            Row("R2", "1", f"{c.r2[0]:.6f}", chief=True),
            Row("MSE, probability", "", f"{c.mse[0]:.1e}"),
            Row("MSE, predicted class", "1e-15", f"{of_class.certificate_.mse[0]:.1e}", WHY_CLASS, chief=True),
            Row("seconds", "0.3 s", f"{seconds:.2f} s", "another machine"),
            Row("most important, by the paper's rule", listed(LEADING), listed(top(shares, 0)), "", True),
            Row("most important, TreeSHAP", listed(LEADING), listed(top(shares, 1)), WHY_TREES),
            Row("most important, default rule", "", listed(top(shares, 2)), "no order of the columns matters"),
        ],
        tables=[table_of(shares)],
        figures=[picture(settings, shares)],
        checks=[
            equal("rank of the main effects", c.rank, 86),
            below("1 - R2", 1 - float(c.r2[0]), 1e-1 if settings.quick else 1e-4),
            below("MSE of the predicted class", float(of_class.certificate_.mse[0]), 1e-15),
            below("largest conditional mean of an effect", c.orthogonality, 1e-12),
            below("the two rules give the same sum", float(np.abs(first.predict(X) - share.predict(X)).max()), 1e-10),
            Check("odor first by the paper's rule", top(shares, 0)[0], settings.quick or leads(shares)),
        ],
        remarks=[REMARK],
    )


WHY_CLASS = "the class is additive exactly; the probability has an error that no sum of main effects removes"
WHY_TREES = "it follows the paths of its own trees"
REMARK = (
    "TreeSHAP explains the log-odds and follows the paths of the trees; the decomposition knows the probability and "
    "the rows. The paper keeps the first of several functions that coincide, in the order of the columns, so that "
    "odor (column 5) and gill-color (column 9) are served before what stands further right. The default divides what "
    "several columns can express so that the sum of all squared norms is least, and the credit moves to other columns. "
    "On such a table the norm of a main effect says how credit was divided, not what the model needs; "
    "`certificate_.redundant` lists which subsets share."
)


def top(shares: dict[str, dict[str, float]], which: int, count: int = 3) -> list[str]:
    return list(list(shares.values())[which])[:count]


def leads(shares: dict[str, dict[str, float]]) -> bool:
    return top(shares, 0, 1) == ["odor"]


def listed(names: Any) -> str:
    return ", ".join(sorted(names) if isinstance(names, set) else names)


def table_of(shares: dict[str, dict[str, float]]) -> Table:
    """The features in the order of the paper's rule."""
    names = list(next(iter(shares.values())))[:SHOWN]
    rows = [[name, *(f"{values[name]:.1f}" for values in shares.values())] for name in names]
    return Table("Share of each feature in the sum of the L1 norms, in per cent:", ["feature", *shares], rows)


def picture(settings: Settings, shares: dict[str, dict[str, float]]) -> Any:
    names = list(next(iter(shares.values())))[:SHOWN]
    series = {kind: {name: values[name] for name in names} for kind, values in shares.items()}
    chart = bars(series, axis="share of the importance, per cent", title="Global importance, Mushroom", format=".1f")
    return settings.figure(
        "mushroom-importance.svg", chart, f"The {SHOWN} features of largest L1 norm, beside TreeSHAP."
    )
