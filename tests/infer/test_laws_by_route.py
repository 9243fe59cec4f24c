"""The laws of standard errors and of an honest fit, route by route: one table of routes, one test per law."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, OverfitWarning

EXACT = {
    "dense": {"max_order": 2, "route": "dense"},
    "moments": {"max_order": 2, "route": "moments"},
    "matrix-free": {"max_order": 2, "route": "matrix-free"},
    "grid": {"max_order": None, "route": "grid"},
    "completion": {"max_order": None, "route": "completion"},
    "first": {"max_order": 2, "route": "dense", "ties": "first"},
    "screen": {"max_order": 2, "max_terms": 20, "selection": "screen"},
    "canonical": {"max_order": 2, "max_terms": 20, "selection": "canonical"},
    "lasso": {"max_order": 2, "max_terms": 20, "selection": "lasso"},
    "subsets": {"subsets": [("x0", "x1"), ("x2",)]},
}
ROUTES = {name: {"shrinkage": None, **chosen} for name, chosen in EXACT.items()} | {"shrunk": {"max_order": 2}}
WITH_ROWS_LEFT_OUT = ("dense", "moments", "matrix-free", "first", "subsets")


def drawn(n=120, seed=4):
    """Every combination of levels occurs, so that the grid takes it too; features depend on each other."""
    rng = np.random.default_rng(seed)
    cells = np.array(np.meshgrid([0, 1, 2], [0, 1], [0, 1, 2])).reshape(3, -1).T
    rows = rng.integers(0, [3, 2, 3], (n - len(cells), 3))
    rows[:, 2] = np.where(rng.random(len(rows)) < 0.4, rows[:, 0], rows[:, 2])
    rows = np.concatenate([cells, rows])
    y = rows[:, 0] + 1.5 * rows[:, 0] * rows[:, 1] + 0.7 * (rows[:, 2] == 1) * rows[:, 1] + 0.3 * rng.normal(size=n)
    return rows, y, rng


def fitted(route, rows, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        warnings.simplefilter("ignore", OverfitWarning)
        return FunctionalANOVA(**{"sampled": True, "n_jobs": 1, **ROUTES[route]}).fit(rows, y, **given)


def values(anova):
    return np.concatenate([effect.values[:, 0] for effect in anova.effects_.values()])


def stderr(anova):
    return np.concatenate([effect.stderr[:, 0] for effect in anova.effects_.values()])


@pytest.mark.parametrize("route", EXACT)
def test_influence_is_the_numerical_derivative_of_the_fit_by_the_weight_of_a_row(route):
    rows, y, rng = drawn()
    weight = rng.uniform(0.5, 2.0, len(y))
    anova = fitted(route, rows, y, sample_weight=weight)
    uncertainty = anova.decomposition_.uncertainty
    engine = uncertainty.engine
    engine = replace(engine, noise=engine.residuals)  # leverage corrects the noise, not the derivative
    psi = engine.influences(0, np.eye(anova.decomposition_.family.n_cells)) * uncertainty.unit[0]
    share = weight / weight.sum()
    known = np.isfinite(stderr(anova))
    assert known.sum() > 10
    assert np.abs(share @ psi[:, known]).max() < 1e-8
    for row in (0, 50, 119):
        sides = []
        for sign in (1, -1):
            moved = weight.copy()
            moved[row] *= 1 + sign * 1e-4
            again = fitted(route, rows, y, sample_weight=moved)
            assert list(again.effects_) == list(anova.effects_)
            sides.append(values(again))
        slope = (sides[0] - sides[1]) / (2e-4 * share[row])
        assert np.abs(slope - psi[row])[known].max() <= 1e-4 * max(1.0, np.abs(psi[:, known]).max())


@pytest.mark.parametrize("route", ROUTES)
def test_splitting_a_row_of_count_two_changes_nothing(route):
    rows, y, rng = drawn()
    count = rng.integers(1, 3, len(y))
    once = fitted(route, rows, y, sample_weight=count)
    apart = fitted(route, np.repeat(rows, count, axis=0), np.repeat(y, count))
    np.testing.assert_allclose(values(once), values(apart), atol=1e-9)
    np.testing.assert_allclose(stderr(once), stderr(apart), rtol=1e-7)
    np.testing.assert_allclose(once.certificate_.r2_eval, apart.certificate_.r2_eval, atol=1e-9)


@pytest.mark.parametrize("route", ROUTES)
def test_clusters_of_one_row_are_rows(route):
    rows, y, rng = drawn()
    alone = fitted(route, rows, y, clusters=rng.permutation(len(y)))
    np.testing.assert_allclose(stderr(alone), stderr(fitted(route, rows, y)), rtol=1e-7)


@pytest.mark.parametrize("route", ROUTES)
def test_errors_scale_with_one_over_the_root_of_the_rows(route):
    """Up to the leverage of a row, and what is shrunk, which vanish as rows grow."""
    rows, y, _ = drawn()
    few, many = (fitted(route, rows, y, sample_weight=np.full(len(y), copies)) for copies in (400, 1600))
    np.testing.assert_allclose(stderr(few) / stderr(many), 2.0, rtol=2e-3)


@pytest.mark.parametrize("route", WITH_ROWS_LEFT_OUT)
def test_leaving_out_equals_refitting_without_the_row(route):
    rows, y, _ = drawn()
    anova = fitted(route, rows, y)
    assert anova.certificate_.eval_method == "leaving out each row"
    errors = []
    for row in range(len(y)):
        kept = np.arange(len(y)) != row
        again = fitted(route, rows[kept], y[kept])
        assert again.certificate_.rank == anova.certificate_.rank
        errors.append(y[row] - again.predict(rows[row : row + 1])[0])
    np.testing.assert_allclose(anova.certificate_.mse_eval, np.mean(np.square(errors)), rtol=1e-6)


@pytest.mark.parametrize("route", ROUTES)
def test_the_parts_of_the_loss_add_up(route):
    rows, y, _ = drawn()
    certificate = fitted(route, rows, np.column_stack([y, y**2])).certificate_
    np.testing.assert_allclose(certificate.loss.total, 1.0 - certificate.r2, atol=1e-9)
    assert certificate.r2_eval is not None
    assert certificate.holds is not None
    total = np.mean((y - y.mean()) ** 2)
    groups = {tuple(row): y[(rows == row).all(axis=1)] for row in rows}
    noise = sum(((own - own.mean()) ** 2).sum() for own in groups.values()) / len(y)
    np.testing.assert_allclose(certificate.loss.noise[0], noise / total)
