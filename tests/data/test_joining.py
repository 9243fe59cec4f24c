"""Levels joined by their effects: which, how many, by which rows, and that the fit is no worse on others for it."""

from __future__ import annotations

import re
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, load
from exanova.data.feature import FeatureLevels
from exanova.data.joining import PART_OF_VARIANCE, _least, segments, with_groups
from exanova.data.level_effects import LevelEffects, given_the_others
from exanova.data.observe import read_rows
from exanova.data.repeating import PROBED
from exanova.errors import InputError
from exanova.other_rows.many_levels import held_rows


def codes_of(rng, rows, levels, prefix="z"):
    return np.array([f"{prefix}{10000 + k}" for k in rng.integers(levels, size=rows)])


def table(seed, rows, levels, effect, noise, slope=None):
    """Post codes with an effect each (and a slope along ``b`` each), two other columns, and noise."""
    rng = np.random.default_rng(seed)
    zips = codes_of(rng, rows, levels)
    X = pd.DataFrame({"zip": zips, "a": rng.choice(list("pqrs"), rows), "b": rng.choice(["no", "yes"], rows)})
    k = np.array([int(z[1:]) - 10000 for z in zips])
    b = np.where(X["b"] == "yes", 1.0, -1.0)
    y = effect[k] + X["a"].map(dict(zip("pqrs", (-1.0, 0.0, 0.5, 1.0), strict=True))).to_numpy()
    y = y + b * (0.5 + (0.0 if slope is None else slope[k])) + noise * rng.normal(size=rows)
    return X, y


def fitted(X, y, **choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(**choices).fit(X, y)


def of_three(levels):
    """Effects of three kinds of levels."""
    return np.array([-1.0, 0.0, 1.0])[np.arange(levels) % 3]


@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.0, 4.0), st.integers(0, 10**6))
def test_the_fewest_segments_that_lose_little_or_else_those_that_lose_least(size, most, limit, seed):
    costs = np.triu(np.random.default_rng(seed).random((size, size)))
    costs[np.tril_indices(size, -1)] = np.inf

    def loss(starts):
        ends = [*starts[1:], size]
        return sum(costs[s, e - 1] for s, e in zip(starts, ends, strict=True))

    every = {
        count: min(((0, *cut) for cut in combinations(range(1, size), count - 1)), key=loss)
        for count in range(1, min(most, size) + 1)
    }
    good = [count for count, starts in every.items() if loss(starts) <= limit]
    if not good:
        assert _least(costs, most, limit, False) is None
        allowed = min(map(loss, every.values())) + PART_OF_VARIANCE
        good = [count for count, starts in every.items() if loss(starts) <= allowed]
    found = tuple(_least(costs, most, limit, True).tolist())
    assert len(found) == good[0]
    assert loss(found) == pytest.approx(loss(every[good[0]]))


def test_levels_far_apart_for_their_error_stay_apart_and_others_are_joined():
    estimates = np.array([0.0, 1.0, 0.01, 1.01, 5.0])[:, None]
    expected, variance = given_the_others(estimates[:, 0], np.full(5, 0.05))
    found = LevelEffects(np.full(5, 0.2), estimates, np.full((5, 1), 100.0), expected[:, None], variance[:, None])
    group = segments(found, 5)
    assert group.tolist() == [0, 1, 0, 1, 2]
    assert len(set(segments(found, 2))) == 2


@pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning")
def test_a_column_of_noise_becomes_one_level_and_the_fit_is_better_for_it():
    effect = np.zeros(500)
    X, y = table(0, 2500, 500, effect, 0.5)
    T, ty = table(1, 2500, 500, effect, 0.5)
    joined = fitted(X, y)
    assert len(joined.categories_[0]) == 1
    assert np.abs(joined.effects_["zip"].values).max() == 0.0
    apart = fitted(X, y, max_levels=None, max_order=1)
    for anova in (joined, apart):
        anova.set_params(handle_unknown="ignore")
    assert joined.score(T, ty) > apart.score(T, ty) - 0.01


