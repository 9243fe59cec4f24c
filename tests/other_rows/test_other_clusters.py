"""Rows drawn in clusters: the fit on other rows is that on other clusters, left out whole and predicted by the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import exanova
from exanova.data import folds
from exanova.data.folds import folds_of
from exanova.errors import InputError, OverfitWarning
from exanova.infer.error_record import FEW_CLUSTERS
from exanova.other_rows.other_clusters import variance_across

pytestmark = [
    pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning"),
    pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning"),
]


def drawn(clusters: int, rows: int, seed: int, levels: int = 3) -> tuple[NDArray, NDArray, NDArray]:
    """Rows whose features and outputs are alike within clusters."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, rows)
    typical, own = rng.integers(0, levels, (clusters, 3)), rng.normal(size=clusters)
    X = np.where(rng.random((rows, 3)) < 0.8, typical[cluster], rng.integers(0, levels, (rows, 3)))
    return X, np.sin(X[:, 0] * X[:, 1]) + own[cluster] + 0.1 * rng.normal(size=rows), cluster


def by_refitting(X: NDArray, y: NDArray, cluster: NDArray, weight: NDArray, **parameters: object) -> float:
    """R2 of every row predicted by a fit, through the public interface, to other clusters that are told as such."""
    number = np.unique(cluster, return_inverse=True)[1]
    fold, parts = folds_of(number, 0)
    fitted = np.zeros(len(y))
    for k in range(parts):
        out = fold == k
        own = exanova.FunctionalANOVA(handle_unknown="ignore", sampled=True, **parameters)  # type: ignore[arg-type]
        own.fit(X[~out].astype(str), y[~out], sample_weight=weight[~out], clusters=cluster[~out])
        fitted[out] = own.predict(X[out].astype(str))
    p = weight / weight.sum()
    apart = np.outer(p, p) * np.not_equal.outer(number, number)
    variance = (apart * np.subtract.outer(y, y) ** 2).sum() / apart.sum() / 2.0
    return float(1.0 - p @ (y - fitted) ** 2 / variance)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([4, 9, 30]), st.booleans(), st.sampled_from(["auto", None]))
def test_clusters_left_out_are_predicted_by_the_fit_to_the_others(
    seed: int, clusters: int, weighted: bool, shrinkage: str | None
) -> None:
    X, y, cluster = drawn(clusters, 150, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y), dtype=int)
    anova = exanova.FunctionalANOVA(shrinkage=shrinkage, sampled=True, n_bins=None)
    anova.fit(X.astype(str), y, sample_weight=weight, clusters=cluster)
    found = anova.certificate_
    assert found.eval_method == "leaving out a fifth of the clusters at a time"
    expected = by_refitting(X, y, cluster, weight, shrinkage=shrinkage, n_bins=None)
    assert found.r2_eval[0] == pytest.approx(expected, abs=1e-6)


def test_rows_alike_within_clusters_do_not_hold_for_other_clusters() -> None:
    X, y, cluster = drawn(40, 1000, 1, levels=4)
    others = drawn(3000, 20_000, 2, levels=4)
    independent = exanova.FunctionalANOVA(sampled=True).fit(X, y)
    told = exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster)
    true, untold = told.score(others[0], others[1]), independent.score(others[0], others[1])
    assert told.certificate_.r2_eval[0] == pytest.approx(true, abs=0.25)
    assert independent.certificate_.r2_eval[0] > untold + 0.3, "neighbours predict each other"
    assert true > untold + 0.1, "what clusters share is not taken for effects"
    assert independent.certificate_.holds
    assert not told.certificate_.holds


def test_clusters_that_do_not_hold_are_warned_of() -> None:
    X, y, cluster = drawn(40, 1000, 1, levels=4)
    with pytest.warns(OverfitWarning, match="leaving out a fifth of the clusters"):
        exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster)


def test_a_budget_is_selected_again_without_the_clusters() -> None:
    X, y, cluster = drawn(40, 600, 3)
    anova = exanova.FunctionalANOVA(max_terms=10, sampled=True).fit(X, y, clusters=cluster)
    assert anova.certificate_.eval_method == "leaving out a fifth of the clusters at a time"


def test_levels_of_one_cluster_are_unknown_without_it() -> None:
    X, y, cluster = drawn(30, 600, 4)
    X = np.column_stack([X, cluster])
    anova = exanova.FunctionalANOVA(max_order=1, sampled=True, n_bins=None, shrinkage=None).fit(X, y, clusters=cluster)
    assert anova.certificate_.r2[0] > 0.8, "the clusters explain nearly everything"
    assert anova.certificate_.r2_eval[0] < 0.5, "and nothing of other clusters"


