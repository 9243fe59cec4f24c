"""Groups of features as players: Shapley values of the quotient game, by brute force over coalitions of groups."""

from __future__ import annotations

import warnings
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, load
from exanova.errors import InputError, InputTypeError
from strategies import examples

NAMES = ("a", "b", "c", "d")


def table(seed, n=250):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [3, 2, 3, 2], (n, 4))
    rows[:, 2] = np.where(rng.random(n) < 0.4, rows[:, 0], rows[:, 2])
    frame = pd.DataFrame({name: [f"{name}{v}" for v in rows[:, i]] for i, name in enumerate(NAMES)})
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] * rows[:, 3] * 0.5 - rows[:, 1] * rows[:, 3] + rng.normal(size=n)
    return frame, y


def fitted(seed, max_order=3, **given):
    frame, y = table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(shrinkage=None, max_order=max_order, **given).fit(frame, y), frame, y


def brute_force(anova, frame, groups):
    """Shapley values of the game v(S) = sum of the effects inside the features of the groups S."""
    parts = anova.components(frame)
    players = list(groups)
    out = np.zeros((len(frame), len(players)))

    def worth(coalition):
        features = {f for g in coalition for f in groups[g]}
        inside = [k for k, subset in enumerate(parts.subsets) if set(subset) <= features]
        return parts.values[:, inside].sum(axis=1)

    count = len(players)
    for g, player in enumerate(players):
        others = [p for p in players if p != player]
        for size in range(count):
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            for coalition in combinations(others, size):
                out[:, g] += weight * (worth((*coalition, player)) - worth(coalition))
    return out


@st.composite
def partitions(draw):
    """A division of the four features into groups, as a mapping."""
    labels = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    return {f"g{label}": [n for n, own in zip(NAMES, labels, strict=True) if own == label] for label in labels}


@examples(15)
@given(groups=partitions(), seed=st.integers(0, 3))
def test_values_of_groups_are_shapley_values_of_the_quotient_game(groups, seed):
    anova, frame, y = fitted(seed)
    e = anova.explain(frame, y, groups=groups)
    expected = brute_force(anova, frame, groups)
    for g, name in enumerate(groups):
        assert np.allclose(e.values[:, e.feature_names.index(name)], expected[:, g], atol=1e-12)
    assert np.allclose(e.values.sum(axis=1) + e.base_values + e.residual, y)


def test_one_group_per_feature_is_no_group_at_all():
    anova, frame, y = fitted(0)
    alone = {name: [name] for name in NAMES}
    plain, grouped = anova.explain(frame, y, stderr=True), anova.explain(frame, y, stderr=True, groups=alone)
    assert np.allclose(plain.values, grouped.values, atol=1e-12)
    assert np.allclose(plain.stderr, grouped.stderr)
    assert (plain.display_data == grouped.display_data).all()
    assert (plain.data == grouped.data).all()
    for kind in ("l1", "l2", "shapley", "variance", "shapley-effects"):
        before, after = anova.importance(kind, stderr=True), anova.importance(kind, stderr=True, groups=alone)
        assert list(before["feature"]) == list(after["group"])
        for column in set(before) - {"feature"}:
            assert np.allclose(before[column], after[column])


def test_all_features_in_one_group_have_everything_but_the_mean():
    anova, frame, _ = fitted(1)
    e = anova.explain(frame, groups={"all": list(NAMES)}, stderr=True)
    assert e.feature_names == ("all",)
    assert np.allclose(e.values[:, 0], anova.predict(frame) - anova.intercept_)
    assert np.isnan(e.data).all()
    assert e.display_data[0, 0] == ", ".join(f"{name}={frame[name][0]}" for name in NAMES)
    shares = anova.importance("variance", groups={"all": list(NAMES)})
    assert np.allclose(shares["value"], anova.certificate_.r2)


@pytest.mark.parametrize("index", ["SV", "SII", "k-SII", "STII", "FSII", "Moebius"])
def test_indices_of_groups_are_those_of_a_table_with_one_column_per_group(index):
    """On a complete table under independence, a group of columns is one column with their combinations as levels."""
    grid = np.array(np.meshgrid(*[range(k) for k in (2, 3, 2, 2)], indexing="ij")).reshape(4, -1).T
    y = np.random.default_rng(0).normal(size=len(grid))
    merged = np.column_stack([grid[:, 0] * 10 + grid[:, 2], grid[:, 1], grid[:, 3]])
    wide = FunctionalANOVA(max_order=None).fit(grid, y)
    narrow = FunctionalANOVA(max_order=None).fit(merged, y)
    found = wide.interactions(grid, index=index, order=2, groups={"both": ["x0", "x2"]})
    expected = narrow.interactions(merged, index=index, order=2)
    names = {"x0": "both", "x1": "x1", "x2": "x3"}
    for j, subset in enumerate(expected.subsets):
        k = found.subsets.index(tuple(names[s] for s in subset))
        assert np.allclose(found.values[:, k], expected.values[:, j], atol=1e-10)
    assert len(found.subsets) == len(expected.subsets)