def test_levels_of_three_kinds_become_few_levels_of_one_kind_each():
    effect = of_three(120)
    X, y = table(0, 3000, 120, effect, 0.3)
    anova = fitted(X, y)
    (groups,) = anova.decomposition_.joined_levels.values()
    assert len(anova.categories_[0]) <= 9
    for label, members in groups.items():
        assert label.startswith(f"{len(members)} levels: z1")
        assert len({effect[int(z[1:]) - 10000] for z in members}) == 1
    T, ty = table(1, 3000, 120, effect, 0.3)
    apart = fitted(X, y, max_levels=None)
    assert anova.score(T, ty) > apart.score(T, ty) - 0.01


def test_levels_that_differ_only_together_with_another_column_are_not_joined():
    slope = np.where(np.arange(100) % 2, 0.5, -0.5)
    X, y = table(0, 3000, 100, np.zeros(100), 0.2, slope)
    (groups,) = fitted(X, y).decomposition_.joined_levels.values()
    for members in groups.values():
        assert len({slope[int(z[1:]) - 10000] for z in members}) == 1


@pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning")
@pytest.mark.parametrize("rows", [300, 1100, 2600])
def test_a_plan_has_the_seconds_of_the_fits_that_evaluate_the_joining(rows, monkeypatch):
    X, y = table(3, rows, 60, np.repeat([-3.0, 0.0, 3.0], 20), 0.5)
    parts, fit_part = [], FunctionalANOVA._fit_part

    def counted(self, *given, **how):
        parts.append(len(given[1]) / rows)
        return fit_part(self, *given, **how)

    monkeypatch.setattr(FunctionalANOVA, "_fit_part", counted)
    done = fitted(X, y)
    assert done.decomposition_.joined_levels
    once = FunctionalANOVA(max_levels=None).plan(X).seconds
    assert FunctionalANOVA().plan(X).seconds == pytest.approx(once * (1.0 + sum(parts)), rel=0.01)
    held = FunctionalANOVA().fit(X, y, eval_set=(X[:50], y[:50]))  # evaluated on these rows, and not by fits again
    assert done.plan_.seconds == pytest.approx(held.plan_.seconds * (1.0 + sum(parts)), rel=0.01)


@pytest.mark.parametrize("rows", [600, 3000])
def test_what_is_said_of_other_rows_is_true(rows):
    effect = np.random.default_rng(9).normal(size=200) * 0.4
    X, y = table(0, rows, 200, effect, 1.0)
    T, ty = table(1, 6000, 200, effect, 1.0)
    anova = fitted(X, y, handle_unknown="ignore", max_levels=20)
    assert anova.decomposition_.joined_levels
    assert anova.certificate_.r2_eval[0] == pytest.approx(anova.score(T, ty), abs=0.05)
    assert "levels joined by the others" in anova.certificate_.eval_method


@pytest.mark.parametrize(("link", "inverse"), [("log", np.exp), ("logit", lambda y: 1.0 / (1.0 + np.exp(-y)))])
def test_a_link_is_taken_once_where_levels_are_joined_again(link, inverse):
    X, y = table(0, 900, 150, of_three(150) + 0.3 * np.random.default_rng(1).normal(size=150), 0.0)
    X["k"] = np.arange(900) % 7
    expected = fitted(X, y, max_levels=20).certificate_
    found = fitted(X, inverse(y), max_levels=20, link=link).certificate_
    assert "levels joined by the others" in found.eval_method
    np.testing.assert_allclose(found.r2_eval, expected.r2_eval, rtol=1e-6)
    np.testing.assert_allclose(found.mse_eval, expected.mse_eval, rtol=1e-6)


def test_weights_mean_the_same_where_levels_are_joined_again():
    X, y = table(0, 900, 70, of_three(70), 1.0)
    weight = 1 + np.arange(900) % 9
    both = {"sample_weight": weight, "weights": "probability"}, {"sample_weight": weight * 0.3}
    told, shown = (fitted(X, y, max_levels=20).fit(X, y, **how).certificate_ for how in both)
    assert "levels joined by the others" in told.eval_method
    np.testing.assert_allclose(told.r2_eval, shown.r2_eval, rtol=1e-9)


