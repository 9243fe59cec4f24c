"""A model that does not repeat itself is found out by a second call on a few rows; one that does never is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.repeating import PROBED, with_second_call
from exanova.data.table import Table
from exanova.data.values import evaluate

ROWS = pd.DataFrame([(a, b, c) for a in "uvw" for b in "xyz" for c in range(3)][:-1] * 20, columns=list("abc"))
NOT_REPEATED = "gave other outputs when it was called on a few rows again"


def smooth(rows):
    return (rows["a"] == "u") * 1.0 + rows["c"] * (rows["b"] == "x")


class Random:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, rows):
        return smooth(rows) + self.rng.normal(0, 0.5, len(rows))


class Counting:
    calls = 0

    def __call__(self, rows):
        self.calls += 1
        return smooth(rows) + self.calls


class OnlyOnce(Counting):
    def __call__(self, rows):
        if self.calls:
            raise StopIteration("no more outputs")
        return super().__call__(rows)


NO_FUNCTIONS = {
    "draws at random": Random,
    "counts its calls": Counting,
    "gives outputs once": OnlyOnce,
    "centres the rows of a call": lambda: lambda rows: smooth(rows) - smooth(rows).mean(),
    "numbers the rows of a call": lambda: lambda rows: np.arange(len(rows)) * 1.0,
    "outputs of a table it was not given": lambda: lambda rows: np.random.default_rng(1).normal(size=999)[: len(rows)],
}


@pytest.mark.parametrize("kind", NO_FUNCTIONS)
@pytest.mark.parametrize("where", ["in memory", "in blocks", "with many levels"])
def test_what_is_no_function_of_the_rows_does_not_hold(kind, where, tmp_path):
    rows = ROWS
    if where == "with many levels":
        rows = rows.assign(d=[f"level {k % 60}" for k in range(len(rows))])
    if where == "in blocks":
        rows.to_parquet(tmp_path / "rows.parquet", index=False)
        rows = str(tmp_path / "rows.parquet")
    anova = FunctionalANOVA(max_order=3 if where != "with many levels" else 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = anova.fit(rows, NO_FUNCTIONS[kind]()).certificate_
    assert sum(NOT_REPEATED in str(warning.message) for warning in caught) == 1
    assert certificate.holds is None
    assert "not measured: the model gave other outputs when it was called again" in str(certificate)


FUNCTIONS = {
    "a function": smooth,
    "in single precision": lambda rows: (1000 + smooth(rows)).astype(np.float32),
    "of rounding in another order": lambda rows: smooth(rows) * (1 + 1e-8 * len(rows)) + 1e-7 * len(rows),
    "constant": lambda rows: np.full(len(rows), 0.1),
    "of several outputs": lambda rows: np.column_stack([smooth(rows), -1e6 * smooth(rows)]),
    "with a trace of noise": lambda rows: smooth(rows) + np.random.default_rng().uniform(-1e-4, 1e-4, len(rows)),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("batch_size", [None, 5])
def test_a_function_of_the_rows_is_trusted(kind, batch_size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = FunctionalANOVA(max_order=3, batch_size=batch_size).fit(ROWS, FUNCTIONS[kind]).certificate_
    assert certificate.holds is not None


def test_held_out_rows_measure_a_random_model_as_they_measure_noise():
    with pytest.warns(UserWarning, match=NOT_REPEATED):
        certificate = FunctionalANOVA(shrinkage=None).fit(ROWS, Random(), eval_set=(ROWS, Random())).certificate_
    assert certificate.holds is not None


def test_outputs_that_were_given_are_not_asked_for_again():
    anova = FunctionalANOVA(max_order=1).fit(ROWS, np.random.default_rng(0).normal(size=len(ROWS)), eval_set=0.3)
    assert anova.certificate_.r2_eval is not None


@given(st.integers(1, 40), st.integers(1, 9))
def test_the_second_call_is_on_some_of_the_rows_in_another_order(rows, batch_size):
    seen = []

    def model(table):
        seen.append(table[:, 0].tolist())
        return table[:, 0] * 2.0

    table, every = Table.read(np.arange(rows)[:, None]), np.arange(rows)
    values = evaluate(model, table, every, batch_size=batch_size)
    first = len(seen)
    assert with_second_call(values, model, table, every, "auto", batch_size).repeats
    again = [row for batch in seen[first:] for row in batch]
    assert again == sorted(set(again), reverse=True)
    assert len(again) == min(PROBED, (rows + 1) // 2)
    assert set(again) <= set(range(rows))


def test_a_block_on_which_a_model_is_random_is_enough(tmp_path):
    """Of two files, the model is a function on one."""
    rng = np.random.default_rng(0)

    def model(rows):
        return smooth(rows) + rng.normal(size=len(rows)) * (rows["a"] == "u")

    for name, rows in (("1", ROWS[ROWS["a"] == "u"]), ("2", ROWS[ROWS["a"] != "u"])):
        rows.to_parquet(tmp_path / f"{name}.parquet", index=False)
    with pytest.warns(UserWarning, match=NOT_REPEATED):
        FunctionalANOVA(max_order=1).fit(str(tmp_path), model)
