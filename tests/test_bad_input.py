"""Bad input: the error a user sees names what was given and what to do, and nothing that was there is lost."""

from __future__ import annotations

import inspect
import warnings
from contextlib import suppress
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from exanova import FunctionalANOVA, Support, load
from exanova.data.table import Table
from exanova.data.values import evaluate
from exanova.effects.storage import read, write
from exanova.errors import (
    ExanovaError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    ModelError,
    NotFittedError,
    OutsideSupportError,
    UnknownFeatureError,
    UnknownLevelError,
)

X = pd.DataFrame({"color": ["red", "red", "blue", "blue"], "size": [1, 2, 1, 2]})
Y = np.array([0.0, 1.0, 1.0, 4.0])


def fitted(**parameters):
    return FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(X, Y)


def raises(error, match, call):
    """``call`` raises ``error``, one of ours and the builtin a caller would expect, with this message."""
    with pytest.raises(error, match=match) as caught:
        call()
    assert isinstance(caught.value, ExanovaError)
    message = str(caught.value)
    assert 20 < len(message) < 700
    assert "Traceback" not in message
    return caught.value


# Tables


@pytest.mark.parametrize(
    "table",
    [X.iloc[:0], pl.DataFrame({"a": []}), pa.table({"a": pa.array([], pa.string())}), np.empty((0, 2)), X[[]]],
    ids=["pandas", "polars", "pyarrow", "numpy", "no columns"],
)
def test_an_empty_table(table):
    message = r"\d rows and \d columns; at least one row and one column are needed"
    raises(InputError, message, lambda: fit(table, []))
    raises(InputError, message, lambda: FunctionalANOVA(shrinkage=None).plan(table))


def test_what_is_not_a_table():
    raises(InputTypeError, r"X is of type builtins\.dict.*pandas, polars or pyarrow", lambda: fit({"a": [1]}, Y))
    raises(InputTypeError, r"X is of type builtins\.list", lambda: fit([[1, 2]], Y))
    raises(InputError, r"1 dimension.*reshape\(-1, 1\)", lambda: fit(np.arange(3), np.arange(3.0)))
    raises(InputError, r"cannot be matched with an array of outputs", lambda: fit(pl.LazyFrame({"a": [1]}), [1.0]))


def fit(*arguments, **parameters):
    return FunctionalANOVA(shrinkage=None).fit(*arguments, **parameters)


@pytest.mark.parametrize("max_order", [0, 1, 2, None])
@pytest.mark.parametrize("route", ["auto", "grid", "dense", "moments"])
@pytest.mark.parametrize("ties", ["share", "first"])
def test_one_row_works(max_order, route, ties):
    if route == "grid" and max_order not in (2, None):
        max_order = None
    anova = FunctionalANOVA(shrinkage=None, max_order=max_order, route=route, ties=ties).fit(X.iloc[:1], [3.0])
    assert anova.intercept_.tolist() == [3.0]
    assert list(anova.effects_) == [()]
    assert anova.predict(X.iloc[:1]).tolist() == [3.0]
    certificate = anova.certificate_
    assert certificate.exact
    assert (certificate.rank, certificate.n_functions) == (1, 1)
    assert certificate.r2.tolist() == [1.0]
    assert certificate.mse.tolist() == [0.0]
    assert certificate.saturated
    assert certificate.unique
    assert "one output" in str(anova)


@pytest.mark.parametrize("max_order", [1, 2, None])
@pytest.mark.parametrize("route", ["auto", "dense", "moments"])
def test_a_feature_of_one_level_works_and_has_no_effect(max_order, route):
    table = X.assign(kind="same")[["kind", "color", "size"]]
    anova = FunctionalANOVA(shrinkage=None, max_order=max_order, route=route).fit(table, Y)
    plain = FunctionalANOVA(shrinkage=None, max_order=max_order, route=route).fit(X, Y)
    assert list(anova.effects_) == list(plain.effects_)
    np.testing.assert_allclose(anova.predict(table), plain.predict(X), atol=1e-14)
    assert anova.certificate_.rank == plain.certificate_.rank
    assert anova.certificate_.exact
    zero = anova.effects_["kind"]
    assert (zero.features, zero.levels, zero.values.tolist()) == (("kind",), (("same",),), [[0.0]])
    assert zero.stderr.tolist() == [[0.0]]
    assert zero.identified
    assert "kind" not in anova.effects_
    pair = anova.effects_["color", "kind"]
    assert pair.features == ("kind", "color")
    assert [level for _, level in pair.levels] == [level for (level,) in anova.effects_["color"].levels]
    assert not pair.values.any()
    assert list(pair.to_frame().columns)[:3] == ["kind", "color", "probability"]


