"""What is decomposed is what varies: offsets, scales and bins change no digit, and the certificate says the rest."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.scaling import find_scaling
from exanova.errors import InexactWarning, InputError
from exanova.solve import dense
from strategies import MODERATE, difference, examples, fit, given_means, on_rows, spread, supports

orders = st.sampled_from([None, 1, 2, 3])
routes = st.sampled_from(["auto", "dense", "moments", "matrix-free"])


# Offsets and scales


@examples(40)
@given(case=supports(MODERATE, max_outputs=2), order=orders, route=routes, offset=st.sampled_from([1e6, 2.0**40, 1e15]))
def test_a_large_mean_changes_no_effect(case, order, route, offset):
    """Values are quarters, so that adding the offset is exact; only the intercept may move."""
    plain = fit(case, max_order=order, route=route)
    moved = fit(case.with_values(case.values + offset), max_order=order, route=route)
    ours, theirs = on_rows(plain, case.rows), on_rows(moved, case.rows)
    ours.pop(()), theirs.pop(())
    apart = max((float(np.abs(ours[a] - theirs[a]).max()) for a in ours), default=0.0)
    assert apart <= 1e-9 * spread(case).max()
    assert moved.certificate_.exact == plain.certificate_.exact
    np.testing.assert_allclose(moved.certificate_.r2, plain.certificate_.r2, atol=1e-9)


@examples(40)
@given(case=supports(MODERATE, max_outputs=2), order=orders, power=st.integers(-450, 450))
def test_a_power_of_two_scales_every_effect_and_nothing_else(case, order, power):
    plain = fit(case, max_order=order)
    scaled = fit(case.with_values(case.values * 2.0**power), max_order=order)
    ours, theirs = on_rows(plain, case.rows), on_rows(scaled, case.rows)
    for subset in ours:
        np.testing.assert_array_equal(ours[subset] * 2.0**power, theirs[subset])
    np.testing.assert_array_equal(plain.certificate_.r2, scaled.certificate_.r2)
    assert plain.certificate_.orthogonality == scaled.certificate_.orthogonality
    shares = [list(anova.importance("variance")["value"]) for anova in (plain, scaled)]
    assert shares[0] == shares[1]


@pytest.mark.parametrize("factor", [1e-150, 1e-300, 5e-324])
def test_a_model_whose_squares_vanish_is_refused(factor):
    with pytest.raises(InputError, match=r"varies by .*squares.*Multiply"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0], [1]]), np.array([0.0, 1.0]) * factor)


@pytest.mark.parametrize("factor", [1e150, 1e300, 1.7e308])
def test_a_model_whose_squares_overflow_is_refused(factor):
    with pytest.raises(InputError, match=r"as large as .*squares.*Divide"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0], [1], [1]]), np.array([0.0, -1.0, 1.0]) * factor)


def test_a_tiny_constant_is_no_reason_to_refuse():
    anova = FunctionalANOVA(shrinkage=None).fit(np.array([[0], [1]]), np.full(2, 1e-300))
    assert anova.intercept_.tolist() == [1e-300]
    assert anova.certificate_.r2.tolist() == [1.0]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_whole_numbers_are_normalised_without_rounding_in_any_order(values, seed):
    y = np.array(values, dtype=np.float64)[:, None]
    scaling = find_scaling(y, np.ones(len(y)))
    normalised = scaling.normalised(y)
    assert np.abs(normalised).max() <= 1.1
    varies = scaling.unit[0] > 0
    np.testing.assert_array_equal(
        scaling.centre + normalised * scaling.unit, y if varies else np.broadcast_to(y[0], y.shape)
    )
    again = find_scaling(np.random.default_rng(seed).permutation(y), np.ones(len(y)))
    assert (again.centre.tolist(), again.unit.tolist()) == (scaling.centre.tolist(), scaling.unit.tolist())


def test_each_output_is_measured_by_its_own_size(monkeypatch):
    """A wrong answer for a small output must not hide behind a large one."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 3, (40, 3)), axis=0)
    values = np.stack([1e9 * rng.normal(size=len(rows)), 1e-9 * rng.normal(size=len(rows))], axis=1)
    assert FunctionalANOVA(shrinkage=None, route="dense").fit(rows, values).certificate_.exact
    solve = dense.solve_dense

    def spoiled(*arguments, **named):
        found = solve(*arguments, **named)
        wrong = found.coefficients.copy()
        wrong[1, 1] += 1e-3
        return replace(found, coefficients=wrong)

    monkeypatch.setattr("exanova.solve.routes.solve_dense", spoiled)
    with pytest.warns(InexactWarning, match="residual has a mean of"):
        certificate = FunctionalANOVA(shrinkage=None, route="dense").fit(rows, values).certificate_
    assert not certificate.exact
    assert certificate.residual_mean > 1e-5


# The fit is against the model as given


