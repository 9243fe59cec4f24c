"""Standard errors of shrunken effects: the posterior, and how effects move with the rows that were drawn.

Two things make an effect uncertain. Given the rows, the posterior says how far the effects may be from their shrunken
values: it holds the residual and what shrinking took away. And the rows are a sample: other rows would have had other
cell probabilities, under which the same function has other effects. The posterior knows nothing of the second; it is
the part W s_i of the influence of a row on an exact fit (:mod:`exanova.infer.influence`), and its variance is added.
The two are independent to first order, for the posterior has mean zero whatever the rows.

Clusters, strata and replicate weights enter the second part alone: the posterior takes residuals to be independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exanova import parallel
from exanova.basis.functions import build_basis
from exanova.design.family import Family
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.influence import Influence
from exanova.infer.linear import LinearErrors, RowTerms
from exanova.infer.responses import find_responses
from exanova.infer.units import find_variation, raw_residuals, raw_rows, raw_variances
from exanova.phi.operator import Phi
from exanova.shrink.posterior import Posterior
from exanova.typing import FloatArray

BLOCK_BYTES = 64_000_000
"""Memory of the coordinates of some statistics."""


@dataclass(frozen=True, eq=False)
class PosteriorErrors:
    """Standard errors of shrunken effects, in normalised units.

    Attributes:
        posterior: what the rows say of the effects.
        family: cells of the family.
        drawn: how effects move with the cell probabilities: closed form without a residual.
        mean: (m,) variance of the mean of the model that comes from the residual.
    """

    posterior: Posterior
    family: Family
    drawn: LinearErrors
    mean: FloatArray = field(repr=False)

    @classmethod
    def of(cls, fitted: FittedSample, family: Family, posterior: Posterior) -> PosteriorErrors:
        """The errors of the shrunken effects of a sample."""
        sample, threads = fitted.sample, fitted.request.threads
        phi = Phi(family, sample, threads)
        with parallel.suitable_blas(0):
            basis = build_basis(family)
            responses = find_responses(family, basis)
        influence = Influence(family, basis, responses, None, fitted.effects, phi, threads)
        draws, part = raw_rows(sample), phi.synthesise(fitted.effects)
        residual = sample.values - part
        variation, residuals = find_variation(sample, draws, residual), raw_residuals(sample, draws, residual)
        tau = np.array([c.residual for c in posterior.components])
        means = raw_variances(draws, part[draws.group])
        drawn = LinearErrors(influence, variation, draws, residuals, None, means)
        return cls(posterior, family, drawn, tau / posterior.count)

    @cached_property
    def _blocks(self) -> list[FloatArray]:
        with parallel.blas_threads(self.drawn.influence.threads):
            out = self.posterior.blocks(self.family)
        for s, block in enumerate(out):
            block += self.drawn.block(self.family.cells_of(s))
        out[0] += self.mean[:, None, None]
        return out

    @cached_property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        diagonals = [np.diagonal(block, axis1=1, axis2=2).T for block in self._blocks]
        return np.sqrt(np.maximum(np.concatenate(diagonals), 0.0))

    @cached_property
    def by_noise(self) -> FloatArray:
        """(cells, m) variance of every value over samples: of cell probabilities and of the noise, without what
        shrinking took away."""
        blocks = [self.drawn.block(self.family.cells_of(s)) for s in range(len(self.family.subsets))]
        drawn = np.concatenate([np.diagonal(block, axis1=1, axis2=2).T for block in blocks])
        return np.asarray(drawn + self.posterior.cell_variances(self.family, sampling=True))

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
        out = self.drawn.all_cells.copy()
        every = np.eye(self.family.n_cells)
        for o in range(len(out)):
            out[o] += self.posterior.covariance(self.family, o, every)
            out[o, 0, 0] += self.mean[o]
        return out

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        return self.drawn.variances(output, weights) + self.given_rows(output, weights)

    def smooth_variances(self, output: int, weights: FloatArray, terms: RowTerms) -> FloatArray:
        """(f,) variances of smooth statistics with the gradient ``weights`` (cells, f) and these further terms."""
        return self.drawn.smooth_variances(output, weights, terms) + self.given_rows(output, weights)

    def given_rows(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) what the posterior contributes, some statistics at a time."""
        out = np.empty(weights.shape[1])
        for part in self._parts(weights.shape[1]):
            own = weights[:, part]
            out[part] = self.posterior.variances(self.family, output, own) + self.mean[output] * own[0] ** 2
        return out

    def _parts(self, count: int) -> Iterator[slice]:
        step = max(1, BLOCK_BYTES // (32 * max(1, len(self.posterior.prior.order), self.family.n_keys)))
        for first in range(0, count, step):
            yield slice(first, min(count, first + step))
