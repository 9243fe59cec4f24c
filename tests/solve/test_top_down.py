"""A complete table from the highest order down: against all orders at once, and by the laws of effects."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, Support
from exanova.solve.grid import collapse, margins, solve_grid
from exanova.solve.top_down import solve_top_down
from strategies import examples

shapes = st.lists(st.integers(2, 4), min_size=0, max_size=4).map(tuple)
EXACT = 1e-12


def grid(shape, spread, seed):
    """Probabilities that spread over ``spread`` powers of ten, and two outputs."""
    rng = np.random.default_rng(seed)
    p = 10.0 ** rng.uniform(-spread, 0, shape)
    return p / p.sum(), rng.normal(size=(*shape, 2)) * [1.0, 100.0]


@examples(60)
@given(shape=shapes, spread=st.sampled_from([0.0, 1.0, 4.0]), seed=st.integers(0, 2**32 - 1))
def test_effects_add_up_and_have_no_margins(shape, spread, seed):
    p, values = grid(shape, spread, seed)
    found = solve_top_down(p, values)
    assert found.converged
    scale = np.abs(found.effects).max(axis=tuple(range(len(shape))))
    assert (np.abs(collapse(found.effects) - values) <= EXACT * scale).all()
    measure = margins(p[..., None]) * found.effects
    for order in range(1, len(shape) + 1):
        for subset in combinations(range(len(shape)), order):
            table = measure[tuple(slice(1, None) if i in subset else 0 for i in range(len(shape)))]
            for axis in range(order):
                assert (np.abs(table.sum(axis=axis)) <= EXACT * scale).all()


@examples(30)
@given(shape=shapes, spread=st.sampled_from([0.0, 1.0, 2.0]), seed=st.integers(0, 2**32 - 1))
def test_from_the_top_down_and_all_at_once_agree(shape, spread, seed):
    p, values = grid(shape, spread, seed)
    top_down, at_once = solve_top_down(p, values), solve_grid(p, values)
    assert at_once.converged
    assert np.abs(top_down.effects - at_once.effects).max() <= 1e-9 * np.abs(at_once.effects).max()


@pytest.mark.parametrize(("spread", "how"), [(0.5, ""), (4.0, ", from the top down")])
def test_uneven_weights_go_from_the_top_down(spread, how):
    p, values = grid((3,) * 6, spread, 0)
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(Support.from_pmf(p), values.reshape(-1, 2))
    certificate = anova.certificate_
    assert (certificate.route, certificate.method) == ("grid", f"conjugate gradients on the grid{how}")
    assert certificate.exact
    assert certificate.orthogonality <= EXACT


def test_few_iterations_are_said_not_to_be_enough():
    p, values = grid((3, 3, 3), 4.0, 0)
    assert not solve_top_down(p, values, max_iterations=2).converged
