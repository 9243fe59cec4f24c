"""The covariance of all cells, as products of matrices with themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exanova.infer.blocks import _squares


@given(seed=st.integers(0, 10_000), single=st.sampled_from([0.0, 0.5, 1.0]), size=st.integers(1, 6))
def test_squares_are_the_sum_over_raw_rows(seed, single, size):
    """Rows that stand for one raw row, for several with other residuals, and for none."""
    rng = np.random.default_rng(seed)
    n = 8
    a, b = rng.normal(size=(n, size)), rng.normal(size=(n, size))
    weights = [rng.random(1 if rng.random() < single else rng.integers(0, 5)) for _ in range(n)]
    residuals = [rng.normal(size=len(w)) * rng.choice([0.0, 1.0]) for w in weights]
    pairs = list(zip(weights, residuals, strict=True))
    k0, k1, k2 = (np.array([[(w**2 * e**power).sum()] for w, e in pairs]) for power in range(3))
    exact = np.zeros((size, size))
    for i, (own, e) in enumerate(pairs):
        for w, left in zip(own, e, strict=True):
            moved = w * (a[i] + left * b[i])
            exact += np.outer(moved, moved)
    scale = (k0 * a**2 + np.abs(k1 * a * b) + k2 * b**2).sum() + 1e-300
    np.testing.assert_allclose(_squares(a, b, (k0, k1, k2)), exact, atol=1e-13 * scale, rtol=0)
