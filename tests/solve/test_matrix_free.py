"""The matrix-free route: the same answer as the dense one, with projectors where tables would be too large."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.basis import functions, projector
from exanova.basis.projector import PureProjector
from exanova.basis.pure import pure_tables
from exanova.errors import InexactWarning, InputError, MemoryLimitError
from exanova.solve import by_levels, matrix_free


def small_table(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with holes, a column that another determines, whole-number weights and two outputs."""
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, k, rows) for k in (3, 2, 4, 3)], axis=1)
    x[:, 1] = x[:, 0] > 0
    return x, rng.integers(1, 5, rows), rng.normal(size=(rows, 2))


def largest_difference(a: FunctionalANOVA, b: FunctionalANOVA) -> float:
    assert list(a.effects_) == list(b.effects_)
    scale = max(np.abs(a.effects_[key].values).max() for key in a.effects_)
    return max(float(np.abs(a.effects_[k].values - b.effects_[k].values).max()) for k in a.effects_) / scale


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3]))
def test_agrees_with_the_dense_route_and_shares_as_it_does(seed: int, order: int) -> None:
    x, weight, y = small_table(seed)
    fits = [
        FunctionalANOVA(shrinkage=None, max_order=order, route=route).fit(x, y, sample_weight=weight)
        for route in ("dense", "matrix-free")
    ]
    assert fits[1].certificate_.route == "matrix-free"
    assert largest_difference(*fits) < 1e-9
    assert fits[1].certificate_.orthogonality < 1e-12
    assert fits[1].certificate_.exact


def test_says_that_the_rank_was_not_determined() -> None:
    x, weight, y = small_table(0)
    certificate = FunctionalANOVA(shrinkage=None, route="matrix-free").fit(x, y, sample_weight=weight).certificate_
    assert not certificate.rank_known
    assert certificate.unique is (False if certificate.rank < certificate.n_functions else None)
    assert "not determined" in str(certificate)


def test_orders_too_large_to_eliminate_still_fit_the_same_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_free, "MOST_ELIMINATED", 1)
    x, weight, y = small_table(3)
    fits = [
        FunctionalANOVA(shrinkage=None, max_order=3, route=route).fit(x, y, sample_weight=weight)
        for route in ("dense", "matrix-free")
    ]
    np.testing.assert_allclose(fits[0].predict(x), fits[1].predict(x), atol=1e-10)


@given(st.integers(0, 10_000), st.floats(0.2, 1.0))
def test_the_projector_is_the_projector_on_the_pure_space(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    sizes = (int(rng.integers(2, 6)), int(rng.integers(2, 6)))
    grid = np.stack(np.unravel_index(np.arange(sizes[0] * sizes[1]), sizes))
    cells = grid[:, rng.random(grid.shape[1]) < share]
    assume(cells.shape[1] > 0)
    p = rng.dirichlet(np.ones(cells.shape[1]))
    basis = pure_tables(cells, sizes, p[None])[0]
    made = PureProjector(cells, sizes, p)
    h = rng.normal(size=(cells.shape[1], 2))
    orthonormal = basis * np.sqrt(p)[:, None]
    np.testing.assert_allclose(made.project(h), orthonormal @ (orthonormal.T @ h), atol=1e-10)
    np.testing.assert_allclose(made.T @ h, made.project(h / np.sqrt(p)[:, None]), atol=1e-10)
    assert made.dimension == basis.shape[1]


def test_tables_and_projectors_give_the_same_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, y = small_table(5, rows=200)
    with_tables = FunctionalANOVA(shrinkage=None, route="dense").fit(x, y, sample_weight=weight)
    monkeypatch.setattr(projector, "LARGEST_TABLE", 5)
    monkeypatch.setattr(functions, "LARGEST_TABLE", 5)
    with_projectors = FunctionalANOVA(shrinkage=None).fit(x, y, sample_weight=weight)
    assert with_projectors.plan_.route == "matrix-free"
    assert with_projectors.certificate_.n_functions == with_tables.certificate_.n_functions
    assert largest_difference(with_tables, with_projectors) < 1e-9


def test_a_thousand_levels_on_each_side() -> None:
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, 1000, size=(51_300, 2)), axis=0)
    table = np.column_stack([cells, rng.integers(0, 3, len(cells))])
    effect = rng.normal(size=1000)[cells[:, 0]] * rng.normal(size=1000)[cells[:, 1]]
    anova = FunctionalANOVA(shrinkage=None, subsets=[("x0", "x1")], n_bins=None).fit(table, effect + table[:, 2])
    assert len(anova.effects_["x0", "x1"].levels) >= 50_000
    assert anova.plan_.route == "matrix-free"
    assert anova.certificate_.exact
    assert anova.certificate_.orthogonality < 1e-12
    assert anova.certificate_.r2[0] > 1 - 1e-12


