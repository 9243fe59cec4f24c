"""Importances: norms, mean absolute Shapley values, variance shares and Shapley effects, each by its definition."""

from __future__ import annotations

from itertools import combinations, product
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.errors import InputError
from oracles import moebius_independent
from strategies import MODERATE, Case, examples, fit, on_rows, subset_of, supports

KINDS = ("l1", "l2", "shapley", "variance", "shapley-effects")
ORDERS = st.sampled_from([None, 2, 3, None, 2, 3, 1, 0])  # without interactions there is little to share
EXACT = 1e-10


def amounts(anova, kind, by="feature", column="value"):
    """{name or subset: (m,) amounts} of an importance table."""
    frame = anova.importance(kind, by=by)
    out = {}
    for name, value in zip(frame[by], frame[column], strict=True):
        key = name if by == "feature" else subset_of(name.split(" x "))
        out.setdefault(key, []).append(value)
    return {key: np.array(values) for key, values in out.items()}


def scale(case):
    return max(1.0, float(np.abs(case.values).max()))


def varying(case):
    """Columns of the outputs that vary."""
    return (case.values != case.values[0]).any(axis=0)


@given(supports(weights=MODERATE), ORDERS)
@examples(40)
def test_norms_of_subsets_are_those_of_the_effects(case, max_order):
    anova = fit(case, max_order=max_order)
    effects = {subset_of(s): anova.effects_[s] for s in anova.effects_ if s}
    for kind, norm in (("l1", "norm1"), ("l2", "norm2")):
        found = amounts(anova, kind, by="subset")
        assert set(found) == set(effects)
        for subset, effect in effects.items():
            assert np.allclose(found[subset], getattr(effect, norm), rtol=1e-12, atol=1e-14)


@given(supports(weights=MODERATE), ORDERS, st.sampled_from(["l1", "l2", "variance"]))
@examples(40)
def test_features_get_an_equal_part_of_each_of_their_subsets(case, max_order, kind):
    anova = fit(case, max_order=max_order)
    d, m = case.rows.shape[1], case.values.shape[1]
    expected = np.zeros((d, m))
    for subset, value in amounts(anova, kind, by="subset").items():
        expected[list(subset)] += value / len(subset)
    found = amounts(anova, kind)
    assert set(found) == {f"x{i}" for i in range(d)}
    for i in range(d):
        assert np.allclose(found[f"x{i}"], expected[i], rtol=1e-12, atol=1e-13 * scale(case) ** 2)


@given(supports(weights=MODERATE), ORDERS, st.sampled_from(["share", "first"]))
@examples(60)
def test_shares_are_covariances_with_the_model_and_add_up_to_r2(case, max_order, ties):
    anova = fit(case, max_order=max_order, ties=ties)
    share, structural, covariance = (
        amounts(anova, "variance", "subset", column) for column in ("value", "structural", "covariance")
    )
    p, f = case.probability, case.values
    centred = f - p @ f
    variance = p @ centred**2
    kept = varying(case)
    for subset, part in on_rows(anova, case.rows).items():
        if subset:
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = (p @ (part * centred)) / variance
                own = (p @ part**2) / variance
            assert np.allclose(share[subset][kept], expected[kept], rtol=0, atol=EXACT)
            assert np.allclose(structural[subset][kept], own[kept], rtol=0, atol=EXACT)
            assert np.allclose(structural[subset] + covariance[subset], share[subset], rtol=0, atol=1e-14)
    total = sum(share.values(), np.zeros(f.shape[1]))
    assert np.allclose(total[kept], anova.certificate_.r2[kept], rtol=0, atol=EXACT)
    effects = sum(amounts(anova, "shapley-effects").values())
    assert np.allclose(effects, total, rtol=0, atol=EXACT)


@given(supports(weights=MODERATE, max_outputs=2), ORDERS)
@examples(30)
def test_the_shapley_kind_is_the_weighted_mean_of_absolute_values(case, max_order):
    anova = fit(case, max_order=max_order)
    expected = np.einsum("n,ndm->dm", case.probability, np.abs(anova.explain(case.rows).values))
    found = amounts(anova, "shapley")
    for i, row in enumerate(expected):
        assert np.allclose(found[f"x{i}"], row, rtol=1e-12, atol=1e-14 * scale(case))


