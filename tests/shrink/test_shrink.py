"""Effects shrunk to what the rows can carry: the posterior by definition, leaving out by refitting, and the limits."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from exanova import FunctionalANOVA, Support
from exanova.basis.functions import build_basis
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.infer.linear import RowTerms
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.by_cells import ByCells, RowKernels, SubsetKernels
from exanova.shrink.cell_kernels import kernels_of_cells
from exanova.shrink.components import Pulled, bounds, maximise
from exanova.shrink.coordinates import gram_of_columns, make_prior
from exanova.shrink.fit import DETERMINED, fit_family, fit_shrunk
from exanova.shrink.likelihood import ByFunctions, ByRows
from exanova.shrink.posterior import Columns, solve_by_functions, solve_by_rows
from exanova.shrink.prepared import columns_of
from exanova.shrink.prior import level_kernel
from exanova.shrink.unshrunk import why_not
from exanova.solve.planning import make_plan
from exanova.solve.request import Request
from exanova.solve.run import run_plan
from exanova.solve.survey import load_of
from strategies import MODERATE, difference, examples, fit, given_means, on_rows, spread, supports

LOGS = np.log([6.0, 2.0, 0.7])
"""Logarithms of ratios of three orders."""


def arranged(case, order):
    """Cells, kernels, prior and columns at the rows of a case, with every second feature ordered."""
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


def likelihoods(case, prior, rows):
    """The two likelihoods of a case, written down from the columns at the rows."""
    d = len(rows) * case.probability
    y = case.values - case.probability @ case.values
    group = np.searchsorted(prior.orders, prior.order)
    total = np.array([prior.total[k] for k in prior.orders])
    own = [rows[:, group == k] for k in range(len(total))]
    functions = ByFunctions(rows.T @ (d[:, None] * rows), rows.T @ (d[:, None] * y), d @ y**2, group, total, d.sum())
    return functions, ByRows([z @ z.T / t for z, t in zip(own, total, strict=True)], y, 1.0 / d)


def has_columns(case, prior):
    """Whether a case has functions to shrink and outputs that all vary."""
    return len(prior.order) > 0 and bool((case.values != case.values[0]).any(axis=0).all())


def dense(rows):
    """The columns at the rows as an operator."""
    return Columns(lambda c: rows @ c, lambda v: rows.T @ v)


def over_rows(lower, scale, columns, values, precision):
    """The posterior mean from a factor over rows, with columns written down."""
    return solve_by_rows(
        lower, lambda v: scale[:, None] ** 2 * columns.analyse(v), columns.synthesise, values, precision
    )


def data_of(case):
    """The arrays the engine works on."""
    codes = np.ascontiguousarray(case.rows.T).astype(np.uint8)
    return Sample(codes, case.weight, case.sizes, case.values, len(case.rows))


def shrunk_arrays(case, request):
    """The shrunken decomposition of a case, without the estimator."""
    return shrunk_sample(data_of(case), request)


def shrunk_sample(sample, request):
    plan, survey = make_plan(request, sample, sample.n_outputs)
    progress = Progress(enabled=False)
    return fit_shrunk(
        sample, request, plan, survey.family, progress, lambda: run_plan(sample, request, plan, survey, progress)
    )


# The posterior


@examples(40)
@given(case=supports(MODERATE), order=st.integers(1, 3))
def test_the_posterior_is_that_of_the_definition_whichever_matrix_is_factorised(case, order):
    """Against the normal equations written out over all columns; the posterior covariance too."""
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    p, y = case.probability, case.values - case.probability @ case.values
    logs, d = LOGS[: len(prior.orders)], len(rows) * p
    scale = prior.scale(np.exp(logs))
    z = rows * scale
    precision = z.T @ (d[:, None] * z) + np.eye(z.shape[1])
    expected = scale[:, None] * np.linalg.solve(precision, z.T @ (d[:, None] * y))
    by_functions, by_rows = likelihoods(case, prior, rows)
    for likelihood, solve in ((by_functions, solve_by_functions), (by_rows, over_rows)):
        found = solve(likelihood.factor(logs), scale, dense(rows), y, d)
        np.testing.assert_allclose(found.coordinates, expected, atol=1e-9)
        np.testing.assert_allclose(found.residual, y - rows @ expected, atol=1e-9)
        assert found.equations <= 1e-12


@examples(25)
@given(case=supports(MODERATE), order=st.integers(1, 3))
def test_both_likelihoods_agree_and_the_gradient_is_their_derivative(case, order):
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    by_functions, by_rows = likelihoods(case, prior, rows)
    logs = LOGS[: len(prior.orders)]
    first, second = by_functions.at(logs), by_rows.at(logs)
    agree(first, second)
    pulled = Pulled(by_rows, logs + 1.0, 0.5).at(logs)
    assert pulled.loss == pytest.approx(first.loss + len(logs), abs=1e-7)
    np.testing.assert_allclose(pulled.gradient, first.gradient - 2.0, atol=1e-6)
    for k, step in enumerate(1e-4 * np.eye(len(logs))):
        slope = (by_rows.at(logs + step).loss - by_rows.at(logs - step).loss) / 2e-4
        assert first.gradient[k] == pytest.approx(slope, abs=1e-4 * max(1.0, abs(slope)))
    determined = 1.0 - np.diag(np.linalg.inv(by_functions.factor(logs) @ by_functions.factor(logs).T))
    np.testing.assert_allclose(first.effective, np.bincount(by_functions.group, determined), atol=1e-8)


def agree(first, second):
    """Two evaluations of one likelihood."""
    assert first.loss == pytest.approx(second.loss, abs=1e-7)
    for name in ("gradient", "information", "residual", "effective"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-7, rtol=1e-6)


def row_kernels_of(case, index, kernels):
    """The kernels of all subsets at the rows of a case."""
    own = [s for s in range(1, len(index.subsets)) if build_basis(index).tables[s].shape[1]]
    return RowKernels(SubsetKernels(index, own, kernels_of_cells(index, own, kernels)), Phi(index, data_of(case)))


@examples(25)
@given(case=supports(MODERATE), order=st.integers(1, 3), kept=st.booleans())
def test_kernels_of_cells_say_what_columns_written_down_at_the_rows_say(case, order, kept):
    """Ratios of subsets: the likelihood, the covariance of rows and the effects, whether kernels are kept or not."""
    index, kernels, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    found = row_kernels_of(case, index, kernels)
    np.testing.assert_allclose(found.of.energy, prior.energy, atol=1e-9)
    logs = np.linspace(-1.0, 2.0, len(prior.subsets))
    ratio = np.exp(logs) / prior.energy
    by_functions, by_rows = likelihoods(case, prior, rows)
    whole = (rows * ratio[prior.group]) @ rows.T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exanova.shrink.by_cells.KEPT_BYTES", 10**9 if kept else 0)
        patch.setattr("exanova.shrink.by_cells.BATCH_BYTES", 0)
        np.testing.assert_allclose(np.tril(found.covariance(ratio)), np.tril(whole), atol=1e-8)
        for mine, given_ in zip(found.by_order, by_rows.kernels, strict=True):
            np.testing.assert_allclose(mine, given_, atol=1e-8)
    values = np.random.default_rng(0).normal(size=(len(rows), 2))
    expected = prior.on_cells(index, ratio[prior.group, None] * (rows.T @ values))
    np.testing.assert_allclose(found.effects(ratio, values), expected, atol=1e-8)
    by_subset = replace(by_functions, group=prior.group, total=prior.energy, _last={})
    agree(by_subset.at(logs), ByCells(found, by_rows.values, by_rows.noise, prior.energy).at(logs))


@examples(20)
@given(case=supports(MODERATE, max_outputs=1))
def test_estimated_traces_are_near_those_computed(case):
    index, kernels, prior, rows = arranged(case, 2)
    if not has_columns(case, prior):
        return
    found, by_rows = row_kernels_of(case, index, kernels), likelihoods(case, prior, rows)[1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(rows), 4000))
    logs = np.zeros(len(prior.subsets))
    exact, near = (
        ByCells(found, by_rows.values, by_rows.noise, prior.energy, 0.0, p).at(logs).effective for p in (None, signs)
    )
    np.testing.assert_allclose(near, exact, atol=0.15 * max(1.0, exact.max()))


@examples(20)
@given(case=supports(MODERATE, max_outputs=1))
def test_leading_functions_are_those_of_the_kernel_and_all_of_them_are_the_kernel(case):
    """A root and all leading functions give the kernel; their sizes are parts of its variance; one kept is in order."""
    index, kernels, prior, _ = arranged(case, 2)
    for s, table in zip(prior.subsets, prior.tables, strict=True):
        (kernel,) = kernels_of_cells(index, [s], kernels)
        expected = table @ table.T
        np.testing.assert_allclose(kernel.dense(), expected, atol=1e-9)
        np.testing.assert_allclose(kernel.diagonal(), np.diag(expected), atol=1e-9)
        for root in (kernel.root(), kernel.leading()):
            np.testing.assert_allclose(root @ root.T, expected, atol=1e-9)
        sizes = kernel.sizes()
        assert (np.diff(sizes) <= 1e-12).all()
        assert kernel.leading(1).shape == (len(table), 1)
        v = np.random.default_rng(0).normal(size=(len(table), 2))
        np.testing.assert_allclose(kernel.apply(v), expected @ v, atol=1e-9)


@examples(25)
@given(case=supports(MODERATE, max_rows=40), order=st.integers(1, 2))
def test_the_search_ends_where_a_general_search_ends(case, order):
    """From several starts: the likelihood is as large, but for what was not worth another step."""
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    likelihood = likelihoods(case, prior, rows)[0]
    found = maximise(likelihood)
    limits = [bounds(likelihood.count)] * likelihood.components

    def loss(logs):
        at = likelihood.at(logs)
        return at.loss, at.gradient

    starts = (np.zeros(len(limits)), np.full(len(limits), 3.0))
    best = min(minimize(loss, start, jac=True, bounds=limits).fun for start in starts)
    assert found.converged
    assert found.evaluation.loss <= best + 0.2


@examples(20)
@given(case=supports(("equal", "counts"), max_outputs=2), order=st.integers(1, 3))
def test_columns_from_moments_are_those_written_down_at_the_rows(case, order):
    """The operator over passes, and the Gram matrix of columns from that of functions."""
    index, _, prior, rows = arranged(case, order)
    if not len(prior.order):
        return
    columns = columns_of(Phi(index, data_of(case)), prior)
    rng = np.random.default_rng(0)
    coordinates, values = rng.normal(size=(rows.shape[1], 2)), rng.normal(size=(len(rows), 2))
    np.testing.assert_allclose(columns.synthesise(coordinates), rows @ coordinates, atol=1e-10)
    np.testing.assert_allclose(columns.analyse(values), rows.T @ values, atol=1e-10)
    basis = build_basis(index)
    functions = np.hstack([basis.table(s)[cells_at(index, case, s)] for s in range(1, len(index.subsets))])
    gamma = functions.T @ (case.probability[:, None] * functions)
    np.testing.assert_allclose(gram_of_columns(gamma, prior), rows.T @ (case.probability[:, None] * rows), atol=1e-10)


def cells_at(index, case, s):
    """(r,) cell of every row in subset number ``s``, found by comparing levels."""
    own = case.rows[:, list(index.subsets[s])]
    return np.array([np.flatnonzero((row == index.codes_of(s).T).all(axis=1))[0] for row in own])


@examples(20)
@given(case=supports(("equal", "counts"), complete=False), order=st.integers(1, 2))
def test_the_whole_fit_is_the_same_by_functions_and_by_rows(case, order):
    request = Request(max_order=order, ordered=case.sizes, shrinkage=True, route="moments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "by_rows", lambda rows, functions: True)
        by_rows = shrunk_arrays(case, request)
        patch.setattr(cost, "by_rows", lambda rows, functions: False)
        by_functions = shrunk_arrays(case, request)
    if by_functions.shrinkage.described == DETERMINED:
        return
    scale = spread(case).max()
    np.testing.assert_allclose(by_functions.values, by_rows.values, atol=1e-6 * scale)
    first, second = by_functions.shrinkage, by_rows.shrinkage
    # Where nothing is left, 1 - h is a small difference of two numbers over functions.
    np.testing.assert_allclose(first.left_out, second.left_out, atol=1e-2 * scale)
    index = by_rows.family
    variances = [s.posterior.cell_variances(index) for s in (first, second)]
    np.testing.assert_allclose(*variances, atol=1e-6 * scale**2)
    blocks = [s.posterior.blocks(index) for s in (first, second)]
    weights = np.random.default_rng(0).normal(size=(index.n_cells, 3))
    for o in range(case.values.shape[1]):
        for one, other in zip(*blocks, strict=True):
            np.testing.assert_allclose(one[o], other[o], atol=1e-6 * scale**2)
        found = [s.posterior.variances(index, o, weights) for s in (first, second)]
        np.testing.assert_allclose(*found, atol=1e-5 * scale**2)
        np.testing.assert_allclose(
            np.diag(first.posterior.covariance(index, o, weights)), found[0], atol=1e-9 * scale**2
        )


@examples(20)
@given(case=supports(("equal", "counts"), max_outputs=1, complete=False), seed=st.integers(0, 99))
def test_the_order_of_rows_and_of_outputs_changes_nothing(case, seed):
    request = Request(max_order=2, ordered=case.sizes, shrinkage=True, route="moments")
    rng = np.random.default_rng(seed)
    other = rng.normal(size=case.values.shape)
    both = case.with_values(np.hstack([case.values, other]))
    order = rng.permutation(len(case.rows))
    moved = replace(both, rows=both.rows[order], weight=both.weight[order], values=both.values[order][:, ::-1])
    first, second = shrunk_arrays(both, request), shrunk_arrays(moved, request)
    alone = shrunk_arrays(case, request)
    if DETERMINED in (first.shrinkage.described, second.shrinkage.described, alone.shrinkage.described):
        return
    scale = spread(both).max()
    np.testing.assert_allclose(first.values, second.values[:, ::-1], atol=1e-7 * scale)
    np.testing.assert_allclose(first.values[:, :1], alone.values, atol=1e-7 * scale)


@examples(20)
@given(case=supports(("counts",), max_outputs=1), order=st.integers(1, 2))
def test_a_row_of_count_two_is_two_rows(case, order):
    """The posterior of rows that are listed twice with half the precision."""
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    y, d = case.values - case.probability @ case.values, len(rows) * case.probability
    logs = LOGS[: len(prior.orders)]
    scale = prior.scale(np.exp(logs))
    once = likelihoods(case, prior, rows)[1]
    twice = ByRows([np.tile(k, (2, 2)) for k in once.kernels], np.tile(y, (2, 1)), np.tile(2.0 / d, 2))
    first = over_rows(once.factor(logs), scale, dense(rows), y, d)
    second = over_rows(twice.factor(logs), scale, dense(np.tile(rows, (2, 1))), np.tile(y, (2, 1)), np.tile(d / 2, 2))
    np.testing.assert_allclose(first.coordinates, second.coordinates, atol=1e-9)


@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=8), st.integers(0, 8))
def test_a_kernel_of_levels_is_centred_and_has_mean_diagonal_one(weights, ordered):
    p = np.array(weights) / np.sum(weights)
    kernel = level_kernel(p, min(ordered, len(p)))
    np.testing.assert_allclose(kernel @ p, 0, atol=1e-12)
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-12)
    assert p @ np.diag(kernel) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9


# The limits


@examples(25)
@given(case=supports(("equal",), max_outputs=1, complete=False), order=st.integers(1, 2))
def test_without_a_residual_to_speak_of_the_fit_is_the_exact_one(case, order):
    """As tau^2 vanishes the posterior mean fits what least squares fits; as it grows, every effect vanishes."""
    _, _, prior, rows = arranged(case, order)
    if not has_columns(case, prior):
        return
    y, p = case.values - case.probability @ case.values, case.probability
    exact = sum(on_rows(fit(case, max_order=order), case.rows).values()) - p @ case.values
    by_functions, by_rows = likelihoods(case, prior, rows)
    for ratio, expected in ((1e8, exact), (1e-12, 0.0 * exact)):
        logs = np.full(len(prior.orders), np.log(ratio))
        scale, d = prior.scale(np.exp(logs)), len(y) * p
        for likelihood, solve in ((by_functions, solve_by_functions), (by_rows, over_rows)):
            found = solve(likelihood.factor(logs), scale, dense(rows), y, d)
            np.testing.assert_allclose(y - found.residual, expected, atol=1e-4 * spread(case).max())


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_more_rows_carry_more_until_the_exact_fit_comes_out(noise):
    """The shrunken fit nears the exact one; without a residual it is the exact one, to the bit."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(3, 4, 4))
    apart = []
    for n in (60, 600, 6000):
        rows = rng.integers(0, 4, (n, 3))
        y = sum(table[k][rows[:, k], rows[:, (k + 1) % 3]] for k in range(3)) + noise * rng.normal(size=n)
        exact = FunctionalANOVA(shrinkage=None, max_order=2).fit(rows, y)
        shrunk = FunctionalANOVA(max_order=2, shrinkage="auto", sampled=True).fit(rows, y)
        if not noise:
            assert DETERMINED in shrunk.certificate_.shrinkage
            np.testing.assert_array_equal(exact.predict(rows), shrunk.predict(rows))
        apart.append(np.mean((exact.predict(rows) - shrunk.predict(rows)) ** 2) / y.var())
    assert noise == 0 or (apart[0] > 30 * apart[2] and apart[2] < 1e-3)


