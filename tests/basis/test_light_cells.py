"""Pure functions under weights that vary by many orders of magnitude: orthogonal also to what only light cells show."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exanova.basis.light_cells import lower_functions
from exanova.basis.pure import margin_matrix, pure_tables
from strategies import examples

FULL_DIGITS = 1e-13


def inner_product(table, p, lower):
    """Largest product of the functions with a lower one, relative to its norm."""
    return np.abs((p * lower) @ table).max(initial=0.0) / np.sqrt(p @ lower**2)


@examples(60)
@given(
    sizes=st.tuples(st.integers(2, 5), st.integers(2, 5)),
    seed=st.integers(0, 2**32 - 1),
    light=st.sampled_from([1e-2, 1e-10, 1e-11, 1e-12]),
    holes=st.booleans(),
)
def test_pairs_are_orthogonal_to_the_difference_of_main_effects_in_light_cells(sizes, seed, light, holes):
    """Heavy cells in two blocks: the indicators of a block by either feature differ in light cells only."""
    rng = np.random.default_rng(seed)
    cells = np.array(list(product(*map(range, sizes)))).T
    blocks = [np.append([0, 1], rng.integers(0, 2, n - 2))[rng.permutation(n)] for n in sizes]
    apart = blocks[0][cells[0]] != blocks[1][cells[1]]
    p = np.where(apart, light, 1.0) * rng.uniform(0.5, 1.0, len(apart))
    present = ~(holes & (rng.random(len(p)) < 0.3))
    present[np.flatnonzero(apart)[0]] = True
    cells, p, apart = cells[:, present], p[present] / p[present].sum(), apart[present]
    table = pure_tables(cells, sizes, p[None])[0]
    difference = blocks[0][cells[0]] - blocks[1][cells[1]].astype(float)
    assert (np.flatnonzero(difference) == np.flatnonzero(apart)).all()
    assert inner_product(table, p, difference) <= FULL_DIGITS
    gram = table.T @ (p[:, None] * table)
    np.testing.assert_allclose(gram, np.eye(table.shape[1]), atol=1e-11)


@examples(60)
@given(
    sizes=st.lists(st.integers(2, 4), min_size=2, max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0.0, 14.0),
)
def test_lower_functions_span_all_margins_and_no_entry_is_large(sizes, seed, spread):
    rng = np.random.default_rng(seed)
    cells = np.array(list(product(*map(range, sizes)))).T
    cells = cells[:, rng.random(cells.shape[1]) < 0.8]
    if not cells.shape[1]:
        return
    margins, root = margin_matrix(cells, sizes), 10.0 ** rng.uniform(-spread / 2, 0.0, cells.shape[1])
    rank = np.linalg.matrix_rank(margins)
    lower = lower_functions(margins, root, rank)
    unscaled = lower / root[:, None]
    assert np.linalg.matrix_rank(np.hstack([margins.T, unscaled / np.abs(unscaled).max(axis=0)])) == rank
    assert np.linalg.cond(lower) <= 10.0 * cells.shape[1]