def product_case(sizes, seed, outputs=1):
    rng = np.random.default_rng(seed)
    margins = [rng.integers(1, 5, n) for n in sizes]
    rows = np.array(list(product(*map(range, sizes))))
    weight = np.prod([m[c] for m, c in zip(margins, rows.T, strict=True)], axis=0)
    return Case(rows, weight, rng.normal(size=(len(rows), outputs)), "product"), [m / m.sum() for m in margins]


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4), (2, 2, 3, 2)])
def test_independent_inputs_give_the_classical_sobol_indices(sizes):
    case, margins = product_case(sizes, seed=len(sizes))
    f = case.values.reshape(sizes)
    joint = case.probability.reshape(sizes)
    variance = (joint * (f - (joint * f).sum()) ** 2).sum()
    shares = amounts(fit(case, max_order=None), "variance", by="subset")
    parts = amounts(fit(case, max_order=None), "variance", by="subset", column="covariance")
    for subset, table in moebius_independent(margins, f).items():
        if subset:
            sobol = (joint * np.broadcast_to(table, sizes) ** 2).sum() / variance
            assert shares[subset][0] == pytest.approx(sobol, abs=EXACT)
            assert parts[subset][0] == pytest.approx(0.0, abs=EXACT)


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4), (2, 2, 3, 2)])
def test_independent_inputs_give_owens_shapley_effects(sizes):
    """The Shapley values of the game S -> Var E[f | X_S] / Var f, over all coalitions."""
    case, margins = product_case(sizes, seed=40 + len(sizes))
    f, d = case.values.reshape(sizes), len(sizes)
    joint = case.probability.reshape(sizes)
    tables = moebius_independent(margins, f)
    everything = {s: sum(t for b, t in tables.items() if set(b) <= set(s)) for s in tables}  # E[f | X_S]
    game = {s: (joint * (np.broadcast_to(v, sizes) - tables[()]) ** 2).sum() for s, v in everything.items()}
    found = amounts(fit(case, max_order=None), "shapley-effects")
    for i in range(d):
        others = [j for j in range(d) if j != i]
        expected = sum(
            factorial(k) * factorial(d - k - 1) / factorial(d) * (game[tuple(sorted((*s, i)))] - game[s])
            for k in range(d)
            for s in combinations(others, k)
        )
        assert found[f"x{i}"][0] == pytest.approx(expected / game[tuple(range(d))], abs=EXACT)


@given(supports(weights=MODERATE, max_features=3), ORDERS, st.sampled_from(KINDS), st.data())
@examples(60)
def test_splitting_a_level_in_two_identical_ones_changes_nothing(case, max_order, kind, data):
    i = data.draw(st.integers(0, case.rows.shape[1] - 1), label="feature")
    level = data.draw(st.integers(0, case.sizes[i] - 1), label="level")
    part = data.draw(st.sampled_from([0.5, 0.25, 0.1]), label="part")
    chosen = case.rows[:, i] == level
    copies = case.rows[chosen].copy()
    copies[:, i] = case.sizes[i]
    weight = np.where(chosen, (1 - part) * case.weight, case.weight)
    split = Case(
        np.vstack([case.rows, copies]),
        np.concatenate([weight, part * case.weight[chosen]]),
        np.vstack([case.values, case.values[chosen]]),
        case.kind,
    )
    before, after = (amounts(fit(c, max_order=max_order), kind) for c in (case, split))
    kept = varying(case)
    for name, value in before.items():
        assert np.allclose(after[name][kept], value[kept], rtol=0, atol=1e-9 * scale(case) ** 2)