def test_an_additive_model_without_residual_is_not_shrunk_either():
    """No pair varies and nothing is left: a likelihood without a maximum, that must not fail."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (800, 4))
    y = (rows**2).sum(axis=1).astype(float)
    anova = FunctionalANOVA(max_order=2, shrinkage="auto", sampled=True).fit(rows, y)
    assert DETERMINED in anova.certificate_.shrinkage
    constant = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, np.full(800, 3.0))
    assert np.allclose(constant.predict(rows), 3.0)


def test_outputs_that_share_their_ratios_agree_with_those_that_do_not(monkeypatch):
    """Two outputs of the same make: shared ratios are close to their own, and so are the effects."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 5, (700, 4))
    mains, pairs = rng.normal(size=(2, 4, 5)), 0.5 * rng.normal(size=(2, 5, 5))
    y = np.stack(
        [sum(m[k][rows[:, k]] for k in range(4)) + t[rows[:, 0], rows[:, 1]] for m, t in zip(mains, pairs, strict=True)]
    )
    y = (y + 0.5 * rng.normal(size=y.shape)).T
    own = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, y)
    monkeypatch.setattr(cost, "sets_of_ratios", lambda size, outputs: 1)
    shared = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, y)
    assert 0 < np.abs(own.predict(rows) - shared.predict(rows)).max() < 0.1
    np.testing.assert_allclose(own.certificate_.r2_eval, shared.certificate_.r2_eval, atol=0.01)


