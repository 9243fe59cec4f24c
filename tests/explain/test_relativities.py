"""A tariff: factors multiply to the fitted value; what it loses, by brute force over rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.errors import InputError
from exanova.explain.tariff import deviance, gini
from exanova.queries.query import Work
from strategies import examples

NAMES = ["a", "b", "c"]


def table(seed=0, n=300):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.choice(list("xyz"), n), "b": rng.choice(list("uv"), n), "c": rng.choice(list("pq"), n)}
    )
    rate = np.exp(0.3 * (frame["a"] == "x") - 0.5 * (frame["b"] == "u") * (frame["c"] == "p") - 2.0)
    return frame, rate.to_numpy(), rng.uniform(0.5, 2.0, n)


def fitted(seed=0, link="log", order=2, **given):
    frame, rate, exposure = table(seed)
    noisy = rate * np.random.default_rng(seed + 1).uniform(0.7, 1.3, len(rate))
    anova = FunctionalANOVA(link=link, max_order=order, **{"shrinkage": None, **given})
    return anova.fit(frame, noisy, sample_weight=exposure, output_names=["rate"]), frame


def product(found, frame, names):
    """Base value times the relativities of every row."""
    out = np.full(len(frame), found.base_value[0])
    for factor in found.factors:
        values = dict(zip(factor.levels, factor.relativity[:, 0], strict=True))
        if len(factor.features) <= names:
            out *= [values[tuple(levels)] for levels in frame[list(factor.features)].itertuples(index=False)]
    return out


@examples(10)
@given(seed=st.integers(0, 30), link=st.sampled_from(["log", "logit"]), named=st.booleans())
def test_the_base_times_the_relativities_is_the_fitted_value(seed, link, named):
    anova, frame = fitted(seed, link)
    found = anova.relativities({"a": "y", "c": "q"} if named else "most frequent")
    response = anova.predict(frame, scale="response")
    assert np.allclose(product(found, frame, 2), response if link == "log" else response / (1 - response))
    for factor in found.factors:
        at_base = [k for k, cell in enumerate(factor.levels) if cell == tuple(found.base[f] for f in factor.features)]
        assert np.allclose(factor.relativity[at_base], 1.0)
        assert np.allclose(factor.low[at_base], 1.0)
        assert np.isclose(factor.exposure.sum(), table(seed)[2].sum())
    assert found.base["a"] == "y" or not named


def test_the_base_is_the_level_with_the_most_exposure():
    anova, frame = fitted()
    exposure = pd.Series(table()[2]).groupby(frame["a"]).sum()
    assert anova.relativities().base["a"] == exposure.idxmax()


def test_intervals_are_those_of_differences_of_effects():
    anova, _ = fitted()
    found = anova.relativities()
    state = anova.decomposition_
    for s, factor in enumerate(found.factors, start=1):
        cells = state.family.cells_of(s)
        block = state.uncertainty.all_cells[0, cells, cells]
        base = factor.levels.index(tuple(found.base[f] for f in factor.features))
        for k in range(len(factor.levels)):
            w = np.zeros(len(block))
            w[k] += 1.0
            w[base] -= 1.0
            reach = 1.959964 * np.sqrt(w @ block @ w)
            assert np.isclose(np.log(factor.high[k, 0] / factor.relativity[k, 0]), reach, atol=1e-9)
            assert np.isclose(np.log(factor.relativity[k, 0] / factor.low[k, 0]), reach, atol=1e-9)


def test_intervals_of_relativities_cover():
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 3, (600, 1))
        exposure = rng.uniform(0.5, 1.0, 600)
        claims = rng.poisson(np.array([0.3, 0.6, 0.9])[rows[:, 0]] * exposure)
        anova = FunctionalANOVA(link="log", shrinkage=None).fit(rows, claims / exposure, sample_weight=exposure)
        factor = anova.relativities({"x0": "0"}).factors[0]
        covered += [factor.low[k, 0] <= k + 1.0 <= factor.high[k, 0] for k in (1, 2)]
    assert 0.88 < np.mean(covered) <= 1.0


@pytest.mark.parametrize("link", ["log", "logit"])
def test_what_a_tariff_loses_is_what_the_rows_say(link):
    anova, _ = fitted(link=link, order=3)
    frame, _, exposure = table()
    noisy = table()[1] * np.random.default_rng(1).uniform(0.7, 1.3, len(frame))
    cells = frame.assign(w=exposure, wy=exposure * noisy).groupby(NAMES).sum().reset_index()
    y, w = (cells["wy"] / cells["w"]).to_numpy(), (cells["w"] / cells["w"].sum()).to_numpy()
    losses = anova.relativities().losses[0]
    parts = anova.components(cells[NAMES])
    back = np.exp if link == "log" else lambda v: 1 / (1 + np.exp(-v))
    assert [loss.order for loss in losses] == [0, 1, 2, 3]
    for loss in losses[1:]:
        kept = [k for k, subset in enumerate(parts.subsets) if len(subset) <= loss.order]
        price = back(parts.values[:, kept].sum(axis=1))
        price = price * (w @ y / (w @ price) if link == "log" else 1.0)
        expected = y * np.log(y / price) - (y - price)
        if link == "logit":
            expected = y * np.log(y / price) + (1 - y) * np.log((1 - y) / (1 - price))
        assert np.isclose(loss.deviance, 2 * w @ expected, atol=1e-12)
        order = np.argsort(price)
        area = np.cumsum((w * y)[order]) / (w @ y)
        assert np.isclose(loss.gini, 1 - np.sum(w[order] * (area + np.r_[0, area[:-1]])))
    assert np.isclose(losses[3].explained, 1.0)
    assert np.isclose(losses[3].gini_share, 1.0)
    assert losses[0].explained == 0.0
    assert 0 < losses[1].explained < losses[2].explained < 1


@pytest.mark.parametrize("link", ["log", "logit"])
def test_a_tariff_of_all_factors_loses_nothing_and_not_the_rounding_of_it(link):
    for seed in range(5):
        anova, _ = fitted(seed, link, order=3)
        losses = anova.relativities().losses[0]
        assert losses[3].deviance == 0.0
        assert losses[3].explained == 1.0
        assert losses[2].deviance > 0.0


def test_deviance_and_gini_of_simple_cases():
    assert deviance("logit", np.array([0.5]), np.array([0.5]), np.array([1.0])) == 0.0
    assert gini(np.array([1.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5])) == pytest.approx(0.0)
    tied = gini(np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([0.5, 0.5]))
    assert tied == pytest.approx(0.0)


def test_base_levels_that_never_occur_together_are_said():
    rows = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "w"], ["a", "w"]])
    anova = FunctionalANOVA(link="log", sampled=False).fit(rows, np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    found = anova.relativities({"x0": "b", "x1": "v"})
    pair = next(f for f in found.factors if len(f.features) == 2)
    assert not pair.anchored
    assert "never occur together" in found.notes[-1]
    frame = pd.DataFrame(rows, columns=["x0", "x1"])
    assert np.allclose(product(found, frame, 2), anova.predict(rows, scale="response"))


def test_tables_and_text():
    anova, _ = fitted()
    found = anova.relativities()
    frame = found.to_frame()
    assert list(frame) == ["factor", "level", "exposure", "relativity", "low", "high", "base"]
    assert frame["base"].sum() == len(found.factors)
    assert list(found.loss_frame()["order"]) == [0, 1, 2]
    text = str(found)
    assert text.startswith("rate at the base: 0.")
    assert ", base" in text
    assert "of the deviance explained, Gini" in text
    assert "<table>" in found._repr_html_()
    assert "6 factors" in repr(found)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("largest", "expected 'most frequent', or a mapping"),
        ({"nobody": "x"}, "there is no feature 'nobody'"),
        ({"a": "w", "b": "z"}, "'a' has no level 'w'.*'b' has no level 'z'"),
    ],
)
def test_bases_that_cannot_be_are_refused(base, words):
    anova, _ = fitted()
    with pytest.raises(InputError, match=words):
        anova.relativities(base)


def test_without_a_link_there_are_no_relativities():
    anova, _ = fitted(link="identity")
    with pytest.raises(InputError, match="fit with link='log'"):
        anova.relativities()


def test_a_base_is_a_level_or_a_value_that_a_level_holds():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 400), "day": pd.Timestamp("2024-01-01")})
    frame["day"] += pd.to_timedelta(rng.integers(0, 300, 400), "D")
    frame["kind"] = rng.choice(np.array(["a", "b", None], dtype=object), 400)
    anova = FunctionalANOVA(link="log", n_bins=4, max_order=1, shrinkage=None).fit(frame, np.exp(frame["age"] / 50))
    for k in range(0, 40, 7):
        row = frame.iloc[k]
        found = anova.relativities({"age": row["age"], "day": row["day"], "kind": row["kind"]})
        held = [anova.decomposition_.encoding.features[i].labels for i in range(3)]
        codes = [int(c) for c in anova.decomposition_._locate(frame[k : k + 1], Work("a row"))[0][:, 0]]
        assert list(found.base.values()) == [labels[code] for labels, code in zip(held, codes, strict=True)]
    assert anova.relativities({"age": "40"}).base == anova.relativities({"age": 40}).base
    for wrong in ({"age": "old"}, {"kind": "c"}, {"day": "never"}):
        with pytest.raises(InputError, match="has no level"):
            anova.relativities(wrong)
