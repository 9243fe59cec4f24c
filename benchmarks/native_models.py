"""Five kinds of model as people train them on a mixed table: pipelines, and boosters that read categories themselves.

Each is an estimator that takes the rows as they come, so that ``fit(X, model)`` is all that has to be said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from benchmarks.mixed_models import TREES, categories, one_hot, ordinal
from benchmarks.mixed_tables import Mixed

MISSING = "missing"
"""What CatBoost, which takes no missing category, reads in place of one."""

DEPTH = 4
"""Depth of the trees of XGBoost and CatBoost."""


def rows_for(kind: str, X: pd.DataFrame) -> pd.DataFrame:
    """The rows as this kind of model takes them: boosters with native categories read them off the dtype."""
    if kind not in NATIVE:
        return X
    return X.astype(dict.fromkeys(categories(X), "category"))


def trained(kind: str, table: Mixed) -> Any:
    """A model of one kind, trained on all rows of a table."""
    return KINDS[kind](table.X, table.classes).fit(rows_for(kind, table.X), table.y)


def _linear(X: pd.DataFrame, classes: bool) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    return make_pipeline(one_hot(X), LogisticRegression(max_iter=2000) if classes else Ridge())


def _forest(X: pd.DataFrame, classes: bool) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    kind = RandomForestClassifier if classes else RandomForestRegressor
    return make_pipeline(ordinal(X), kind(TREES, min_samples_leaf=5, random_state=0, n_jobs=1))


def _lightgbm(X: pd.DataFrame, classes: bool) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if classes else LGBMRegressor
    return kind(n_estimators=TREES, n_jobs=1, random_state=0, verbose=-1)


def _xgboost(X: pd.DataFrame, classes: bool) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if classes else XGBRegressor
    choices = {"max_depth": DEPTH, "learning_rate": 0.1, "n_jobs": 1, "random_state": 0, "enable_categorical": True}
    return kind(n_estimators=TREES, **choices)


def _catboost(X: pd.DataFrame, classes: bool) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    own = categories(X)
    filled = SimpleImputer(strategy="constant", fill_value=MISSING)
    first = make_column_transformer((filled, own), remainder="passthrough", verbose_feature_names_out=False)
    kind = CatBoostClassifier if classes else CatBoostRegressor
    choices = {"depth": DEPTH, "random_seed": 0, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    booster = kind(n_estimators=TREES, cat_features=own or None, **choices)
    return make_pipeline(first.set_output(transform="pandas"), booster)


KINDS: dict[str, Callable[[pd.DataFrame, bool], Any]] = {
    "linear": _linear,
    "forest": _forest,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "catboost": _catboost,
}
"""An estimator by kind, for the columns of a table and for classes or numbers."""

NATIVE = ("lightgbm", "xgboost")
"""Kinds that read categories off the dtype of a column."""

TITLES = {
    "linear": "linear pipeline",
    "forest": "random forest",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
}
