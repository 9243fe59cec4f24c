"""Fits that grow: a factor and a Gram matrix made in rounds are those made at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova.data.sample import KnownRows, Sample
from exanova.design.subsets import by_order, up_to_order
from exanova.phi import growing_gram
from exanova.phi.growing_gram import GrowingGram
from exanova.phi.operator import Phi
from exanova.select.growing_fit import GrowingFit
from exanova.solve.elimination import factorise, solve
from exanova.solve.float_factor import FloatFactor
from exanova.solve.request import Request
from exanova.solve.run import decompose
from strategies import MODERATE, Case, examples, supports

seeds = st.integers(0, 2**32 - 1)


@st.composite
def gram_matrices(draw, most=40):
    """A Gram matrix with unit diagonal, some columns spanned by earlier ones; and sorted cuts of its columns."""
    rng = np.random.default_rng(draw(seeds))
    q = draw(st.integers(1, most))
    columns = rng.standard_normal((q + 5, q))
    for j in range(1, q):
        if draw(st.booleans()):
            columns[:, j] = columns[:, rng.integers(0, j)] if draw(st.booleans()) else columns[:, :j].sum(axis=1)
    columns /= np.linalg.norm(columns, axis=0)
    cuts = sorted({*draw(st.lists(st.integers(1, q), max_size=4)), q})
    return columns.T @ columns, cuts


def grown(gram, cuts, **limits):
    factor = FloatFactor(capacity=1, **limits)
    for start, end in zip([0, *cuts], cuts, strict=False):
        factor.append(gram[start:end, :end])
    return factor


# FloatFactor


@examples(60)
@given(drawn=gram_matrices(), ties=st.sampled_from(["share", "first"]), seed=seeds)
def test_a_factor_of_several_batches_is_the_factor_of_all(drawn, ties, seed):
    gram, cuts = drawn
    factor = grown(gram, cuts)
    once = factorise(np.asfortranarray(gram.copy()), [slice(0, len(gram))], "first")
    np.testing.assert_array_equal(np.flatnonzero(factor.kept), once.orders[0].pivots[: factor.rank])
    orders = [slice(0, len(gram))]
    mu = gram @ np.random.default_rng(seed).standard_normal((len(gram), 2))
    at_once = solve(factorise(np.asfortranarray(gram.copy()), orders, ties), mu)
    np.testing.assert_allclose(solve(factor.factor(orders, ties), mu), at_once, atol=1e-8)


@examples(30)
@given(drawn=gram_matrices(), seed=seeds)
def test_orders_of_a_grown_factor_are_eliminated_one_after_the_other(drawn, seed):
    gram, cuts = drawn
    orders = [slice(a, b) for a, b in zip([0, *cuts], cuts, strict=False)]
    mu = gram @ np.random.default_rng(seed).standard_normal((len(gram), 1))
    for ties in ("share", "first"):
        expected = solve(factorise(np.asfortranarray(gram.copy()), orders, ties), mu)
        np.testing.assert_allclose(solve(grown(gram, cuts).factor(orders, ties), mu), expected, atol=1e-7)


@pytest.mark.parametrize("size", [127, 128, 129, 300])
def test_a_factor_of_more_functions_than_a_panel(size):
    rng = np.random.default_rng(size)
    columns = rng.standard_normal((size, size))
    columns[:, 1::7] = columns[:, ::7][:, : columns[:, 1::7].shape[1]]
    columns /= np.linalg.norm(columns, axis=0)
    gram = columns.T @ columns
    factor = grown(gram, [size // 3, size // 2, size])
    assert factor.rank == np.linalg.matrix_rank(columns)
    assert not factor.kept[1::7].any()
    lower = factor.factor([slice(0, size)], "first").orders[0]
    rebuilt = np.empty((size, size))
    rebuilt[np.ix_(lower.pivots, lower.pivots)] = lower.lower @ lower.lower.T
    np.testing.assert_allclose(rebuilt, gram, atol=1e-10)


@examples(40)
@given(drawn=gram_matrices(), most=st.integers(1, 20))
def test_the_rank_stops_at_its_limit_with_the_first_functions_that_raise_it(drawn, most):
    gram, cuts = drawn
    whole, limited = grown(gram, cuts), grown(gram, cuts, max_rank=most)
    assert limited.rank == min(most, whole.rank)
    assert limited.full == (limited.rank == most)
    np.testing.assert_array_equal(np.flatnonzero(limited.kept), np.flatnonzero(whole.kept)[:most])


@examples(60)
@given(drawn=gram_matrices(), seed=seeds)
def test_a_factor_forgets_functions_that_added_nothing_and_goes_on(drawn, seed):
    gram, cuts = drawn
    rng = np.random.default_rng(seed)
    factor, left = FloatFactor(capacity=4), np.zeros(0, dtype=int)
    for start, end in zip([0, *cuts], cuts, strict=False):
        new = np.arange(start, end)
        together = np.concatenate([left, new])
        factor.append(gram[np.ix_(new, together)])
        keep = factor.kept[len(left) :] | (rng.random(len(new)) < 0.3)
        factor.forget(keep)
        left = np.concatenate([left, new[keep]])
        assert factor.size == len(left)
    expected = grown(gram, cuts)
    np.testing.assert_array_equal(left[factor.kept], np.flatnonzero(expected.kept))
    mu = gram[:, :1]
    whole, small = [slice(0, len(gram))], [slice(0, len(left))]
    np.testing.assert_allclose(
        solve(factor.factor(small, "first"), mu[left])[factor.kept],
        solve(expected.factor(whole, "first"), mu)[expected.kept],
        atol=1e-8,
    )


# GrowingGram


def codes_of(case):
    return np.ascontiguousarray(case.rows.T).astype(np.uint8)


@examples(50)
@given(
    case=supports(MODERATE, max_features=4),
    kind=st.sampled_from(["pure", "paper"]),
    seed=seeds,
    threads=st.sampled_from([1, 2]),
    block=st.sampled_from([3, 2048]),
)
def test_rows_of_gamma_are_those_of_the_functions_on_the_rows(case, kind, seed, threads, block):
    """Also where indicators are counted in many small blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing_gram, "COUNT_BLOCK", block)
        check_rows_of_gamma(case, kind, seed, threads)


