"""What rows of a cluster share is no effect: the likelihood that knows, and what it changes in a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.draws import Draws
from exanova.data.sample import Sample
from exanova.errors import OverfitWarning
from exanova.progress import Progress
from exanova.shrink import clusters
from exanova.shrink.clusters import ClusterRows, shared_over_functions, shared_over_rows
from exanova.shrink.posterior import Spread
from exanova.shrink.prepared import Prepared
from exanova.solve.planning import make_plan
from exanova.solve.request import Request


def drawn(seed, count=60, each=15, shared=1.0, constant=3, varying=2, levels=4):
    """Rows in clusters, some features constant in them; a model of one feature of each kind, and noise."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(count), each)
    rows = np.hstack(
        [
            rng.integers(0, levels, (count, constant))[cluster],
            rng.integers(0, levels, (count * each, varying)),
        ]
    )
    truth = 0.7 * (rows[:, 0] == 1) + 0.7 * (rows[:, constant] == 2)
    return rows, truth + shared * rng.normal(size=count)[cluster] + rng.normal(size=len(rows)), truth, cluster


def fitted(rows, y, **choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        given = {name: choices.pop(name) for name in ("clusters",) if name in choices}
        return FunctionalANOVA(**{"max_order": 2, "sampled": True, **choices}).fit(rows, y, **given)


def test_noise_that_clusters_share_is_not_taken_for_effects():
    """Where effects are known, the fit that is told of clusters is several times nearer to them, in the median."""
    ratios = []
    for seed in range(5):
        rows, y, truth, cluster = drawn(seed)
        errors = [np.var(fitted(rows, y, **how).predict(rows).ravel() - truth) for how in ({"clusters": cluster}, {})]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.6


def test_clusters_of_one_row_are_rows():
    """Bit for bit: the likelihood of clusters is not even asked."""
    rows, y, _, _ = drawn(1, count=300, each=1)
    plain, alone = fitted(rows, y), fitted(rows, y, clusters=np.random.default_rng(0).permutation(len(rows)))
    for name, effect in plain.effects_.items():
        assert np.array_equal(effect.values, alone.effects_[name].values)
    assert "cluster" not in str(plain.certificate_.shrinkage)
    assert "cluster" not in str(alone.certificate_.shrinkage)


def test_levels_that_are_clusters_are_effects():
    """A feature whose levels are the clusters keeps its effect: nothing tells it from what its rows share."""
    rng = np.random.default_rng(3)
    level = np.repeat(np.arange(30), 20)
    rows = np.column_stack([level, rng.integers(0, 3, len(level))])
    y = rng.normal(0, 1, 30)[level] + rng.normal(0, 1, len(level))
    uneven = rng.random(len(y)) + 0.1  # shares of parts are no round numbers
    told, untold = (
        FunctionalANOVA(max_order=1, sampled=True).fit(rows, y, sample_weight=uneven, **how)
        for how in ({"clusters": level}, {})
    )
    for name, effect in untold.effects_.items():
        np.testing.assert_allclose(told.effects_[name].values, effect.values, rtol=1e-9, atol=1e-12)
    assert "could not be separated from the effects" in str(told.certificate_.shrinkage)


def test_the_order_of_rows_changes_nothing():
    rows, y, _, cluster = drawn(6, count=40, each=10)
    order = np.random.default_rng(1).permutation(len(rows))
    one = fitted(rows, y, clusters=cluster, max_order=1)
    two = fitted(rows[order], y[order], clusters=cluster[order], max_order=1)
    assert "rows of a cluster share" in str(one.certificate_.shrinkage)
    for name, effect in one.effects_.items():
        np.testing.assert_allclose(two.effects_[name].values, effect.values, rtol=1e-6, atol=1e-9)


def test_the_certificate_says_what_rows_share():
    shares = []
    for seed in range(4, 8):
        rows, y, _, cluster = drawn(seed, count=100, each=12)
        words = str(fitted(rows, y, max_order=1, clusters=cluster).certificate_.shrinkage)
        shares.append(float(words.split("rows of a cluster share ")[1].split(" %")[0]))
    assert 40 <= np.median(shares) <= 60  # as much of the noise as there is of its own


def sample_of(rng, r, count, weighted):
    """Distinct rows of three features in clusters, each row once or more, with their raw values."""
    every = np.stack(np.unravel_index(rng.permutation(60)[:r], (3, 4, 5)))
    group = np.concatenate([np.arange(r), rng.integers(0, r, r)])
    values = rng.normal(size=(len(group), 1))
    weight = rng.random(len(group)) + 0.2 if weighted else rng.integers(1, 3, len(group))
    cluster = np.unique(rng.integers(0, count, len(group)), return_inverse=True)[1]
    totals = np.bincount(group, weight)
    means = (np.bincount(group, weight * values[:, 0]) / totals)[:, None]
    within = (np.bincount(group, weight * (values - means[group])[:, 0] ** 2) / totals)[:, None]
    kind = "probability" if weighted else "frequency"
    draws = Draws(group, weight, kind, values, cluster)
    weights = totals if weighted else totals.astype(int)
    return Sample(every.astype(np.uint8), weights, (3, 4, 5), means, len(group), within=within, draws=draws)


def prepared(sample):
    request = Request(max_order=2)
    _, survey = make_plan(request, sample, 1)
    return Prepared.of(sample, request, survey.family, Progress(enabled=False))


def by_definition(rows, covariance, y, free):
    """tau^2, and minus the logarithm of the likelihood of ``rows`` with this covariance over tau^2."""
    lower = np.linalg.cholesky(covariance)
    half = np.linalg.solve(lower, y)
    residual = float(half @ half) / free
    return residual, 0.5 * (free * np.log(residual) + 2 * np.log(np.diagonal(lower)).sum())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0.05, 5.0))