def test_a_subset_left_out_by_a_budget_is_not_said_to_be_zero():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(list("abc"), 200) for name in "uvwx"})
    y = 1.0 * (table["u"] == "a") + 2.0 * ((table["v"] == "b") & (table["w"] == "c"))
    anova = FunctionalANOVA(shrinkage=None, max_terms=13).fit(table, y)
    assert ("v", "w") in anova.effects_
    error = raises(UnknownFeatureError, r"u x x was left out by the budget", lambda: anova.effects_["u", "x"])
    assert "max_terms=13" in str(error)
    assert "not known to be zero" in str(error)
    assert anova.effects_._ipython_key_completions_()[:3] == [(), "u", "v"]
    assert ("v", "w") in anova.effects_._ipython_key_completions_()


def test_only_features_of_one_level_with_rows_that_differ_in_value():
    table = pd.DataFrame({"a": ["u"] * 4, "b": ["v"] * 4})
    anova = fit(table, Y)
    assert anova.intercept_.tolist() == [1.5]
    assert anova.certificate_.rank == 1
    np.testing.assert_allclose(anova.certificate_.within_variance, [Y.var()])
    assert np.isfinite(anova.certificate_.r2).all()


def test_duplicate_column_names():
    twice = pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"])
    raises(InputError, r"more than one column called 'a'.*rename or drop", lambda: fit(twice, [1.0, 2.0]))
    raises(InputError, r"more than one column called 'a'", lambda: FunctionalANOVA(shrinkage=None).plan(twice))
    raises(InputError, r"more than one column called '1'", lambda: fit(pd.DataFrame([[0, 1]], columns=[1, "1"]), [1.0]))


def test_an_unhashable_cell():
    table = pd.DataFrame({"a": [["list"], "b"]})
    raises(
        InputTypeError,
        r"'a' holds a value of type list in row 0, which cannot be a level.*to strings",
        lambda: fit(table, [1.0, 2.0]),
    )


def test_an_identifier_column():
    table = pd.DataFrame({"id": [f"row {k}" for k in range(100)], "a": [0, 1] * 50})
    message = r"left out.*'id' \(100 different values\).*drop it from.*min_frequency="
    with pytest.warns(UserWarning, match=message):
        fit(table, np.arange(100.0))
    with pytest.warns(UserWarning, match=message):
        FunctionalANOVA(shrinkage=None).plan(table)


def test_a_continuous_column():
    table = pd.DataFrame({"weight": np.linspace(0.1, 9.7, 60), "a": [0, 1] * 30})
    refusing = FunctionalANOVA(shrinkage=None, n_bins=None)
    message = r"continuous: 'weight' \(60 different values\).*n_bins='auto'.*n_bins=\{'weight': 8\}"
    raises(InputError, message, lambda: refusing.fit(table, np.zeros(60)))
    binned = FunctionalANOVA(shrinkage=None, n_bins=4).fit(table, table["weight"].to_numpy())
    assert len(binned.effects_["weight"].levels) == 4


def test_infinite_values_in_a_column_of_numbers():
    table = pd.DataFrame({"a": [1.0, np.inf, 2.0]})
    raises(InputError, r"'a' holds an infinite value, first in row 1", lambda: fit(table, np.zeros(3)))


def test_missing_values_are_a_level():
    table = pd.DataFrame({"a": ["u", None, "u", np.nan], "b": [1.0, 1.0, np.nan, np.nan]})
    anova = fit(table, Y)
    assert [levels for (levels,) in anova.effects_["a"].levels] == ["u", "(missing)"]
    assert "(missing)" in [levels for (levels,) in anova.effects_["b"].levels]


