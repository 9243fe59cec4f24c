"""Passes between rows and cells: compiled loops against NumPy, and families that change without a pass."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova.data.sample import KnownRows
from exanova.design import passes
from exanova.design.family import build_family, extend_with_sums, keep_some
from exanova.design.pass_kernels import BLOCK
from exanova.design.subsets import up_to_order
from exanova.phi.operator import Phi
from selection_cases import codes_of
from strategies import MODERATE, examples, supports


def assert_equal(found, expected):
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if field.name == "layout":
            assert_equal(one, other)
        elif isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other


def varying(case):
    return [i for i, size in enumerate(case.sizes) if size > 1]


@pytest.mark.parametrize("outputs", [1, 3])
def test_compiled_passes_find_the_cells_of_every_order_in_every_block(monkeypatch, outputs):
    """Neighbouring subsets share the cells of their prefix, but not those of the block of rows before."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (5, BLOCK + 700)).astype(np.uint8)
    codes[4] = np.minimum(codes[0], codes[1])  # not every combination occurs
    family = build_family(codes, np.ones(codes.shape[1]), (3,) * 5, up_to_order(range(5), 5))
    layout, numbers = family.layout, range(len(family.subsets))
    values, tables = rng.normal(size=(codes.shape[1], outputs)), rng.normal(size=(family.n_keys, outputs))
    keys = [layout.key_start[s] + passes.keys_of_rows(layout, codes, s) for s in numbers]
    monkeypatch.setattr(passes, "COMPILED_FROM", 0)
    monkeypatch.setattr(passes, "BY_AXES_FROM", 10**9)
    sums = np.zeros((family.n_keys, outputs))
    for own in keys:
        np.add.at(sums, own, values)
    np.testing.assert_allclose(passes.scatter(layout, codes, values), sums, rtol=0, atol=1e-11)
    first = family.position[0, 1, 2]  # a run with the same prefix at the end of one block and the beginning of the next
    own = slice(int(layout.key_start[first]), int(layout.key_start[first + 3]))
    found = passes.scatter(layout, codes, values, slice(first, first + 3))
    np.testing.assert_allclose(found, sums[own], rtol=0, atol=1e-11)
    gathered = sum(tables[own] for own in keys)
    np.testing.assert_allclose(passes.gather(layout, codes, tables), gathered, rtol=0, atol=1e-11)


@examples(30)
@given(case=supports(MODERATE, max_features=4), order=st.integers(2, 4), data=st.data())
def test_some_later_subsets_are_kept_as_if_only_they_had_been_added(case, order, data):
    codes, weight = codes_of(case), case.weight.astype(float)
    before, subsets = up_to_order(varying(case), order - 1), up_to_order(varying(case), order)
    later = range(len(before), len(subsets))
    assume(later)
    kept = data.draw(st.lists(st.sampled_from(later), min_size=1, unique=True).map(sorted))
    family = build_family(codes, weight, case.sizes, subsets)
    expected = build_family(codes, weight, case.sizes, [*before, *(subsets[s] for s in kept)])
    assert_equal(keep_some(family, len(before), kept), expected)


@examples(30)
@given(case=supports(MODERATE, max_features=4), order=st.integers(1, 3))
def test_cells_and_sums_of_values_come_from_one_pass(case, order):
    codes, weight = codes_of(case), case.weight.astype(float)
    before, subsets = up_to_order(varying(case), order - 1), up_to_order(varying(case), order)
    family = build_family(codes, weight, case.sizes, before)
    weighted = np.hstack([weight[:, None], case.values])
    wider, sums = extend_with_sums(family, subsets[len(before) :], codes, weighted)
    assert_equal(wider, build_family(codes, weight, case.sizes, subsets))
    np.testing.assert_allclose(sums, Phi(wider, KnownRows(codes)).analyse(case.values)[family.n_cells :], atol=1e-12)
