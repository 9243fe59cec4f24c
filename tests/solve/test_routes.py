"""Three routes to the same tables, and the paper's own selection on each of them."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from exanova import FunctionalANOVA, Support, parallel, reference
from exanova.data.sample import Sample
from exanova.errors import InexactWarning, InputError
from exanova.parameters import CHOICES
from exanova.solve.planning import make_plan
from exanova.solve.request import Request
from exanova.solve.routes import ROUTES
from exanova.solve.run import decompose
from exanova.solve.traits import TRAITS, RouteName
from strategies import (
    MODERATE,
    difference,
    examples,
    fit,
    given_means,
    largest,
    on_rows,
    spread,
    subset_of,
    supports,
)

AGREEMENT = 1e-9
HONEST = 1e-7
"""Two routes under extreme weights: closer than this, or one of them says it is not exact."""
orders = st.sampled_from([None, 1, 2, 3])
ties = st.sampled_from(["share", "first"])


def test_every_route_is_named_once_and_says_how_it_solves():
    named = set(get_args(RouteName)) - {"auto"}
    assert named == set(TRAITS) == set(ROUTES) == set(CHOICES["route"]) - {"auto"}


# The same numbers


@examples(50)
@given(case=supports(MODERATE), order=orders, ties=ties)
def test_moments_and_dense_agree(case, order, ties):
    dense = fit(case, max_order=order, ties=ties, route="dense")
    moments = fit(case, max_order=order, ties=ties, route="moments")
    assert difference(on_rows(dense, case.rows), on_rows(moments, case.rows)) <= AGREEMENT
    for name in ("rank", "rank_by_order", "n_functions", "saturated", "unique", "exact"):
        assert getattr(dense.certificate_, name) == getattr(moments.certificate_, name), name
    assert (dense.certificate_.route, moments.certificate_.route) == ("dense", "moments")
    assert dense.certificate_.exact


@examples(40)
@given(case=supports(MODERATE, complete=True))
def test_grid_dense_and_moments_agree_on_a_complete_table(case):
    grid, dense, moments = (fit(case, max_order=None, route=route) for route in ("grid", "dense", "moments"))
    for other in (dense, moments):
        assert list(other.effects_) == list(grid.effects_)
        assert difference(on_rows(grid, case.rows), on_rows(other, case.rows)) <= AGREEMENT
        assert other.certificate_.rank_by_order == grid.certificate_.rank_by_order
        for names in grid.effects_:
            assert grid.effects_[names].levels == other.effects_[names].levels
            np.testing.assert_allclose(grid.effects_[names].probability, other.effects_[names].probability, rtol=1e-13)
    assert grid.certificate_.exact
    assert grid.certificate_.route == "grid"


@examples(60)
@given(case=supports(("extreme",)), order=orders, ties=ties)
def test_under_extreme_weights_routes_agree_or_say_that_they_do_not(case, order, ties):
    dense = fit(case, max_order=order, ties=ties, route="dense")
    assert dense.certificate_.exact, dense.certificate_.notes
    assert dense.certificate_.rank <= len(case.rows)
    others = ["moments"] + (["grid"] if case.is_complete and order is None else [])
    for route in others:
        other = fit(case, max_order=order, ties=ties, route=route)
        apart = difference(on_rows(dense, case.rows), on_rows(other, case.rows))
        assert apart <= HONEST or not other.certificate_.exact


def _too_unequal():
    """A support on which a Gram matrix counts a direction that is not there."""
    rows = np.array([[0, 0, 2], [1, 3, 0], [0, 1, 0], [0, 3, 0], [1, 0, 0], [0, 2, 2], [0, 0, 1]])
    rows = np.vstack([rows, [[0, 0, 0], [1, 0, 2], [1, 2, 1], [1, 2, 0], [1, 1, 1], [0, 3, 1]]])
    weight = [7.7e-4, 7.7e-7, 2.2e-9, 1.6e-3, 1.8e-5, 1.3e-7, 1.0, 7.9e-2, 1e-10, 3.8e-7, 5.2e-5, 1.7e-7, 8.8e-5]
    return rows, np.array(weight), np.arange(13.0) % 5


def test_a_result_that_misses_its_tolerance_warns_and_names_the_remedy():
    """Weights over thirteen orders of magnitude: a Gram matrix cannot tell light directions from redundant ones."""
    rows = np.array([[1, 0, 1], [2, 0, 0], [3, 0, 0], [1, 0, 0], [0, 1, 1], [3, 1, 1]])
    weight = np.array([5.02e-07, 1.09e-10, 1e-17, 6.99e-15, 3.89e-11, 9.87e-05])
    with pytest.warns(InexactWarning, match=r"route='dense'"):
        anova = FunctionalANOVA(shrinkage=None, max_order=2, route="moments").fit(
            rows, np.arange(6.0) ** 2, sample_weight=weight
        )
    assert not anova.certificate_.exact
    assert "NO" in str(anova.certificate_)


@pytest.mark.parametrize("ties", ["share", "first"])
def test_directions_of_probability_1e_10_do_not_raise_the_rank_above_the_rows(ties):
    """Rounding of the lower orders, magnified in the unit vector of a light direction, once counted as a new one."""
    light = np.array([[2, 0], [0, 1], [2, 1], [1, 2]]), np.array([0.21, 1e-10, 4.3e-9, 1.0]), np.arange(4.0)
    for rows, weight, values in (light, _too_unequal()):
        anova = FunctionalANOVA(shrinkage=None, max_order=None, route="dense", ties=ties).fit(
            rows, values, sample_weight=weight
        )
        assert anova.certificate_.rank == len(rows)
        assert anova.certificate_.exact
        np.testing.assert_allclose(anova.predict(rows), values, atol=1e-8)


# The paper's functions


def selected(anova):
    """(A, z) as the reference writes them."""
    return tuple((subset_of(names), tuple(map(int, labels))) for names, labels in anova.paper_functions_)


@examples(60)
@given(case=supports(MODERATE), order=orders, route=st.sampled_from(["dense", "moments"]))
def test_paper_and_first_select_what_algorithm_1_selects(case, order, route):
    anova = fit(case, max_order=order, basis="paper", ties="first", route=route)
    expected = reference.algorithm1(case.rows.T, case.probability, case.sizes, max_order=order)
    assert selected(anova) == expected.selected
    assert anova.certificate_.rank == len(expected.selected)
    c = reference.restricted_solve(expected.Phi, case.probability, case.values)
    effects = reference.effects(expected.selected, expected.Phi, c)
    assert difference(on_rows(anova, case.rows), effects) <= 1e-8


@examples(30)
@given(case=supports(MODERATE, complete=True), ties=ties)
def test_on_a_complete_table_the_two_bases_give_the_same_effects(case, ties):
    pure = fit(case, max_order=None, ties=ties)
    paper = fit(case, max_order=None, ties=ties, basis="paper", route="dense")
    assert difference(on_rows(pure, case.rows), on_rows(paper, case.rows)) <= AGREEMENT
    assert paper.certificate_.orthogonality <= 1e-12


@examples(40)
@given(case=supports(MODERATE, complete=False), order=orders)
def test_shared_the_two_bases_give_the_same_effects_on_any_support(case, order):
    """The span of the paper's functions of A holds W_A, and what it holds beside costs energy and explains nothing."""
    pure, paper = (fit(case, max_order=order, basis=basis) for basis in ("pure", "paper"))
    assert difference(on_rows(pure, case.rows), on_rows(paper, case.rows)) <= AGREEMENT
    assert paper.certificate_.exact


