"""The group lasso: its descent, its path, its budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from exanova.design.subsets import close_downward
from exanova.select import lasso
from exanova.select.lasso import GroupProblem, descend
from selection_cases import ORTHOGONALITY, planted, seeds, sparse, taken, worst_mean
from strategies import (
    difference,
    examples,
    fit,
    on_rows,
)


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
