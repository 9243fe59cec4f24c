"""Of equal rows with unequal weights each is left out alone: what the fit without it says, weighted as it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.draws import Draws
from exanova.data.sample import Sample, group_sums
from exanova.errors import OverfitWarning
from exanova.shrink.equal_rows import Equal, takes_weights_for_alike
from exanova.shrink.left_out import left_out_by_leverage, left_out_by_rows, left_out_of_exact, left_out_of_shrunk
from strategies import examples


def weighted(seed: int, spread: float, noisy: bool) -> tuple[Sample, np.ndarray]:
    """A sample of nine distinct rows, some with several raw rows of lognormal weights, and the raw values (k, 2)."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(9), rng.integers(0, 9, 20)])
    weight = np.exp(spread * rng.normal(size=len(group)))
    values = rng.normal(size=(len(group) if noisy else 9, 2))
    values = values if noisy else values[group]
    total = np.bincount(group, weights=weight)
    share = (weight / total[group])[:, None]
    mean = group_sums(share * values, group, 9)
    within = group_sums(share * (values - mean[group]) ** 2, group, 9) if noisy else None
    draws = Draws(group, weight, "probability", values if noisy else None)
    codes = np.array(list(np.ndindex(3, 3)), dtype=np.uint8).T
    return Sample(codes, total, (3, 3), mean, len(group), within=within, draws=draws), values


def refitted(columns: np.ndarray, penalty: np.ndarray, weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(m,) weighted mean square of the errors of raw rows, each predicted by the fit without it."""
    errors = np.empty_like(values)
    for j in range(len(values)):
        kept = np.arange(len(values)) != j
        own = columns[kept] * weight[kept, None]
        errors[j] = values[j] - columns[j] @ np.linalg.solve(own.T @ columns[kept] + penalty, own.T @ values[kept])
    return weight @ errors**2 / weight.sum()


@examples(25)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 1.2), noisy=st.booleans())
def test_a_shrunken_fit_leaves_out_each_row_with_its_weight(seed, spread, noisy):
    data, values = weighted(seed, spread, noisy)
    p, d = data.probability, data.precision
    z = np.random.default_rng(seed + 1).normal(size=(9, 6))
    z -= p @ z
    normal = z.T @ (d[:, None] * z) + np.eye(6)
    centred = data.values - p @ data.values
    residual = centred - z @ np.linalg.solve(normal, z.T @ (d[:, None] * centred))
    equal, rows = Equal.of(data), np.arange(9)
    found = left_out_of_shrunk(np.linalg.cholesky(normal), lambda i: z[i], residual, d, rows, equal)
    again = left_out_by_rows(np.linalg.cholesky(np.diag(1.0 / d) + z @ z.T), residual, d, equal)
    columns, penalty = np.hstack([np.ones((9, 1)), z])[data.draws.group], np.diag([0.0] + [1.0] * 6)
    raw = data.draws.weight * len(values) / data.draws.weight.sum()
    expected = refitted(columns, penalty, raw, values) - data.within_variance
    np.testing.assert_allclose(found.mse, expected, rtol=1e-8)
    np.testing.assert_allclose(again.mse, expected, rtol=1e-8)


@examples(25)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 1.2), noisy=st.booleans())
def test_an_exact_fit_leaves_out_each_row_with_its_weight(seed, spread, noisy):
    data, values = weighted(seed, spread, noisy)
    p = data.probability
    functions = np.hstack([np.ones((9, 1)), np.random.default_rng(seed + 1).normal(size=(9, 3))])
    gamma = functions.T @ (p[:, None] * functions)
    coefficients = np.linalg.solve(gamma, functions.T @ (p[:, None] * data.values))
    residual, equal = data.values - functions @ coefficients, Equal.of(data)
    found = left_out_of_exact(
        gamma, coefficients, lambda i: functions[i], residual, p, np.arange(9), np.ones(len(gamma), int), equal
    )
    leverage = p * np.einsum("iq,qk,ik->i", functions, np.linalg.inv(gamma), functions)
    columns = functions[data.draws.group]
    expected = refitted(columns, np.zeros((4, 4)), data.draws.weight, values) - data.within_variance
    np.testing.assert_allclose(found.mse, expected, rtol=1e-5)
    np.testing.assert_allclose(left_out_by_leverage(leverage, residual, p, equal).mse, expected, rtol=1e-8)


@pytest.mark.parametrize("spread", [0.8, 1.5])
def test_the_certificate_of_an_exact_fit_is_that_of_refits_without_each_row(spread):
    rng = np.random.default_rng(int(10 * spread))
    rows, weight = rng.integers(0, 3, size=(45, 2)), np.exp(spread * rng.normal(size=45))
    y = (rows[:, 0] == 1) + rng.normal(size=45)

    def fit(kept: np.ndarray) -> FunctionalANOVA:
        anova = FunctionalANOVA(max_order=1, shrinkage=None, handle_unknown="ignore")
        return anova.fit(rows[kept], y[kept], sample_weight=weight[kept], weights="probability")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        certificate = fit(np.ones(45, dtype=bool)).certificate_
        errors = np.array([y[i] - float(fit(np.arange(45) != i).predict(rows[i : i + 1])[0]) for i in range(45)])
    assert certificate.mse_eval[0] == pytest.approx(weight @ errors**2 / weight.sum(), rel=1e-6)


def test_equal_weights_need_no_raw_rows_and_sums_of_unequal_ones_are_said_to_be_alike():
    data, _ = weighted(0, 0.0, True)
    assert Equal.of(data).unequal is None
    assert not takes_weights_for_alike(data)
    ones = np.ones(9)
    added_up = Draws(np.arange(9), 4.0 * ones, "probability", None, copies=3.0 * ones, squares=6.0 * ones)
    summed = Sample(data.codes, 4.0 * ones, (3, 3), data.values, 27, draws=added_up)
    assert takes_weights_for_alike(summed)
    np.testing.assert_allclose(Equal.of(summed).copies, 16.0 / 6.0)
