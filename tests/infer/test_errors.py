"""Laws of standard errors: influence is a derivative, units are what varies, two ways agree, refits agree."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA, Support
from exanova.data.sample import Sample, held_clusters
from exanova.effects.redundancy import sharing_subsets
from exanova.errors import InexactWarning, InputError, MemoryLimitError
from exanova.infer import bands, blocks, influence, linear, uncertainty
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.identified import Dependences, certain_part, determined
from exanova.infer.linear import LinearErrors
from exanova.infer.stored_errors import check_keepable
from exanova.solve.request import Request
from exanova.solve.run import decompose
from strategies import examples, supports

seeds = st.integers(0, 2**32 - 1)


def data_of(case):
    codes = np.ascontiguousarray(case.rows.T.astype(np.uint8))
    return Sample(codes, case.weight, case.sizes, case.values, len(case.rows))


def linear_errors(data, found, request):
    return LinearErrors.of(FittedSample(data, found.values, request), found.family)


def identified_cells(found):
    """(cells,) whether the effect of a cell is determined."""
    out = np.ones(found.family.n_cells, dtype=bool)
    for s, _ in sharing_subsets(found.solution.null, found.basis.subset_of_function()):
        out[found.family.cells_of(s)] = False
    return out


def psi(errors, output):
    """(r, cells) influence of every distinct row."""
    place = influence.places(errors.influence, slice(None))
    leverage = influence.leverages_of_rows(errors.influence, place)
    return influence.responses_of_rows(errors.influence, output, place) + errors.residuals[:, [output]] * leverage


def fitted(rows, values, **given):
    parameters = {k: given.pop(k) for k in ("max_order", "route", "sampled") if k in given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        return FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(rows, values, **given)


def stderr(anova):
    return np.concatenate([anova.effects_[names].stderr for names in anova.effects_])


def drawn(seed=0, n=300):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [3, 2, 3], (n, 3))
    rows[:, 2] = np.where(rng.random(n) < 0.4, rows[:, 0], rows[:, 2])
    return rows, rows[:, 0] * 0.5 + rows[:, 1] * rows[:, 2] * 0.3 + rng.normal(size=n) * 0.4, rng


# The influence of a row


@examples(25)
@given(case=supports(("real",), max_rows=24, max_features=3, max_outputs=2), order=st.sampled_from([1, 2, None]))
def test_the_influence_is_the_derivative_by_the_weight_of_a_row(case, order):
    assume(len(case.rows) > 2)
    data = replace(data_of(case), weight=case.probability)
    request = Request(max_order=order, route="dense")
    found = decompose(data, request)
    known = identified_cells(found)
    errors = linear_errors(data, found, request)
    scale = max(1.0, np.abs(found.values).max())
    for output in range(case.values.shape[1]):
        expected = psi(errors, output)[:, known]
        assert np.abs(case.probability @ expected).max() <= 1e-9 * max(scale, np.abs(expected).max())
        for row in {0, len(case.rows) // 2}:
            step = 1e-4 * case.probability[row]
            sides = []
            for sign in (1, -1):
                weight = case.probability.copy()
                weight[row] += sign * step
                sides.append(decompose(replace(data, weight=weight), request).values[known, output])
            slope = (sides[0] - sides[1]) / (2 * step)
            assert np.abs(slope - expected[row]).max() <= 1e-4 * max(scale, np.abs(expected).max())


@examples(25)
@given(case=supports(("real", "counts"), max_rows=30, max_features=4), order=st.sampled_from([1, 2, 3]))
def test_both_ways_and_every_statistic_tell_the_same_covariances(case, order):
    assume(len(case.rows) > 2)
    data, request = data_of(case), Request(max_order=order, route="dense")
    found = decompose(data, request)
    errors, known = linear_errors(data, found, request), identified_cells(found)
    by_rows, by_grams = blocks.empty_blocks(errors.influence), blocks.empty_blocks(errors.influence)
    blocks.add_by_rows(errors.influence, errors.variation, by_rows)
    blocks.add_by_grams(errors.influence, errors.variation, by_grams)
    whole = influence.covariance(errors.influence, errors.variation, 0, np.eye(found.family.n_cells))
    for s in range(len(found.family.subsets)):
        own = found.family.cells_of(s)
        if known[own].all():
            scale = max(np.abs(by_rows[s]).max(), 1e-9)
            assert np.allclose(by_rows[s], by_grams[s], rtol=0, atol=1e-7 * scale)
            assert np.allclose(by_rows[s][0], whole[own, own], rtol=0, atol=1e-7 * scale)
    pairs = blocks.empty_blocks(errors.influence)
    row = np.arange(len(case.rows))
    k0, k1, k2 = errors.variation.rows
    mass, moment = np.sqrt(k0), k1 / np.sqrt(k0)[:, None]
    assert np.allclose(k1**2, k0[:, None] * k2)  # without noise between equal rows, a row is one vector
    blocks.add_totals(errors.influence, blocks.Totals(row, row, mass, moment, np.ones(len(row))), pairs)
    for s in range(len(found.family.subsets)):
        if known[found.family.cells_of(s)].all():
            assert np.allclose(by_rows[s], pairs[s], rtol=0, atol=1e-7 * max(np.abs(by_rows[s]).max(), 1e-9))


@pytest.mark.parametrize("route", ["dense", "moments", "matrix-free"])
def test_every_route_has_the_same_errors(route):
    rows, y, _ = drawn()
    expected = stderr(fitted(rows, y, route="dense"))
    assert np.allclose(stderr(fitted(rows, y, route=route)), expected, rtol=1e-8)


def test_the_mean_of_a_sample_has_its_textbook_error():
    rows, y, _ = drawn()
    anova = fitted(rows, y)
    assert np.isclose(anova.effects_[()].stderr[0, 0], y.std(ddof=1) / np.sqrt(len(y)))


def test_leverages_too_many_to_compute_are_their_mean(monkeypatch):
    """Which they all are on a balanced table."""
    rows = np.repeat(np.array(np.meshgrid([0, 1, 2], [0, 1], [0, 1])).reshape(3, -1).T, 3, axis=0)
    y = np.random.default_rng(0).normal(size=len(rows))
    expected = stderr(fitted(rows, y, max_order=1))
    monkeypatch.setattr(influence, "MOST_LEVERAGE_WORK", 0.0)
    assert np.allclose(stderr(fitted(rows, y, max_order=1)), expected)


# What varies


@examples(15)
@given(seed=seeds, order=st.sampled_from([1, 2]))
def test_a_row_of_count_two_is_two_rows(seed, order):
    rng = np.random.default_rng(seed)
    rows, y = rng.integers(0, [3, 2, 2], (40, 3)), rng.normal(size=40)
    count = rng.integers(1, 4, 40)
    once = fitted(rows, y, sample_weight=count, max_order=order)
    spread = fitted(np.repeat(rows, count, axis=0), np.repeat(y, count), max_order=order)
    assert np.allclose(stderr(once), stderr(spread), rtol=1e-8, equal_nan=True)
    parts = {names: once.effects_[names].rows.tolist() for names in once.effects_}
    assert parts == {names: spread.effects_[names].rows.tolist() for names in spread.effects_}


def test_frequencies_and_probabilities_differ_and_the_choice_is_said():
    rows, y, rng = drawn()
    count = rng.integers(1, 4, len(y))
    frequency = fitted(rows, y, sample_weight=count)
    probability = fitted(rows, y, sample_weight=count, weights="probability")
    scaled = fitted(rows, y, sample_weight=count * 0.37)
    assert frequency.errors().weights == "frequency"
    assert (probability.errors().weights, probability.errors().units) == ("probability", len(y))
    assert np.allclose(stderr(probability), stderr(scaled))
    assert (stderr(probability) > stderr(frequency)).mean() > 0.9
    inside = rows[:, 0] == 1
    effective = count[inside].sum() ** 2 / (count[inside] ** 2).sum()
    assert np.isclose(probability.effects_["x0"].rows[1], effective)
    with pytest.raises(InputError, match="not whole numbers"):
        fitted(rows, y, sample_weight=count * 0.37, weights="frequency")


def test_errors_shrink_with_the_root_of_the_rows():
    """Exactly where nothing is left of the model; else up to the leverage of the rows, which shrinks too."""
    rows, y, _ = drawn()
    n, whole = len(y), rows[:, 0] * 0.5 + rows[:, 1] * rows[:, 2] * 0.3

    def scaled(values, copies):
        weights = {"sample_weight": np.full(n, copies), "weights": "frequency"}
        return stderr(fitted(rows, values, **weights)) * np.sqrt(copies * n - 1)

    assert np.allclose(scaled(whole, 1), scaled(whole, 4))
    limit = scaled(y, 10**6)
    for copies in (1, 4, 100):
        above = scaled(y, copies) / limit - 1.0
        assert above.min() > -1e-7
        assert above.max() < 0.2 / copies


def test_clusters_of_one_row_are_rows_and_one_stratum_is_none():
    rows, y, rng = drawn()
    expected = stderr(fitted(rows, y))
    names = np.array([f"c{k}" for k in rng.permutation(len(y))])
    assert np.allclose(stderr(fitted(rows, y, clusters=names)), expected)
    assert np.allclose(stderr(fitted(rows, y, strata=np.zeros(len(y)))), expected)
    assert np.allclose(stderr(fitted(rows, y, clusters=names, strata=np.zeros(len(y)))), expected)


def test_doubled_rows_as_clusters_have_the_errors_of_single_ones():
    rows, y, _ = drawn()
    twice = fitted(np.repeat(rows, 2, axis=0), np.repeat(y, 2), clusters=np.repeat(np.arange(len(y)), 2))
    assert np.allclose(stderr(twice), stderr(fitted(rows, y)))


def test_strata_centre_their_units():
    """Against sums written out over the raw rows; the mean is that of a stratified sample."""
    rows, y, rng = drawn()
    strata = (y + 0.3 * rng.normal(size=len(y)) > 0.6).astype(int)
    for weights in ("frequency", "probability"):
        anova = fitted(rows, y, strata=strata, weights=weights)
        n = len(y)
        parts = [(strata == h).sum() * y[strata == h].var(ddof=1) for h in (0, 1)]
        assert np.isclose(anova.effects_[()].stderr[0, 0] ** 2, sum(parts) / n**2)
    cluster = np.array([f"{h}/{k}" for h, k in zip(strata, rng.integers(0, 9, len(y)), strict=True)])
    clustered = fitted(rows, y, strata=strata, clusters=cluster)
    totals = {c: ((y - y.mean())[cluster == c] / n).sum() for c in np.unique(cluster)}
    by_stratum = [np.array([t for c, t in totals.items() if c[0] == h]) for h in "01"]
    expected = sum(len(t) * t.var(ddof=1) for t in by_stratum)
    assert np.isclose(clustered.effects_[()].stderr[0, 0] ** 2, expected)


def test_the_delete_one_jackknife_agrees():
    """Where nothing is left of the model; replicates of a fit with residuals know nothing of their leverage."""
    rows, y, rng = drawn(n=80)
    whole = rows[:, 0] * 0.5 + rows[:, 1] * rows[:, 2] * 0.3
    for weight in (np.ones(80), rng.uniform(0.5, 2.0, 80)):
        columns, equal = weight[:, None] * (1.0 - np.eye(80)), (weight == 1).all()
        for values, most in ((whole, 1e-8 if equal else 0.05), (y, 0.4)):
            plain = fitted(rows, values, sample_weight=weight, weights="probability")
            jackknife = fitted(rows, values, sample_weight=weight, replicate_weights=(columns, 79 / 80))
            above = stderr(plain)[1:] / stderr(jackknife)[1:] - 1.0
            assert above.max() < most
            assert above.min() > (-1e-8 if equal else -0.05)


@examples(25)
@given(case=supports(("counts", "real"), max_rows=24, max_features=3), order=st.sampled_from([1, 2]))
def test_noise_of_equal_variance_is_met_without_bias(case, order):
    """Noise in one row at a time: what its residuals say of all rows adds up to that noise, whatever the leverage."""
    counts = np.maximum(1, np.round(case.weight)).astype(int) if case.weight.dtype.kind == "i" else None
    rows = case.rows if counts is None else np.repeat(case.rows, np.minimum(counts, 3), axis=0)
    n = len(rows)
    assume(n > 2)
    anova = fitted(rows, np.eye(n), max_order=order, sampled=True)
    assume(anova.certificate_.rank < n)
    anova.errors()
    engine = anova.decomposition_.uncertainty.engine
    left = np.eye(n) - anova.predict(rows)
    scale = np.abs(left).max(axis=0) / np.where(engine.residuals.any(axis=0), np.abs(engine.residuals).max(axis=0), 1.0)
    noise = engine.noise * scale
    met = (noise**2).sum(axis=1)
    alone = np.abs(engine.residuals).max(axis=1) < 1e-6  # rows that decide their own fit say nothing
    assert np.allclose(met[~alone], 1.0, atol=1e-6)
    kept = (engine.residuals[~alone] ** 2).sum(axis=1) / (engine.noise[~alone] ** 2).sum(axis=1)
    assert np.isclose((1.0 - kept).sum() + alone.sum(), anova.certificate_.rank)


@pytest.mark.parametrize("count", [4, 12, 60])
@pytest.mark.parametrize("order", [1, 2])
def test_noise_of_equal_variance_is_met_without_bias_in_clusters(count, order):
    """The same for clusters as a whole: what their residuals say is uncorrelated, and of the variance of the noise."""
    rows, _, rng = drawn()
    rows, n = rows[:100], 100
    cluster = np.concatenate([np.arange(count), rng.integers(0, count, n - count)])
    anova = fitted(rows, np.eye(n), max_order=order, sampled=True, clusters=cluster)
    anova.errors()
    engine = anova.decomposition_.uncertainty.engine
    left = np.eye(n) - anova.predict(rows)
    noise = engine.noise * np.abs(left).max(axis=0) / np.abs(engine.residuals).max(axis=0)
    for c in range(count):
        own = cluster == c
        told, kept = noise[own] @ noise[own].T, left[own] @ left[own].T
        weight, directions = np.linalg.eigh(kept)
        free = directions[:, weight > 1e-6]  # the others are determined by the cluster alone
        assert np.allclose(free.T @ told @ free, np.eye(free.shape[1]), atol=1e-6)


def test_clusters_too_large_to_be_corrected_as_a_whole_are_corrected_by_rows(monkeypatch):
    rows, y, rng = drawn()
    cluster = rng.integers(0, 25, len(y))
    whole = stderr(fitted(rows, y, clusters=cluster))
    monkeypatch.setattr(linear, "MOST_WORK", 0.0)
    by_rows = stderr(fitted(rows, y, clusters=cluster))
    ratio = np.median(whole / by_rows)
    assert 1.0 < ratio < 1.5


def test_errors_of_outputs_do_not_depend_on_their_units_or_company():
    rows, y, rng = drawn()
    both = np.stack([y, 1e6 + 100.0 * rng.normal(size=len(y))], axis=1)
    together = stderr(fitted(rows, both))
    assert np.allclose(together[:, 0], stderr(fitted(rows, y))[:, 0])
    assert np.allclose(together[:, 1], 100.0 * stderr(fitted(rows, (both[:, 1] - 1e6) / 100.0))[:, 0])


def test_rows_held_out_for_judging_are_no_part_of_it():
    rows, y, rng = drawn()
    cluster = rng.integers(0, 40, len(y))
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, y, clusters=cluster, eval_set=0.25)
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T])
    mine = ~held_clusters(codes, codes.max(axis=1) + 1, cluster, 0.25, seed=0)[cluster]
    assert anova.errors().units == len(np.unique(cluster[mine])) == 30
    again = fitted(rows[mine], y[mine], clusters=cluster[mine], max_order=1)
    assert np.allclose(stderr(anova), stderr(again))


# Refits


def test_refits_agree_with_the_closed_form():
    rows, y, rng = drawn(n=400)
    cluster = rng.integers(0, 80, len(y))
    for given_ in ({}, {"clusters": cluster}, {"sample_weight": rng.uniform(0.5, 2.0, len(y))}):
        anova = fitted(rows, y, **given_)
        linear = stderr(anova)
        summary = anova.errors("bootstrap", n_refits=150)
        ratio = stderr(anova) / linear
        assert summary.refits == 150
        assert 0.93 < np.median(ratio) < 1.07
        assert 0.7 < ratio.min() < ratio.max() < 1.4
    again = fitted(rows, y, **given_)
    again.errors("bootstrap", n_refits=150)
    assert np.array_equal(stderr(again), stderr(anova))


def test_refits_of_strata_and_of_a_selection():
    rows, y, _ = drawn(n=300)
    strata = (y > y.mean()).astype(int)
    anova = fitted(rows, y, strata=strata)
    mean = anova.effects_[()].stderr[0, 0]
    anova.errors("bootstrap", n_refits=150)
    assert 0.8 < anova.effects_[()].stderr[0, 0] / mean < 1.25
    chosen = FunctionalANOVA(shrinkage=None, max_terms=9).fit(rows, y)
    chosen.errors("bootstrap", n_refits=5)
    assert np.isfinite(stderr(chosen)).all()


# What is identified


def test_effects_that_are_not_identified_have_no_interval():
    rows, y, _ = drawn()
    rows = np.hstack([rows, rows[:, [1]]])
    anova = fitted(rows, y, max_order=1)
    twin, single = anova.effects_["x1"], anova.effects_["x0"]
    assert twin.identified is False
    assert single.identified is True
    assert np.isnan(twin.stderr).all()
    assert np.isnan(twin.interval()[0]).all()
    assert np.isfinite(single.stderr).all()
    without = fitted(rows[:, :3], y, max_order=1)
    assert np.allclose(single.stderr, without.effects_["x0"].stderr)
    assert anova.errors().unidentified == 2
    assert "no standard errors for 2 effects" in str(anova.errors())
    assert np.allclose(twin.certain, 0.0, atol=1e-9)
    assert np.allclose(single.certain**2, single.norm2)


def test_the_certain_part_is_what_no_other_subset_can_take():
    """x3 shares one of its two directions with x1: the other is certain, found here by least squares on the rows."""
    rng = np.random.default_rng(3)
    third = rng.integers(0, 4, 400)
    rows = np.stack([rng.integers(0, 3, 400), third % 2, third], axis=1)
    y = rows[:, 0] + 0.7 * third + rng.normal(size=400) * 0.1
    anova = fitted(rows, y, max_order=1)
    effect = anova.effects_["x2"]
    values, p = effect.values[:, 0], effect.probability
    parity = np.arange(4) % 2
    x = np.stack([np.ones(4), parity], axis=1)
    root = np.sqrt(p)
    left = values - x @ np.linalg.lstsq(root[:, None] * x, root * values, rcond=None)[0]
    assert np.isclose(effect.certain[0], np.sqrt(p @ left**2))
    assert 0 < effect.certain[0] < np.sqrt(effect.norm2[0])


def test_rows_that_are_all_there_is_have_no_errors():
    complete = np.array([(a, b) for a in range(3) for b in range(3)])
    anova = fitted(complete, np.arange(9.0))
    with pytest.raises(InputError, match="every combination of levels occurs"):
        anova.errors()
    pmf = FunctionalANOVA(shrinkage=None).fit(Support.from_pmf(np.array([[0.5, 0.2], [0.2, 0.1]])), np.arange(4.0))
    with pytest.raises(InputError, match="a distribution was given"):
        stderr(pmf)
    assert "stderr" not in anova.effects_["x0"].to_frame()


def test_what_the_closed_form_does_not_cover_says_so():
    rows, y, _ = drawn(n=60)
    for parameters in ({"ridge": 0.1}, {"basis": "paper"}, {"max_terms": 8, "ties": "first"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InexactWarning)
            anova = FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(rows, y)
        with pytest.raises(InputError, match="method='bootstrap'"):
            anova.errors()
        assert "stderr" not in anova.effects_["x0"].to_frame()


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"clusters": np.zeros(300)}, "a single cluster"),
        ({"strata": np.arange(300)}, "hold a single row"),
        ({"clusters": np.zeros(3)}, "one label for each row"),
        ({"clusters": np.arange(300) % 5, "strata": np.arange(300) % 2}, "several strata"),
        ({"replicate_weights": np.ones((300, 2))}, "as a pair"),
        ({"replicate_weights": (np.ones((3, 2)), 1.0)}, "expected \\(300, B\\)"),
        ({"replicate_weights": (-np.ones((300, 2)), 1.0)}, "at least 0"),
        ({"replicate_weights": (np.ones((300, 2)), 1.0), "strata": np.zeros(300)}, "one or the other"),
        ({"weights": "counts"}, "'frequency' or 'probability'"),
        ({"clusters": [None] * 300}, "no label in 300"),
    ],
)
def test_bad_designs_are_refused(given_, said):
    rows, y, _ = drawn()
    with pytest.raises(InputError, match=said):
        fitted(rows, y, **given_).errors()


def test_dependences_by_either_basis_say_the_same():
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2, (12, 3))
    rows = np.hstack([rows, rows[:, [0]]])
    data = Sample(
        np.ascontiguousarray(rows.T.astype(np.uint8)), np.ones(12), (2, 2, 2, 2), rng.normal(size=(12, 1)), 12
    )
    found = decompose(data, Request(max_order=2, route="moments"))
    null = np.linalg.qr(found.solution.null)[0]
    assert null.shape[1]
    whole = np.linalg.qr(np.hstack([null, np.eye(len(null))]))[0]
    first = Dependences(found.basis, null)
    second = Dependences(found.basis, None, whole[:, null.shape[1] :])
    weights = rng.normal(size=(found.family.n_cells, 3))
    weights[:, 0] = 0.0
    weights[0, 0] = 1.0
    assert determined(found.family, first, weights).tolist() == determined(found.family, second, weights).tolist()
    for s in range(len(found.family.subsets)):
        values = found.values[found.family.cells_of(s)]
        parts = [certain_part(found.family, one, s, values) for one in (first, second)]
        assert np.allclose(*parts, atol=1e-9)


# Bands and tests


def test_simultaneous_bands_lie_between_single_ones_and_sidaks():
    rows, y, _ = drawn()
    effect = fitted(rows, y).effects_["x1", "x2"]
    single, band = effect.interval(0.9), effect.interval(0.9, simultaneous=True)
    reach = ((band[1] - effect.values) / effect.stderr).max()
    assert bands.quantile(0.9) < reach <= bands.sidak(0.9, 6) + 0.02
    assert (band[0] <= single[0]).all()
    assert np.isclose(bands.simultaneous(np.eye(8), 0.95), bands.sidak(0.95, 8), atol=0.03)
    assert np.isclose(bands.simultaneous(np.ones((8, 8)), 0.95), bands.quantile(0.95), atol=0.03)
    with pytest.raises(InputError, match="between 0 and 1"):
        effect.interval(95)


def test_noise_is_seldom_told_from_zero():
    """Twelve effects of nothing, fifty times over: their probabilities are uniform, discoveries rare."""
    rng = np.random.default_rng(5)
    found, p = 0, []
    for _ in range(50):
        rows = rng.integers(0, [3, 2, 3], (400, 3))
        table = fitted(rows, rng.normal(size=400)).significance()
        found += bool(table["significant"].any())
        p.extend(table["p"])
    p = np.array(p)
    assert found <= 7
    assert 0.45 < p.mean() < 0.56
    assert 0.02 < (p < 0.05).mean() < 0.09


@pytest.mark.parametrize("design", ["rows", "clusters", "bootstrap"])
def test_noise_in_cells_of_few_rows_is_not_told_from_zero(design):
    """A cell of one row has no residual: its effect seems to be known without error, and to be there."""
    rng = np.random.default_rng(3)
    found, p, repeats = 0, [], 12 if design == "bootstrap" else 60
    for _ in range(repeats):
        rows = rng.choice(4, size=(300, 2), p=[0.5, 0.4, 0.07, 0.03])
        given = {"clusters": np.arange(300) // 2} if design == "clusters" else {}
        anova = fitted(rows, rng.normal(size=300), **given)
        if design == "bootstrap":
            anova.errors(method="bootstrap", n_refits=60)
        table = anova.significance()
        found += bool(table["significant"].any())
        p.extend(table["p"][table["order"] == 2])
    p = np.array(p)
    assert np.isfinite(p).all()
    assert found <= 0.1 * repeats + 1
    assert (p < 0.05).mean() <= 0.1
    assert (p < 0.001).mean() <= 0.02


def test_an_effect_of_frequent_cells_is_told_from_zero_beside_rare_ones():
    rng = np.random.default_rng(4)
    rows = rng.choice(4, size=(300, 2), p=[0.5, 0.4, 0.07, 0.03])
    table = fitted(rows, 2.0 * (rows[:, 0] == rows[:, 1]) + rng.normal(size=300)).significance()
    assert dict(zip(table["subset"], table["significant"], strict=True))["x0 x x1"]


def test_what_is_known_of_the_noise_along_a_direction_does_not_hang_on_the_coordinates():
    rng = np.random.default_rng(0)
    weight, freedom = rng.dirichlet(np.ones(7)), np.array([1.0, 40.0, 2.0, 60.0, 9.0, 1.0, 30.0])
    table = np.linalg.qr(np.sqrt(weight)[:, None] * rng.normal(size=(7, 5)))[0] / np.sqrt(weight)[:, None]
    turned = table @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert np.isclose(*(bands.wishart_freedom(weight, own, freedom) for own in (table, turned)))
    spans = [own @ bands.known_directions(weight, own, freedom) for own in (table, turned)]
    assert 0 < spans[0].shape[1] < 5
    np.testing.assert_allclose(spans[0] @ spans[0].T, spans[1] @ spans[1].T, atol=1e-9)
    for v in (spans[0] * np.sqrt(weight)[:, None]).T:
        assert 1.0 / (v**2 / freedom).sum() >= bands.FEWEST_FREE * (1 - 1e-12)


def test_an_effect_that_does_not_vary_is_told_from_zero():
    """Without any noise, x0 is what the model reads and x1 is not."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, [2, 3], (200, 2))
    table = fitted(rows, rows[:, 0] * 2.0).significance()
    verdict = dict(zip(table["subset"], table["significant"], strict=True))
    assert verdict == {"x0": True, "x1": False, "x0 x x1": False}