@st.composite
def binned(draw):
    """A numeric column that bins cut, a column whose rare levels are merged, and rows that repeat."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(30, 80))
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 60, n).round(1), "town": rng.choice(list("abcdefgh"), n), "sex": rng.integers(0, 2, n)}
    )
    return frame, rng


@examples(25)
@given(drawn=binned(), given=st.booleans(), order=st.integers(0, 2), bins=st.integers(2, 5))
def test_the_certified_fit_is_the_score_on_the_same_rows(drawn, given, order, bins):
    """What bins and merged levels hide counts as lost, and so does noise between equal rows."""
    frame, rng = drawn
    noise = rng.normal(size=len(frame))

    def model(X):
        return np.sin(X["age"].to_numpy(float) / 5) + (X["town"] == "a").to_numpy() * X["sex"].to_numpy()

    outputs = model(frame) + noise if given else model
    weight = rng.integers(1, 4, len(frame))
    anova = FunctionalANOVA(shrinkage=None, max_order=order, n_bins=bins, min_frequency=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anova.fit(frame, outputs, sample_weight=weight)
        score = anova.score(frame, outputs, sample_weight=weight)
        error = (outputs if given else model(frame)) - anova.predict(frame)
    p = weight / weight.sum()
    certificate = anova.certificate_
    assert certificate.r2[0] == pytest.approx(score, abs=1e-9)
    assert certificate.mse[0] == pytest.approx(p @ error**2, rel=1e-9)
    shares = anova.importance("variance", by="subset")["value"].sum()
    assert shares == pytest.approx(score, abs=1e-9)


def test_two_bins_of_a_fast_wave_explain_almost_nothing():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 10, (400, 1))
    anova = FunctionalANOVA(shrinkage=None, n_bins=2).fit(age, np.sin(8 * age[:, 0]))
    assert anova.certificate_.r2[0] < 0.1
    assert anova.certificate_.r2[0] == pytest.approx(anova.score(age, np.sin(8 * age[:, 0])))


@examples(20)
@given(drawn=binned(), share=st.sampled_from([0.2, 0.4]))
def test_the_fit_on_held_out_rows_counts_what_bins_hide_there(drawn, share):
    """With two bins and a model that varies inside them, no fit on held-out rows can be perfect."""
    frame, _ = drawn
    values = frame["age"].to_numpy() % 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anova = FunctionalANOVA(shrinkage=None, max_order=3, n_bins=2).fit(frame, values, eval_set=share)
    assert anova.certificate_.mse_eval[0] > 0.0
    assert anova.certificate_.r2_eval[0] < 1.0 - 1e-6 or anova.certificate_.within_variance[0] == 0.0


# The certificate, field by field, by brute force


@examples(50)
@given(
    case=supports(MODERATE, max_outputs=2),
    order=orders,
    basis=st.sampled_from(["pure", "paper"]),
    ties=st.sampled_from(["share", "first"]),
    ridge=st.sampled_from([0.0, 0.5]),
)
def test_what_the_certificate_measures(case, order, basis, ties, ridge):
    """A ridge leaves a residual with a mean in every cell, so that nothing here is zero by construction."""
    anova = fit(case, max_order=order, basis=basis, ties=ties, ridge=ridge)
    effects = on_rows(anova, case.rows)
    certificate, scale = anova.certificate_, spread(case)
    error = case.values - sum(effects.values())
    means = np.array([given_means(case.rows, case.probability, a, v) for a, v in effects.items()]).max(axis=0)
    assert certificate.orthogonality == pytest.approx((means / scale).max(), rel=1e-6, abs=1e-10)
    assert certificate.reconstruction == pytest.approx((np.abs(error).max(axis=0) / scale).max(), rel=1e-6, abs=1e-10)
    l2 = np.sqrt(case.probability @ error**2)
    assert certificate.reconstruction_l2 == pytest.approx((l2 / scale).max(), rel=1e-6, abs=1e-10)
    if ridge:
        assert np.isnan(certificate.residual_mean)
        return
    worst = np.zeros(error.shape[1])
    for subset in effects:
        for cell in np.unique(case.rows[:, list(subset)], axis=0):
            inside = case.probability * (case.rows[:, list(subset)] == cell).all(axis=1)
            worst = np.maximum(worst, np.abs(inside @ error) / inside.sum())
    assert certificate.residual_mean == pytest.approx((worst / scale).max(), rel=1e-6, abs=1e-10)


def test_a_residual_with_a_mean_in_some_cell_is_measured(monkeypatch):
    """Every field of the certificate is read off the effects that are handed out, not off the solver."""
    rows = np.array(list(np.ndindex(3, 3)))
    values = np.arange(9.0) ** 2
    solve = dense.solve_dense

    def shifted(*arguments, **named):
        found = solve(*arguments, **named)
        return replace(found, coefficients=found.coefficients * 1.01)

    monkeypatch.setattr("exanova.solve.routes.solve_dense", shifted)
    with pytest.warns(InexactWarning):
        anova = FunctionalANOVA(shrinkage=None, max_order=1, route="dense").fit(rows, values)
    effects = on_rows(anova, rows)
    error = values[:, None] - sum(effects.values())
    by_hand = max(np.abs(error[rows[:, i] == k].mean()) for i in (0, 1) for k in range(3))
    assert anova.certificate_.residual_mean == pytest.approx(by_hand / np.abs(values - values.mean()).max())


@examples(20)
@given(case=supports(MODERATE), order=orders)
def test_effects_do_not_depend_on_the_units_of_the_other_output(case, order):
    alone = on_rows(fit(case.with_values(case.values[:, :1]), max_order=order), case.rows)
    both = case.with_values(np.hstack([case.values[:, :1], 1e12 * (1.0 + case.values[:, :1] ** 2)]))
    beside = {a: v[:, :1] for a, v in on_rows(fit(both, max_order=order), case.rows).items()}
    assert difference(alone, beside) <= 1e-9