def test_standard_errors_of_groups_are_those_of_the_sum():
    anova, frame, _ = fitted(2, max_order=1)
    both = anova.explain(frame, groups={"ac": ["a", "c"]}, stderr=True)
    covariance = anova.decomposition_.uncertainty.all_cells[0]
    for row in range(5):
        weights = np.zeros(len(covariance))
        for name in ("a", "c"):
            effect = anova.effects_[name]
            cell = [levels[0] for levels in effect.levels].index(frame[name][row])
            weights[anova.decomposition_.family.cells_of(effect.number).start + cell] = 1.0
        assert np.isclose(both.stderr[row, 0] ** 2, weights @ covariance @ weights)


def test_importances_of_groups_add_up_to_those_of_subsets():
    anova, _, _ = fitted(0)
    groups = {"ab": ["a", "b"]}
    by_subset = anova.importance("variance", by="subset")
    amounts = dict(zip(by_subset["subset"], by_subset["value"], strict=True))
    touched = {s: {"ab" if f in "ab" else f for f in s.split(" x ")} for s in amounts}
    by_group = anova.importance("variance", groups=groups)
    for name, value in zip(by_group["group"], by_group["value"], strict=True):
        assert np.isclose(value, sum(amounts[s] / len(t) for s, t in touched.items() if name in t))
    together = anova.importance("variance", by="subset", groups=groups)
    for name, value in zip(together["subset"], together["value"], strict=True):
        assert np.isclose(value, sum(amounts[s] for s, t in touched.items() if t == set(name.split(" x "))))


def test_mean_absolute_values_of_groups_are_means_over_the_rows(tmp_path):
    anova, frame, _ = fitted(0)
    groups = {"ab": ["a", "b"]}
    e = anova.explain(frame, groups=groups)
    found = anova.importance("shapley", groups=groups, stderr=True)
    expected = dict(zip(e.feature_names, np.abs(e.values).mean(axis=0), strict=True))
    assert np.allclose(found["value"], [expected[name] for name in found["group"]])
    assert (np.array(found["stderr"]) > 0).all()
    anova.save(tmp_path / "a.exanova")
    with pytest.raises(InputError, match="files contain no rows"):
        load(tmp_path / "a.exanova").importance("shapley", groups=groups)


def test_one_hot_columns_are_a_group():
    """The two columns of a yes/no question share its effect; as a group they have all of it."""
    rng = np.random.default_rng(0)
    yes, other = rng.integers(0, 2, 200), rng.integers(0, 3, 200)
    y = 2.0 * yes + other + rng.normal(size=200) * 0.1
    hot = np.column_stack([yes, 1 - yes, other])
    anova = FunctionalANOVA(max_order=1, shrinkage=None).fit(hot, y)
    apart = anova.explain(hot, stderr=True)
    assert np.isnan(apart.stderr[:, :2]).all()
    e = anova.explain(hot, groups={"question": ["x0", "x1"]}, stderr=True)
    single = FunctionalANOVA(max_order=1, shrinkage=None).fit(hot[:, 1:], y).explain(hot[:, 1:], stderr=True)
    assert np.allclose(e.values, single.values)
    assert np.allclose(e.stderr, single.stderr)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"g": ["a", "nope"]}, "'nope' is not a feature"),
        ({"g": ["a"], "h": ["a", "b"]}, "'a' is named 2 times"),
        ({"g": []}, "'g' has no features"),
        ({"c": ["a", "b"]}, "'c' is the name of a feature outside that group"),
        ({"g": ["x", "y"], "h": []}, "'h' has no features; 'x' is not a feature; 'y' is not a feature"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups, words):
    anova, frame, _ = fitted(0, max_order=1)
    for ask in (anova.explain, anova.interactions):
        with pytest.raises(InputError, match=words):
            ask(frame, groups=groups)
    with pytest.raises(InputError, match=words):
        anova.importance(groups=groups)


def test_groups_are_a_mapping():
    anova, frame, _ = fitted(0, max_order=1)
    with pytest.raises(InputTypeError, match="expected a mapping from names"):
        anova.explain(frame, groups=["a", "b"])
