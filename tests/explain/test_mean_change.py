"""Why a mean changed between two fits: the parts by brute force over rows, and what they add up to."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InputError, InputTypeError
from exanova.explain import mix_and_model
from exanova.explain.monitor import drifts
from strategies import examples

NAMES = ["a", "b", "c"]
OLD, NEW = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


def rows(seed, p, n=150):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=p)
    b = np.where(rng.random(n) < 0.6, a % 2, rng.integers(0, 2, n))
    return pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 3, n)})


def old_model(t):
    return 0.5 * t["a"] + t["b"] * (t["c"] == 1) - 0.3 * (t["c"] == 2)


def new_model(t):
    return 0.8 * t["a"] + 0.5 * t["b"] * (t["c"] == 1) - 0.3 * (t["c"] == 2) + 0.1


def fitted(table, values, order=3, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(max_order=order, **{"sampled": False, **given}).fit(
            table.astype(str), np.asarray(values, dtype=float), output_names=["y"]
        )


def at_rows(anova, table):
    """(n, S) effects at rows, by subset."""
    parts = anova.components(table.astype(str))
    return dict(zip(parts.subsets, parts.values.T, strict=True))


@examples(12)
@given(seed=st.integers(0, 100), order=st.integers(1, 3))
def test_parts_are_means_of_effects_under_the_first_distribution_and_add_up(seed, order):
    first, second = rows(seed, OLD, 800), rows(seed + 1000, NEW, 800)  # every combination occurs in both
    before = fitted(first, old_model(first), order)
    after = fitted(second, new_model(second), order)
    found = before.change(after)
    assert np.allclose(found.means[:, 0], [old_model(first).mean(), new_model(second).mean()])
    assert np.isclose(found.mix.sum() + found.model.sum(), found.total[0], atol=1e-12)
    f0 = at_rows(before, second)
    g = at_rows(fitted(first, after.predict(first.astype(str)), order), second)
    for k, subset in enumerate(found.subsets):
        if subset:
            assert np.isclose(found.mix[k, 0], f0[subset].mean(), atol=1e-12)
            assert np.isclose(found.model[k, 0], (g[subset] - f0[subset]).mean(), atol=1e-9)
    level = (after.predict(first.astype(str)) - before.predict(first.astype(str))).mean()
    assert np.isclose(found.model[0, 0], level, atol=1e-9)
    assert (found.mix[0] == 0).all()


def test_a_model_that_did_not_change_has_no_part():
    first, second = rows(0, OLD, 400), rows(1, NEW, 400)
    found = fitted(first, old_model(first)).change(fitted(second, old_model(second)))
    assert np.allclose(found.model, 0.0, atol=1e-12)
    assert np.allclose(found.mix_total, found.total)
    assert abs(found.total[0]) > 0.1


def test_rows_that_did_not_change_have_no_part():
    first = rows(0, OLD, 300)
    found = fitted(first, old_model(first)).change(fitted(first, new_model(first)))
    assert np.allclose(found.mix, 0.0, atol=1e-12)
    assert np.allclose(found.model[1:], 0.0, atol=1e-12)
    assert np.isclose(found.model[0, 0], (new_model(first) - old_model(first)).mean())


def test_the_order_of_columns_does_not_matter():
    first, second = rows(0, OLD), rows(1, NEW)
    before = fitted(first, old_model(first), 2)
    straight = before.change(fitted(second, new_model(second), 2))
    turned = before.change(fitted(second[["c", "a", "b"]], new_model(second), 2))
    assert straight.subsets == turned.subsets
    assert np.allclose(straight.mix, turned.mix)
    assert np.allclose(straight.model, turned.model)


def test_other_levels_bins_and_subsets_are_said_and_everything_still_adds_up():
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame({"age": rng.integers(18, 70 + 10 * k, 300), "job": rng.choice(list("xyz" if k else "wxy"), 300)})
        for k in range(2)
    ]
    before, after = (
        FunctionalANOVA(sampled=False, n_bins=bins, subsets=[("age", "job")] if k else [("age",), ("job",)]).fit(
            table, table["age"] / 50 + (table["job"] == "x") * (1 + k), output_names=["y"]
        )
        for k, (table, bins) in enumerate(zip(tables, (4, 5), strict=True))
    )
    found = before.change(after)
    assert np.isclose(found.mix.sum() + found.model.sum(), found.total[0], atol=1e-12)
    assert found.found_in == ("both", "both", "both", "second")
    said = "\n".join(found.notes)
    assert "job: 1 level or part of a level occurs only in the first fit" in said
    assert "job: 1 level or part of a level occurs only in the second fit" in said
    assert "age: bins have other edges" in said
    assert "(only in the second)" in str(found)
    assert "1 effect only in the second fit: 0 in the first" in said
    assert found.shared[2, 1] < 1.0


@pytest.mark.parametrize("columns", [0, 1500])
def test_large_tables_are_projected_like_small_ones(columns, monkeypatch):
    first, second = rows(0, OLD), rows(1, NEW)
    before, after = fitted(first, old_model(first)), fitted(second, new_model(second))
    expected = before.change(after)
    monkeypatch.setattr(mix_and_model, "DENSE_COLUMNS", columns)
    monkeypatch.setattr(mix_and_model, "MOST_WEIGHTS", 0)
    found = before.change(after)
    assert np.allclose(found.mix, expected.mix, atol=1e-9)
    assert np.allclose(found.model, expected.model, atol=1e-9)


def test_without_room_for_weights_the_model_parts_have_no_errors(monkeypatch):
    before, after, _ = drawn(0)
    assert np.isfinite(before.change(after).model_stderr).all()
    monkeypatch.setattr(mix_and_model, "MOST_WEIGHTS", 0)
    assert np.isnan(before.change(after).model_stderr).all()


def drawn(seed, n=500, order=2):
    """Two noisy samples of two populations, fitted, and the rows of the second."""
    rng = np.random.default_rng(seed)
    first, second = rows(2 * seed + 1, OLD, n), rows(2 * seed + 2, NEW, n)
    noise = 0.5 * rng.normal(size=(2, n))
    given = {"sampled": True, "shrinkage": None}
    return (
        fitted(first, old_model(first) + noise[0], order, **given),
        fitted(second, new_model(second) + noise[1], order, **given),
        second,
    )


def population(p):
    grid = pd.DataFrame([(a, b, c) for a in range(3) for b in range(2) for c in range(3)], columns=NAMES)
    a, b = grid["a"].to_numpy(), grid["b"].to_numpy()
    weight = np.array(p)[a] * (0.2 + 0.6 * (b == a % 2)) / 3
    return grid, weight


def truth(order):
    (grid, old), (_, new) = population(OLD), population(NEW)
    fits = [
        FunctionalANOVA(sampled=False, max_order=order).fit(
            grid.astype(str), f(grid).to_numpy(), sample_weight=w, output_names=["y"]
        )
        for f, w in ((old_model, old), (new_model, new))
    ]
    return fits[0].change(fits[1])


def test_intervals_cover_the_parts_in_the_population():
    known, held = truth(2), {"mix": [], "total": [], "mix_total": [], "model_total": [], "model": []}
    for seed in range(80):
        before, after, _ = drawn(seed)
        found = before.change(after)
        for name, covered in held.items():
            error = getattr(found, f"{name}_stderr")
            covered.append(np.abs(getattr(found, name) - getattr(known, name)) <= 1.96 * error + 1e-12)
    for name in ("mix", "total", "mix_total", "model_total"):
        assert 0.9 < np.mean(held[name]) <= 1.0, (name, np.mean(held[name]))
    assert np.mean(held["model"]) > 0.75  # these leave out the sampling of the mixes, and say so


def numbers_drawn(seed, n=400):
    """Two samples of numbers of which many rows hold the same value, cut in different bins."""
    rng = np.random.default_rng(seed)
    tables = []
    for shift in (0.0, 0.6):
        age = np.where(rng.random(n) < 0.3, 3.0, np.round(rng.normal(3.0 + shift, 1.5, n), 1))
        tables.append(pd.DataFrame({"age": age, "job": rng.choice(list("xyz"), n)}))
    return [
        FunctionalANOVA(n_bins=bins, shrinkage=None, max_order=1).fit(
            table, table["age"] + (table["job"] == "x") + 0.3 * rng.normal(size=n), output_names=["y"]
        )
        for table, bins in zip(tables, (6, 9), strict=True)
    ]


def test_with_other_bins_the_two_sums_have_errors_that_are_their_spread():
    before, after = numbers_drawn(0)
    found = before.change(after)
    assert any("bins have other edges" in note for note in found.notes)
    assert np.isclose(found.mix.sum() + found.model.sum(), found.total[0], atol=1e-12)
    drawn_again = [fits[0].change(fits[1]) for fits in map(numbers_drawn, range(1, 40))]
    for name in ("mix_total", "model_total"):
        spread = np.std([getattr(other, name)[0] for other in drawn_again])
        error = np.median([getattr(other, f"{name}_stderr")[0] for other in drawn_again])
        assert 0.65 < error / spread < 1.5, (name, error, spread)
    assert np.isfinite(found.model_stderr).all()


def test_rows_of_a_bin_are_divided_as_in_the_other_fit():
    """A value that many rows hold is a bin of no length in one fit and part of a wide bin in the other."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(3000) < 0.4, 3.0, rng.uniform(0.0, 6.0, 3000))
    table = pd.DataFrame({"age": age})
    fits = [FunctionalANOVA(sampled=False, n_bins=bins).fit(table, 1.0 * (age == 3.0)) for bins in (8, 2)]
    assert "3" in fits[0].effects_["age"].to_frame()["age"].tolist()
    for first, second in (fits, fits[::-1]):
        found = first.change(second)
        assert abs(found.mix_total[0]) < 0.01  # the rows are the same
        assert abs(found.model_total[0]) < 0.01


