"""Five kinds of model of a mixed table, each a function from rows as they come to one number a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.mixed_tables import Mixed
from exanova.typing import FloatArray, IntArray

TREES = 100


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted pipeline and what is explained of it: a prediction, a probability, or the score of a booster."""

    pipeline: Any
    method: str

    def __call__(self, rows: Any) -> FloatArray:
        """(n,) what the model says of rows."""
        found = getattr(self.pipeline, self.method)(rows)
        return np.asarray(found[:, 1] if self.method == "predict_proba" else found, dtype=np.float64)


def train(kind: str, table: Mixed, rows: IntArray) -> Model:
    """A model of one kind, trained on some rows of a table."""
    from sklearn.pipeline import make_pipeline

    estimator, method = KINDS[kind](table.classes)
    first = one_hot(table.X) if kind == "linear" else ordinal(table.X)
    pipeline = make_pipeline(first, estimator).fit(table.X.iloc[rows], table.y[rows])
    return Model(pipeline, method)


def categories(X: pd.DataFrame) -> list[str]:
    return [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]


def ordinal(X: pd.DataFrame) -> Any:
    """Categories as numbers, for trees; missing numbers stay missing."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    chosen = make_column_transformer((codes, categories(X)), remainder="passthrough", verbose_feature_names_out=False)
    return chosen.set_output(transform="pandas")


def one_hot(X: pd.DataFrame) -> Any:
    """Categories as indicators, numbers standardised, for linear models."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), categories(X)), remainder=numbers)


def _linear(classes: bool) -> tuple[Any, str]:
    from sklearn.linear_model import LogisticRegression, Ridge

    return (LogisticRegression(max_iter=2000), "predict_proba") if classes else (Ridge(), "predict")


def _forest(classes: bool) -> tuple[Any, str]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    made = (RandomForestClassifier if classes else RandomForestRegressor)(
        TREES, min_samples_leaf=5, random_state=0, n_jobs=1
    )
    return made, "predict_proba" if classes else "predict"


def _hist(classes: bool) -> tuple[Any, str]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if classes:
        return HistGradientBoostingClassifier(max_iter=TREES, random_state=0), "decision_function"
    return HistGradientBoostingRegressor(max_iter=TREES, random_state=0), "predict"


class _Score:
    """The raw score of a classifier that has no ``decision_function``: the logarithm of its odds."""

    def decision_function(self, rows: Any) -> FloatArray:
        """(n,) logarithms of odds."""
        p = np.clip(self.predict_proba(rows)[:, 1].astype(np.float64), 1e-9, 1 - 1e-9)  # type: ignore[attr-defined]
        return np.asarray(np.log(p / (1 - p)))


def _lightgbm(classes: bool) -> tuple[Any, str]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    choices = {"n_estimators": TREES, "n_jobs": 1, "random_state": 0, "verbose": -1}
    if not classes:
        return LGBMRegressor(**choices), "predict"
    return type("ScoredLGBM", (_Score, LGBMClassifier), {})(**choices), "decision_function"


def _xgboost(classes: bool) -> tuple[Any, str]:
    from xgboost import XGBClassifier, XGBRegressor

    choices = {"n_estimators": TREES, "max_depth": 4, "learning_rate": 0.1, "n_jobs": 1, "random_state": 0}
    if not classes:
        return XGBRegressor(**choices), "predict"
    return type("ScoredXGB", (_Score, XGBClassifier), {})(**choices), "decision_function"


KINDS: dict[str, Callable[[bool], tuple[Any, str]]] = {
    "hist": _hist,
    "forest": _forest,
    "lightgbm": _lightgbm,
    "linear": _linear,
    "xgboost": _xgboost,
}
"""An estimator and the method that is explained, by kind, for classifications and regressions."""

TITLES = {
    "hist": "HistGradientBoosting",
    "forest": "random forest",
    "lightgbm": "LightGBM",
    "linear": "linear pipeline",
    "xgboost": "XGBoost",
}
