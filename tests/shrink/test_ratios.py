"""Ratios belong to the functions and rows of the fit, however its search started: a finer cut hardly hurts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.coordinates import leading_prior
from exanova.shrink.prepared import Prepared
from exanova.shrink.ratios import ratios_as_given
from exanova.solve.request import Request
from strategies import examples, supports


def prepared(case, request):
    """A case before the leading functions are chosen."""
    codes = np.ascontiguousarray(case.rows.T).astype(np.uint8)
    data = Sample(codes, case.weight, case.sizes, case.values, len(case.rows))
    family = build_family(codes, case.weight.astype(float), case.sizes, up_to_order(data.varying, 2))
    return Prepared.of(data, request, family, Progress(enabled=False))


@examples(30)
@given(case=supports(("equal", "counts"), complete=False, max_outputs=1), most=st.integers(1, 12), log=st.floats(-4, 9))
def test_what_unused_functions_carry_is_counted_as_noise(case, most, log):
    """The mean prior variance of a row, noise included, is that of all functions; and so are ratios that are given."""
    request = Request(max_order=2, ordered=case.sizes, shrinkage=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "by_rows", lambda rows, functions: True)
        patch.setattr(cost, "MOST_ROWS", 0)
        patch.setattr(cost, "LEADING", (most, most))
        whole = prepared(case, request)
        if not len(whole.varying):
            return
        logs = np.linspace(log, log - 2.0, len(whole.prior.orders))
        ratio, p = whole.ratio(logs, False), whole.sample.probability
        some = whole.leading(ratio)
    assert np.array_equal(whole.noisier(logs), logs)
    expected = 1.0 + p @ np.diagonal(whole.rows.covariance(ratio))  # over tau^2 of all functions
    columns = some.prior.on_rows(some.family, some.sample.codes)
    grown = np.exp(logs - some.noisier(logs))
    np.testing.assert_allclose(grown, grown[0])
    found = p @ (np.square(columns) @ some.ratio(some.noisier(logs), False)[some.prior.group]) + 1.0
    assert found * grown[0] == pytest.approx(expected, rel=1e-9)
    known = {0: dict(zip(some.prior.orders, logs.tolist(), strict=True))}
    (given_ratios,) = ratios_as_given(some, request, known)
    np.testing.assert_allclose(given_ratios.maximum.evaluation.logs, some.noisier(logs))


def leading_alike(choose, prior, variance, most):
    """Leading functions by their kernels alone, so that other ratios choose the same ones."""
    return choose(prior, np.ones_like(variance), most)


@pytest.mark.parametrize("way", ["leading", "functions"])
@pytest.mark.parametrize("by_subset", [True, False])
def test_a_few_rows_that_all_functions_explain_say_only_where_the_search_starts(monkeypatch, way, by_subset):
    """On 80 rows 180 functions leave no noise. It is there on 1,500 rows, more of it under 60 functions."""
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 5, (1500, 5))
    y = rows[:, 0] * 0.5 + np.sin(rows[:, 1] * rows[:, 2]) + 0.3 * np.cos(rows[:, 2] * rows[:, 3] * rows[:, 4])
    monkeypatch.setattr("exanova.shrink.ratios.START_FROM", 0)
    monkeypatch.setattr("exanova.shrink.ratios.has_subset_ratios", lambda work, sets: by_subset)
    if way == "leading":
        monkeypatch.setattr(cost, "by_rows", lambda rows, functions: True)
        monkeypatch.setattr(cost, "MOST_ROWS", 0)
        monkeypatch.setattr(cost, "LEADING", (60, 60))
        same = partial(leading_alike, leading_prior)
        monkeypatch.setattr("exanova.shrink.prepared.leading_prior", same)
    found = []
    for drawn in (10**6, 80):
        monkeypatch.setattr("exanova.shrink.prepared.START_ROWS", drawn)
        anova = FunctionalANOVA(sampled=True).fit(rows, y)
        assert ("; only " in anova.certificate_.shrinkage) == (way == "leading")
        (own,) = anova.decomposition_.uncertainty.fitted.posterior.components
        found.append(np.log([*own.variance, own.residual]))
    np.testing.assert_allclose(*found, atol=0.1)


def mixed(rows, seed):
    """A table of mixed columns, and a probability that is near 1 in levels of few rows."""
    rng = np.random.default_rng(seed)
    a = np.exp(rng.normal(size=rows) * 0.25) * 0.33
    a = np.where(rng.random(rows) < 0.01, rng.choice([0.9, 1.2, 2.0, 3.0], rows), a)
    b = a * rng.beta(8, 2, rows)
    c = np.clip(rng.normal(0.75, 0.15, rows) * np.exp(0.1 * rng.normal(size=rows)), 0.05, 2.0)
    d = rng.choice([1, 2, 3, 4, 5, 6], rows, p=[0.57, 0.18, 0.05, 0.03, 0.08, 0.09])
    u = rng.choice([3.1, 2.0, 1.8, 3.9, 3.2, 3.6, 4.3, 5.9, 10.6, 8.9], rows)
    e = rng.choice(["1", "2", "3", "4"], rows, p=[0.31, 0.68, 0.007, 0.003])
    rare = [rng.choice([1, 0], rows, p=[p, 1 - p]) for p in (0.016, 0.02, 0.07, 0.12, 0.14, 0.28, 0.39)]
    X = pd.DataFrame({"a": a.round(2), "b": b.round(2), "c": c.round(2), "d": d.astype(str), "e": e, "u": u})
    X = X.assign(**{f"c{k}": np.where(own, "no", "yes") for k, own in enumerate(rare)})
    weights = np.array([-1.0, 4.5, 1.2, 0.7, 0.6, 0.2, 0.1]) * rng.choice([1.0, 0.7], 7)
    z = 9.0 * (a - 0.33) - (b - 0.25) + 1.5 * (c - 0.75) + 0.3 * (d - 2) + 0.06 * (u - 3) - 2.7
    return X, 1.0 / (1.0 + np.exp(-z - np.stack(rare, axis=1) @ weights))


SEEN = 1900


@pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning")
def test_a_finer_cut_hardly_hurts():
    """Held-out R2 never falls by 0.05 from that of any coarser cut, however the likelihood of a few rows ends."""
    X, y = mixed(SEEN + 500, 3)
    best = -np.inf
    for bins in (8, 16, 32, 48, 56, 64, 80, 96):
        anova = FunctionalANOVA(n_bins=bins).fit(X.iloc[:SEEN], y[:SEEN]).set_params(handle_unknown="ignore")
        found = anova.score(X.iloc[SEEN:], y[SEEN:])
        assert found > best - 0.05
        best = max(best, found)