@given(supports(weights=MODERATE), ORDERS, st.sampled_from(KINDS))
@examples(40)
def test_percentages_add_up_to_a_hundred_and_the_largest_come_first(case, max_order, kind):
    frame = fit(case, max_order=max_order).importance(kind)
    m = case.values.shape[1]
    assert list(frame["output"]) == [f"output {k}" for k in range(m)] * case.rows.shape[1]
    value, percent = (frame[c].to_numpy().reshape(-1, m) for c in ("value", "percent"))
    sums = np.abs(percent).sum(axis=0)
    assert np.allclose(sums[np.abs(value).sum(axis=0) > 0], 100.0)
    assert not percent[:, np.abs(value).sum(axis=0) == 0].any()
    assert np.array_equal(np.sign(percent), np.sign(value))
    ranked = np.abs(value).sum(axis=1)
    assert (np.diff(ranked) <= 1e-15 * max(1.0, ranked.max())).all()


def test_shares_may_be_negative_and_are_labelled():
    """Two inputs nearly always alike with opposite effects: together they hardly vary, one of them works against f."""
    rows = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    case = Case(rows, np.array([45, 45, 5, 5]), rows @ np.array([[2.0], [-1.0]]), "counts")
    anova = fit(case, max_order=None)
    share = amounts(anova, "variance")
    assert share["x1"][0] < 0 < share["x0"][0]
    assert share["x0"][0] + share["x1"][0] == pytest.approx(1.0)
    percent = amounts(anova, "variance", column="percent")
    assert percent["x1"][0] < 0
    assert percent["x0"][0] - percent["x1"][0] == pytest.approx(100.0)
    assert list(anova.importance("variance").columns) == [
        *("feature", "output", "value", "structural", "covariance", "percent"),
    ]
    assert amounts(anova, "variance", column="structural")["x1"][0] > 0


def test_a_model_that_does_not_vary_has_no_variance_to_share():
    rng = np.random.default_rng(0)
    rows = np.array(list(product(range(3), range(2))))
    for constant in (0.0, 0.1, 1e8 / 3):
        for _ in range(20):
            case = Case(rows, rng.uniform(0.1, 1, 6), np.full((6, 1), constant), "real")
            for kind in ("variance", "shapley-effects"):
                assert not np.concatenate(list(amounts(fit(case, max_order=None), kind).values())).any()


def test_a_large_offset_does_not_hide_the_variance():
    rows = np.array(list(product(range(3), range(2))))
    values = np.random.default_rng(1).normal(size=(6, 1))
    plain, shifted = (
        amounts(fit(Case(rows, np.ones(6), values + offset, "equal"), max_order=None), "variance")
        for offset in (0.0, 1e6)
    )
    for name, value in plain.items():
        assert shifted[name][0] == pytest.approx(value[0], abs=1e-8)


@pytest.mark.parametrize(
    ("make", "kind"), [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)]
)
@pytest.mark.parametrize("importance", KINDS)
def test_tables_are_of_the_kind_that_was_fitted(make, kind, importance):
    X = make({"a": ["u", "v", "u", "v"], "b": ["x", "x", "y", "y"]})
    anova = FunctionalANOVA(shrinkage=None).fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    frame = anova.importance(importance)
    assert isinstance(frame, kind)
    names = frame.column_names if kind is pa.Table else list(frame.columns)
    assert [n for n in names if n not in ("structural", "covariance")] == ["feature", "value", "percent"]


def test_subsets_are_listed_with_their_order():
    case, _ = product_case((2, 3, 2), seed=9, outputs=2)
    frame = fit(case, max_order=2).importance("l2", by="subset")
    assert list(frame.columns) == ["subset", "order", "output", "value", "percent"]
    assert len(frame) == 2 * 6
    assert (frame["order"] == frame["subset"].str.count(" x ") + 1).all()


def test_what_does_not_exist_is_refused():
    case, _ = product_case((2, 2), seed=1)
    anova = fit(case)
    with pytest.raises(InputError, match=r"kind='gain'.*'l1', 'l2', 'shapley', 'variance' or 'shapley-effects'"):
        anova.importance("gain")
    with pytest.raises(InputError, match="by='level'"):
        anova.importance("l1", by="level")
    for kind in ("shapley", "shapley-effects"):
        with pytest.raises(InputError, match="belongs to features"):
            anova.importance(kind, by="subset")
