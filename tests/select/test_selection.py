"""Screening under a budget, and budgets that are refused."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import combinations, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.design.subsets import close_downward
from exanova.errors import InputError, MemoryLimitError, OverfitWarning
from exanova.phi.operator import Phi
from exanova.select.growing_fit import GrowingFit
from selection_cases import ORTHOGONALITY, planted, sparse, taken, worst_mean
from strategies import (
    MODERATE,
    Case,
    difference,
    examples,
    fit,
    on_rows,
)


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


def test_a_round_that_could_take_nothing_is_not_made() -> None:
    """Its part of the budget went to a subset of an earlier round: candidates would be ranked again for nothing."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, n, 600) for n in (32, 32, 3, 2, 2)])
    y = (X[:, 0] > 15) + (X[:, 2] == 1) * X[:, 3] + rng.normal(size=600)
    rounds = FunctionalANOVA(max_terms=120, shrinkage=None, sampled=False).fit(X, y).selection_.rounds
    assert any(done.taken for done in rounds)
    assert all(first.taken for first in rounds[:-1]), "every round but the last took something"


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


# Bad input


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"max_terms": 16}, r"max_terms=16 is below the 17 functions.*give at least 17, .*n_bins=, or merge"),
        ({"max_terms": 16, "selection": "canonical"}, r"give at least 17"),
        ({"max_terms": 5, "selection": "lasso"}, r"give at least 17"),
        ({"selection": "screen"}, r"selection='screen' needs a budget; give max_terms="),
        ({"selection": "canonical"}, r"selection='canonical' needs a budget; give max_terms="),
        ({"selection": "best"}, r"selection='best' was given; expected .*screen.*canonical.*lasso"),
        ({"max_terms": 0}, r"max_terms=0 was given; expected a whole number"),
        ({"max_terms": 50.0}, r"max_terms=50\.0 was given"),
        ({"max_terms": True}, r"max_terms=True was given"),
        ({"min_gain": -1}, r"min_gain=-1 was given; expected a finite number of at least 0"),
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


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("make", [partial(planted, noise=0.5), partial(sparse, "counts"), partial(sparse, "real")])
def test_a_family_is_eliminated_again_with_the_gram_matrix_that_has_grown(make, order, monkeypatch):
    """After a small direction was dropped in the order of arrival; nothing is counted a second time."""
    case, choices = make(), {"max_terms": 60, "max_order": order, "route": "moments"}
    expected = fit(case, **choices)
    monkeypatch.setattr(GrowingFit, "dropped", 1.0)
    monkeypatch.setattr(Phi, "common_rows", mock.Mock(side_effect=AssertionError("counted again")))
    found = fit(case, **choices)
    assert "growing" in expected.certificate_.method
    assert "growing" not in found.certificate_.method
    assert found.effects_.keys() == expected.effects_.keys()
    for name, effect in expected.effects_.items():
        np.testing.assert_allclose(found.effects_[name].values, effect.values, atol=1e-9)
    assert found.certificate_.rank == expected.certificate_.rank