# Weights and values


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, np.nan, 1, 1], r"1 weight is NaN or infinite, the first at position 1.*finite"),
        ([1, 1, np.inf, 1], r"NaN or infinite, the first at position 2"),
        ([1, 1, 1, -2], r"1 weight is negative, the first at position 3.*at least 0"),
        ([0, 0, 0, 0], r"All weights are zero; at least one has to be positive"),
        ([1, 1, 1], r"shape \(3,\); expected \(4,\)"),
        (np.ones((4, 1)), r"shape \(4, 1\); expected \(4,\)"),
    ],
)
def test_unusable_weights(weight, message):
    raises(InputError, message, lambda: fit(X, Y, sample_weight=weight))
    raises(InputError, message, lambda: FunctionalANOVA(shrinkage=None).plan(X, sample_weight=weight))


def test_weights_that_are_not_numbers():
    raises(InputTypeError, r"weights.*real numbers", lambda: fit(X, Y, sample_weight=["a", "b", "c", "d"]))


def test_rows_of_weight_zero_are_as_good_as_absent():
    table = pd.concat([X, pd.DataFrame({"color": ["green"], "size": [9]})], ignore_index=True)
    anova = fit(table, [*Y, np.nan], sample_weight=[1, 1, 1, 1, 0])
    np.testing.assert_allclose(anova.predict(X), Y, atol=1e-14)
    raises(UnknownLevelError, r"'green'", lambda: anova.predict(table))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 1, np.nan, 3], r"NaN or infinite in 1 row, the first is row 2; leave these rows out"),
        ([0, 1, 2, -np.inf], r"NaN or infinite.*row 3"),
        ([[0, 1], [1, np.inf], [0, 0], [1, 1]], r"NaN or infinite.*row 1"),
        ([0, 1, 2], r"3 rows of outputs for 4 rows"),
        (["a", "b", "a", "b"], r"no column 'a', 'b'.*0/1 column per class"),
        (np.array(["a", "b", "a", "b"]), r"type str_?, not real numbers.*predict_proba|0/1 column"),
        (np.zeros((4, 2, 2)), r"shape is \(4, 2, 2\); expected \(4,\) or \(4, number of outputs\)"),
        (np.zeros((4, 0)), r"at least one number"),
        (7.0, "of type float"),
    ],
)
def test_unusable_outputs_in_place_of_a_model(values, message):
    raises(InputError, message, lambda: fit(X, values))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda rows: 1 / 0, r"raised ZeroDivisionError on 4 rows: division by zero.*pandas table.*'color'"),
        (lambda rows: np.zeros(3), r"returned is not usable: There are 3 rows of outputs for 4 rows"),
        (lambda rows: np.zeros((len(rows), 1, 1)), r"shape is \(4, 1, 1\)"),
        (lambda rows: ["yes"] * len(rows), r"not real numbers.*encode labels as numbers"),
        (lambda rows: np.full(len(rows), np.nan), r"NaN or infinity on 4 of 4 rows, the first is row 0"),
        (lambda rows: None, r"not usable: It is of type NoneType"),
    ],
    ids=["raises", "too few", "three dimensions", "strings", "NaN", "nothing"],
)
def test_models_that_fail(model, message):
    raises(ModelError, message, lambda: fit(X, model))


def test_the_cause_of_a_failing_model_is_kept():
    def model(rows):
        raise KeyError("colour")

    with pytest.raises(ModelError, match="colour") as caught:
        fit(X, model)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_model_that_changes_its_mind_between_batches():
    calls = []

    def model(rows):
        calls.append(len(rows))
        return np.zeros((len(rows), len(calls)))

    raises(ModelError, r"first batch.*batch 2", lambda: FunctionalANOVA(shrinkage=None, batch_size=2).fit(X, model))


