"""Passes over complete tables, one axis at a time, against those that read every subset at every row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.design import lattice, passes
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from strategies import MODERATE, examples, supports


@examples(40)
@given(case=supports(MODERATE, max_features=4, max_levels=4, max_rows=60, complete=True), seed=st.integers(0, 99))
def test_both_passes_agree_with_reading_every_subset(case, seed):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    codes = case.rows.T.astype(np.uint8)
    family = build_family(codes, case.weight.astype(float), case.sizes, up_to_order(varying, len(varying)))
    assert lattice.is_lattice(family.layout) == bool(varying)
    if not varying:
        return
    tables = np.random.default_rng(seed).integers(-9, 10, (family.n_keys, 2)).astype(float)
    values = case.values * 4
    np.testing.assert_array_equal(
        lattice.scatter_rows(family.layout, codes, values), passes.scatter(family.layout, codes, values)
    )
    np.testing.assert_array_equal(
        lattice.gather_rows(family.layout, codes, tables), passes.gather(family.layout, codes, tables)
    )


@pytest.mark.parametrize(
    ("rows", "subsets"),
    [
        (np.ndindex(2, 3, 2), up_to_order(range(3), 2)),
        ([c for c in np.ndindex(2, 3, 2) if c != (1, 1, 1)], up_to_order(range(3), 3)),
        ([(0, 0, 0), (1, 1, 1)], up_to_order(range(3), 3)),
        (np.ndindex(2, 3, 2), [(), (0,), (1,), (2,), (0, 1)]),
        (np.ndindex(2, 3, 2), [()]),
    ],
    ids=["not all orders", "a hole", "two rows", "a family", "the intercept"],
)
def test_anything_else_is_no_lattice(rows, subsets):
    codes = np.array(list(rows)).T.astype(np.uint8)
    family = build_family(codes, np.ones(codes.shape[1]), codes.max(axis=1) + 1, subsets)
    assert not lattice.is_lattice(family.layout)


def test_a_fit_by_axes_is_the_fit_subset_by_subset(monkeypatch):
    X = np.array(list(np.ndindex(3, 2, 4)))
    y = np.random.default_rng(0).normal(size=len(X))
    plain = FunctionalANOVA(shrinkage=None, max_order=None, route="grid").fit(X, y)
    called = []
    monkeypatch.setattr(passes, "BY_AXES_FROM", 0)
    for name in ("scatter_rows", "gather_rows"):
        real = getattr(lattice, name)
        monkeypatch.setattr(lattice, name, lambda *given, real=real: (called.append(real), real(*given))[1])
    by_axes = FunctionalANOVA(shrinkage=None, max_order=None, route="grid").fit(X, y)
    assert {f.__name__ for f in called} == {"scatter_rows", "gather_rows"}
    np.testing.assert_allclose(by_axes.decomposition_.covariance, plain.decomposition_.covariance, atol=1e-14)
    assert by_axes.certificate_.reconstruction < 1e-13
    assert by_axes.certificate_.exact