def check_rows_of_gamma(case, kind, seed, threads):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    assume(varying)
    gram = GrowingGram(codes_of(case), case.weight, case.sizes, kind=kind, orthonormal=kind == "pure", threads=threads)
    rng = np.random.default_rng(seed)
    blocks = []
    for order, subsets in by_order(up_to_order(varying, 3)):
        if order == 0:
            continue
        subsets = [subsets[k] for k in rng.permutation(len(subsets))] if order > 1 else subsets
        for part in np.array_split(np.arange(len(subsets)), 2) if order > 1 else [np.arange(len(subsets))]:
            if len(part):
                blocks.append(gram.add([subsets[k] for k in part]))
    phi = Phi(gram.cells.family, KnownRows(codes_of(case))).functions(gram.basis)
    direct = phi.T @ (case.probability[:, None] * phi)
    first = 0
    for rows in blocks:
        last = first + rows.shape[0]
        assert rows.shape[1] == last
        np.testing.assert_allclose(rows, direct[first:last, :last], atol=1e-10 * max(1.0, np.abs(direct).max()))
        first = last
    assert first == gram.basis.n_functions


def test_a_triple_without_its_pairs_brings_their_cells_and_no_functions():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (4, 50)).astype(np.uint8)
    gram = GrowingGram(codes, np.ones(50, dtype=np.int64), (3,) * 4)
    gram.add([(i,) for i in range(4)])
    rows = gram.add([(0, 2, 3)])
    phi = Phi(gram.cells.family, KnownRows(codes)).functions(gram.basis)
    np.testing.assert_allclose(rows, (phi.T @ phi / 50)[-len(rows) :], atol=1e-12)
    dimension = dict(zip(gram.cells.family.subsets, np.diff(gram.basis.start), strict=True))
    assert [dimension[pair] for pair in ((0, 2), (0, 3), (2, 3))] == [0, 0, 0]


def sparse_case(kind="equal"):
    rng = np.random.default_rng(11)
    rows = np.unique(rng.integers(0, 3, (60, 5)), axis=0)
    weight = {"equal": np.ones(len(rows), dtype=np.int64), "counts": rng.integers(1, 6, len(rows))}
    chosen = weight.get(kind, rng.uniform(0.5, 2.0, len(rows)))
    return Case(rows, chosen, rng.normal(size=(len(rows), 2)), kind)


@pytest.mark.parametrize("kind", ["equal", "counts", "real"])
def test_what_was_forgotten_leaves_no_trace(kind):
    case = sparse_case(kind)
    mains, pairs = [(i,) for i in range(5)], up_to_order(range(5), 2)[6:]
    gram, direct = (GrowingGram(codes_of(case), case.weight, case.sizes) for _ in range(2))
    gram.add(mains)
    gram.add(pairs[:6])
    gram.keep_of_last(6, [7, 9])
    direct.add(mains)
    direct.add([pairs[1], pairs[3]])
    assert gram.cells.family.subsets == direct.cells.family.subsets
    np.testing.assert_allclose(gram.add(pairs[6:]), direct.add(pairs[6:]), atol=1e-12)


# GrowingFit


@examples(30)
@given(
    case=supports(MODERATE, max_features=4), ties=st.sampled_from(["share", "first"]), ridge=st.sampled_from([0, 0.5])
)
def test_a_fit_that_grew_is_the_fit_of_the_family_it_reached(case, ties, ridge):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    assume(varying)
    family = tuple(up_to_order(varying, 3))
    data = Sample(codes_of(case), case.weight, case.sizes, case.values, len(case.rows))
    request = Request(subsets=family, ties=ties, route="moments", ridge=ridge)
    fit = GrowingFit(data, request, capacity=4)
    for order, subsets in by_order(family):
        for part in (subsets[:2], subsets[2:]) if order > 1 else (subsets,):
            if order and part:
                fit.add(part)
    solution, direct = fit.solve(), decompose(data, request)
    assert solution.rank == direct.solution.rank
    scale = max(1.0, float(np.abs(direct.solution.coefficients).max()))
    assert fit.family.subsets == direct.family.subsets
    np.testing.assert_allclose(solution.coefficients, direct.solution.coefficients, atol=1e-7 * scale)