@examples(40)
@given(case=supports(MODERATE, complete=False), order=orders, ties=ties)
def test_both_bases_fit_the_same_part_of_the_model_and_the_certificate_shows_what_is_lost(case, order, ties):
    pure = fit(case, max_order=order, ties=ties)
    paper = fit(case, max_order=order, ties=ties, basis="paper")
    ours, theirs = on_rows(pure, case.rows), on_rows(paper, case.rows)
    scale = max(largest(ours), largest(theirs))
    assert np.abs(sum(ours.values()) - sum(theirs.values())).max() <= 1e-9 * scale
    assert paper.certificate_.rank == pure.certificate_.rank
    means = np.array([given_means(case.rows, case.probability, a, v) for a, v in theirs.items()]).max(axis=0)
    lost = float((means / spread(case)).max())
    assert paper.certificate_.orthogonality == pytest.approx(lost, rel=1e-6, abs=1e-11)


def test_only_the_papers_functions_have_names():
    X = np.array([[0, 0], [0, 1], [1, 0]])
    assert FunctionalANOVA(shrinkage=None).fit(X, [0.0, 1.0, 5.0]).paper_functions_ is None


# The plan, and what does not change a result


@examples(25)
@given(case=supports(), order=orders, route=st.sampled_from(["auto", "dense", "moments"]))
def test_the_plan_made_before_is_the_plan_that_runs(case, order, route):
    anova = FunctionalANOVA(shrinkage=None, max_order=order, route=route, memory_limit="4 GB")
    plan = anova.plan(case.rows, sample_weight=case.weight, n_outputs=case.values.shape[1])
    fitted = fit(case, max_order=order, route=route, memory_limit="4 GB")
    assert (plan.rows, plan.distinct_rows, plan.model_calls) == (len(case.rows),) * 3
    assert plan.functions == sum(plan.functions_by_order)
    assert plan.route in ("grid", "dense", "moments")
    assert fitted.plan_.functions == plan.functions
    assert fitted.certificate_.n_functions <= plan.functions or order is None


