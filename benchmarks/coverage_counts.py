"""How many intervals of several samples hold the truth, and which of them count (:mod:`benchmarks.coverage`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.coverage_answers import Answers, Intervals
from benchmarks.coverage_truth import Mask, Truth
from benchmarks.harness import Facts
from exanova.typing import FloatArray

FEW_ROWS = 30
"""Rows of a cell from which its interval counts."""

ROUNDING = 1e-9
"""What an effect without any sampling error may be off by, as a share of the largest value of the model."""

CLEAR = 3.0
"""An effect is clear if its norm is so many times the root of the mean squared error of its cells."""

REACH = 1.959963984540054
"""How many standard errors intervals of 95 % reach on both sides."""


def coverages(truth: Truth, answers: Sequence[Answers]) -> Facts:
    """Coverage of everything that has intervals; effects too weak to be measured stand apart."""
    slack = ROUNDING * float(np.abs(truth.population.values).max())
    counted = np.stack([counted_cells(truth, a) for a in answers])
    many = counted & np.stack([a.units >= FEW_ROWS for a in answers])
    cells = [a.cells for a in answers]
    facts = {
        "cells": tally(cells, truth.values, counted, slack),
        "cells_of_many_units": tally(cells, truth.values, many, slack),
        "shapley": tally([a.shapley for a in answers], truth.shapley, counted[:, truth.cells_of_rows].all(3), slack),
    }
    features = np.broadcast_to(truth.known_features, (len(answers), len(truth.known_features)))
    of_features = truth.by_feature(truth.anova.importance("shapley"), "value")
    facts["mean_shapley"] = tally([a.mean_shapley for a in answers], of_features, features, slack)
    clear = truth.importances("l2") > CLEAR**2 * np.mean([a.bias for a in answers], axis=0)
    clear = np.broadcast_to(clear, (len(answers), len(clear)))
    known = np.array([effect.identified is not False for effect in truth.anova.effects_.values()])
    for kind, found in (("l1", [a.l1 for a in answers]), ("l2", [a.l2 for a in answers])):
        facts[kind] = tally(found, truth.importances(kind), clear & known, slack)
        facts[f"weak_{kind}"] = tally(found, truth.importances(kind), ~clear & known, slack)
    return facts


def counted_cells(truth: Truth, answers: Answers) -> Mask:
    """(cells,) those that count: rows enough, identified both in the sample and in the population, no intercept."""
    counted = (answers.cells.rows >= FEW_ROWS) & truth.identified & ~answers.unidentified
    counted[truth.places[()][()]] = False
    return np.asarray(counted)


def tally(found: Sequence[Intervals], truth: FloatArray, counted: Mask, slack: float) -> Facts:
    """How many intervals there are, the share that holds the truth, and errors over the spread of the estimates.

    ``margin`` is the standard error of that share: intervals of one sample go together, samples do not.
    """
    counted = counted & np.isfinite(np.stack([one.low for one in found]))
    covered = np.stack([one.covers(truth, slack) for one in found]) & counted
    total = int(counted.sum())
    if not total:
        return {"intervals": 0, "coverage": None, "margin": None, "stderr_over_spread": None}
    share = float(covered.sum() / total)
    each = tuple(range(1, counted.ndim))
    off = covered.sum(axis=each) - share * counted.sum(axis=each)
    return {
        "intervals": total,
        "coverage": share,
        "margin": float(np.sqrt(np.sum(off**2)) / total),
        "stderr_over_spread": ratio_of_errors(found, counted),
    }


def ratio_of_errors(found: Sequence[Intervals], counted: Mask) -> float | None:
    """The median over places of the mean standard error over the standard deviation of the estimates.

    Only places that counted in every sample: where a cell counts only when it is large, its spread is another one.
    """
    always = counted.all(axis=0)
    if len(found) < 2 or not always.any():
        return None
    half = np.stack([one.high - one.low for one in found])[:, always] / (2 * REACH)
    spread = np.stack([one.value for one in found])[:, always].std(axis=0, ddof=1)
    moves = spread > 1e-12 * np.abs(spread).max(initial=0.0)
    return float(np.median(half.mean(axis=0)[moves] / spread[moves])) if moves.any() else None


def apart(truth: Truth, answers: Sequence[Answers]) -> Facts:
    """Cells that are not counted, as shares of all cells of all samples, by reason."""
    rows = np.stack([a.cells.rows for a in answers])
    unidentified = np.stack([a.unidentified for a in answers]) | ~truth.identified
    return {
        "missing": float((rows == 0).mean()),
        "few_rows": float(((rows > 0) & (rows < FEW_ROWS) & ~unidentified).mean()),
        "unidentified": float(((rows > 0) & unidentified).mean()),
    }