# Coverage


def test_intervals_cover_the_population():
    """200 samples of 500 rows of one small population with dependent features and noise."""
    rng = np.random.default_rng(11)
    grid = np.array([(a, b, c) for a in range(3) for b in range(3) for c in range(2)])
    pmf = rng.dirichlet(np.full(len(grid), 2.0))
    truth = grid[:, 0] * 0.8 - grid[:, 1] * grid[:, 2] * 0.6 + (grid[:, 0] == grid[:, 1]) * 0.5
    whole = fitted(grid, truth, sample_weight=pmf)
    covered = []
    for _ in range(200):
        drawn_rows = rng.choice(len(grid), 500, p=pmf)
        y = truth[drawn_rows] + rng.normal(size=500) * 0.5
        anova = fitted(grid[drawn_rows], y)
        for names in anova.effects_:
            effect, target = anova.effects_[names], whole.effects_[names]
            at = {levels: value for levels, value in zip(target.levels, target.values[:, 0], strict=True)}
            low, high = effect.interval()
            for k, levels in enumerate(effect.levels):
                if not effect.few_rows[k]:
                    covered.append(low[k, 0] <= at[levels] <= high[k, 0])
    assert len(covered) > 3000
    assert 0.92 < np.mean(covered) < 0.98


# Tables and files


