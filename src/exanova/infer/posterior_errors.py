"""Standard errors of shrunken effects: their variation with the rows that were drawn, and the bias of shrinkage.

A shrunken effect is off for two reasons. Other rows would have given another estimate: the influence of a row on it is
that on an exact fit, a_i + e_i b_i, with the map of the posterior mean in place of Gamma^-1
(:mod:`exanova.infer.shrunken_noise`), so that residuals need not be alike, and clusters, strata and replicate weights
enter as they do there. And shrinkage adds a bias, whose square is that expected under the prior. Where rows determine
every function there is no bias, and the errors are those of an exact fit.

Where functions are too many for a matrix of all pairs of them, the columns that the fit used take their place. Where
these are too many as well, the noise is taken to be independent and of the same variance in all rows, which is what the
posterior itself supposes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from exanova import parallel
from exanova.basis.functions import Basis, build_basis
from exanova.data.draws import Draws
from exanova.design.family import Family
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.influence import Influence, leverages
from exanova.infer.linear import LinearErrors, RowTerms, noise_of
from exanova.infer.responses import Responses, find_responses
from exanova.infer.shrunken_noise import columns_as_basis, inverse_of, inverse_on_columns
from exanova.infer.units import find_variation, free_parts, raw_residuals, raw_rows, raw_variances
from exanova.phi.operator import Phi
from exanova.shrink.posterior import OutputGroup, Posterior
from exanova.typing import FloatArray, IntArray

BLOCK_BYTES = 64_000_000
"""Memory of the coordinates of some statistics."""

MOST_FUNCTIONS = 4000
"""Functions up to which the noise is measured from the residuals of the rows: beyond, a matrix takes minutes."""


@dataclass(frozen=True, eq=False)
class PosteriorErrors:
    """Standard errors of shrunken effects, in normalised units.

    Attributes:
        posterior: the posterior of the effects.
        family: cells of the family.
        drawn: for each part of the posterior, how its outputs move with the rows.
        mean: (m,) variance of the mean of the model that ``drawn`` does not hold.
        measured: whether ``drawn`` holds the noise; if not, the posterior does.
    """

    posterior: Posterior
    family: Family
    drawn: tuple[LinearErrors, ...]
    mean: FloatArray
    measured: bool

    @classmethod
    def of(cls, fitted: FittedSample, family: Family, posterior: Posterior) -> PosteriorErrors:
        """The errors of the shrunken effects of a sample."""
        with parallel.suitable_blas(0):
            basis = build_basis(family)
            responses = find_responses(family, basis)
        q = basis.n_functions
        spans = q <= MOST_FUNCTIONS and 40 * q**2 <= fitted.request.memory_limit
        measured = spans or _columns_are_few(posterior, fitted.request.memory_limit)
        used = basis if spans or not measured else columns_as_basis(posterior.prior, family)
        rows = _Rows(fitted, family, used, responses, spans)
        with parallel.blas_threads(fitted.request.threads):
            drawn = tuple(rows.errors(posterior, part, measured) for part in posterior.parts)
        tau = np.array([c.residual for c in posterior.components])
        return cls(posterior, family, drawn, np.zeros_like(tau) if measured else tau / posterior.count, measured)

    @cached_property
    def _blocks(self) -> list[FloatArray]:
        with parallel.blas_threads(self._threads):
            out = self._given_rows_blocks() if self.measured else self.posterior.blocks(self.family)
        for part, drawn in zip(self.posterior.parts, self.drawn, strict=True):
            for s, block in enumerate(out):
                block[part.outputs] += drawn.block(self.family.cells_of(s))
        out[0] += self.mean[:, None, None]
        return out

    def _given_rows_blocks(self) -> list[FloatArray]:
        """For each subset, (m, c, c) products of what shrinking took away."""
        m = len(self.posterior.components)
        out = [np.zeros((m, c, c)) for c in np.diff(self.family.cell_start).tolist()]
        for part in self.posterior.parts:
            scale = self.posterior.scale(part)
            for s, own, table in self.posterior.prior.groups():
                v = np.zeros((len(scale), len(table)))
                v[own] = (table * scale[own]).T
                out[s][part.outputs] = part.bias(self.posterior.prior, v, s)
        return out

    @property
    def free(self) -> FloatArray | None:
        """(k,) 1 - h of the raw rows, averaged over the parts; ``None`` where residuals are not used."""
        known = [drawn.free for drawn in self.drawn if drawn.free is not None]
        return np.mean(known, axis=0) if known else None

    @property
    def _threads(self) -> int:
        return self.drawn[0].influence.threads if self.drawn else 1

    @cached_property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        diagonals = [np.diagonal(block, axis1=1, axis2=2).T for block in self._blocks]
        return np.sqrt(np.maximum(np.concatenate(diagonals), 0.0))

    @cached_property
    def by_noise(self) -> FloatArray:
        """(cells, m) variance of every value over samples, without what shrinking took away."""
        out = np.zeros((self.family.n_cells, len(self.posterior.components)))
        for part, drawn in zip(self.posterior.parts, self.drawn, strict=True):
            out[:, part.outputs] = drawn.stderr**2
        return out if self.measured else out + self.posterior.cell_variances(self.family, sampling=True)

    def block(self, cells: slice) -> FloatArray:
        """(m, c, c) covariance of the cells of one subset, given by where they lie."""
        return self._blocks[int(np.searchsorted(self.family.cell_start, cells.start))]

    @property
    def has_all_cells(self) -> bool:
        """Whether the covariance of all cells has been computed."""
        return "all_cells" in self.__dict__

    @cached_property
    def all_cells(self) -> FloatArray:
        """(m, cells, cells) covariance of all values."""
        n, m = self.family.n_cells, len(self.posterior.components)
        out, every = np.zeros((m, n, n)), np.eye(n)
        for part, drawn in zip(self.posterior.parts, self.drawn, strict=True):
            out[part.outputs] = drawn.all_cells
        for o in range(m):
            out[o] += self._given_rows(o, every)
            out[o, 0, 0] += self.mean[o]
        return out

    def _given_rows(self, output: int, weights: FloatArray) -> FloatArray:
        """(f, f) covariance of sums of effects times ``weights`` that ``drawn`` does not hold."""
        own = self.posterior.part_of(output)
        if own is None or not self.measured:
            return self.posterior.covariance(self.family, output, weights)
        part, scale = own[0], self.posterior.scale(own[0])[:, None]
        v = scale * self.posterior.prior.on_columns(self.family, weights)
        return np.asarray(part.bias(self.posterior.prior, v)[np.flatnonzero(part.outputs == output)[0]])

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        return self._drawn(output, weights, None) + self.given_rows(output, weights)

    def smooth_variances(self, output: int, weights: FloatArray, terms: RowTerms) -> FloatArray:
        """(f,) variances of smooth statistics with the gradient ``weights`` (cells, f) and these further terms."""
        return self._drawn(output, weights, terms) + self.given_rows(output, weights)

    def _drawn(self, output: int, weights: FloatArray, terms: RowTerms | None) -> FloatArray:
        drawn, place = self._of_output(output)
        if drawn is None:
            return np.zeros(weights.shape[1])
        return drawn.variances(place, weights) if terms is None else drawn.smooth_variances(place, weights, terms)

    def influences(self, output: int, weights: FloatArray) -> FloatArray | float:
        """(k, f) influence of every raw row on the sums of T times ``weights``; 0 for an output that is constant."""
        drawn, place = self._of_output(output)
        return 0.0 if drawn is None else drawn.influences(place, weights)

    def _of_output(self, output: int) -> tuple[LinearErrors | None, int]:
        for part, drawn in zip(self.posterior.parts, self.drawn, strict=True):
            place = np.flatnonzero(part.outputs == output)
            if len(place):
                return drawn, int(place[0])
        return None, 0

    def given_rows(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) what is uncertain given the rows, some statistics at a time."""
        out = np.empty(weights.shape[1])
        for part in self._parts(weights.shape[1]):
            own = weights[:, part]
            out[part] = np.diagonal(self._given_rows(output, own)) + self.mean[output] * own[0] ** 2
        return np.asarray(np.maximum(out, 0.0))

    def _parts(self, count: int) -> Iterator[slice]:
        step = max(1, BLOCK_BYTES // (32 * max(1, len(self.posterior.prior.order), self.family.n_keys)))
        for first in range(0, count, step):
            yield slice(first, min(count, first + step))


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a fit, from which errors of some outputs are made."""

    fitted: FittedSample
    family: Family
    basis: Basis
    responses: Responses
    spans: bool

    def errors(self, posterior: Posterior, part: OutputGroup, measured: bool) -> LinearErrors:
        """How the outputs of a part move with the rows: with their residuals, or with cell probabilities alone."""
        sample, threads = self.fitted.sample, self.fitted.request.threads
        phi, own = Phi(self.family, sample, threads), part.outputs
        effects, draws = self.fitted.effects[:, own], _only(raw_rows(sample), own)
        sample = replace(sample, values=sample.values[:, own], within=None, noise=None, scaling=None, draws=draws)
        fit = phi.synthesise(effects)
        residual = sample.values - fit
        inverse = self._inverse(posterior, part) if measured else None
        spans = self.spans or not measured
        influence = Influence(self.family, self.basis, self.responses, inverse, effects, phi, threads, spans)
        free = None if inverse is None else free_parts(draws, leverages(influence))
        raw = raw_residuals(sample, draws, residual)
        noise = noise_of(influence, draws, raw, free)
        variation = find_variation(draws, noise, len(residual))
        means = raw_variances(draws, fit[draws.group] + (raw if measured else 0.0))
        return LinearErrors(influence, variation, draws, raw, noise, means, free)

    def _inverse(self, posterior: Posterior, part: OutputGroup) -> FloatArray:
        if self.spans:
            return inverse_of(posterior, part, self.family, self.basis)
        return inverse_on_columns(posterior, part)


def _columns_are_few(posterior: Posterior, memory_limit: int) -> bool:
    """Whether a matrix of all pairs of columns is small; a fit by rows may have many more columns than rows."""
    by_functions = all(part.spread.read is None for part in posterior.parts)
    largest = max((len(part.spread.lower) for part in posterior.parts), default=0)
    return by_functions and largest <= MOST_FUNCTIONS and 40 * largest**2 <= memory_limit


def _only(draws: Draws, outputs: IntArray) -> Draws:
    return draws if draws.values is None else replace(draws, values=draws.values[:, outputs])