def test_what_is_not_a_model():
    class NoPredict:
        def fit(self, X, y):
            return self

    raises(InputError, r"in place of a model.*of type NoPredict", lambda: fit(X, NoPredict()))
    raises(InputError, r"no column 'model'; its columns are", lambda: fit(X, "model"))
    raises(InputTypeError, r"an object and not a class", lambda: fit(X, DecisionTreeClassifier))
    raises(ModelError, r"not fitted", lambda: fit(X[["size"]], DecisionTreeClassifier()))


def test_names_of_outputs_have_to_be_as_many_as_outputs():
    raises(InputError, r"\['a'\] were given for 2 output", lambda: fit(X, np.zeros((4, 2)), output_names=["a"]))


# New rows


def test_an_unknown_level():
    new = pd.DataFrame({"color": ["red", "green"], "size": [1, 2]})
    message = r"Column 'color' holds unknown levels: 'green' \(1 row, the first is row 1\).*ignore"
    for call in (fitted().predict, fitted().components):
        raises(UnknownLevelError, message, lambda call=call: call(new))


def test_a_missing_column():
    raises(InputError, r"no column 'size'; its columns are 'color'", lambda: fitted().predict(X[["color"]]))
    raises(InputError, r"3 columns, but 2 are expected", lambda: fitted().predict(np.zeros((1, 3))))


def test_new_rows_that_are_none():
    raises(InputError, r"0 rows", lambda: fitted().predict(X.iloc[:0]))


def test_a_combination_that_never_occurred_with_strict():
    anova = FunctionalANOVA(shrinkage=None, strict=True).fit(X.iloc[:3], Y[:3])
    message = r"1 of 4 rows hold a combination.*the first in row 3.*strict=False"
    raises(OutsideSupportError, message, lambda: anova.predict(X))
    raises(OutsideSupportError, message, lambda: anova.components(X))


def test_asking_before_fitting():
    for ask in (lambda a: a.predict(X), lambda a: a.components(X)):
        error = raises(
            NotFittedError, r"not fitted; call fit\(X, model\)", lambda ask=ask: ask(FunctionalANOVA(shrinkage=None))
        )
        assert isinstance(error, AttributeError)
    assert not hasattr(FunctionalANOVA(shrinkage=None), "effects_")
    assert not hasattr(FunctionalANOVA(shrinkage=None), "certificate_")


def test_an_effect_that_does_not_exist():
    effects = fitted(max_order=1).effects_
    raises(UnknownFeatureError, r"no feature 'colour'; the features are color, size", lambda: effects["colour"])
    raises(UnknownFeatureError, r"no feature 'colour'", lambda: effects["color", "colour"])
    raises(UnknownFeatureError, r"color x size.*order 1.*larger max_order", lambda: effects["size", "color"])
    assert isinstance(raises(UnknownFeatureError, r"no feature 3", lambda: effects[3]), KeyError)
    assert "colour" not in effects
    assert effects.get("colour") is None


# Plans and parameters


def test_a_plan_beyond_the_memory_limit():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 8, (2000, 12))
    small = FunctionalANOVA(shrinkage=None, max_order=3, memory_limit="50 MB")
    message = r"order \d.*12 features.*needs about.*limit is 50 MB.*What would fit: max_order="
    raises(MemoryLimitError, message, lambda: small.plan(table))
    error = raises(MemoryLimitError, message, lambda: small.fit(table, np.zeros(2000)))
    assert isinstance(error, MemoryError)
    called = []
    raises(MemoryLimitError, message, lambda: small.fit(table, called.append))
    assert not called, "the model was called although the plan did not fit"
    fits = int(str(error).partition("max_order=")[2][0])
    FunctionalANOVA(shrinkage=None, max_order=fits, memory_limit="50 MB").plan(table)