@pytest.mark.parametrize("clustered", [True, False])
@pytest.mark.parametrize("shrinkage", ["auto", None])
def test_without_errors_for_a_stratum_of_one_unit_every_output_says_why(tmp_path, clustered, shrinkage):
    rng = np.random.default_rng(0)
    rows = rng.choice(list("uvw"), (200, 2))
    strata = np.repeat(np.arange(4), 50)
    clusters = np.where(strata == 2, 40, np.arange(200) // 10) if clustered else None
    strata[0] = 2 if clustered else 9
    clusters = None if clusters is None else np.where(np.arange(200) == 0, 40, clusters)
    fit = FunctionalANOVA(shrinkage=shrinkage)
    anova = fit.fit(rows, (rows[:, 0] == "u") + rng.normal(size=200), clusters=clusters, strata=strata)
    why = (
        f"1 of {4 if clustered else 5} strata holds a single {'cluster' if clustered else 'row'}, so that the variance"
    )
    with pytest.raises(InputError, match=why):
        anova.errors()
    assert f"no standard errors: {why}" in str(anova)
    with pytest.warns(UserWarning, match=f"no standard errors: {why}"):
        frame = anova.effects_["x0"].to_frame()
    assert "stderr" not in frame
    assert "stderr" not in anova.effects_["x0"].to_frame(stderr=False)
    for name in ("t.md", "report.html"):  # without a warning
        write = anova.export if name == "t.md" else anova.report
        write(tmp_path / name)
        assert why in (tmp_path / name).read_text("utf-8")


def test_tables_and_files_keep_the_errors(tmp_path, monkeypatch):
    rows, y, _ = drawn()
    anova = fitted(rows, y)
    bare = tmp_path / "bare.exanova"
    with monkeypatch.context() as patch:
        patch.setattr(uncertainty, "CHEAP_WORK", 0)
        anova.save(bare)
    with pytest.raises(InputError, match="before save"):
        stderr(exanova.load(bare))
    assert "stderr" not in exanova.load(bare).effects_["x0"].to_frame()
    anova.save(bare)
    assert np.array_equal(stderr(exanova.load(bare)), stderr(anova))
    summary = anova.errors()
    anova.save(tmp_path / "full.exanova")
    loaded = exanova.load(tmp_path / "full.exanova")
    assert np.array_equal(stderr(loaded), stderr(anova))
    assert np.array_equal(loaded.effects_["x0"].rows, anova.effects_["x0"].rows)
    assert list(loaded.effects_["x0"].to_frame()) == ["x0", "probability", "value", "rows", "stderr"]
    assert loaded.errors() == summary
    with pytest.raises(InputError, match="files contain no rows"):
        loaded.errors("bootstrap")
    for name, e in loaded.effects_.items():
        assert np.allclose(e.interval(simultaneous=True), anova.effects_[name].interval(simultaneous=True))
    assert np.allclose(loaded.explain(rows[:9], stderr=True).stderr, anova.explain(rows[:9], stderr=True).stderr)
    with monkeypatch.context() as patch:
        patch.setattr(uncertainty, "MOST_NUMBERS", 0)
        anova.save(tmp_path / "small.exanova")
    with pytest.raises(InputError, match="covariances"):
        exanova.load(tmp_path / "small.exanova").effects_["x0"].interval(simultaneous=True)


@pytest.mark.parametrize("most", [0, uncertainty.MOST_NUMBERS])
@pytest.mark.parametrize("work", [0.0, uncertainty.CHEAP_WORK])
@pytest.mark.parametrize("asked", [None, True, False])
def test_a_file_holds_the_covariances_that_were_asked_for_whatever_they_cost(tmp_path, monkeypatch, most, work, asked):
    rows, y, _ = drawn()
    anova = fitted(rows, y)
    with monkeypatch.context() as patch:
        patch.setattr(uncertainty, "MOST_NUMBERS", most)
        patch.setattr(uncertainty, "CHEAP_WORK", work)
        anova.save(tmp_path / "m.exanova", covariances=asked)
    again = exanova.load(tmp_path / "m.exanova")
    held = asked or (asked is None and most > 0 and work > 0)
    gap = again.difference(rows[:40], rows[40:80])
    assert ("--covariances" in gap.included) == (not held)
    if held:
        wanted = anova.explain(rows[:9], stderr=True).stderr
        assert np.allclose(again.explain(rows[:9], stderr=True).stderr, wanted)
    else:
        with pytest.raises(InputError, match="covariances"):
            again.explain(rows[:9], stderr=True)
        with pytest.raises(InputError, match="covariances=True"):
            again.save(tmp_path / "n.exanova", covariances=True)


def test_covariances_that_were_computed_are_kept_however_long_they_took(tmp_path, monkeypatch):
    rows, y, _ = drawn()
    anova = fitted(rows, y)
    monkeypatch.setattr(uncertainty, "CHEAP_WORK", 0.0)
    assert anova.decomposition_.uncertainty.all_cells.size
    anova.save(tmp_path / "m.exanova")
    assert exanova.load(tmp_path / "m.exanova").explain(rows[:9], stderr=True).stderr.shape == (9, rows.shape[1])


def test_covariances_that_do_not_exist_or_fit_are_refused(tmp_path):
    rows, y, _ = drawn()
    whole = FunctionalANOVA(sampled=False).fit(rows, y)
    with pytest.raises(InputError, match=r"covariances=True was given, and there are none: .*population"):
        whole.save(tmp_path / "m.exanova", covariances=True)
    with pytest.raises(InputError, match="covariances='yes'"):
        whole.save(tmp_path / "m.exanova", covariances="yes")
    small = FunctionalANOVA(shrinkage=None, memory_limit=100_000_000).fit(rows, y)
    fit = small.decomposition_.uncertainty.fitted
    with pytest.raises(MemoryLimitError, match="covariances of 10,000 cells take about"):
        check_keepable("", 1, 10_000, fit)
    assert list(tmp_path.iterdir()) == []


def test_files_have_no_errors_of_what_is_not_identified(tmp_path):
    rows, y, _ = drawn()
    anova = fitted(np.column_stack([rows, rows[:, 0]]), y, max_order=1)
    anova.save(tmp_path / "twice.exanova")
    again = exanova.load(tmp_path / "twice.exanova")
    twice = np.column_stack([rows, rows[:, 0]])[:5]
    found = again.explain(twice, stderr=True).stderr
    assert np.isnan(found).any()
    assert np.isfinite(found).any()
    assert np.allclose(found, anova.explain(twice, stderr=True).stderr, equal_nan=True)


def test_a_fit_computes_no_errors(monkeypatch):
    rows, y, _ = drawn()
    monkeypatch.setattr(LinearErrors, "of", lambda *_: pytest.fail("computed without being asked"))
    anova = fitted(rows, y)
    assert not anova.decomposition_.uncertainty.known


def test_errors_that_do_not_fit_say_what_is_too_large(monkeypatch):
    """A subset too large for a table is named as such, not as a matter of the memory limit; each message is true."""
    X = np.random.default_rng(0).integers(0, 4, (300, 3))
    anova = FunctionalANOVA(shrinkage=None).fit(X, X[:, 0] * X[:, 1] + 0.1 * X[:, 2])
    monkeypatch.setattr("exanova.basis.functions.LARGEST_TABLE", 10)
    with pytest.raises(MemoryLimitError, match=r"a subset with 16 cells is too large for one.*bootstrap"):
        anova.errors()
    monkeypatch.undo()
    rows = anova.decomposition_.uncertainty.fitted
    tight = replace(rows, request=replace(rows.request, memory_limit=1000))
    with pytest.raises(MemoryLimitError, match="the memory limit is"):
        LinearErrors.of(tight, anova.decomposition_.family)
