"""Passes over pairs by products of matrices: against the passes that read tables."""

from __future__ import annotations

from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.design import passes, products
from exanova.design.family import build_family
from exanova.design.products import PairProducts, products_are_faster
from exanova.design.subsets import up_to_order
from exanova.phi import operator
from strategies import MODERATE, examples, supports

TOLERANCE = 1e-13


@examples(40)
@given(case=supports(MODERATE, max_features=6, max_levels=5), threads=st.sampled_from([1, 2]), data=st.data())
def test_products_sum_and_read_what_tables_do(case, threads, data):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    pairs = list(combinations(varying, 2))
    assume(pairs)
    chosen = sorted(data.draw(st.sets(st.sampled_from(pairs), min_size=1)))
    codes = np.ascontiguousarray(case.rows.T.astype(np.uint8))
    mains = up_to_order(varying, 1)
    family = build_family(codes, case.weight.astype(float), case.sizes, [*mains, *chosen])
    run = slice(len(mains), len(family.subsets))
    by_products = PairProducts(family.layout.part(run.start, run.stop), codes, threads)
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(family.n_keys, 2))
    read = passes.gather(family.layout.part(run.start, run.stop), codes, tables)
    np.testing.assert_allclose(by_products.gather(tables), read, atol=TOLERANCE * len(chosen) * np.abs(tables).max())
    values = rng.normal(size=(codes.shape[1], 2))
    sums = passes.scatter(family.layout, codes, values, run)
    np.testing.assert_allclose(by_products.scatter(values), sums, atol=TOLERANCE * np.abs(values).sum())


def many_pairs(rows=3000, features=24):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (rows, features)).astype(np.uint8)
    X[:, 1] = np.where(rng.random(rows) < 0.5, X[:, 0], X[:, 1])
    return X, rng.normal(size=(rows, 2)) + np.stack([X[:, 0] == X[:, 1], X[:, 2] * X[:, 3]], axis=1)


@pytest.mark.parametrize("sooner", [True, False])
def test_the_decomposition_does_not_depend_on_how_rows_are_passed(sooner):
    X, y = many_pairs()
    other = FunctionalANOVA(shrinkage=None, max_order=2, route="moments").fit(X, y)
    with (
        mock.patch.object(passes, "COMPILED_FROM", 0),
        mock.patch.object(products, "PRODUCTS_PER_READ", 10**6 if sooner else 0),
        mock.patch.object(operator, "PairProducts", wraps=PairProducts) as made,
    ):
        anova = FunctionalANOVA(shrinkage=None, max_order=2, route="matrix-free").fit(X, y)
    assert made.called == sooner
    assert anova.certificate_.exact
    scale = max(np.abs(table.values).max() for table in other.effects_.values())
    for names, table in other.effects_.items():
        np.testing.assert_allclose(anova.effects_[names].values, table.values, atol=1e-10 * scale)


def test_products_are_for_dense_families_of_pairs():
    codes = np.zeros((60, 4), dtype=np.uint8)
    codes[:, 1:] = np.arange(3)
    everything = build_family(codes, np.ones(4), (3,) * 60, up_to_order(range(60), 2))
    assert products_are_faster(everything.layout.part(61, len(everything.subsets)))
    assert not products_are_faster(everything.layout.part(0, 61))
    assert not products_are_faster(everything.layout.part(61, 64))
