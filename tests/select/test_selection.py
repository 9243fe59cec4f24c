"""Choosing the family: gains, screening, the paper's order under a budget, lasso, held-out rows, ridge."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations, pairwise
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, reference
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.design.subsets import close_downward, up_to_order
from exanova.errors import InexactWarning, InputError, MemoryLimitError, OverfitWarning, UnknownLevelError
from exanova.select import gains as pricing
from exanova.select import lasso
from exanova.select.gains import PairScreen, SubsetScreen
from exanova.select.lasso import GroupProblem, descend
from exanova.solve.choice import SpanChoice
from oracles import reduce_rows
from strategies import (
    MODERATE,
    Case,
    conditional_means,
    difference,
    examples,
    fit,
    largest,
    on_rows,
    subset_of,
    supports,
    weights_of,
)

ORTHOGONALITY = 1e-12
seeds = st.integers(0, 2**32 - 1)


def planted(rows=1500, features=8, levels=3, pairs=((0, 3), (2, 5)), triples=(), noise=0.0, kind="equal", seed=0):
    """Rows at random, main effects of every feature, and the interactions that are named."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, levels, (rows, features)), axis=0)
    y = sum(rng.normal(size=levels)[X[:, i]] for i in range(features))
    for subset in (*pairs, *triples):
        table = rng.normal(size=(levels,) * len(subset))
        y = y + 2.0 * table[tuple(X[:, i] for i in subset)]
    y = y + noise * rng.normal(size=len(X))
    return Case(X, weights_of(kind, rng, len(X)), y[:, None], kind)


def taken(anova, order=2):
    """Subsets of an order and higher that a result holds."""
    return {subset_of(names) for names in anova.effects_ if len(names) >= order}