def test_what_has_no_error_is_said(tmp_path, monkeypatch):
    before, after, _ = drawn(0)
    after.save(tmp_path / "after.exanova")
    assert "have none" not in before.change(after).included
    said = before.change(exanova.load(tmp_path / "after.exanova")).included
    assert "the sums of mix and model have none: they need the rows of the second fit, which its file lacks" in said
    monkeypatch.setattr(mix_and_model, "MOST_WEIGHTS", 0)
    assert "the parts of the model have none: these fits have too many cells" in before.change(after).included


def test_files_give_the_same_change(tmp_path):
    before, after, _ = drawn(0)
    expected = before.change(after)
    for k, anova in enumerate((before, after)):
        anova.save(tmp_path / f"{k}.exanova")
    found = exanova.load(tmp_path / "0.exanova").change(exanova.load(tmp_path / "1.exanova"))
    for name in ("mix", "model", "total", "mix_stderr", "model_stderr", "total_stderr"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=0.02), name
    assert np.isnan(found.mix_total_stderr).all()
    assert np.isfinite(expected.mix_total_stderr).all()


def test_tables_and_text_hold_the_parts():
    before, after, _ = drawn(0)
    found = before.change(after)
    table = found.to_frame()
    assert np.isclose(table["mix"].sum() + table["model"].sum(), found.total[0])
    assert set(table["subset"]) >= {"(level)", "a", "b x c"}
    text = str(found)
    for words in ("the mix changed", "the model changed", "mean of y:", "drawn independently"):
        assert words in text
    assert "<table>" in found._repr_html_()
    assert "6 subsets" in repr(found)


