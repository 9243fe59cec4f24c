"""Families a user names: what is read, what is refused, and the decomposition over them."""

from __future__ import annotations

import tracemalloc
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from exanova import FunctionalANOVA, neighbours
from exanova.design import families
from exanova.design.families import named_family
from exanova.design.subsets import (
    SUBSET_BYTES,
    canonical_key,
    close_downward,
    closure_at_most,
    closure_size,
    up_to_order,
)
from exanova.errors import ExanovaError, InputError, InputTypeError, MemoryLimitError, UnknownFeatureError
from oracles import cells_of
from strategies import MODERATE, conditional_means, examples, fit, largest, on_rows, subset_of, supports

NAMES = ["a", "b", "c", "d"]
SIZES = [2, 3, 2, 4]
MAINS = ((), (0,), (1,), (2,), (3,))


def family(interactions, names=NAMES, sizes=SIZES):
    return named_family(interactions, names, sizes)


# Forms


@pytest.mark.parametrize(
    "interactions",
    [
        [("a", "b"), ("b", "c")],
        [("c", "b"), ("b", "a")],
        [(1, 2), (0, 1)],
        np.array([[1, 0], [2, 1]]),
        [("a", 1), (np.int64(2), "b")],
        {"b": ["a", "c"]},
        {"a": {"b"}, "b": ("c", "a"), "c": ["b"]},
        SimpleNamespace(edges=[("a", "b"), ("b", "c")]),
        SimpleNamespace(edges=lambda: [("a", "b", {"weight": 2}), (2, 1, {})]),
        SimpleNamespace(edges=[("a", "b"), ("b", "a"), ("c", "b"), ("c", "b")]),
        (pair for pair in [("a", "b"), ("b", "c")]),
    ],
    ids=[
        "names", "any order", "positions", "array", "mixed", "mapping", "mapping both ways", "graph",
        "graph with data", "directed multigraph", "generator",
    ],
)  # fmt: skip
def test_every_form_names_the_same_family(interactions):
    assert family(interactions) == (*MAINS, (0, 1), (1, 2))


def test_a_graph_of_networkx_if_it_is_there():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    assert family(networkx.path_graph(["a", "b", "c"])) == (*MAINS, (0, 1), (1, 2))
    assert family(networkx.DiGraph([("a", "b"), ("b", "a"), ("c", "b")])) == (*MAINS, (0, 1), (1, 2))


subsets = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=6, unique_by=lambda s: tuple(sorted(s))
)


@given(given_subsets=subsets, sizes=st.lists(st.integers(1, 3), min_size=6, max_size=6))
def test_a_family_is_closed_downward_canonical_and_without_constant_features(given_subsets, sizes):
    found = family(given_subsets, [f"x{i}" for i in range(6)], sizes)
    varying = {i for i, n in enumerate(sizes) if n > 1}
    assert list(found) == sorted(set(found), key=canonical_key)
    assert all(part in found for s in found for k in range(len(s)) for part in combinations(s, k))
    assert {s for s in found if len(s) == 1} == {(i,) for i in varying}
    # A constant feature changes no function: what is left of a subset without it stays.
    expected = {part for s in given_subsets for part in _parts(varying & set(s))} | {(), *((i,) for i in varying)}
    assert set(found) == expected


def _parts(members):
    return [part for k in range(len(members) + 1) for part in combinations(sorted(members), k)]


@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), radius=st.integers(1, 3))
def test_neighbours_are_the_pairs_at_most_a_radius_apart_on_every_axis(shape, radius):
    cells = list(np.ndindex(*shape))
    expected = [
        (a, b)
        for a, b in combinations(range(len(cells)), 2)
        if max(abs(x - y) for x, y in zip(cells[a], cells[b], strict=True)) <= radius
    ]
    assert sorted(neighbours(shape, radius)) == expected


# Refusals


