"""Standard errors in closed form: of every cell, of linear statistics, of smooth statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exanova import parallel
from exanova.data.draws import Draws
from exanova.design.family import Family
from exanova.infer.blocks import Blocks, covariance_blocks, covariance_of_all
from exanova.infer.cluster_noise import MOST_WORK, cluster_noise, work_of
from exanova.infer.fitted_sample import FittedSample, prepare
from exanova.infer.influence import Influence, leverages, linear, read_at_rows, variances
from exanova.infer.units import (
    Variation,
    find_variation,
    free_parts,
    noise_factor,
    raw_residuals,
    raw_rows,
    raw_variances,
)
from exanova.typing import FloatArray, IntArray

COLUMNS_BYTES = 64_000_000
"""Memory of the influences of one block of statistics at all raw rows."""


@dataclass(frozen=True, eq=False)
class RowTerms:
    """Terms of the influence of f statistics besides the change of T: direct + e by_residual + e^2 by_square.

    Attributes:
        direct, by_residual, by_square: (r, f) each, over the distinct rows; ``None`` for zero.
    """

    direct: FloatArray | None = None
    by_residual: FloatArray | None = None
    by_square: FloatArray | None = None


def noise_of(influence: Influence, draws: Draws, residuals: FloatArray, free: FloatArray | None) -> FloatArray:
    """(k, m) the noise that residuals of raw rows represent, given the part 1 - h of it that each row keeps.

    Rows of a cluster determine their fit together; where clusters are too large to ask how much, each row stands alone.
    """
    if free is None or influence.inverse is None:
        return residuals
    if corrected_as_a_whole(influence, draws):
        functions = influence.phi.functions(influence.basis)
        return cluster_noise(draws, functions, influence.inverse, residuals)
    return residuals * noise_factor(free)[:, None]


def corrected_as_a_whole(influence: Influence, draws: Draws) -> bool:
    """Whether residuals are corrected for the leverage of their cluster, not of each row."""
    return draws.across_rows and work_of(draws, influence.basis.n_functions) <= MOST_WORK


@dataclass(frozen=True, eq=False)
class LinearErrors:
    """Standard errors in closed form, in normalised units.

    Attributes:
        influence: of every row on every effect.
        variation: the sources of variation.
        draws: the raw rows.
        residuals: (k, m) of the raw rows.
        noise: (k, m) the noise they represent.
        means: (m,) variances of the means of the outputs.
        free: (k,) 1 - h of the raw rows, or ``None`` without residuals.
    """

    influence: Influence
    variation: Variation
    draws: Draws
    residuals: FloatArray
    noise: FloatArray
    means: FloatArray
    free: FloatArray | None = None

    @classmethod
    def of(cls, fitted: FittedSample, family: Family) -> LinearErrors:
        """The closed form for the effects of a fitted sample."""
        sample, draws = fitted.sample, raw_rows(fitted.sample)
        with parallel.blas_threads(fitted.request.threads):
            influence, residual = prepare(fitted, family)
            free = None if influence.inverse is None else free_parts(draws, leverages(influence))
            raw = raw_residuals(sample, draws, residual)
            noise = noise_of(influence, draws, raw, free)
        values = read_at_rows(influence, influence.values)[draws.group] + raw
        variation = find_variation(draws, noise, len(residual))
        return cls(influence, variation, draws, raw, noise, raw_variances(draws, values), free)

    @cached_property
    def _blocks(self) -> Blocks:
        with parallel.blas_threads(self.influence.threads):
            blocks = covariance_blocks(self.influence, self.variation)
        blocks[0] = self.means[:, None, None].copy()  # a mean is not a fit: its residuals are not too small
        return blocks

    @cached_property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        diagonals = [np.diagonal(block, axis1=1, axis2=2).T for block in self._blocks]
        return np.sqrt(np.maximum(np.concatenate(diagonals), 0.0))

    def block(self, cells: slice) -> FloatArray:
        """(m, c, c) covariance of the cells of one subset, given as a slice."""
        s = int(np.searchsorted(self.influence.family.cell_start, cells.start))
        return self._blocks[s]

    @property
    def has_all_cells(self) -> bool:
        """Whether the covariance of all cells has been computed."""
        return "all_cells" in self.__dict__

    @cached_property
    def all_cells(self) -> FloatArray:
        """(m, cells, cells) covariance of all values."""
        with parallel.blas_threads(self.influence.threads):
            out = covariance_of_all(self.influence, self.variation)
        out[:, 0, 0] = self.means
        return out

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        with parallel.blas_threads(self.influence.threads):
            by_influence = variances(self.influence, self.variation, output, weights)
            fitted = variances(self.influence, self.variation, output, self._mean) if weights[0].any() else 0.0
        return np.asarray(by_influence + (self.means[output] - fitted) * weights[0] ** 2)

    @property
    def _mean(self) -> FloatArray:
        """(cells, 1) weights of the mean, which has a variance of its own: it is not a fit."""
        out = np.zeros((self.influence.family.n_cells, 1))
        out[0] = 1.0
        return out

    def smooth_variances(self, output: int, weights: FloatArray, terms: RowTerms) -> FloatArray:
        """(f,) variances of smooth statistics with the gradient ``weights`` (cells, f) and these further terms."""
        out = np.empty(weights.shape[1])
        step = max(1, COLUMNS_BYTES // (32 * len(self.draws.group)))
        for first in range(0, weights.shape[1], step):
            chosen = slice(first, min(weights.shape[1], first + step))
            out[chosen] = raw_variances(self.draws, self._influences(output, weights[:, chosen], terms, chosen))
        if not weights[0].any():
            return out
        fitted = raw_variances(self.draws, self._influences(output, self._mean, RowTerms(), slice(0, 1)))
        return np.asarray(out + (self.means[output] - fitted) * weights[0] ** 2)

    def influences(self, output: int, weights: FloatArray) -> FloatArray:
        """(k, f) influence of every raw row on the sums of T times ``weights`` (cells, f)."""
        with parallel.blas_threads(self.influence.threads):
            return self._influences(output, weights, RowTerms(), slice(0, weights.shape[1]))

    def as_noise(self, residuals: FloatArray, place: IntArray) -> FloatArray:
        """(n, m) the noise that residuals (n, m) represent at the raw rows ``place`` (n,), or at others equal to them.

        Equal rows have the same leverage, and those of a cluster the same correction, but not the same residual.
        """
        if self.free is None:
            return residuals
        if corrected_as_a_whole(self.influence, self.draws):
            return residuals + (self.noise - self.residuals)[place]
        return residuals * noise_factor(self.free)[place, None]

    def _influences(self, output: int, weights: FloatArray, terms: RowTerms, chosen: slice) -> FloatArray:
        """(k, f) influence of every raw row."""
        tables = linear(self.influence, output, weights)
        group, e, noise = self.draws.group, self.residuals[:, [output]], self.noise[:, [output]]
        direct, by_noise = (read_at_rows(self.influence, table) for table in tables)
        direct += 0.0 if terms.direct is None else terms.direct[:, chosen]
        out = direct[group] + noise * by_noise[group]
        out += 0.0 if terms.by_residual is None else e * terms.by_residual[group][:, chosen]
        return out if terms.by_square is None else out + e**2 * terms.by_square[group][:, chosen]
