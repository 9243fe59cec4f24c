"""The order of effects by size: from the largest, and the last bit decides nothing."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.cli.output import strongest
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


@examples(15)
@given(
    seed=st.integers(0, 50),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    mean=st.sampled_from([0.0, 5.0, 1e6]),
    slight=st.sampled_from([0.0, 1e-4]),
)
def test_the_interactions_of_an_additive_model_are_printed_as_zero_and_slight_ones_are_not(seed, scale, mean, slight):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.choice(list("uvw"), 200) for _ in range(3)])
    points = [dict(zip("uvw", rng.permutation(3) * 10.0, strict=True)) for _ in range(3)]
    y = sum(np.vectorize(of.get)(column) for of, column in zip(points, X.T, strict=True))
    y = y + 100.0 * slight * (X[:, 0] == "u") * (X[:, 1] == "v")
    anova = FunctionalANOVA(shrinkage=None).fit(X, scale * y + scale * mean)
    printed = dict(re.findall(r"^  (x\d(?: x x\d)*) +(.*)$", str(anova), re.MULTILINE))
    assert {name: shown == "0" for name, shown in printed.items()} == {
        "x0": False, "x1": False, "x2": False, "x0 x x1": not slight, "x0 x x2": True, "x1 x x2": True
    }  # fmt: skip
    listed = {entry["features"]: entry["squared_norm"] for entry in strongest(anova, 6)}
    assert all((listed[tuple(name.split(" x "))] == 0.0).all() == (shown == "0") for name, shown in printed.items())
