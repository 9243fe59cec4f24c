"""Laws of the errors of shrunken effects: the influence of a residual, what shrinking takes away, designs, limits."""

from __future__ import annotations

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.infer import influence, posterior_errors


def drawn(n, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [3, 2, 3], (n, 3))
    rows[:, 2] = np.where(rng.random(n) < 0.4, rows[:, 0], rows[:, 2])
    return rows, rows[:, 0] * 0.5 + rows[:, 1] * rows[:, 2] * 0.3 + rng.normal(size=n) * noise, rng


def shrunk(rows, y, **given):
    anova = FunctionalANOVA(max_order=2, sampled=True, n_jobs=1).fit(rows, y, **given)
    assert anova.decomposition_.uncertainty.fitted.posterior is not None, "nothing was shrunk"
    return anova


def stderr(anova):
    return np.concatenate([effect.stderr for effect in anova.effects_.values()])


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_residual_moves_shrunken_effects_by_the_map_of_the_posterior_mean(monkeypatch, by_rows):
    """Against the map from values to effects, written out: how the value of a row moves every cell."""
    monkeypatch.setattr("exanova.shrink.cost.by_rows", lambda rows, functions: by_rows)
    rows, y, _ = drawn(80)
    anova = shrunk(rows, y)
    known = anova.decomposition_.uncertainty
    part, residual = known.fitted.posterior.part_of(0)
    scale = known.fitted.posterior.scale(part)
    sample, family, prior = known.fitted.sample, anova.decomposition_.family, known.fitted.posterior.prior
    z, d = prior.on_rows(family, sample.codes) * scale, sample.copies
    m = np.linalg.inv(np.eye(z.shape[1]) + z.T @ (d[:, None] * z))
    expected = prior.on_cells(family, scale[:, None] * (m @ z.T * d))
    engine = known.engine
    own = engine.drawn[0].influence
    moved = influence.leverages_of_rows(own, influence.places(own, slice(None)))
    np.testing.assert_allclose((moved.T * sample.probability)[1:], expected[1:], atol=1e-9)
    on_cells = prior.on_cells(family, scale[:, None] * m)
    taken = residual * np.square(on_cells).sum(axis=1)
    np.testing.assert_allclose(engine.given_rows(0, np.eye(family.n_cells)), taken, atol=1e-12)
    total = known.stderr[:, 0] ** 2 / known.unit**2
    np.testing.assert_allclose(total, engine.by_noise[:, 0] + taken, rtol=1e-9)
    every = engine.all_cells[0]
    for s in range(len(family.subsets)):
        own = family.cells_of(s)
        np.testing.assert_allclose(every[own, own], engine.block(own)[0], atol=1e-12)
    np.testing.assert_allclose(engine.variances(0, np.eye(family.n_cells))[1:], total[1:], rtol=1e-9)


def test_what_is_hardly_shrunk_has_the_errors_of_an_exact_fit():
    """Also where residuals are far from alike: noise that is ten times as large in one level."""
    rows, _, rng = drawn(600)
    y = 0.5 * rows[:, 0] + rows[:, 1] * rows[:, 2] + rng.normal(size=600) * np.where(rows[:, 0] == 2, 1.0, 0.1)
    anova = shrunk(rows, y)
    exact = FunctionalANOVA(max_order=2, shrinkage=None, sampled=True, n_jobs=1).fit(rows, y)
    for names in (("x0",), ("x1",), ("x2",)):
        np.testing.assert_allclose(anova.effects_[names].stderr, exact.effects_[names].stderr, rtol=0.05)


def test_clusters_of_one_row_are_rows_and_clusters_of_alike_rows_are_not():
    rows, y, rng = drawn(240)
    plain = stderr(shrunk(rows, y))
    np.testing.assert_allclose(stderr(shrunk(rows, y, clusters=rng.permutation(240))), plain, rtol=1e-9)
    # Influences on a shrunken fit have a mean that is only nearly zero, and strata are centred.
    np.testing.assert_allclose(stderr(shrunk(rows, y, strata=np.zeros(240))), plain, rtol=2e-3)
    rows, clusters = np.repeat(rows[:60], 8, axis=0), np.repeat(np.arange(60), 8)
    y = rows[:, 0] + np.repeat(rng.normal(size=60), 8) + 0.1 * rng.normal(size=480)
    told, untold = (shrunk(rows, y, clusters=given).effects_["x0"].stderr for given in (clusters, None))
    assert (told > 1.7 * untold).all()  # eight alike say little more than one


