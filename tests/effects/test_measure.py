"""What is measured on the rows is what two passes find, whether the route made them or not."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova.basis.functions import build_basis
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.effects.cancellation import near_redundant, small_directions
from exanova.effects.measure import Measured, measure
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select import growing_fit
from exanova.select.selected_fit import fit_selected
from exanova.select.selection_plan import plan_selection
from exanova.solve import evidence
from exanova.solve.request import Request
from exanova.solve.run import decompose
from strategies import MODERATE, examples, supports


def sample_of(case, outputs: int) -> Sample:
    values = np.random.default_rng(0).normal(size=(len(case.rows), outputs))
    codes = np.ascontiguousarray(case.rows.T.astype(np.uint8))
    return Sample(codes, case.weight, tuple(case.sizes), values, len(case.rows))


def assert_same(found: Measured, expected: Measured) -> None:
    for name in ("fitted", "covariance", "variance", "residual_means"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)


@examples(30)
@given(case=supports(MODERATE, max_rows=40, max_features=4), outputs=st.sampled_from([1, 3, 6]), ridge=st.booleans())
def test_the_passes_of_the_route_are_those_that_would_be_made(case, outputs, ridge):
    sample = sample_of(case, outputs)
    found = decompose(sample, Request(max_order=2, route="moments", ridge=0.1 * ridge))
    assert found.at_rows is not None
    assert found.at_rows.effects is found.values
    assert_same(measure(sample, found), measure(sample, replace(found, at_rows=None)))


def test_a_pass_over_other_effects_is_not_taken():
    rng = np.random.default_rng(1)
    sample = Sample(rng.integers(0, 3, (3, 30)).astype(np.uint8), np.ones(30), (3, 3, 3), rng.normal(size=(30, 1)), 30)
    found = decompose(sample, Request(max_order=1, route="moments"))
    other = replace(found, values=2 * found.values)
    np.testing.assert_allclose(measure(sample, other).fitted, 2 * measure(sample, found).fitted)


@pytest.mark.parametrize("route", ["dense", "grid", "matrix-free"])
def test_other_routes_are_passed_over_here(route):
    sample = Sample(
        np.array(list(np.ndindex(2, 3))).T.astype(np.uint8), np.ones(6), (2, 3), np.arange(12.0).reshape(6, 2), 6
    )
    found = decompose(sample, Request(max_order=None if route == "grid" else 2, route=route))
    np.testing.assert_allclose(measure(sample, found).fitted, sample.values, atol=1e-12)


@examples(20)
@given(case=supports(MODERATE, max_rows=40, max_features=4), ties=st.sampled_from(["share", "first"]))
def test_a_selected_family_in_canonical_order_keeps_what_its_passes_found(case, ties):
    sample = sample_of(case, 2)
    request = Request(max_order=2, max_terms=10_000, selection="screen", ties=ties)
    found, _ = fit_selected(sample, request, plan_selection(request, sample, 2), Progress(enabled=False))
    assert_same(measure(sample, found), measure(sample, replace(found, at_rows=None)))


@examples(20)
@given(
    case=supports(MODERATE, max_rows=40, max_features=4),
    order=st.sampled_from([1, 2]),
    kept=st.sampled_from([0, 8, 1000]),
    selection=st.sampled_from([None, "screen"]),
)
def test_the_gram_matrix_that_a_route_keeps_is_that_of_its_first_functions(case, order, kept, selection):
    sample = sample_of(case, 1)
    request = Request(max_order=order, route="moments", selection=selection, max_terms=selection and 10_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "KEPT_GRAM", kept)
        patch.setattr(growing_fit, "KEPT_GRAM", kept)
        if selection:
            plan = plan_selection(request, sample, 1)
            found, _ = fit_selected(sample, request, plan, Progress(enabled=False))
        else:
            found = decompose(sample, request)
    whole = Phi(found.family, sample).gram(found.basis)
    mains = int(found.basis.start[np.searchsorted(found.family.layout.order, 2)])
    assert len(found.gram) == (len(whole) if len(whole) <= kept else mains)
    np.testing.assert_allclose(found.gram, whole[: len(found.gram), : len(found.gram)], atol=1e-12)
    assert near_redundant(sample, found.family, 1, found.gram) == near_redundant(sample, found.family)


@examples(60)
@given(seed=st.integers(0, 2**32 - 1), independent=st.booleans())
def test_no_gram_matrix_is_needed_to_see_that_features_are_independent(seed: int, independent: bool) -> None:
    """On complete tables, under products of margins and under weights for which two features are nearly one."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 4, rng.integers(2, 4)).tolist())
    codes = np.array(list(product(*map(range, sizes)))).T.astype(np.uint8)
    margins = [rng.uniform(0.2, 1.0, n) for n in sizes]
    weight = np.prod([own[row] for own, row in zip(margins, codes, strict=True)], axis=0)
    if not independent:
        weight = np.where(codes[0] % 2 == codes[1] % 2, weight, 1e-9 * weight)
    sample = Sample(codes, weight, sizes, np.zeros((len(weight), 1)), 10**6)
    family = build_family(codes, weight, sizes, up_to_order(range(len(sizes)), 1))
    gram = Phi(family, sample).gram(build_basis(family))
    assert near_redundant(sample, family) == near_redundant(sample, family, gram=gram)
    if independent:
        assert near_redundant(sample, family) == ()


@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=8), st.floats(0.001, 1.5), st.integers(0, 10**6))
def test_the_directions_of_small_eigenvalues_are_those_and_no_others(sizes, limit, seed):
    assume(min(abs(size - limit) for size in sizes) > 1e-9)
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(sizes), len(sizes))))[0]
    found = small_directions(axes * sizes @ axes.T, limit)
    expected = axes[:, np.array(sizes) < limit]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)
