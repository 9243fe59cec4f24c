"""Laws of the literal transcription of the paper, and of the exact oracle that other tests compare with."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova import reference
from exanova.errors import InputError
from oracles import (
    cell_masses,
    cells_of,
    exact_decomposition,
    indicators,
    moebius_independent,
    project,
    pseudo_inverse_decomposition,
    reduce_rows,
    up_to,
    walsh,
    weighted_margins,
)

few = settings(max_examples=60, deadline=None)


def renumbered(rows):
    """The same rows with the levels that occur numbered 0, 1, .."""
    ranks = [{level: k for k, level in enumerate(sorted(set(column)))} for column in zip(*rows, strict=True)]
    return [tuple(rank[level] for rank, level in zip(ranks, row, strict=True)) for row in rows]


@st.composite
def supports(draw, complete=False):
    """Rows, exact probabilities and exact values: up to three features of three levels, up to eight rows."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    grid = list(product(*map(range, sizes)))
    rows = grid if complete else renumbered(draw(st.lists(st.sampled_from(grid), unique=True, min_size=1, max_size=8)))
    several = {"min_size": len(rows), "max_size": len(rows)}
    weights = draw(st.lists(st.integers(1, 6), **several))
    p = [Fraction(w, sum(weights)) for w in weights]
    f = [Fraction(v) for v in draw(st.lists(st.integers(-5, 5), **several))]
    return rows, p, f


def as_arrays(rows, p, f):
    codes = np.array(rows).T.copy()
    return codes, np.array(p, dtype=float), codes.max(axis=1) + 1, np.array(f, dtype=float)


def on_rows(table, rows, subset):
    return np.array([float(table[project(row, subset)]) for row in rows])


def proper_subsets(subset):
    return [b for order in range(len(subset)) for b in combinations(subset, order)]


# The index space and the functions


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_there_are_as_many_functions_as_cells_of_the_grid(sizes):
    index = list(reference.functions(sizes))
    assert len(set(index)) == len(index) == prod(sizes)
    assert index == sorted(index, key=lambda pair: (len(pair[0]), pair[0], pair[1]))


@few
@given(case=supports(complete=True))
def test_phi_on_a_complete_table_is_orthogonal_to_every_function_of_fewer_features(case):
    rows, exact_p, _ = case
    codes, p, sizes, _ = as_arrays(*case)
    for subset, z in reference.functions(sizes):
        values = reference.phi(codes, p, subset, z)
        for smaller in proper_subsets(subset):
            for cell in cell_masses(rows, exact_p, smaller):
                inside = np.array([project(row, smaller) == cell for row in rows])
                assert abs((p * values) @ inside) < 1e-13


@given(weights=st.tuples(*[st.integers(1, 9)] * 3))
def test_phi_with_a_missing_corner_has_mean_minus_one(weights):
    p = np.array(weights) / sum(weights)
    codes = np.array([[0, 0, 1], [0, 1, 0]])
    assert reference.phi(codes, p, (0, 1), (0, 0)) @ p == pytest.approx(-1.0, abs=1e-14)


def test_phi_on_uniform_bits_is_the_parity_function_times_a_power_of_two():
    codes, p = np.indices((2, 2, 2)).reshape(3, -1), np.full(8, 1 / 8)
    for subset, z in reference.functions([2, 2, 2]):
        parity = (-1.0) ** codes[list(subset)].sum(axis=0)
        np.testing.assert_array_equal(reference.phi(codes, p, subset, z), 2 ** len(subset) * parity)


def test_gamma_is_block_diagonal_when_the_inputs_are_independent():
    codes = np.indices((3, 2, 4)).reshape(3, -1)
    marginals = [np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]), np.array([0.1, 0.2, 0.3, 0.4])]
    p = prod((m[c] for m, c in zip(marginals, codes, strict=True)), start=np.ones(24))
    index = list(reference.functions([3, 2, 4]))
    gamma = reference.gram(reference.evaluate(codes, p, index), p)
    same = np.array([[a == b for b, _ in index] for a, _ in index])
    assert np.abs(gamma[~same]).max() < 1e-13 * np.abs(gamma).max()
    assert np.linalg.matrix_rank(gamma) == 24


def test_cell_probabilities_survive_more_cells_than_an_integer_can_number():
    rng = np.random.default_rng(0)
    codes = np.vstack([rng.permutation(20) for _ in range(30)])
    p = rng.dirichlet(np.ones(20))
    np.testing.assert_allclose(reference.cell_probabilities(codes, p, tuple(range(30))), p, rtol=1e-15)


def test_the_last_level_is_refused_by_name():
    with pytest.raises(InputError, match="Level 1 was given for feature 0"):
        reference.phi(np.array([[0, 1]]), np.array([0.5, 0.5]), (0,), (1,))


# Algorithm 1


