"""Intervals of importances, clusters that are few, and what noise alone makes of shrunken effects."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import chi2, ncx2, t

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InputError
from exanova.explain.importance_errors import bias_of_shares
from exanova.explain.importance_intervals import interval_of_absolutes, interval_of_squares
from exanova.infer.bands import quantile


def table(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, 4))
    return rows, (rows[:, 0] == 1) + 0.5 * (rows[:, 1] == rows[:, 2]) + 0.5 * rng.normal(size=n)


def fit(rows: np.ndarray, y: np.ndarray, **parameters: object) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(n_jobs=1, **parameters).fit(rows, y)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("theta", [0.0, 2.0, 30.0, 300.0])
def test_intervals_of_squares_cover_a_sum_of_squares_of_normal_deviates(k: float, theta: float) -> None:
    """g times a noncentral chi-square: every quantile of X in the middle 95 % gives an interval that holds theta."""
    g = 0.7
    middle = np.linspace(0.03, 0.97, 41)
    x = g * (ncx2.ppf(middle, k, theta) if theta else chi2.ppf(middle, k))
    stderr = np.sqrt(4.0 * g * x)
    low, high = interval_of_squares(x, np.full_like(x, g * k), stderr, 0.95, posterior=False)
    assert (low <= g * theta + 1e-8).all()
    assert (high >= g * theta - 1e-8).all()
    outside = g * ncx2.ppf(np.array([0.99]), k, theta + 1e-9)
    low, _ = interval_of_squares(outside, np.array([g * k]), np.sqrt(4.0 * g * outside), 0.95, posterior=False)
    assert low[0] > g * theta


def test_a_clear_importance_has_the_normal_interval() -> None:
    value, bias, stderr = np.array([10.0]), np.array([0.01]), np.array([0.05])
    low, high = interval_of_squares(value, bias, stderr, 0.95, posterior=False)
    assert low[0] == pytest.approx(9.99 - 1.96 * 0.05, abs=1e-3)
    assert high[0] == pytest.approx(9.99 + 1.96 * 0.05, abs=1e-3)
    low, high = interval_of_absolutes(value, np.zeros(1), stderr, 0.95, posterior=False)
    assert (low[0], high[0]) == (pytest.approx(10 - 1.96 * 0.05, abs=1e-4), pytest.approx(10 + 1.96 * 0.05, abs=1e-3))


@pytest.mark.parametrize("shrinkage", ["auto", None])
@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_what_is_not_distinguishable_from_zero_has_an_interval_that_ends_there(
    kind: str, shrinkage: str | None
) -> None:
    rows, y = table()
    found = fit(rows, y, shrinkage=shrinkage).importance(kind, by="subset", level=0.95, stderr=True)
    low = dict(zip(found["subset"], found["low"], strict=True))
    assert low["x0"] > 0
    assert low["x1 x x2"] > 0
    assert sum(low[s] > 0 for s in ("x3", "x0 x x3", "x1 x x3", "x2 x x3")) <= 1
    assert (found["low"] <= found["high"]).all()
    assert (found["low"] >= 0).all()
    narrow = fit(rows, y, shrinkage=shrinkage).importance(kind, by="subset", level=0.5)
    assert ((narrow["high"] - narrow["low"]).sum()) < (found["high"] - found["low"]).sum()
    assert "stderr" not in narrow


def test_shares_may_be_negative_and_features_have_intervals_too() -> None:
    rows, y = table()
    anova = fit(rows, y, shrinkage=None)
    for kind in ("variance", "shapley-effects", "shapley"):
        found = anova.importance(kind, level=0.9, stderr=True)
        half = (found["high"] - found["low"]).to_numpy() / 2
        most = 1.5 if kind == "shapley" else 1.03  # mean absolute values have a kink at zero; the rest is Student's t
        assert (half <= quantile(0.9) * found["stderr"].to_numpy() * most).all()
    for level in (0.0, 1.0, True, "much"):
        with pytest.raises(InputError, match="a number between 0 and 1"):
            anova.importance(level=level)


def test_few_clusters_have_students_intervals(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows, y = table(240)
    clusters = np.arange(240) // 20
    rows[clusters >= 3, 3] = rows[clusters >= 3, 3] % 2  # the last level of x3 occurs in three clusters only
    anova = FunctionalANOVA(shrinkage=None, max_order=1, n_jobs=1).fit(rows, y, clusters=clusters)
    effect = anova.effects_["x3"]
    low, high = effect.interval(0.95)
    reach = (high - low)[:, 0] / 2 / effect.stderr[:, 0]
    np.testing.assert_allclose(reach, t.ppf(0.975, [11, 11, 2]))
    band = effect.interval(0.95, simultaneous=True)
    assert (band[0] <= low + 1e-12).all()
    anova.save(tmp_path / "clustered.exanova")
    again = exanova.load(tmp_path / "clustered.exanova").effects_["x3"].interval(0.95)
    np.testing.assert_array_equal(again[0], low)
    rows_alone = FunctionalANOVA(shrinkage=None, max_order=1, n_jobs=1).fit(rows, y).effects_["x3"]
    low, high = rows_alone.interval(0.95)
    reach = (high - low)[:, 0] / 2 / rows_alone.stderr[:, 0]
    assert (reach > t.ppf(0.975, rows_alone.rows)).all()  # rows less the functions they determine
    assert (reach < t.ppf(0.975, rows_alone.rows - 8)).all()


@pytest.mark.parametrize("by_rows", [False, True])
def test_the_noise_in_shrunken_effects_is_that_of_a_linear_map(monkeypatch: pytest.MonkeyPatch, by_rows: bool) -> None:
    """Given the ratios, effects are linear in the values: their variance under noise is tau^2 times the map squared."""
    monkeypatch.setattr("exanova.shrink.cost.by_rows", lambda rows, functions: by_rows)
    rows, y = table(80)
    anova = fit(rows, y)
    known = anova.decomposition_.uncertainty.fitted
    part, residual = known.posterior.part_of(0)
    sample, family, prior = known.sample, anova.decomposition_.family, known.posterior.prior
    z = prior.on_rows(family, sample.codes) * known.posterior.scale(part)
    d = np.asarray(sample.copies)
    solve = np.linalg.solve(np.eye(z.shape[1]) + z.T @ (d[:, None] * z), z.T * d)  # from values to coordinates
    on_cells = prior.on_cells(family, known.posterior.scale(part)[:, None] * solve)
    expected = residual * (on_cells**2 / d).sum(axis=1)
    found = known.posterior.cell_variances(family, sampling=True)[:, 0]
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-8, atol=1e-12)
    assert (found <= known.posterior.cell_variances(family)[:, 0] + 1e-12).all()


def test_false_discoveries_are_rare_among_shrunken_effects() -> None:
    """Of twenty samples: effects that are zero make up less than a tenth of those told from zero; clear ones are."""
    false, told_of_clear = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 4, (300, 6))
        y = (rows[:, 0] > 1) + 0.8 * (rows[:, 1] == rows[:, 2]) + 0.6 * rng.normal(size=300)
        tests = fit(rows.astype(str), y).significance()
        told = [s for s, yes in zip(tests["subset"], tests["significant"], strict=True) if yes]
        false.append(sum(s not in ("x0", "x1 x x2") for s in told) / max(1, len(told)))
        told_of_clear += {"x0", "x1 x x2"} <= set(told)
    assert np.mean(false) < 0.1
    assert told_of_clear >= 18


def test_the_interval_of_a_mean_absolute_shapley_value_reaches_zero_for_a_feature_that_is_only_noise():
    """Noise makes every Shapley value of the feature differ from zero, and so their mean; the interval says so."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (400, 3))
    anova = FunctionalANOVA(max_order=1, shrinkage=None).fit(X, X[:, 0] + rng.normal(size=400))
    table = anova.importance("shapley", level=0.95)
    rows = {name: (low, high) for name, low, high in zip(table["feature"], table["low"], table["high"], strict=True)}
    assert rows["x0"][0] > 0.5
    assert rows["x1"][0] == 0
    assert rows["x2"][0] == 0