def test_the_components_of_too_many_rows():
    anova = fitted(memory_limit="100 MB")
    anova.memory_limit = 64
    raises(MemoryLimitError, r"components of 4 rows take.*fewer rows", lambda: anova.components(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_order": -1}, r"max_order=-1.*whole number of at least 0, or None"),
        ({"max_order": 1.5}, r"max_order=1\.5"),
        ({"max_order": True}, r"max_order=True"),
        ({"max_order": "all"}, r"max_order='all'"),
        ({"basis": "walsh"}, r"basis='walsh'.*'pure' or 'paper'"),
        ({"ties": "last"}, r"ties='last'.*'share' or 'first'"),
        ({"route": "fast"}, r"route='fast'.*'auto', 'grid', 'dense', 'moments'"),
        ({"handle_unknown": "skip"}, r"handle_unknown='skip'.*'error' or 'ignore'"),
        ({"response_method": "transform"}, r"response_method='transform'"),
        ({"strategy": "even"}, r"strategy='even'"),
        ({"memory_limit": "much"}, r"memory_limit='much'.*'4 GB'"),
        ({"memory_limit": -1}, r"memory_limit=-1.*positive"),
        ({"memory_limit": ".GB"}, r"memory_limit='\.GB'.*'4 GB'"),
        ({"memory_limit": np.inf}, r"memory_limit=inf"),
        ({"n_jobs": 0}, r"n_jobs=0.*positive"),
        ({"n_jobs": 1.5}, r"n_jobs=1\.5.*positive"),
        ({"n_jobs": "two"}, r"n_jobs='two'"),
        ({"min_frequency": 0}, r"min_frequency=0"),
        ({"min_frequency": 1.5}, r"min_frequency=1\.5"),
        ({"n_bins": 1}, r"n_bins=1.*at least 2"),
        ({"n_bins": {"a": 8, "b": 1}}, r"n_bins={'b': 1} was given; expected an integer of at least 2"),
        ({"max_levels": {"a": "some"}}, r"max_levels={'a': 'some'} was given; expected an integer of at least 2"),
        ({"ridge": float("inf")}, r"ridge=inf was given; expected a finite number"),
        ({"n_jobs": 0}, r"n_jobs=0.*None \(or -1\) for every core"),
        ({"n_bins": {"weight": 3}}, r"n_bins= names columns.*'weight'"),
        ({"n_bins": {"color": 3}}, r"'color', which does not hold numbers"),
        ({"strict": "no"}, r"strict='no'.*True or False"),
        ({"strict": 1}, r"strict=1 was given"),
        ({"verbose": "yes"}, r"verbose='yes'.*True, False or None"),
        ({"sampled": 0}, r"sampled=0.*True, False or 'auto'"),
        ({"random_state": 1.5}, r"random_state=1\.5.*whole number of at least 0, or None"),
        ({"random_state": -1}, r"random_state=-1"),
        ({"random_state": True}, r"random_state=True"),
        ({"batch_size": 0}, r"batch_size=0.*at least one row"),
        (
            {"n_jobs": "two", "max_order": -1, "strict": "no"},
            r"max_order=-1.*n_jobs='two'|strict='no'.*max_order=-1.*n_jobs",
        ),
    ],
)
def test_wrong_parameters(parameters, message):
    raises(InputError, message, lambda: FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(X, Y))
    raises(InputError, message, lambda: FunctionalANOVA(**{"shrinkage": None, **parameters}).plan(X))


@pytest.mark.parametrize("size", [0, 2.5, "a"])
def test_a_batch_of_no_rows(size):
    message = rf"batch_size={size!r}.*at least one row"
    raises(InputError, message, lambda: FunctionalANOVA(shrinkage=None, batch_size=size).fit(X, len))
    raises(InputError, message, lambda: evaluate(len, Table.read(X), np.arange(4), batch_size=size))


WRONG = {
    "max_order": -1,
    "max_terms": 0,
    "selection": "best",
    "min_gain": -1.0,
    "ridge": "much",
    "random_state": 1.5,
    "shrinkage": True,
    "sampled": "no",
    "basis": "best",
    "ties": "best",
    "link": "best",
    "min_frequency": 0,
    "max_levels": 1,
    "n_bins": 1,
    "strategy": "best",
    "handle_unknown": "best",
    "strict": "no",
    "response_method": "best",
    "batch_size": 0,
    "route": "best",
    "memory_limit": "lots",
    "n_jobs": "two",
    "engine": "tcp://127.0.0.1:8786",
    "verbose": "yes",
}


