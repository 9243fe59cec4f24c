"""A slice of the differential run, and the cases that were once wrong under "exact"; `make differential` runs more."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from differential import Trial, all_orders, draw, largest_error, run
from exanova import FunctionalANOVA
from exanova.errors import InexactWarning
from strategies import difference, on_rows

ONCE_WRONG = (103163, 100077, 103874, 104136, 202011, 203141, 204295, 301735, 502797, 608851, 635406)
"""Seeds of cases in which a light direction was taken for redundant, or kept with too few digits, and called exact."""


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_what_is_called_exact_agrees_with_exact_fractions(first):
    verdicts = {seed: run(draw(seed)) for seed in range(first, first + 25)}
    assert not {seed: verdict for seed, verdict in verdicts.items() if verdict.outcome == "WRONG"}
    assert any(verdict.outcome == "agrees" for verdict in verdicts.values())


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_once_is_right_or_flagged(seed):
    assert run(draw(seed)).outcome in ("agrees", "flagged", "refused")


SHARED_ROUGHLY = (("moments", (700649, 702868, 706583, 708551, 709472, 710090)), ("dense", (700721, 703410)))
"""Cases of :func:`uneven` in which redundant effects were shared along dependences with too few digits."""


def uneven(seed: int, route: str, shortest: float = 8.0) -> Trial:
    """The trial of a seed with shared ties on a route, under weights over so many orders of magnitude, up to 14."""
    trial, rng = draw(seed), np.random.default_rng(seed + 10**9)
    weight = 10.0 ** rng.uniform(-rng.uniform(shortest, 14.0), 0.0, len(trial.rows))
    kept = {k: v for k, v in trial.parameters.items() if k not in ("selection", "max_terms")}
    whole = {"max_order": None, "basis": "pure"} if route == "completion" else {}
    return replace(trial, weight=weight, parameters={**kept, "route": route, "ties": "share", **whole})


@pytest.mark.parametrize(("route", "seeds"), SHARED_ROUGHLY)
def test_effects_shared_along_light_dependences_are_right_or_flagged(route, seeds):
    for seed in seeds:
        for shortest in (4.0, 8.0):
            assert run(uneven(seed, route, shortest)).outcome in ("agrees", "flagged"), (seed, shortest)


@pytest.mark.parametrize("route", ["dense", "moments", "completion"])
def test_most_fits_under_uneven_weights_are_still_called_exact(route):
    outcomes = [run(uneven(seed, route)).outcome for seed in range(60)]
    assert "WRONG" not in outcomes
    assert outcomes.count("agrees") > outcomes.count("flagged")


@pytest.mark.parametrize("order", [2, None])
def test_counts_over_four_orders_of_magnitude_with_the_papers_functions(order):
    """Its functions chosen in floating point once had effects of 1e17, which hid every error behind their own size."""
    rows = np.array([[0, 2, 0], [0, 2, 2], [2, 0, 0], [2, 1, 0], [2, 1, 2]])
    rows = np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1)
    values, weight = np.array([[0.0], [4.0], [1.0], [8.0], [1.0]]), np.array([77, 110, 80894, 15, 3])
    parameters = {"max_order": order, "ties": "first", "basis": "paper", "route": "dense"}
    anova = FunctionalANOVA(**{"shrinkage": None, **parameters}).fit(rows, values, sample_weight=weight)
    assert anova.certificate_.exact
    assert anova.certificate_.r2[0] == pytest.approx(1.0)
    error, reason = largest_error(Trial(rows, weight, values, parameters), anova)
    assert error < 1e-6, reason


def test_weights_down_to_1e_18_without_a_matrix_are_fitted_or_flagged():
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = np.unique(rng.integers(0, 4, (80, 4)), axis=0)
        values, weight = rng.normal(size=(len(rows), 1)), 10.0 ** rng.uniform(-18, 0, len(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InexactWarning)
            found = FunctionalANOVA(shrinkage=None, route="matrix-free").fit(rows, values, sample_weight=weight)
            dense = FunctionalANOVA(shrinkage=None, route="dense").fit(rows, values, sample_weight=weight)
        apart = difference(on_rows(found, rows), on_rows(dense, rows))
        assert apart < 1e-6 or not found.certificate_.exact


@pytest.mark.parametrize("first", range(0, 90, 30))
@pytest.mark.parametrize("route", ["dense", "completion"])
def test_all_orders_of_rows_left_out_by_a_rule(first, route):
    verdicts = {seed: run(all_orders(seed, route)) for seed in range(first, first + 30)}
    assert not {seed: verdict for seed, verdict in verdicts.items() if verdict.outcome == "WRONG"}
    assert sum(verdict.outcome == "agrees" for verdict in verdicts.values()) >= 20


TWO_BLOCKS = Trial(
    np.array([[1, 0], [1, 2], [2, 1], [0, 1], [2, 2], [1, 1], [0, 0], [2, 0], [0, 2]]),
    np.array([1e-12, 1.0, 1e-12, 1.0, 1e-12, 1.0, 1e-12, 1.0, 1.0]),
    np.zeros((9, 2)),
    {"max_order": None, "ties": "share", "basis": "pure", "n_jobs": 1},
)
"""A level of each feature is the same set of heavy rows: their main effects differ in light cells only."""

RELABELLED = replace(
    TWO_BLOCKS,
    rows=np.array([[3, 2, 0, 1, 4], [1, 2, 4, 0, 3], [0, 2, 4, 1, 3], [1, 2, 4, 3, 0]]).T,
    weight=np.array([1e-10, 1e-10, 1.0, 1e-10, 1.0]),
    values=np.zeros((5, 2)),
)
"""Features that are one another relabelled: all that their effects share is decided by the light levels."""


@pytest.mark.parametrize("trial", [TWO_BLOCKS, RELABELLED], ids=["blocks", "relabelled"])
@pytest.mark.parametrize("route", ["dense", "completion"])
def test_what_only_light_rows_tell_apart_keeps_its_digits(trial, route):
    for seed in range(10):
        values = np.random.default_rng(seed).normal(size=trial.values.shape)
        verdict = run(replace(trial, values=values, parameters={**trial.parameters, "route": route}))
        assert verdict.outcome == "agrees", verdict
