"""Interaction indices: against shapiq's converter, against their definitions over all coalitions, and by their laws."""

from __future__ import annotations

from itertools import combinations, product
from math import comb, factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.errors import InputError
from exanova.explain import interactions as module
from exanova.explain.dividends import WEIGHTS, bernoulli, size_weights
from peers import shapiq
from strategies import MODERATE, examples, fit, supports

CONVERTED = ("SV", "SII", "k-SII", "STII", "FSII", "BV", "FBII")
"""What shapiq's converter makes of dividends; Banzhaf interactions it computes from the game."""

INDICES = (*CONVERTED, "BII")
EXACT = 1e-10


def random_game(d, seed, missing=0.0, outputs=None):
    """A decomposition to all orders of a random model on d features of two or three levels, and its rows."""
    rng = np.random.default_rng(seed)
    rows = np.array(list(product(*(range(n) for n in rng.integers(2, 4, d)))))
    rows = rows[rng.random(len(rows)) >= missing]
    values = rng.normal(size=(len(rows), outputs) if outputs else len(rows))
    return FunctionalANOVA(shrinkage=None, max_order=None).fit(
        rows, values, sample_weight=rng.integers(1, 5, len(rows))
    ), rows


def dividends(anova, row):
    """{subset: f_A at the row}, the intercept among them."""
    parts = anova.components(row[None])
    return {tuple(int(name[1:]) for name in s): v for s, v in zip(parts.subsets, parts.values[0], strict=True)}


def coalition_values(found, d):
    """v(S) = sum of the dividends inside S, for every S."""
    coalitions = [s for k in range(d + 1) for s in combinations(range(d), k)]
    return {s: sum(v for a, v in found.items() if set(a) <= set(s)) for s in coalitions}


def discrete_derivative(v, subset, outside):
    """Delta_S v(T): the sum over L inside S of (-1)^(|S| - |L|) v(T + L)."""
    parts = [part for k in range(len(subset) + 1) for part in combinations(subset, k)]
    return sum((-1) ** (len(subset) - len(part)) * v[tuple(sorted((*outside, *part)))] for part in parts)


def average_derivative(v, subset, d, weight):
    """The mean over T outside S of the discrete derivative; weight(t, s) is that of one T of size t."""
    rest = [i for i in range(d) if i not in subset]
    sets = [t for k in range(len(rest) + 1) for t in combinations(rest, k)]
    return sum(weight(len(t), len(subset)) * discrete_derivative(v, subset, t) for t in sets)


