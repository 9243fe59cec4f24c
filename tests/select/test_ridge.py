"""A penalty on squared coefficients: marked as inexact, and shrinking to the mean."""

from __future__ import annotations

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InexactWarning
from selection_cases import ORTHOGONALITY, planted
from strategies import (
    Case,
    fit,
    on_rows,
)


def test_a_ridge_is_marked_and_shrinks_the_effects_to_the_mean():
    case = planted(noise=0.5)
    plain = fit(case)
    energies = []
    for ridge in (1e-3, 1.0, 1e6):
        with pytest.warns(InexactWarning, match="ridge="):
            anova = FunctionalANOVA(shrinkage=None, ridge=ridge).fit(case.rows, case.values)
        certificate = anova.certificate_
        assert not certificate.exact
        assert certificate.ridge == ridge
        assert any("ridge=" in note and "ridge=0 is exact" in note for note in certificate.notes)
        assert certificate.orthogonality <= ORTHOGONALITY
        energies.append(sum(float((v**2).mean()) for s, v in on_rows(anova, case.rows).items() if s))
        assert certificate.r2[0] <= plain.certificate_.r2[0]
    assert energies == sorted(energies, reverse=True)
    np.testing.assert_allclose(anova.predict(case.rows), float(case.values.mean()), atol=1e-4)
    np.testing.assert_allclose(anova.intercept_, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"max_terms": 60, "selection": "canonical"}])
def test_no_ridge_is_the_same_as_none_and_a_small_one_is_close(choices):
    case = planted(noise=0.5)
    plain, zero = fit(case, **choices), fit(case, ridge=0.0, **choices)
    np.testing.assert_array_equal(plain.predict(case.rows), zero.predict(case.rows))
    assert zero.certificate_.exact
    little = fit(case, ridge=1e-9, **choices)
    np.testing.assert_allclose(little.predict(case.rows), plain.predict(case.rows), atol=1e-6)
    assert not little.certificate_.exact


def test_the_ridge_solution_is_that_of_the_penalised_normal_equations():
    """Under independence Gamma is the identity: every coefficient is divided by 1 + ridge."""
    grid = np.array(list(np.ndindex(2, 3, 2)))
    values = np.random.default_rng(4).normal(size=(len(grid), 1))
    case = Case(grid, np.ones(len(grid), dtype=np.int64), values, "equal")
    plain, ridge = fit(case, route="moments"), fit(case, route="moments", ridge=0.25)
    effects, shrunk = on_rows(plain, grid), on_rows(ridge, grid)
    for subset, found in shrunk.items():
        np.testing.assert_allclose(found, effects[subset] / (1.25 if subset else 1.0), atol=1e-12)
