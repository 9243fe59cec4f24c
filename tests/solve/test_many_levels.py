"""Features of many levels: the answer of the dense route, without a matrix over their levels, in few iterations."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.basis.functions import build_basis
from exanova.basis.projector import Reflection
from exanova.basis.pure import pure_tables
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.solve import by_levels, level_blocks, low_orders
from exanova.solve.level_blocks import LevelBlocks

LEVELS = "levels factorised"


def uneven_table(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One column of many levels, some rare, and one that it determines; holes, weights, two outputs."""
    rng = np.random.default_rng(seed)
    rows, levels = int(rng.integers(20, 150)), int(rng.integers(5, 30))
    share = 1.0 / np.arange(1, levels + 1)
    many = rng.choice(levels, rows, p=share / share.sum())
    x = np.stack([rng.integers(0, 3, rows), many, rng.integers(0, 2, rows), rng.integers(0, 4, rows)], axis=1)
    if seed % 2:
        x[:, 3] = many // 5
    if seed % 3 == 0:
        x[:, 2] = x[:, 0] > 0
    weight = rng.integers(1, 5, rows) if seed % 4 else rng.uniform(0.05, 3.0, rows)
    return x.astype(str), weight, rng.normal(size=(rows, 2))


def sample_of(seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    rows, sizes = int(rng.integers(8, 40)), (int(rng.integers(2, 8)), 3, 4)
    codes = np.unique(np.stack([rng.integers(0, n, rows) for n in sizes]), axis=1)
    codes = np.stack([np.unique(row, return_inverse=True)[1] for row in codes]).astype(np.uint8)
    r = codes.shape[1]
    return Sample(codes, rng.uniform(0.1, 2.0, r), tuple(int(k) + 1 for k in codes.max(axis=1)), np.zeros((r, 1)), r)


def at_rows(sample: Sample, features: tuple[int, ...]) -> np.ndarray:
    """(r, cells) indicators of the cells of some features."""
    cell = np.unique(sample.codes[list(features)], axis=1, return_inverse=True)[1].ravel()
    return np.equal.outer(cell, np.unique(cell)).astype(float)


def projector(columns: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(r, r) projection in L2(p) on the span of columns, by brute force."""
    root = np.sqrt(p)[:, None]
    u, s, _ = np.linalg.svd(root * columns, full_matrices=False)
    u = u[:, s > 1e-10]
    return np.asarray((u @ u.T) * root.T / root)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]))
def test_agrees_with_the_dense_route_whatever_the_rows_of_a_level(seed: int, order: int) -> None:
    x, weight, y = uneven_table(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_levels, "FEWEST_LEVELS", 2)
        patch.setattr(low_orders, "ARROW_LEVELS", 2)
        dense, levels = (
            FunctionalANOVA(shrinkage=None, max_order=order, route=route).fit(x, y, sample_weight=weight)
            for route in ("dense", "matrix-free")
        )
    scale = max(np.abs(e.values).max() for e in dense.effects_.values())
    for key, effect in dense.effects_.items():
        np.testing.assert_allclose(levels.effects_[key].values, effect.values, atol=1e-9 * scale)
    certificate = levels.certificate_
    assert certificate.exact
    if order == 1:
        assert certificate.rank_by_order == dense.certificate_.rank_by_order
        assert certificate.redundant == dense.certificate_.redundant
    elif dense.certificate_.rank > sum(dense.certificate_.rank_by_order[:2]):
        assert LEVELS in certificate.method


@given(st.integers(0, 10_000), st.sampled_from([level_blocks.STACK_BYTES, 0]))
def test_blocks_are_the_projections_on_functions_of_pairs(seed: int, stack_bytes: int) -> None:
    sample = sample_of(seed)
    p, y, delta = sample.probability, np.random.default_rng(seed).normal(size=(sample.n_rows, 2)), 1e-3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_blocks, "STACK_BYTES", stack_bytes)
        blocks = LevelBlocks(sample, 0, [1, 2], delta)
    pairs, own = [at_rows(sample, (0, j)) for j in (1, 2)], projector(at_rows(sample, (0,)), p)
    np.testing.assert_allclose(blocks.project(y), projector(np.hstack(pairs), p) @ y, atol=1e-10)
    matrix = sum(projector(pair, p) - own for pair in pairs) + delta * np.eye(len(p))
    without_means = y - own @ y
    np.testing.assert_allclose(matrix @ blocks.solve(y), without_means, atol=1e-9)


@given(st.integers(0, 10_000))
def test_a_reflection_stands_in_for_the_table_of_a_feature(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(int(rng.integers(2, 9))))
    table, made = pure_tables(np.arange(len(p))[None], (len(p),), p[None])[0], Reflection(p)
    c, sums = rng.normal(size=(len(p) - 1, 2)), rng.normal(size=(len(p), 2))
    np.testing.assert_allclose(made @ c, table @ c, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made.T @ sums, table.T @ sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made.table(), table, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_an_arrow_is_the_elimination_of_all_main_effects(seed: int) -> None:
    sample = sample_of(seed)
    family = build_family(sample.codes, sample.mass, sample.sizes, [(), (0,), (1,), (2,)])
    basis = build_basis(family)
    whole = low_orders.eliminate(sample, family, basis, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(low_orders, "ARROW_LEVELS", 2)
        arrow = low_orders.eliminate(sample, family, basis, 1)
    assert isinstance(arrow, low_orders.Arrow)
    gram = low_orders.Phi(family, sample).gram(basis)
    mu = gram @ np.random.default_rng(seed).normal(size=(basis.n_functions, 2))
    np.testing.assert_allclose(arrow.solve(mu), whole.solve(mu), atol=1e-8)
    assert arrow.rank_by_order == whole.rank_by_order
    assert arrow.null.shape == whole.null.shape
    np.testing.assert_allclose(gram @ arrow.null, 0.0, atol=1e-12)


@pytest.mark.parametrize(("rows", "levels", "others"), [(2000, 100, 6), (3000, 366, 6), (6000, 1500, 4)])
def test_a_column_of_many_levels_converges_where_a_level_has_as_many_rows_as_functions(rows, levels, others):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, levels, rows)] + [rng.integers(0, others, rows) for _ in range(5)])
    y = np.sin(x[:, 0] / 50) + x[:, 1] * x[:, 2] + rng.normal(size=rows)
    anova = FunctionalANOVA(shrinkage=None, sampled=False, n_bins=None, route="matrix-free")
    plan = anova.plan(x.astype(str))
    certificate = anova.fit(x.astype(str), y).certificate_
    assert certificate.exact
    assert LEVELS in certificate.method
    assert certificate.iterations <= plan.passes
    assert certificate.iterations < 60


def test_main_effects_of_one_column_need_no_matrix_over_its_levels():
    rng = np.random.default_rng(0)
    levels, rows = 6000, 30_000
    x = np.column_stack([np.arange(rows) % levels, rng.integers(0, 5, rows), np.arange(rows) % 7])
    effect = rng.normal(size=levels)
    y = effect[x[:, 0]] + x[:, 1]
    anova = FunctionalANOVA(shrinkage=None, sampled=False, n_bins=None, max_order=1)
    plan = anova.plan(x)
    assert plan.route == "matrix-free"
    tracemalloc.start()
    try:
        certificate = anova.fit(x, y).certificate_
        assert tracemalloc.get_traced_memory()[1] < 8 * levels * levels / 3
    finally:
        tracemalloc.stop()
    assert plan.memory < 8 * levels * levels / 3
    assert certificate.exact
    assert certificate.unique
    assert certificate.r2[0] > 1 - 1e-12
