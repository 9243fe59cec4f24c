"""Standard errors in closed form: of every cell, of linear statistics, of smooth statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exanova import parallel
from exanova.data.draws import Draws
from exanova.design.family import Family
from exanova.infer.blocks import Blocks, covariance_blocks, covariance_of_all
from exanova.infer.draws import Variation, find_variation, raw_residuals, raw_rows, raw_variances
from exanova.infer.fitted_sample import FittedSample, prepare
from exanova.infer.influence import Influence, linear, read_at_rows, variances
from exanova.typing import FloatArray

COLUMNS_BYTES = 64_000_000
"""Memory of the influences of one block of statistics at all raw rows."""


MOST_ENLARGED = 5.0
"""Largest factor of squared residuals for the functions that were fitted."""


@dataclass(frozen=True, eq=False)
class RowTerms:
    """Terms of the influence of f statistics besides the change of T: direct + e by_residual + e^2 by_square.

    Attributes:
        direct, by_residual, by_square: (r, f) each, over the distinct rows; ``None`` for zero.
    """

    direct: FloatArray | None = None
    by_residual: FloatArray | None = None
    by_square: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class LinearErrors:
    """Standard errors in closed form, in normalised units.

    Attributes:
        influence: of every row on every effect.
        variation: the sources of variation.
        draws: the raw rows.
        residuals: (k, m) of the raw rows.
    """

    influence: Influence
    variation: Variation
    draws: Draws
    residuals: FloatArray

    @classmethod
    def of(cls, fitted: FittedSample, index: Family, *, corrected: bool = True) -> LinearErrors:
        """The closed form for the effects of a fitted sample.

        Residuals of a fit are smaller than those of other rows: their squares by about (n - q) / n for q functions on n
        rows. Unless ``corrected`` is false, their influence is enlarged by the square root of the inverse, except for
        the intercept.
        """
        with parallel.blas_threads(fitted.request.threads):
            influence, residual = prepare(fitted, index)
        draws = raw_rows(fitted.sample)
        if corrected and influence.inverse is not None:
            rank = len(influence.inverse) if fitted.solved is None else fitted.solved[1].rank
            influence.inverse[1:] *= _degrees_of_freedom(draws, rank)
        variation = find_variation(fitted.sample, draws, residual)
        return cls(influence, variation, draws, raw_residuals(fitted.sample, draws, residual))

    @cached_property
    def _blocks(self) -> Blocks:
        with parallel.blas_threads(self.influence.threads):
            return covariance_blocks(self.influence, self.variation)

    @cached_property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        diagonals = [np.diagonal(block, axis1=1, axis2=2).T for block in self._blocks]
        return np.sqrt(np.maximum(np.concatenate(diagonals), 0.0))

    def block(self, cells: slice) -> FloatArray:
        """(m, c, c) covariance of the cells of one subset, given as a slice."""
        s = int(np.searchsorted(self.influence.index.cell_start, cells.start))
        return self._blocks[s]

    @property
    def has_all_cells(self) -> bool:
        """Whether the covariance of all cells has been computed."""
        return "all_cells" in self.__dict__

    @cached_property
    def all_cells(self) -> FloatArray:
        """(m, cells, cells) covariance of all values."""
        with parallel.blas_threads(self.influence.threads):
            return covariance_of_all(self.influence, self.variation)

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        with parallel.blas_threads(self.influence.threads):
            return variances(self.influence, self.variation, output, weights)

    def smooth_variances(self, output: int, weights: FloatArray, terms: RowTerms) -> FloatArray:
        """(f,) variances of smooth statistics with the gradient ``weights`` (cells, f) and these further terms."""
        out = np.empty(weights.shape[1])
        step = max(1, COLUMNS_BYTES // (32 * len(self.draws.group)))
        for first in range(0, weights.shape[1], step):
            chosen = slice(first, min(weights.shape[1], first + step))
            out[chosen] = raw_variances(self.draws, self._influences(output, weights[:, chosen], terms, chosen))
        return out

    def _influences(self, output: int, weights: FloatArray, terms: RowTerms, chosen: slice) -> FloatArray:
        """(k, f) influence of every raw row."""
        tables = linear(self.influence, output, weights)
        group, e = self.draws.group, self.residuals[:, [output]]
        direct, by_residual = (read_at_rows(self.influence, table) for table in tables)
        direct += 0.0 if terms.direct is None else terms.direct[:, chosen]
        by_residual += 0.0 if terms.by_residual is None else terms.by_residual[:, chosen]
        out = direct[group] + e * by_residual[group]
        return out if terms.by_square is None else out + e**2 * terms.by_square[group][:, chosen]


def _degrees_of_freedom(draws: Draws, rank: int) -> float:
    """sqrt(n / (n - q)); where functions are nearly as many as rows, no more than the root of five."""
    rows = float(draws.weight.sum()) if draws.kind == "frequency" else float(len(draws.weight))
    return float(np.sqrt(rows / max(rows - rank, rows / MOST_ENLARGED)))
