"""Effects shrunk to what the rows can carry: the posterior by definition, leaving out by refitting, and the limits."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, Support
from exanova.basis.tables import build_basis
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.shrink.components import Components, choose_components
from exanova.shrink.posterior import make_prior, posterior
from exanova.shrink.prior import level_kernel, row_kernels
from strategies import MODERATE, difference, examples, fit, given_means, on_rows, spread, supports


def arranged(case, order):
    """Cells, prior and columns at the rows of a case, with every second feature ordered."""
    codes = case.rows.T.astype(np.uint8)
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    index = build_family(codes, case.weight.astype(float), case.sizes, up_to_order(varying, order))
    kernels = {
        s[0]: level_kernel(index.probability_of(k), 0 if s[0] % 2 else case.sizes[s[0]])
        for k, s in enumerate(index.subsets)
        if len(s) == 1
    }
    prior = make_prior(index, build_basis(index), kernels)
    return index, kernels, prior, prior.on_rows(index, codes)


def given_components(order, residual=0.3):
    return Components(tuple(range(1, order + 1)), (2.0, 0.7, 0.2)[:order], residual, True, 10)


@examples(40)
@given(case=supports(MODERATE, max_outputs=1), order=st.integers(1, 3))
def test_the_posterior_is_that_of_the_definition(case, order):
    """Against the normal equations written out over all columns, whichever matrix the code inverts."""
    index, _, prior, rows = arranged(case, order)
    p, y = case.probability, case.values[:, 0]
    components = given_components(order)
    found = posterior(index, prior, rows, y, p, components)
    z = rows * prior.scale(components)
    weight = len(p) * p / components.residual
    precision = z.T @ (weight[:, None] * z) + np.eye(z.shape[1])
    centred = y - p @ y
    mean = np.linalg.solve(precision, z.T @ (weight * centred))
    np.testing.assert_allclose(found.coordinates, mean * prior.scale(components), atol=1e-9)
    np.testing.assert_allclose(found.residual, centred - z @ mean, atol=1e-9)
    covariance = np.linalg.inv(precision)
    for s, table, a, b in zip(prior.subsets, prior.tables, prior.start, prior.start[1:], strict=False):
        own = table * prior.scale(components)[a:b]
        np.testing.assert_allclose(
            found.variance[index.cells_of(s)], np.diag(own @ covariance[a:b, a:b] @ own.T), atol=1e-9
        )
    determined = 1.0 - np.diag(covariance)
    for k, count in found.effective.items():
        assert count == pytest.approx(determined[prior.order == k].sum(), abs=1e-8)


@examples(30)
@given(case=supports(MODERATE, max_outputs=1, max_rows=20), order=st.integers(1, 2))
def test_leaving_a_row_out_is_fitting_without_it(case, order):
    """The same columns and prior, without the row: what is predicted for it there."""
    index, _, prior, rows = arranged(case, order)
    p, y, components = case.probability, case.values[:, 0], given_components(order)
    found = posterior(index, prior, rows, y, p, components)
    z, weight = rows * prior.scale(components), len(p) * p / components.residual
    columns = np.hstack([np.ones((len(p), 1)), z])
    penalty = np.diag([0.0] + [1.0] * z.shape[1])
    for i in range(len(p)) if len(p) > 1 else ():
        kept = np.arange(len(p)) != i
        normal = columns[kept].T @ (weight[kept, None] * columns[kept]) + penalty
        without = np.linalg.solve(normal, columns[kept].T @ (weight[kept] * y[kept]))
        assert found.left_out[i] == pytest.approx(y[i] - columns[i] @ without, abs=1e-7)


@examples(30)
@given(case=supports(MODERATE, max_outputs=1), order=st.integers(1, 3))
def test_kernels_of_rows_are_sums_of_products_over_subsets(case, order):
    index, kernels, _, _ = arranged(case, order)
    codes = case.rows.T
    found = row_kernels(codes, kernels, index.subsets)
    some = [s for s in index.subsets if len(s) < 2 or 0 in s]
    for family in (index.subsets, some):
        found = row_kernels(codes, kernels, family)
        for k, kernel in found.items():
            expected = np.zeros_like(kernel)
            for subset in (s for s in family if len(s) == k):
                expected += np.prod([kernels[i][np.ix_(codes[i], codes[i])] for i in subset], axis=0)
            np.testing.assert_allclose(kernel, expected, atol=1e-9)


@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=8), st.integers(0, 8))
def test_a_kernel_of_levels_is_centred_and_has_mean_diagonal_one(weights, ordered):
    p = np.array(weights) / np.sum(weights)
    kernel = level_kernel(p, min(ordered, len(p)))
    np.testing.assert_allclose(kernel @ p, 0, atol=1e-12)
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-12)
    assert p @ np.diag(kernel) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9


@examples(25)
@given(case=supports(("equal",), max_outputs=1, complete=False), order=st.integers(1, 2))
def test_without_a_residual_to_speak_of_the_fit_is_the_exact_one(case, order):
    """As tau^2 vanishes the posterior mean fits what least squares fits."""
    index, _, prior, rows = arranged(case, order)
    y, p = case.values[:, 0], case.probability
    exact = fit(case, max_order=order)
    found = posterior(index, prior, rows, y, p, given_components(order, residual=1e-9))
    fitted = sum(on_rows(exact, case.rows).values())[:, 0]
    np.testing.assert_allclose(y - p @ y - found.residual, fitted - p @ y, atol=1e-4 * spread(case).max())


def test_the_likelihood_finds_the_components_that_made_the_values():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (600, 4))
    case_sizes, codes, p = (5,) * 4, rows.T, np.full(600, 1 / 600)
    kernels = {i: level_kernel(np.bincount(codes[i], minlength=5) / 600, 0) for i in range(4)}
    between = row_kernels(codes, kernels, up_to_order(range(4), 2))
    true = (4.0, 1.0, 0.25)
    chosen = []
    for _ in range(20):
        covariance = sum(v * b / (p @ np.diag(b)) for v, b in zip(true, between.values(), strict=False))
        y = rng.multivariate_normal(np.zeros(600), covariance) + 0.5 * rng.normal(size=600)
        found = choose_components(y, p, between)
        assert found.converged
        chosen.append([*found.variance, found.residual])
    low, high = np.quantile(chosen, [0.05, 0.95], axis=0)
    assert ((low < true) & (true < high)).all(), (low, high)
    assert case_sizes == tuple(rows.max(axis=0) + 1)


@examples(20)
@given(case=supports(MODERATE, complete=False, max_outputs=2))
def test_shrunken_effects_are_pure_and_their_sum_is_the_fitted_part(case):
    anova = fit(case, shrinkage="auto", sampled=True)
    effects = on_rows(anova, case.rows)
    scale = spread(case)
    for subset, values in effects.items():
        assert (given_means(case.rows, case.probability, subset, values) <= 1e-9 * scale).all()
    np.testing.assert_allclose(
        sum(effects.values()), anova.predict(case.rows).reshape(len(case.rows), -1), atol=1e-9 * scale.max()
    )
    np.testing.assert_allclose(anova.intercept_, case.probability @ case.values, atol=1e-9 * scale.max())
    assert anova.certificate_.orthogonality <= 1e-9


def test_all_there_is_is_not_shrunk_and_says_so():
    grid = np.array(list(np.ndindex(3, 3)))
    values = np.arange(9.0) ** 2
    complete = FunctionalANOVA(shrinkage="auto").fit(grid, values)
    assert "all there is" in complete.certificate_.shrinkage
    assert complete.certificate_.r2.tolist() == [1.0]
    some = FunctionalANOVA(shrinkage="auto", sampled=False).fit(grid[:7], values[:7])
    assert difference(on_rows(some, grid[:7]), on_rows(FunctionalANOVA().fit(grid[:7], values[:7]), grid[:7])) == 0.0
    known = FunctionalANOVA(shrinkage="auto").fit(Support.from_pmf(np.full((2, 2), 0.25)), np.arange(4.0))
    assert "off" in known.certificate_.shrinkage
    assert "off" in FunctionalANOVA(shrinkage="auto", max_terms=8).fit(grid[:7], values[:7]).certificate_.shrinkage


def test_other_rows_say_what_leaving_out_said():
    """A smooth function of two numbers, a category, and a column the model never reads."""
    rng = np.random.default_rng(3)
    n = 500
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "income": rng.lognormal(3, 0.5, n),
            "job": rng.choice(list("abc"), n),
            "luck": rng.normal(size=n),
            "chance": rng.normal(size=n),
        }
    )
    y = np.sin(frame["age"] / 12) + np.log(frame["income"]) * (frame["job"] == "a") + 0.1 * frame["age"] / 20
    train, test = np.arange(n) < 200, np.arange(n) >= 200
    bins = {"age": 12, "income": 12, "luck": 12, "chance": 12}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = FunctionalANOVA(n_bins=bins).fit(frame[train], y[train].to_numpy())
        shrunk = FunctionalANOVA(n_bins=bins, shrinkage="auto").fit(frame[train], y[train].to_numpy())
        held = {
            name: anova.score(frame[test], y[test].to_numpy()) for name, anova in (("exact", exact), ("shrunk", shrunk))
        }
    assert exact.certificate_.r2[0] > 0.99
    assert 1 - held["shrunk"] < 0.6 * (1 - held["exact"])
    assert shrunk.certificate_.r2_eval[0] == pytest.approx(held["shrunk"], abs=0.05)
    assert "leaving out" in shrunk.certificate_.eval_method
    importance = shrunk.importance("l2")
    assert set(importance["feature"].iloc[-2:]) == {"luck", "chance"}
    assert (importance["value"].iloc[-2:] < 0.05 * importance["value"].iloc[0]).all()
    assert sum(shrunk.certificate_.effective_functions) < 200
