"""Standard errors of what is read off the effects: Shapley values, interactions, importances."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, InputError
from exanova.explain import row_errors
from exanova.explain.dividends import weight_matrix


def drawn(seed=0, n=400):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [3, 2, 3], (n, 3))
    rows[:, 2] = np.where(rng.random(n) < 0.4, rows[:, 0], rows[:, 2])
    y = rows[:, 0] * 0.5 + rows[:, 1] * rows[:, 2] * 0.3 + rng.normal(size=n) * 0.4
    return rows, np.stack([y, -2.0 * y + rng.normal(size=n)], axis=1), rng


def fitted(rows, values, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        return FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(rows, values)


def test_main_effects_alone_have_the_errors_of_their_cells():
    rows, y, _ = drawn()
    anova = fitted(rows, y, max_order=1)
    e = anova.explain(rows[:20], stderr=True)
    for i, name in enumerate(("x0", "x1", "x2")):
        effect = anova.effects_[name]
        assert np.allclose(e.stderr[:, i], effect.stderr[rows[:20, i]])
    assert e[3, "x1"].stderr.shape == (2,)
    assert np.allclose(e[:, :, 1].stderr, e.stderr[:, :, 1])
    assert anova.explain(rows[:2]).stderr is None
    frame = e.to_frame()
    assert np.allclose(np.array(frame["stderr of output 1"]), e.stderr[:, :, 1].ravel())


def test_effects_as_an_index_have_the_errors_of_their_cells():
    rows, y, _ = drawn()
    anova = fitted(rows, y[:, 0])
    found = anova.interactions(rows[:15], index="Moebius", order=2, stderr=True)
    for j, names in enumerate(found.subsets):
        effect = anova.effects_[names]
        place = {levels: k for k, levels in enumerate(effect.levels)}
        at = [place[tuple(str(row[int(n[1])]) for n in names)] for row in rows[:15]]
        assert np.allclose(found.stderr[:, j], effect.stderr[at, 0])
    assert "stderr" in found.to_frame()


@pytest.mark.parametrize("index", ["SV", "k-SII", "FSII"])
def test_the_covariance_of_all_cells_and_single_statistics_agree(index):
    rows, y, rng = drawn()
    cluster = rng.integers(0, 60, len(rows))
    for given in ({}, {"clusters": cluster}):
        anova = FunctionalANOVA(shrinkage=None).fit(rows, y, **given)
        state = anova.decomposition_
        dense = np.asarray(weight_matrix(state.family.subsets, index, 2)[1].todense())
        place = row_errors.cells_at(state.family, rows[:12].T.astype(np.int32))
        single = row_errors._by_statistics(state.family, state.uncertainty, place, dense)
        together = row_errors._by_cells(state.family, state.uncertainty, place, dense)
        assert np.allclose(single, together)


@pytest.mark.parametrize("given", [{}, {"shrinkage": None}])
def test_indices_of_one_effect_have_the_errors_of_their_weights(given):
    """Also where effects are not identified, and in cells never observed."""
    rows, y, rng = drawn()
    rows = np.column_stack([rows, rows[:, 0]])
    state = FunctionalANOVA(sampled=True, **given).fit(rows, y).decomposition_
    dense = np.diag(rng.choice([-2.0, 0.5, 1.0], len(state.family.subsets)))
    asked = np.vstack([rows[:12], rng.permuted(rows[:12], axis=0)]).T.astype(np.int32)
    place = row_errors.cells_at(state.family, asked)
    assert (place < 0).any()
    found = row_errors._of_single_effects(state.uncertainty, place, dense)
    weighed = row_errors._by_statistics(state.family, state.uncertainty, place, dense)
    assert np.isnan(weighed).any() == bool(given)  # a shrunken fit is unique
    np.testing.assert_allclose(found, weighed, rtol=1e-7, atol=1e-12)


def test_shapley_values_spread_over_refits_as_the_closed_form_says():
    rows, y, _ = drawn(n=500)
    anova = fitted(rows, y)
    linear = anova.explain(rows[:30], stderr=True).stderr
    anova.errors("bootstrap", n_refits=150)
    ratio = anova.explain(rows[:30], stderr=True).stderr / linear
    assert 0.93 < np.median(ratio) < 1.07
    assert 0.75 < ratio.min() < ratio.max() < 1.35


@pytest.mark.parametrize("kind", ["l1", "l2", "variance", "shapley", "shapley-effects"])
def test_importances_spread_over_refits_as_the_closed_form_says(kind):
    rows, y, _ = drawn(n=600)
    anova = fitted(rows, y)
    linear = anova.importance(kind, stderr=True)
    plain = anova.importance(kind)
    assert np.allclose(linear["value"], plain["value"])
    anova.errors("bootstrap", n_refits=200)
    refits = anova.importance(kind, stderr=True)
    ratio = np.array(refits["stderr"]) / np.array(linear["stderr"])
    assert (ratio > 0.8).all()
    assert (ratio < 1.25).all()


def test_importances_spread_over_fresh_samples_as_the_closed_form_says():
    """150 samples of 400 rows: the spread of squared norms and shares of clear effects, and their bias."""
    found = {"l2": [], "variance": []}
    errors = {"l2": [], "variance": []}
    for seed in range(150):
        rows, y, _ = drawn(seed, 400)
        anova = fitted(rows, y[:, 0], max_order=1)
        for kind, values in found.items():
            table = anova.importance(kind, by="subset", stderr=True)
            rank = np.argsort(table["subset"])
            values.append([np.array(table["value"])[rank], np.array(table["debiased"])[rank]])
            errors[kind].append(np.array(table["stderr"])[rank])
    for kind, values in found.items():
        spread = np.std([value for value, _ in values], axis=0)
        assert np.allclose(np.mean(errors[kind], axis=0) / spread, 1.0, atol=0.2)


def test_squares_of_noise_have_no_size_once_their_bias_is_taken_off():
    rng = np.random.default_rng(2)
    sums = np.zeros(2)
    for _ in range(60):
        rows = rng.integers(0, [4, 3], (300, 2))
        table = fitted(rows, rng.normal(size=300)).importance("l2", by="subset", stderr=True)
        sums += [np.sum(table["value"]), np.sum(table["debiased"])]
    assert abs(sums[1]) < 0.15 * sums[0]


def test_what_is_not_identified_has_no_error():
    rows, y, _ = drawn()
    rows = np.hstack([rows, rows[:, [1]]])
    anova = fitted(rows, y[:, 0], max_order=1)
    e = anova.explain(rows[:3], stderr=True)
    assert np.isnan(e.stderr[:, [1, 3]]).all()
    assert np.isfinite(e.stderr[:, [0, 2]]).all()
    table = anova.importance("l1", stderr=True)
    errors = dict(zip(table["feature"], table["stderr"], strict=True))
    assert np.isnan(errors["x1"])
    assert np.isfinite(errors["x0"])
    verdict = anova.significance()
    assert {s for s, known in zip(verdict["subset"], verdict["identified"], strict=True) if not known} == {"x1", "x3"}


def test_a_residual_that_is_spread_has_no_error():
    rows, y, _ = drawn()
    with pytest.raises(InputError, match="stderr=True"):
        fitted(rows, y).explain(rows, y, residual="spread", stderr=True)
