"""A page stays small and is made in time, whatever the features, levels and outputs: budgets in bytes and in work."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from exanova.report import html
from exanova.report.live import NUMBERS
from exanova.report.page import Page
from exanova.report.summary import summarise

pytestmark = pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")

FRAME = 100_000
"""Bytes of a page without data: template, style and script."""

PER_VALUE = 22
"""Bytes of one value of an effect: 8 of the value and 4 each of its standard error and mean, in base64."""

PER_LEVEL = 60
"""Bytes of a level beyond its name: share and rows, its cells."""

PER_CODE = 1.5
"""Bytes of a level of a row."""


def columns(features: int, levels: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({f"f{i}": rng.integers(0, levels, rows).astype(str) for i in range(features)})


def made(features: int, levels: int, outputs: int, rows: int) -> tuple[FunctionalANOVA, pd.DataFrame]:
    table = columns(features, levels, rows)
    values = np.random.default_rng(1).normal(size=(rows, outputs))
    return FunctionalANOVA(shrinkage=None, max_order=1, max_levels=None).fit(table, values), table


def test_the_page_around_the_data_is_small():
    around = len(html._script()) + len(html._text("report.css")) + len(html._text("report.html.j2"))
    assert around < FRAME


@pytest.mark.parametrize(("features", "levels", "outputs"), [(784, 2, 10), (60, 20, 8), (8, 5, 1)])
def test_the_data_of_a_page_grow_as_its_values(features, levels, outputs):
    anova, table = made(features, levels, outputs, 400)
    started = time.process_time()
    summary = summarise(anova.decomposition_, X=table)
    page = Page(summary)
    seconds = time.process_time() - started
    rows = len(summary.live.rows.numbers)
    covered = 0 if summary.live.errors is None else summary.live.errors.triangles.size
    values = features * levels * outputs
    importance = features * outputs * 40
    budget = PER_VALUE * values + PER_LEVEL * features * levels + PER_CODE * features * rows
    told = summary.live.at_rows
    budget += 3 * (0 if told is None else told.stderr.size)
    budget += importance + 6 * covered + 11 * rows * outputs + 90_000
    size = len(page.payload.to_json())
    assert summary.live.effects.is_complete
    assert size < budget, (size, budget)
    assert size < 2e6
    assert seconds < 60  # some 3 s of work; a chart library took 30 ms for each feature


def test_pages_of_the_largest_tables_stay_below_four_megabytes(tmp_path):
    rng = np.random.default_rng(2)
    table = columns(40, 8, 600)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    anova = FunctionalANOVA(shrinkage=None, subsets=pairs, max_levels=None).fit(table, rng.normal(size=(600, 20)))
    assert anova.decomposition_.values.size < NUMBERS
    anova.report(tmp_path / "whole.html", X=table)
    assert (tmp_path / "whole.html").stat().st_size < 4e6
