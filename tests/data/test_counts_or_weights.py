"""Whole weights that are taken as counts, and do not look like counts, are said to be."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from exanova.errors import WeightsWarning

N = 240
RNG = np.random.default_rng(0)
SURVEY = pd.DataFrame({"a": RNG.choice(list("xyz"), N), "age": RNG.normal(50, 9, N), "c": RNG.choice(["u", "v"], N)})
Y = (SURVEY["a"] == "x") + SURVEY["age"] / 10 + RNG.normal(0, 0.3, N)
WEIGHT = RNG.integers(500, 3000, N)


def caught(rows, outputs, weight, parameters=None, **given):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        FunctionalANOVA(**(parameters or {})).fit(rows, outputs, sample_weight=weight, **given)
    return [warning for warning in found if warning.category is WeightsWarning]


@pytest.mark.parametrize("given", [{}, {"eval_set": 0.3}, {"clusters": np.arange(N) // 2}])
@pytest.mark.parametrize("columns", [["a", "age", "c"], ["a", "c"]])
def test_survey_weights_that_are_whole_are_said_to_be_counts_once(columns, given):
    (warning,) = caught(SURVEY[columns], Y, WEIGHT, **given)
    assert warning.filename == __file__
    assert f"{N} rows stand for {WEIGHT.sum():,}" in str(warning.message)
    assert "weights='probability'" in str(warning.message)
    assert "weights='frequency'" in str(warning.message)


@pytest.mark.parametrize("weights", ["probability", "frequency"])
def test_a_choice_settles_it(weights):
    assert caught(SURVEY, Y, WEIGHT, weights=weights) == []


def test_what_does_not_look_like_survey_weights_is_not_questioned():
    cells = pd.DataFrame(product("xyz", "uv", "pqrs"), columns=["a", "b", "c"])
    counts = RNG.integers(50, 5000, len(cells))
    assert caught(cells, np.arange(len(cells)) % 5, counts) == []  # a table of counts
    twice = pd.concat([cells, cells], ignore_index=True)  # of two outcomes in every cell
    assert caught(twice, np.repeat([0.0, 1.0], len(cells)), np.tile(counts, 2)) == []
    assert caught(twice, np.zeros(len(twice)), np.tile(counts, 2)) == []  # few rows, some columns left out
    many = pd.concat([cells] * 10, ignore_index=True)
    assert len(caught(many, np.zeros(len(many)), np.tile(counts, 10))) == 1
    assert caught(SURVEY, Y, WEIGHT / 7) == []
    assert caught(SURVEY, Y, RNG.integers(1, 20, N)) == []
    assert caught(SURVEY, Y, None) == []
    assert caught(SURVEY, Y, WEIGHT, {"sampled": False}) == []


CELLS = pd.DataFrame(product("xyz", "uv", "pqrs"), columns=["a", "b", "c"])
COUNTS = RNG.integers(50, 5000, len(CELLS))
TWICE, MANY = pd.concat([CELLS] * 12, ignore_index=True), pd.concat([CELLS] * 300, ignore_index=True)
LONG = pd.DataFrame({"a": np.arange(9000) % 95, "b": np.arange(9000) // 95})


@pytest.mark.parametrize(
    ("rows", "outputs", "weight", "surveyed"),
    [
        (SURVEY, Y, WEIGHT, True),
        (SURVEY[["a", "c"]], Y, WEIGHT, True),
        (SURVEY, Y, WEIGHT / 7, False),
        (SURVEY, Y, RNG.integers(1, 20, N), False),
        (CELLS, np.arange(len(CELLS)) % 5, COUNTS, False),
        (TWICE, np.repeat(np.arange(12.0), len(CELLS)), np.tile(COUNTS, 12), False),
        (TWICE, np.repeat(np.arange(6.0), 2 * len(CELLS)), np.tile(COUNTS, 12), True),
        (MANY, np.zeros(len(MANY)), np.tile(COUNTS, 300), True),
        (LONG, np.arange(9000) % 2, np.arange(9000) % 50 + 30, False),
        (LONG // 2, np.zeros(9000), np.arange(9000) % 50 + 30, True),
    ],
)
@pytest.mark.parametrize("block", [64, 2**18])
def test_rows_that_are_read_in_blocks_are_questioned_as_in_memory(
    tmp_path, monkeypatch, rows, outputs, weight, surveyed, block
):
    monkeypatch.setattr("exanova.sources.parts.BLOCK_ROWS", block)
    monkeypatch.setattr("exanova.sources.sketch.KEPT", 512)
    table = rows.assign(y=outputs, w=weight)
    for k in range(2):
        table[k::2].to_parquet(tmp_path / f"{k}.parquet", index=False)
    parameters = {"max_order": 1, "n_bins": {"age": 4} if "age" in rows else "auto"}
    told = [str(one.message) for one in caught(rows, np.asarray(outputs, float), weight, parameters)]
    assert len(told) == surveyed
    found = caught(str(tmp_path), "y", "w", parameters)
    assert [str(one.message) for one in found] == told
    assert all(one.filename == __file__ for one in found)
    assert caught(str(tmp_path), "y", "w", parameters, weights="probability") == []