def test_outputs_of_one_fit_have_the_errors_they_have_alone():
    rows, y, rng = drawn(150)
    other = 4.0 * rows[:, 1] * (rows[:, 2] == 1) + rng.normal(size=150)
    both = shrunk(rows, np.column_stack([y, other, np.full(150, 2.0)]))
    for k, values in enumerate((y, other)):
        alone = shrunk(rows, values)
        np.testing.assert_allclose(stderr(both)[1:, k], stderr(alone)[1:, 0], rtol=0.2)
    assert (stderr(both)[:, 2] == 0).all()


def test_functions_too_many_for_a_matrix_have_the_errors_of_their_posterior(monkeypatch):
    rows, y, _ = drawn(60)
    measured = stderr(shrunk(rows, y))
    monkeypatch.setattr(posterior_errors, "MOST_FUNCTIONS", 0)
    anova = shrunk(rows, y)
    known = anova.decomposition_.uncertainty
    assert anova.errors().method == "posterior"
    posterior = known.fitted.posterior.cell_variances(anova.decomposition_.family)
    assert (stderr(anova) ** 2 >= (1 - 1e-9) * posterior * known.unit**2).all()
    assert np.abs(np.log(stderr(anova) / measured)).max() < 0.7
    assert np.isfinite(anova.significance()["p"]).any()


@pytest.mark.parametrize("clusters", [False, True])
def test_the_columns_of_a_fit_give_the_errors_of_all_functions(monkeypatch, clusters):
    """Where functions are too many for a matrix, those that the fit used stand for them: here the same space."""
    monkeypatch.setattr("exanova.shrink.cost.by_rows", lambda rows, functions: False)
    rows, _, rng = drawn(300)
    y = 0.5 * rows[:, 0] + rows[:, 1] * rows[:, 2] + rng.normal(size=300) * np.where(rows[:, 0] == 2, 1.0, 0.1)
    given = {"clusters": rng.integers(0, 60, 300)} if clusters else {}
    every = shrunk(rows, y, **given)
    assert every.decomposition_.uncertainty.engine.measured
    monkeypatch.setattr(posterior_errors, "MOST_FUNCTIONS", every.certificate_.n_functions - 1)
    some = shrunk(rows, y, **given)
    engines = [anova.decomposition_.uncertainty.engine for anova in (every, some)]
    assert [engine.drawn[0].influence.spans for engine in engines] == [True, False]
    assert engines[1].measured
    np.testing.assert_allclose(stderr(some), stderr(every), rtol=1e-8)
    np.testing.assert_allclose(engines[1].all_cells, engines[0].all_cells, atol=1e-10 * engines[0].all_cells.max())
    shapley = [anova.explain(rows[:20], stderr=True).stderr for anova in (every, some)]
    np.testing.assert_allclose(shapley[1], shapley[0], rtol=1e-8)
    p = [anova.significance()["p"] for anova in (every, some)]
    np.testing.assert_allclose(p[1], p[0], rtol=1e-6, atol=1e-12)


def test_unequal_noise_makes_no_effect_of_a_column_that_is_never_read(monkeypatch):
    """Rows of a rare level are noisy. Taken for equal noise, it would make effects of what is random."""
    monkeypatch.setattr("exanova.shrink.cost.by_rows", lambda rows, functions: False)
    named = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.random(2000) < 0.1, rng.integers(0, 3, 2000), rng.integers(0, 12, 2000)])
        y = rows[:, 1] + rng.normal(size=2000) * np.where(rows[:, 0] == 1, 2.0, 0.1)
        anova = shrunk(rows, y)
        monkeypatch.setattr(posterior_errors, "MOST_FUNCTIONS", anova.certificate_.n_functions - 1)
        tests = anova.significance()  # errors are computed on first use
        named.append(bool(tests["significant"][["x2" in subset for subset in tests["subset"]]].any()))
    assert sum(named) <= 3  # at least 10 if the noise is taken to be equal