def by_position(found, row=0):
    values = found.values[row]
    return {tuple(int(n[1:]) for n in s): v for s, v in zip(found.subsets, values, strict=True)}


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_every_index_of_every_order_agrees_with_shapiq(d):
    anova, rows = random_game(d, seed=d)
    row = rows[[len(rows) // 2]]
    moebius = anova.interactions(row, index="Moebius", order=d).to_shapiq()[0]
    converter = shapiq.game_theory.moebius_converter.MoebiusConverter(moebius)
    v = coalition_values(dividends(anova, row[0]), d)
    game = shapiq.ExactComputer(
        lambda coalitions: np.array([v[tuple(np.flatnonzero(c).tolist())] for c in coalitions]), n_players=d
    )
    for index in INDICES:
        for order in range(1, 2 if index in ("SV", "BV") else d + 1):
            expected = (game if index == "BII" else converter)(index, order=order).dict_values
            found = by_position(anova.interactions(row, index=index, order=order))
            assert set(found) == {s for s in expected if s}
            assert max(abs(found[s] - expected[s]) for s in found) < EXACT, (index, order)


@given(supports(weights=MODERATE, max_outputs=1), st.sampled_from(CONVERTED), st.integers(1, 4))
@examples(40)
def test_shapiq_agrees_on_supports_with_holes(case, index, order):
    anova = fit(case, max_order=None)
    row = case.rows[:1]
    moebius = anova.interactions(row, index="Moebius", order=9).to_shapiq(0)[0]
    order = 1 if index in ("SV", "BV") else min(order, moebius.max_order)
    expected = shapiq.game_theory.moebius_converter.MoebiusConverter(moebius)(index, order=order).dict_values
    found = anova.interactions(row, index=index, order=order)
    for subset, value in zip(found.subsets, found.values[0, :, 0], strict=True):
        place = tuple(int(name[1:]) for name in subset)
        assert abs(value - expected.get(place, 0.0)) < EXACT * max(1.0, np.abs(case.values).max())


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_banzhaf_and_shapley_interactions_are_mean_discrete_derivatives(d, missing):
    anova, rows = random_game(d, seed=10 + d, missing=missing)
    row = rows[0]
    v = coalition_values(dividends(anova, row), d)
    weights = {
        "BII": lambda t, s: 1 / 2 ** (d - s),
        "SII": lambda t, s: factorial(t) * factorial(d - t - s) / factorial(d - s + 1),
    }
    for index, weight in weights.items():
        found = by_position(anova.interactions(row[None], index=index, order=d))
        for subset, value in found.items():
            assert abs(value - average_derivative(v, subset, d, weight)) < EXACT


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_faithful_banzhaf_interactions_are_the_best_fit_over_all_coalitions(order):
    d = 4
    anova, rows = random_game(d, seed=20)
    v = coalition_values(dividends(anova, rows[3]), d)
    terms = [s for k in range(order + 1) for s in combinations(range(d), k)]
    design = np.array([[set(term) <= set(s) for term in terms] for s in v], dtype=float)
    best = np.linalg.lstsq(design, np.array(list(v.values())), rcond=None)[0]
    found = by_position(anova.interactions(rows[[3]], index="FBII", order=order))
    assert max(abs(found[s] - b) for s, b in zip(terms, best, strict=True) if s) < EXACT


@pytest.mark.parametrize("order", [1, 2, 3])
def test_faithful_shapley_interactions_are_the_best_fit_under_the_shapley_kernel(order):
    d = 4
    anova, rows = random_game(d, seed=21)
    v = coalition_values(dividends(anova, rows[3]), d)
    terms = [s for k in range(order + 1) for s in combinations(range(d), k)]
    design = np.array([[set(term) <= set(s) for term in terms] for s in v], dtype=float)
    weight = [1e9 if len(s) in (0, d) else (d - 1) / (comb(d, len(s)) * len(s) * (d - len(s))) for s in v]
    root = np.sqrt(weight)
    best = np.linalg.lstsq(design * root[:, None], np.array(list(v.values())) * root, rcond=None)[0]
    found = by_position(anova.interactions(rows[[3]], index="FSII", order=order))
    assert max(abs(found[s] - b) for s, b in zip(terms, best, strict=True) if s) < 1e-6  # of a finite constraint


@given(supports(weights=MODERATE), st.sampled_from(["k-SII", "STII", "FSII"]), st.integers(1, 4))
@examples(50)
def test_efficient_indices_add_up_to_the_fitted_part(case, index, order):
    anova = fit(case, max_order=None)
    found = anova.interactions(case.rows, index=index, order=order)
    total = found.values.sum(axis=1) + found.base_values
    assert np.abs(total - anova.predict(case.rows)).max() <= EXACT * max(1.0, np.abs(case.values).max())


@given(supports(weights=MODERATE), st.sampled_from(["SV", "k-SII", "SII", "STII", "FSII"]))
@examples(30)
def test_of_order_one_they_are_the_shapley_values(case, index):
    anova = fit(case, max_order=None)
    e = anova.explain(case.rows)
    found = anova.interactions(case.rows, index=index, order=1)
    for j, (name,) in enumerate(found.subsets):
        expected = e.values[:, e.feature_names.index(name)]
        assert np.abs(found.values[:, j] - expected).max() <= EXACT * max(1.0, np.abs(case.values).max())


@given(supports(weights=MODERATE), st.integers(1, 4))
@examples(30)
def test_moebius_is_the_components(case, order):
    anova = fit(case, max_order=None)
    found, parts = anova.interactions(case.rows, index="Moebius", order=order), anova.components(case.rows)
    kept = [k for k, s in enumerate(parts.subsets) if 1 <= len(s) <= order]
    assert found.subsets == tuple(parts.subsets[k] for k in kept)
    assert np.array_equal(found.values, parts.values[:, kept])
    assert np.array_equal(found.base_values, parts.values[:, 0])


@pytest.mark.parametrize("index", [*INDICES, "Moebius"])
def test_the_exported_objects_hold_the_same_numbers(index):
    anova, rows = random_game(4, seed=3, outputs=2)
    found = anova.interactions(rows[:5], index=index, order=3)
    for output in (0, 1, "output 1"):
        k = int(str(output)[-1])
        for row, exported in enumerate(found.to_shapiq(output)):
            assert exported.index == index
            assert exported.max_order == found.order
            assert not exported.estimated
            assert exported.n_players == 4
            assert exported.baseline_value == pytest.approx(float(found.base_values[row, k]), abs=0)
            values = {s: v for s, v in exported.dict_values.items() if s}
            expected = {tuple(int(n[1:]) for n in s): v for s, v in zip(found.subsets, found.values[row, :, k])}  # noqa: B905
            assert values == expected


def test_what_was_exported_as_moebius_comes_back_as_any_index():
    anova, rows = random_game(4, seed=4)
    exported = anova.interactions(rows[:2], index="Moebius", order=4).to_shapiq()
    for row, moebius in enumerate(exported):
        back = shapiq.game_theory.moebius_converter.MoebiusConverter(moebius)("k-SII", order=2)
        found = by_position(anova.interactions(rows[:2], index="k-SII", order=2), row)
        assert max(abs(back.dict_values[s] - v) for s, v in found.items()) < EXACT
        assert back.baseline_value == pytest.approx(float(anova.intercept_[0]))


def test_only_subsets_that_exist_are_listed():
    anova, rows = random_game(4, seed=5)
    truncated = FunctionalANOVA(shrinkage=None, max_order=2).fit(rows, anova.predict(rows))
    found = truncated.interactions(rows[:1], order=4)
    assert found.order == 2  # nothing larger exists, so that a larger order asks for nothing more
    assert max(map(len, found.subsets)) == 2
    assert FunctionalANOVA(shrinkage=None, max_order=0).fit(rows, anova.predict(rows)).interactions(
        rows
    ).values.shape == (len(rows), 0)


def test_chunks_change_nothing(monkeypatch):
    anova, rows = random_game(4, seed=6, outputs=2)
    whole = anova.interactions(rows, order=3).values
    monkeypatch.setattr(module, "CHUNK_BYTES", 3 * 8 * 2 * 16)
    assert np.array_equal(anova.interactions(rows, order=3).values, whole)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_long_table_is_of_the_kind_that_was_fitted(kind):
    X = kind({"a": ["u", "v", "u", "v"], "b": ["x", "x", "y", "y"]})
    anova = FunctionalANOVA(shrinkage=None).fit(
        X, np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 0.0], [4.0, 4.0]]), output_names=["n", "y"]
    )
    found = anova.interactions(X, index="SII")
    frame = found.to_frame()
    assert isinstance(frame, kind)
    assert list(frame.columns) == ["row", "subset", "order", "index", "n", "y"]
    assert list(frame["subset"]) == ["a", "b", "a x b"] * 4
    assert list(frame["order"]) == [1, 1, 2] * 4
    assert set(frame["index"]) == {"SII"}
    assert np.array_equal(np.asarray(frame["y"]), found.values[:, :, 1].ravel())
    assert "SII up to order 2 of 4 rows" in repr(found)


def test_what_does_not_exist_is_refused_with_what_does():
    anova, rows = random_game(3, seed=7, outputs=2)
    with pytest.raises(InputError, match="expected 'Moebius', 'SV', 'SII'"):
        anova.interactions(rows, index="shapley")
    for order in (0, -1, 1.5, True, "2", None):
        with pytest.raises(InputError, match="whole number of at least 1"):
            anova.interactions(rows, order=order)
    found = anova.interactions(rows)
    with pytest.raises(InputError, match="there are several outputs"):
        found.to_shapiq()


def test_the_weights_of_an_index_sum_as_its_axioms_say():
    for t in range(1, 9):
        for k in range(1, 5):
            for index in ("k-SII", "STII", "FSII"):  # efficiency of the unanimity game of t players
                weights = size_weights(index, k, t)[:, t]
                assert sum(comb(t, s) * weights[s] for s in range(1, min(k, t) + 1)) == pytest.approx(1.0, abs=1e-12)
    assert set(WEIGHTS) == {*INDICES, "Moebius"}
    assert bernoulli(8)[2::2] == pytest.approx([1 / 6, -1 / 30, 1 / 42, -1 / 30])
    assert not any(bernoulli(9)[3::2])