@given(st.sets(st.sampled_from(sorted(WRONG)), min_size=1))
def test_all_wrong_parameters_are_named_at_once(names):
    anova = FunctionalANOVA(**{name: WRONG[name] for name in names})
    for call in (lambda: anova.fit(X, Y), lambda: anova.plan(X)):
        with pytest.raises(InputError) as caught:
            call()
        assert set(caught.value.parameters) == names


def test_every_parameter_may_be_wrong():
    assert set(FunctionalANOVA(shrinkage=None).get_params()) - set(WRONG) == {
        "subsets"
    }  # whose names depend on the table


@pytest.mark.parametrize("value", [np.True_, np.False_])
def test_numpy_values_are_as_good(value):
    anova = FunctionalANOVA(
        shrinkage=None, strict=value, ties=np.str_("first"), max_order=np.int64(2), batch_size=np.int32(3)
    )
    np.testing.assert_allclose(anova.fit(X, Y).predict(X), Y, atol=1e-12)


def test_a_fresh_seed():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (200, 4))
    values = rng.normal(size=200)
    anova = FunctionalANOVA(shrinkage=None, random_state=None)
    held = {anova.fit(table, values, eval_set=0.3).certificate_.r2_eval[0] for _ in range(8)}
    assert len(held) > 1, "two seeds that are the same are one in four billions"
    assert anova.get_params()["random_state"] is None
    assert anova.errors("bootstrap", n_refits=3).method == "bootstrap"
    fixed = {
        FunctionalANOVA(shrinkage=None, random_state=3).fit(table, values, eval_set=0.3).certificate_.r2_eval[0]
        for _ in range(3)
    }
    assert len(fixed) == 1


# The parameter that was renamed


def test_the_former_name_of_subsets():
    pairs = [("color", "size")]
    with pytest.warns(FutureWarning, match=r"interactions= is now called subsets="):
        old = FunctionalANOVA(shrinkage=None, interactions=pairs)
    new = FunctionalANOVA(shrinkage=None, subsets=pairs)
    assert old.get_params() == new.get_params()
    assert "interactions" not in old.get_params()
    assert old.get_params()["subsets"] is pairs
    assert repr(old) == repr(new) == "FunctionalANOVA(shrinkage=None, subsets=[('color', 'size')])"
    assert clone(old).get_params() == new.get_params()
    with pytest.warns(FutureWarning, match="subsets="):
        FunctionalANOVA(shrinkage=None).set_params(interactions=pairs)
    raises(
        InputError,
        r"old name of subsets=",
        lambda: FunctionalANOVA(shrinkage=None, subsets=pairs, interactions=pairs),
    )
    raises(
        InputError,
        r"old name of subsets=",
        lambda: FunctionalANOVA(shrinkage=None).set_params(subsets=pairs, interactions=pairs),
    )
    assert callable(old.interactions)


def test_a_parameter_that_does_not_exist():
    raises(
        InputError,
        r"no parameter 'order'; the parameters are.*max_order",
        lambda: FunctionalANOVA(shrinkage=None).set_params(order=2),
    )


def test_weights_beside_a_support():
    support = Support.from_product([[1, 1], [1, 1]])
    raises(InputError, r"Support has its weights.*Leave them out", lambda: fit(support, Y, sample_weight=np.ones(4)))


@pytest.mark.parametrize(
    ("pmf", "message"),
    [
        ([[0.5, -0.1]], r"negative"),
        ([[0.0, 0.0]], r"zero"),
        ([[np.nan, 1.0]], r"NaN"),
        (np.array(1.0), r"one axis for each feature"),
        ([["a"]], r"real numbers"),
    ],
)
def test_unusable_distributions(pmf, message):
    raises(InputError, message, lambda: Support.from_pmf(np.asarray(pmf)))