def test_drifts_are_the_changes_of_means_and_effects():
    first, second = rows(0, OLD), rows(1, NEW)
    before, after = fitted(first, old_model(first)), fitted(second, new_model(second))
    comparison, change = before.compare(after), before.change(after)
    found = {drift.what: drift.amount for drift in drifts(comparison, change)}
    assert np.isclose(found["the mean"], abs(change.total[0]))
    assert np.isclose(found["the mean, by the mix"], abs(change.mix_total[0]))
    effects = {c.features: c.difference[0] for c in comparison.changes}
    assert np.isclose(found["the effect of a"] ** 2, effects["a",])
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_other_columns_or_outputs_or_things_are_refused():
    first = rows(0, OLD)
    before = fitted(first, old_model(first))
    with pytest.raises(InputError, match="different columns"):
        before.change(fitted(first[["a", "b"]], old_model(first)))
    with pytest.raises(InputError, match="the outputs differ"):
        before.change(FunctionalANOVA(sampled=False).fit(first.astype(str), old_model(first), output_names=["z"]))
    with pytest.raises(InputTypeError, match="expected another fitted"):
        before.change(first)


def _rows(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=200)
    X = pd.DataFrame({k: np.digitize(0.9 * hidden + 0.4 * rng.normal(size=200), [-1, 0, 1]) for k in "abc"})
    X["d"] = rng.integers(0, 5, 200)
    return X, np.sin(X["a"]) + 0.1 * X["b"] * X["c"] + 1e-3 * X["d"], rng


@pytest.mark.parametrize(("mean", "unit"), [(0.0, 1e-6), (1e6, 1.0), (1e6, 1e6)])
@given(seed=st.integers(0, 1000), route=st.sampled_from(["dense", "moments", "matrix-free"]), shrunk=st.booleans())
@examples(3)
def test_nothing_changes_between_two_fits_of_the_same_rows(mean, unit, seed, route, shrunk):
    X, y, rng = _rows(seed)
    order, columns = rng.permutation(len(X)), rng.permutation(X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = FunctionalANOVA(shrinkage="auto" if shrunk else None).fit(X, unit * (mean + y))
        other = FunctionalANOVA() if shrunk else FunctionalANOVA(shrinkage=None, route=route)
        second = other.fit(X[list(columns)].iloc[order], unit * (mean + y).iloc[order])
    for fits in ((first, first), (first, second), (second, first)):
        assert {drift.amount for drift in drifts(fits[0].compare(fits[1]), fits[0].change(fits[1]))} == {0.0}


def test_a_small_change_of_the_model_is_no_rounding():
    X, y, _ = _rows(0)
    before, after = (FunctionalANOVA(shrinkage=None).fit(X, own) for own in (y, y + 1e-9 * (X["d"] - 3)))
    found = {drift.what: drift.amount for drift in drifts(before.compare(after), before.change(after))}
    assert found["the effect of d"] == pytest.approx(1e-9 * X["d"].std(ddof=0), rel=1e-3)
    assert found["the mean"] == pytest.approx(1e-9 * abs((X["d"] - 3).mean()), rel=1e-3)
