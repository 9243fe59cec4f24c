"""What is said of a result, field by field, against oracles that share no code with the package.

Ranks are counted in fractions, directions come from correlations that are known exactly, errors and shares from their
definitions on the rows. Orthogonality and reconstruction are measured in test_laws.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, tolerances
from exanova.data.sample import Sample
from exanova.design.family import extend, intercept_family
from exanova.errors import OutsideSupportWarning, UnknownLevelError
from exanova.select.gains import Gains
from exanova.select.screening import _Screen
from exanova.solve import dense, low_orders, moments_route
from exanova.solve.cgls import conjugate_gradients
from exanova.solve.elimination import factorise
from oracles import cells_of, indicators, pure_tables, reduce_rows, up_to
from strategies import ALL_WEIGHTS, MODERATE, Case, examples, fit, on_rows, subset_of, supports

orders = st.sampled_from([None, 1, 2, 3])
routes = st.sampled_from(["dense", "moments"])


# Rank and functions, in fractions


def rows_of(case):
    return [tuple(row) for row in case.rows.tolist()]


def exact_ranks(rows, order):
    """Rank of the functions of at most 0, 1, .., order features on the rows: what each order adds."""
    d = len(rows[0])
    ranks = [len(reduce_rows(indicators(rows, up_to(d, k)), len(rows))[1]) for k in range(min(order, d) + 1)]
    return [ranks[0], *np.diff(ranks).tolist()]


@examples(30)
@given(case=supports(MODERATE, max_rows=14), order=orders, route=routes, ties=st.sampled_from(["share", "first"]))
def test_rank_by_order_is_that_of_indicators_in_fractions(case, order, route, ties):
    anova = fit(case, max_order=order, route=route, ties=ties)
    certificate, rows = anova.certificate_, rows_of(case)
    listed = max(len(names) for names in anova.effects_)
    expected = exact_ranks(rows, listed)
    assert list(certificate.rank_by_order) == expected
    assert certificate.rank == sum(expected)
    assert certificate.saturated == (sum(expected) == len(rows))
    assert certificate.rank_known


@pytest.mark.parametrize("route", ["dense", "moments"])
def test_as_many_functions_as_rows_are_not_everything_if_some_are_redundant(route):
    rows = np.array([(a, b, a) for a in (0, 1) for b in (0, 1)])
    certificate = (
        FunctionalANOVA(shrinkage=None, max_order=1, route=route).fit(rows, np.array([0.0, 1.0, 1.0, 4.0])).certificate_
    )
    assert (certificate.n_functions, certificate.rank, certificate.saturated) == (4, 3, False)
    assert certificate.mse[0] > 0.1


@examples(30)
@given(case=supports(MODERATE, max_rows=14), order=orders, route=routes)
def test_functions_are_counted_subset_by_subset_in_fractions(case, order, route):
    anova = fit(case, max_order=order, route=route)
    p = [Fraction(1, len(case.rows))] * len(case.rows)
    counts = [len(pure_tables(rows_of(case), p, subset_of(names))) for names in anova.effects_]
    assert anova.certificate_.n_functions == sum(counts)
    assert anova.certificate_.unique == (sum(counts) == anova.certificate_.rank)


@examples(20)
@given(case=supports(MODERATE, max_rows=14), order=orders)
def test_the_papers_functions_are_those_that_do_not_vanish(case, order):
    anova = fit(case, max_order=order, basis="paper", ties="first")
    count = 0
    for subset in map(subset_of, anova.effects_):
        cells = cells_of(rows_of(case), subset)
        for z in product(*(range(case.sizes[i] - 1) for i in subset)):
            ends = [(level, case.sizes[i] - 1) for level, i in zip(z, subset, strict=True)]
            count += any(all(c in end for c, end in zip(cell, ends, strict=True)) for cell in cells)
    assert anova.certificate_.n_functions == count


@examples(30)
@given(case=supports(MODERATE, max_rows=14), order=st.sampled_from([1, 2]), route=routes)
def test_first_leaves_nothing_to_a_copy_of_the_first_column(case, order, route):
    twice = replace(case, rows=np.hstack([case.rows, case.rows[:, :1]]))
    effects = fit(twice, max_order=order, route=route, ties="first").effects_
    copy = case.rows.shape[1]
    for names, effect in effects.items():
        if subset_of(names) == (copy,):
            assert np.abs(effect.values).max() <= 1e-12 * max(1.0, np.abs(case.values).max())


def test_columns_are_kept_in_the_order_given_where_rounding_decides():
    rng = np.random.default_rng(0)
    for _ in range(30):
        columns = rng.integers(-2, 3, (9, 4)) @ rng.integers(-1, 2, (4, 8))
        fractions = [[Fraction(int(v)) for v in row] for row in columns]
        _, kept, _ = dense.gram_schmidt(columns.astype(float), 1e-9, np.zeros((9, 0)))
        assert kept.tolist() == reduce_rows(fractions, 8)[1]


# Directions


def nearly_equal_columns(kept, dropped, ties_of_share):
    """Two pairs of binary columns, equal but for light rows: the second column of a pair is a direction of that size.

    Returns rows, weights, and the two squared directions computed from these weights in fractions.
    """
    rows = [(a, a, b, b) for a in (0, 1) for b in (0, 1)]
    light = [(0, 1, 0, 0), (1, 0, 0, 0)], [(0, 0, 0, 1), (0, 0, 1, 0)]
    weight = [1.0] * 4
    for pair, direction in zip(light, (kept, dropped), strict=True):
        rows += pair
        weight += [direction / 2 * (2 if ties_of_share else 1)] * 2
    w = [Fraction(v) for v in weight]
    return np.array(rows), np.array(weight), [_direction(rows, w, i, ties_of_share) for i in (0, 2)]


def _direction(rows, weight, i, shared):
    """1 - rho for singular values of two unit columns, 1 - rho^2 for the pivot of the second one."""

    def mean(f):
        return sum(w * f(row) for w, row in zip(weight, rows, strict=True)) / sum(weight)

    a, b = mean(lambda row: row[i]), mean(lambda row: row[i + 1])
    covariance = mean(lambda row: row[i] * row[i + 1]) - a * b
    squared = covariance**2 / (a * (1 - a) * b * (1 - b))
    return float(1 - squared) / (2 if shared else 1)


@pytest.mark.parametrize("route", ["dense", "moments"])
@pytest.mark.parametrize("ties", ["share", "first"])
def test_conditioning_and_the_largest_dropped_direction_are_those_planted(route, ties):
    """One direction just above the tolerance and one just below: both are reported, and the rank is called unclear."""
    limit = tolerances.rank_of_columns(8, 4) ** 2 if route == "dense" else tolerances.rank_of_gram(5)
    shared = route == "dense" and ties == "share"
    rows, weight, (kept, dropped) = nearly_equal_columns(4 * limit, limit / 3, shared)
    assert dropped < limit < kept
    anova = fit_plain(rows, weight, max_order=1, route=route, ties=ties)
    certificate = anova.certificate_
    assert certificate.rank_by_order == (1, 3)
    assert certificate.conditioning == pytest.approx(1 / kept, rel=0.02)
    assert certificate.largest_dropped == pytest.approx(dropped, rel=0.02)
    assert not certificate.exact
    assert any("rank is not clear-cut" in note for note in certificate.notes)


@pytest.mark.parametrize("route", ["dense", "moments"])
@pytest.mark.parametrize("ties", ["share", "first"])
def test_a_clear_rank_is_not_called_unclear(route, ties):
    rows, weight, (kept, dropped) = nearly_equal_columns(1e-3, 0.0, route == "dense" and ties == "share")
    rows, weight = rows[weight > 0], weight[weight > 0]
    assert dropped == 0
    certificate = fit_plain(rows, weight, max_order=1, route=route, ties=ties).certificate_
    assert certificate.conditioning == pytest.approx(1 / kept, rel=0.02)
    assert certificate.largest_dropped < 1e-14
    assert not any("clear-cut" in note for note in certificate.notes)


def test_orthogonal_functions_have_the_best_conditioning():
    grid = np.array(list(product(range(2), range(3))))
    for route in ("dense", "moments"):
        certificate = FunctionalANOVA(shrinkage=None, route=route).fit(grid, np.arange(6.0)).certificate_
        assert certificate.conditioning == pytest.approx(1.0)
        assert certificate.largest_dropped == 0.0
        assert certificate.unique


def fit_plain(rows, weight, **parameters):
    values = np.arange(float(len(rows)))[:, None] ** 2
    return fit(Case(rows, weight, values, "planted"), **parameters)


@pytest.mark.parametrize("route", ["dense", "moments"])
@pytest.mark.parametrize("ties", ["share", "first"])
def test_redundancy_names_the_lower_orders_that_express_a_subset(route, ties):
    """The third bit is the sum of the others: each pair says what the third feature says alone, and nothing else."""
    rows = np.array([(a, b, (a + b) % 2) for a in (0, 1) for b in (0, 1)])
    certificate = (
        FunctionalANOVA(shrinkage=None, max_order=2, route=route, ties=ties).fit(rows, np.arange(4.0)).certificate_
    )
    found = {r.features: r.shared_with for r in certificate.redundant}
    others = {("x0", "x1"): ("x2",), ("x0", "x2"): ("x1",), ("x1", "x2"): ("x0",)}
    assert found == {pair: (single,) for pair, single in others.items()} | {s: (p,) for p, s in others.items()}


# The fit


@examples(40)
@given(case=supports(ALL_WEIGHTS), order=st.sampled_from([0, 1, 2]), basis=st.sampled_from(["pure", "paper"]))
def test_errors_are_those_of_the_definition_on_the_rows(case, order, basis):
    anova = fit(case, max_order=order, basis=basis)
    p, f = case.probability, case.values
    error = f - sum(on_rows(anova, case.rows).values())
    mse, square = p @ error**2, p @ f**2
    variance = p @ (f - p @ f) ** 2
    certificate = anova.certificate_
    rounding = 1e-13 * max(1.0, np.abs(f).max()) ** 2
    np.testing.assert_allclose(certificate.mse, mse, rtol=1e-9, atol=rounding)
    np.testing.assert_allclose(certificate.relative_mse * square, mse, rtol=1e-9, atol=rounding)
    varies = variance > 1e-20
    np.testing.assert_allclose((1 - certificate.r2[varies]) * variance[varies], mse[varies], rtol=1e-9, atol=rounding)


def test_the_relative_error_is_taken_of_the_square_and_not_of_the_variance():
    rows, values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([10.0, 10.0, 10.0, 14.0])
    certificate = FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, values).certificate_
    np.testing.assert_allclose(certificate.mse, [1.0])
    np.testing.assert_allclose(certificate.relative_mse, [1.0 / 124.0])
    np.testing.assert_allclose(certificate.r2, [1 - 1.0 / 3.0])


@examples(25)
@given(case=supports(MODERATE, max_rows=30), seed=st.integers(0, 2**32 - 1))
def test_the_variance_within_equal_rows_is_that_of_the_definition(case, seed):
    """Every row is given twice with its own value and weight; the mean of the two is decomposed."""
    rng = np.random.default_rng(seed)
    twice, w = np.vstack([case.rows] * 2), rng.uniform(0.5, 2.0, 2 * len(case.rows))
    y = rng.normal(size=(len(twice), 2))
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(twice, y, sample_weight=w)
    first, second = y[: len(case.rows)], y[len(case.rows) :]
    a, b = w[: len(case.rows), None], w[len(case.rows) :, None]
    mean = (a * first + b * second) / (a + b)
    inside = (a * (first - mean) ** 2 + b * (second - mean) ** 2).sum(axis=0) / w.sum()
    np.testing.assert_allclose(anova.certificate_.within_variance, inside, rtol=1e-10)
    np.testing.assert_allclose(anova.predict(case.rows), mean, atol=1e-9)


# Importances


def holed(seed=3):
    """Rows with holes on which the paper's functions have means of their own."""
    rng = np.random.default_rng(seed)
    grid = np.array(list(product(range(2), range(3), range(3))))
    return rng.permutation(grid)[:13], rng


