"""The measurements of coverage and of held-out fit: what is counted, what is not, and the pages made of it."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from benchmarks import coverage_answers, coverage_page, fidelity, fidelity_page
from benchmarks.coverage import sampled
from benchmarks.coverage_answers import Intervals
from benchmarks.coverage_counts import REACH, tally
from benchmarks.coverage_truth import Truth
from benchmarks.fidelity import NOISE, Task, attempt, told_from_zero
from benchmarks.mixed_tables import Mixed
from benchmarks.populations import Population, random_grid

from exanova import FunctionalANOVA
from exanova.errors import InputError


def normal_estimates(count: int, stderr: float) -> list[Intervals]:
    """Estimates of zero at the quantiles of a normal distribution, each by itself, as means of samples would be."""
    values = [NormalDist().inv_cdf((k + 0.5) / count) for k in range(count)]
    half = REACH * stderr
    return [Intervals(*(np.array([x]) for x in (value, value - half, value + half, np.nan))) for value in values]


@pytest.fixture(scope="module")
def grid():
    return Truth(random_grid("A grid", (3, 2, 2), holes=0.0, concentration=2.0, seed=3))


# Coverage


@pytest.mark.parametrize(("stderr", "expected"), [(1.0, 0.95), (0.5, 2 * NormalDist().cdf(0.98) - 1), (0.0, 0.0)])
def test_intervals_of_a_mean_cover_as_often_as_the_normal_distribution_says(stderr, expected):
    found = normal_estimates(2000, stderr)
    facts = tally(found, np.zeros(1), np.ones((2000, 1), dtype=bool), 0.0)
    assert facts["intervals"] == 2000
    assert facts["coverage"] == pytest.approx(expected, abs=1e-3)
    assert facts["margin"] == pytest.approx(np.sqrt(expected * (1 - expected) / 2000), rel=0.05, abs=1e-9)
    assert facts["stderr_over_spread"] == pytest.approx(stderr, rel=0.01)


def test_what_does_not_count_changes_nothing():
    found = normal_estimates(100, 1.0)
    counted = np.arange(100)[:, None] % 2 == 0
    kept = tally(found[::2], np.zeros(1), np.ones((50, 1), dtype=bool), 0.0)
    assert tally(found, np.zeros(1), counted, 0.0)["coverage"] == kept["coverage"]
    nothing = tally(found, np.zeros(1), np.zeros((100, 1), dtype=bool), 0.0)
    assert (nothing["intervals"], nothing["coverage"]) == (0, None)


def test_samples_of_a_grid_cover_its_effects_and_too_short_intervals_do_not(grid, monkeypatch):
    facts = sampled(grid, 400, 60, 1, True)
    assert facts["cells"]["intervals"] > 1000
    for kind in ("cells", "shapley", "l1", "l2"):
        assert 0.88 < facts[kind]["coverage"] <= 1.0
    assert 0.8 < facts["cells"]["stderr_over_spread"] < 1.2
    monkeypatch.setattr(coverage_answers, "LEVEL", 0.5)
    assert sampled(grid, 400, 20, 1, True)["cells"]["coverage"] < 0.65


def test_the_whole_population_as_a_sample_has_its_effects_in_their_places(grid):
    p = grid.population
    anova = FunctionalANOVA(max_order=2, shrinkage=None, sampled=True)
    anova.fit(p.X.sample(frac=1, random_state=1), p.values[p.X.sample(frac=1, random_state=1).index])
    uniform = Truth(replace(p, probability=None))
    cells, unidentified = coverage_answers.intervals_of_cells(uniform, anova)
    assert np.allclose(cells.value, uniform.values)
    assert not unidentified.any()
    assert cells.rows[0] == len(p.X)


def test_a_row_is_read_from_the_cells_of_the_effects_of_its_features(grid):
    values = grid.values[grid.cells_of_rows]
    orders = np.array([len(name) for name in grid.places])[1:]
    pairs = values[:, :, 1:].sum(axis=2) / 2
    assert orders.max() == 2
    assert np.allclose(values[:, :, 0] + pairs, grid.shapley)


def test_cells_of_few_rows_and_effects_that_are_not_identified_stand_apart():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(4000) < 0.03, "rare", "usual")
    X = pd.DataFrame({"a": x, "b": rng.integers(0, 3, 4000), "c": rng.integers(0, 2, 4000)})
    twice = X.assign(d=X["b"])
    plain, doubled = (Truth(Population("Toy", rows, rng.normal(size=4000), 1)) for rows in (X, twice))
    facts = sampled(plain, 300, 10, 1, True)
    assert facts["apart"]["few_rows"] + facts["apart"]["missing"] == pytest.approx(1 / 8, abs=1e-9)
    assert facts["cells"]["intervals"] == 10 * 6
    shared = sampled(doubled, 300, 10, 1, True)
    assert shared["apart"]["unidentified"] == pytest.approx(6 / 11)
    assert shared["cells"]["intervals"] == 10 * 3


def test_clusters_are_drawn_whole_and_counted_in_cells():
    X = pd.DataFrame({"a": np.repeat([0, 1, 2, 3], 5), "b": np.tile([0, 1], 10)})
    truth = Truth(Population("Runs", X, np.arange(20.0), 1))
    rows, labels = truth.population.draw_clusters(40, 5, np.random.default_rng(0))
    assert (len(rows), labels.max()) == (40, 7)
    assert all(set(np.diff(rows[labels == k])) == {1} for k in range(8))
    counts = coverage_answers.clusters_in_cells(truth, X.iloc[rows].reset_index(drop=True), labels)
    drawn = X["a"].to_numpy()[rows[labels == labels][::5]]
    expected = [(drawn == level).sum() for level in range(4)]
    assert counts[truth.starts[("a",)] :][:4].tolist() == expected
    assert counts[0] == 8


def line(share: float, **changes):
    found = {"intervals": 500, "coverage": share, "margin": 0.01, "stderr_over_spread": 1.0}
    kinds = ("cells", "cells_of_many_units", "shapley", "mean_shapley", "l1", "l2", "weak_l1", "weak_l2")
    facts = dict.fromkeys(kinds, found) | {"apart": {"few_rows": 0.1, "unidentified": 0.2, "missing": 0.0}}
    said = {"title": "Toy", "order": 1, "n": 500, "functions": 7, "cluster": 1, "said": True, "samples": 3}
    return facts | said | changes


def test_the_page_marks_what_falls_short_and_names_it(tmp_path):
    bootstrap = {"title": "Toy", "order": 1, "n": 500, "cells": 3, "refits": 20}
    bootstrap |= {"ratio": [0.9, 1.0, 1.1], "seconds": {"linear": 0.1, "bootstrap": 2.0}}
    found = {"repeats": {"500": 3}, "explained": 12, "minutes": 2.0, "bootstrap": [bootstrap]}
    good = coverage_page.write(found | {"sampling": [line(0.95)]}, tmp_path).read_text(encoding="utf-8")
    assert "95.0 ± 1.0" in good
    assert "**95.0" not in good
    assert "Nowhere" in good
    lines = [line(0.95), line(0.9, title="Hard"), line(0.95, cluster=10)]
    bad = coverage_page.write(found | {"sampling": lines}, tmp_path).read_text(encoding="utf-8")
    assert "**90.0 ± 1.0**" in bad
    assert "Hard order 1, 500 rows (90.0 %)" in bad
    assert "| Toy | 500 | 50 | given |" in bad


# Fidelity


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.random(300), "b": rng.integers(0, 3, 300), "c": rng.choice(["u", "v"], 300)})
    y = 2.0 * X["a"].to_numpy() + X["b"].to_numpy() + (X["c"] == "u")
    return Task.of(Mixed("Toy", X, np.asarray(y, dtype=float), False), "linear", 0)


def test_rows_held_out_are_no_part_of_the_fit(task):
    assert (len(task.seen), len(task.held)) == (240, 60)
    together = pd.concat([task.seen, task.held])
    assert together.duplicated().sum() == task.table.X.duplicated().sum()


def test_a_contender_is_judged_on_rows_it_did_not_see(task):
    facts = fidelity.judged(lambda given: fidelity.fixed(given, max_order=1), task)
    anova = FunctionalANOVA(n_bins={"a": 12}, max_order=1, shrinkage=None, handle_unknown="ignore")
    assert facts["held_out"] == pytest.approx(anova.fit(task.seen, task.model).score(task.held, task.model))
    assert facts["functions"] == 1 + 11 + 2 + 1
    assert 0.9 < facts["held_out"] < facts["r2"] + 0.05


def spin(seconds: float) -> dict[str, float]:
    """Be busy for so long."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return {}


