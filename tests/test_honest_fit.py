"""What is lost adds up to 1 - R2, and effects that cancel are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.table import Table
from strategies import MODERATE, examples, fit, on_rows, supports


@examples(40)
@given(case=supports(MODERATE, max_features=4), order=st.integers(1, 3))
def test_the_parts_of_the_loss_add_up_to_what_is_not_explained(case, order):
    certificate = fit(case, max_order=order).certificate_
    varies = np.ptp(case.values, axis=0) > 0
    np.testing.assert_allclose(certificate.loss.total[varies], 1.0 - certificate.r2[varies], atol=1e-9)
    assert (certificate.loss.levels == 0).all()
    assert (certificate.loss.noise == 0).all()


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), bins=st.integers(2, 4))
def test_each_loss_is_counted_where_it_happens(seed, bins):
    """Variance between means of nested groups: equal rows, equal encoded rows, fitted values."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 25, 80) / 4.0
    g = rng.choice(["a", "b", "c"], 80)
    y = x**2 + (g == "a") * x + rng.normal(size=80)
    table = pd.DataFrame({"x": x, "g": g})
    anova = FunctionalANOVA(max_order=1, n_bins={"x": bins}, strategy="uniform", shrinkage=None).fit(table, y)
    loss, total = anova.certificate_.loss, np.var(y)
    equal = pd.Series(y).groupby([x, g]).transform("mean")
    codes = anova.decomposition_.encoding.encode(Table.read(table))
    coded = pd.Series(y).groupby([codes[0], g]).transform("mean")
    assert loss.noise[0] == pytest.approx(np.mean((y - equal) ** 2) / total, abs=1e-9)
    assert loss.levels[0] == pytest.approx(np.mean((equal - coded) ** 2) / total, abs=1e-9)
    assert loss.left_out[0] == pytest.approx(np.mean((coded - anova.predict(table)) ** 2) / total, abs=1e-9)
    assert loss.shrinkage[0] == 0
    assert loss.total[0] == pytest.approx(1.0 - anova.score(table, y), abs=1e-9)


@examples(30)
@given(case=supports(MODERATE, max_features=4), order=st.integers(1, 2))
def test_cancellation_is_the_summed_variance_of_the_effects_over_that_of_their_sum(case, order):
    anova = fit(case, max_order=order)
    effects, p = on_rows(anova, case.rows), case.probability
    apart = sum((p @ values**2 for subset, values in effects.items() if subset), np.zeros(case.values.shape[1]))
    together = sum(effects.values())
    variance = p @ (together - p @ together) ** 2
    rounding = 1e-24 * np.abs(together).max(axis=0) ** 2  # a constant model varies by as much
    seen = variance > np.maximum(1e-9 * apart, rounding)
    np.testing.assert_allclose(anova.certificate_.cancellation[seen], apart[seen] / variance[seen], rtol=1e-6)


def test_independent_features_do_not_cancel_and_twins_do():
    grid = np.array([(a, b, c) for a in range(2) for b in range(3) for c in range(2)])
    y = grid @ [1.0, 2.0, 3.0]
    certificate = FunctionalANOVA(shrinkage=None).fit(grid, y).certificate_
    assert certificate.cancellation[0] == pytest.approx(1.0)
    assert certificate.near_redundant == ()
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    twin = np.where(rng.random(400) < 0.01, 1 - a, a)
    rows = np.column_stack([a, twin, rng.integers(0, 2, 400)])
    certificate = FunctionalANOVA(max_order=1, shrinkage=None).fit(rows, 10.0 * (a - twin) + rows[:, 2]).certificate_
    assert certificate.near_redundant == (("x0", "x1"),)
    assert certificate.cancels
