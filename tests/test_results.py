"""What a fitted object hands out: tables, mappings, contributions of rows, summaries; and how it behaves."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from exanova import Effect, FunctionalANOVA, Support
from exanova.errors import OutsideSupportWarning
from exanova.progress import PATIENCE, Progress
from oracles import cells_of
from strategies import examples, fit, on_rows, subset_of, supports

COLUMNS = {"color": ["red", "red", "blue", "blue", "red"], "size": [1, 2, 1, 2, 1]}
Y = np.array([0.0, 1.0, 1.0, 4.0, 0.0])
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
X = pd.DataFrame(COLUMNS)
HOLED, NEW = X.iloc[[0, 1, 2]], X.iloc[[0, 1, 2, 3]]


def fitted(table=X, values=Y, **parameters):
    return FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(table, values)


# Tables


@pytest.mark.parametrize("kind", MAKERS)
def test_an_effect_becomes_a_table_of_the_kind_that_was_fitted(kind):
    table = MAKERS[kind](COLUMNS)
    frame = fitted(table).effects_["size", "color"].to_frame()
    assert type(frame) is type(table)
    names = frame.column_names if kind == "pyarrow" else list(frame.columns)
    assert names == ["color", "size", "probability", "value", "rows", "stderr"]
    columns = {name: list(frame[name].to_pylist() if kind == "pyarrow" else frame[name]) for name in names}
    assert columns["color"] == ["blue", "blue", "red", "red"]
    assert [str(level) for level in columns["size"]] == ["1", "2", "1", "2"]
    np.testing.assert_allclose(columns["probability"], [0.2, 0.2, 0.4, 0.2])
    np.testing.assert_allclose(columns["value"], fitted().effects_["color", "size"].values[:, 0])


def test_an_array_gives_pandas_tables():
    frame = fitted(np.array([["a"], ["b"]]), [1.0, 2.0]).effects_["x0"].to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["x0", "probability", "value", "rows"]


def test_the_table_of_the_intercept_has_one_line():
    frame = fitted().effects_[()].to_frame()
    assert list(frame.columns) == ["probability", "value", "rows", "stderr"]
    assert frame["probability"].tolist() == [1.0]
    np.testing.assert_allclose(frame["value"], [Y.mean()])


def test_features_called_like_the_columns_of_a_table_lose_nothing():
    table = pd.DataFrame({"value": ["a", "b"], "probability": ["u", "v"]})
    frame = fitted(table, [1.0, 3.0]).effects_["value", "probability"].to_frame()
    assert list(frame.columns)[:2] == ["value", "probability"]
    assert len(set(frame.columns)) == 6
    assert frame["value"].tolist() == ["a", "b"]


def test_levels_are_in_the_order_of_a_categorical_dtype():
    sizes = pd.Categorical(["small", "large", "small"], categories=["small", "medium", "large"], ordered=True)
    anova = fitted(pd.DataFrame({"size": sizes}), [1.0, 2.0, 1.0])
    assert anova.effects_["size"].levels == (("small",), ("large",))


def test_several_outputs_have_a_column_each():
    values = np.column_stack([Y, -Y])
    effect = FunctionalANOVA(shrinkage=None).fit(X, values, output_names=["gain", "loss"]).effects_["color"]
    assert effect.output_names == ("gain", "loss")
    assert list(effect.to_frame().columns)[:5] == ["color", "probability", "gain", "loss", "rows"]
    assert list(effect.to_frame().columns)[5:] == ["stderr of gain", "stderr of loss"]
    assert effect.values.shape == (2, 2)
    np.testing.assert_allclose(effect.values[:, 0], -effect.values[:, 1], atol=1e-15)


def test_outputs_of_a_classifier_are_named_by_its_classes():
    table = pd.get_dummies(X["color"]).assign(size=X["size"])
    forest = RandomForestClassifier(3, random_state=0).fit(table, ["no", "yes", "no", "perhaps", "no"])
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(table, forest)
    assert anova.output_names_ == ("no", "perhaps", "yes")
    assert list(anova.effects_["size"].to_frame(stderr=False).columns)[2:] == ["no", "perhaps", "yes", "rows"]
    np.testing.assert_allclose(anova.predict(table), forest.predict_proba(table), atol=1e-12)
    np.testing.assert_allclose(anova.intercept_.sum(), 1.0)


def test_shapes_follow_the_model():
    assert fitted().predict(X).shape == (5,)
    assert fitted(values=Y[:, None]).predict(X).shape == (5, 1)
    assert fitted(values=np.column_stack([Y, Y])).predict(X).shape == (5, 2)
    assert fitted().components(X).values.shape == (5, 4)
    assert fitted(values=np.column_stack([Y, Y])).components(X).values.shape == (5, 4, 2)


# Effects


def test_effects_are_found_by_name_in_any_order():
    effects = fitted().effects_
    assert list(effects) == [(), ("color",), ("size",), ("color", "size")]
    assert len(effects) == 4
    first, second = effects["color", "size"], effects["size", "color"]
    assert first.features == second.features == ("color", "size")
    np.testing.assert_array_equal(first.values, second.values)
    assert effects[("color",)].features == effects["color"].features == ("color",)
    assert effects[()].features == ()
    assert effects[()].levels == ((),)
    assert all(isinstance(effect, Effect) for effect in effects.values())
    assert dict(effects.items()).keys() == set(effects)


@examples(30)
@given(case=supports(), order=st.sampled_from([None, 0, 1, 2]))
def test_norms_probabilities_and_order_of_effects(case, order):
    anova = fit(case, max_order=order)
    keys, effects, rows = list(anova.effects_), on_rows(anova, case.rows), case.rows.tolist()
    assert keys == sorted(keys, key=lambda key: (len(key), key))
    for names, effect in anova.effects_.items():
        subset = subset_of(names)
        assert effect.order == len(names)
        assert list(effect.levels) == sorted(set(effect.levels))
        inside = [(case.rows[:, list(subset)] == cell).all(axis=1) for cell in cells_of(rows, subset)]
        np.testing.assert_allclose(effect.probability, np.array(inside) @ case.probability, rtol=1e-12)
        values = effects[subset]  # norms are means over the rows, not over the cells
        np.testing.assert_allclose(effect.norm1, case.probability @ np.abs(values), rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(effect.norm2, case.probability @ values**2, rtol=1e-10, atol=1e-300)


def test_what_is_handed_out_may_be_changed_without_changing_the_result():
    anova = fitted()
    before, text = anova.predict(X), str(anova)
    effect = anova.effects_["color"]
    effect.values[:] = 99
    effect.probability[:] = 99
    anova.effects_["color", "size"].probability[:] = 99
    anova.intercept_[:] = 99
    anova.predict(X)[:] = 99
    anova.components(X).values[:] = 99
    np.testing.assert_array_equal(anova.predict(X), before)
    assert str(anova) == text
    assert abs(anova.effects_["color"].values).max() < 10
    assert anova.effects_["color"].probability.max() < 1


def test_effects_and_certificate_are_immutable():
    anova = fitted()
    with pytest.raises(TypeError):
        anova.effects_["color"] = None
    with pytest.raises(TypeError):
        del anova.effects_["color"]
    with pytest.raises(AttributeError):
        anova.effects_["color"].features = ("size",)
    with pytest.raises(AttributeError):
        anova.certificate_.rank = 7


# Rows


@examples(30)
@given(case=supports(), order=st.sampled_from([None, 1, 2]))
def test_components_are_the_effects_at_the_rows_and_add_up_to_the_fitted_part(case, order):
    anova = fit(case, max_order=order)
    parts = anova.components(case.rows)
    effects = on_rows(anova, case.rows)
    assert parts.subsets == tuple(anova.effects_)
    assert not parts.outside.any()
    for k, names in enumerate(parts.subsets):
        np.testing.assert_array_equal(parts.values[:, k], effects[tuple(int(name[1:]) for name in names)])
    np.testing.assert_allclose(parts.values.sum(axis=1), anova.predict(case.rows), atol=1e-12, rtol=1e-12)


def test_components_as_a_table():
    frame = fitted().components(X.iloc[:2]).to_frame()
    assert list(frame.columns) == ["row", "subset", "order", "value"]
    assert frame["row"].tolist() == [0] * 4 + [1] * 4
    assert frame["order"].tolist() == [0, 1, 1, 2] * 2
    np.testing.assert_allclose(frame.groupby("row")["value"].sum(), Y[:2], atol=1e-14)


def test_rows_outside_the_support_are_flagged_and_told_once_a_call():
    anova = fitted(HOLED, Y[:3])
    for ask in (anova.predict, anova.components):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask(pd.concat([NEW, NEW]))
        assert [w.category for w in caught] == [OutsideSupportWarning]
        assert "2 of 8 rows" in str(caught[0].message)
        assert caught[0].filename == __file__, "the warning points at the caller"
    with pytest.warns(OutsideSupportWarning):
        parts = anova.components(NEW)
    assert parts.outside.tolist() == [False, False, False, True]
    assert parts.values[3, parts.subsets.index(("color", "size"))] == 0
    main = parts.values[3, [parts.subsets.index(("color",)), parts.subsets.index(("size",))]]
    blue, two = anova.effects_["color"].values[0, 0], anova.effects_["size"].values[1, 0]
    np.testing.assert_array_equal(main, [blue, two])


def test_a_row_outside_is_outside_only_for_the_orders_that_were_fitted():
    assert not fitted(HOLED, Y[:3], max_order=1).components(NEW).outside.any()


def test_unknown_levels_can_be_ignored():
    anova = fitted(handle_unknown="ignore")
    new = pd.DataFrame({"color": ["green", "red"], "size": [1, 1]})
    with pytest.warns(OutsideSupportWarning, match="1 of 2 rows"):
        parts = anova.components(new)
    size = anova.effects_["size"].values[0, 0]
    np.testing.assert_allclose(parts.values[0], [Y.mean(), 0, size, 0])
    assert parts.outside.tolist() == [True, False]
    with pytest.warns(OutsideSupportWarning):
        np.testing.assert_allclose(anova.predict(new), [Y.mean() + size, 0.0], atol=1e-14)


def test_columns_are_found_by_name_and_others_are_left_aside():
    shuffled = X.assign(other=3)[["other", "size", "color"]]
    np.testing.assert_array_equal(fitted().predict(shuffled), fitted().predict(X))
    np.testing.assert_array_equal(fitted().predict(pl.from_pandas(X)), fitted().predict(X))


def test_the_model_is_called_on_each_distinct_row_once_in_batches():
    seen = []

    def model(rows):
        seen.append(rows)
        return rows["size"].to_numpy()

    anova = FunctionalANOVA(shrinkage=None, batch_size=3).fit(X, model)
    *once, again = seen
    assert [len(rows) for rows in once] == [3, 1]
    assert not pd.concat(once).duplicated().any()
    assert len(again) == 2  # called again on half of the rows: the same outputs?
    assert all((rows.dtypes == X.dtypes).all() for rows in seen)
    assert anova.plan_.model_calls == 4


def test_a_support_stands_for_a_table():
    support = Support.from_pmf(
        np.array([[0.4, 0.2], [0.2, 0.2]]), feature_names=["a", "b"], levels=[["u", "v"], [1, 2]]
    )
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(support, lambda rows: (rows[:, 0] == "v") * rows[:, 1])
    assert anova.effects_["a", "b"].levels == (("u", "1"), ("u", "2"), ("v", "1"), ("v", "2"))
    new = pd.DataFrame({"a": ["v", "u"], "b": [2, 1]})
    np.testing.assert_allclose(anova.predict(new), [2, 0], atol=1e-14)


# Text


def test_the_summary_can_be_read_by_a_person():
    anova = fitted(X.assign(copy=X["color"]))
    text = str(anova)
    for word in (
        "on other rows",
        "not explained",
        "computed",
        "orthogonal",
        "rank",
        "R2",
        "strongest effects",
        "redundant",
    ):
        assert word in text
    for word in ("color", "copy ~ color", "4 distinct rows", "3 features", "joint distribution"):
        assert word in text
    lines = text.splitlines()
    assert 10 < len(lines) < 40
    assert max(map(len, lines)) < 140


def test_the_summary_shows_the_strongest_effects_first():
    text = str(fitted(values=10.0 * (X["size"] == 2) + 0.1 * (X["color"] == "red")))
    effects = text[text.index("strongest effects") :]
    assert effects.index("size") < effects.index("color")


def test_a_decomposition_that_is_not_fitted_says_so():
    assert str(FunctionalANOVA(max_order=3)) == "FunctionalANOVA(max_order=3), not fitted"
    assert repr(FunctionalANOVA()) == "FunctionalANOVA()"
    assert repr(fitted(ties="first")) == "FunctionalANOVA(shrinkage=None, ties='first')"


def test_a_plan_is_one_line_with_everything_in_it():
    plan = FunctionalANOVA(shrinkage=None, max_order=2, memory_limit="1 GB").plan(X)
    line = str(plan)
    assert "\n" not in line
    for word in (
        "4 distinct rows of 5",
        "2 varying features",
        "4 subsets",
        "functions",
        f"route {plan.route}",
        "1.0 GB",
    ):
        assert word in line
    assert "model called on 4 rows" in line


def test_effects_name_the_game_they_belong_to():
    anova = fitted()
    for shown in (anova.effects_, anova.effects_["color"], anova.components(X)):
        assert "joint distribution" in repr(shown)


def test_verbose_prints_the_plan(capsys):
    fitted(verbose=True)
    assert "distinct rows of 5" in capsys.readouterr().out


def test_silent_where_standard_error_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("exanova.progress.PATIENCE", 0.0)
    fitted()
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_waits_writes_one_line_and_clears_it(monkeypatch):
    terminal = Terminal()
    progress = Progress(stream=terminal)
    progress.phase("counting", 10)
    assert terminal.getvalue() == ""  # nothing before its patience ends
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + PATIENCE + 1)
    progress.step(3)
    assert "counting 3/10" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    progress.close()
    assert terminal.getvalue().endswith("\r\x1b[K")


# An estimator among others


def test_parameters_are_read_set_and_cloned_as_scikit_learn_does():
    anova = fitted(max_order=1, ties="first")
    assert anova.get_params()["ties"] == "first"
    copy = clone(anova)
    assert copy.get_params() == anova.get_params()
    assert not hasattr(copy, "effects_")
    assert anova.set_params(max_order=2) is anova
    assert anova.max_order == 2
    assert FunctionalANOVA(**anova.get_params()).get_params() == anova.get_params()


def test_fitting_again_replaces_the_result_and_returns_the_object():
    anova = fitted()
    assert anova.fit(X, -Y) is anova
    np.testing.assert_allclose(anova.predict(X), -Y, atol=1e-14)


def test_what_was_fitted_is_recorded():
    anova = fitted()
    assert anova.feature_names_in_.tolist() == ["color", "size"]
    assert anova.n_features_in_ == 2
    assert [list(levels) for levels in anova.categories_] == [["blue", "red"], [1, 2]]
    assert anova.intercept_.shape == (1,)


HEAVY = (
    *("scipy", "scipy.sparse", "scipy.linalg", "sklearn", "joblib", "numba", "threadpoolctl"),
    *("pandas", "polars", "pyarrow", "dask", "pyspark"),
    *("altair", "vl_convert", "jinja2", "matplotlib", "typer", "rich"),
)


def loaded_by(code):
    """Which of the heavy packages and modules a fresh interpreter has imported after ``code``."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_stays_light():
    assert loaded_by("import exanova") == []
    assert loaded_by("from exanova import errors, Support") == []
    assert loaded_by("from exanova import FunctionalANOVA") == []
    assert loaded_by("from exanova import *") == []
    assert "pandas" not in loaded_by(
        "import exanova, numpy; exanova.FunctionalANOVA(shrinkage=None).plan(numpy.eye(2, dtype=int))"
    )


def test_the_public_names_are_there():
    import exanova

    for name in set(exanova.__all__) - {"__version__"}:
        found = getattr(exanova, name)
        assert found.__name__.rpartition(".")[2] == name
        assert found is getattr(sys.modules[exanova._HOME[name]], name, sys.modules[exanova._HOME[name]])
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", exanova.__version__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        exanova.Nothing  # noqa: B018