def test_a_file_with_the_former_name_of_subsets(tmp_path):
    FunctionalANOVA(shrinkage=None, subsets=[("color", "size")]).fit(X, Y).save(tmp_path / "new")
    document, arrays = read(tmp_path / "new")
    document["parameters"]["interactions"] = document["parameters"].pop("subsets")
    write(tmp_path / "old", document, arrays)
    assert load(tmp_path / "old").get_params() == load(tmp_path / "new").get_params()
    assert load(tmp_path / "old").subsets == [("color", "size")]


# Nothing is lost


def _broken():
    def model(rows):
        raise RuntimeError("down")

    return model


@pytest.mark.parametrize(
    ("table", "model", "parameters"),
    [
        (X, _broken(), {}),
        (X, [1.0], {}),
        (X.iloc[:0], [], {}),
        (X, Y, {"max_order": -1}),
        (X, Y, {"memory_limit": 16}),
        (X, Y, {"basis": "none"}),
    ],
    ids=["model", "length", "empty", "parameter", "memory", "basis"],
)
def test_a_failed_fit_leaves_what_was_fitted(table, model, parameters):
    anova = fitted()
    before = {key: effect.values for key, effect in anova.effects_.items()}
    certificate, text, proportion = anova.certificate_, str(anova), anova.predict(X)
    kept = anova.get_params()
    with pytest.raises(ExanovaError):
        anova.set_params(**parameters).fit(table, model)
    anova.set_params(**kept)
    assert anova.certificate_ is certificate
    assert str(anova) == text
    np.testing.assert_array_equal(anova.predict(X), proportion)
    for key, values in before.items():
        np.testing.assert_array_equal(anova.effects_[key].values, values)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_the_table_is_never_changed(make):
    columns = {"a": ["u", None, "v", "u"], "b": [1, 2, 1, 2]}
    table, copy = make(columns), make(columns)
    weight = np.array([1.0, 2.0, 0.0, 1.0])
    anova = FunctionalANOVA(shrinkage=None, min_frequency=1).fit(table, Y, sample_weight=weight)
    anova.predict(table[:2] if make is not pa.table else table.slice(0, 2))
    with pytest.raises(ExanovaError):
        FunctionalANOVA(shrinkage=None).fit(table, [1.0])
    assert table.equals(copy)
    assert weight.tolist() == [1, 2, 0, 1]


