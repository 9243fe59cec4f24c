"""Shrinkage under a budget, and budgets that rows held out choose."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.data.sample import Sample
from exanova.errors import InputError, OverfitWarning
from exanova.progress import Progress
from exanova.select.automatic import budgets, try_budgets, where_to_stop
from exanova.select.selected_fit import errors_on, judge_selection, ratios_of_others, ratios_on_part
from exanova.shrink.fit import fit_family
from exanova.solve.request import Request

QUIET = Progress(enabled=False)


def planted(n: int, d: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Main effects of a few of d features of three levels, and two pairs."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, d))
    first, second = np.random.default_rng(99).normal(size=(2, 3, 3))
    signal = first[rows[:, 0], rows[:, 1]] + second[rows[:, 2], rows[:, 3]] + (rows[:, 4] == 1)
    return rows, signal + noise * rng.normal(size=n)


def sample_of(rows: np.ndarray, y: np.ndarray) -> Sample:
    codes = np.ascontiguousarray(rows.T).astype(np.uint8)
    return Sample(codes, np.ones(len(y), dtype=np.int64), (3,) * rows.shape[1], y[:, None], len(y))


def fit(rows: np.ndarray, y: np.ndarray, **parameters: object) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        return FunctionalANOVA(n_jobs=1, **parameters).fit(rows, y)  # type: ignore[arg-type]


@pytest.mark.parametrize("selection", ["screen", "canonical", "lasso"])
def test_a_selected_family_is_shrunk_with_everything_that_belongs_to_it(selection: str) -> None:
    rows, y = planted(400, 10, 0.5)
    chosen = fit(rows, y, max_terms=60, selection=selection)
    certificate = chosen.certificate_
    assert "prior variance" in str(certificate.shrinkage)
    assert sum(certificate.effective_functions) < certificate.n_functions - 1
    np.testing.assert_allclose(certificate.loss.total, 1.0 - certificate.r2, atol=1e-12)
    assert certificate.loss.shrinkage[0] > 0
    assert certificate.orthogonality < 1e-12
    assert certificate.r2_eval is not None
    assert chosen.errors().method == "posterior"
    assert all(np.isfinite(effect.stderr).all() for effect in chosen.effects_.values())


def test_a_family_given_by_name_is_shrunk_alike() -> None:
    """Selected or named, a family has one posterior: at the same ratios the same effects."""
    rows, y = planted(400, 10, 0.5)
    named = fit(rows, y, subsets=[(0, 1), (2, 3), (4, 5)])
    subsets = tuple(tuple(int(name[1:]) for name in key) for key in named.effects_)
    asked = Request(shrinkage=True, ordered=(3,) * 10)
    found = fit_family(sample_of(rows, y), asked, subsets, QUIET)
    values = np.concatenate([effect.values for effect in named.effects_.values()])
    np.testing.assert_allclose(found.values, values, atol=1e-10)


def test_rows_that_did_not_choose_a_family_say_how_much_it_carries() -> None:
    """Pairs chosen by their fit to pure noise look strong on the rows that chose them, and not on others."""
    rng = np.random.default_rng(3)
    rows, y = rng.integers(0, 3, (300, 30)), rng.normal(size=300)
    data, request = sample_of(rows, y), Request(max_terms=61 + 120, selection="screen", shrinkage=True)
    known = ratios_of_others(data, request, QUIET)
    assert known is not None
    assert known[0][2] < -2.0  # of the logarithm of pairs over noise
    chosen = fit(rows, y, max_terms=61 + 120)
    flattered = fit(rows, y, subsets=[key for key in chosen.effects_ if key])
    assert flattered.certificate_.r2[0] > 0.5
    assert chosen.certificate_.r2[0] < 0.3


def test_a_budget_is_fitted_exactly_where_nothing_is_to_be_shrunk() -> None:
    rows, y = planted(400, 10, 0.5)
    exact = fit(rows, y, max_terms=60, shrinkage=None)
    assert exact.certificate_.shrinkage in (None, "")
    whole = fit(rows, y, max_terms=60, sampled=False)
    assert "complete population" in str(whole.certificate_.shrinkage)
    first = fit(rows, y, max_terms=60, ties="first")
    assert "off" in str(first.certificate_.shrinkage)
    for key, effect in exact.effects_.items():
        np.testing.assert_array_equal(whole.effects_[key].values, effect.values)


def test_the_fit_on_other_rows_counts_the_selection() -> None:
    """Forty pairs chosen among many by the noise of few rows: rows left out of the fit alone would not tell."""
    rows, y = planted(600, 40, 1.0)
    new, target = planted(10_000, 40, 1.0, seed=1)
    anova = fit(rows, y, max_terms=81 + 160)
    assert "selecting again" in str(anova.certificate_.eval_method)
    assert abs(float(anova.certificate_.r2_eval[0]) - float(anova.score(new, target))) < 0.12
    named = fit(rows, y, subsets=[key for key in anova.effects_ if key])
    assert float(named.certificate_.r2_eval[0]) > float(named.score(new, target)) + 0.2
    kept = fit(rows, y, max_terms=81 + 160, shrinkage=None)
    assert "selecting again" in str(kept.certificate_.eval_method)
    assert kept.certificate_.holds is False


def test_selecting_again_is_a_selection_and_fit_to_part_of_the_rows() -> None:
    rows, y = planted(500, 12, 0.3)
    order = np.lexsort(rows.T[::-1])  # as distinct rows are kept
    rows, y = rows[order], y[order]
    asked = {"max_terms": 60, "selection": "screen", "random_state": 3, "ordered": (3,) * 12}
    data, request = sample_of(rows, y), Request(shrinkage=True, **asked)  # type: ignore[arg-type]
    found = judge_selection(data, request, QUIET)
    by_hand = []
    for k in range(found.splits):
        train, held = data.split(0.2, 3 + 1 + k)
        anova = fit(train.codes.T, train.values[:, 0], max_terms=60, min_gain=0.0, random_state=3)
        by_hand.append(np.mean((held.values[:, 0] - anova.predict(held.codes.T).ravel()) ** 2))
    assert found.mse[0] == pytest.approx(np.mean(by_hand), rel=1e-9)


def test_rows_that_chose_nothing_say_where_a_growing_family_should_stop() -> None:
    """Two pairs matter; more of them do not help, and fewer cost much."""
    rows, y = planted(1200, 8, 0.3)
    mains = ((), *((i,) for i in range(8)))
    pairs = [(0, 1), (2, 3), (0, 4), (1, 5), (4, 5), (6, 7)]
    train, held = sample_of(rows, y).split(0.25, seed=1)
    errors = []
    for k in range(len(pairs) + 1):
        found = fit_family(train, Request(shrinkage=True), (*mains, *sorted(pairs[:k])), QUIET)
        errors.append(errors_on(held, found, 1))
    errors, variance = np.array(errors), held.values.var(axis=0)
    assert where_to_stop(errors, variance) == 2
    assert errors[1] > errors[2] + 0.03 * variance
    assert errors[-1] < errors[2] + 0.01 * variance


@pytest.mark.parametrize("shrinkage", ["auto", None])
def test_auto_stops_where_rows_held_out_stop_improving(monkeypatch: pytest.MonkeyPatch, shrinkage: str | None) -> None:
    monkeypatch.setattr("exanova.shrink.cost.SUBSETS_WORK", 0)  # as in high dimension
    rows, y = planted(800, 30, 0.7)
    new, target = planted(5000, 30, 0.7, seed=1)
    found = fit(rows, y, max_terms="auto", shrinkage=shrinkage)
    assert found.selection_ is not None
    tried = {trial.budget: trial.r2 for trial in found.selection_.trials}
    assert found.selection_.budget in tried
    assert tried[found.selection_.budget] >= max(tried.values()) - 0.002
    assert max(tried) > found.selection_.budget  # more was tried, and was no better
    assert {("x0", "x1"), ("x2", "x3")} <= set(found.effects_)
    best = max(float(fit(rows, y, max_terms=61 + k, shrinkage=shrinkage).score(new, target)) for k in (0, 32, 128, 512))
    assert float(found.score(new, target)) > best - 0.02


def test_auto_needs_no_budget_where_all_candidates_are_affordable() -> None:
    rows, y = planted(400, 6, 0.5)
    found, plain = fit(rows, y, max_terms="auto"), fit(rows, y)
    assert found.selection_ is None
    for key, effect in plain.effects_.items():
        np.testing.assert_array_equal(found.effects_[key].values, effect.values)
    some = fit(rows, y, max_terms="auto", subsets=[(0, 1), (2, 3)])
    assert max(map(len, some.effects_)) == 2
    assert {key for key in some.effects_ if len(key) == 2} == {("x0", "x1"), ("x2", "x3")}


def test_budgets_double_up_to_the_largest() -> None:
    rows, y = planted(300, 10, 0.5)
    request = Request(max_terms=200, selection="screen", shrinkage=True, auto_terms=True)
    assert list(budgets(sample_of(rows, y), request)) == [21, 53, 85, 149, 200]
    tried = try_budgets(sample_of(rows, y), request, QUIET)
    assert [trial.budget for trial in tried] == [21, 53, 85, 149, 200][: len(tried)]
    assert all(trial.functions <= trial.budget for trial in tried)


def test_a_budget_that_was_found_goes_to_a_file_and_back(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("exanova.shrink.cost.SUBSETS_WORK", 0)
    rows, y = planted(300, 8, 0.5)
    anova = fit(rows, y, max_terms="auto")
    anova.save(tmp_path / "auto.exanova")
    again = exanova.load(tmp_path / "auto.exanova")
    assert again.selection_ == anova.selection_
    assert "R2 on rows not used" in str(again.selection_)


def test_bootstrap_selects_and_shrinks_again() -> None:
    rows, y = planted(300, 8, 0.6)
    anova = fit(rows, y, max_terms=40)
    posterior = anova.effects_["x0", "x1"].stderr.copy()
    assert anova.errors("bootstrap", n_refits=20).refits == 20
    ratio = anova.effects_["x0", "x1"].stderr / posterior
    assert 0.5 < float(np.median(ratio)) < 2.0


def with_rare_levels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Few rows, a column of up to thirty levels and four of up to six, most of them rare."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    rows = np.column_stack([rng.zipf(1.5, n).clip(max=30), *(rng.zipf(2.0, n).clip(max=6) for _ in range(4))])
    return rows, rows[:, 1] + 1.0 * ((rows[:, 0] == 2) & (rows[:, 2] == 1)) + 0.3 * rng.normal(size=n)


def is_finite(anova: FunctionalANOVA, rows: np.ndarray) -> bool:
    certificate = anova.certificate_
    found = [anova.predict(rows), certificate.r2, [] if certificate.r2_eval is None else certificate.r2_eval]
    found += [part for effect in anova.effects_.values() for part in (effect.values, effect.stderr)]
    return all(np.isfinite(part).all() for part in found if part is not None)


@pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning")  # cells of rows held out alone
@pytest.mark.parametrize("seed", range(20))
def test_rare_levels_need_not_occur_in_every_part_of_the_rows(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Part of the rows selects and part judges; a level or a cell without a row there has no function there."""
    monkeypatch.setattr("exanova.shrink.cost.SUBSETS_WORK", 0)  # so that "auto" tries budgets
    rows, y = with_rare_levels(seed)
    mains = 1 + sum(len(np.unique(column)) - 1 for column in rows.T)
    rng = np.random.default_rng(seed)
    several = np.column_stack([y, np.full(len(y), 2.0), np.arange(len(y)) == 3])
    assert is_finite(fit(rows, y, max_terms=mains + 40), rows)
    assert is_finite(fit(rows, several, max_terms=mains + 40), rows)
    assert is_finite(fit(rows, y, max_terms="auto"), rows)
    assert is_finite(fit(rows[:5], several[:5], max_terms="auto"), rows[:5])
    anova = FunctionalANOVA(n_jobs=1, max_terms="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        anova.fit(rows, y, sample_weight=rng.exponential(size=len(y)), eval_set=0.2)
    assert is_finite(anova, rows)


def test_absent_levels_change_nothing_but_their_own_absence() -> None:
    """Variance components on part of the rows are those of a table in which its levels are all there are."""
    rng = np.random.default_rng(5)
    rows, y = planted(200, 5, 0.5)
    codes, sizes, values = np.ascontiguousarray(rows.T).astype(np.uint8), (3,) * 5, y[:, None]
    spread = np.array([0, 2, 5], dtype=np.uint8)  # levels 1, 3 and 4 do not occur
    subsets = ((), (0,), (1,), (2,), (0, 1), (1, 2))
    weight = rng.integers(1, 4, 200)
    compact = Sample(codes, weight, sizes, values, 200)
    gaps = Sample(spread[codes], weight, (6,) * 5, values, 200)
    expected = ratios_on_part(compact, Request(shrinkage=True, ordered=(3, 0, 1, 0, 0)), subsets, QUIET)
    found = ratios_on_part(gaps, Request(shrinkage=True, ordered=(6, 0, 2, 0, 0)), subsets, QUIET)
    assert found[0] == pytest.approx(expected[0], abs=1e-9)


def test_an_output_that_is_constant_on_the_rows_that_tell_is_not_taken_for_noise() -> None:
    """They say nothing of it, so that its own likelihood does; the other output has the ratios that were told."""
    rows, y = planted(300, 8, 0.3)
    data = replace(sample_of(rows, y), values=np.column_stack([y, y**2]))
    subsets = ((), *((i,) for i in range(8)), (0, 1), (2, 3))
    own = fit_family(data, Request(shrinkage=True), subsets, QUIET)
    told = fit_family(data, Request(shrinkage=True), subsets, QUIET, known=lambda: {1: {1: -14.0, 2: -14.0}})
    assert own.values[1:, 0].any()
    np.testing.assert_allclose(told.values[:, 0], own.values[:, 0], atol=1e-3 * np.abs(own.values[:, 0]).max())
    assert np.abs(told.values[1:, 1]).max() < 0.1 * np.abs(own.values[1:, 1]).max()


def test_a_word_other_than_auto_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected a whole number of functions, 'auto', or None"):
        FunctionalANOVA(max_terms="many").fit(np.eye(2), np.arange(2.0))  # type: ignore[arg-type]
