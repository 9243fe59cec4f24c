"""What a subset would explain of a residual, before it is taken."""

from __future__ import annotations

from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.select import gains as pricing
from exanova.select.gains import PairScreen, SubsetScreen
from selection_cases import codes_of, planted, sample_of, sparse
from strategies import (
    MODERATE,
    Case,
    examples,
    fit,
    supports,
)


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