def test_arrays_are_never_changed():
    table, values = np.array([[0, 1], [1, 0], [1, 1]]), np.array([1.0, 2.0, 3.0])
    for array in (table, values):
        array.flags.writeable = False
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(table, values)
    anova.predict(table)
    anova.components(table)
    values_of_model = np.array([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="called on a few rows again"):
        FunctionalANOVA(shrinkage=None).fit(table, lambda rows: values_of_model)
    assert values_of_model.tolist() == [1, 2, 3]


def test_columns_whose_names_are_numbers_are_named_by_them():
    """A table made of an array has columns 0, 1, .., and they are what its user writes."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {0: rng.choice(list("abc"), 200), 1: rng.normal(size=200), 2: rng.integers(0, 60, 200).astype(str)}
    )
    anova = FunctionalANOVA(n_bins={1: 4}, max_levels={2: 5}, subsets=[(0, 1), (2,)])
    anova.fit(rows, (rows[0] == "a") + rows[1] + rows[2].astype(int) // 20)
    assert len(anova.effects_[1].levels) == 4
    assert len(anova.effects_[2].levels) <= 5
    assert anova.effects_[1, 0].features == anova.effects_["0", "1"].features == ("0", "1")
    assert 0 in anova.effects_
    assert 3 not in anova.effects_
    assert anova.plot.effect(1).to_dict() == anova.plot.effect("1").to_dict()
    assert anova.plot.pair(0, 1).to_dict() == anova.plot.pair("0", "1").to_dict()
    grouped = anova.importance(groups={"both": [0, 1]})
    assert set(grouped["group"]) == {"both", "2"}
    raises(UnknownFeatureError, "there is no feature 3; the features are 0, 1, 2", lambda: anova.effects_[3])


def test_an_array_of_records_is_told_what_would_be_a_table():
    records = np.rec.fromarrays([np.arange(4), np.arange(4.0)], names="a,b")
    raises(
        InputTypeError, r"array of records; give a table, such as pandas\.DataFrame", lambda: fit(records, np.zeros(4))
    )
    assert fit(pd.DataFrame(records), np.arange(4.0)).n_features_in_ == 2


# Any argument of any public method

NONSENSE = [None, "no", -1, True, 1.5, float("nan"), [], {}, ("color",), b"x", object(), np.array([1, 2]), X, [[1]], 1j]
"""Values that hardly any argument may have: each is refused in words, or means something."""

CALLS = {
    "fit": {"X": X, "model": Y},
    "partial_fit": {"X": X, "model": Y},
    "plan": {"X": X},
    "predict": {"X": X},
    "components": {"X": X},
    "explain": {"X": X},
    "interactions": {"X": X},
    "importance": {},
    "errors": {},
    "significance": {},
    "score": {"X": X, "model": Y},
    "difference": {"rows_a": X, "by": "color"},
    "reasons": {"X": X},
    "compare": {"other": None},
    "change": {"other": None},
    "relativities": {},
    "report": {"path": "r.json"},
    "export": {"path": "e.sql"},
    "save": {"path": "s.exanova"},
    "save_moments": {"path": "m.moments"},
    "add_provenance": {},
}
"""Arguments of every public method that it needs."""

WITHOUT_ARGUMENTS = {"get_params", "set_params", "get_metadata_routing", "merge"}


def arguments(method):
    """Names of the arguments of a method that have one."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [name for name, p in inspect.signature(method).parameters.items() if p.kind not in kinds]


def works_or_refuses(call, *given, **named):
    """``call`` gives a result, or an error of the one family; other errors are not caught."""
    with warnings.catch_warnings(), suppress(ExanovaError):
        warnings.simplefilter("ignore")
        call(*given, **named)


def test_every_public_method_is_called_with_nonsense():
    public = {name for name, own in inspect.getmembers(FunctionalANOVA, callable) if not name.startswith("_")}
    assert public - WITHOUT_ARGUMENTS == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_nonsense_for_any_argument_of_a_method_is_refused_in_words_or_works(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    anova = FunctionalANOVA(verbose=False, link="log" if name == "relativities" else "identity")
    anova = anova.partial_fit(X, Y) if "moments" in name else anova.fit(X, Y + 1)
    needed = {k: anova if k == "other" else v for k, v in CALLS[name].items()}
    for argument, value in product(arguments(getattr(anova, name)), NONSENSE):
        called = getattr(clone(anova) if "fit" in name else anova, name)
        works_or_refuses(called, **{**needed, argument: value})


@pytest.mark.parametrize("name", FunctionalANOVA().get_params())
def test_nonsense_for_any_parameter_is_refused_in_words_or_works(name):
    for value in NONSENSE:
        works_or_refuses(FunctionalANOVA(verbose=False).set_params(**{name: value}).fit, X, Y)


@pytest.mark.parametrize("call", [load, FunctionalANOVA().merge])
def test_nonsense_for_what_reads_results_is_refused_in_words_or_works(call):
    for value in NONSENSE:
        works_or_refuses(call, value)


@pytest.mark.parametrize(
    ("name", "needed"),
    {
        "explain": {"X": X},
        "interactions": {"X": X},
        "importance": {},
        "difference": {"rows_a": X, "by": "color"},
        "reasons": {"X": X},
    }.items(),
)
def test_a_text_is_no_answer_to_whether_there_are_standard_errors(name, needed):
    with pytest.raises(InputError, match="stderr='no' was given; expected True or False"):
        getattr(fitted(), name)(**needed, stderr="no")


@pytest.mark.parametrize("call", [load, *(getattr(fitted(), name) for name in ("save", "report", "export"))])
def test_a_number_is_no_path(call):
    raises(InputTypeError, r"path=1 was given; expected a path", lambda: call(1))


@pytest.mark.parametrize("seed", [1.5, True, "7", -1])
def test_the_seed_of_refits_is_a_whole_number(seed):
    raises(
        InputError,
        r"random_state=.* was given; expected a whole number",
        lambda: fitted().errors("bootstrap", random_state=seed),
    )
