"""The completion route: against orthogonal factorisations, exact ranks and brute force, on holes of every kind."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, Support
from exanova.basis.functions import build_basis, order_slices
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.errors import InputError
from exanova.phi.operator import Phi
from exanova.solve.choice import span_ranks
from exanova.solve.completing import completion_of
from exanova.solve.least_energy import shortenings
from exanova.solve.low_cells import LowCells
from exanova.solve.request import Request
from exanova.solve.run import decompose
from strategies import MODERATE, Case, difference, examples, fit, on_rows, supports

AGREEMENT = 1e-9


def sample_of(case):
    return Sample(case.rows.T.astype(np.uint8), case.weight, case.sizes, case.values, len(case.rows))


def redundant(anova):
    return {r.features: set(r.shared_with) for r in anova.certificate_.redundant}


def holed(shape, missing, seed, spread=0.0):
    """Probabilities of a table with cells missing at random, and values."""
    rng = np.random.default_rng(seed)
    p = 10.0 ** rng.uniform(-spread, 0, shape) * (rng.random(shape) >= missing)
    return Support.from_pmf(p / p.sum()), rng.normal(size=int((p > 0).sum()))


def structured(kind, seed):
    """Rows that a rule leaves out, not chance."""
    rng = np.random.default_rng(seed)
    rows = np.array(list(product(*map(range, rng.integers(2, 4, 4)))))
    chosen = {
        "ordered": rows[:, 0] <= rows[:, 1],
        "parity": rows.sum(axis=1) % 2 == 0,
        "one or the other": (rows[:, 0] == 0) | (rows[:, 1] == 0),
        "copied": np.ones(len(rows), dtype=bool),
        "corner": ~(rows[:, :3] == 0).all(axis=1),
    }[kind]
    rows = rows[chosen & (rng.random(len(rows)) < 0.9)]
    rows = np.column_stack([rows, rows[:, 0]]) if kind == "copied" else rows
    rows = np.column_stack([np.unique(column, return_inverse=True)[1].ravel() for column in rows.T])
    return Case(rows, rng.integers(1, 9, len(rows)), rng.normal(size=(len(rows), 2)), "counts")


# The same numbers


@examples(80)
@given(case=supports(MODERATE, max_features=5), every=st.booleans())
def test_completion_and_dense_agree(case, every):
    order = None if every else case.rows.shape[1]
    dense = fit(case, max_order=order, route="dense")
    found = fit(case, max_order=order, route="completion")
    assert difference(on_rows(dense, case.rows), on_rows(found, case.rows)) <= AGREEMENT
    assert found.certificate_.exact == dense.certificate_.exact
    assert found.certificate_.route == "completion"
    if found.certificate_.n_functions == dense.certificate_.n_functions:  # dense stops once everything is explained
        assert found.certificate_.rank_by_order == dense.certificate_.rank_by_order
        assert redundant(found) == redundant(dense)


@pytest.mark.parametrize("kind", ["ordered", "parity", "one or the other", "copied", "corner"])
@pytest.mark.parametrize("seed", range(4))
def test_holes_by_a_rule_share_over_several_orders(kind, seed):
    case = structured(kind, seed)
    order = case.rows.shape[1]
    dense, found = (fit(case, max_order=order, route=route) for route in ("dense", "completion"))
    assert difference(on_rows(dense, case.rows), on_rows(found, case.rows)) <= AGREEMENT
    assert found.certificate_.rank_by_order == dense.certificate_.rank_by_order
    assert redundant(found) == redundant(dense)


@pytest.mark.parametrize("spread", [0.0, 3.0, 6.0])
@pytest.mark.parametrize("missing", [0.3, 0.6])
def test_uneven_weights_cost_no_digits(missing, spread):
    support, values = holed((3,) * 5, missing, 1, spread)
    dense, found = (
        FunctionalANOVA(shrinkage=None, max_order=None, route=route).fit(support, values)
        for route in ("dense", "completion")
    )
    assert found.certificate_.exact
    assert found.certificate_.rank_by_order == dense.certificate_.rank_by_order
    largest = np.abs(dense.decomposition_.values).max()
    assert np.abs(found.decomposition_.values - dense.decomposition_.values).max() <= 1e-10 * largest


@examples(40)
@given(case=supports(MODERATE, max_features=5))
def test_the_rank_of_every_order_is_the_exact_one(case):
    sample = sample_of(case)
    found = decompose(sample, Request(max_order=None, route="completion"))
    assert found.solution.rank_by_order == span_ranks(sample.codes, sample.sizes, found.family.subsets)
    assert found.solution.rank == sample.n_rows


@examples(40)
@given(case=supports(MODERATE, max_features=4))
def test_dependences_vanish_at_the_rows_and_none_saves_energy(case):
    """The oracle: all dependences, from singular values of the functions at the rows."""
    sample = sample_of(case)
    found = decompose(sample, Request(max_order=None, route="completion"))
    at_rows = Phi(found.family, sample).functions(found.basis)
    null = found.solution.null
    assert null.shape[1] == at_rows.shape[1] - sample.n_rows
    if not null.shape[1]:
        return
    assert np.abs(at_rows @ null).max() <= 1e-9 * np.abs(null).max()
    dependences = np.linalg.svd(at_rows * np.sqrt(sample.probability)[:, None])[2][sample.n_rows :].T
    for functions in reversed(order_slices(found.family, found.basis)):
        inside = dependences[functions]
        u, sizes, right = np.linalg.svd(inside, full_matrices=True)
        rank = int((sizes > 1e-8).sum())
        across = u[:, :rank].T @ found.solution.coefficients[functions]
        assert np.abs(across).max(initial=0.0) <= 1e-9 * max(1.0, np.abs(found.solution.coefficients).max())
        dependences = dependences @ right[rank:].T


def test_an_order_that_has_enough_functions_but_not_all_is_followed_by_another():
    """A copied column makes functions of order two outnumber the rows of a complete table of three."""
    rows = np.array(list(product((0, 1), repeat=3)))
    rows = np.column_stack([rows, rows[:, 0]])
    anova = FunctionalANOVA(shrinkage=None, sampled=False, max_order=None, route="completion").fit(
        rows, np.sin(np.arange(8.0))
    )
    certificate = anova.certificate_
    assert certificate.rank_by_order == (1, 3, 3, 1)
    assert certificate.n_functions > 8
    assert certificate.exact


# What it is made of


@examples(60)
@given(case=supports(MODERATE, max_features=4), order=st.integers(0, 4), seed=st.integers(0, 2**32 - 1))
def test_values_on_low_cells_determine_a_function_of_low_order(case, order, seed):
    """The oracle: a random sum of tables, on low cells and at all cells of the complete table."""
    rng, sizes = np.random.default_rng(seed), case.sizes
    subsets = [s for k in range(min(order, len(sizes)) + 1) for s in combinations(range(len(sizes)), k)]
    subsets = [s for s in subsets if all(sizes[i] > 1 for i in s)]
    codes = case.rows.T.astype(np.uint8)
    low = LowCells.of(build_family(codes, np.ones(codes.shape[1]), sizes, subsets), codes)
    cells = np.array(list(product(*map(range, sizes)))).T
    tables = {s: rng.normal(size=[sizes[i] for i in s]) for s in subsets}
    values = sum(tables[s][tuple(cells[list(s)])] for s in subsets) * np.ones(cells.shape[1])
    numbers = low.numbers(low.shifted_rows(cells))
    on_low = np.zeros((len(low), 1))
    on_low[numbers[numbers >= 0], 0] = values[numbers >= 0]
    assert (np.bincount(numbers[numbers >= 0], minlength=len(low)) == 1).all()
    again = low.at(low.to_tables(on_low), low.shifted_rows(cells))
    np.testing.assert_allclose(again[:, 0], values, atol=1e-10)


@examples(60)
@given(case=supports(MODERATE, max_features=4))
def test_a_completed_table_has_the_values_of_the_rows(case):
    sample = sample_of(case)
    family = build_family(sample.codes, sample.mass, sample.sizes, decompose_subsets(sample))
    completion = completion_of(LowCells.of(family, sample.codes), sample.codes)
    assert completion.suffices
    levels = completion.low.shifted_rows(sample.codes)
    tables = completion.low.to_tables(completion.completed(sample.values))
    np.testing.assert_allclose(completion.low.at(tables, levels), sample.values, atol=1e-9)
    vanishing = completion.vanishing()
    assert vanishing.shape[1] == len(completion.low) - sample.n_rows
    at_rows = completion.low.at(completion.low.to_tables(vanishing), levels)
    assert np.abs(at_rows).max(initial=0.0) <= 1e-9


def decompose_subsets(sample):
    """All subsets of the features that vary."""
    d = len(sample.varying)
    return [s for k in range(d + 1) for s in combinations(sample.varying, k)]


@pytest.mark.parametrize("rounding", [1e-15, 1e-12])
def test_functions_that_vanish_in_their_own_cells_are_no_dependences(rounding):
    """Columns of rounding, however large, among those that span the dependences do not count: their number is known."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=(12, 3))
    true[:10, 2] = true[:10, :2] @ [1.0, -1.0]
    columns = np.column_stack([rounding * rng.normal(size=(12, 2)), true, true @ [[1.0], [2.0], [3.0]]])
    steps = shortenings(columns, [slice(0, 10), slice(10, 12)], 3)
    assert [step.rank for step in steps] == [2, 1]
    c = rng.normal(size=(12, 1))
    for step in steps:
        c = step.shortened(c)
    assert np.abs((true[:, 2] - true[:, 0] + true[:, 1])[10:] @ c[10:]).max() <= 1e-9
    assert all(step.remaining(c) <= 1e-12 for step in steps)


