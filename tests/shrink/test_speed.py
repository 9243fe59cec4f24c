"""Prices of shrunken fits: work is priced where it is done, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.shrink.cost import MOST_ROWS
from exanova.shrink.prepared import START_ROWS
from exanova.shrink.ratios import START_FROM
from exanova.shrink.speed import drifting_seconds, shrinking_seconds


def test_a_start_on_few_rows_is_priced_where_the_search_starts_there():
    def seconds(functions: int, subsets: int) -> float:
        return shrinking_seconds(10 * START_FROM, functions, 1, subsets)

    assert START_FROM > START_ROWS
    assert seconds(START_FROM - 1, 200) == seconds(START_FROM - 1, 100)  # kernels of subsets are not read
    assert seconds(START_FROM, 200) > seconds(START_FROM, 100)


def test_the_step_without_each_row_is_priced_by_output_where_rows_are_few():
    codes = np.random.default_rng(0).integers(0, 4, (9, MOST_ROWS + 1)).astype(np.int8)
    family = build_family(codes[:, :800], np.full(800, 1 / 800), (4,) * 9, up_to_order(range(9), 2))
    one = drifting_seconds(800, 352, 1, family)
    assert one > 0
    assert drifting_seconds(800, 352, 3, family) == pytest.approx(3 * one)
    assert drifting_seconds(MOST_ROWS + 1, 352, 3, family) == 0


def test_a_plan_has_that_step_in_its_seconds(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 4, (600, 9))
    planned = FunctionalANOVA(n_jobs=1).plan(rows, n_outputs=4).seconds
    monkeypatch.setattr("exanova.shrink.planned.drifting_seconds", lambda *given: 0.0)
    assert FunctionalANOVA(n_jobs=1).plan(rows, n_outputs=4).seconds < planned / 2
