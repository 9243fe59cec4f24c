"""A verdict on rows that made a selection is never better than the selection deserves."""

from __future__ import annotations

import warnings
from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA, tolerances
from exanova.errors import OverfitWarning
from exanova.report.words import verdicts
from exanova.select import optimism
from exanova.select.optimism import functions_of_noise, log_families
from strategies import examples

WAYS = [{"max_terms": 100}, {"max_terms": 70, "max_order": 3}, {"selection": "lasso"}]


def drawn(n: int, rng: np.random.Generator, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.integers(0, 4, size=(n, 10))
    y = rows[:, 0] + 2.0 * (rows[:, 1] == rows[:, 2]) + (rows[:, 3] > 1) * (rows[:, 0] - 1.5)
    return rows, y + noise * rng.normal(size=n)


def fitted(rows: np.ndarray, y: np.ndarray, **given: object) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        return FunctionalANOVA(shrinkage=None, handle_unknown="ignore", **given).fit(rows, y)


@pytest.mark.parametrize("cheap", [0.0, 10.0], ids=["bound", "repeated"])
@pytest.mark.parametrize("given", WAYS, ids=["screen", "triples", "lasso"])
@pytest.mark.parametrize("n", [300, 700])
def test_an_exact_fit_is_not_said_to_hold_where_the_selection_fitted_noise(given, n, cheap, monkeypatch):
    monkeypatch.setattr(optimism, "CHEAP_SECONDS", cheap)
    rng = np.random.default_rng(n)
    anova = fitted(*drawn(n, rng), **given)
    certificate, fresh = anova.certificate_, anova.score(*drawn(20_000, rng))
    assert certificate.r2_eval is not None
    if certificate.holds:
        assert fresh > tolerances.HOLDS * certificate.r2[0] - 0.03
    if certificate.r2_least is not None and np.isfinite(certificate.r2_least[0]):
        assert fresh > certificate.r2_least[0] - 0.03
    if certificate.r2_least is None:  # on rows that did not select
        assert "selecting again" in certificate.eval_method
        assert certificate.r2_eval[0] < fresh + 0.12


def test_many_rows_need_no_second_selection(monkeypatch):
    monkeypatch.setattr(optimism, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(
        "exanova.other_rows.evaluation.by_selecting_again", None
    )  # a fit without shrinkage is not made slower
    for way in WAYS:
        assert fitted(*drawn(6000, np.random.default_rng(0)), **way).certificate_.holds is True


def test_what_rows_saw_of_the_model_does_not_matter_to_a_family_in_the_order_of_the_columns():
    certificate = fitted(*drawn(2000, np.random.default_rng(0)), max_terms=60, selection="canonical").certificate_
    assert certificate.r2_least is None
    assert certificate.holds is True


def test_a_verdict_that_is_not_known_is_said_everywhere_and_warned_of_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(optimism, "CHEAP_SECONDS", 0.0)
    rows, y = drawn(300, np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfitWarning)
        anova = FunctionalANOVA(shrinkage=None, max_terms=100).fit(rows, y)
    assert anova.certificate_.holds is None
    anova.save(tmp_path / "a.exanova")
    for found in (anova, exanova.load(tmp_path / "a.exanova")):
        assert found.certificate_.holds is None
        assert "NOT known" in str(found.certificate_).splitlines()[0]
        assert "eval_set=0.2" in str(found.certificate_).splitlines()[0]
        told = next(v for v in verdicts(found.decomposition_) if "other rows" in v.question)
        assert told.answer == "Not known"
        assert told.care
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfitWarning)
        held = FunctionalANOVA(shrinkage=None, max_terms=100, handle_unknown="ignore").fit(rows, y, eval_set=0.2)
    assert held.certificate_.holds is not None


@examples(60)
@given(offered=st.integers(0, 60), part=st.floats(0, 1))
def test_the_families_are_counted_from_above(offered, part):
    chosen = int(part * offered)
    assert log_families(chosen, offered) >= log(comb(offered, chosen)) - 1e-9


@examples(20)
@given(seed=st.integers(0, 2**32 - 1), each=st.integers(1, 4), offered=st.integers(2, 40), part=st.floats(0.02, 1))
def test_no_choice_of_subsets_fits_more_noise_than_is_counted(seed, each, offered, part):
    """Of groups of independent functions, those with the largest sums of squares fit most noise."""
    chosen = max(1, int(part * offered))
    energy = np.square(np.random.default_rng(seed).normal(size=(400, offered, each))).sum(axis=2)
    best = np.sort(energy, axis=1)[:, -chosen:].sum(axis=1)
    counted = functions_of_noise(chosen * each, log_families(chosen, offered))
    assert best.mean() - 3.0 * best.std() / 20.0 <= counted