def test_the_number_of_threads_does_not_matter():
    """Sums and counts of ours keep every bit (test_moments); BLAS splits its own sums, which moves the last one."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 4, (3000, 9)), axis=0)
    values = rng.normal(size=(len(rows), 2))
    one, two = (FunctionalANOVA(shrinkage=None, route="moments", n_jobs=n).fit(rows, values) for n in (1, 2))
    assert one.certificate_.rank == two.certificate_.rank
    for names in one.effects_:
        np.testing.assert_allclose(one.effects_[names].values, two.effects_[names].values, atol=1e-13)


def test_a_known_distribution_is_the_same_as_its_rows_with_weights():
    pmf = np.array([[0.1, 0.0, 0.2], [0.3, 0.15, 0.25]])
    support = Support.from_pmf(pmf, feature_names=["x0", "x1"])
    rows, values = np.argwhere(pmf > 0), np.array([1.0, -2.0, 0.5, 3.0, 1.5])
    known = FunctionalANOVA(shrinkage=None, max_order=None).fit(support, values)
    weighted = FunctionalANOVA(shrinkage=None, max_order=None).fit(rows, values, sample_weight=pmf[pmf > 0])
    for names in known.effects_:
        np.testing.assert_allclose(known.effects_[names].values, weighted.effects_[names].values, atol=1e-14)


def test_the_grid_is_refused_on_a_table_with_holes_with_the_reason():
    X = np.array([[0, 0], [0, 1], [1, 0]])
    with pytest.raises(InputError, match=r"3 of 4 combinations, with max_order=None.*route='auto'"):
        FunctionalANOVA(shrinkage=None, max_order=None, route="grid").fit(X, np.zeros(3))


@examples(30)
@given(case=supports(MODERATE, complete=False, max_features=4), seed=st.integers(0, 2**32 - 1))
def test_an_explicit_family_is_projected_on_its_own_span(case, seed):
    """The engine takes any family that is closed downward; here one pair and its features."""
    d = case.rows.shape[1]
    assume(d >= 3)
    pair = tuple(sorted(np.random.default_rng(seed).choice(d, 2, replace=False).tolist()))
    assume(all(case.sizes[i] > 1 for i in pair))
    family = ((), (pair[0],), (pair[1],), pair)
    data = Sample(case.rows.T.astype(np.uint8), case.weight, case.sizes, case.values, len(case.rows))
    dense, moments = (decompose(data, Request(subsets=family, route=route)) for route in ("dense", "moments"))
    assert dense.family.subsets == moments.family.subsets == family
    np.testing.assert_allclose(dense.values, moments.values, atol=1e-9 * max(1, np.abs(dense.values).max()))
    alone = fit(case.with_values(case.values), max_order=0)  # the mean is the same in every family
    np.testing.assert_allclose(dense.values[0], alone.intercept_, atol=1e-12)
    plan, survey = make_plan(Request(subsets=family), data)
    assert plan.subsets == len(survey.family.subsets) == 4


def test_more_rows_and_more_functions_take_longer_by_the_plan():
    rng = np.random.default_rng(0)
    wide, long = rng.integers(0, 4, (2000, 12)), rng.integers(0, 4, (8000, 6))
    for route in ("dense", "moments", "matrix-free"):
        fewer, more = (FunctionalANOVA(shrinkage=None, route=route).plan(wide[:, :d]).seconds for d in (6, 12))
        assert 0 < fewer < more
        assert (
            FunctionalANOVA(shrinkage=None, route=route).plan(long).seconds
            > FunctionalANOVA(shrinkage=None, route=route).plan(long[:2000]).seconds
        )
    budgets = [FunctionalANOVA(shrinkage=None, max_terms=k).plan(wide).seconds for k in (100, 400)]
    assert 0 < budgets[0] < budgets[1]
    grid = np.array(list(np.ndindex(3, 3, 3)))
    assert FunctionalANOVA(shrinkage=None, max_order=None).plan(grid).seconds > 0


def test_blas_is_held_to_what_an_outer_block_allows():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    before = threads()
    with parallel.blas_threads(1):
        assert threads() == {1}
        with parallel.blas_threads(64):
            assert threads() == {1}
    assert threads() == before