def test_a_clear_importance_reaches_up_in_proportion_to_itself() -> None:
    value, stderr = np.array([1.0, 1.0]), np.array([0.3, 0.9])
    for interval in (interval_of_squares, interval_of_absolutes):
        low, high = interval(value, np.full(2, 0.01), stderr, 0.95, posterior=False)
        assert high[0] >= 0.99 * np.exp(1.96 * 0.3 / 0.99) - 1e-3
        assert high[1] < 0.99 * np.exp(1.96 * 0.9 / 0.99)  # not clearly above zero: no proportion to speak of
        assert (low >= 0).all()


def test_mean_absolute_shapley_values_of_pairs_that_are_noise_cover_their_truth() -> None:
    """The bias of a sum is far less than that of its parts: twenty samples, six features, all pairs, one effect."""
    truth, covered = np.array([0.5, 0, 0, 0, 0, 0]), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 3, (300, 6))
        y = np.where(rows[:, 0] == 0, 1.0, 0.0) * 0.75 + rng.normal(size=300) * 0.5
        effect = np.where(rows[:, 0] == 0, 1.0, 0.0) * 0.75
        truth[0] = np.abs(effect - effect.mean()).mean()
        found = FunctionalANOVA(max_order=2, shrinkage=None, n_jobs=1).fit(rows, y).importance("shapley", level=0.95)
        at = [list(found["feature"]).index(f"x{k}") for k in range(6)]
        low, high = found["low"].to_numpy()[at], found["high"].to_numpy()[at]
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > 0.85


def test_shares_of_noise_are_too_large_by_their_bias_and_their_intervals_reach_zero() -> None:
    """Also where features depend on each other: a share of k functions is too large by k / n of the noise."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 4, (300, 3))
    rows[:, 1] = np.where(rng.random(300) < 0.7, rows[:, 0], rows[:, 1])
    found, biases, above = [], [], {"subset": 0.0, "feature": 0.0}
    for _ in range(40):
        anova = fit(rows, rng.normal(size=300), shrinkage=None)
        table = anova.importance("variance", by="subset", level=0.95)
        known = anova.decomposition_
        biases.append(bias_of_shares(known.family, known.uncertainty)[1:, 0])
        values = dict(zip(table["subset"], table["value"], strict=True))
        found.append([values[" x ".join(known.schema.names(subset))] for subset in known.family.subsets[1:]])
        for by in above:
            above[by] += float((anova.importance("variance", by=by, level=0.95)["low"] > 0).mean()) / 40
    functions = anova.decomposition_.uncertainty.engine.influence.basis.dimensions[1:]
    np.testing.assert_allclose(np.mean(biases, axis=0), functions / 300, rtol=0.15)
    np.testing.assert_allclose(np.mean(found, axis=0), np.mean(biases, axis=0), rtol=0.35)
    assert max(above.values()) <= 0.04, above