def test_the_likelihood_of_clusters_is_that_of_a_normal_effect_of_each(seed, weighted, ratio):
    """Over functions against a dense covariance of the raw rows; over rows against one of the distinct rows."""
    rng = np.random.default_rng(seed)
    sample = sample_of(rng, 40, 9, weighted)
    work, raw = prepared(sample), ClusterRows.of(sample)
    if work.gram is None:
        return
    columns = work.prior.on_rows(work.family, sample.codes)
    same = (raw.cluster[:, None] == raw.cluster).astype(float)
    shared = shared_over_functions(raw, ratio, work.phi, work.prior, work.drawn)
    likelihood = work.sharing(shared).by_functions(np.array([0]), True)
    free = float(raw.precision.sum()) - 1.0
    losses = []
    for logs in rng.normal(0, 1, (2, len(work.prior.subsets))):
        z = columns[raw.group] * work.scale(logs, True)
        covariance = np.diag(1.0 / raw.precision) + ratio * same + z @ z.T
        residual, loss = by_definition(z, covariance, raw.values[:, 0], free)
        found = likelihood.at(logs)
        np.testing.assert_allclose(found.residual, residual, rtol=1e-8)
        losses.append(found.loss - loss)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-8, atol=1e-7)  # a constant of D and rho is left out
    # m_k, from its definition
    d, group = raw.precision, work.prior.group
    energy = np.bincount(group, (d[:, None] * columns[raw.group] ** 2).sum(axis=0))
    sums = np.stack(
        [(d[:, None] * columns[raw.group])[raw.cluster == c].sum(axis=0) for c in range(raw.cluster.max() + 1)]
    )
    more = np.bincount(group, (sums**2).sum(axis=0)) / energy
    np.testing.assert_allclose(shared.more, more, rtol=1e-9)
    over_rows = shared_over_rows(raw, ratio, work.phi, work.rows.of)
    np.testing.assert_allclose(over_rows.more, more, rtol=1e-7)
    parts = np.zeros((sample.n_rows, raw.cluster.max() + 1))
    np.add.at(parts, (raw.group, raw.cluster), raw.precision)
    means = parts / parts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(over_rows.rows, ratio * means @ means.T, rtol=1e-12)


