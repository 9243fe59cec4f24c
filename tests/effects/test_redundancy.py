"""Which effects are not determined, and with which they share: one definition, on every route."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import tolerances
from exanova.effects import dependence_blocks
from exanova.effects.redundancy import sharing_subsets
from exanova.solve.elimination import orthonormalised
from oracles import null_space, orthonormal_columns, project, pure_tables
from strategies import MODERATE, examples, fit, subset_of, supports

orders = st.sampled_from([None, 1, 2, 3])


def listed_sharing(*given):
    return {subset: others.tolist() for subset, others in sharing_subsets(*given)}


def named(anova):
    """{subset: subsets it shares with} of a certificate."""
    return {
        subset_of(entry.features): {subset_of(other) for other in entry.shared_with}
        for entry in anova.certificate_.redundant
    }


def undetermined(rows, probability, family):
    """Subsets that some dependence among pure functions changes, in exact fractions."""
    p = [Fraction(w) for w in probability.tolist()]
    parts = [(s, table) for s in family for table in pure_tables(rows, p, s)]
    phi = [[table[project(row, subset)] for row in rows] for subset, table in parts]
    dependences = null_space([list(column) for column in zip(*phi, strict=True)], len(parts))
    return {subset for v in dependences for (subset, _), x in zip(parts, v, strict=True) if x}


def sharing(rows, probability, family):
    """{subset: others} by the projector on the null space of orthonormal functions, by singular values."""
    bases = {s: orthonormal_columns(rows, probability, s) for s in family}
    phi = np.sqrt(probability)[:, None] * np.hstack(list(bases.values()))
    owner = [s for s, basis in bases.items() for _ in range(basis.shape[1])]
    _, values, vt = np.linalg.svd(phi)
    null = vt[int((values > 1e-9).sum()) :].T
    projector = null @ null.T
    linked = {(owner[i], owner[j]) for i, j in np.argwhere(np.abs(projector) > 1e-7).tolist()}
    return {a: {b for first, b in linked if first == a and b != a} for a, _ in linked}


@examples(60)
@given(case=supports(MODERATE, max_rows=14, max_features=4), order=orders)
def test_every_route_names_the_effects_that_a_dependence_can_change(case, order):
    """All routes, and both bases when ties are shared, say what exact fractions say."""
    dense = fit(case, max_order=order, route="dense")
    family = [subset_of(names) for names in dense.effects_]
    rows = [tuple(row) for row in case.rows.tolist()]
    expected = undetermined(rows, case.weight, family)
    assert set(named(dense)) == expected
    assert named(dense) == sharing(rows, case.probability, family)
    assert dense.certificate_.unique == (not expected)
    moments = fit(case, max_order=len(family[-1]), route="moments")
    assert named(moments) == named(dense)
    first = fit(case, max_order=len(family[-1]), route="dense", ties="first")
    assert named(first) == named(dense)


@examples(30)
@given(case=supports(MODERATE, max_rows=30, complete=False))
def test_a_budget_that_takes_everything_names_the_same_effects(case):
    whole = fit(case, max_order=2)
    mains = 1 + sum(n - 1 for n in case.sizes)
    budget = max(whole.certificate_.n_functions, mains)
    chosen = fit(case, max_order=2, max_terms=budget, selection="screen", min_gain=0.0)
    if set(chosen.effects_) == set(whole.effects_):
        assert named(chosen) == named(whole)


def test_two_copies_share_with_each_other_and_with_nothing_else():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (60, 3))
    rows = np.hstack([rows, rows[:, [1]]])
    from exanova import FunctionalANOVA

    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, rng.normal(size=60))
    assert named(anova) == {(1,): {(3,)}, (3,): {(1,)}}


def test_a_dependence_across_orders_names_both():
    """x2 is the exclusive or of two fair bits: independent of each, a function of the pair."""
    rows = np.array([(a, b, a ^ b) for a in (0, 1) for b in (0, 1)])
    from exanova import FunctionalANOVA

    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(rows, np.arange(4.0))
    assert named(anova)[2,] == {(0, 1)}
    assert named(anova)[0, 1] == {(2,)}


@pytest.mark.parametrize("tile", [1, 2, 7])
def test_blocks_of_the_projector_do_not_depend_on_how_they_are_tiled(tile, monkeypatch):
    rng = np.random.default_rng(1)
    subset_of_function = np.repeat(np.arange(9), rng.integers(1, 4, 9))
    null = np.zeros((len(subset_of_function), 3))
    for k, members in enumerate(combinations(range(9), 3)):
        if k % 30 == 0:
            null[np.isin(subset_of_function, members), k // 30] = 1.0
    whole = listed_sharing(null, subset_of_function)
    monkeypatch.setattr(dependence_blocks, "TILE", tile)
    assert listed_sharing(null, subset_of_function) == whole
    assert whole


@examples(60)
@given(seed=st.integers(0, 2**32 - 1), by_complement=st.booleans(), lightest=st.sampled_from([0.0, 0.5, 5.0, 30.0]))
def test_blocks_that_are_estimated_are_those_of_the_projector(seed, by_complement, lightest):
    """Subsets of one function and of many; one shares so little that its blocks are close to the limit."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(6), rng.integers(1, 12, 6))
    null = rng.normal(size=(len(owner), int(rng.integers(1, 4)))) * rng.integers(0, 2, 6)[owner, None]
    null[owner == 3] *= lightest * tolerances.DEPENDENCE
    null = null[:, np.linalg.norm(null, axis=0) > 1e-3]
    u, sizes, _ = np.linalg.svd(null, full_matrices=True)
    z, rest = u[:, : len(sizes)], u[:, len(sizes) :]
    projector = z @ z.T
    size = {(a, b): np.linalg.norm(projector[np.ix_(owner == a, owner == b)]) for a in range(6) for b in range(6)}
    trace = {a: np.sqrt(np.square(z[owner == a]).sum()) for a in range(6)}
    involved = [a for a in range(6) if trace[a] > tolerances.DEPENDENCE]
    near = [abs(x / tolerances.DEPENDENCE - 1.0) < 0.05 for x in (*size.values(), *trace.values())]
    assume(not any(near))
    expected = {a: [b for b in involved if b != a and size[a, b] > tolerances.DEPENDENCE] for a in involved}
    for few in (0, dependence_blocks.FEW):
        with patch.object(dependence_blocks, "FEW", few):
            assert listed_sharing(null, owner, rest if by_complement and null.shape[1] else None) == expected


