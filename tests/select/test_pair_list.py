"""Pairs as two arrays are the pairs as a list."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova.select import gains
from exanova.select.gains import Gains
from exanova.select.pair_list import PairList, numbers_in
from strategies import examples

features = st.lists(st.integers(0, 40), unique=True, max_size=12).map(sorted)


@examples(60)
@given(features=features, seed=st.integers(0, 10))
def test_pairs_are_those_of_itertools_and_know_their_numbers(features, seed):
    expected = list(combinations(features, 2))
    pairs = PairList.of(features)
    assert list(pairs) == expected
    assert list(pairs[1:4]) == expected[1:4]
    order = np.random.default_rng(seed).permutation(len(expected))
    chosen = [expected[k] for k in order]
    assert list(pairs.only(order)) == chosen
    assert numbers_in(features, chosen).tolist() == order.tolist()


@examples(60)
@given(worth=st.lists(st.integers(-1, 5), max_size=30), at_once=st.integers(1, 7))
def test_candidates_in_turn_are_the_sorted_ones(worth, at_once):
    """Equal ones in the order in which they are listed, however many are sorted at once."""

    energy = np.array(worth, dtype=float)
    found = Gains([(k,) for k in range(len(worth))], energy, np.ones(len(worth), dtype=np.int64))
    expected = sorted((k for k, value in enumerate(worth) if value > 0), key=lambda k: (-worth[k], k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gains, "SORTED", at_once)
        assert list(found.in_turn()) == expected
        assert found.best_first().tolist() == expected