def test_noise_of_rows_that_are_alone_is_that_of_rows():
    """m is 1 for clusters of one row, and the size of clusters that are alike."""
    rng = np.random.default_rng(0)
    codes = np.stack(np.unravel_index(np.arange(60), (3, 4, 5))).astype(np.uint8)
    group = np.repeat(np.arange(60), 4)
    for cluster, more in ((np.arange(240), 1.0), (group, 4.0)):
        values = rng.normal(size=(240, 1))
        means = (np.bincount(group, values[:, 0]) / 4.0)[:, None]
        draws = Draws(group, np.ones(240, dtype=int), "frequency", values, cluster)
        sample = Sample(codes, np.full(60, 4), (3, 4, 5), means, 240, draws=draws)
        work = prepared(sample)
        rows = ClusterRows(group, cluster, np.ones(240), np.ones(240), values - values.mean())
        shared = shared_over_functions(rows, 0.5, work.phi, work.prior, work.drawn)
        np.testing.assert_allclose(shared.more, more, rtol=1e-9)


@pytest.mark.parametrize("each", [2, 40])
def test_what_rows_share_is_found_whatever_the_size_of_clusters(each):
    found = []
    for seed in range(4):
        rows, y, _, cluster = drawn(seed, count=800 // each, each=each, shared=0.8)
        words = str(fitted(rows, y, max_order=1, clusters=cluster).certificate_.shrinkage)
        found.append(float(words.split("share ")[1].split(" %")[0]) if " % of the residual" in words else 0.0)
    assert 20 <= np.median(found) <= 60  # 39 of the noise


def test_likelihoods_that_would_take_too_long_keep_the_noise_of_clusters(monkeypatch):
    """The ratios are then those of independent rows, over the noise of every subset."""
    rows, y, truth, cluster = drawn(2)
    plain = np.var(fitted(rows, y).predict(rows).ravel() - truth)
    monkeypatch.setattr(clusters, "MOST_WORK", 0.0)
    assert np.var(fitted(rows, y, clusters=cluster).predict(rows).ravel() - truth) < plain


def test_the_bias_of_shrinkage_has_the_prior_variance_of_every_subset():
    """By functions and by rows: M diag(own) M of the definition, M the posterior covariance of z over tau^2."""
    rng = np.random.default_rng(5)
    z, d, own = rng.normal(size=(12, 7)), rng.random(12) + 0.5, rng.random(7) + 0.5
    v = rng.normal(size=(7, 3))
    inner = np.linalg.inv(np.eye(7) + z.T @ (d[:, None] * z))
    wanted = v.T @ inner @ np.diag(own) @ inner @ v
    functions = Spread(np.linalg.cholesky(np.eye(7) + z.T @ (d[:, None] * z)))
    over_rows = Spread(np.linalg.cholesky(np.diag(1 / d) + z @ z.T), lambda w, _: z @ w, 1 / d, lambda w: z.T @ w)
    for spread in (functions, over_rows):
        np.testing.assert_allclose(spread.bias(v, None, own), wanted, rtol=1e-9)
        np.testing.assert_allclose(spread.bias(v, None, np.ones(7)), spread.bias(v), rtol=1e-9)


def test_equal_rows_of_unequal_weight_may_come_in_any_order():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("uvw"), 900), "c": rng.integers(0, 60, 900)})
    table["y"] = np.round((table["a"] == "u") + rng.normal(size=60)[table["c"]] + rng.normal(size=900))
    table["w"] = rng.choice([0.25, 0.5, 1.3], 900)
    first, other = (
        FunctionalANOVA(max_order=1).fit(rows, "y", sample_weight="w", clusters="c")
        for rows in (table, table.iloc[rng.permutation(900)])
    )
    np.testing.assert_allclose(other.decomposition_.values, first.decomposition_.values, rtol=0, atol=1e-12)
