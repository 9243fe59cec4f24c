"""The paper's analytical case and the example its appendix overlooks, against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA, reference
from oracles import cell_masses, exact_decomposition


def analytical():
    """d = 5, X3 = X2, X5 = 1, the others uniform on {0, 1, 2} and independent; f = sign(X1 - X2 + X3 / 2)."""
    rows = [(a, b, b, c, 1) for a, b, c in product(range(3), repeat=3)]
    X = pd.DataFrame(rows, columns=["X1", "X2", "X3", "X4", "X5"])
    return X, np.sign(X["X1"] - X["X2"] + 0.5 * X["X3"]).to_numpy()


PAPER = {
    (): Fraction(1, 9),
    ("X1",): Fraction(14, 27),
    ("X2",): Fraction(2, 27),
    ("X4",): Fraction(0),
    ("X1", "X2"): Fraction(2, 27),
    ("X1", "X4"): Fraction(0),
    ("X2", "X4"): Fraction(0),
    ("X1", "X2", "X4"): Fraction(0),
}
SHARED = {
    (): Fraction(1, 9),
    ("X1",): Fraction(14, 27),
    ("X2",): Fraction(1, 54),
    ("X3",): Fraction(1, 54),
    ("X1", "X2"): Fraction(1, 54),
    ("X1", "X3"): Fraction(1, 54),
}
"""X2 and X3 take half of each effect of X2 alone: a quarter of its squared norm each, of the pair with X1 as well."""


@pytest.mark.parametrize("route", ["auto", "dense", "moments"])
@pytest.mark.parametrize("basis", ["pure", "paper"])
def test_the_analytical_case_as_the_paper_has_it(basis, route):
    X, f = analytical()
    anova = FunctionalANOVA(shrinkage=None, max_order=None, basis=basis, ties="first", route=route).fit(X, f)
    for names, expected in PAPER.items():
        assert anova.effects_[names].norm2[0] == pytest.approx(float(expected), abs=1e-12)
    for names in set(anova.effects_) - set(PAPER):
        assert "X3" in names
        assert anova.effects_[names].norm2[0] <= 1e-24
    assert not any("X5" in names for names in anova.effects_)
    assert anova.certificate_.rank == 27
    assert anova.certificate_.saturated
    np.testing.assert_allclose(anova.predict(X), f, atol=1e-12)


@pytest.mark.parametrize("route", ["dense", "moments"])
def test_x3_and_x5_are_not_selected(route):
    X, f = analytical()
    anova = FunctionalANOVA(shrinkage=None, max_order=None, basis="paper", ties="first", route=route).fit(X, f)
    used = {name for names, _ in anova.paper_functions_ for name in names}
    assert used == {"X1", "X2", "X4"}
    assert len(anova.paper_functions_) == 27
    codes = X.to_numpy().T.copy()
    codes[4] = 0
    chosen = reference.algorithm1(codes, np.full(27, 1 / 27), [3, 3, 3, 3, 1]).selected
    names = tuple((tuple(f"X{i + 1}" for i in subset), tuple(map(str, z))) for subset, z in chosen)
    assert anova.paper_functions_ == names
    with pytest.warns(FutureWarning, match="selected_ is now called paper_functions_") as caught:
        assert anova.selected_ == names
    assert caught[0].filename == __file__


@pytest.mark.parametrize("route", ["auto", "dense", "moments"])
def test_what_share_says_of_the_analytical_case(route):
    X, f = analytical()
    anova = FunctionalANOVA(shrinkage=None, max_order=None, route=route).fit(X, f)
    for names in anova.effects_:
        expected = float(SHARED.get(names, 0))
        assert anova.effects_[names].norm2[0] == pytest.approx(expected, abs=1e-12), names
    np.testing.assert_allclose(anova.effects_["X2"].values, anova.effects_["X3"].values, atol=1e-13)
    pair, copy = anova.effects_["X1", "X2"], anova.effects_["X1", "X3"]
    np.testing.assert_allclose(pair.values, copy.values, atol=1e-13)
    assert pair.levels == copy.levels
    shared = {r.features: r.shared_with for r in anova.certificate_.redundant}
    assert ("X2",) in shared.get(("X3",), ()) or ("X3",) in shared.get(("X2",), ())
    assert not anova.certificate_.unique


def test_the_numbers_of_share_follow_from_the_definition_in_fractions():
    X, f = analytical()
    kept = X.drop_duplicates(["X1", "X2"])  # X4 and X5 change nothing and would only take time
    rows = list(kept[["X1", "X2", "X3"]].itertuples(index=False, name=None))
    p = [Fraction(1, len(rows))] * len(rows)
    tables = exact_decomposition(rows, p, [Fraction(int(v)) for v in f[kept.index]])
    for subset, table in tables.items():
        masses = cell_masses(rows, p, subset)
        norm = sum(masses[cell] * value**2 for cell, value in table.items())
        assert norm == SHARED.get(tuple(f"X{i + 1}" for i in subset), 0)


def test_main_effects_of_the_analytical_case_by_hand():
    """E f = 1/3; E[f | X1] = -2/3, 2/3, 1; E[f | X2] = 2/3, 1/3, 0."""
    X, f = analytical()
    anova = FunctionalANOVA(shrinkage=None, max_order=None, ties="first").fit(X, f)
    np.testing.assert_allclose(anova.intercept_, [1 / 3], atol=1e-14)
    np.testing.assert_allclose(anova.effects_["X1"].values[:, 0], np.array([-2, 2, 3]) / 3 - 1 / 3, atol=1e-13)
    np.testing.assert_allclose(anova.effects_["X2"].values[:, 0], np.array([2, 1, 0]) / 3 - 1 / 3, atol=1e-13)


# {(0,0), (0,1), (1,0)}: the paper's function of the pair has mean -1, not 0

HOLE = np.array([[0, 0], [0, 1], [1, 0]])


def test_the_counter_example_has_no_pure_interaction():
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(HOLE, [1.0, 2.0, 5.0])
    assert anova.certificate_.rank_by_order == (1, 2, 0)
    assert not anova.effects_["x0", "x1"].values.any()
    np.testing.assert_allclose(anova.predict(HOLE), [1, 2, 5], atol=1e-13)
    # f = 8/3 + f_0 + f_1 with E f_i = 0: differences 5 - 1 and 2 - 1 fix both
    np.testing.assert_allclose(anova.effects_["x0"].values[:, 0], [-4 / 3, 8 / 3], atol=1e-13)
    np.testing.assert_allclose(anova.effects_["x1"].values[:, 0], [-1 / 3, 2 / 3], atol=1e-13)
    assert anova.certificate_.orthogonality <= 1e-12


def test_the_papers_function_of_the_counter_example_has_mean_minus_one():
    p = np.array([0.5, 0.25, 0.25])
    assert reference.phi(HOLE.T, p, (0, 1), (0, 0)) @ p == pytest.approx(-1)


def test_where_cells_are_missing_the_papers_basis_loses_orthogonality_and_the_certificate_shows_it():
    rng = np.random.default_rng(0)
    grid = np.array(list(product(range(4), range(3), range(3))))
    rows = grid[rng.permutation(len(grid))[:15]]  # 15 of 36: pairs have holes too
    f = rng.normal(size=15)
    paper = FunctionalANOVA(shrinkage=None, max_order=None, ties="first", basis="paper").fit(rows, f)
    pure = FunctionalANOVA(shrinkage=None, max_order=None, ties="first").fit(rows, f)
    assert paper.certificate_.orthogonality > 1e-3
    assert pure.certificate_.orthogonality <= 1e-12
    assert not paper.certificate_.exact
    assert any("basis='pure'" in note for note in paper.certificate_.notes)
    for anova in (paper, pure):
        np.testing.assert_allclose(anova.predict(rows), f, atol=1e-11)


def test_the_effect_of_a_constant_feature_is_zero():
    X, f = analytical()
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(X, f)
    effect = anova.effects_["X5"]
    assert effect.values.tolist() == [[0.0]]
    assert effect.probability.tolist() == pytest.approx([1.0])
