"""Laws of identification: the same effects are named on every route, and shrunken effects keep their intervals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, OverfitWarning
from exanova.infer import sharing

ROUTES = {
    "dense": {"route": "dense", "shrinkage": None},
    "moments": {"route": "moments", "shrinkage": None},
    "matrix-free": {"route": "matrix-free", "shrinkage": None},
    "screen": {"max_terms": 500, "selection": "screen", "shrinkage": None},
    "first": {"ties": "first", "route": "dense", "shrinkage": None},
    "shrunk": {"shrinkage": "auto"},
}


def twins(n=400):
    """x0 and x3 are the same column; the others determine their effects."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, (n, 3))
    y = rows[:, 0] + 0.5 * rows[:, 1] * rows[:, 2] + 0.3 * rng.normal(size=n)
    return np.column_stack([rows, rows[:, 0]]), y


def fitted(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        warnings.simplefilter("ignore", OverfitWarning)
        return FunctionalANOVA(max_order=2, **parameters).fit(X, y)


def told(anova):
    return {names: effect.identified for names, effect in anova.effects_.items()}


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_names_the_effects_that_rows_do_not_determine(route):
    X, y = twins()
    expected = told(fitted(X, y, **ROUTES["dense"]))
    assert expected[("x0",)] is False
    assert expected[("x1",)] is True
    found = fitted(X, y, **ROUTES[route])
    compared = [names for names in found.effects_ if len(names) < 2 or route != "screen"]  # screening leaves pairs out
    assert {names: expected[names] for names in compared} == {names: told(found)[names] for names in compared}
    assert np.allclose(found.effects_["x0"].certain, 0.0, atol=1e-9)
    assert np.allclose(found.effects_["x1"].certain, np.sqrt(found.effects_["x1"].norm2))
    assert found.errors().unidentified == sum(known is False for known in told(found).values())


@pytest.mark.parametrize("route", [name for name in ROUTES if name != "shrunk"])
def test_what_is_not_determined_has_no_interval(route):
    X, y = twins()
    found = fitted(X, y, **ROUTES[route])
    for names, effect in found.effects_.items():
        assert np.isnan(effect.stderr).all() == (effect.identified is False), names
        assert effect.has_stderr == (effect.identified is not False)
    assert np.isnan(found.explain(X[:1], stderr=True).stderr[0, [0, 3]]).all()
    assert "no standard errors for" in str(found.errors())


@given(st.integers(0, 10**6), st.booleans(), st.integers(20, 120))
@settings(max_examples=25, deadline=None)
def test_a_shrunken_fit_has_the_rank_and_the_redundancies_of_the_exact_one(seed, twin, n):
    """They are properties of the rows; the oracle is the rank of all functions in exact arithmetic."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 3))
    X = np.column_stack([X, X[:, 0]]) if twin else X
    y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    shrunk, exact = fitted(X, y).certificate_, fitted(X, y, shrinkage=None, route="dense").certificate_
    assert shrunk.rank_known
    assert (shrunk.rank_by_order, shrunk.n_functions) == (exact.rank_by_order, exact.n_functions)
    assert (shrunk.unique, shrunk.redundant) == (exact.unique, exact.redundant)
    if twin:
        assert shrunk.unique is False


def test_a_rank_that_was_not_determined_is_not_stated(monkeypatch):
    """Too many functions for the elimination: a bound is called a bound, and is enough to deny uniqueness."""
    X, y = twins(30)
    monkeypatch.setattr(sharing.cost, "RANKED", 0)
    few = fitted(X, y).certificate_
    assert not few.rank_known
    assert few.unique is False
    assert f"not determined, at most {few.rank:,} of {few.n_functions:,} functions" in str(few)
    assert f"no, there are {few.n_functions:,} functions on {few.rank:,} distinct rows" in str(few)
    X = np.random.default_rng(0).integers(0, 4, (100, 3))
    enough = fitted(X, np.sin(X.sum(axis=1)) + X[:, 0]).certificate_
    assert enough.rank == enough.n_functions  # no more functions than rows
    assert enough.unique is None
    assert "not determined; effect.identified determines it" in str(enough)


def test_more_functions_than_rows_do_not_settle_which_effects_are_determined(monkeypatch):
    X, y = twins(30)
    expected = told(fitted(X, y))
    monkeypatch.setattr(sharing.cost, "RANKED", 0)
    assert told(fitted(X, y)) == expected


def test_the_prior_divides_what_shrunken_effects_share(tmp_path):
    """The posterior says how surely: not at all for a difference that no row can tell."""
    X, y = twins()
    found = fitted(X, y, shrinkage="auto")
    shared, alone = found.effects_["x0"], found.effects_["x1"]
    assert shared.has_stderr
    assert np.isfinite(shared.stderr).all()
    assert shared.stderr.min() > 3 * alone.stderr.max()
    assert "the prior divides them" in str(found.errors())
    found.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    assert told(again) == told(found)
    assert np.allclose(again.effects_["x0"].stderr, shared.stderr)
    assert np.allclose(again.effects_["x0"].certain, shared.certain)


def test_a_file_tells_what_an_iterative_route_found(tmp_path):
    X, y = twins()
    found = fitted(X, y, **ROUTES["matrix-free"])
    assert not found.certificate_.rank_known
    found.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    assert told(again) == told(found)
    assert np.isnan(again.effects_["x0"].stderr).all()


def test_too_many_functions_are_not_looked_through_unless_errors_are_asked_for(monkeypatch):
    X, y = twins()
    monkeypatch.setattr(sharing, "CHEAP_FUNCTIONS", 0)
    monkeypatch.setattr(sharing.cost, "RANKED", 0)
    found = fitted(X, y, **ROUTES["matrix-free"])
    assert told(found)[("x0",)] is None
    found.errors()
    assert told(found)[("x0",)] is False
    monkeypatch.setattr(sharing, "MOST_FUNCTIONS", 0)
    assert told(fitted(X, y, shrinkage="auto"))[("x0",)] is None


# Weights that are not counts


@pytest.mark.parametrize("shrinkage", ["auto", None])
def test_equal_weights_of_any_size_are_rows(shrinkage):
    """Fractions that are all alike say no less than rows without weights, however many of them are equal."""
    X, y = twins(200)
    X = X[:, :3]
    plain = fitted(X, y, shrinkage=shrinkage)
    weighed = FunctionalANOVA(max_order=2, shrinkage=shrinkage).fit(X, y, sample_weight=np.full(200, 0.37))
    for names, effect in plain.effects_.items():
        assert np.allclose(effect.values, weighed.effects_[names].values, atol=1e-6)
        assert np.allclose(effect.stderr, weighed.effects_[names].stderr, rtol=1e-3)
    assert np.allclose(plain.certificate_.r2_eval, weighed.certificate_.r2_eval, atol=1e-6)


def test_probabilities_under_shrinkage_count_the_rows_not_their_weights():
    """Whole numbers that are inverse probabilities are no counts: doubling all of them changes nothing."""
    X, y = twins(200)
    once, twice = (
        FunctionalANOVA(max_order=2).fit(X[:, :3], y, sample_weight=np.full(200, w), weights="probability")
        for w in (1, 2)
    )
    assert np.allclose(once.effects_["x1"].stderr, twice.effects_["x1"].stderr, rtol=1e-6)


def test_refits_of_a_shrunken_fit_shrink_as_much_as_the_fit():
    """Exponential weights stand for as many rows as there are: refits then spread as the posterior says."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 3))
    y = X[:, 0] + 0.4 * X[:, 1] * X[:, 2] + rng.normal(size=600)
    anova = FunctionalANOVA(max_order=2).fit(X, y)
    posterior = anova.effects_["x0"].stderr
    anova.errors("bootstrap", n_refits=60)
    assert np.abs(np.log(anova.effects_["x0"].stderr / posterior)).max() < 0.4


def test_functions_are_counted_once_however_many_effects_ask(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (60, 8))
    monkeypatch.setattr(sharing.cost, "RANKED", 0)
    monkeypatch.setattr(sharing, "CHEAP_FUNCTIONS", 0)
    anova = fitted(X, rng.normal(size=60))
    counted = []
    monkeypatch.setattr(sharing, "dimensions", lambda *given, of=sharing.dimensions: (counted.append(1), of(*given))[1])
    assert None in {effect.identified for effect in anova.effects_.values()}
    assert len(counted) == 1