# The plan


def test_a_large_table_with_holes_is_completed_with_a_tenth_of_the_memory():
    support, values = holed((3,) * 7, 0.3, 0)
    plans = {
        route: FunctionalANOVA(shrinkage=None, max_order=None, route=route).plan(support)
        for route in ("auto", "moments")
    }
    assert plans["auto"].route == "completion"
    assert plans["auto"].memory < plans["moments"].memory
    assert plans["auto"].seconds < plans["moments"].seconds
    assert plans["auto"].functions_by_order == plans["moments"].functions_by_order
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(support, values)
    assert anova.certificate_.route == "completion"
    assert anova.certificate_.exact


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"max_order": 1}, r"route='completion' needs all orders \(max_order=None\).*max_order=1"),
        ({"subsets": [("x0",)]}, "needs all orders"),
        ({"ties": "first"}, "ties='share'"),
        ({"basis": "paper"}, "basis='pure'"),
        ({"ridge": 0.1}, "ridge=0"),
    ],
)
def test_it_is_refused_where_it_does_not_apply_with_the_reason(asked, message):
    rows = np.array(list(product(range(3), repeat=3)))[:20]
    with pytest.raises(InputError, match=message):
        FunctionalANOVA(**{"shrinkage": None, "max_order": None, "route": "completion", **asked}).fit(rows, rows[:, 0])


def test_functions_that_cannot_be_all_are_never_said_to_suffice():
    """Fewer functions than rows; and as many, whose equations are singular."""
    rows = np.array(list(product(range(2), repeat=3)))
    for subsets in ([(), (0,), (1,), (2,)], [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]):
        family = build_family(rows.T.astype(np.uint8), np.ones(8), (2, 2, 2), subsets)
        assert completion_of(LowCells.of(family, rows.T), rows.T.astype(np.uint8)).suffices is False
    copied = np.column_stack([rows, rows[:, 0]])
    subsets = [s for k in range(3) for s in combinations(range(4), k)]
    family = build_family(copied.T.astype(np.uint8), np.ones(8), (2, 2, 2, 2), subsets)
    assert build_basis(family).n_functions > 8
    assert completion_of(LowCells.of(family, copied.T), copied.T.astype(np.uint8)).suffices is None