def sparse(kind="equal", features=5, rows=70, seed=2, outputs=1):
    """A support with holes and strong dependence, the values at random."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, features))
    X[:, -1] = np.where(rng.random(rows) < 0.8, X[:, 0], X[:, -1])
    X = np.unique(X, axis=0)
    return Case(X, weights_of(kind, rng, len(X)), rng.normal(size=(len(X), outputs)), kind)


def worst_mean(case, anova):
    effects = on_rows(anova, case.rows)
    means = [conditional_means(case.rows, case.probability, a, values) for a, values in effects.items()]
    return max(float(np.abs(m).max(initial=0.0)) for m in means) / largest(effects)


def codes_of(case):
    return np.ascontiguousarray(case.rows.T).astype(np.uint8)


# Gains


@examples(40)
@given(case=supports(MODERATE, max_features=5, max_levels=4), threads=st.sampled_from([1, 2]))
def test_gains_of_all_pairs_are_those_of_listed_pairs(case, threads):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    pairs = list(combinations(varying, 2))
    assume(pairs)
    codes, weight = codes_of(case), case.weight.astype(float)
    residual = case.values - case.probability @ case.values
    found = PairScreen(codes, case.probability, case.sizes, threads).gains(residual)
    family = build_family(codes, weight, case.sizes, up_to_order(varying, 1))
    listed = SubsetScreen(sample_of(case), threads).gains(family, pairs, residual)
    assert list(found.subsets) == listed.subsets
    np.testing.assert_array_equal(found.functions, listed.functions)
    energy = float((case.probability @ residual**2).sum())
    np.testing.assert_allclose(found.energy, listed.energy, atol=1e-5 * energy)  # sums in single precision


def sample_of(case):
    return Sample(codes_of(case), case.weight, case.sizes, case.values, len(case.rows))


def listed_gains(case, order):
    """What every subset of an order would explain of the values of a case."""
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    codes, weight = codes_of(case), case.weight.astype(float)
    family = build_family(codes, weight, case.sizes, up_to_order(varying, order - 1))
    return SubsetScreen(sample_of(case)).gains(family, list(combinations(varying, order)), case.values)


@examples(30)
@given(case=supports(MODERATE, max_features=4), order=st.integers(2, 3))
def test_a_gain_is_the_energy_of_the_projection_on_the_pure_space(case, order):
    assume(sum(n > 1 for n in case.sizes) >= order)
    gains = listed_gains(case, order)
    for k, subset in enumerate(gains.subsets):
        # The pure part of x_A: fit A and all its parts, and take the effect of A alone.
        alone = Case(case.rows[:, list(subset)], case.weight, case.values, case.kind)
        values = projected(alone)
        energy = float((case.probability @ values**2).sum())
        assert gains.energy[k] == pytest.approx(energy, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("rows", [12, 40, 150])
@pytest.mark.parametrize("kind", MODERATE)
def test_a_subset_of_many_cells_is_priced_without_a_basis(kind, rows, order):
    case = sparse(kind, rows=rows)
    by_basis = listed_gains(case, order)
    with mock.patch.object(pricing, "WIDE", 0):
        by_margins = listed_gains(case, order)
    np.testing.assert_array_equal(by_margins.functions, by_basis.functions)
    energy = float((case.probability @ case.values**2).sum())
    np.testing.assert_allclose(by_margins.energy, by_basis.energy, atol=1e-6 * energy)


def projected(case):
    """(r, m) projection of the values on the functions of all features orthogonal to those of fewer of them."""
    root = np.sqrt(case.probability)[:, None]
    cells, of_row = np.unique(case.rows, axis=0, return_inverse=True)
    of_row = of_row.ravel()
    d = case.rows.shape[1]
    lower = np.hstack([_indicators(case.rows, s) for s in combinations(range(d), d - 1)])
    full = np.equal.outer(of_row, np.arange(len(cells))).astype(float)
    lower, full = root * lower, root * full
    outside = full - lower @ np.linalg.pinv(lower, rcond=1e-10) @ full
    u, s, _ = np.linalg.svd(outside, full_matrices=False)
    space = u[:, s > 1e-8]
    return space @ (space.T @ (root * case.values)) / root


def _indicators(rows, subset):
    _, of_row = np.unique(rows[:, list(subset)], axis=0, return_inverse=True)
    return np.equal.outer(of_row.ravel(), np.arange(of_row.max() + 1)).astype(float)


def test_under_independence_a_gain_is_the_drop_of_the_residual_energy():
    """A complete table with the product of its margins as weights."""
    rng = np.random.default_rng(5)
    grid = np.array(list(np.ndindex(3, 2, 4, 2)))
    margins = [rng.dirichlet(np.full(n, 3.0)) for n in (3, 2, 4, 2)]
    weight = np.prod([m[grid[:, i]] for i, m in enumerate(margins)], axis=0)
    case = Case(grid, weight, rng.normal(size=(len(grid), 2)), "real")
    mains = fit(case, max_order=1)
    left = case.values - mains.predict(grid)
    gains = PairScreen(codes_of(case), case.probability, case.sizes).gains(left)
    before = float((case.probability @ left**2).sum())
    for pair, energy in zip(gains.subsets, gains.energy, strict=True):
        error = case.values - fit(case, subsets=[pair]).predict(grid)
        assert before - float((case.probability @ error**2).sum()) == pytest.approx(energy, abs=1e-5 * before)


def test_the_best_come_first_and_what_costs_nothing_is_left_out():
    case = sparse()
    gains = PairScreen(codes_of(case), case.probability, case.sizes).gains(case.values)
    order = gains.best_first()
    worth = gains.energy[order] / gains.functions[order]
    assert (np.diff(worth) <= 0).all()
    assert set(order) == set(np.flatnonzero((gains.functions > 0) & (gains.energy > 0)))


@pytest.mark.parametrize("kind", MODERATE)
def test_a_pair_has_as_many_functions_as_its_space_has_dimensions(kind):
    for case in (sparse(), planted(kind=kind)):
        screen = PairScreen(codes_of(case), case.probability, case.sizes)
        assert screen.dimensions().tolist() == screen.gains(case.values).functions.tolist()


# Screening


@pytest.mark.parametrize("kind", MODERATE)
def test_planted_pairs_are_found_and_nothing_else_is_taken(kind):
    case = planted(kind=kind)
    anova = fit(case, max_terms=60, selection="screen")
    assert taken(anova) == {(0, 3), (2, 5)}
    assert anova.certificate_.r2[0] > 1 - 1e-10
    assert worst_mean(case, anova) <= ORTHOGONALITY
    assert "min_gain" in anova.selection_.stopped


def test_a_planted_triple_is_found():
    case = planted(pairs=(), triples=((1, 4, 6),), levels=2, features=9)
    anova = fit(case, max_order=3, max_terms=30)
    assert (1, 4, 6) in taken(anova, 3)
    assert anova.certificate_.r2[0] > 1 - 1e-10
    both = planted(pairs=((0, 2), (3, 7)), triples=((1, 4, 6), (2, 5, 7)))
    anova = fit(both, max_order=3, max_terms=150)
    assert {(1, 4, 6), (2, 5, 7)} <= taken(anova, 3)
    assert {(0, 2), (3, 7)} <= taken(anova)
    assert anova.certificate_.r2[0] > 1 - 1e-10
    assert worst_mean(both, anova) <= ORTHOGONALITY


def test_a_triple_is_found_of_which_one_pair_explains_nothing():
    """On a uniform grid of signs: the pair (4, 5) has no effect, and is taken for the sake of the triple alone."""
    grid = np.array(list(np.ndindex((2,) * 6)))
    s = 2.0 * grid - 1.0
    values = s[:, 1] * s[:, 4] + s[:, 1] * s[:, 5] + s[:, 1] * s[:, 4] * s[:, 5]
    anova = fit(Case(grid, np.ones(64, dtype=np.int64), values[:, None], "equal"), max_order=3, max_terms=20)
    assert taken(anova) == {(1, 4), (1, 5), (4, 5), (1, 4, 5)}
    assert anova.certificate_.r2[0] > 1 - 1e-10


def test_a_subset_larger_than_the_part_of_one_round_is_still_taken():
    """Nine functions a pair, and a budget for two of them: a quarter of it holds none."""
    case = planted(levels=4, features=5, rows=900, pairs=((0, 3), (2, 4)))
    anova = fit(case, max_terms=16 + 18)
    assert taken(anova) == {(0, 3), (2, 4)}


def test_what_a_fruitless_order_would_have_had_goes_to_the_order_below():
    """On a uniform grid triples of a sum of pairs gain nothing, and half of the budget was meant for them."""
    everything = tuple(combinations(range(6), 2))
    case = planted(features=6, levels=2, pairs=everything, rows=2000)
    assert case.is_complete
    anova = fit(case, max_order=None, max_terms=7 + 15)
    assert taken(anova) == set(everything)


@examples(30)
@given(
    budget=st.integers(11, 70),
    order=st.sampled_from([1, 2, 3, None]),
    ties=st.sampled_from(["share", "first"]),
    kind=st.sampled_from(MODERATE),
)
def test_the_budget_is_kept_and_the_family_is_closed_downward(budget, order, ties, kind):
    case = sparse(kind)
    anova = fit(case, max_terms=budget, max_order=order, selection="screen", ties=ties, min_gain=0.0)
    assert anova.certificate_.rank <= budget
    found = taken(anova, 0)
    assert set(close_downward(found)) == found
    assert max(map(len, found)) <= (order or 5)
    assert anova.certificate_.orthogonality <= ORTHOGONALITY
    assert worst_mean(case, anova) <= ORTHOGONALITY


@examples(12)
@given(budget=st.integers(15, 70), order=st.sampled_from([2, 3]))
def test_the_result_is_that_of_a_direct_fit_over_what_was_chosen(budget, order):
    case = sparse(outputs=2)
    anova = fit(case, max_terms=budget, max_order=order, min_gain=0.0)
    chosen = taken(anova)
    direct = fit(case, subsets=sorted(chosen))
    assert difference(on_rows(anova, case.rows), on_rows(direct, case.rows)) <= 1e-9
    assert anova.certificate_.rank == direct.certificate_.rank
    np.testing.assert_allclose(anova.certificate_.r2, direct.certificate_.r2, atol=1e-10)


def test_a_threshold_ends_the_screening():
    case = planted(noise=0.3)
    shares = []
    for threshold in (1e-6, 1e-3, 1e-2, 10.0):
        anova = fit(case, max_terms=17 + 60, min_gain=threshold)
        shares.append(len(taken(anova)))
        used_up = threshold == 1e-6
        assert ("min_gain" in anova.selection_.stopped) != used_up
        assert all(r.best_left < threshold for r in anova.selection_.rounds[-1:]) or used_up
    assert shares == sorted(shares, reverse=True)
    assert shares[2:] == [2, 0]


def test_the_threshold_is_per_function():
    """A pair of four functions that explains all there is: a quarter of the variance for each."""
    grid = np.array(list(np.ndindex(3, 3, 3)))
    table = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    case = Case(grid, np.ones(27, dtype=np.int64), table[grid[:, 0], grid[:, 1]][:, None], "equal")
    for min_gain, expected in ((0.24, {(0, 1)}), (0.26, set()), (0.9, set())):
        anova = fit(case, max_terms=20, min_gain=min_gain, selection="screen")
        assert taken(anova) == expected
        assert anova.selection_.rounds[0].best_left == pytest.approx(0.0 if expected else 0.25, abs=1e-6)
        assert (f"min_gain={min_gain:g}" in anova.selection_.stopped) == (not expected or min_gain > 1e-6)


def test_the_report_says_what_was_looked_at_taken_and_left():
    case = planted(pairs=((0, 3),), triples=((1, 4, 6),))
    anova = fit(case, max_order=3, max_terms=120)
    report, rounds = anova.selection_, anova.selection_.rounds
    assert (report.method, report.budget) == ("screen", 120)
    assert rounds[0].looked_at == 28
    for order in (2, 3):
        found = {s for s in taken(anova) if len(s) == order}
        assert sum(r.taken for r in rounds if r.order == order) == len(found)
    assert 1 + 16 + sum(r.functions for r in rounds) == anova.certificate_.n_functions
    assert all(a.rank <= b.rank and a.r2 <= b.r2 + 1e-12 for a, b in pairwise(rounds))
    assert rounds[-1].rank == anova.certificate_.rank
    assert rounds[-1].r2 == pytest.approx(anova.certificate_.r2[0], abs=1e-9)
    assert all(r.taken <= r.looked_at and r.best_left >= 0 for r in rounds)
    lines = str(report).splitlines()
    assert lines[0].startswith("screen, at most 120 functions: ")
    assert len(lines) == 1 + len(rounds)
    assert "28 candidates" in lines[1]
    assert fit(case, max_order=2).selection_ is None


def test_screening_takes_only_what_interactions_permit():
    case = planted()
    permitted = [(0, 3), (1, 2), (4, 5), (5, 6)]
    anova = fit(case, subsets=permitted, max_terms=60, min_gain=0.0)
    assert (0, 3) in taken(anova)
    assert taken(anova) <= set(permitted)
    assert anova.selection_.rounds[0].looked_at == 4
    triples = planted(pairs=(), triples=((1, 4, 6), (0, 2, 3)))
    anova = fit(triples, subsets=[(1, 4, 6)], max_terms=80)
    assert taken(anova) == {(1, 4), (1, 6), (4, 6), (1, 4, 6)}


def test_threads_and_the_order_of_rows_change_nothing():
    case = sparse("counts", rows=120)
    one = fit(case, max_terms=50, n_jobs=1)
    two = fit(case, max_terms=50, n_jobs=2)
    order = np.random.default_rng(0).permutation(len(case.rows))
    shuffled = fit(Case(case.rows[order], case.weight[order], case.values[order], "counts"), max_terms=50)
    assert taken(one) == taken(two) == taken(shuffled)
    np.testing.assert_array_equal(one.predict(case.rows), two.predict(case.rows))
    np.testing.assert_allclose(one.predict(case.rows), shuffled.predict(case.rows), atol=1e-10)


# The paper's order


def selected(anova):
    return tuple((subset_of(names), tuple(map(int, labels))) for names, labels in anova.selected_)


@examples(40)
@given(
    kind=st.sampled_from(["equal", "counts"]),
    seed=st.integers(0, 30),
    budget=st.integers(11, 75),
    order=st.sampled_from([2, 3, None]),
)
def test_first_come_first_served_is_algorithm_1_function_by_function(kind, seed, budget, order):
    case = sparse(kind, seed=seed)
    assume(case.sizes == (3,) * 5)
    anova = fit(case, basis="paper", ties="first", selection="canonical", max_terms=budget, max_order=order)
    expected = reference.algorithm1(case.rows.T, case.probability, case.sizes, max_rank=budget, max_order=order)
    assert selected(anova) == expected.selected
    assert anova.certificate_.rank == len(expected.selected)
    c = reference.restricted_solve(expected.Phi, case.probability, case.values)
    effects = reference.effects(expected.selected, expected.Phi, c)
    assert difference(on_rows(anova, case.rows), effects) <= 1e-7


def test_the_budget_ends_in_the_middle_of_a_subset_and_of_order_three():
    case = sparse(features=4, rows=200)
    middles, orders = set(), set()
    for budget in range(9, 45):
        anova = fit(case, basis="paper", ties="first", selection="canonical", max_terms=budget, max_order=None)
        found = selected(anova)
        assert len(found) == min(budget, len(case.rows))
        last = found[-1][0]
        orders.add(len(last))
        middles.add(sum(s == last for s, _ in found) < 2 ** len(last))
        assert found == reference.algorithm1(case.rows.T, case.probability, case.sizes, max_rank=budget).selected
    assert middles == {True, False}
    assert orders >= {1, 2, 3}


def test_many_equal_columns_are_passed_over():
    """Subsets that add nothing are forgotten; what comes later is still chosen as Algorithm 1 does."""
    case = sparse(features=4, rows=120)
    rows = np.hstack([case.rows, case.rows[:, :2], case.rows[:, :1]])
    again = Case(rows, case.weight, case.values, "equal")
    for budget in (16, 30, 50):
        anova = fit(again, basis="paper", ties="first", selection="canonical", max_terms=budget, max_order=3)
        expected = reference.algorithm1(rows.T, again.probability, again.sizes, max_rank=budget, max_order=3)
        assert selected(anova) == expected.selected


@examples(25)
@given(kind=st.sampled_from(MODERATE), budget=st.integers(11, 75), order=st.sampled_from([2, 3, None]))
def test_shared_whole_subsets_are_kept_within_the_budget(kind, budget, order):
    case = sparse(kind)
    anova = fit(case, selection="canonical", max_terms=budget, max_order=order)
    assert anova.certificate_.rank <= budget
    found = [subset_of(names) for names in anova.effects_]
    assert found == sorted(found, key=lambda s: (len(s), s))
    assert worst_mean(case, anova) <= ORTHOGONALITY
    residual = case.values - anova.predict(case.rows)
    error = conditional_means(case.rows, case.probability, found[-1], residual)
    assert np.abs(error).max() <= 1e-9  # what is left is orthogonal to what was taken


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_run_of_whole_subsets_within_the_budget_is_kept(seed):
    """Against ranks in fractions, at every budget: also at those a subset meets exactly."""
    case = sparse(features=4, rows=40, seed=seed)
    assert case.sizes == (3,) * 4
    subsets = [s for k in (1, 2, 3, 4) for s in combinations(range(4), k)]
    ranks = [rank_of_indicators(case.rows, subsets[: k + 1]) for k in range(len(subsets))]
    for budget in range(ranks[3], ranks[-1] + 1):
        anova = fit(case, selection="canonical", max_terms=budget, max_order=None)
        inside = [s for s, rank, before in zip(subsets, ranks, [1, *ranks], strict=False) if before < rank <= budget]
        assert taken(anova) == {s for s in close_downward(inside) if len(s) > 1}
        rank = max(rank for rank in ranks if rank <= budget)
        rounds = anova.selection_.rounds
        assert anova.certificate_.rank == rank == (rounds[-1].rank if rounds else ranks[3])
        assert ranks[3] + sum(r.functions for r in rounds) == rank
        assert sum(r.taken for r in rounds) == sum(len(s) > 1 for s in inside)


SCALES = {
    "halves": lambda w: w * 0.5,
    "a third": lambda w: w / 3.0,
    "squares": lambda w: w.astype(float) ** 2,
    "times two primes": lambda w: w * (1_048_573 * 1_048_571),
    "some rows times two primes": lambda w: np.where(np.arange(len(w)) % 3, w, w * (1_048_573 * 1_048_571)),
    "sixteen orders of magnitude": lambda w: w * 10.0 ** np.linspace(-16, 0, len(w)),
}


@pytest.mark.parametrize("change", SCALES)
@examples(8)
@given(seed=st.integers(0, 30), budget=st.integers(11, 75), order=st.sampled_from([2, 3, None]))
def test_the_family_in_canonical_order_depends_on_the_support_alone(change, seed, budget, order):
    case = sparse("counts", seed=seed)
    assume(case.sizes == (3,) * 5)
    other = Case(case.rows, SCALES[change](case.weight), case.values, "real")
    first, second = (fit(c, selection="canonical", max_terms=budget, max_order=order) for c in (case, other))
    assert taken(first) == taken(second)


@pytest.mark.parametrize("selection", ["canonical", "screen"])
@pytest.mark.parametrize("factor", [0.5, 2.0**-40, 1_048_573 * 1_048_571])
@examples(6)
@given(seed=st.integers(0, 30), budget=st.integers(15, 75))
def test_the_papers_functions_do_not_depend_on_the_scale_of_the_weights(selection, factor, seed, budget):
    case = sparse("counts", seed=seed)
    assume(case.sizes == (3,) * 5)
    scaled = Case(case.rows, case.weight * factor, case.values, "counts")
    parameters = {"basis": "paper", "ties": "first", "selection": selection, "max_terms": budget, "max_order": 3}
    first, second = fit(case, **parameters), fit(scaled, **parameters)
    assert selected(first) == selected(second)
    for anova in (first, second):
        assert "functions chosen exactly modulo primes (error probability below" in anova.certificate_.method


def test_what_is_chosen_in_floating_point_says_so():
    anova = fit(sparse(), ties="first", selection="canonical", max_terms=30)
    assert anova.certificate_.method.endswith("functions chosen in floating point")


def test_functions_that_rounding_alone_keeps_apart_are_not_solved_for():
    """Probabilities of independent features, rounded: exact arithmetic sees dependences that miss by the last digit."""
    methods = set()
    for seed in range(1, 13):
        rng = np.random.default_rng(seed)
        rows = np.unique(rng.integers(0, 4, (20, 2)), axis=0)
        margins = rng.dirichlet(np.full(4, 3.0), size=2)
        weight = np.prod([margins[i][rows[:, i]] for i in range(2)], axis=0)
        case = Case(rows, weight, rng.normal(size=(len(rows), 1)), "real")
        for choices in ({"route": "moments"}, {"selection": "canonical", "max_terms": 60}):
            anova = fit(case, basis="paper", ties="first", max_order=None, **choices)
            assert np.abs(np.ravel(anova.predict(rows)) - case.values[:, 0]).max() < 1e-9
            methods.add(anova.certificate_.method.split(", ")[1])
    assert {m.split(" (")[0] for m in methods} == {
        "functions chosen exactly modulo primes",
        "functions chosen in floating point",
    }
    assert any("by the rounding of the weights alone" in m for m in methods)


def test_a_ridge_penalises_the_papers_functions_of_unit_norm():
    case = sparse(rows=150)
    parameters = {"basis": "paper", "ties": "first", "selection": "canonical", "max_terms": 40}
    anova = fit(case, ridge=0.5, **parameters)
    assert selected(anova) == selected(fit(case, **parameters))
    phi = reference.evaluate(case.rows.T, case.probability, selected(anova))
    phi /= np.sqrt(case.probability @ phi**2)
    gram = reference.gram(phi, case.probability) + 0.5 * np.diag(np.arange(40) > 0)
    expected = phi @ np.linalg.solve(gram, reference.projections(phi, case.probability, case.values))
    np.testing.assert_allclose(anova.predict(case.rows).reshape(expected.shape), expected, atol=1e-9)


@pytest.mark.parametrize("choices", [{}, {"basis": "paper", "ties": "first"}])
def test_a_larger_budget_explains_no_less(choices):
    case = sparse(rows=150)
    found = [
        fit(case, selection="canonical", max_terms=budget, max_order=3, **choices).certificate_
        for budget in (11, 20, 33, 34, 47, 60, 80, 200)
    ]
    assert all(a.r2[0] <= b.r2[0] + 1e-10 and a.rank <= b.rank for a, b in pairwise(found))
    assert found[-1].r2[0] > found[0].r2[0]


@examples(40)
@given(case=supports(max_features=5, max_rows=30), order=st.integers(2, 4), data=st.data())
def test_what_a_subset_adds_to_the_span_is_exact(case, order, data):
    """Against the rank, in fractions, of the indicators of all cells of the subsets so far."""
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    assume(len(varying) >= 2)
    span = SpanChoice(codes_of(case), case.sizes)
    span.add([(i,) for i in varying])
    seen, added = [(i,) for i in varying], {}
    assert span.rank == rank_of_indicators(case.rows, seen)
    for k in range(2, min(order, len(varying)) + 1):
        subsets = list(combinations(varying, k))
        cut = data.draw(st.integers(0, len(subsets)))
        for batch in filter(None, (subsets[:cut], subsets[cut:])):
            for subset in batch:
                before = rank_of_indicators(case.rows, seen)
                seen.append(subset)
                added[subset] = rank_of_indicators(case.rows, seen) - before
            assert span.add_useful(batch) == sum(added[subset] > 0 for subset in batch)
    gained = dict(zip(span.family.subsets, span.rank_of_subset().tolist(), strict=True))
    assert {subset: count for subset, count in gained.items() if len(subset) > 1 and count} == {
        subset: count for subset, count in added.items() if count
    }
    assert span.rank == rank_of_indicators(case.rows, seen)


def rank_of_indicators(rows, subsets):
    """Rank of the indicators of the cells of these subsets, in fractions."""
    columns = [[Fraction(1)] * len(rows)]
    for subset in subsets:
        cells = [tuple(row[list(subset)]) for row in rows]
        columns += [[Fraction(cell == other) for other in cells] for cell in sorted(set(cells))]
    return len(reduce_rows(columns, len(rows))[1])


# Lasso


@st.composite
def group_problems(draw):
    rng = np.random.default_rng(draw(seeds))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    q, m = sum(sizes), draw(st.integers(1, 3))
    columns = rng.normal(size=(q + 8, q))
    columns /= np.linalg.norm(columns, axis=0)
    target = columns.T @ rng.normal(size=(q + 8, m))
    return GroupProblem(columns.T @ columns, target, np.concatenate([[0], np.cumsum(sizes)]))


@examples(50)
@given(problem=group_problems(), share=st.floats(0.02, 0.95))
def test_the_descent_ends_where_the_optimality_conditions_hold(problem, share):
    """Gradient of an active group: against its direction, of length penalty * root; inactive: no longer than that."""
    groups = [slice(a, b) for a, b in zip(problem.start, problem.start[1:], strict=False)]
    top = max(np.linalg.norm(problem.target[g]) / np.sqrt(g.stop - g.start) for g in groups)
    penalty = share * top
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lasso, "ITERATIONS", 20_000)
        patch.setattr(lasso, "CHANGE", 1e-13)
        c, converged = descend(problem, penalty, np.zeros_like(problem.target))
    assert converged
    gradient = problem.gram @ c - problem.target
    for g in groups:
        limit = penalty * np.sqrt(g.stop - g.start)
        length = np.linalg.norm(c[g])
        if length > 0:
            np.testing.assert_allclose(gradient[g], -limit * c[g] / length, atol=1e-6 * top)
        else:
            assert np.linalg.norm(gradient[g]) <= limit + 1e-9 * top
    assert not descend(problem, 1.0001 * top, np.zeros_like(c))[0].any()


def test_the_step_is_short_enough_when_all_functions_oppose_each_other():
    """The sum of the functions nearly vanishes: a start at equal coefficients would miss the largest eigenvalue."""
    for q in (2, 40):
        gram = (1 + 1 / (q - 1)) * np.eye(q) - np.ones((q, q)) / (q - 1) + 1e-3 * np.eye(q)
        target = np.random.default_rng(q).normal(size=(q, 1))
        c, _ = descend(GroupProblem(gram, target, np.arange(q + 1)), 0.1, np.zeros((q, 1)))
        assert np.abs(c).max() < 1e3 * np.abs(target).max()
        assert np.abs(gram @ c - target).max() < 0.2


def test_the_path_takes_planted_pairs_alone_under_noise_and_the_refit_is_exact():
    case = planted(noise=0.2)
    anova = fit(case, selection="lasso")
    chosen = taken(anova)
    assert chosen == {(0, 3), (2, 5)}
    assert taken(fit(planted(), selection="lasso")) == {(0, 3), (2, 5)}
    assert taken(fit(case, selection="lasso", max_terms=17 + 8)) == {(0, 3), (2, 5)}
    assert anova.certificate_.exact
    assert anova.selection_.method == "lasso"
    direct = fit(case, subsets=sorted(chosen))
    assert difference(on_rows(anova, case.rows), on_rows(direct, case.rows)) <= 1e-9
    assert worst_mean(case, anova) <= ORTHOGONALITY
    again = fit(case, selection="lasso")
    assert taken(again) == chosen


def test_a_path_that_did_not_converge_says_so(monkeypatch):
    case = planted(noise=0.2)
    assert "converge" not in fit(case, selection="lasso").selection_.stopped
    monkeypatch.setattr(lasso, "ITERATIONS", 2)
    anova = fit(case, selection="lasso")
    left = anova.selection_.rounds
    assert f"of {len(left)} penalties did not converge in 2 iterations" in str(anova.selection_)


@examples(20)
@example(budget=20, order=2, seed=4, rows=40)
@example(budget=24, order=2, seed=4, rows=40)
@given(
    budget=st.integers(11, 60),
    order=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 5),
    rows=st.sampled_from([40, 120]),
)
def test_lasso_keeps_to_the_budget_and_the_order(budget, order, seed, rows):
    """Also where the rows the path was fitted on lack cells that all rows together have."""
    case = sparse(rows=rows, seed=seed)
    assume(case.sizes == (3,) * 5)
    anova = fit(case, selection="lasso", max_terms=budget, max_order=order, random_state=seed)
    assert anova.certificate_.rank <= anova.certificate_.n_functions <= budget
    assert max(map(len, taken(anova, 0))) <= order
    assert set(close_downward(taken(anova, 0))) == taken(anova, 0)
    assert worst_mean(case, anova) <= ORTHOGONALITY


def test_lasso_takes_only_what_interactions_permit():
    anova = fit(planted(), selection="lasso", subsets=[(0, 3), (1, 2)])
    assert (0, 3) in taken(anova) <= {(0, 3), (1, 2)}


def test_lasso_of_all_orders_of_many_features_lists_no_more_than_it_looks_at():
    case = planted(features=30, levels=2, rows=300)
    anova = fit(case, selection="lasso", max_order=None, max_terms=60)
    assert {(0, 3), (2, 5)} <= taken(anova)


# Held-out rows


def table_of(case):
    return pd.DataFrame(case.rows, columns=[f"x{i}" for i in range(case.rows.shape[1])])


def r2(values, predicted):
    return 1 - ((values - predicted) ** 2).sum(axis=0) / ((values - values.mean(axis=0)) ** 2).sum(axis=0)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"max_terms": 60, "selection": "canonical"}])
def test_fidelity_on_rows_of_ones_own(choices):
    train, test = planted(noise=0.5), planted(noise=0.5, seed=0, rows=2500)
    anova = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(
        train.rows, train.values, eval_set=(test.rows, test.values)
    )
    predicted = anova.predict(test.rows).reshape(test.values.shape)
    np.testing.assert_allclose(anova.certificate_.r2_eval, r2(test.values, predicted), atol=1e-12)
    np.testing.assert_allclose(anova.certificate_.mse_eval, ((test.values - predicted) ** 2).mean(axis=0), atol=1e-12)
    assert "on held-out rows" in str(anova.certificate_)
    plain = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(train.rows, train.values)
    np.testing.assert_array_equal(anova.predict(test.rows), plain.predict(test.rows))
    assert "leaving out" in plain.certificate_.eval_method
    assert "held-out" not in str(plain.certificate_)


def test_a_model_is_called_on_the_rows_to_judge_by():
    case = planted()
    seen = []

    def model(rows):
        seen.append(len(rows))
        return np.asarray(rows, dtype=float).sum(axis=1)

    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(case.rows, model, eval_set=(case.rows[:50], model))
    assert seen[-1] == 50
    np.testing.assert_allclose(anova.certificate_.r2_eval, 1.0)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"selection": "lasso"}])
def test_a_share_of_the_rows_is_held_out(choices):
    case = planted(noise=1.0)
    first, again, other = (
        FunctionalANOVA(**{"shrinkage": None, **choices}, random_state=seed).fit(case.rows, case.values, eval_set=0.25)
        for seed in (0, 0, 1)
    )
    certificate = first.certificate_
    assert certificate.r2_eval[0] < certificate.r2[0]  # noise is fitted, and not found again
    np.testing.assert_array_equal(certificate.r2_eval, again.certificate_.r2_eval)
    assert certificate.r2_eval[0] != other.certificate_.r2_eval[0]
    assert first.plan_.route  # a plan is still there
    noiseless = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(case.rows, planted().values, eval_set=0.25)
    assert noiseless.certificate_.r2_eval[0] > 0.999


def test_rows_to_judge_by_may_hold_cells_that_never_occurred_but_no_unknown_level():
    X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["c", "v"]])
    new = np.array([["b", "v"], ["c", "u"], ["a", "u"]])
    anova = FunctionalANOVA(shrinkage=None).fit(
        X, np.array([0.0, 1.0, 2.0, 5.0]), eval_set=(new, np.array([1.0, 2.0, 0.5]))
    )
    assert np.isfinite(anova.certificate_.r2_eval).all()
    unknown = np.array([["z", "u"], ["a", "u"]])
    with pytest.raises(UnknownLevelError, match="z"):
        FunctionalANOVA(shrinkage=None).fit(X, np.arange(4.0), eval_set=(unknown, np.zeros(2)))
    anova = FunctionalANOVA(shrinkage=None, handle_unknown="ignore").fit(
        X, np.arange(4.0), eval_set=(unknown, np.array([1.0, 2.0]))
    )
    assert np.isfinite(anova.certificate_.r2_eval).all()


def test_every_level_keeps_a_row_to_be_fitted_on():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.arange(40) // 2, rng.integers(0, 2, 40)])
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, rng.normal(size=40), eval_set=0.5)
    assert np.isfinite(anova.certificate_.r2_eval).all()


@pytest.mark.parametrize("eval_set", [0.0, 1.0, -0.5, 2, True, (1, 2, 3), [1, 2]])
def test_what_is_nothing_to_judge_by(eval_set):
    with pytest.raises(InputError, match=r"expected a pair \(rows, model\), a path of rows, or a fraction"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0, 1], [1, 0]]), np.zeros(2), eval_set=eval_set)


def test_a_text_is_a_path_of_held_out_rows():
    with pytest.raises(InputError, match=r"the format of '0\.2' cannot be determined from its suffix"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0, 1], [1, 0]]), np.zeros(2), eval_set="0.2")


def test_a_share_that_holds_out_no_row():
    X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    for choices, given_share in (({}, 0.2), ({"selection": "lasso"}, None)):
        with pytest.raises(
            InputError, match=r"a fraction of 0\.2 of 3 distinct rows holds out no row.*larger fraction"
        ):
            FunctionalANOVA(**{"shrinkage": None, **choices}).fit(X, np.arange(3.0), eval_set=given_share)


# Ridge


def test_a_ridge_is_marked_and_shrinks_the_effects_to_the_mean():
    case = planted(noise=0.5)
    plain = fit(case)
    energies = []
    for ridge in (1e-3, 1.0, 1e6):
        with pytest.warns(InexactWarning, match="ridge="):
            anova = FunctionalANOVA(shrinkage=None, ridge=ridge).fit(case.rows, case.values)
        certificate = anova.certificate_
        assert not certificate.exact
        assert certificate.ridge == ridge
        assert any("ridge=" in note and "ridge=0 is exact" in note for note in certificate.notes)
        assert certificate.orthogonality <= ORTHOGONALITY
        energies.append(sum(float((v**2).mean()) for s, v in on_rows(anova, case.rows).items() if s))
        assert certificate.r2[0] <= plain.certificate_.r2[0]
    assert energies == sorted(energies, reverse=True)
    np.testing.assert_allclose(anova.predict(case.rows), float(case.values.mean()), atol=1e-4)
    np.testing.assert_allclose(anova.intercept_, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"max_terms": 60, "selection": "canonical"}])
def test_no_ridge_is_the_same_as_none_and_a_small_one_is_close(choices):
    case = planted(noise=0.5)
    plain, zero = fit(case, **choices), fit(case, ridge=0.0, **choices)
    np.testing.assert_array_equal(plain.predict(case.rows), zero.predict(case.rows))
    assert zero.certificate_.exact
    little = fit(case, ridge=1e-9, **choices)
    np.testing.assert_allclose(little.predict(case.rows), plain.predict(case.rows), atol=1e-6)
    assert not little.certificate_.exact


def test_the_ridge_solution_is_that_of_the_penalised_normal_equations():
    """Under independence Gamma is the identity: every coefficient is divided by 1 + ridge."""
    grid = np.array(list(np.ndindex(2, 3, 2)))
    values = np.random.default_rng(4).normal(size=(len(grid), 1))
    case = Case(grid, np.ones(len(grid), dtype=np.int64), values, "equal")
    plain, ridge = fit(case, route="moments"), fit(case, route="moments", ridge=0.25)
    effects, shrunk = on_rows(plain, grid), on_rows(ridge, grid)
    for subset, found in shrunk.items():
        np.testing.assert_allclose(found, effects[subset] / (1.25 if subset else 1.0), atol=1e-12)


# Bad input


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"max_terms": 16}, r"max_terms=16 is below the 17 functions.*give at least 17, or merge levels"),
        ({"max_terms": 16, "selection": "canonical"}, r"give at least 17"),
        ({"max_terms": 5, "selection": "lasso"}, r"give at least 17"),
        ({"selection": "screen"}, r"selection='screen' needs a budget; give max_terms="),
        ({"selection": "canonical"}, r"selection='canonical' needs a budget; give max_terms="),
        ({"selection": "best"}, r"selection='best' was given; expected one of .*screen.*canonical.*lasso"),
        ({"max_terms": 0}, r"max_terms=0 was given; expected a whole number"),
        ({"max_terms": 50.0}, r"max_terms=50\.0 was given"),
        ({"max_terms": True}, r"max_terms=True was given"),
        ({"min_gain": -1}, r"min_gain=-1 was given; expected a number of at least 0"),
        ({"ridge": -0.1}, r"ridge=-0\.1 was given"),
        ({"ridge": np.inf}, r"ridge=inf was given"),
        ({"ridge": "much"}, r"ridge='much' was given"),
    ],
)
def test_budgets_and_choices_that_cannot_be(choices, message):
    case = planted(rows=100)
    with pytest.raises(InputError, match=message):
        FunctionalANOVA(**{"shrinkage": None, **choices}).fit(case.rows, case.values)


@pytest.mark.parametrize("selection", ["screen", "canonical", "lasso"])
def test_a_memory_limit_nothing_fits_in(selection):
    case = planted(rows=100)
    with pytest.raises(
        MemoryLimitError,
        match=r"the memory limit is 10 kB\. What would fit: a smaller max_terms=, or a larger memory_limit=",
    ):
        FunctionalANOVA(shrinkage=None, selection=selection, max_terms=60, memory_limit="10 kB").fit(
            case.rows, case.values
        )


@pytest.mark.parametrize(
    ("selection", "rows"),
    [(selection, rows) for selection in ("screen", "canonical") for rows in (1, 2, 7)] + [("lasso", 1), ("lasso", 60)],
)
def test_a_budget_beyond_everything_works(selection, rows):
    case = planted(rows=rows, features=3, levels=2, pairs=((0, 1),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OverfitWarning)
        anova = FunctionalANOVA(shrinkage=None, selection=selection, max_terms=500, max_order=None).fit(
            case.rows, case.values
        )
    assert anova.certificate_.rank <= len(case.rows)
    assert anova.certificate_.exact
    assert anova.selection_.method == selection
