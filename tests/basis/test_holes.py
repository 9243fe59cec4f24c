"""Pure spaces of tables with few missing cells: the same spaces as from all margins of the observed cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, tolerances
from exanova.basis import holes, pure
from strategies import examples

sizes_of = st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple)


@st.composite
def patterns(draw):
    """Observed cells (|A|, c) of a table with some cells missing, every level observed, and the sizes."""
    sizes = draw(sizes_of)
    cells = np.array(list(product(*map(range, sizes)))).T
    missing = draw(st.integers(1, cells.shape[1] - 1))
    order = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).permutation(cells.shape[1])
    kept = np.sort(order[missing:])
    assume(all(len(np.unique(row[kept])) == n for row, n in zip(cells, sizes, strict=True)))
    return cells[:, kept], sizes


@examples(100)
@given(patterns())
def test_the_dimension_is_that_of_measures_with_vanishing_margins(pattern):
    codes, sizes = pattern
    margins = pure.margin_matrix(codes, sizes)
    assert holes.holed_dimension(codes, sizes) == codes.shape[1] - np.linalg.matrix_rank(margins)


@examples(100)
@given(patterns(), st.integers(0, 2**32 - 1))
def test_measures_have_vanishing_margins_and_their_own_cells(pattern, seed):
    codes, sizes = pattern
    measures = holes.holed_measures(codes, sizes)
    count = measures.shape[1]
    assert np.abs(pure.margin_matrix(codes, sizes) @ measures).max(initial=0.0) < 1e-9
    own = [cell for cell in range(codes.shape[1]) if np.count_nonzero(np.abs(measures[cell]) > 1e-9) == 1]
    assert np.linalg.matrix_rank(measures) == count
    assert len({int(np.argmax(np.abs(measures[cell]))) for cell in own}) == count  # each has a cell to itself
    # The basis spans the same space as the one from all margins, and is orthonormal under any weights.
    p = np.random.default_rng(seed).uniform(0.2, 3.0, (2, codes.shape[1]))
    p /= p.sum(axis=1, keepdims=True)
    tables = pure._triangular(codes, sizes, np.sqrt(p))
    expected = pure._null_space(pure.independent_rows(pure.margin_matrix(codes, sizes)), np.sqrt(p))
    for one, other in zip(tables, expected, strict=True):
        assert one.shape == other.shape
        assert np.abs(one.T @ one - np.eye(count)).max(initial=0.0) < 1e-12
        assert np.abs(one @ one.T - other @ other.T).max(initial=0.0) < 1e-9


@pytest.fixture
def always_by_holes(monkeypatch):
    monkeypatch.setattr(holes, "MANY_MARGINS", 0)


def test_effects_do_not_depend_on_how_pure_spaces_are_computed(always_by_holes, monkeypatch):
    rng = np.random.default_rng(3)
    rows = np.array(list(product(range(3), repeat=5)))
    rows = rows[rng.random(len(rows)) > 0.07]
    weight, values = rng.uniform(0.5, 2.0, len(rows)), rng.normal(size=len(rows))
    assert holes.has_few_holes(len(rows), (3,) * 5)

    def effects():
        anova = FunctionalANOVA(max_order=None, shrinkage=None, sampled=False)
        anova.fit(rows, values, sample_weight=weight)
        assert anova.certificate_.exact
        return np.concatenate([effect.values for effect in anova.effects_.values()])

    by_holes = effects()
    monkeypatch.setattr(holes, "MANY_MARGINS", 10**9)
    assert np.abs(effects() - by_holes).max() < 1e-9


def test_where_rounding_leaves_margins_the_null_space_stands_in(always_by_holes):
    rng = np.random.default_rng(0)
    codes = np.array(list(product(range(3), repeat=4))).T[:, 1:]
    p = 10.0 ** rng.uniform(-15, 0, codes.shape[1])
    root = np.sqrt(p / p.sum())[None]
    basis = pure.pure_tables(codes, (3,) * 4, root**2) * root[:, :, None]
    assert pure.largest_margin(codes, (3,) * 4, root, basis) <= tolerances.purity(codes.shape[1])
