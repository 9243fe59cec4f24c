"""The order of effects by size: from the largest, and the last bit decides nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exanova.effects.norms import strongest_first
from strategies import examples


@examples(100)
@given(
    ranks=st.lists(st.integers(0, 5), max_size=12),
    scale=st.sampled_from([1e-8, 1.0, 1e6]),
    seed=st.integers(0, 2**31),
)
def test_sizes_that_differ_by_rounding_keep_their_own_order(ranks, scale, seed):
    sizes = scale * np.array(ranks, dtype=float) / 7.0
    noisy = sizes * (1.0 + 4e-16 * np.random.default_rng(seed).integers(-2, 3, len(sizes)))
    expected = sorted(range(len(ranks)), key=lambda k: -ranks[k])
    assert strongest_first(noisy).tolist() == expected
