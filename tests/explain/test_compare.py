"""Two decompositions side by side, and the score on rows that were not fitted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import Comparison, FunctionalANOVA
from exanova.errors import InputError, InputTypeError, ModelError, OutsideSupportWarning
from strategies import MODERATE, examples, fit, supports

COLOURS, SIZES, SHAPES = ("blue", "green", "red"), ("large", "small"), ("oval", "round")


def table(rows=None):
    rows = list(product(COLOURS, SIZES, SHAPES)) if rows is None else rows
    return pd.DataFrame(rows, columns=["colour", "size", "shape"])


def price(X):
    return 1.0 * (X["colour"] == "red") + 0.5 * ((X["size"] == "large") & (X["shape"] == "oval"))


def later(X):
    return price(X) + 2.0 * ((X["colour"] == "blue") & (X["size"] == "small"))


def by_features(comparison):
    return {frozenset(change.features): change for change in comparison.changes}


@given(supports(weights=MODERATE), st.sampled_from([1, 2, None]), st.data())
@examples(30)
def test_the_difference_is_the_squared_norm_of_the_difference(case, max_order, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    other = case.with_values(case.values + rng.normal(size=case.values.shape).round(2))
    before, after = fit(case, max_order=max_order), fit(other, max_order=max_order)
    # On the same support the change of every effect is the effect of the change of the model.
    change = fit(case.with_values(other.values - case.values), max_order=max_order)
    found = before.compare(after)
    assert {c.features for c in found.changes} == set(before.effects_)
    for c in found.changes:
        assert c.found_in == "both"
        assert c.shared == pytest.approx(1.0)
        assert np.allclose(c.difference, change.effects_[c.features].norm2, rtol=0, atol=1e-9)
        assert np.array_equal(c.norm_before, before.effects_[c.features].norm2)
        assert np.array_equal(c.norm_after, after.effects_[c.features].norm2)
    totals = [c.difference.sum() for c in found.changes]
    assert totals == sorted(totals, reverse=True)


def test_nothing_changed_is_nothing():
    anova = FunctionalANOVA(shrinkage=None, max_order=3).fit(table(), price)
    for change in anova.compare(anova).changes:
        assert not change.difference.any()


def test_columns_in_another_order_are_the_same_columns():
    before = FunctionalANOVA(shrinkage=None, max_order=3).fit(table(), price)
    same = before.compare(FunctionalANOVA(shrinkage=None, max_order=3).fit(table()[["shape", "colour", "size"]], price))
    other = before.compare(
        FunctionalANOVA(shrinkage=None, max_order=3).fit(table()[["shape", "colour", "size"]], later)
    )
    plain = before.compare(FunctionalANOVA(shrinkage=None, max_order=3).fit(table(), later))
    for change in same.changes:
        assert change.found_in == "both"
        assert np.abs(change.difference).max() < 1e-20
        assert change.shared == pytest.approx(1.0)
    for key, change in by_features(other).items():
        assert np.allclose(change.difference, by_features(plain)[key].difference, rtol=0, atol=1e-12)
    pair = by_features(other)[frozenset({"colour", "size"})].cells[0]
    assert pair.features == ("colour", "size")
    assert pair.levels[0] == "blue"
    effect = before.effects_["colour", "size"]
    assert np.array_equal(pair.before, effect.values[effect.levels.index(pair.levels)])


def test_the_largest_changed_cells_are_named_with_their_values():
    before, after = (FunctionalANOVA(shrinkage=None, max_order=2).fit(table(), model) for model in (price, later))
    change = by_features(before.compare(after))[frozenset({"colour"})]
    cell = change.cells[0]
    assert cell.levels == ("blue",)
    for anova, value in ((before, cell.before), (after, cell.after)):
        effect = anova.effects_["colour"]
        assert np.array_equal(value, effect.values[effect.levels.index(("blue",))])
    moved = [np.abs(c.after - c.before).max() for c in change.cells]
    assert moved == sorted(moved, reverse=True)
    assert len(by_features(before.compare(after))[frozenset({"colour", "size"})].cells) == 5  # of six


def test_levels_only_in_one_are_left_out_and_counted():
    few = table([row for row in table().itertuples(index=False) if row.colour != "green"])
    before, after = FunctionalANOVA(shrinkage=None).fit(table(), price), FunctionalANOVA(shrinkage=None).fit(few, price)
    change = by_features(before.compare(after))[frozenset({"colour"})]
    a, b = before.effects_["colour"], after.effects_["colour"]
    shared = [level for level in a.levels if level in b.levels]
    p = [(a.probability[a.levels.index(c)] + b.probability[b.levels.index(c)]) / 2 for c in shared]
    moved = [b.values[b.levels.index(c)] - a.values[a.levels.index(c)] for c in shared]
    assert change.shared == pytest.approx(sum(p))
    assert change.shared == pytest.approx((2 / 3 + 1) / 2)
    assert np.allclose(change.difference, np.array(p) @ np.array(moved) ** 2)
    assert ("green",) not in {cell.levels for cell in change.cells}


def test_no_level_in_common_shares_nothing():
    first = FunctionalANOVA(shrinkage=None).fit(pd.DataFrame({"a": ["u", "v"]}), np.array([0.0, 1.0]))
    second = FunctionalANOVA(shrinkage=None).fit(pd.DataFrame({"a": ["x", "y"]}), np.array([0.0, 1.0]))
    change = by_features(first.compare(second))[frozenset({"a"})]
    assert change.shared == 0.0
    assert change.cells == ()
    assert np.isnan(change.difference).all()
    assert not change.comparable
    assert first.compare(second).changes[0].features == ("a",)
    assert "a: cannot be compared" in str(first.compare(second)).splitlines()[1]


def by_hand(before, after, X, subset):
    """Mean squared difference of an effect of two fits, at the rows."""
    place = [list(X.columns).index(name) for name in subset]
    at_rows = []
    for anova in (before, after):
        effect = anova.effects_[subset]
        values = dict(zip(effect.levels, effect.values[:, 0], strict=True))
        at_rows.append(np.array([values[tuple(row[place])] for row in anova.explain(X).display_data]))
    return ((at_rows[1] - at_rows[0]) ** 2).mean()


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(2, 9))
@examples(25)
def test_rows_of_a_divided_bin_are_those_between_the_edges(seed, bins, others):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.lognormal(sigma=2.0, size=80), "z": rng.choice(["u", "v", "w"], 80)})
    y = np.log(X["x"]) * (X["z"] == "u") + (X["x"] > 1)
    options = {"shrinkage": None, "sampled": False}
    before, after = (
        FunctionalANOVA(n_bins=n, strategy=how, **options).fit(X, y)
        for n, how in ((bins, "quantile"), (others, "uniform"))
    )
    for first, second in ((before, after), (after, before)):
        found = by_features(first.compare(second))[frozenset({"x"})]
        assert found.difference[0] == pytest.approx(by_hand(first, second, X, ("x",)), rel=1e-6, abs=1e-12)
        assert found.shared == pytest.approx(1.0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(2, 4))
@examples(25)
def test_rows_of_divided_pairs_are_those_of_nested_bins(seed, bins, times):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.permutation(96) ** 3 * 1.0, "z": rng.lognormal(size=96)})
    y = X["x"] * (X["z"] > 1) / 1e5 + np.sqrt(X["z"])
    options = {"shrinkage": None, "sampled": False}
    coarse, fine = (FunctionalANOVA(n_bins=n, **options).fit(X, y) for n in (bins, bins * times))
    for first, second in ((coarse, fine), (fine, coarse)):
        comparison = first.compare(second)
        assert comparison.divided == ("x", "z")
        assert "x, z: bins have other edges" in str(comparison)
        for subset in (("x",), ("z",), ("x", "z")):
            found = by_features(comparison)[frozenset(subset)]
            assert found.difference[0] == pytest.approx(by_hand(first, second, X, subset), rel=1e-6, abs=1e-12)
            assert found.shared == pytest.approx(1.0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 6))
@examples(25)
def test_bins_with_other_edges_are_compared_on_their_parts(seed, bins, others):
    rng = np.random.default_rng(seed)
    x, z = rng.permutation(np.linspace(0, 1, 60)), rng.choice(["u", "v"], 60)
    X = pd.DataFrame({"x": x, "z": z})
    y = np.sin(5 * x) * (z == "u") + x
    options = {"shrinkage": None, "sampled": False, "strategy": "uniform", "max_order": 2}
    before = FunctionalANOVA(n_bins=bins, **options).fit(X, y)
    after = FunctionalANOVA(n_bins=others, **options).fit(X, -3 * y)
    # On a fine grid of values both effects are step functions; the grid's own mean is the oracle.
    grid = np.linspace(1e-9, 1 - 1e-9, 20_001)
    sides = [anova.decomposition_.encoding.features[0] for anova in (before, after)]
    codes = [np.searchsorted(np.array(f.edges[1:-1]), grid, side="right") for f in sides]
    values, mass = [], []
    for anova, feature, code in zip((before, after), sides, codes, strict=True):
        effect = anova.effects_["x"]
        assert [level for (level,) in effect.levels] == list(feature.labels)
        values.append(effect.values[code, 0])
        mass.append(effect.probability[code] / np.bincount(code)[code])
    expected = ((mass[0] + mass[1]) / 2) @ (values[1] - values[0]) ** 2
    change = by_features(before.compare(after))[frozenset({"x"})]
    assert change.shared == pytest.approx(1.0)
    assert change.difference[0] == pytest.approx(expected, rel=1e-2)
    assert change.difference[0] > change.norm_before[0]
    assert by_features(before.compare(after))[frozenset({"x", "z"})].shared > 0.5


def test_bins_and_single_numbers_are_compared():
    few = pd.DataFrame({"x": [1, 2, 3, 4] * 10})
    many = pd.DataFrame({"x": np.arange(1, 41)})
    before = FunctionalANOVA(shrinkage=None, sampled=False).fit(few, few["x"] * 1.0)
    after = FunctionalANOVA(shrinkage=None, sampled=False, n_bins=8).fit(many, -many["x"] * 1.0)
    for change in (by_features(before.compare(after)), by_features(after.compare(before))):
        found = change[frozenset({"x"})]
        assert found.comparable
        assert found.difference[0] > 1.0


@pytest.mark.parametrize("swapped", [False, True])
def test_subsets_only_in_one_count_as_zero_in_the_other(swapped):
    small, large = (
        FunctionalANOVA(shrinkage=None, max_order=1).fit(table(), price),
        FunctionalANOVA(shrinkage=None, max_order=2).fit(table(), price),
    )
    found = by_features(large.compare(small) if swapped else small.compare(large))
    assert set(found) == {frozenset(s) for s in large.effects_}
    change = found[frozenset({"size", "shape"})]
    assert change.found_in == ("first" if swapped else "second")
    absent, there = change.norm_before, change.norm_after
    absent, there = (there, absent) if swapped else (absent, there)
    assert np.isnan(absent).all()
    assert np.allclose(change.difference, there)
    assert f"only in the {change.found_in}" in str(large.compare(small) if swapped else small.compare(large))


def test_a_column_constant_in_one_of_them_is_compared_too():
    blue = table([row for row in table().itertuples(index=False) if row.colour == "blue"])
    found = by_features(
        FunctionalANOVA(shrinkage=None).fit(table(), price).compare(FunctionalANOVA(shrinkage=None).fit(blue, price))
    )
    assert found[frozenset({"colour"})].found_in == "first"


def test_other_columns_or_outputs_cannot_be_compared():
    anova = FunctionalANOVA(shrinkage=None).fit(table(), price)
    with pytest.raises(InputError, match="different columns: form, shape"):
        anova.compare(FunctionalANOVA(shrinkage=None).fit(table().rename(columns={"shape": "form"}), np.arange(12.0)))
    with pytest.raises(InputError, match="outputs differ: output 0 and price"):
        anova.compare(FunctionalANOVA(shrinkage=None).fit(table(), price, output_names=["price"]))
    with pytest.raises(InputTypeError, match="other= is a dict"):
        anova.compare({})


def test_other_outputs_orders_and_links_are_told_apart():
    values = np.column_stack([np.arange(12.0), np.arange(12.0) ** 2]) + 1.0
    two = FunctionalANOVA(shrinkage=None).fit(table(), values, output_names=["a", "b"])
    turned = FunctionalANOVA(shrinkage=None).fit(table(), values[:, ::-1], output_names=["b", "a"])
    one = FunctionalANOVA(shrinkage=None).fit(table(), values[:, 0], output_names=["log(a)"])
    log = FunctionalANOVA(shrinkage=None, link="log").fit(table(), values[:, 0], output_names=["a"])
    for ask in ("compare", "change"):
        with pytest.raises(InputError, match=r"different orders: a, b and b, a; fit with the same order in both"):
            getattr(two, ask)(turned)
        with pytest.raises(InputError, match=r"outputs differ: a, b and log.a.; expected two fits of the same outputs"):
            getattr(two, ask)(one)
        with pytest.raises(InputError, match="different scales, with the links 'identity' and 'log'"):
            getattr(one, ask)(log)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_table_of_a_comparison(kind):
    X = kind(table().to_dict(orient="list"))
    first = np.random.default_rng(0).normal(size=(12, 2))
    before = FunctionalANOVA(shrinkage=None).fit(X, first, output_names=["low", "high"])
    after = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, first * 2, output_names=["low", "high"])
    found = before.compare(after)
    frame = found.to_frame()
    assert isinstance(found, Comparison)
    assert isinstance(frame, kind)
    assert list(frame.columns) == [
        *("subset", "output", "found_in", "norm_before", "norm_after", "difference", "shared"),
    ]
    assert len(frame) == 2 * len(found.changes) == 2 * 7
    assert "(intercept)" in list(frame["subset"])
    assert np.array_equal(np.asarray(frame["difference"]), np.concatenate([c.difference for c in found.changes]))


def test_the_summary_names_what_changed_most():
    before, after = (FunctionalANOVA(shrinkage=None, max_order=3).fit(table(), model) for model in (price, later))
    text = str(before.compare(after))
    lines = text.splitlines()
    assert lines[0].startswith("What changed")
    assert "(intercept)" in text
    assert "colour x size" in text
    assert "blue, small: " in text
    wide = table().assign(extra=["u", "v"] * 6)
    many = FunctionalANOVA(shrinkage=None, max_order=2).fit(wide, price)
    assert "and 1 more subset" in str(many.compare(many))


# The score


def direct_r2(f, fitted, weight):
    p = weight / weight.sum()
    return 1 - (p @ (f - fitted) ** 2) / (p @ (f - p @ f) ** 2)


@given(supports(weights=MODERATE), st.sampled_from([0, 1, 2]), st.data())
@examples(30)
def test_the_score_is_r2_on_the_rows_given(case, max_order, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    anova = fit(case, max_order=max_order)
    chosen = rng.integers(0, len(case.rows), 20)
    rows, weight = case.rows[chosen], rng.uniform(0.1, 2.0, 20)
    f = rng.normal(size=(20, case.values.shape[1]))
    assert np.allclose(anova.score(rows, f), direct_r2(f, anova.predict(rows), np.ones(20)))
    assert np.allclose(anova.score(rows, f, sample_weight=weight), direct_r2(f, anova.predict(rows), weight))


def test_the_score_on_the_fitted_rows_is_that_of_the_certificate():
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(table(), price)
    score = anova.score(table(), price)
    assert isinstance(score, float)
    assert score == pytest.approx(float(anova.certificate_.r2[0]), abs=1e-12)
    weighted = FunctionalANOVA(shrinkage=None, max_order=1).fit(table(), price, sample_weight=np.arange(1.0, 13.0))
    again = weighted.score(table(), price, sample_weight=np.arange(1.0, 13.0))
    assert again == pytest.approx(float(weighted.certificate_.r2[0]), abs=1e-12)


def test_the_score_on_unseen_rows_calls_the_model_once_for_each_distinct_row():
    seen = []

    def model(X):
        seen.append(len(X))
        return price(X)

    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(table().iloc[:8], price)
    new = pd.concat([table().iloc[4:8]] * 3)
    anova.score(new, model)
    assert seen == [4]


def test_rows_outside_the_support_are_scored_with_what_is_known_of_them():
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(table().iloc[:6], price)
    with pytest.warns(OutsideSupportWarning, match="2 of 8"):
        score = anova.score(table().iloc[:8], price)
    with pytest.warns(OutsideSupportWarning):
        fitted = anova.predict(table().iloc[:8])
    assert score == pytest.approx(direct_r2(price(table().iloc[:8]).to_numpy(), fitted, np.ones(8)))


def test_a_score_of_several_outputs_is_one_each():
    f = np.random.default_rng(3).normal(size=(12, 2))
    f[:, 1] = 0.25
    score = FunctionalANOVA(shrinkage=None, max_order=1).fit(table(), f).score(table(), f)
    assert score.shape == (2,)
    assert score[1] == 1.0  # constant and met
    with pytest.raises(InputError, match="gives 1 outputs"):
        FunctionalANOVA(shrinkage=None).fit(table(), f).score(table(), price)
    with pytest.raises((InputError, ModelError)):
        FunctionalANOVA(shrinkage=None).fit(table(), f).score(table(), f, sample_weight=np.ones(3))
