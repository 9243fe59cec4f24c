"""Supports: distinct rows, found exactly; weights that add up however the rows were split."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from exanova.data import Encoding, Support, check_weights, distinct, distinct_rows
from exanova.data.weights import group_totals
from exanova.errors import InputError, InputTypeError, MemoryLimitError

codes_arrays = st.tuples(st.integers(1, 4), st.integers(1, 30)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 2))
)


def three_levels(d):
    return Encoding.from_levels([f"f{i}" for i in range(d)], [["p", "q", "r"]] * d)


def as_dict(support):
    return dict(zip(map(tuple, support.codes.T.tolist()), support.weight.tolist(), strict=True))


@pytest.mark.parametrize("hashing", ["as it is", "everything collides", "some collide"])
@given(codes=codes_arrays)
@settings(max_examples=40, deadline=None)
def test_distinct_rows_are_exact_whatever_the_hash(hashing, codes):
    with pytest.MonkeyPatch.context() as patch:
        if hashing == "everything collides":
            patch.setattr(distinct, "hash_rows", lambda codes: np.zeros(codes.shape[1], dtype=np.uint64))
        elif hashing == "some collide":
            patch.setattr(distinct, "hash_rows", lambda codes: codes[0].astype(np.uint64))
        first, inverse = distinct_rows(codes)
    rows = [tuple(row) for row in codes.T]
    assert [rows[k] for k in first] == list(dict.fromkeys(rows))
    assert [rows[first[k]] for k in inverse] == rows
    assert all(rows.index(rows[k]) == k for k in first)
    assert first.dtype == inverse.dtype == np.int64


def test_real_collisions_of_the_hash_are_caught(monkeypatch):
    monkeypatch.setattr(distinct, "hash_rows", lambda codes: codes.sum(axis=0).astype(np.uint64))
    first, inverse = distinct_rows(np.array([[0, 1, 0], [1, 0, 1]]))
    assert (first.tolist(), inverse.tolist()) == ([0, 1], [0, 1, 0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_distinct_rows_of_any_integers(dtype):
    first, inverse = distinct_rows(np.array([[200, 3, 200], [0, 0, 0]], dtype=dtype))
    assert (first.tolist(), inverse.tolist()) == ([0, 1], [0, 1, 0])
    assert [part.tolist() for part in distinct_rows(np.empty((2, 0), dtype=dtype))] == [[], []]


@given(codes_arrays, st.data())
@settings(max_examples=60, deadline=None)
def test_equal_rows_are_merged_and_weights_add_up(codes, data):
    n = codes.shape[1]
    weight = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    weight[-1] += 1
    support = Support.from_rows(three_levels(len(codes)), codes, weight)
    expected = {}
    for row, own in zip(map(tuple, codes.T.tolist()), weight.tolist(), strict=True):
        if own:
            expected[row] = expected.get(row, 0) + own
    assert as_dict(support) == expected
    assert list(as_dict(support)) == list(expected)
    assert support.weight.dtype == np.int64
    assert support.codes.dtype == np.uint8
    assert support.codes.flags.c_contiguous
    assert support.total == weight.sum()
    assert math.isclose(support.probability.sum(), 1.0)


@given(codes_arrays, st.data())
@settings(max_examples=40, deadline=None)
def test_splitting_the_weight_of_a_row_changes_nothing(codes, data):
    n = codes.shape[1]
    weight = np.array(data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
    part = np.array([data.draw(st.integers(0, own)) for own in weight])
    whole = Support.from_rows(three_levels(len(codes)), codes, weight)
    split = Support.from_rows(
        three_levels(len(codes)), np.hstack([codes, codes]), np.concatenate([part, weight - part])
    )
    assert as_dict(whole) == as_dict(split)


def test_rows_of_unknown_levels_are_not_in_a_support():
    with pytest.raises(InputError, match="'f0' run from -1 to 1; expected 0 to 2"):
        Support.from_rows(three_levels(1), np.array([[-1, 1]]))


@given(arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)), elements=st.integers(0, 3)))
@settings(max_examples=60, deadline=None)
def test_a_pmf_is_its_cells(pmf):
    if not pmf.any():
        pmf[0, 0, 0] = 1
    support = Support.from_pmf(pmf)
    cells = {tuple(row): own for row, own in zip(support.table().tolist(), support.weight.tolist(), strict=True)}
    assert cells == {cell: pmf[cell] for cell in np.ndindex(pmf.shape) if pmf[cell]}
    assert support.is_complete == (support.n_rows == math.prod(support.sizes))
    for codes, size in zip(support.codes, support.sizes, strict=True):
        assert set(codes.tolist()) == set(range(size))
    np.testing.assert_allclose(Support.from_pmf(pmf / 7).probability, support.probability, rtol=1e-14)


def test_names_and_levels_of_a_pmf():
    support = Support.from_pmf(
        [[0.5, 0.0, 0.25], [0.25, 0.0, 0.0]], feature_names=["a", "b"], levels=[["u", None], [1, 2, 3]]
    )
    assert support.feature_names == ("a", "b")
    assert support.levels == (("u", None), (1, 3))
    assert support.labels == (("u", "(missing)"), ("1", "3"))
    assert support.table().tolist() == [["u", 1], ["u", 3], [None, 1]]
    assert support.table().dtype == object
    assert support.weight.dtype == np.float64
    assert (support.n_rows, support.n_features, support.is_complete) == (3, 2, False)


def test_a_product_is_the_outer_product():
    margins = [[0.2, 0.8], [1, 0, 3], [0.5]]
    support = Support.from_product(margins, feature_names=["a", "b", "c"], levels=[[0, 1], [0, 1, 2], [7]])
    assert support.sizes == (2, 2, 1)
    assert support.is_complete
    np.testing.assert_allclose(support.probability, np.outer([0.2, 0.8], [0.25, 0.75]).ravel())
    assert support.table().dtype == np.int64
    assert support.table()[:, 1].tolist() == [0, 2, 0, 2]
    assert Support.from_product([[1, 2], [3, 4]]).weight.tolist() == [3, 4, 6, 8]


@pytest.mark.parametrize(
    ("pmf", "options", "message"),
    [
        ([[0.5, math.nan]], {}, r"1 weight is NaN or infinite, the first at position \(0, 1\)"),
        ([0.5, math.inf], {}, "NaN or infinite, the first at position 1"),
        ([0.5, -0.5], {}, "negative, the first at position 1"),
        ([[0, 0]], {}, "All weights are zero"),
        (0.5, {}, "one axis for each feature"),
        ([], {}, "one axis for each feature"),
        (["a"], {}, "one axis for each feature"),
        ([[1, 1]], {"feature_names": ["a"]}, "1 feature names were given for 2 features"),
        ([[1, 1]], {"feature_names": ["a", "a"]}, "repeated"),
        ([[1, 1]], {"levels": [[0]]}, "Levels of 1 features were given for 2"),
        ([[1, 1]], {"levels": [[0], [0]]}, "'x1' has 2 levels"),
        ([[1, 1]], {"levels": [[0], [5, 5]]}, "expected 2 different ones"),
    ],
)
def test_unusable_distributions(pmf, options, message):
    with pytest.raises(InputError, match=message):
        Support.from_pmf(pmf, **options)


def test_unusable_products():
    with pytest.raises(InputError, match="No margin"):
        Support.from_product([])
    with pytest.raises(InputError, match="Margin 1 has the shape"):
        Support.from_product([[1], [[1]]])
    with pytest.raises(InputError, match="All weights are zero"):
        Support.from_product([[1], [0, 0]])
    with pytest.raises(InputError, match="too small for a float"):
        Support.from_product([[1, 1e-300], [1, 1e-300]])
    with pytest.raises(MemoryLimitError, match="1,099,511,627,776 cells"):
        Support.from_product([[1, 1]] * 40)
    with pytest.raises(InputTypeError, match="'x0' cannot be hashed"):
        Support.from_pmf([1, 1], levels=[[[1], [2]]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], r"shape \(2,\); expected \(3,\)"),
        ([[1, 2, 3]], r"shape \(1, 3\)"),
        ([1, math.nan, 1], "NaN or infinite, the first at position 1"),
        ([1, 1, -math.inf], "NaN or infinite, the first at position 2"),
        ([1, -1, 1], "negative"),
        ([0, 0, 0], "All weights are zero"),
    ],
)
def test_unusable_weights(weight, message):
    with pytest.raises(InputError, match=message):
        check_weights(weight, 3)


def test_weights_have_to_be_numbers():
    for weight in (["a", "b"], np.array([object(), 1], dtype=object), [1j, 1]):
        with pytest.raises(InputTypeError, match="expected real numbers"):
            check_weights(weight, 2)


def test_counts_are_told_from_other_weights_exactly():
    assert check_weights(None, 2).tolist() == [1, 1]
    for counts in ([True, False], [2.0, 0.0], np.array([1, 2], dtype=np.uint8), np.array([1, 2.0], dtype=object)):
        assert check_weights(counts, 2).dtype == np.int64
    for weight in ([1, 1 + 2**-52], [1e60, 1.0], [5e-324, 1]):
        checked = check_weights(weight, 2)
        assert checked.dtype == np.float64
        assert checked.tolist() == weight


def test_more_than_256_levels_need_more_bytes():
    encoding = Encoding.from_levels(["a"], [list(range(300))])
    assert Support.from_rows(encoding, np.arange(300)[None]).codes.dtype == np.uint16


# The compiled loops


@pytest.mark.parametrize("direct", [0, 2**22])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize(("features", "levels"), [(1, 3), (4, 3), (9, 60), (30, 120)])
def test_compiled_groups_are_those_of_sorting(monkeypatch, direct, dtype, features, levels):
    """By a table of all combinations, by exact keys, and by hashes that are verified (2^64 is exceeded by the last)."""
    rng = np.random.default_rng(features)
    low = -3 if np.iinfo(dtype).min < 0 else 2
    some = rng.integers(low, low + levels, (features, 1500)).astype(dtype)
    codes = np.ascontiguousarray(some[:, rng.integers(0, 1500, 9000)])
    plain = distinct_rows(codes)
    monkeypatch.setattr(distinct, "COMPILED_FROM", 0)
    monkeypatch.setattr(distinct, "DIRECT", direct)
    for mine, theirs in zip(distinct_rows(codes), plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_equal_hashes_of_different_rows_are_told_apart(monkeypatch):
    """With every multiplier 1 the hash is the sum of the codes: rows that are permutations of each other collide."""
    rng = np.random.default_rng(0)
    codes = rng.permuted(np.tile(np.arange(70, dtype=np.uint8), (500, 1)), axis=1).T.copy()[
        :, rng.integers(0, 500, 3000)
    ]
    plain = distinct_rows(codes)
    assert len(plain[0]) > 400
    monkeypatch.setattr(distinct, "COMPILED_FROM", 0)
    monkeypatch.setattr(distinct, "_multipliers", lambda count: np.ones(count, dtype=np.uint64))
    for mine, theirs in zip(distinct_rows(codes), plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("block", [1, 3, 10**6])
def test_blocks_of_codes_change_nothing(monkeypatch, block):
    from exanova.data import recoding

    rng = np.random.default_rng(block)
    codes, table = rng.integers(-1, 5, 100).astype(np.int8), np.array([4, 3, 7, 1, 0, -1], dtype=np.int16)
    monkeypatch.setattr(recoding, "BLOCK", block)
    assert recoding.recoded(table, codes).tolist() == table[codes].tolist()
    assert recoding.occurrences(codes, 6, -1).tolist() == np.bincount(codes.astype(int) + 1, minlength=6).tolist()
    weight = rng.random(100)
    ones = check_weights(None, 100)
    assert group_totals(ones, codes, 6, -1).tolist() == group_totals(np.ones(100, dtype=int), codes, 6, -1).tolist()
    np.testing.assert_allclose(group_totals(weight, codes, 6, -1), np.bincount(codes.astype(int) + 1, weights=weight))
