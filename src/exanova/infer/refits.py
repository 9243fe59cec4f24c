"""Refits with random weights: a check of the closed form, and an alternative where it is unreliable.

Every independent unit gets a weight from the exponential distribution with mean one (the Bayesian bootstrap), so that
no cell ever disappears. All rows of a cluster share one draw; within a stratum the draws are divided by their mean. A
selection of subsets is repeated in every refit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from exanova.data.draws import Draws
from exanova.data.sample import Sample
from exanova.data.values import average
from exanova.data.weights import group_totals
from exanova.design.family import Family
from exanova.errors import InputError
from exanova.fitting import fit_sample, plan_fit
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.units import raw_rows
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.solve.evidence import Solved
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False)
class RefitErrors:
    """B refits, in normalised units.

    Attributes:
        effects: (B, cells, m) effects, 0 for a subset that a refit did not choose.
        probability: (B, r) probabilities of the distinct rows.
        sums: (B, cells, m) expectations of the model in every cell, E[f 1{x_A = cell}].
        variance: (B, m) variance of the model.
    """

    effects: FloatArray
    probability: FloatArray
    sums: FloatArray
    variance: FloatArray

    @cached_property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        return np.asarray(self.effects.std(axis=0, ddof=1))

    def block(self, cells: slice) -> FloatArray:
        """(m, c, c) covariance of the cells of one subset, given as a slice."""
        apart = self.effects[:, cells] - self.effects[:, cells].mean(axis=0)
        return np.asarray(np.einsum("bcm,bdm->mcd", apart, apart) / (len(apart) - 1))

    @property
    def has_all_cells(self) -> bool:
        """Refits give the spread of every statistic at once; covariances of all cells are never needed."""
        return False

    @property
    def all_cells(self) -> FloatArray:
        """(m, cells, cells) covariance of all values."""
        return self.block(slice(0, self.effects.shape[1]))

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        return np.asarray((self.effects[:, :, output] @ weights).var(axis=0, ddof=1))


def refit(fitted: FittedSample, family: Family, count: int, seed: int, progress: Progress) -> RefitErrors:
    """Fit ``count`` times with random weights."""
    draws = raw_rows(fitted.sample)
    if draws.replicates is not None:
        raise InputError(
            "method='bootstrap' draws weights of its own, but replicate_weights= were given; use method='linear', "
            "which uses them."
        )
    rng = np.random.default_rng(seed)
    parts: list[tuple[FloatArray, ...]] = []
    progress.phase("refits", count)
    for _ in range(count):
        parts.append(_refitted(fitted, family, reweighted(fitted.sample, draws, rng)))
        progress.step(1)
    return RefitErrors(*(np.stack(column) for column in zip(*parts, strict=True)))


def _refitted(fitted: FittedSample, family: Family, sample: Sample) -> tuple[FloatArray, ...]:
    """Effects, probabilities, sums and variance of one refit."""
    solved = _fit(sample, fitted)
    sums = Phi(family, sample, fitted.request.threads).analyse(sample.weighted_values)
    within = 0.0 if sample.within is None else sample.within
    variance = sample.probability @ ((sample.values - sums[0]) ** 2 + within)
    return on_index(solved, family), sample.probability, sums, variance


def _fit(sample: Sample, fitted: FittedSample) -> Solved:
    plan, survey = plan_fit(fitted.request, sample, sample.n_outputs)
    return fit_sample(sample, fitted.request, plan, survey, Progress(enabled=False))[0]


def on_index(solved: Solved, family: Family) -> FloatArray:
    """(cells, m) effects of another fit on the same support, in the order of ``family``; 0 for missing subsets."""
    out = np.zeros((family.n_cells, solved.values.shape[1]))
    for s, subset in enumerate(solved.family.subsets):
        if subset in family.position:
            out[family.cells_of(family.position[subset])] = solved.values[solved.family.cells_of(s)]
    return out


def reweighted(sample: Sample, draws: Draws, rng: np.random.Generator) -> Sample:
    """The same distinct rows with weights multiplied by random numbers, one for each row or cluster."""
    factor, r = multipliers(draws, rng), sample.codes.shape[1]
    weight = draws.weight * factor
    totals = group_totals(weight, draws.group, r)
    squares = None if draws.squares is None else draws.squares * factor**2
    again = replace(draws, weight=weight, kind="probability", copies=draws.counts * factor, squares=squares)
    if draws.values is None:
        return replace(sample, weight=totals, draws=again)
    values, within = average(draws.values, draws.group, weight, r)
    return replace(sample, weight=totals, values=values, within=within, draws=again)


def multipliers(draws: Draws, rng: np.random.Generator) -> FloatArray:
    """(k,) random factors of mean one of the raw rows."""
    k = len(draws.weight)
    unit = np.arange(k) if draws.cluster is None else draws.cluster
    counts = np.ones(int(unit.max()) + 1) if draws.cluster is not None else draws.weight**2 / draws.squared
    drawn = rng.gamma(counts)  # the sum of this many exponential variates
    if draws.stratum is not None:
        stratum = np.zeros(len(counts), dtype=np.int64)
        stratum[unit] = draws.stratum
        drawn *= (np.bincount(stratum, weights=counts) / np.bincount(stratum, weights=drawn))[stratum]
    return np.asarray((drawn / counts)[unit])
