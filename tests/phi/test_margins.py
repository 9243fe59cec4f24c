"""Gram matrices from margins: the same whole numbers as every other way, for any family of pairs and any parts."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova.basis.functions import build_basis
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.phi import gram, margin_kernels, margins, projection
from exanova.phi.margins import count_margins, fewest_seconds, margin_gram, margins_of
from exanova.phi.monomials import monomials, reference_levels
from exanova.phi.projection import projected
from strategies import MODERATE, examples, supports

seeds = st.integers(0, 2**32 - 1)


def some_pairs(d: int, seed: int) -> list[tuple[int, ...]]:
    """The empty set, every feature, and some of the pairs."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(d), 2) if rng.random() < rng.choice([0.3, 1.0])]
    return [(), *((i,) for i in range(d)), *pairs]


def cut(rows: int, parts: int) -> list[slice]:
    """So many rows in parts."""
    bounds = np.linspace(0, rows, min(rows, parts) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(bounds)]


def by_brute_force(family, codes, weight):
    """The Gram matrix as a plain product of indicator columns."""
    basis = monomials(family, reference_levels(family))
    columns = []
    for s, subset in enumerate(family.subsets):
        for cell, number in zip(family.codes_of(s).T, basis.number[family.cells_of(s)], strict=True):
            if number >= 0:
                columns.append((codes[list(subset)] == cell[:, None]).all(axis=0))
    indicators = np.array(columns).astype(weight.dtype)
    return basis, (indicators * weight) @ indicators.T


@examples(60)
@given(case=supports(), seed=seeds, parts=st.integers(1, 4), threads=st.sampled_from([1, 3]))
def test_margins_give_the_gram_matrix_of_any_family_of_pairs(case, seed, parts, threads):
    codes, sizes = case.rows.T.astype(np.uint8).copy(), case.sizes
    family = build_family(codes, case.weight.astype(float), sizes, some_pairs(len(sizes), seed))
    basis, expected = by_brute_force(family, codes, case.weight)
    found = margins_of(family)
    assert found is not None
    lower = margin_gram(found, family, basis, (codes, case.weight, cut(len(case.weight), parts)), threads)
    exact = case.weight.dtype.kind == "i"
    np.testing.assert_allclose(projection.mirrored(lower), expected, rtol=0 if exact else 1e-12)


@examples(30)
@given(case=supports(("equal", "counts")), seed=seeds)
def test_every_margin_is_counted_once_and_every_union_is_in_one(case, seed):
    """Each margin holds all rows; no margin lies in another; every union of two members lies in one of them."""
    codes, sizes = case.rows.T.astype(np.uint8).copy(), case.sizes
    subsets = some_pairs(len(sizes), seed)
    family = build_family(codes, case.weight.astype(float), sizes, subsets)
    found = margins_of(family)
    counted = [set(row[row >= 0].tolist()) for row in found.unions]
    assert not any(a < b for a in counted for b in counted)
    assert len({tuple(sorted(a)) for a in counted}) == len(counted)
    unions = {tuple(sorted({*a, *b})) for a in subsets for b in subsets} - {()}
    assert all(any(set(union) <= own for own in counted) for union in unions)
    assert fewest_seconds(family, 1000) <= found.seconds(1000) * (1 + 1e-12)
    assert len(found.derived) == len(unions)
    tables = count_margins(found, codes, case.weight, cut(len(case.weight), 1), slice(0, len(counted)))
    assert tables.dtype == np.int64
    assert {tables[a:b].sum() for a, b in zip(found.start[:-1], found.start[1:], strict=True)} == {case.weight.sum()}


def example():
    rng = np.random.default_rng(3)
    sizes = (3, 4, 2, 5, 3, 3)
    codes = np.stack([rng.integers(0, n, 900) for n in sizes]).astype(np.uint8)
    return sizes, codes, rng.integers(1, 40, 900)


