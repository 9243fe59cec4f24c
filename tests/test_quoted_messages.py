"""What users were told wrongly once, and what they are told now: one test per message."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from exanova import FunctionalANOVA, load
from exanova.cli.entry import run
from exanova.data import table
from exanova.errors import InputError, UnknownFeatureError

RNG = np.random.default_rng(5)
N = 300
HOUSES = pd.DataFrame(
    {
        "area": RNG.integers(300, 4000, N),
        "price": RNG.lognormal(12, 0.5, N).round(2),
        "sold": pd.Timestamp("2010-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "late": np.where(np.arange(N) % 8 < 7, 0, RNG.integers(1, 60, N)),
        "zone": RNG.choice(["RL", "RM"], N),
    }
)
VALUE = np.log(HOUSES["price"]) + (HOUSES["area"] > 2000) + 0.5 * (HOUSES["late"] > 0)


def quiet(**parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(max_order=1, **parameters).fit(HOUSES, VALUE)


def test_integers_and_dates_are_cut_into_as_many_bins_as_numbers():
    five = quiet(n_bins=5)
    for name in ("area", "price", "sold"):
        assert len(five.effects_[name].levels) == 5
    assert five.certificate_.r2[0] < 1.0


def test_a_refusal_names_every_column_and_prints_a_call_that_works_when_pasted():
    with pytest.raises(InputError, match="hold numbers or times that look continuous") as caught:
        quiet(n_bins=None)
    message = str(caught.value)
    assert all(f"'{name}' (" in message for name in ("area", "price", "sold"))
    (call,) = re.findall(r"n_bins=(\{.*?\})", message)
    pasted = quiet(n_bins=eval(call))
    assert all(len(pasted.effects_[name].levels) == 8 for name in eval(call))


def test_zeros_that_most_rows_hold_are_a_level_of_their_own_and_no_constant():
    anova = quiet()
    levels = [level for (level,) in anova.effects_["late"].levels]
    assert levels[0] == "0"
    assert len(levels) > 1
    assert "late" in anova.effects_


def test_a_model_that_was_flipped_and_tripled_differs_in_every_effect():
    one = quiet(n_bins=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = FunctionalANOVA(max_order=1, n_bins=9).fit(HOUSES, -3.0 * VALUE)
    changes = {change.features: change for change in one.compare(other).changes}
    price = changes["price",]
    assert price.difference[0] == pytest.approx(16.0 * price.norm_before[0], rel=0.2)


def test_a_binary_classifier_is_one_output_and_both_when_asked():
    names = pd.get_dummies(HOUSES.drop(columns="sold"), dtype=float)
    model = GradientBoostingClassifier(n_estimators=5).fit(names, np.where(VALUE.median() < VALUE, "yes", "no"))
    assert FunctionalANOVA(max_order=1).fit(names, model).output_names_ == ("P(yes)",)
    both = FunctionalANOVA(max_order=1, response_method="predict_proba").fit(names, model)
    assert both.output_names_ == ("no", "yes")


def test_native_categories_from_csv_are_asked_for_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "native.py").write_text(
        "def model(rows):\n    assert str(rows['zone'].dtype) == 'category', 'Invalid columns: zone'\n"
        "    return rows['area'] / 1000 + (rows['zone'] == 'RL')\n"
    )
    HOUSES[["area", "zone"]].to_csv("rows.csv", index=False)
    assert run(["explain", "rows.csv", "--model", "native:model"]) == 2
    said = capsys.readouterr().err
    assert "Invalid columns: zone" in said
    assert "--categories" in said
    assert "Parquet" in said
    assert run(["explain", "rows.csv", "--model", "native:model", "--categories", "zone"]) == 0


def test_predictions_with_another_index_are_refused_and_the_same_labels_are_put_in_order():
    shuffled = VALUE.sample(frac=1.0, random_state=0)
    np.testing.assert_allclose(
        FunctionalANOVA(max_order=1).fit(HOUSES, shuffled).predict(HOUSES),
        FunctionalANOVA(max_order=1).fit(HOUSES, VALUE).predict(HOUSES),
    )
    with pytest.raises(InputError, match="outputs given in place of a model have another index than X"):
        FunctionalANOVA().fit(HOUSES, VALUE.set_axis(np.arange(N) + 7))


def test_an_effect_that_is_zero_and_one_that_was_left_out_are_told_apart():
    rows = HOUSES.assign(same="x")[["area", "price", "late", "zone", "same"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anova = FunctionalANOVA(max_terms=120).fit(rows, VALUE)
    assert not anova.effects_["same"].values.any()
    absent = next(
        pair for pair in (("late", "zone"), ("price", "zone"), ("area", "zone")) if pair not in list(anova.effects_)
    )
    with pytest.raises(UnknownFeatureError, match=r"left out by the budget.*not known to be zero"):
        anova.effects_[absent]


def test_a_file_gives_tables_of_a_library_that_is_installed(tmp_path, monkeypatch):
    rows = pl.DataFrame({"a": ["u", "v"] * 30, "b": ["x", "y", "z"] * 20})
    FunctionalANOVA(max_order=1).fit(rows, np.tile([0.0, 1.0, 5.0, 2.0, 3.0, 4.0], 10)).save(tmp_path / "a.exanova")
    assert isinstance(load(tmp_path / "a.exanova").importance(), pl.DataFrame)
    found = table.find_spec
    monkeypatch.setattr(table, "find_spec", lambda name: None if name == "polars" else found(name))
    loaded = load(tmp_path / "a.exanova")
    assert isinstance(loaded.importance(), pd.DataFrame)
    assert "game" not in loaded.importance().columns
    assert "joint distribution" in loaded.importance().attrs["game"]


def test_a_day_of_366_levels_is_fitted_as_planned():
    n = 3000
    rows = np.column_stack([RNG.integers(0, 366, n), *(RNG.integers(0, 9, (4, n)))])
    anova = FunctionalANOVA(n_bins=None, shrinkage=None)
    plan = anova.plan(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*better than others")
        anova.fit(rows, np.sin(rows[:, 0]) + (rows[:, 1] == rows[:, 2]))
    assert plan.seconds < 10.0
    assert anova.certificate_.converged
    assert anova.certificate_.iterations < 100
    assert not any("weight" in note for note in anova.certificate_.notes)