def test_the_likelihood_finds_the_components_that_made_the_values():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (600, 4))
    codes, p = rows.T, np.full(600, 1 / 600)
    kernels = {i: level_kernel(np.bincount(codes[i], minlength=5) / 600, 0) for i in range(4)}
    own = {i: kernel[np.ix_(codes[i], codes[i])] for i, kernel in kernels.items()}
    between = [sum(own.values()), sum(own[i] * own[k] for i in range(4) for k in range(i))]
    scaled = [b / (p @ np.diag(b)) for b in between]
    true = (4.0, 1.0, 0.25)
    chosen = []
    covariance = sum(v * b for v, b in zip(true, scaled, strict=False))
    for _ in range(20):
        y = rng.multivariate_normal(np.zeros(600), covariance) + 0.5 * rng.normal(size=600)
        found = maximise(ByRows(scaled, (y - y.mean())[:, None], np.ones(600)))
        assert found.converged
        chosen.append([*(np.exp(found.evaluation.logs) * found.evaluation.residual), found.evaluation.residual[0]])
    low, high = np.quantile(chosen, [0.05, 0.95], axis=0)
    assert ((low < true) & (true < high)).all(), (low, high)


def test_a_family_that_was_chosen_is_shrunk_like_any_other():
    rng = np.random.default_rng(5)
    rows = np.unique(rng.integers(0, 4, (90, 4)), axis=0)
    y = rng.normal(size=(len(rows), 1)) + rows[:, :1]
    family = ((), (0,), (1,), (2,), (3,), (0, 1))
    data = Sample(np.ascontiguousarray(rows.T).astype(np.uint8), np.ones(len(rows), dtype=np.int64), (4,) * 4, y, 90)
    found = fit_family(data, Request(shrinkage=True), family, Progress(enabled=False))
    assert found.family.subsets == family
    named = FunctionalANOVA(subsets=[("x0", "x1")], shrinkage="auto", sampled=True).fit(
        pd.DataFrame(rows, columns=["x0", "x1", "x2", "x3"]).astype(str), y[:, 0]
    )
    assert len(named.effects_) == len(family)
    assert sum(found.shrinkage.effective) == pytest.approx(sum(named.certificate_.effective_functions), abs=1e-6)


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
    assert "complete population" in complete.certificate_.shrinkage
    assert complete.certificate_.r2.tolist() == [1.0]
    some = FunctionalANOVA(shrinkage="auto", sampled=False).fit(grid[:7], values[:7])
    assert (
        difference(
            on_rows(some, grid[:7]), on_rows(FunctionalANOVA(shrinkage=None).fit(grid[:7], values[:7]), grid[:7])
        )
        == 0.0
    )
    known = FunctionalANOVA(shrinkage="auto").fit(Support.from_pmf(np.full((2, 2), 0.25)), np.arange(4.0))
    assert "off" in known.certificate_.shrinkage


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
        exact = FunctionalANOVA(shrinkage=None, n_bins=bins).fit(frame[train], y[train].to_numpy())
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