def test_a_design_in_another_order_is_put_in_order_before_rows_are_held_out():
    X, y = table(0, 900, 80, of_three(80), 0.5)
    rng = np.random.default_rng(0)
    clusters, order = pd.Series(np.repeat(np.arange(90), 10)), rng.permutation(900)
    replicates = pd.DataFrame(rng.random((900, 5)))
    for told, moved in (
        ({"clusters": clusters}, {"clusters": clusters.iloc[order]}),
        ({"replicate_weights": (replicates, 0.2)}, {"replicate_weights": (replicates.iloc[order], 0.2)}),
    ):
        expected, found = (fitted(X, y).fit(X, y, eval_set=0.2, **how) for how in (told, moved))
        assert found.categories_ == expected.categories_
        assert np.array_equal(found.effects_["a"].stderr, expected.effects_["a"].stderr)


def test_rows_held_out_take_no_part():
    X, y = table(0, 1200, 150, of_three(150), 0.8)
    first = fitted(X, y, max_order=1, max_levels=20)
    held = fitted(X, y, max_order=1, max_levels=20).fit(X, y, eval_set=0.3)
    assert held.decomposition_.joined_levels != first.decomposition_.joined_levels
    out = held_rows(read_rows(X), 0.3, 0)
    other = np.where(out, 50.0 * np.random.default_rng(1).normal(size=len(y)), y)
    again = fitted(X, y, max_order=1, max_levels=20).fit(X, other, eval_set=0.3)
    assert again.decomposition_.joined_levels == held.decomposition_.joined_levels
    assert np.array_equal(again.effects_["a"].values, held.effects_["a"].values)
    assert 0.2 < out.mean() <= 0.31
    assert held.certificate_.r2_eval[0] == pytest.approx(held.score(X[out], y[out]))


def test_rows_held_out_take_their_design_with_them():
    X, y = table(0, 900, 80, of_three(80), 0.5)
    choices = {"clusters": np.repeat(np.arange(90), 10), "sample_weight": np.arange(900) % 3, "eval_set": 0.2}
    anova = fitted(X, y).fit(X, y, **choices)
    kept = np.flatnonzero(choices["sample_weight"])
    rows, cluster = read_rows(X, sample_weight=choices["sample_weight"]), choices["clusters"][kept]
    fit = kept[~held_rows(rows, 0.2, 0, cluster)]
    same = fitted(X, y).fit(
        X.iloc[fit], y[fit], clusters=choices["clusters"][fit], sample_weight=choices["sample_weight"][fit]
    )
    assert np.allclose(anova.effects_["a"].stderr, same.effects_["a"].stderr)


def test_a_number_of_levels_by_column_or_for_all():
    X, y = table(0, 1500, 60, np.linspace(-1, 1, 60), 0.1)
    assert len(fitted(X, y, max_levels=7).categories_[0]) <= 7
    assert len(fitted(X, y, max_levels={"zip": 4}).categories_[0]) <= 4
    assert len(fitted(X, y, max_levels={"a": 2}).categories_[1]) <= 2
    assert len(fitted(X, y, max_levels=None).categories_[0]) == 60
    assert len(fitted(X, y, max_levels=60).categories_[0]) == 60
    assert len(fitted(X, y, shrinkage=None, max_order=1).categories_[0]) == 60
    assert len(fitted(X, y).categories_[0]) < 60


def test_few_rows_on_large_effects_are_better_shrunk_level_by_level_while_that_can_be_done():
    effect = np.random.default_rng(9).normal(size=75) * 0.7
    X, y = table(0, 600, 75, effect, 0.7)
    assert len(fitted(X, y).categories_[0]) == 75
    X["x"] = np.random.default_rng(3).normal(size=600)
    X = pd.concat([X] * 3, ignore_index=True)
    assert len(fitted(X, np.tile(y, 3), n_bins=40).categories_[0]) <= 50


def test_missing_cells_are_apart_and_orders_are_kept():
    X, y = table(0, 900, 80, of_three(80), 0.2)
    X.loc[::10, "zip"] = None
    X["size"] = pd.Categorical(np.random.default_rng(3).choice(list("SML"), 900), categories=list("SML"), ordered=True)
    anova = fitted(X, y, max_levels=2)
    assert anova.categories_[0][-1] is None
    assert len(anova.categories_[0]) <= 3
    assert anova.categories_[3] == ("S", "M", "L")


