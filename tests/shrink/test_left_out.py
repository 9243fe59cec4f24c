"""Leaving a row out is refitting without it: for shrunken fits, for exact ones, for rows that stand alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_shrink import LOGS, arranged, data_of, has_columns, likelihoods, row_kernels_of

from exanova import FunctionalANOVA
from exanova.basis.functions import build_basis
from exanova.data.sample import KnownRows, Sample
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.phi.operator import Phi
from exanova.shrink import left_out
from exanova.shrink.equal_rows import Equal
from exanova.shrink.evaluate import leave_rows_out, why_none
from exanova.shrink.left_out import (
    Alone,
    left_out_by_products,
    left_out_by_rows,
    left_out_of_exact,
    left_out_of_shrunk,
    rows_to_leave_out,
)
from exanova.solve.request import Request
from exanova.solve.run import decompose
from strategies import MODERATE, examples, supports


@examples(30)
@given(case=supports(MODERATE, max_outputs=2, max_rows=20), order=st.integers(1, 2))
def test_leaving_a_row_out_of_a_shrunken_fit_is_fitting_without_it(case, order):
    """The same columns and prior, without the row: what is predicted for it there."""
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    p, y = case.probability, case.values
    logs, d = LOGS[: len(prior.orders)], len(rows) * p
    z = rows * prior.scale(np.exp(logs))
    by_functions, by_rows = likelihoods(case, prior, rows)
    hat = z @ np.linalg.solve(z.T @ (d[:, None] * z) + np.eye(z.shape[1]), z.T * d)
    residual = y - p @ y - hat @ (y - p @ y)
    everything = np.arange(len(p))
    found = left_out_of_shrunk(by_functions.factor(logs), lambda i: z[i], residual, d, everything)
    again = left_out_by_rows(by_rows.factor(logs), residual, d)
    columns, penalty = np.hstack([np.ones((len(p), 1)), z]), np.diag([0.0] + [1.0] * z.shape[1])
    for i in everything:
        kept = everything != i
        normal = columns[kept].T @ (d[kept, None] * columns[kept]) + penalty
        without = np.linalg.solve(normal, columns[kept].T @ (d[kept, None] * y[kept]))
        np.testing.assert_allclose(found.residual[i], y[i] - columns[i] @ without, atol=1e-7)
        np.testing.assert_allclose(again.residual[i], y[i] - columns[i] @ without, atol=1e-7)
    np.testing.assert_allclose(found.mse, p @ found.residual**2)
    assert not found.stderr.any()


@examples(30)
@given(case=supports(("equal",), max_outputs=2, max_rows=20, complete=False), order=st.integers(1, 2))
def test_without_a_row_a_cell_that_it_was_alone_in_counts_as_nothing(case, order):
    """Against refits without the row, of which effects of cells that no other row falls in are left out."""
    index, kernels, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    p, y, logs = case.probability, case.values, LOGS[: len(prior.orders)]
    d, ratio, scale = len(rows) * p, prior.ratio(np.exp(logs)), prior.scale(np.exp(logs))
    z, everything = rows * scale, np.arange(len(p))
    found = row_kernels_of(case, index, kernels)
    subsets = np.stack([own for own, _ in found.alone(1.0, everything)])
    for mine, s in zip(subsets, prior.subsets, strict=True):
        own = case.rows[:, list(index.subsets[s])]
        assert mine.tolist() == [int((own == row).all(axis=1).sum()) == 1 for row in own]
    by_functions, by_rows = likelihoods(case, prior, rows)
    centred = y - p @ y
    coordinates = np.linalg.solve(z.T @ (d[:, None] * z) + np.eye(z.shape[1]), z.T @ (d[:, None] * centred))
    mask = subsets[prior.group].T
    alone, residual = Alone(subsets, (z * mask) @ coordinates), centred - z @ coordinates
    for one in (
        left_out_of_shrunk(
            by_functions.factor(logs), lambda i: z[i], residual, d, everything, alone=(alone, prior.group)
        ),
        left_out_by_rows(by_rows.factor(logs), residual, d, alone=(alone, partial(found.lines, ratio, subsets))),
    ):
        for i in everything:
            kept = everything != i
            columns = np.hstack([np.ones((len(p), 1)), z])
            normal = columns[kept].T @ (d[kept, None] * columns[kept]) + np.diag([0.0] + [1.0] * z.shape[1])
            without = np.linalg.solve(normal, columns[kept].T @ (d[kept, None] * y[kept]))
            predicted = without[0] + (z[i] * ~mask[i]) @ without[1:]
            np.testing.assert_allclose(one.residual[i], y[i] - predicted, atol=1e-7)


def test_some_rows_left_out_are_predicted_as_among_all(monkeypatch):
    """Of many rows some are left out. Nothing is kept of the others, and of these nothing changes."""
    rng, found = np.random.default_rng(4), []

    def observed(lower, at_rows, residual, precision, rows, equal, alone):
        out = left_out_of_shrunk(lower, at_rows, residual, precision, rows, equal, alone)
        found.append((rows, alone[0], out.residual))
        return out

    X = np.column_stack([rng.geometric(0.06, 500), rng.integers(0, 4, 500), rng.integers(0, 9, 500)]).astype(str)
    y = rng.normal(size=500) + (X[:, 1] == "2")
    monkeypatch.setattr("exanova.shrink.fit.left_out_of_shrunk", observed)
    monkeypatch.setattr("exanova.shrink.left_out.ROWS_PER_FUNCTION", 0.0)
    for fewest in (10**6, 200):
        monkeypatch.setattr("exanova.shrink.left_out.FEWEST_SAMPLED", fewest)
        FunctionalANOVA(max_order=1, random_state=1).fit(X, y)
    (every, whole, among_all), (some, alone, residual) = found
    assert len(some) == 200 < len(every)
    np.testing.assert_allclose(residual, among_all[some], rtol=1e-9)
    assert np.array_equal(alone.subsets, whole.subsets[:, some])
    assert alone.subsets.any()


def exact_case(case, order):
    """Functions at the rows, their Gram matrix, and a least-squares fit of least energy."""
    codes = case.rows.T.astype(np.uint8)
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    family = build_family(codes, case.weight.astype(float), case.sizes, up_to_order(varying, order))
    phi = Phi(family, KnownRows(codes)).functions(build_basis(family))
    coefficients = shortest(phi, case.probability, case.values)
    return phi, phi.T @ (case.probability[:, None] * phi), coefficients


def orders_of(case, order):
    """(q,) order of each of the functions of :func:`exact_case`."""
    codes, varying = case.rows.T.astype(np.uint8), [i for i, n in enumerate(case.sizes) if n > 1]
    family = build_family(codes, case.weight.astype(float), case.sizes, up_to_order(varying, order))
    return family.layout.order[build_basis(family).subset_of_function()]


def low_orders_first(phi, order, weight, values):
    """(q, m) least squares by definition: what low orders can express, higher ones do not; shortest in each order."""

    def solved(a, b):
        u, size, v = np.linalg.svd(a, full_matrices=False)
        kept = size > 1e-7  # an absolute size: of functions that low orders express, rounding is left
        return v[kept].T @ ((u[:, kept].T @ b) / size[kept, None])

    root = np.sqrt(weight)[:, None]
    columns, out = root * phi, np.zeros((phi.shape[1], values.shape[1]))
    for k in range(int(order.max()), -1, -1):
        own, low = columns[:, order == k], columns[:, order < k]
        left = root * values - columns @ out
        for side in (own, left):
            side -= low @ solved(low, side)
        out[order == k] = solved(own, left)
    return out


@examples(60)
@given(case=supports(MODERATE, max_outputs=2, max_rows=30), order=st.integers(1, 2))
def test_what_low_orders_can_express_without_a_row_they_do(case, order):
    """Of the fits without a row that meet the others equally well, that of the decomposition is meant."""
    assume(len(case.rows) > 1)
    phi, gamma, coefficients = exact_case(case, order)
    p, orders, rows = case.probability, orders_of(case, order), np.arange(len(phi))
    residual = case.values - phi @ coefficients
    found = left_out_of_exact(gamma, coefficients, lambda i: phi[i], residual, p, rows, orders)
    by_rows = left_out_by_products(phi.copy(), case.values, p, orders)
    for i in rows:
        kept = rows != i
        without = low_orders_first(phi[kept], orders, p[kept], case.values[kept])
        expected = case.values[i] - phi[i] @ without
        size = 1 + np.abs(expected).max() + np.ptp(case.values)
        np.testing.assert_allclose(found.residual[i], expected, atol=0.05 * size)
        np.testing.assert_allclose(by_rows.residual[i], expected, atol=0.05 * size)


@examples(30)
@given(case=supports(MODERATE, max_outputs=2, max_rows=20), ridge=st.sampled_from([1e-3, 0.1, 2.0]))
def test_a_row_left_out_of_a_fit_with_a_ridge(case, ridge):
    assume(len(case.rows) > 1)
    phi, gamma, _ = exact_case(case, 2)
    p, rows, penalty = case.probability, np.arange(len(phi)), ridge * np.eye(phi.shape[1])
    penalty[0, 0] = 0.0

    def fit(kept):
        weighted = phi[kept].T * p[kept]
        return np.linalg.solve(weighted @ phi[kept] + penalty, weighted @ case.values[kept])

    coefficients, orders = fit(rows), orders_of(case, 2)
    residual = case.values - phi @ coefficients
    gamma = gamma.copy()
    found = left_out_of_exact(gamma, coefficients, lambda i: phi[i], residual, p, rows, orders, ridge=ridge)
    by_rows = left_out_by_products(phi.copy(), case.values, p, orders, ridge=ridge)
    for i in rows:
        expected = case.values[i] - phi[i] @ fit(rows[rows != i])
        np.testing.assert_allclose(found.residual[i], expected, atol=1e-6 * (1 + np.abs(expected).max()))
        np.testing.assert_allclose(by_rows.residual[i], expected, atol=1e-4 * (1 + np.abs(expected).max()))


def shortest(phi, weight, values):
    """Least squares by definition: the shortest coefficients, the intercept not counted."""
    centre = weight @ phi[:, 1:] / weight.sum(), weight @ values / weight.sum()
    root = np.sqrt(weight)[:, None]
    found = np.linalg.lstsq(root * (phi[:, 1:] - centre[0]), root * (values - centre[1]), rcond=1e-9)[0]
    return np.vstack([centre[1] - centre[0] @ found, found])


@examples(60)
@given(case=supports(MODERATE, max_outputs=2, max_rows=30), order=st.integers(1, 3))
def test_leaving_a_row_out_of_an_exact_fit_is_fitting_without_it(case, order):
    """Redundant functions and rows that alone determine a direction included."""
    if len(case.rows) < 2:
        return
    phi, gamma, coefficients = exact_case(case, order)
    residual = case.values - phi @ coefficients
    everything = np.arange(len(phi))
    found = left_out_of_exact(
        gamma, coefficients, lambda i: phi[i], residual, case.probability, everything, np.ones(phi.shape[1], int)
    )
    alone = 0
    for i in everything:
        kept = everything != i
        without = shortest(phi[kept], case.probability[kept], case.values[kept])
        expected = case.values[i] - phi[i] @ without
        np.testing.assert_allclose(found.residual[i], expected, atol=2e-4 * (1 + np.abs(expected).max()))
        rank = [
            np.linalg.matrix_rank(np.sqrt(case.probability)[k, None] * phi[k], tol=1e-7) for k in (kept, everything)
        ]
        alone += int(rank[0] < rank[1])
    assert found.alone == alone


def test_a_saturated_fit_says_nothing_of_rows_left_out_but_their_mean():
    """Every row alone: 1 - h is zero everywhere, the residual too, and the errors are those of refits."""
    phi = np.hstack([np.ones((4, 1)), 2 * np.eye(4)[:, :3] - 0.5])
    p, y = np.full(4, 0.25), np.array([[1.0], [2.0], [4.0], [9.0]])
    coefficients = shortest(phi, p, y)
    residual = y - phi @ coefficients
    found = left_out_of_exact(
        phi.T @ (p[:, None] * phi),
        coefficients,
        lambda i: phi[i],
        residual,
        p,
        np.arange(4),
        np.ones(phi.shape[1], int),
    )
    assert found.alone == 4
    for i in range(4):
        kept = np.arange(4) != i
        without = shortest(phi[kept], p[kept], y[kept])
        assert found.residual[i, 0] == pytest.approx(float(y[i, 0] - phi[i] @ without[:, 0]), rel=1e-5)


def test_rows_drawn_at_random_estimate_what_all_rows_say(monkeypatch):
    """The estimate lies within its standard errors, and its spread over draws is what they say."""
    rng = np.random.default_rng(0)
    n, q = 3000, 60
    phi = np.hstack([np.ones((n, 1)), rng.normal(size=(n, q))])
    p = rng.integers(1, 5, n).astype(float)
    p /= p.sum()
    y = phi[:, 1:6].sum(axis=1, keepdims=True) + rng.normal(size=(n, 1))
    gamma = phi.T @ (p[:, None] * phi)
    coefficients = np.linalg.solve(gamma, phi.T @ (p[:, None] * y))
    residual = y - phi @ coefficients

    def at(i):
        return phi[i]

    everything = left_out_of_exact(gamma, coefficients, at, residual, p, np.arange(n), np.ones(len(gamma), int))
    monkeypatch.setattr(left_out, "FEWEST_SAMPLED", 200)
    found = []
    for seed in range(200):
        rows = rows_to_leave_out(n, q, seed=seed)
        assert len(rows) == 200
        some = left_out_of_exact(gamma, coefficients, at, residual, p, rows, np.ones(len(gamma), int))
        np.testing.assert_allclose(some.residual, everything.residual[rows])
        found.append((some.mse[0] - everything.mse[0], some.stderr[0]))
    apart, stderr = np.array(found).T
    assert 0.8 < stderr.mean() / apart.std() < 1.25
    assert abs(apart.mean()) < 0.1 * apart.std() + 0.2 * stderr.mean()
    # In-sample residuals alone would be this far off:
    assert everything.mse[0] - (p @ residual**2)[0] > 5 * stderr.mean()


@examples(20)
@given(case=supports(("equal", "counts"), complete=False), order=st.integers(1, 2))
def test_rows_are_left_out_of_a_decomposition_on_any_route(case, order):
    """The same errors as from the functions written down; a dense fit has the same as one from moments."""
    data = data_of(case)
    phi, gamma, coefficients = exact_case(case, order)
    residual = case.values - phi @ coefficients
    rows, equal = np.arange(len(phi)), Equal.of(data)
    expected = left_out_of_exact(
        gamma, coefficients, lambda i: phi[i], residual, case.probability, rows, orders_of(case, order), equal
    )
    for route in ("dense", "moments"):
        request = Request(max_order=order, route=route)
        found = decompose(data, request)
        assert why_none(data, found, request) is None
        left = leave_rows_out(data, found, request)
        size = 1 + np.abs(expected.residual).max()
        np.testing.assert_allclose(left.residual, expected.residual, atol=1e-3 * size)
        assert left.alone == expected.alone


def test_a_fit_that_is_not_least_squares_says_why_no_row_is_left_out():
    rows = np.array(list(np.ndindex(3, 3)))[:7]
    data = Sample(
        np.ascontiguousarray(rows.T).astype(np.uint8), np.ones(7, dtype=np.int64), (3, 3), rows[:, :1] * 1.0, 7
    )
    request = Request(max_order=2, basis="paper", ties="first")
    assert "least-squares" in why_none(data, decompose(data, request), request)
    tight = Request(max_order=1)
    found = decompose(data, tight)
    assert "memory" in why_none(data, found, replace(tight, memory_limit=10))


@examples(25)
@given(case=supports(("counts",), max_rows=12, max_features=3), order=st.integers(1, 2))
def test_one_of_several_equal_rows_is_left_out_alone(case, order):
    """Against refits with one row fewer of each kind, predicting the row that was left out."""
    assume(len(case.rows) > 1 and (case.weight > 1).any())
    values = case.values[:, :1]
    anova = FunctionalANOVA(max_order=order, shrinkage=None, sampled=True).fit(
        case.rows, values, sample_weight=case.weight
    )
    certificate = anova.certificate_
    assume(certificate.eval_method == "leaving out each row" and certificate.unique)
    squares = []
    for i in np.flatnonzero(case.weight > 1):
        weight = case.weight.copy()
        weight[i] -= 1
        again = FunctionalANOVA(max_order=order, shrinkage=None).fit(case.rows, values, sample_weight=weight)
        squares.append((values[i, 0] - again.predict(case.rows[i : i + 1]).ravel()[0]) ** 2)
    sample = anova.decomposition_.sample
    found = leave_rows_out(sample, decompose(sample, Request(max_order=order)), Request(max_order=order))
    several = np.flatnonzero(sample.copies > 1)
    unit = sample.scaling.unit[0]
    errors = np.sort((found.residual[several, 0] * unit) ** 2)
    np.testing.assert_allclose(errors, np.sort(squares), atol=1e-6 * max(1.0, np.ptp(values) ** 2))


def test_equal_rows_with_one_residual_are_not_taken_for_independent_ones() -> None:
    """Every row twenty times, with clear effects: what is left is that of 27 rows and 7 functions, not of 540 rows."""
    rows = np.array(list(np.ndindex(3, 3, 3)))
    noise = np.random.default_rng(2).normal(size=27)
    y = 2.0 * rows[:, 0] - 3.0 * (rows[:, 1] == 1) + rows[:, 2] + noise
    many = np.repeat(np.arange(27), 20)
    found = FunctionalANOVA(max_order=1, n_jobs=1, sampled=True).fit(rows[many], y[many])
    posterior = found.decomposition_.uncertainty.fitted.posterior
    _, variance = posterior.part_of(0)
    assert variance / posterior.components[0].residual == pytest.approx(27 / 20, rel=0.1)