@pytest.mark.parametrize("group_bytes", [0, 3000, margins.GROUP_BYTES])
@pytest.mark.parametrize("parts", [1, 7, 900])
@pytest.mark.parametrize("real", [False, True])
def test_groups_parts_and_threads_change_no_bit(monkeypatch, group_bytes, parts, real):
    sizes, codes, weight = example()
    weight = weight / 7.0 if real else weight
    family = build_family(codes, weight.astype(float), sizes, up_to_order(range(6), 2))
    basis, found = monomials(family, reference_levels(family)), margins_of(family)
    whole = margin_gram(found, family, basis, (codes, weight, cut(900, 1)))
    monkeypatch.setattr(margins, "GROUP_BYTES", group_bytes)
    assert (len(found.groups()) > 1) == (group_bytes <= 3000)
    split = margin_gram(found, family, basis, (codes, weight, cut(900, parts)), threads=3)
    assert np.array_equal(whole, split)  # rows are added one after the other, whatever part they are in


def test_a_block_of_the_kernel_changes_nothing(monkeypatch):
    sizes, codes, weight = example()
    found = margins_of(build_family(codes, weight.astype(float), sizes, up_to_order(range(6), 2)))
    out = [np.zeros(found.n_cells, dtype=np.int64) for _ in range(2)]
    for loop, tables in zip((margin_kernels.count_cells, margin_kernels.count_cells.py_func), out, strict=True):
        loop(codes[:, :50], weight, found.sizes, found.unions, found.start, 0, len(found.unions), tables)
        monkeypatch.setattr(margin_kernels, "BLOCK", 7)
    assert np.array_equal(*out)


def test_gamma_has_the_same_bits_whichever_way_its_counts_were_made(monkeypatch):
    """Margins, bitsets and adding pair by pair end in the same whole numbers, and those in the same Gamma."""
    sizes, codes, weight = example()
    family = build_family(codes, weight.astype(float), sizes, up_to_order(range(6), 2))
    basis, found = build_basis(family), []
    for by_margins, sparse in ((1e12, 8), (0, 1e12), (0, 0)):
        monkeypatch.setattr(gram, "MARGINS", by_margins)
        monkeypatch.setattr(gram, "SPARSE", sparse)
        common = gram.common_rows(family, codes, weight)
        found.append(projected(family, common.indicators, common.gram, basis))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[0], found[0].T)


@examples(30)
@given(case=supports(MODERATE), order=st.integers(0, 3))
def test_projecting_in_place_is_projecting(case, order):
    codes, sizes = case.rows.T.astype(np.uint8).copy(), case.sizes
    family = build_family(codes, case.weight.astype(float), sizes, up_to_order(range(len(sizes)), order))
    basis, mono = build_basis(family), monomials(family, reference_levels(family))
    common = gram.common_rows(family, codes, case.weight).gram.astype(float)
    gamma = projection.projected(family, mono, common.copy(), basis)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "_own_indicators", lambda family, mono: np.zeros(len(family.subsets) + 1, dtype=int))
        elsewhere = projection.projected(family, mono, common, basis)
    np.testing.assert_allclose(gamma, elsewhere, atol=1e-12)


def test_higher_orders_and_very_many_features_have_no_margins(monkeypatch):
    sizes, codes, weight = example()
    triples = build_family(codes, weight.astype(float), sizes, up_to_order(range(6), 3))
    assert margins_of(triples) is None
    assert margins_of(triples.restricted(22)) is not None
    monkeypatch.setattr(margins, "LARGEST_LISTING", 10)
    assert margins_of(triples.restricted(22)) is None


def test_the_price_prefers_bitsets_for_few_levels_and_margins_for_many():
    """As measured: margins from about four levels on, and for counts always (bitsets take a pass per digit)."""

    def prefers_margins(levels: int, counts: bool) -> bool:
        rng = np.random.default_rng(levels)
        codes = rng.integers(0, levels, (12, 4000)).astype(np.uint8)
        family = build_family(codes, np.ones(4000), (levels,) * 12, up_to_order(range(12), 2))
        weight = np.resize(rng.integers(1, 2**30, 4000) if counts else np.ones(4000, dtype=np.int64), 10**6)
        by_margins = margins.LOADING + margins_of(family).seconds(len(weight))
        assert gram.gram_seconds(family, family.n_cells, weight) <= by_margins
        return gram.gram_seconds(family, build_basis(family).n_functions, weight) == by_margins

    assert [prefers_margins(n, counts=False) for n in (2, 3, 6, 10)] == [False, False, True, True]
    assert prefers_margins(3, counts=True)