def test_what_takes_too_long_or_fails_says_so_and_is_not_tried_again(task, monkeypatch):
    monkeypatch.setattr(fidelity, "LIMIT", 1)
    slow = attempt(lambda _: spin(20.0), task)
    assert slow == {"failed": "not done after 1 s"}
    assert attempt(lambda _: {"held_out": 1.0}, task, slow) is slow

    def wrong(_):
        raise InputError("no such column.")

    assert attempt(wrong, task) == {"failed": "InputError: no such column."}


def test_a_random_column_is_last_and_not_told_from_zero_and_one_that_counts_is(task):
    facts = fidelity.never_read("exact", 0, task)
    assert (facts["rank"], facts["of"]) == (4, 4)
    X = task.seen.rename(columns={"c": NOISE})
    anova = FunctionalANOVA(n_bins={"a": 12}, max_order=1, shrinkage=None, sampled=True).fit(X, task.model(task.seen))
    assert told_from_zero(anova)
    assert fidelity.beyond(anova)


def test_the_page_of_fidelity_shows_who_is_behind(tmp_path):
    ours = {"held_out": 0.8, "r2": 0.9, "r2_eval": 0.7, "seconds": 1.0, "functions": 9}
    noise = {"rank": 4, "of": 4, "told": False}
    case = {"title": "Toy", "rows": 300, "columns": 3, "kind": "linear", "numbers": 1}
    case["splits"] = [
        {"default": ours, "main effects": ours, "by hand": ours | {"held_out": 0.9}, "exact": {"failed": "no"}}
    ]
    case["noise"] = [{"default": noise, "exact": noise}]
    found = {"cases": {"toy linear": case}, "growth": [], "versions": {"interpret-core": "1"}}
    found["boosted"] = {"toy linear": {"splits": [{"held_out": 0.81, "seconds": 50.0}]}}
    found["settings"] = {"splits": 1, "bins": 12, "budgets": [30], "complete": False}
    page = fidelity_page.write(found, tmp_path).read_text(encoding="utf-8")
    assert "| Toy | 300 | 3 | linear pipeline | 0.800 | 0.800 | 0.900 | - | 0.800 | 0.810 |" in page
    assert "at least that of *main effects* in 1 of 1 cases" in page
    assert "at least that of *by hand* in 0 of 1 cases; not on Toy, linear pipeline (-0.100)" in page
    assert "that of the EBM less 0.02, or more in 1 of 1 cases" in page
    assert "**-0.100**" in page
    assert "exact: no" in page
