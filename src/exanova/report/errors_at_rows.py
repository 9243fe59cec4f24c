"""Standard errors at the rows of a page, computed when the page is made, where it cannot hold all covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.decomposition import Decomposition
from exanova.explain.row_errors import row_stderr, with_the_sum
from exanova.show.error_bars import can_compute
from exanova.typing import FloatArray, IntArray

NUMBERS = 100_000
"""Standard errors, over rows, features and outputs: 0.5 MB as text."""

WORK = 1e10
"""Multiplications up to which they are computed: some seconds."""


@dataclass(frozen=True, eq=False)
class ErrorsAtRows:
    """Standard errors of Shapley values and of the fitted part.

    Attributes:
        rows: (k,) which rows of the page have them.
        stderr: (k, d + 1, m) of every feature and of the fitted part; NaN where there is none.
    """

    rows: IntArray
    stderr: FloatArray


def errors_at_rows(decomposition: Decomposition, codes: IntArray) -> ErrorsAtRows | None:
    """The standard errors at as many rows (n, d) as is cheap, spread over them; ``None`` if there are none."""
    if not can_compute(decomposition) or not len(codes):
        return None
    d, m = len(decomposition.family.sizes), decomposition.values.shape[1]
    most = min(len(codes), NUMBERS // ((d + 1) * m), int(WORK // _work(decomposition)))
    rows = np.unique(np.linspace(0, len(codes) - 1, most).round().astype(np.int64)) if most else np.zeros(0, np.int64)
    if not len(rows):
        return None
    asked = np.ascontiguousarray(codes[rows].T).astype(np.int32)
    matrix = with_the_sum(decomposition.family.subsets, d)
    stderr = row_stderr(decomposition.family, decomposition.uncertainty, asked, matrix, decomposition.everywhere)
    stderr[:, :-1][codes[rows] < 0] = 0.0  # a level that is not known has no effect
    return ErrorsAtRows(rows, stderr)


def _work(decomposition: Decomposition) -> float:
    """Multiplications for one row: pairs of its cells, or the influence of every row on each statistic."""
    subsets, (cells, m) = float(len(decomposition.family.subsets)), decomposition.values.shape
    d = len(decomposition.family.sizes) + 1
    if decomposition.uncertainty.has_all_cells:
        return float(m) * subsets**2 * d
    assert decomposition.sample is not None
    rows = float(decomposition.sample.n_rows)
    return float(m) * d * (min(float(cells), rows) ** 2 + rows * subsets)