@pytest.mark.parametrize(
    ("interactions", "error", "message"),
    [
        ([("a", "z")], UnknownFeatureError, r"names 'z', which is not a column; the columns are a, b, c, d\."),
        ([(0, 4)], UnknownFeatureError, r"names 4; expected a column name, or a position from 0 to 3"),
        ([(0, -1)], UnknownFeatureError, r"names -1;"),
        ([(0, 1.0)], UnknownFeatureError, r"names 1\.0;"),
        ([(0, True)], UnknownFeatureError, r"names True;"),
        ({"a": ["z"]}, UnknownFeatureError, r"names 'z'"),
        (SimpleNamespace(edges=[("a", "z")]), UnknownFeatureError, r"names 'z'"),
        ([("a", "b"), ("b", "a")], InputError, r"names a x b more than once; name each subset once"),
        ([("a", "b"), (0, 1)], InputError, r"names a x b more than once"),
        ([("a", "b", "a")], InputError, r"holds \('a', 'b', 'a'\), which names a feature twice"),
        ([("a", 0)], InputError, r"names a feature twice"),
        ({"a": ["a"]}, InputError, r"holds \('a', 'a'\), which names a feature twice"),
        ([("a", "b"), ()], InputError, r"holds an empty subset; leave it out; the intercept is always included"),
        ("ab", InputTypeError, r"subsets='ab' was given; expected a list of subsets.*neighbours\(shape\)"),
        (3, InputTypeError, r"subsets=3 was given; expected a list of subsets"),
        (["ab"], InputTypeError, r"holds 'ab'; expected tuples of feature names"),
        ([3], InputTypeError, r"holds 3; expected tuples of feature names"),
        ({"a": "b"}, InputTypeError, r"maps 'a' to 'b'; expected a list of features"),
        ({"a": 1}, InputTypeError, r"maps 'a' to 1; expected a list of features"),
    ],
)
def test_what_is_not_a_family(interactions, error, message):
    X = pd.DataFrame([[0, 0, 0, 0], [1, 1, 1, 1], [0, 2, 1, 2], [1, 2, 0, 3]], columns=NAMES)
    for call in (
        lambda: family(interactions),
        lambda: FunctionalANOVA(shrinkage=None, subsets=interactions).fit(X, np.arange(4.0)),
    ):
        with pytest.raises(error, match=message) as caught:
            call()
        assert isinstance(caught.value, ExanovaError)


@pytest.mark.parametrize(
    ("shape", "radius"), [((), 1), ((0, 3), 1), ((-1,), 1), (5, 1), ((3.5,), 1), ((3,), 0), ((3,), 1.5), ((3,), True)]
)
def test_a_grid_that_is_none(shape, radius):
    with pytest.raises(InputError, match=r"expected positive whole numbers"):
        neighbours(shape, radius)


# Counted before they are listed


@given(given_subsets=subsets)
def test_a_closure_is_counted_and_bounded_without_listing_it(given_subsets):
    members = {tuple(sorted(s)) for s in given_subsets}
    size = len(close_downward(members))
    assert closure_size(members, 10**6) == size
    assert closure_at_most(members) >= size
    for enough in range(size):
        assert enough < closure_size(members, enough) <= size


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_bound_is_exact_for_every_subset_up_to_an_order(order):
    assert closure_at_most(list(combinations(range(8), order))) == len(up_to_order(range(8), order))


@given(given_subsets=subsets, room=st.integers(1, 40))
def test_a_family_is_refused_exactly_when_it_cannot_be_listed(given_subsets, room):
    names, sizes = [f"x{i}" for i in range(6)], [2] * 6
    count = len(named_family(given_subsets, names, sizes))
    if count <= room:
        assert len(named_family(given_subsets, names, sizes, SUBSET_BYTES * room)) == count
    else:
        with pytest.raises(MemoryLimitError, match=rf"at most {room} can be listed|names more than {room} subsets"):
            named_family(given_subsets, names, sizes, SUBSET_BYTES * room)


@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), radius=st.integers(1, 6))
def test_neighbours_are_counted_before_they_are_listed(shape, radius):
    count = len(neighbours(shape, radius))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "listable", lambda limit: count)
        neighbours(shape, radius)
        patch.setattr(families, "listable", lambda limit: count - 1)
        with pytest.raises(MemoryLimitError, match=rf"has {count:,} pairs.*smaller radius"):
            neighbours(shape, radius)