def exact_greedy(rows, p):
    """Algorithm 1 with rank checks in rational arithmetic."""
    sizes = [max(column) + 1 for column in zip(*rows, strict=True)]
    kept, basis = [], []
    for subset, z in reference.functions(sizes):
        masses = cell_masses(rows, p, subset)
        values = []
        for row in rows:
            signs = [(row[i] == level) - (row[i] == sizes[i] - 1) for i, level in zip(subset, z, strict=True)]
            values.append(prod(signs) / masses[project(row, subset)])
        grown = reduce_rows([*basis, values], len(rows))[0]
        if len(grown) > len(basis):
            kept, basis = [*kept, (subset, z)], grown
    return tuple(kept)


@few
@given(case=supports())
def test_algorithm1_selects_what_exact_rank_checks_select(case):
    codes, p, sizes, _ = as_arrays(*case)
    basis = reference.algorithm1(codes, p, sizes)
    assert basis.selected == exact_greedy(case[0], case[1])
    assert basis.stopped == "full rank"


@few
@given(case=supports())
def test_algorithm1_spans_everything_and_reconstructs(case):
    codes, p, sizes, f = as_arrays(*case)
    basis = reference.algorithm1(codes, p, sizes)
    assert basis.Phi.shape == (len(p), len(p))
    np.testing.assert_array_equal(basis.Phi, reference.evaluate(codes, p, basis.selected))
    c = reference.restricted_solve(basis.Phi, p, np.column_stack([f, 2 - f]))
    parts = reference.effects(basis.selected, basis.Phi, c)
    np.testing.assert_allclose(sum(parts.values()), np.column_stack([f, 2 - f]), atol=1e-8)


def test_the_analytical_case_of_the_paper():
    free = np.indices((3, 3, 3)).reshape(3, -1)
    codes = np.vstack([free[0], free[1], free[1], free[2], np.zeros(27, dtype=int)])
    p = np.full(27, 1 / 27)
    f = np.sign(codes[0] - codes[1] + 0.5 * codes[2])
    basis = reference.algorithm1(codes, p, [3, 3, 3, 3, 1])
    parts = reference.effects(basis.selected, basis.Phi, reference.restricted_solve(basis.Phi, p, f))
    norms = {subset: p @ values**2 for subset, values in parts.items()}
    expected = {(): 1 / 9, (0,): 14 / 27, (1,): 2 / 27, (0, 1): 2 / 27}
    assert set(norms) == {(), (0,), (1,), (3,), (0, 1), (0, 3), (1, 3), (0, 1, 3)}
    assert norms == pytest.approx({subset: expected.get(subset, 0.0) for subset in norms}, abs=1e-14)


def test_algorithm1_stops_at_its_budgets():
    codes, p = np.indices((3, 3, 3)).reshape(3, -1), np.full(27, 1 / 27)
    sizes = [3, 3, 3]
    full = reference.algorithm1(codes, p, sizes)
    few_functions = reference.algorithm1(codes, p, sizes, max_rank=5)
    main_effects = reference.algorithm1(codes, p, sizes, max_order=1)
    no_time = reference.algorithm1(codes, p, sizes, max_seconds=0.0)
    assert (few_functions.selected, few_functions.stopped) == (full.selected[:5], "max_rank")
    assert (main_effects.selected, main_effects.stopped) == (full.selected[:7], "no more candidates")
    assert (no_time.selected, no_time.tried, no_time.stopped) == ((), 0, "max_seconds")
    assert no_time.Phi.shape == (27, 0)


@pytest.mark.parametrize(
    ("codes", "p", "sizes", "message"),
    [
        ([[0, 1]], [0.5, 0.5], [2, 2], "2 sizes"),
        ([[0, 1]], [1.0], [2], r"p of shape \(1,\)"),
        ([[0, 1]], [1.0, 0.0], [2], "Drop the rows of probability zero"),
        ([[0, 2]], [0.5, 0.5], [3], "Renumber the levels"),
    ],
)
def test_contradictory_supports_are_refused(codes, p, sizes, message):
    with pytest.raises(InputError, match=message):
        reference.algorithm1(np.array(codes), np.array(p), sizes)


def test_dependent_functions_and_incomplete_grids_are_refused():
    with pytest.raises(InputError, match="linearly dependent"):
        reference.restricted_solve(np.ones((3, 2)), np.array([0.5, 0.25, 0.25]), np.ones(3))
    codes = np.array([[0, 0, 1], [0, 1, 0]])
    with pytest.raises(InputError, match="3 rows but the grid"):
        reference.full_support_solve(codes, np.full(3, 1 / 3), [2, 2], np.ones(3))


# The rectangular case