@pytest.mark.parametrize("asked", [{"ties": "first"}, {"basis": "paper"}, {"ridge": 0.1}])
def test_what_it_cannot_do_is_refused(asked: dict[str, object]) -> None:
    x, _, y = small_table(1)
    with pytest.raises(InputError, match=r"cannot be combined with the matrix-free.*use basis='pure', ties='share'"):
        FunctionalANOVA(route="matrix-free", **{"shrinkage": None, **asked}).fit(x, y)  # type: ignore[arg-type]


def test_triples_with_too_many_cells_name_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "LARGEST_TABLE", 5)
    x, _, y = small_table(1, rows=200)
    with pytest.raises(MemoryLimitError, match="min_frequency= or n_bins=, or use max_order=2"):
        FunctionalANOVA(shrinkage=None, max_order=3).fit(x, y)


def test_the_plan_turns_to_it_when_the_gram_matrix_does_not_fit() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, size=(3000, 30))
    anova = FunctionalANOVA(shrinkage=None, max_order=2, memory_limit="120 MB")
    plan = anova.plan(x)
    assert plan.route == "matrix-free"
    unlimited = FunctionalANOVA(shrinkage=None, max_order=2).plan(x)
    assert unlimited.route == "moments"
    assert plan.memory <= 120_000_000 < unlimited.memory
    with pytest.raises(MemoryLimitError, match="120 MB"):
        FunctionalANOVA(shrinkage=None, max_order=2, route="moments", memory_limit="120 MB").plan(x)


# The price


def days(n, others, levels, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"day": rng.integers(0, 366, n).astype(str)}
    columns |= {f"c{k}": rng.integers(0, levels, n).astype(str) for k in range(others)}
    X = pd.DataFrame(columns)
    return X, np.sin(X["day"].astype(float) / 58).to_numpy() + rng.normal(0, 0.1, n)


@pytest.fixture
def without_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """No feature has enough levels to be solved level by level."""
    monkeypatch.setattr(by_levels, "FEWEST_LEVELS", 10**9)


@pytest.mark.usefixtures("without_levels")
@pytest.mark.parametrize(("n", "others", "levels"), [(20_000, 3, 10), (9_000, 5, 12)])
def test_the_iterations_of_a_column_of_days_are_foreseen(n, others, levels):
    X, y = days(n, others, levels)
    anova = FunctionalANOVA(shrinkage=None, sampled=False)
    plan = anova.plan(X)
    assert plan.route == "matrix-free"
    iterations = anova.fit(X, y).certificate_.iterations
    assert iterations / 4 <= plan.passes / 2 <= 4 * iterations


@pytest.mark.usefixtures("without_levels")
def test_as_many_functions_as_rows_are_priced_and_the_advice_is_to_merge_levels(monkeypatch):
    monkeypatch.setattr(matrix_free, "MOST_ITERATIONS", 300)
    X, y = days(8_000, 3, 10)
    anova = FunctionalANOVA(shrinkage=None, sampled=False)
    plan = anova.plan(X)
    assert plan.passes == 2 * 300
    with pytest.warns(InexactWarning, match="after 300 iterations; merge rare levels with min_frequency=") as caught:
        anova.fit(X, y)
    assert not any("weights" in str(w.message) or "route=" in str(w.message) for w in caught)


def test_an_iteration_is_priced_as_products_with_tables_and_not_as_making_them(monkeypatch):
    """Of triples with a thousand cells, tables are made once and multiplied by a vector in every iteration."""
    X = np.random.default_rng(0).integers(0, 10, (4000, 4))
    anova, spent = FunctionalANOVA(max_order=3, route="matrix-free", shrinkage=None), []
    for iterations in (0, 10):
        monkeypatch.setattr("exanova.solve.seconds.iterations_of", lambda _, count=iterations: count)
        spent.append(anova.plan(X).seconds)
    assert spent[1] - spent[0] < spent[0]