MANY = np.random.default_rng(0).integers(0, 2, (40, 3000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: FunctionalANOVA(shrinkage=None, subsets=[tuple(range(26))], memory_limit="1 GB").plan(MANY[:, :26]),
            r"largest of 26 features.*at least 67,108,864 subsets.*at most 4,000,000.*one of 21 has.*memory_limit=",
        ),
        (
            lambda: FunctionalANOVA(
                shrinkage=None, subsets=[tuple(range(k, k + 14)) for k in range(0, 56, 14)], memory_limit="5 MB"
            ).plan(MANY[:, :56]),
            r"largest of 14 features.*at least \d\d,\d\d\d subsets.*at most 20,000",
        ),
        (
            lambda: FunctionalANOVA(
                shrinkage=None,
                subsets=SimpleNamespace(edges=((i, j) for i in range(3000) for j in range(i))),
                memory_limit="5 MB",
            ).plan(MANY),
            r"names more than 20,000 subsets.*fewer subsets, or a larger memory_limit=",
        ),
        (
            lambda: FunctionalANOVA(shrinkage=None, max_order=3, memory_limit="500 MB").plan(MANY),
            r"order 2 of 3000 features has 4,498,500 subsets.*limit of 500 MB.*What would fit: max_order=1",
        ),
        (lambda: neighbours((1000, 1000), radius=50), r"has 4,845,701,250 pairs of neighbours.*smaller radius="),
        (lambda: neighbours((10**9,)), r"has 999,999,999 pairs of neighbours"),
    ],
    ids=["one subset", "several subsets", "graph", "order", "neighbours", "a long line"],
)
def test_what_cannot_be_listed_is_refused_before_memory_is_used(call, message):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryLimitError, match=message):
            call()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


# In the estimator


def test_the_argument_is_kept_as_it_was_given():
    given_pairs = [("a", "b"), ("b", "c", "d")]
    anova = FunctionalANOVA(shrinkage=None, subsets=given_pairs)
    assert anova.get_params()["subsets"] is given_pairs
    again = clone(anova)
    assert again.get_params() == anova.get_params()
    assert FunctionalANOVA(shrinkage=None).set_params(subsets=given_pairs).get_params()["subsets"] is given_pairs
    assert repr(anova) == f"FunctionalANOVA(shrinkage=None, subsets={given_pairs!r})"
    assert callable(anova.interactions)  # the method of the same name is still there


def test_columns_are_named_by_name_or_position_in_any_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (60, 3)), columns=["u", "v", "w"])
    y = rng.normal(size=60)
    y = pd.Series(y).groupby([X[c] for c in X]).transform("mean").to_numpy()
    by_name = FunctionalANOVA(shrinkage=None, subsets=[("w", "u")]).fit(X, y)
    by_position = FunctionalANOVA(shrinkage=None, subsets=[(0, 2)]).fit(X, y)
    assert list(by_name.effects_) == list(by_position.effects_)
    assert ("u", "w") in by_name.effects_
    assert ("u", "v") not in by_name.effects_
    np.testing.assert_array_equal(by_name.predict(X), by_position.predict(X))


def indicators(rows, subsets):
    """(r, k) one 0/1 column for each cell of each subset: they span the sum of the spaces of the family."""
    listed = [tuple(row) for row in rows.tolist()]
    return np.array(
        [[tuple(row[i] for i in s) == cell for row in listed] for s in subsets for cell in cells_of(listed, s)],
        dtype=float,
    ).T


@st.composite
def named_cases(draw):
    """A support with a few subsets of its features, of any order."""
    case = draw(supports(MODERATE, max_features=5, max_levels=3, max_rows=40))
    d = case.rows.shape[1]
    entries = st.lists(st.integers(0, d - 1), min_size=1, max_size=min(3, d), unique=True)
    return case, draw(st.lists(entries, max_size=4, unique_by=lambda s: tuple(sorted(s))))


@examples(40)
@given(drawn=named_cases(), route=st.sampled_from(["dense", "moments"]))
def test_a_named_family_is_orthogonal_and_its_fit_is_least_squares_over_it(drawn, route):
    case, interactions = drawn
    anova = fit(case, subsets=interactions, route=route)
    found = [subset_of(names) for names in anova.effects_]
    assert tuple(found) == family(interactions, [f"x{i}" for i in range(case.rows.shape[1])], case.sizes)
    effects = on_rows(anova, case.rows)
    means = [conditional_means(case.rows, case.probability, a, values) for a, values in effects.items()]
    assert max(float(np.abs(m).max(initial=0.0)) for m in means) <= 1e-12 * largest(effects)
    assert anova.certificate_.orthogonality <= 1e-12
    root = np.sqrt(case.probability)[:, None]
    columns = indicators(case.rows, found)
    solution = np.linalg.lstsq(root * columns, root * case.values, rcond=None)[0]
    np.testing.assert_allclose(sum(effects.values()), columns @ solution, atol=1e-9 * largest(effects))
    assert anova.certificate_.rank == np.linalg.matrix_rank(root * columns, tol=1e-8)