def test_one_cluster_has_no_others() -> None:
    X, y, _ = drawn(5, 100, 5)
    assert exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=np.zeros(100)).certificate_.r2_eval is None


@pytest.mark.parametrize("max_levels", ["auto", 5])
def test_held_out_rows_are_whole_clusters(max_levels: object) -> None:
    X, y, cluster = drawn(50, 800, 6, levels=9)
    anova = exanova.FunctionalANOVA(sampled=True, max_levels=max_levels, n_bins=None)
    anova.fit(X.astype(str), y, clusters=cluster, eval_set=0.3)
    errors = anova.errors()
    assert errors.unit == "a cluster"
    assert errors.units == 35, "fifteen of fifty are held out"


def test_the_variance_of_few_clusters_is_that_of_their_population() -> None:
    """On the average of many samples of six clusters, and so is R2 of a mean that other clusters give."""
    rng = np.random.default_rng(0)
    cluster, weight = np.repeat(np.arange(6), 10), np.ones(60)
    own = rng.normal(size=(6, 4000))
    values = own[cluster] + rng.normal(size=(60, 4000))
    assert variance_across(values, weight, cluster).mean() == pytest.approx(2.0, rel=0.03)
    assert values.var(axis=0).mean() < 1.9, "that of the rows is too small"
    assert variance_across(values[:, :3], weight, np.arange(60)) == pytest.approx(values[:, :3].var(axis=0, ddof=1))


def test_noise_of_few_clusters_is_not_taken_for_worse_than_it_is() -> None:
    """A fit that knows nothing but the mean of C clusters has an R2 of -1 / C on others, of equal variance each."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = np.tile(["a", "b"], 30)[:, None]
        y = np.repeat(rng.normal(size=5), 12)
        anova = exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=np.repeat(np.arange(5), 12))
        found.append(anova.certificate_.r2_eval[0])
    assert np.mean(found) == pytest.approx(-0.25, abs=0.08), "four clusters predict the fifth"


def test_levels_are_joined_again_without_whole_clusters() -> None:
    X, y, cluster = drawn(50, 800, 6, levels=9)
    anova = exanova.FunctionalANOVA(sampled=True, max_levels=4, n_bins=None).fit(X.astype(str), y, clusters=cluster)
    assert anova.certificate_.eval_method.startswith("on clusters left out, a fifth at a time")
    assert anova.certificate_.r2_eval[0] < 0.5


@pytest.mark.parametrize("clusters", [3, 8, 30])
@pytest.mark.parametrize("own_levels", [False, True])
@pytest.mark.parametrize("parameters", [{"selection": "lasso", "max_terms": 45}, {"max_terms": "auto"}])
def test_few_clusters_or_clusters_of_own_levels_do_not_keep_a_selection_from_choosing(
    clusters: int, own_levels: bool, parameters: dict[str, object]
) -> None:
    X, y, cluster = drawn(clusters, 200, 11)
    X = np.column_stack([X, cluster]) if own_levels else X
    anova = exanova.FunctionalANOVA(
        sampled=True, n_bins=None, **(parameters | ({"max_terms": 45} if own_levels else {}))
    )
    anova.fit(X.astype(str), y, clusters=cluster)
    assert anova.certificate_.eval_method == "leaving out a fifth of the clusters at a time"


def test_a_fraction_that_holds_out_no_cluster_is_refused() -> None:
    X, y, cluster = drawn(3, 60, 7)
    X = np.column_stack([X, cluster])
    with pytest.raises(InputError, match=r"a fraction of 0\.2 of 3 clusters holds out none"):
        exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster, eval_set=0.2)


def test_enough_clusters_and_rows_end_the_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, cluster = drawn(40, 600, 8)
    whole = exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster).certificate_
    monkeypatch.setattr(folds, "ENOUGH_ROWS", 100)
    monkeypatch.setattr(folds, "ENOUGH_CLUSTERS", 8)
    part = exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster).certificate_
    assert part.r2_eval[0] != whole.r2_eval[0]
    assert part.r2_eval[0] == pytest.approx(whole.r2_eval[0], abs=0.6)


def test_few_clusters_are_said_to_be_few() -> None:
    few, many = (drawn(n, 600, 9) for n in (FEW_CLUSTERS - 5, FEW_CLUSTERS + 20))
    few_said, many_said = (
        str(exanova.FunctionalANOVA(sampled=True).fit(X, y, clusters=cluster).errors()) for X, y, cluster in (few, many)
    )
    assert f"{FEW_CLUSTERS - 5} clusters are few: intervals of importances are too narrow" in few_said
    assert "are few" not in many_said
