"""What is explained of a classifier, of one or several targets, and what outputs are called."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

import exanova
from exanova import FunctionalANOVA
from exanova.cli.models import load_model
from exanova.errors import ModelError

NAMES = ("P(target 0 = yes)", "P(target 1 = x)", "P(target 1 = y)", "P(target 1 = z)")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.integers(0, 4, (200, 3)), columns=list("abc"))


@pytest.fixture(scope="module")
def targets(rows) -> np.ndarray:
    first = np.where(rows["a"] + rows["b"] > 3, "yes", "no")
    return np.column_stack([first, np.array(list("xyz"))[rows["c"] % 3]])


@pytest.mark.parametrize(
    "model", [MultiOutputClassifier(LogisticRegression()), RandomForestClassifier(5, random_state=0)]
)
def test_classifiers_of_several_targets_give_the_probabilities_of_each(model, rows, targets, tmp_path):
    model.fit(rows, targets)
    first, second = model.predict_proba(rows)
    expected = np.column_stack([first[:, 1], second])
    anova = FunctionalANOVA(max_order=None, shrinkage=None).fit(rows, model)
    assert anova.output_names_ == NAMES
    np.testing.assert_allclose(anova.predict(rows), expected, atol=1e-9)
    both = FunctionalANOVA(response_method="predict_proba").fit(rows, model)
    assert both.output_names_ == ("P(target 0 = no)", *NAMES)
    joblib.dump(model, tmp_path / "m.joblib")
    loaded = load_model(str(tmp_path / "m.joblib"), True, 1)
    np.testing.assert_allclose(loaded(pl.from_pandas(rows).to_arrow()), expected)
    assert loaded.classes_ == NAMES


def test_two_labels_that_a_row_may_have_together_are_two_outputs(rows):
    """Of probabilities that do not add up to one, none may be left out."""
    labels = np.column_stack([rows["a"] > 1, rows["b"] > 0]).astype(int)
    model = OneVsRestClassifier(LogisticRegression()).fit(rows, labels)
    anova = FunctionalANOVA(max_order=None, shrinkage=None).fit(rows, model)
    assert anova.output_names_ == ("P(0)", "P(1)")
    np.testing.assert_allclose(anova.predict(rows), model.predict_proba(rows), atol=1e-9)


def test_probabilities_with_two_decimals_are_of_two_classes(rows):
    class Rounded:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, table):
            p = table["a"].to_numpy() / 7
            return np.round(np.column_stack([1 - p, p]), 2)

    assert FunctionalANOVA().fit(rows, Rounded()).output_names_ == ("P(yes)",)


def test_a_method_of_a_classifier_has_the_names_of_its_classes(rows, targets):
    model = LogisticRegression().fit(rows, targets[:, 0])
    assert FunctionalANOVA().fit(rows, model.predict_proba).output_names_ == ("no", "yes")


@pytest.mark.parametrize("library", [pd, pl])
def test_a_series_names_the_output_unless_a_feature_has_that_name(library, rows):
    table = rows if library is pd else pl.from_pandas(rows)
    values = rows["a"].to_numpy() * 1.5

    def named(name):
        return library.Series(name=name, data=values) if library is pd else pl.Series(name, values)

    assert FunctionalANOVA().fit(table, named("risk")).output_names_ == ("risk",)
    assert FunctionalANOVA().fit(table, named("a")).output_names_ == ("output 0",)
    assert FunctionalANOVA().fit(table, named("risk"), output_names="loss").output_names_ == ("loss",)
    assert exanova.FunctionalANOVA().fit(rows, lambda t: (t["a"] * 1.5).rename("risk")).output_names_ == ("risk",)


def test_columns_that_a_model_returns_name_its_outputs(rows):
    def model(table):
        return pd.DataFrame({"pd": table["a"] / 4, "lgd": table["b"] / 4}, index=table.index)

    assert FunctionalANOVA().fit(rows, model).output_names_ == ("pd", "lgd")


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        (Ridge(), lambda X: X.assign(d=1), r"fitted on 'a', 'b', 'c' and on no others: .*feature_names_in_"),
        (Ridge(), lambda X: X[["c", "a", "b"]], r"fitted on 'a', 'b', 'c' in this order: .*feature_names_in_"),
        (Ridge(), lambda X: X[["a", "b"]], r"'c' is not among them"),
    ],
)
def test_a_model_that_refuses_the_columns_says_which_ones_it_takes(model, change, said, rows):
    model.fit(rows, rows["a"])
    with pytest.raises(ModelError, match=said) as caught:
        FunctionalANOVA().fit(change(rows), model)
    assert "\n" not in str(caught.value)


def test_a_model_that_refuses_text_is_given_categories(rows):
    def model(table):
        raise ValueError("pandas dtypes must be int, float or bool; categorical_feature do not match")

    with pytest.raises(ModelError, match=r"dict.fromkeys\(\['d'\], 'category'\)"):
        FunctionalANOVA().fit(rows.assign(d="u"), model)


@pytest.mark.parametrize("returned", [None, 1.0, object()])
def test_what_is_no_array_is_called_by_its_type(returned, rows):
    with pytest.raises(ModelError, match=f"of type {type(returned).__name__}"):
        FunctionalANOVA().fit(rows, lambda table: returned)
