"""Numbers that carry an index of pandas belong to the rows with those labels; masks are never dropped."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA, Support
from exanova.data import Table, evaluate
from exanova.data.observe import observe, read_rows, values_at
from exanova.errors import InputError, InputTypeError, ModelError

LABELS = ["p", "q", "r", "s"]
CELLS = ["a", "b", "c", "d"]
OUTPUTS = np.array([1.0, 2.0, 4.0, 8.0])
FRAME = pd.DataFrame({"a": CELLS}, index=LABELS)
ORDERS = st.permutations(range(4))


def as_series(order, labels=LABELS):
    return pd.Series(OUTPUTS, index=labels).iloc[list(order)]


def as_frame(order, labels=LABELS):
    return pd.DataFrame({"u": OUTPUTS, "v": -OUTPUTS}, index=labels).iloc[list(order)]


def first_output(values):
    return np.asarray(values).reshape(4, -1)[:, 0].tolist()


def everywhere(X, outputs):
    """The outputs at the rows of ``X`` by every way in which outputs enter; they have to be the same."""
    anova = FunctionalANOVA(shrinkage=None).fit(
        X, OUTPUTS if np.ndim(outputs) == 1 else np.stack([OUTPUTS, -OUTPUTS], axis=1)
    )
    yield first_output(observe(X, outputs).values.values)
    yield first_output(values_at(X, outputs, read_rows(X).encoding))
    yield first_output(anova.explain(X, outputs).residual + anova.predict(X))
    assert anova.score(X, outputs) == pytest.approx(1.0)
    assert (
        FunctionalANOVA(shrinkage=None).fit(X, OUTPUTS, eval_set=(X, as_series([0, 1, 2, 3]))).certificate_.r2_eval[0]
        == 1.0
    )


@settings(max_examples=10)
@given(ORDERS, st.sampled_from([as_series, as_frame]))
def test_outputs_in_another_order_are_matched_by_label(order, form):
    for found in everywhere(FRAME, form(order)):
        assert found == pytest.approx(OUTPUTS.tolist())


@settings(max_examples=10)
@given(ORDERS, ORDERS)
def test_weights_are_matched_by_label(order, other):
    weights = pd.Series([1, 0, 3, 5], index=LABELS)
    shuffled = FRAME.iloc[list(order)]
    seen = observe(shuffled, as_series(other), sample_weight=weights.iloc[list(other)])
    levels = [seen.support.levels[0][code] for code in seen.support.codes[0]]
    assert dict(zip(levels, seen.support.weight.tolist(), strict=True)) == {"a": 1, "c": 3, "d": 5}
    assert dict(zip(levels, seen.values.values[:, 0].tolist(), strict=True)) == {"a": 1.0, "c": 4.0, "d": 8.0}


REFUSED = {
    "a fresh index": pd.Series(OUTPUTS),
    "an absent label": pd.Series(OUTPUTS, index=["p", "q", "r", "z"]),
    "a repeated label": pd.Series(OUTPUTS, index=["p", "q", "r", "r"]),
    "a fresh index of a frame": pd.DataFrame({"u": OUTPUTS}),
    "another kind of label": pd.Series(OUTPUTS, index=pd.MultiIndex.from_product([["p", "q"], [1, 2]])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_outputs_with_other_labels_are_refused(name):
    outputs = REFUSED[name]
    anova = FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS)
    calls = [
        lambda: FunctionalANOVA(shrinkage=None).fit(FRAME, outputs),
        lambda: FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS, eval_set=(FRAME, outputs)),
        lambda: anova.explain(FRAME, outputs),
        lambda: anova.score(FRAME, outputs),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"another index than X: .*\.to_numpy\(\)"):
            call()
    FunctionalANOVA(shrinkage=None).fit(FRAME, outputs.to_numpy())


def test_a_report_reads_outputs_by_label(tmp_path):
    anova = FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS)
    anova.report(tmp_path / "r.json", X=FRAME, model=as_series([3, 2, 1, 0]))
    with pytest.raises(InputError, match="another index than X"):
        anova.report(tmp_path / "r.json", X=FRAME, model=pd.Series(OUTPUTS))


def test_weights_with_other_labels_are_refused():
    with pytest.raises(InputError, match="The weights have another index than X: 4 of its 4 labels are absent"):
        FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS, sample_weight=pd.Series([1, 2, 3, 4]))
    anova = FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS)
    with pytest.raises(InputError, match="The weights have another index than X"):
        anova.score(FRAME, OUTPUTS, sample_weight=pd.Series([1, 2, 3, 4]))


def test_labels_may_be_intervals_that_overlap():
    labels = pd.IntervalIndex.from_tuples([(0, 2), (1, 3), (0, 1), (0, 3)])
    frame = pd.DataFrame({"a": CELLS}, index=labels)
    assert observe(frame, as_series([2, 0, 1, 3], labels)).values.values[:, 0].tolist() == OUTPUTS.tolist()


def test_repeated_labels_in_the_same_order_go_by_position():
    twice = pd.DataFrame({"a": CELLS}, index=["p", "p", "q", "q"])
    assert observe(twice, pd.Series(OUTPUTS, index=twice.index)).values.values[:, 0].tolist() == OUTPUTS.tolist()
    with pytest.raises(InputError, match="labels are repeated"):
        observe(twice, pd.Series(OUTPUTS, index=["q", "q", "p", "p"]))


@pytest.mark.parametrize("X", [FRAME.to_numpy(), pl.DataFrame({"a": CELLS})])
def test_rows_without_an_index_take_outputs_by_position(X):
    assert observe(X, as_series([1, 0, 2, 3])).values.values[:, 0].tolist() == [2.0, 1.0, 4.0, 8.0]


def value_of(X):
    return pd.Series([OUTPUTS[CELLS.index(cell)] for cell in X["a"]], index=X.index)


@settings(max_examples=20)
@given(ORDERS, st.integers(1, 4), st.booleans())
def test_what_a_model_returns_in_another_order_is_matched_by_label(order, batch_size, framed):
    def shuffling(X):
        out = value_of(X).iloc[[k for k in order if k < len(X)]]
        return out.to_frame() if framed else out

    seen = evaluate(shuffling, Table.read(FRAME), np.arange(4), batch_size=batch_size)
    assert seen.values[:, 0].tolist() == OUTPUTS.tolist()


def test_a_model_may_sort_its_rows_or_return_a_fresh_index():
    shuffled = pd.DataFrame({"a": CELLS}, index=[2, 0, 3, 1])
    by_label = evaluate(lambda X: value_of(X).sort_index(), Table.read(shuffled), np.arange(4))
    assert by_label.values[:, 0].tolist() == OUTPUTS.tolist()
    fresh = evaluate(lambda X: value_of(X).reset_index(drop=True), Table.read(FRAME), np.arange(4))
    assert fresh.values[:, 0].tolist() == OUTPUTS.tolist()


def test_an_index_that_may_mean_two_things_is_refused():
    shuffled = pd.DataFrame({"a": CELLS}, index=[2, 0, 3, 1])
    with pytest.raises(ModelError, match=r"both are the same numbers\. Let it return \.to_numpy\(\)"):
        evaluate(lambda X: value_of(X).reset_index(drop=True), Table.read(shuffled), np.arange(4))


@pytest.mark.parametrize("labels", [["p", "q", "r", "z"], [1, 2, 3, 4], ["p", "p", "q", "r"]])
def test_a_model_that_returns_other_labels_is_refused(labels):
    with pytest.raises(ModelError, match="returned a pandas Series with another index than the rows it was given"):
        evaluate(lambda X: pd.Series(OUTPUTS, index=labels), Table.read(FRAME), np.arange(4))


MASKED = np.ma.masked_array(OUTPUTS, mask=[False, True, False, False])


def test_masked_outputs_are_missing_outputs():
    with pytest.raises(InputError, match=r"in 1 row, the first is row 1 \(masked entries count as NaN\)"):
        FunctionalANOVA(shrinkage=None).fit(FRAME, MASKED)
    kept = observe(FRAME, MASKED, sample_weight=[1, 0, 1, 1])
    assert kept.values.values[:, 0].tolist() == [1.0, 4.0, 8.0]
    whole = np.ma.masked_array(OUTPUTS.astype(int), mask=False)
    assert observe(FRAME, whole).values.values[:, 0].tolist() == OUTPUTS.tolist()


@pytest.mark.parametrize("dtype", [float, int, bool, object])
def test_a_model_that_returns_a_masked_array_is_refused(dtype):
    with pytest.raises(ModelError, match="mask"):
        FunctionalANOVA(shrinkage=None).fit(FRAME, lambda X: MASKED.astype(dtype))


def test_other_masks_are_refused():
    with pytest.raises(InputError, match="The weights are a masked array, and 1 of its entries are masked; fill them"):
        FunctionalANOVA(shrinkage=None).fit(FRAME, OUTPUTS, sample_weight=MASKED)
    with pytest.raises(InputError, match="The probabilities are a masked array"):
        Support.from_pmf(MASKED)
    with pytest.raises(InputError, match="The probabilities of margin 1 are a masked array"):
        Support.from_product([[0.5, 0.5], MASKED])
    pairs = np.ma.masked_array([("u", 1), ("v", 2)], mask=[(0, 1), (0, 0)], dtype=[("a", "U1"), ("b", int)])
    for masked in (MASKED.reshape(4, 1), pairs, pairs["b"].reshape(2, 1)):
        with pytest.raises(InputTypeError, match="X is a masked array"):
            FunctionalANOVA(shrinkage=None).fit(masked, OUTPUTS[: len(masked)])


def test_a_masked_cell_is_missing():
    cells = np.array([["u"], [None], ["v"]], dtype=object)
    cells[1, 0] = np.ma.masked
    assert read_rows(cells).encoding.levels == (("u", "v", None),)
