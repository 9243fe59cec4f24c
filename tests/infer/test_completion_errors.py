"""What a completed table with holes says of its effects, and of other rows, is what functions on the rows say."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from strategies import examples


def drawn(seed: int, missing: float, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a grid with holes, most of them several times, under outputs with noise."""
    rng = np.random.default_rng(seed)
    cells = np.array(np.meshgrid([0, 1, 2], [0, 1], [0, 1, 2])).reshape(3, -1).T
    cells = cells[rng.random(len(cells)) > missing]
    rows = np.repeat(cells, rng.integers(1, copies + 1, len(cells)), axis=0)
    return rows, rows[:, 0] * rows[:, 1] + 0.5 * (rows[:, 2] == 1) + rng.normal(size=len(rows))


def fitted(route: str, rows: np.ndarray, y: np.ndarray) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(max_order=None, shrinkage=None, sampled=True, route=route, n_jobs=1).fit(rows, y)


@examples(30)
@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0.1, 0.3, 0.5]), copies=st.integers(2, 4))
def test_completion_says_what_dense_says(seed, missing, copies):
    rows, y = drawn(seed, missing, copies)
    assume(all(len(np.unique(column)) > 1 for column in rows.T))
    found, expected = fitted("completion", rows, y), fitted("dense", rows, y)
    mine, other = found.certificate_, expected.certificate_
    assert (mine.rank, mine.unique, mine.eval_method) == (other.rank, other.unique, other.eval_method)
    assert [(r.features, r.shared_with) for r in mine.redundant] == [
        (r.features, r.shared_with) for r in other.redundant
    ]
    np.testing.assert_allclose(mine.r2_eval, other.r2_eval, rtol=2e-3, atol=2e-3)
    assert mine.holds is other.holds
    for name, effect in found.effects_.items():
        same = expected.effects_[name]
        np.testing.assert_array_equal(effect.identified, same.identified)
        np.testing.assert_allclose(effect.certain, same.certain, atol=1e-8)
        np.testing.assert_allclose(effect.stderr, same.stderr, rtol=1e-6, atol=1e-9)
