"""The whole path: each distinct row asked once, equal rows averaged, rows of weight zero absent."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from exanova.data import Support, Table, observe
from exanova.errors import InputError, InputTypeError, UnknownLevelError

tables = st.tuples(st.integers(1, 20), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, 2))
)


def model(rows):
    rows = np.asarray(rows)
    return rows.astype(float) @ (1.0 + np.arange(rows.shape[1])) ** 2


def cells(observation):
    """Probability and values by level."""
    support = observation.support
    levels = [[own[k] for k in codes] for own, codes in zip(support.levels, support.codes, strict=True)]
    entries = zip(zip(*levels, strict=True), support.probability, observation.values.values, strict=True)
    return {row: (round(float(p), 12), value.tolist()) for row, p, value in entries}


@given(tables)
@settings(max_examples=50, deadline=None)
def test_the_model_sees_each_distinct_row_once(X):
    asked = []

    def recording(rows):
        asked.extend(map(tuple, rows.tolist()))
        return model(rows)

    before = X.copy()
    observation = observe(X, recording)
    assert (before == X).all()
    assert asked == list(dict.fromkeys(map(tuple, X.tolist())))
    assert observation.values.calls == len(asked) == observation.support.n_rows
    assert not observation.values.within.any()
    assert observation.sample.rows == len(X)
    assert cells(observation) == cells(observe(X, model(X)))


@given(tables)
@settings(max_examples=50, deadline=None)
def test_every_library_gives_the_same_observation(X):
    frame = pd.DataFrame(X).add_prefix("x")
    natives = [frame, pl.DataFrame(frame.to_dict("list")), pl.DataFrame(frame.to_dict("list")).to_arrow()]
    expected = observe(X, model)
    for native, kind in zip(natives, ["pandas", "polars", "pyarrow"], strict=True):
        observation = observe(native, model)
        assert observation.table_kind == kind
        assert observation.encoding == expected.encoding
        assert (observation.support.codes == expected.support.codes).all()
        assert (observation.values.values == expected.values.values).all()


@given(tables, st.data())
@settings(max_examples=50, deadline=None)
def test_rows_of_weight_zero_are_absent(X, data):
    weight = np.array(data.draw(st.lists(st.sampled_from([0, 1, 2]), min_size=len(X), max_size=len(X))))
    weight[0] = 1
    kept = weight > 0
    outputs = np.where(kept, model(X), np.nan)

    def careful(rows):
        present = set(map(tuple, X[kept].tolist()))
        assert all(tuple(row) in present for row in rows.tolist())
        return model(rows)

    expected = observe(X[kept], model, sample_weight=weight[kept])
    for observation in (
        observe(X, careful, sample_weight=weight),
        observe(X, outputs, sample_weight=weight),
        observe(np.repeat(X, weight, axis=0), model),
    ):
        assert observation.encoding == expected.encoding
        assert cells(observation) == cells(expected)


@given(tables, st.data())
@settings(max_examples=30, deadline=None)
def test_splitting_weights_changes_nothing(X, data):
    y = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=len(X), max_size=len(X))), dtype=float)
    whole = observe(X, y, sample_weight=np.full(len(X), 1.0))
    split = observe(np.vstack([X, X]), np.concatenate([y, y]), sample_weight=np.repeat([0.25, 0.75], len(X)))
    assert whole.encoding == split.encoding
    assert list(cells(whole)) == list(cells(split))
    np.testing.assert_allclose(whole.values.values, split.values.values, atol=1e-13)
    np.testing.assert_allclose(whole.values.within, split.values.within, atol=1e-13)


def test_rows_made_equal_by_bins_are_averaged_after_the_model():
    x = np.array([0.0, 1.0, 1.0, 9.0, 10.0])
    observation = observe(x[:, None], lambda rows: rows[:, 0], n_bins={"x0": 2}, strategy="uniform")
    assert observation.values.calls == 4
    assert observation.support.weight.tolist() == [3, 2]
    np.testing.assert_allclose(observation.values.values[:, 0], [2 / 3, 9.5])
    np.testing.assert_allclose(observation.values.within[:, 0], [np.var([0, 1, 1]), np.var([9, 10])])
    given = observe(x[:, None], x, n_bins={"x0": 2}, strategy="uniform")
    np.testing.assert_allclose(given.values.values, observation.values.values)
    np.testing.assert_allclose(given.values.within, observation.values.within)


def test_rows_made_equal_by_merging_are_averaged():
    frame = pd.DataFrame({"a": ["u", "u", "p", "q"]})
    observation = observe(frame, lambda rows: rows["a"].map({"u": 0.0, "p": 1.0, "q": 3.0}), min_frequency=2)
    assert observation.support.labels == (("u", "(other)"),)
    assert observation.values.values.tolist() == [[0.0], [2.0]]
    assert observation.values.within.tolist() == [[0.0], [1.0]]


def test_a_support_in_place_of_a_table():
    support = Support.from_pmf([[0.5, 0.25], [0.25, 0.0]], levels=[["u", "v"], [1, 2]])
    observation = observe(support, lambda rows: [row[1] + (row[0] == "v") for row in rows])
    assert observation.support is support
    assert observation.values.values[:, 0].tolist() == [1, 2, 2]
    assert observation.encoding.levels == support.levels
    assert observe(support, [1.0, 2.0, 2.0]).values.values[:, 0].tolist() == [1, 2, 2]
    with pytest.raises(InputError, match="a Support has its weights"):
        observe(support, model, sample_weight=[1, 2, 3])
    with pytest.raises(InputError, match="3 rows"):
        observe(support, [1.0])


def test_missing_values_are_a_level_and_the_model_sees_them():
    frame = pl.DataFrame({"a": ["u", None, None]})
    observation = observe(frame, lambda rows: rows["a"].is_null())
    assert observation.support.labels == (("u", "(missing)"),)
    assert observation.values.values[:, 0].tolist() == [0, 1]
    learned = observe(frame[:1], lambda rows: np.zeros(len(rows))).encoding
    with pytest.raises(UnknownLevelError, match="missing"):
        learned.encode(Table.read(frame))


def test_what_is_neither_table_nor_model_is_named():
    with pytest.raises(InputTypeError, match="expected a pandas, polars or pyarrow table"):
        observe([[1, 2]], model)
    with pytest.raises(InputError, match="not usable"):
        observe(np.zeros((2, 1)), None)


def test_importing_needs_none_of_the_libraries_it_reads():
    script = (
        "import sys, exanova.data; "
        "assert not {'pandas', 'polars', 'pyarrow', 'sklearn', 'scipy'} & set(sys.modules), 'heavy import'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
