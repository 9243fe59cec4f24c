"""Gram matrices of indicators: exact for counts, and the same from every kernel and any number of threads."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exanova.basis.functions import build_basis
from exanova.data.sample import KnownRows
from exanova.design import passes
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.phi import gram, projection
from exanova.phi.bitsets import digits
from exanova.phi.monomials import monomials, reference_levels
from exanova.phi.operator import Phi
from strategies import MODERATE, Case, examples, supports

seeds = st.integers(0, 2**32 - 1)


def arrays(case):
    """Codes (d, r), weight (r,), values (r, m) and sizes of a case."""
    return case.rows.T.astype(np.uint8).copy(), case.weight, case.values, case.sizes


def counted(family, codes, weight, threads=1):
    """The indicators of a family and their Gram matrix, by bitsets for counts."""
    indicators = monomials(family, reference_levels(family))
    way = gram.counted_gram if weight.dtype.kind == "i" else gram.weighted_gram
    return indicators, way(family, indicators, codes, weight, threads=threads)


def counted_case(case, order):
    codes, weight, _, sizes = arrays(case)
    family = build_family(codes, weight.astype(float), sizes, up_to_order(range(len(sizes)), order))
    return family, *counted(family, codes, weight)


# Counts


def dense_gram(family, indicators, codes, weight):
    """The same matrix as a plain product of indicator columns, in Python integers."""
    columns = []
    for s, subset in enumerate(family.subsets):
        for cell, k in zip(family.codes_of(s).T, range(family.n_cells)[family.cells_of(s)], strict=True):
            if indicators.number[k] >= 0:
                columns.append((codes[list(subset)] == cell[:, None]).all(axis=0))
    dense = np.array(columns).astype(weight.dtype)
    return (dense * weight) @ dense.T


@examples(50)
@given(case=supports(), order=st.integers(0, 4))
def test_the_gram_matrix_is_a_product_of_indicators(case, order):
    """Bitset counts for whole weights, a blocked BLAS product for real ones; all orders, up to four."""
    codes, weight, _, _ = arrays(case)
    family, indicators, found = counted_case(case, order)
    assert found.dtype == weight.dtype
    exact = weight.dtype.kind == "i"
    np.testing.assert_allclose(found, dense_gram(family, indicators, codes, weight), rtol=0 if exact else 1e-12)


@examples(30)
@given(case=supports(("counts",)), order=st.integers(0, 3))
def test_whole_weights_count_as_repeated_rows(case, order):
    codes, weight, _, sizes = arrays(case)
    again = np.repeat(np.arange(len(weight)), weight)
    family = build_family(codes[:, again], np.ones(len(again)), sizes, up_to_order(range(len(sizes)), order))
    ones = np.ones(len(again), dtype=np.int64)
    _, repeated = counted(family, np.ascontiguousarray(codes[:, again]), ones)
    weighted_family, _, weighted = counted_case(case, order)
    assert np.array_equal(repeated, weighted)
    assert np.array_equal(family.weight, weighted_family.weight)


@given(weight=st.lists(st.integers(1, 2**40), min_size=1, max_size=20))
def test_binary_digits_add_up_to_the_weights(weight):
    total = np.zeros(len(weight), dtype=np.int64)
    for factor, rows in digits(np.array(weight)):
        total[rows] += factor
    assert total.tolist() == weight


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_of_more_indicators_than_a_tile_and_any_number_of_rows(rows, threads):
    rng = np.random.default_rng(rows)
    codes = rng.integers(0, 5, (6, rows)).astype(np.uint8)
    weight = rng.integers(1, 100, rows)
    family = build_family(codes, weight.astype(float), (5,) * 6, up_to_order(range(6), 3))
    indicators, found = counted(family, codes, weight, threads)
    np.testing.assert_array_equal(found, dense_gram(family, indicators, codes, weight))


@examples(40)
@given(case=supports(MODERATE), order=st.integers(0, 3), kind=st.sampled_from(["pure", "paper"]))
def test_gamma_from_counts_is_gamma_from_the_rows(case, order, kind):
    codes, _, _, _ = arrays(case)
    family, indicators, found = counted_case(case, order)
    basis = build_basis(family, kind, orthonormal=kind == "pure")
    phi = Phi(family, KnownRows(codes)).functions(basis)
    gamma = projection.projected(family, indicators, found.astype(float), basis)
    np.testing.assert_allclose(gamma, phi.T @ (case.probability[:, None] * phi), atol=1e-10)
    np.testing.assert_allclose(np.diagonal(gamma), 1.0, atol=1e-10)


# Kernels


def _sparse():
    """Forty rows of five features: pairs have holes, so that cells and keys of prefixes differ at order three."""
    rng = np.random.default_rng(0)
    rows = np.unique(np.vstack([rng.integers(0, 4, (36, 5)), np.full((4, 5), [[0], [1], [2], [3]])]), axis=0)
    return Case(rows, np.ones(len(rows), dtype=np.int64), rng.integers(-8, 9, (len(rows), 2)) / 4.0, "equal")


SPARSE = _sparse()


def passes_of(layout, codes, values, tables, threads):
    """Every pass: sums in keys, sums of all but the first subsets, values at rows, rows outside."""
    later = slice(min(1, len(layout.order) - 1), len(layout.order))
    return (
        passes.scatter(layout, codes, values, threads=threads),
        passes.scatter(layout, codes, values, later, threads=threads),
        passes.gather(layout, codes, tables, threads=threads),
        passes.outside(layout, codes, threads=threads),
    )


@examples(25)
@given(case=supports(), order=st.integers(0, 3), threads=st.sampled_from([1, 3]), seed=seeds)
@example(case=SPARSE, order=3, threads=2, seed=0)
def test_compiled_passes_are_the_numpy_passes(case, order, threads, seed):
    codes, weight, values, sizes = arrays(case)
    family = build_family(codes, weight.astype(float), sizes, up_to_order(range(len(sizes)), order))
    rng = np.random.default_rng(seed)
    tables = family.to_keys(rng.normal(size=(family.n_cells, 2)))
    plain = passes_of(family.layout, codes, values, tables, threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "COMPILED_FROM", 0)
        compiled = passes_of(family.layout, codes, values, tables, threads)
        rebuilt = build_family(codes, weight.astype(float), sizes, up_to_order(range(len(sizes)), order), threads)
    for ours, theirs in zip(plain, compiled, strict=True):  # a complete table is summed one axis at a time
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(rebuilt.cell_key, family.cell_key)
    np.testing.assert_allclose(rebuilt.weight, family.weight, rtol=1e-14)  # kernels sum real weights in four turns
    assert not plain[-1].any()


@examples(25)
@given(case=supports(), order=st.integers(0, 3), threads=st.sampled_from([1, 3]), seed=seeds)
@example(case=SPARSE, order=3, threads=2, seed=0)
def test_compiled_passes_on_new_rows_with_unseen_cells_and_unknown_levels(case, order, threads, seed):
    codes, weight, _, sizes = arrays(case)
    family = build_family(codes, weight.astype(float), sizes, up_to_order(range(len(sizes)), order))
    rng = np.random.default_rng(seed)
    tables = family.to_keys(rng.normal(size=(family.n_cells, 2)))
    new = np.stack([rng.integers(-1, n, 50) for n in sizes]).astype(np.int32)

    def both():
        return passes.gather(family.layout, new, tables, threads, new=True), passes.outside(family.layout, new, threads)

    plain = both()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "COMPILED_FROM", 0)
        compiled = both()
    np.testing.assert_array_equal(plain[0], compiled[0])
    np.testing.assert_array_equal(plain[1], compiled[1])
    seen = [{tuple(cell) for cell in family.codes_of(s).T.tolist()} for s in range(len(family.subsets))]
    expected = [
        any(tuple(row[list(subset)].tolist()) not in cells for subset, cells in zip(family.subsets, seen, strict=True))
        for row in new.T
    ]
    assert plain[1].tolist() == expected


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["counts", "real"])
def test_the_number_of_threads_changes_no_bit_of_the_counts(monkeypatch, compiled, kind):
    if compiled:
        monkeypatch.setattr(passes, "COMPILED_FROM", 0)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (8, 5000)).astype(np.uint8)
    weight = rng.integers(1, 9, 5000) if kind == "counts" else rng.uniform(0.1, 1, 5000)
    found = []
    for threads in (1, 2, 5):
        family = build_family(codes, weight.astype(float), (4,) * 8, up_to_order(range(8), 2), threads)
        found.append((family.weight, counted(family, codes, weight, threads)[1]))
    for mass, matrix in found[1:]:
        np.testing.assert_array_equal(mass, found[0][0])
        np.testing.assert_array_equal(matrix, found[0][1])


@pytest.mark.parametrize(("features", "levels"), [(3, 2), (6, 5)])
def test_weighted_counts_do_not_depend_on_how_they_are_added_up(features, levels):
    """Pair by pair or by products of matrices, with any number of threads, and as counts where weights are whole."""
    rng = np.random.default_rng(levels)
    codes = rng.integers(0, levels, (features, 700)).astype(np.uint8)
    weight = rng.integers(1, 9, 700)
    subsets = [(), *((i,) for i in range(features)), *combinations(range(features), 2)]
    family = build_family(codes, weight.astype(float), (levels,) * features, subsets)
    indicators = monomials(family, reference_levels(family))
    counted = gram.counted_gram(family, indicators, codes, weight)
    for way in (gram._added_gram, gram._multiplied_gram):
        threads = (1,) if way is gram._added_gram else ()
        found = projection.mirrored(way(family, indicators, codes, weight.astype(float), *threads))
        np.testing.assert_allclose(found, counted, rtol=1e-13)
    parts = rng.random(700)
    one, two = (gram.weighted_gram(family, indicators, codes, parts, threads) for threads in (1, 2))
    assert np.array_equal(one, two)
    assert np.array_equal(one, one.T)


@pytest.mark.parametrize("sparse", [0.0, np.inf])
def test_weights_of_either_sign_add_up(monkeypatch, sparse):
    """By pairs or by matrix products: the Gram matrix of signed weights is that of the positive less the negative."""
    monkeypatch.setattr(gram, "SPARSE", sparse)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (4, 300)).astype(np.uint8)
    subsets = [(), *((i,) for i in range(4)), (0, 1), (2, 3)]
    family = build_family(codes, np.ones(300), (3,) * 4, subsets)
    indicators = gram.monomials(family, gram.reference_levels(family))
    weight = rng.normal(size=300)
    dense = gram._dense_indicators(codes, gram.single_levels(family, indicators), indicators)
    expected = (dense * weight) @ dense.T
    assert np.allclose(gram.weighted_gram(family, indicators, codes, weight), expected, atol=1e-12)
