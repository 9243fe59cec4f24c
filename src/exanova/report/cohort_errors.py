"""Standard errors of differences between groups that a reader of the page may choose, computed in advance.

The errors of ``difference`` need the influence of every row, which a page does not hold. So they are computed in
advance for every level of a feature against all other rows and, as far as the budget goes, against every other level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exanova.data.weights import as_counts
from exanova.decomposition import Decomposition
from exanova.effects.at_rows import fitted_part
from exanova.explain.contrasting import Parts, Rows, feature_errors
from exanova.explain.grouping import grouping_of
from exanova.progress import Progress
from exanova.report.covariances import why_unknown
from exanova.report.live_rows import LiveRows
from exanova.show.error_bars import can_compute
from exanova.typing import FloatArray, IntArray

SETS = 400
"""Pairs of groups for which standard errors are computed."""

NUMBERS = 12_000
"""Standard errors that a page holds for them: 64 kB."""

WORK = 1e9
"""Reads of a cell at a row, over all pairs of groups, features and outputs, up to which that is done: five seconds."""

OTHERS = -1
"""In place of a level: all rows without the first one."""


@dataclass(frozen=True, eq=False)
class CohortErrors:
    """Standard errors of differences between groups of rows.

    Attributes:
        sets: (k, 3) a feature, a level of it, and the level it is compared with, or -1 for all other rows.
        stderr: (k, d + 2, m) of the part of every feature, of the residual and of the total; NaN where there is none.
        note: what the errors include, or why there are none.
    """

    sets: IntArray
    stderr: FloatArray
    note: str


def cohort_errors(decomposition: Decomposition, live: LiveRows | None, progress: Progress) -> CohortErrors:
    """The errors for the rows of a page, of as many pairs of groups as are cheap to compute."""
    if live is None or not can_compute(decomposition):
        return _none(decomposition, why_unknown(decomposition))
    if not live.is_whole:
        return _none(decomposition, "this page holds only some of the rows; report(by=) compares all of them")
    rows = _rows(decomposition, live)
    sets = list(_affordable(decomposition, rows))
    if not sets:
        return _none(
            decomposition, "they take long to compute for this many rows and effects; report(by=) computes them"
        )
    sources, included = decomposition.error_sources(rows, True)
    if not sources.rows:
        return _none(decomposition, included.removeprefix("none: "))
    shares = grouping_of({}, decomposition.schema).shares(decomposition.family.subsets)
    parts = Parts(decomposition.everywhere, shares)
    progress.phase("report: groups of rows", len(sets))
    stderr = []
    for errors in feature_errors(parts, rows, (_side(rows, *chosen) for chosen in sets), sources):
        stderr.append(errors)
        progress.step()
    return CohortErrors(np.array(sets, dtype=np.int64), np.array(stderr), f"Whiskers are 95 % intervals: {included}.")


def _none(decomposition: Decomposition, why: str) -> CohortErrors:
    features, m = len(decomposition.schema.features), decomposition.values.shape[1]
    return CohortErrors(np.zeros((0, 3), dtype=np.int64), np.zeros((0, features + 2, m)), f"No error bars: {why}.")


def _rows(decomposition: Decomposition, live: LiveRows) -> Rows:
    """The rows of the page: those given, or the raw rows of the fit."""
    if live.given:
        codes = np.ascontiguousarray(live.codes.T).astype(np.int32)
        weight = np.ones(len(live.codes), dtype=np.int64) if live.mass is None else as_counts(live.mass)
        fitted = fitted_part(decomposition.everywhere, codes)
        values = None if live.residual is None else fitted + live.residual
        return Rows(codes, weight, values, np.zeros(codes.shape[1], dtype=np.bool_))
    sample = decomposition.sample
    assert sample is not None
    group = np.arange(sample.n_rows) if sample.draws is None else sample.draws.group
    codes = np.ascontiguousarray(sample.codes[:, group]).astype(np.int32)
    weight = sample.weight if sample.draws is None else sample.draws.weight
    return Rows(codes, weight, None, np.zeros(codes.shape[1], dtype=np.bool_))


def _affordable(decomposition: Decomposition, rows: Rows) -> Iterator[tuple[int, int, int]]:
    """Pairs of groups within the budget: first each level against all others, then level against level."""
    family, m = decomposition.family, decomposition.values.shape[1]
    each = float(rows.codes.shape[1]) * len(family.subsets) * (rows.codes.shape[0] + 1) * m
    numbers = (rows.codes.shape[0] + 2) * m
    present = [[c for c in np.unique(codes).tolist() if c >= 0] for codes in rows.codes]
    against = [(i, c, OTHERS) for i, levels in enumerate(present) if len(levels) > 1 for c in levels]
    between = [(i, a, b) for i, levels in enumerate(present) if len(levels) > 2 for a, b in combinations(levels, 2)]
    yield from [*against, *between][: int(min(SETS, NUMBERS // numbers, WORK // max(each, 1.0)))]


def _side(rows: Rows, feature: int, level: int, against: int) -> IntArray:
    """(n,) +1 in the first group, -1 in the second."""
    codes = rows.codes[feature]
    second = codes != level if against == OTHERS else codes == against
    return np.where(codes == level, 1, np.where(second, -1, 0)).astype(np.int64)