@pytest.mark.parametrize(("basis", "ties"), [("pure", "share"), ("paper", "first")])
def test_variance_shares_are_covariances_with_the_model(basis, ties):
    rows, rng = holed()
    weight, f = rng.integers(1, 5, 13), rng.normal([5.0, -3.0], size=(13, 2))
    anova = FunctionalANOVA(shrinkage=None, max_order=2, basis=basis, ties=ties).fit(rows, f, sample_weight=weight)
    p = weight / weight.sum()
    effects = on_rows(anova, rows)
    means = {subset: p @ values for subset, values in effects.items() if subset}
    assert (max(np.abs(mean).max() for mean in means.values()) > 0.01) == (basis == "paper")
    centred = f - p @ f
    frame = anova.importance("variance", by="subset")
    for (name, output), line in frame.set_index(["subset", "output"]).iterrows():
        values = effects[subset_of(name.split(" x "))]
        k = anova.output_names_.index(output)
        variance = p @ centred[:, k] ** 2
        share = p @ (values[:, k] * centred[:, k]) / variance
        assert line["value"] == pytest.approx(share, abs=1e-12)
        assert line["structural"] == pytest.approx(p @ values[:, k] ** 2 / variance, abs=1e-12)
        assert line["covariance"] == pytest.approx(share - p @ values[:, k] ** 2 / variance, abs=1e-12)
    assert len(frame) == 2 * (len(effects) - 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_mean_absolute_shapley_values_of_more_rows_than_a_chunk(n_jobs):
    """Nine thousand rows are more than two chunks: of one thread two and a part, of two threads one and a part."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 3, (9500, 12)), axis=0)
    assert 8192 < len(rows) < 3 * 4096
    weight = rng.integers(1, 4, len(rows))
    weight[-300:] = 2000  # the last rows weigh most
    y = np.sin(rows @ np.arange(12.0)) + rows[:, 3] * (rows[:, 0] == 1)
    pairs = [("x0", "x3"), ("x1", "x2")]
    anova = FunctionalANOVA(shrinkage=None, subsets=pairs, n_jobs=n_jobs).fit(rows, y, sample_weight=weight)
    parts = anova.components(rows)
    shapley = np.zeros(rows.shape)
    for k, names in enumerate(parts.subsets):
        for i in subset_of(names):
            shapley[:, i] += parts.values[:, k] / len(names)
    expected = (weight / weight.sum()) @ np.abs(shapley)
    frame = anova.importance("shapley").set_index("feature")["value"]
    np.testing.assert_allclose([frame[f"x{i}"] for i in range(12)], expected, rtol=1e-10)


# Refinement: a factor may be rough, the answer is not


def rough(gamma, size, seed=0):
    """The matrix with a symmetric relative error."""
    noise = np.random.default_rng(seed).normal(size=gamma.shape)
    return np.asfortranarray(gamma * (1 + size * (noise + noise.T) / 2))


def test_moments_are_refined_until_the_factor_no_longer_shows():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(40, 12))
    columns /= np.linalg.norm(columns, axis=0)
    gamma, wanted = columns.T @ columns, rng.normal(size=(12, 2))
    mu = gamma @ wanted
    factor = factorise(rough(gamma, 1e-4), [slice(0, 5), slice(5, 12)], "share")
    found, residual, steps = moments_route.refine(factor, lambda c: mu if c is None else mu - gamma @ c)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    assert residual < 1e-14
    assert steps > 1


def test_the_dense_solve_is_refined_until_its_substitution_no_longer_shows():
    rng = np.random.default_rng(2)
    blocks = [np.ones((30, 1)), rng.normal(size=(30, 6)), rng.normal(size=(30, 8))]
    basis, parts = np.zeros((30, 0)), []
    for block in blocks:
        part = dense._add_order(block, basis, "share", None)
        basis = np.hstack([basis, part.u])
        parts.append(replace(part, solve=lambda target, exact=part.solve: exact(target) * (1 + 1e-5)))
    target = rng.normal(size=(30, 2))
    coefficients, residual, steps = dense._refine(parts, target)
    phi = np.hstack(blocks)
    expected = np.linalg.lstsq(phi, target, rcond=None)[0]
    np.testing.assert_allclose(np.vstack(coefficients), expected, rtol=1e-11)
    assert residual < 1e-14
    assert steps > 1


def test_low_orders_of_the_matrix_free_route_are_refined(monkeypatch):
    """Whatever the factor, the residual has no conditional mean given one feature, to the square of its error."""
    x = np.array(list(product(range(3), range(2), range(4))))[:-3]
    y = np.sin(np.arange(len(x)) * 1.7)
    exact = low_orders.factorise
    monkeypatch.setattr(low_orders, "factorise", lambda gamma, *rest: exact(rough(gamma, 1e-6), *rest))
    anova = fit_values(x, y, route="matrix-free")
    left = y - anova.predict(x).ravel()
    for i in range(3):
        means = np.bincount(x[:, i], weights=left) / len(x)
        assert np.abs(means).max() < 1e-9 * np.abs(y).max()


def fit_values(rows, values, **parameters):
    return fit(Case(rows, np.ones(len(rows), dtype=int), values[:, None], "plain"), **parameters)


# Memory


@pytest.mark.parametrize("route", ["dense", "moments", "matrix-free"])
def test_a_fit_of_many_outputs_holds_no_more_than_its_plan_says(route):
    """Few functions and many outputs: what is held beside the work is most of it."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 2, (6000, 14)), axis=0)
    values = rng.normal(size=(len(rows), 60))
    anova = FunctionalANOVA(shrinkage=None, max_order=1, route=route, n_jobs=1)
    anova.fit(rows, values)  # what is loaded once is not part of a fit
    planned = anova.plan(rows, n_outputs=60).memory
    tracemalloc.start()
    try:
        anova.fit(rows, values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert planned / 3 < peak <= 1.2 * planned


# Cells


def test_an_unknown_number_is_no_level_whether_rows_are_few_or_many():
    rows = np.array([[k % 3, k % 2] for k in range(60)])
    anova = FunctionalANOVA(shrinkage=None, max_order=1, handle_unknown="ignore").fit(
        rows, rows[:, 0] - 2.0 * rows[:, 1]
    )
    for count in (1, 5, 59):
        new = rows[:count].copy()
        new[0, 0] = 7
        with pytest.warns(OutsideSupportWarning):
            parts = anova.components(new)
        assert parts.outside.tolist() == [True] + [False] * (count - 1)
        assert parts.values[0, parts.subsets.index(("x0",))] == 0
        with pytest.raises(UnknownLevelError, match="7"):
            anova.set_params(handle_unknown="error").components(new)
        anova.set_params(handle_unknown="ignore")


def test_a_row_behind_an_unseen_prefix_is_outside_every_longer_subset():
    """Key -1 is kept along the chain: cell (1, 1) was never seen, so that (1, 1, c, d) is no cell, whatever c and d."""
    from exanova.design import few, passes

    seen = np.array([row for row in product(range(2), repeat=4) if row[:2] != (1, 1)])
    codes = np.ascontiguousarray(seen.T, dtype=np.uint8)
    family = intercept_family([2] * 4, float(len(seen)))
    for order in range(1, 5):
        family = extend(family, list(combinations(range(4), order)), codes, np.ones(len(seen)))
    new = np.array([*product(range(2), repeat=4), (0, -1, 0, 0)], dtype=np.int32)
    known = [{tuple(row[list(subset)]) for row in seen} for subset in family.subsets]
    observed = [[tuple(row[list(a)]) in cells for row in new] for a, cells in zip(family.subsets, known, strict=True)]
    keys = few.keys_of_subsets(family.layout, np.ascontiguousarray(new.T))
    for s, inside in enumerate(observed):
        assert (passes.cells_of_rows(family.layout, np.ascontiguousarray(new.T), s, new=True) >= 0).tolist() == inside
        prefix = observed[family.position[family.subsets[s][:-1]]] if family.subsets[s] else inside
        assert all(key < 0 for key, before in zip(keys[s], prefix, strict=True) if not before)
        assert all(key >= 0 for key, own in zip(keys[s], inside, strict=True) if own)
    outside = (~np.array(observed)).any(axis=0).tolist()
    for found in (few.outside, passes.outside):
        assert found(family.layout, np.ascontiguousarray(new.T)).tolist() == outside


def test_bases_are_pure_under_weights_of_fifteen_orders_of_magnitude():
    """The closed form of a complete table loses digits there, and the null space stands in for it."""
    from exanova.basis import pure

    rng = np.random.default_rng(0)
    lost = 0
    for sizes in [(4, 5), (5, 5), (3, 3, 3)] * 10:
        codes = np.array(list(product(*map(range, sizes)))).T
        p = 10.0 ** rng.uniform(-15, 0, codes.shape[1])
        root = np.sqrt(p / p.sum())[None]
        limit = tolerances.purity(codes.shape[1])
        lost += pure.largest_margin(codes, sizes, root, pure._closed_form(sizes, root)) > 4 * limit
        basis = pure.pure_tables(codes, sizes, root**2) * root[:, :, None]
        assert pure.largest_margin(codes, sizes, root, basis) <= limit
    assert lost > 3


# Budgets


@pytest.mark.parametrize("weight", [np.arange(1, 19), np.linspace(0.5, 2.0, 18)], ids=["counts", "real"])
@pytest.mark.parametrize(("budget", "pairs"), [(7, 0), (8, 1), (9, 1), (10, 2), (13, 2), (14, 3)])
def test_a_subset_that_meets_the_budget_exactly_is_taken(weight, budget, pairs):
    """Six functions of the mean and the main effects, then pairs of 2, 2 and 4 functions in canonical order."""
    grid = np.array(list(product(range(2), range(3), range(3))))
    anova = FunctionalANOVA(shrinkage=None, max_order=2, selection="canonical", max_terms=budget)
    anova.fit(grid, np.sin(np.arange(18.0)), sample_weight=weight)
    listed = [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    assert [names for names in anova.effects_ if len(names) == 2] == listed[:pairs]
    assert anova.certificate_.rank == (6, 8, 10, 14)[pairs]


@pytest.mark.parametrize(("min_gain", "taken"), [(0.01, True), (0.05, False)])
def test_the_smallest_gain_is_one_per_function(min_gain, taken):
    """A pair of nine functions that explains a third of the variance: about 0.04 each."""
    grid = np.array(list(product(range(4), range(4))))
    main = np.array([-3.0, -1.0, 1.0, 3.0])[grid[:, 0]]
    pair = np.array([-3.0, -1.0, 1.0, 3.0])[grid[:, 0]] * np.array([-3.0, -1.0, 1.0, 3.0])[grid[:, 1]]
    values = main / main.std() + np.sqrt(0.5) * pair / pair.std()
    anova = FunctionalANOVA(shrinkage=None, max_order=2, selection="screen", max_terms=16, min_gain=min_gain).fit(
        grid, values
    )
    assert (("x0", "x1") in anova.effects_) == taken


def test_candidates_are_ranked_by_what_a_function_gains():
    gains = Gains([(0, 1), (0, 2), (1, 2)], np.array([3.0, 4.0, 5.0]), np.array([1, 4, 0]))
    assert gains.best_first().tolist() == [0, 1]


def test_a_triple_is_a_candidate_when_all_its_pairs_or_two_of_them_were_taken():
    state = object.__new__(_Screen)
    state._taken, state._allowed = {(0, 1), (0, 2), (1, 2), (2, 3), (4, 5)}, None
    state._sample = Sample(np.zeros((6, 1), dtype=np.uint8), np.ones(1), (2,) * 6, np.zeros((1, 1)), 1)
    assert state._heirs(3, parts=3) == [(0, 1, 2)]
    assert state._heirs(3, parts=2) == [(0, 1, 2), (0, 2, 3), (1, 2, 3)]
    state._allowed = {(0, 2, 3)}
    assert state._heirs(3, parts=2) == [(0, 2, 3)]


def test_conjugate_gradients_need_no_more_steps_than_there_are_sizes():
    """Eight different curvatures over three orders of magnitude; steepest descent would take thousands of steps."""

    class Diagonal:
        p = np.ones((24, 1))
        size = np.repeat(np.geomspace(0.03, 1.0, 8), 3)[:, None]

        def synthesise(self, c):
            return self.size * c

        def analyse(self, y):
            return self.size * y

    values = np.random.default_rng(5).normal(size=(24, 2))
    found, residual, steps = conjugate_gradients(Diagonal(), values, 500)
    np.testing.assert_allclose(Diagonal.size * found, values, rtol=1e-9)
    assert residual < 1e-13
    assert steps <= 24


def test_the_reference_level_is_the_most_frequent_one():
    """Its indicators are left out, so that those that are kept hold as few rows as can be."""
    from exanova.phi.monomials import reference_levels

    codes = np.array([[0, 1, 1, 2], [1, 1, 0, 1]], dtype=np.uint8)
    weight = np.array([1.0, 1.0, 1.0, 5.0])
    family = extend(intercept_family([3, 2], 8.0), [(0,), (1,)], codes, weight)
    assert reference_levels(family).tolist() == [2, 1]