# Budgets and prices


@pytest.mark.parametrize(("n", "levels"), [(2500, 5), (300, 6)])
def test_a_shrunken_fit_holds_no_more_than_was_priced(n, levels):
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(0, levels, (9, n)).astype(np.uint8), axis=1)
    count = np.ones(codes.shape[1], dtype=np.int64)
    data = Sample(codes, count, (levels,) * 9, rng.normal(size=(codes.shape[1], 2)) + codes[:1].T, n)
    request = Request(shrinkage=True)
    shrunk_sample(data, request)  # what is loaded once is not counted
    tracemalloc.start()
    shrunk_sample(data, request)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    plan, survey = make_plan(request, data, 2)
    priced = cost.shrinking(plan.functions, survey.family, load_of(data, 2))
    assert 0.3 * priced < peak < 1.2 * priced
    tight = replace(request, memory_limit=priced // 2)
    assert "memory limit" in why_not(data, tight, plan, survey.family)


# Errors of shrunken effects


def drawn_rows(rng, n, mixed):
    """Rows of four dependent features, and a model with a third order that the fit leaves out."""
    rows = np.stack([rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]) for _ in range(4)], axis=1)
    rows[:, 1] = np.where(rng.random(n) < 0.3, rows[:, 0], rows[:, 1])
    mains, pair, triple = mixed
    y = sum(mains[k][rows[:, k]] for k in range(3)) + pair[rows[:, 0], rows[:, 2]]
    return rows, y + triple[rows[:, 0], rows[:, 1], rows[:, 2]]


