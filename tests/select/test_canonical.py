"""The paper's order under a budget, function by function and subset by subset."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import reference
from exanova.design.subsets import close_downward
from exanova.solve.choice import SpanChoice
from oracles import reduce_rows
from selection_cases import ORTHOGONALITY, codes_of, sparse, taken, worst_mean
from strategies import (
    MODERATE,
    Case,
    conditional_means,
    difference,
    examples,
    fit,
    on_rows,
    subset_of,
    supports,
)


def selected(anova):
    return tuple((subset_of(names), tuple(map(int, labels))) for names, labels in anova.paper_functions_)


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
        assert "functions chosen exactly modulo primes (" in anova.certificate_.method


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