@few
@given(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_full_support_solve_is_the_moebius_formula_under_independence(sizes, seed):
    rng = np.random.default_rng(seed)
    marginals = [rng.uniform(0.2, 1.0, n) for n in sizes]
    marginals = [m / m.sum() for m in marginals]
    codes = np.indices(sizes).reshape(len(sizes), -1)
    p = prod((m[c] for m, c in zip(marginals, codes, strict=True)), start=np.ones(codes.shape[1]))
    f = rng.normal(size=sizes)
    tables = moebius_independent(marginals, f)
    for subset, values in reference.effects(*reference.full_support_solve(codes, p, sizes, f.ravel())).items():
        np.testing.assert_allclose(values, np.broadcast_to(tables[subset], sizes).ravel(), atol=1e-10)


def test_full_support_solve_on_uniform_bits_is_the_walsh_transform():
    f = np.random.default_rng(1).normal(size=(2, 2, 2, 2))
    codes = np.indices(f.shape).reshape(4, -1)
    expansion = reference.full_support_solve(codes, np.full(16, 1 / 16), [2] * 4, f.ravel())
    scaled = {subset: c * 2 ** len(subset) for (subset, _), c in zip(expansion.selected, expansion.c, strict=True)}
    assert scaled == pytest.approx(walsh(f), abs=1e-13)


@few
@given(case=supports(complete=True))
def test_full_support_solve_is_the_exact_decomposition_on_a_complete_table(case):
    codes, p, sizes, f = as_arrays(*case)
    tables = exact_decomposition(*case)
    parts = reference.effects(*reference.full_support_solve(codes, p, sizes, f))
    for subset, table in tables.items():
        expected = on_rows(table, case[0], subset)
        np.testing.assert_allclose(parts.get(subset, 0.0) + 0 * expected, expected, atol=1e-9)


# The exact oracle's own laws


@few
@given(case=supports(), max_order=st.sampled_from([None, 1, 2]))
def test_exact_effects_are_pure_to_the_last_digit(case, max_order):
    rows, p, _ = case
    for subset, table in exact_decomposition(*case, max_order).items():
        for margin in weighted_margins(cell_masses(rows, p, subset), subset):
            assert sum(w * v for w, v in zip(margin, table.values(), strict=True)) == 0


@few
@given(case=supports())
def test_exact_effects_add_up_to_the_last_digit(case):
    rows, p, f = case
    tables = exact_decomposition(*case)
    total = [sum(table[project(row, subset)] for subset, table in tables.items()) for row in rows]
    assert total == f
    assert tables[()][()] == sum(a * b for a, b in zip(p, f, strict=True))


@few
@given(case=supports(), max_order=st.integers(0, 2))
def test_what_a_truncated_decomposition_leaves_is_orthogonal_to_its_span(case, max_order):
    rows, p, f = case
    tables = exact_decomposition(*case, max_order)
    order = min(max_order, len(rows[0]))
    assert set(tables) == set(reference.canonical_subsets(len(rows[0]), max_order))
    total = [sum(table[project(row, subset)] for subset, table in tables.items()) for row in rows]
    for indicator in indicators(rows, up_to(len(rows[0]), order)):
        assert sum(i * w * (a - b) for i, w, a, b in zip(indicator, p, f, total, strict=True)) == 0


@few
@given(case=supports(), max_order=st.sampled_from([None, 1, 2]))
def test_least_energy_is_the_block_elimination_with_pseudo_inverses(case, max_order):
    _, p, _, f = as_arrays(*case)
    other = pseudo_inverse_decomposition(case[0], p, f, max_order)
    for subset, table in exact_decomposition(*case, max_order).items():
        np.testing.assert_allclose(other[subset], on_rows(table, case[0], subset), atol=1e-9)


@few
@given(case=supports(), max_order=st.sampled_from([None, 1, 2]))
def test_a_column_given_twice_shares_its_effect_equally(case, max_order):
    rows, p, f = case
    twice = [(row[0], *row) for row in rows]
    tables = exact_decomposition(twice, p, f, max_order)
    assert tables[(0,)] == tables[(1,)]
    for other in range(2, len(twice[0])):
        if max_order != 1:
            assert tables[(0, other)] == tables[(1, other)]
            assert not any(tables[(0, 1)].values())


@few
@given(case=supports(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(case, order):
    rows, p, f = case
    places = order.sample(range(len(rows)), len(rows))
    columns = order.sample(range(len(rows[0])), len(rows[0]))
    moved = [tuple(rows[k][i] for i in columns) for k in places]
    tables = exact_decomposition(moved, [p[k] for k in places], [f[k] for k in places])
    for subset, table in exact_decomposition(rows, p, f).items():
        image = tuple(sorted(columns.index(i) for i in subset))
        for cell in cells_of(rows, subset):
            level = dict(zip(subset, cell, strict=True))
            assert tables[image][tuple(level[columns[k]] for k in image)] == table[cell]


@few
@given(case=supports(), max_order=st.integers(0, 2))
def test_what_low_orders_can_express_no_higher_order_claims(case, max_order):
    rows, p, f = case
    low = exact_decomposition(rows, p, f, max_order)
    fitted = [sum((t[project(row, s)] for s, t in low.items()), Fraction(0)) for row in rows]
    for subset, table in exact_decomposition(rows, p, fitted).items():
        assert table == low.get(subset, dict.fromkeys(table, 0))