def test_weights_that_count_are_rows():
    X, y = table(0, 1000, 70, of_three(70), 0.5)
    twice = fitted(pd.concat([X, X.iloc[:500]]), np.concatenate([y, y[:500]]), max_order=1)
    weighted = fitted(X, y, max_order=1)
    counts = np.where(np.arange(1000) < 500, 2, 1)
    weighted.fit(X, y, sample_weight=counts)
    assert weighted.decomposition_.joined_levels == twice.decomposition_.joined_levels


def test_a_model_is_called_once_on_each_row_and_on_a_few_again_and_joined_alike():
    X, _ = table(0, 1000, 70, of_three(70), 0.0)
    calls = []

    def model(rows):
        calls.append(len(rows))
        k = rows["zip"].str[1:].astype(int) - 10000
        return of_three(70)[k] + (rows["b"] == "yes")

    anova = fitted(X, model)
    assert calls == [len(X.drop_duplicates()), PROBED]
    assert len(anova.categories_[0]) == 3
    assert anova.certificate_.r2[0] == pytest.approx(1.0)
    assert anova.decomposition_.joined_levels == fitted(X, model(X)).decomposition_.joined_levels


def test_joined_levels_are_saved_replayed_and_compared(tmp_path):
    X, y = table(0, 1500, 90, of_three(90), 0.2)
    anova = fitted(X, y)
    anova.save(tmp_path / "zip.exanova")
    again = load(tmp_path / "zip.exanova")
    assert again.decomposition_.joined_levels == anova.decomposition_.joined_levels
    assert np.array_equal(again.predict(X), anova.predict(X))
    same = anova.compare(again).to_frame()
    assert np.abs(same["difference"]).max() == 0.0
    flipped = anova.compare(fitted(X, -3.0 * y)).to_frame()
    zips = flipped[flipped["subset"] == "zip"]
    assert float(zips["difference"].iloc[0]) > 1.0


def test_rows_that_are_all_there_is_are_joined_only_by_number():
    X = pd.DataFrame({"zip": np.repeat([f"z{k}" for k in range(60)], 2), "b": ["no", "yes"] * 60})
    y = np.random.default_rng(0).normal(size=120)
    assert len(fitted(X, y).categories_[0]) == 60
    assert len(fitted(X, y, max_levels=5).categories_[0]) <= 5


@pytest.mark.parametrize("wrong", [1, 0, 2.5, True, "many", {"zip": 1}])
def test_what_cannot_be_a_number_of_levels(wrong):
    X, y = table(0, 50, 5, np.zeros(5), 1.0)
    with pytest.raises(InputError, match=r"max_levels.*was given; expected an integer of at least 2, 'auto' or None"):
        FunctionalANOVA(max_levels=wrong).fit(X, y)


def test_a_column_that_is_not_there():
    X, y = table(0, 50, 5, np.zeros(5), 1.0)
    message = re.escape("max_levels= names columns that the table does not have: 'zap'")
    with pytest.raises(InputError, match=message):
        FunctionalANOVA(max_levels={"zap": 5}).fit(X, y)


def test_labels_name_the_first_members():
    feature = FeatureLevels.of("job", [f"job {k}" for k in range(30)])
    found = with_groups(feature, np.arange(30) % 2)
    assert found.labels == ("15 levels: job 0, job 2, job 4, ...", "15 levels: job 1, job 3, job 5, ...")
    assert found.joined["15 levels: job 1, job 3, job 5, ..."] == tuple(f"job {k}" for k in range(1, 30, 2))


@pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning")
def test_numbers_that_are_levels_keep_their_order_and_are_joined_only_if_that_is_asked():
    """More bins than a column has numbers keep each of them: as names, neighbours would say nothing about them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 70, 300), "b": rng.choice(list("uv"), 300)})
    y = X["a"] / 10.0 + (X["b"] == "u")
    kept = fitted(X, y, n_bins={"a": 100}, handle_unknown="ignore")
    assert kept.decomposition_.encoding.sizes[0] == X["a"].nunique()
    new = pd.DataFrame({"a": rng.integers(0, 70, 300), "b": rng.choice(list("uv"), 300)})
    assert kept.score(new, new["a"] / 10.0 + (new["b"] == "u")) > 0.99
    asked = fitted(X, y, n_bins={"a": 100}, max_levels={"a": 12})
    assert asked.decomposition_.encoding.sizes[0] <= 12