@pytest.mark.parametrize("lightest", [1.0, 1e-2, 1e-6, 1e-12])
def test_dependences_are_made_orthonormal_however_close_they_are(lightest):
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(40, 6))
    columns[:, 5] = columns[:, 0] + lightest * columns[:, 5]
    found = orthonormalised(columns)
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(found @ (found.T @ columns), columns, atol=1e-9)


def test_blocks_close_to_the_limit_are_computed_by_the_tile_and_not_one_by_one(monkeypatch):
    """With 60 subsets that all share a little, solves grow as the tiles and not as the 1,770 pairs."""
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(60), 5)
    null = rng.normal(size=(len(owner), 7))
    solves = []
    inverse = dependence_blocks.times_inverse
    monkeypatch.setattr(dependence_blocks, "FEW", 0)
    expected = listed_sharing(null, owner)
    monkeypatch.setattr(dependence_blocks, "NEAR", math.inf)
    monkeypatch.setattr(dependence_blocks, "times_inverse", lambda *arguments: solves.append(1) or inverse(*arguments))
    assert listed_sharing(null, owner) == expected
    assert 1 < len(solves) < 20


def test_thousands_of_subsets_that_all_share_are_named_in_the_memory_of_their_names():
    """One after the other: lists of all pairs of 5,812 subsets took more than a gigabyte."""
    count = 2000
    null, owner = np.ones((count, 1)), np.arange(count)
    tracemalloc.start()
    pairs = sum(len(others) for _, others in sharing_subsets(null, owner))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pairs == count * (count - 1)
    assert peak < 6 * pairs
