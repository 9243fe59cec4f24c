"""The fit on rows that are held out, given or kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InputError, UnknownLevelError
from selection_cases import planted


def table_of(case):
    return pd.DataFrame(case.rows, columns=[f"x{i}" for i in range(case.rows.shape[1])])


def r2(values, predicted):
    return 1 - ((values - predicted) ** 2).sum(axis=0) / ((values - values.mean(axis=0)) ** 2).sum(axis=0)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"max_terms": 60, "selection": "canonical"}])
def test_fidelity_on_rows_of_ones_own(choices):
    train, test = planted(noise=0.5), planted(noise=0.5, seed=0, rows=2500)
    anova = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(
        train.rows, train.values, eval_set=(test.rows, test.values)
    )
    predicted = anova.predict(test.rows).reshape(test.values.shape)
    np.testing.assert_allclose(anova.certificate_.r2_eval, r2(test.values, predicted), atol=1e-12)
    np.testing.assert_allclose(anova.certificate_.mse_eval, ((test.values - predicted) ** 2).mean(axis=0), atol=1e-12)
    assert "on held-out rows" in str(anova.certificate_)
    plain = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(train.rows, train.values)
    np.testing.assert_array_equal(anova.predict(test.rows), plain.predict(test.rows))
    screened = "max_terms" in choices and "selection" not in choices  # a selection that has seen the rows is repeated
    assert ("selecting again" if screened else "leaving out") in plain.certificate_.eval_method
    assert "held-out" not in str(plain.certificate_)


def test_a_model_is_called_on_the_rows_to_judge_by():
    case = planted()
    seen = []

    def model(rows):
        seen.append(len(rows))
        return np.asarray(rows, dtype=float).sum(axis=1)

    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(case.rows, model, eval_set=(case.rows[:50], model))
    assert seen[-1] == 50
    np.testing.assert_allclose(anova.certificate_.r2_eval, 1.0)


@pytest.mark.parametrize("choices", [{}, {"max_terms": 60}, {"selection": "lasso"}])
def test_a_share_of_the_rows_is_held_out(choices):
    case = planted(noise=1.0)
    first, again, other = (
        FunctionalANOVA(**{"shrinkage": None, **choices}, random_state=seed).fit(case.rows, case.values, eval_set=0.25)
        for seed in (0, 0, 1)
    )
    certificate = first.certificate_
    assert certificate.r2_eval[0] < certificate.r2[0]  # noise is fitted, and not found again
    np.testing.assert_array_equal(certificate.r2_eval, again.certificate_.r2_eval)
    assert certificate.r2_eval[0] != other.certificate_.r2_eval[0]
    assert first.plan_.route  # a plan is still there
    noiseless = FunctionalANOVA(**{"shrinkage": None, **choices}).fit(case.rows, planted().values, eval_set=0.25)
    assert noiseless.certificate_.r2_eval[0] > 0.999


def test_rows_to_judge_by_may_hold_cells_that_never_occurred_but_no_unknown_level():
    X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["c", "v"]])
    new = np.array([["b", "v"], ["c", "u"], ["a", "u"]])
    anova = FunctionalANOVA(shrinkage=None).fit(
        X, np.array([0.0, 1.0, 2.0, 5.0]), eval_set=(new, np.array([1.0, 2.0, 0.5]))
    )
    assert np.isfinite(anova.certificate_.r2_eval).all()
    unknown = np.array([["z", "u"], ["a", "u"]])
    with pytest.raises(UnknownLevelError, match="z"):
        FunctionalANOVA(shrinkage=None).fit(X, np.arange(4.0), eval_set=(unknown, np.zeros(2)))
    anova = FunctionalANOVA(shrinkage=None, handle_unknown="ignore").fit(
        X, np.arange(4.0), eval_set=(unknown, np.array([1.0, 2.0]))
    )
    assert np.isfinite(anova.certificate_.r2_eval).all()


def test_every_level_keeps_a_row_to_be_fitted_on():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.arange(40) // 2, rng.integers(0, 2, 40)])
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, rng.normal(size=40), eval_set=0.5)
    assert np.isfinite(anova.certificate_.r2_eval).all()


@pytest.mark.parametrize("eval_set", [0.0, 1.0, -0.5, 2, True, (1, 2, 3), [1, 2]])
def test_what_is_nothing_to_judge_by(eval_set):
    with pytest.raises(InputError, match=r"expected a pair \(rows, model\), a path of rows, or a fraction"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0, 1], [1, 0]]), np.zeros(2), eval_set=eval_set)


def test_a_text_is_a_path_of_held_out_rows():
    with pytest.raises(InputError, match=r"the format of '0\.2' cannot be determined from its suffix"):
        FunctionalANOVA(shrinkage=None).fit(np.array([[0, 1], [1, 0]]), np.zeros(2), eval_set="0.2")


def test_a_share_that_holds_out_no_row():
    X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    for choices, given_share in (({}, 0.2), ({"selection": "lasso"}, None)):
        with pytest.raises(
            InputError, match=r"a fraction of 0\.2 of 3 distinct rows holds out no row.*larger fraction"
        ):
            FunctionalANOVA(**{"shrinkage": None, **choices}).fit(X, np.arange(3.0), eval_set=given_share)
