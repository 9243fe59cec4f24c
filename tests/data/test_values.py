"""Model values: any model, any batch, one array; whatever it does wrong is said."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from exanova.data import Table, align, average, evaluate
from exanova.errors import InputError, InputTypeError, ModelError

X = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
TABLE = Table.read(X)
ALL = np.arange(4)


@pytest.mark.parametrize("batch_size", [None, 1, 3, 100])
def test_batches_change_nothing_but_the_calls(batch_size):
    seen = []

    def model(rows):
        seen.append(len(rows))
        return np.column_stack([rows.sum(axis=1), rows[:, 0]])

    rows = np.array([3, 1, 0])
    values = evaluate(model, TABLE, rows, batch_size=batch_size)
    assert values.values.tolist() == [[0, 0], [2, 1], [1, 0]]
    assert values.values.dtype == np.float64
    assert (sum(seen), values.calls, max(seen)) == (3, 3, min(3, batch_size or 3))
    assert not values.within.any()
    assert values.output_names == ("output 0", "output 1")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_the_model_receives_the_kind_of_table_that_was_given(make):
    native = make({"a": ["u", "v", "w"], "b": [1, 2, 3]})

    def model(rows):
        assert type(rows) is type(native)
        assert list(rows.columns) == ["a", "b"]
        assert list(rows.dtypes) == list(native.dtypes)
        return rows["b"]

    assert evaluate(model, Table.read(native), np.array([2, 0])).values.tolist() == [[3], [1]]


def test_one_number_a_row_is_told_from_a_vector_of_one():
    assert evaluate(lambda rows: rows[:, 0], TABLE, ALL).single
    assert not evaluate(lambda rows: rows[:, :1], TABLE, ALL).single
    assert evaluate(lambda rows: [True, False, True, True], TABLE, ALL).values.tolist() == [[1], [0], [1], [1]]


def test_estimators_are_asked_for_probabilities_first():
    y = np.array(["no", "yes", "yes", "no"])
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    values = evaluate(forest, TABLE, ALL)
    assert (values.output_names, values.single) == (("P(yes)",), True)
    assert (values.values[:, 0] == forest.predict_proba(X)[:, 1]).all()
    both = evaluate(forest, TABLE, ALL, response_method="predict_proba")
    assert both.output_names == ("no", "yes")
    assert (both.values == forest.predict_proba(X)).all()
    three = RandomForestClassifier(5, random_state=0).fit(X, ["u", "v", "w", "u"])
    assert evaluate(three, TABLE, ALL).output_names == ("u", "v", "w")
    tree = DecisionTreeRegressor().fit(X, [0.0, 1, 2, 3])
    assert evaluate(tree, TABLE, ALL).values[:, 0].tolist() == [0, 1, 2, 3]
    logistic = LogisticRegression().fit(X, y)
    decision = evaluate(logistic, TABLE, ALL, response_method="decision_function")
    assert (decision.values[:, 0] == logistic.decision_function(X)).all()
    assert (decision.single, decision.output_names) == (True, ("output 0",))
    with pytest.raises(ModelError, match=r"not real numbers.*response_method='predict_proba'"):
        evaluate(forest, TABLE, ALL, response_method="predict")


def test_a_callable_estimator_is_an_estimator():
    class Both:
        def __call__(self, rows):
            raise AssertionError

        def predict(self, rows):
            return rows[:, 0]

    assert evaluate(Both(), TABLE, ALL).values[:, 0].tolist() == X[:, 0].tolist()


def test_names_given_come_first():
    assert evaluate(lambda rows: rows, TABLE, ALL, output_names=["p", "q"]).output_names == ("p", "q")
    assert evaluate(lambda rows: rows[:, 0], TABLE, ALL, output_names="p").output_names == ("p",)
    for names in (["p"], ["p", "p"]):
        with pytest.raises(InputError, match=r"output_names=.* were given for 2 output"):
            evaluate(lambda rows: rows, TABLE, ALL, output_names=names)


def test_a_model_that_raises_is_shown_with_its_cause():
    with pytest.raises(ModelError, match=r"raised ZeroDivisionError on 4 rows.*numpy table") as caught:
        evaluate(lambda rows: 1 / 0, TABLE, ALL)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ModelError, match="not fitted yet") as caught:
        evaluate(RandomForestClassifier(), TABLE, ALL)
    assert isinstance(caught.value.__cause__, NotFittedError)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda rows: rows[:-1, 0], "3 rows of outputs for 4 rows"),
        (lambda rows: 1.0, "of type float"),
        (lambda rows: np.zeros((4, 1, 1)), r"shape is \(4, 1, 1\)"),
        (lambda rows: np.zeros((4, 0)), "There are no outputs"),
        (lambda rows: ["a"] * 4, "of type str_, not real numbers"),
        (lambda rows: np.array([None] * 4), "of type NoneType"),
        (lambda rows: np.array(["1"] * 4, dtype=object), "of type str"),
        (lambda rows: np.zeros(4, dtype=complex), "of type complex128"),
        (lambda rows: [[1], [1, 2], [1], [1]], "cannot be read as an array"),
        (lambda rows: np.array([0, np.nan, np.inf, 0]), "on 2 of 4 rows, the first is row 2 of the table"),
        (lambda rows: np.array([[0, 0], [0, 0], [0, np.nan], [0, 0]]), "on 1 of 4 rows, the first is row 1"),
        (lambda rows: None, "of type NoneType"),
    ],
)
def test_what_a_model_may_not_return(model, message):
    with pytest.raises(ModelError, match=message):
        evaluate(model, TABLE, np.array([3, 2, 1, 0]))


def test_what_a_nullable_array_misses_is_nan():
    for kind, cells in (("Float64", [0.5, None, 2.0, 3.0]), ("Int64", [1, None, 0, 3]), ("boolean", [True, None] * 2)):
        missing = pd.array(cells, dtype=kind)
        for outputs in (missing, pd.Series(missing), missing.reshape(4, 1), list(missing)):
            with pytest.raises(ModelError, match=r"NaN or infinity on [12] of 4 rows, the first is row [1] of") as told:
                evaluate(lambda rows, outputs=outputs: outputs, TABLE, ALL)
            assert "masked" not in str(told.value)
        present = pd.array([1, 0, 1, 1], dtype=kind)
        assert evaluate(lambda rows, present=present: present, TABLE, ALL).values[:, 0].tolist() == [1, 0, 1, 1]


def test_the_width_stays_the_same_over_batches():
    with pytest.raises(ModelError, match=r"\(3, 3\) on the first batch and \(1, 1\) on batch 2"):
        evaluate(lambda rows: np.zeros((len(rows), len(rows))), TABLE, ALL, batch_size=3)


def test_numbers_in_an_object_array_are_numbers():
    assert evaluate(lambda rows: pd.Series([1, 2.5, 3, 4], dtype=object), TABLE, ALL).values[1, 0] == 2.5


@pytest.mark.parametrize("model", [3, RandomForestClassifier, None])
def test_a_model_is_a_callable_or_an_estimator(model):
    with pytest.raises(InputTypeError, match="expected a callable or a fitted estimator"):
        evaluate(model, TABLE, ALL)


def test_options_are_checked():
    with pytest.raises(InputError, match="response_method='proba'"):
        evaluate(len, TABLE, ALL, response_method="proba")
    with pytest.raises(InputError, match="batch_size=0"):
        evaluate(len, TABLE, ALL, batch_size=0)
    with pytest.raises(InputError, match=r"DecisionTreeRegressor has no predict_proba.*: predict"):
        evaluate(DecisionTreeRegressor(), TABLE, ALL, response_method="predict_proba")


def test_outputs_given_beside_the_rows():
    assert align([1, 2], 2).single
    frame = pd.DataFrame({"p": [1.0, 2.0], "q": [3.0, 4.0]})
    assert align(frame, 2).output_names == ("p", "q")
    assert align(pl.DataFrame(frame.to_dict("list")), 2).values.tolist() == [[1, 3], [2, 4]]
    assert align([1, np.nan, 3], 3, kept=np.array([0, 2])).values.tolist() == [[1], [3]]
    assert align([1, 2], 2).calls == 0


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([1, 2, 3], "3 rows of outputs for 2 rows"),
        (["a", "b"], "encode labels as numbers"),
        ([1, np.nan], r"NaN or infinite in 1 row, the first is row 1"),
        ([[1, np.inf], [0, 0]], "the first is row 0"),
        (3.0, "of type float"),
    ],
)
def test_unusable_outputs(outputs, message):
    with pytest.raises(InputError, match=message):
        align(outputs, 2)


def test_the_row_shown_is_a_row_as_given():
    with pytest.raises(InputError, match="the first is row 2"):
        align([1, np.nan, np.nan], 3, kept=np.array([0, 2]))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.floats(-5, 5)), min_size=1, max_size=30))
@settings(deadline=None)
def test_variance_is_that_of_the_means_plus_that_within(rows):
    group, weight, y = (np.array(part) for part in zip(*rows, strict=True))
    group = np.unique(group, return_inverse=True)[1]
    r = group.max() + 1
    means, within = average(np.column_stack([y, 2 * y]), group, weight, r)
    for g in range(r):
        np.testing.assert_allclose(means[g, 0], np.average(y[group == g], weights=weight[group == g]), atol=1e-12)
    p = weight / weight.sum()
    total = p @ (y - p @ y) ** 2
    between = p @ (means[group, 0] - p @ y) ** 2
    mass = np.bincount(group, weights=p)
    np.testing.assert_allclose(mass @ within[:, 0], total - between, atol=1e-10)
    np.testing.assert_allclose(within[:, 1], 4 * within[:, 0], atol=1e-10)


def test_large_offsets_do_not_cancel():
    y = 1e12 + np.array([[0.0], [1.0], [5.0], [5.0]])
    means, within = average(y, np.array([0, 0, 1, 1]), np.array([1, 1, 1, 1]), 2)
    assert (means[:, 0] - 1e12).tolist() == [0.5, 5.0]
    assert within.tolist() == [[0.25], [0.0]]


@given(st.floats(-1e6, 1e6), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
def test_equal_values_average_to_themselves(value, weight):
    n = len(weight)
    means, within = average(np.full((n, 1), value), np.zeros(n, dtype=np.int64), np.array(weight), 1)
    assert means.tolist() == [[value]]
    assert within.tolist() == [[0.0]]