def test_errors_of_shrunken_effects_agree_with_each_other():
    """Cells, blocks, all cells and linear statistics, by functions and by rows; and they add up as stated."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(3, 4)), rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 4))
    for n in (40, 400):
        rows, y = drawn_rows(rng, n, mixed)
        anova = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, np.stack([y, rng.normal(size=n)], axis=1))
        anova.errors()
        uncertainty = anova.decomposition_.uncertainty
        engine, index = uncertainty.engine, uncertainty.family
        everything = engine.all_cells
        for o in range(2):
            np.testing.assert_allclose(np.diagonal(everything[o]), engine.stderr[:, o] ** 2, rtol=1e-6, atol=1e-12)
            weights = rng.normal(size=(index.n_cells, 3))
            expected = np.einsum("cf,cd,df->f", weights, everything[o], weights)
            np.testing.assert_allclose(engine.variances(o, weights), expected, rtol=1e-6)
            # Influences are centred there; those of shrunken effects have a mean, which matters by one over the rows.
            np.testing.assert_allclose(engine.smooth_variances(o, weights, RowTerms()), expected, rtol=1 / n)
        for s in range(len(index.subsets)):
            own = index.cells_of(s)
            np.testing.assert_allclose(engine.block(own), everything[:, own, own], rtol=1e-6, atol=1e-12)
        assert (engine.stderr**2 >= engine.by_noise - 1e-12).all()  # what shrinking took away comes on top
        assert np.isfinite(anova.explain(rows[:3], stderr=True).stderr).all()
        assert np.isfinite(anova.importance("l2", stderr=True)["stderr"]).all()


def test_intervals_of_shrunken_effects_cover_those_of_the_population():
    """The population is all cells of four features with a known pmf; cells of thirty rows or more."""
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(3, 4)), 0.5 * rng.normal(size=(4, 4)), 0.3 * rng.normal(size=(4, 4, 4))
    many, values = drawn_rows(rng, 200_000, mixed)
    population = FunctionalANOVA(shrinkage=None, max_order=2).fit(many, values)
    covered, by_posterior = [], []
    for _ in range(60):
        rows, y = drawn_rows(rng, 400, mixed)
        anova = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, y)
        uncertainty = anova.decomposition_.uncertainty
        index, fitted = uncertainty.family, uncertainty.fitted
        posterior = np.sqrt(fitted.posterior.cell_variances(index))[:, 0] * fitted.unit
        for names in anova.effects_:
            effect, true = anova.effects_[names], population.effects_[names]
            place = {tuple(levels): k for k, levels in enumerate(true.levels)}
            target = np.array([true.values[place[tuple(levels)], 0] for levels in effect.levels])
            often = effect.rows >= 30
            away = np.abs(effect.values[:, 0] - target)[often]
            covered.extend(away <= 1.96 * effect.stderr[often, 0])
            own = index.cells_of(index.position[tuple(int(name[1:]) for name in names)])
            by_posterior.extend(away <= 1.96 * posterior[own][often])
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(by_posterior) < 0.9


def test_a_sample_of_a_complete_table_is_shrunk_and_measured_like_any_other():
    """Noisy rows of one column of twenty levels: the grid would take them for all there is."""
    rng = np.random.default_rng(0)
    level = np.concatenate([np.arange(20), rng.integers(0, 20, 60)])[:, None]
    y = rng.normal(size=80)
    anova = FunctionalANOVA(max_order=1, sampled=True).fit(level, y)
    dense = FunctionalANOVA(max_order=1, sampled=True, route="dense").fit(level, y)
    assert "off" not in anova.certificate_.shrinkage
    assert anova.certificate_.r2_eval is not None
    np.testing.assert_allclose(anova.effects_["x0"].values, dense.effects_["x0"].values, atol=1e-9)


# Where rows and functions are both many


@examples(15)
@given(case=supports(("equal", "counts"), complete=False, max_outputs=1))
def test_all_leading_functions_give_the_fit_over_rows(case):
    """With as many leading functions as there are, nothing is left out; with one for each subset it is said."""
    request = Request(max_order=2, ordered=case.sizes, shrinkage=True, route="moments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "by_rows", lambda rows, functions: True)
        by_rows = shrunk_arrays(case, request)
        patch.setattr(cost, "MOST_ROWS", 0)
        patch.setattr("exanova.shrink.ratios.START_FROM", 10**9)
        patch.setattr(cost, "LEADING", (10**6, 10**6))
        leading = shrunk_arrays(case, request)
        patch.setattr(cost, "LEADING", (1, 1))
        few = shrunk_arrays(case, request)
    if not len(by_rows.shrinkage.posterior.parts):
        return
    scale = spread(case).max()
    np.testing.assert_allclose(leading.values, by_rows.values, atol=1e-5 * scale)
    variances = [found.shrinkage.posterior.cell_variances(found.family) for found in (leading, by_rows)]
    np.testing.assert_allclose(*variances, atol=1e-5 * scale**2)
    assert "; only " in few.shrinkage.described
    assert few.shrinkage.posterior.prior.tables[-1].shape[1] == 1


def test_a_search_that_starts_on_some_rows_ends_near_that_on_all(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 5, (1500, 5))
    y = rows[:, 0] * 0.5 + np.sin(rows[:, 1] * rows[:, 2]) + 0.5 * rng.normal(size=1500)
    whole = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, y)
    monkeypatch.setattr("exanova.shrink.prepared.START_ROWS", 700)
    monkeypatch.setattr("exanova.shrink.ratios.START_FROM", 0)
    some = FunctionalANOVA(shrinkage="auto", sampled=True).fit(rows, y)
    change = np.mean((whole.predict(rows) - some.predict(rows)) ** 2) / np.var(y)
    assert 0 < change < 2e-3
    assert some.certificate_.r2_eval[0] == pytest.approx(whole.certificate_.r2_eval[0], abs=0.01)


def test_a_pair_of_many_cells_is_shrunk_with_everything_else():
    """Two features of eighty levels: too many cells for a table of functions; the main effects still come out."""
    rng = np.random.default_rng(6)
    rows = np.stack([rng.integers(0, 80, 4000), rng.integers(0, 80, 4000), rng.integers(0, 3, 4000)], axis=1)
    effect = rng.normal(size=80)
    y = effect[rows[:, 0]] + 0.3 * rows[:, 2] + 0.3 * rng.normal(size=4000)
    anova = FunctionalANOVA(shrinkage="auto", sampled=True, n_bins=None, max_levels=None).fit(rows.astype(str), y)
    assert "off" not in anova.certificate_.shrinkage
    assert "; only 1,20" in anova.certificate_.shrinkage
    found = anova.effects_["x0"]
    true = effect[[int(level) for (level,) in found.levels]]
    assert np.corrcoef(found.values[:, 0], true)[0, 1] > 0.99
    assert anova.certificate_.r2_eval[0] > 0.85
    assert anova.certificate_.orthogonality <= 1e-9
