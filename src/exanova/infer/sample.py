"""The rows a fit was made of, as standard errors need them: kept by reference, used only when errors are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from exanova import parallel, tolerances
from exanova.basis.tables import Basis, build_basis, dimensions, too_large_for_tables
from exanova.data.distinct import distinct_rows
from exanova.data.draws import Draws
from exanova.data.scaling import Scaling
from exanova.design import passes
from exanova.design.cells import CellIndex
from exanova.design.memory import readable
from exanova.errors import InputError, MemoryLimitError
from exanova.infer.draws import independent_units, raw_rows
from exanova.infer.identified import Dependences
from exanova.infer.influence import Influence
from exanova.infer.responses import find_responses
from exanova.moments.gram import SPARSE, Moments, collect, projected_gram, weighted_gram
from exanova.moments.monomials import monomials, reference_levels
from exanova.shrink.posterior import Posterior
from exanova.solve.elimination import factorise, solve
from exanova.solve.evidence import Solution
from exanova.solve.plan import Request
from exanova.solve.routes import Data
from exanova.typing import Codes, FloatArray

TILE = 256
"""Rows of a triangle that are mirrored at once, so that both sides stay in the caches."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct rows with their normalised values, how they were drawn, and what was asked of the fit.

    Attributes:
        data: the rows that were fitted.
        effects: (cells, m) their effects, in normalised units.
        scaling: centre and unit of every output.
        request: what was asked of the engine.
        draws: the raw rows behind the distinct ones, where their weights do not say everything.
        solved: functions and evidence of the solve, where some effects are not identified; else ``None``.
        posterior: what the rows say of shrunken effects, or ``None``.
        whole: why these rows are all there is, in words; empty for a sample.
    """

    data: Data
    effects: FloatArray
    scaling: Scaling
    request: Request
    draws: Draws | None = None
    solved: tuple[Basis, Solution] | None = None
    posterior: Posterior | None = None
    whole: str = ""

    @property
    def kind(self) -> str:
        """What the weights are: ``"frequency"`` or ``"probability"``."""
        return raw_rows(self.data, self.draws).kind

    def rows_of_cells(self, index: CellIndex) -> FloatArray:
        """(cells,) raw rows in every cell; where weights are probabilities the effective number (sum w)^2 / sum w^2."""
        draws, r = raw_rows(self.data, self.draws), self.data.codes.shape[1]
        if draws.kind == "frequency":
            return index.weight.copy()
        weight = draws.weight.astype(np.float64)
        by_row = np.stack([np.bincount(draws.group, w, r) for w in (weight, weight**2)], axis=1).astype(np.float64)
        sums = passes.scatter(index.layout, self.data.codes, by_row, threads=self.request.threads)[index.cell_key]
        return np.asarray(sums[:, 0] ** 2 / sums[:, 1])

    @property
    def dependences(self) -> Dependences | None:
        """The dependences among the functions, where some effects are not identified."""
        if self.solved is None:
            return None
        basis, solution = self.solved
        return Dependences.of(basis, solution.null, solution.independent)

    @property
    def units(self) -> tuple[str, int]:
        """What varies independently, in words, and how many of it there are."""
        return independent_units(raw_rows(self.data, self.draws))

    @property
    def why_not_linear(self) -> str:
        """Why effects are not those of a least-squares fit on pure functions, in words; empty where they are."""
        request = self.request
        if self.posterior is not None:
            return "shrinkage='auto'"
        if request.basis != "pure":
            return f"basis={request.basis!r}"
        if request.ridge:
            return f"ridge={request.ridge:g}"
        return (
            "ties='first' under a budget, which may cut a subset"
            if request.selection and request.ties == "first"
            else ""
        )

    @property
    def spread(self) -> FloatArray:
        """(m,) largest deviation of every output from its mean."""
        return np.asarray(np.abs(self.data.values - self.data.probability @ self.data.values).max(axis=0, initial=0.0))

    def without_rounding(self, effects: FloatArray) -> FloatArray:
        """(.., m) numbers, zero where they are rounding beside what varies in the model."""
        return np.where(np.abs(effects) <= tolerances.RECONSTRUCTION * self.spread, 0.0, effects)


def why_whole(sampled: bool | str, is_distribution: bool, data: Data) -> str:
    """Why the rows are all there is, in words; empty for a sample.

    By default a distribution is, and so is a table of every combination of levels, each equally often and with one
    value: rows drawn at random do not come out so.
    """
    if sampled is True:
        return ""
    if sampled is False:
        return "sampled=False was given"
    if is_distribution:
        return "a distribution was given in place of rows"
    complete = data.codes.shape[1] == math.prod(data.sizes)
    if complete and data.within is None and data.weight.min() == data.weight.max():
        return "every combination of levels occurs, each equally often"
    return ""


def draws_among(data: Data, codes: Codes, draws: Draws | None) -> Draws | None:
    """The draws behind ``data``, which holds some of the distinct rows ``codes`` (d, r), in their order."""
    count = data.codes.shape[1]
    if draws is None or count == codes.shape[1]:
        return draws
    _, number = distinct_rows(np.hstack([data.codes, codes]))
    return draws.among(number[count:] < count)


def prepare(sample: Sample, index: CellIndex) -> tuple[Influence, FloatArray]:
    """The influence of every row, and the (r, m) residuals of the distinct rows, zero where they are rounding."""
    if sample.why_not_linear:
        raise InputError(
            f"linear standard errors belong to least-squares fits on pure functions, not to {sample.why_not_linear}; "
            "ask for errors(method='bootstrap'), which refits."
        )
    data, threads = sample.data, sample.request.threads
    fitted = passes.gather(index.layout, data.codes, index.to_keys(sample.effects), threads)
    residual = _residual(sample, fitted)
    noisy = bool(residual.any()) or (sample.draws is not None and sample.draws.values is not None)
    _refuse_large(sample, index, noisy)
    with parallel.suitable_blas(0):
        basis = build_basis(index)
        responses = find_responses(index, basis)
    inverse = inverse_gram(data, index, basis, threads) if noisy else None
    return Influence(index, basis, responses, inverse, sample.effects, data.codes, threads), residual


def inverse_gram(data: Data, index: CellIndex, basis: Basis, threads: int) -> FloatArray:
    """(q, q) an inverse of Gamma on its range, lower orders first."""
    nothing = np.zeros((data.codes.shape[1], 0))
    if SPARSE * len(index.subsets) < basis.n_functions:  # pairs of indicators are few: adding them up is faster
        mono = monomials(index, reference_levels(index))
        gram = weighted_gram(index, mono, data.codes, data.weight.astype(np.float64), threads)
        moments = Moments(index, mono, gram, nothing, nothing)
    else:
        moments = collect(index, data.codes, data.weight, nothing, threads=threads)
    gamma = projected_gram(moments, basis)
    with parallel.suitable_blas(float(len(gamma)) ** 3):
        found = _positive_inverse(gamma)
        return _inverse_by_orders(gamma, index, basis) if found is None else found


def _positive_inverse(gamma: FloatArray) -> FloatArray | None:
    """The inverse of a matrix whose pivots are all above the tolerance of the rank; ``None`` for any other."""
    lower, failed = dpotrf(gamma, lower=1, clean=1)
    if failed or np.diagonal(lower).min() ** 2 <= tolerances.rank_of_gram(len(gamma)):
        return None
    inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
    for a in range(0, len(inverse), TILE):
        b = min(len(inverse), a + TILE)
        inverse[a:b, b:] = inverse[b:, a:b].T
        inverse[a:b, a:b] += np.tril(inverse[a:b, a:b], -1).T
    return np.asarray(inverse)


def _inverse_by_orders(gamma: FloatArray, index: CellIndex, basis: Basis) -> FloatArray:
    """An inverse on the range of a singular matrix, by the elimination that the fit itself uses."""
    ends = np.flatnonzero(np.diff(index.layout.order, append=index.layout.order[-1] + 1)) + 1
    bounds = [0, *(int(basis.start[end]) for end in ends)]
    orders = [slice(a, b) for a, b in pairwise(bounds)]
    return solve(factorise(gamma, orders, "share"), np.eye(len(gamma)))


def _residual(sample: Sample, fitted: FloatArray) -> FloatArray:
    """(r, m) what is left of the model, zero for every output that the effects meet to rounding."""
    residual = sample.data.values - fitted
    met = np.abs(residual).max(axis=0, initial=0.0) <= tolerances.RECONSTRUCTION * sample.spread
    return np.where(met, 0.0, residual)


def _refuse_large(sample: Sample, index: CellIndex, noisy: bool) -> None:
    """Raise where the inverse of the Gram matrix, or the covariances of the cells of an effect, do not fit."""
    sizes = np.diff(index.cell_start).astype(np.float64)
    functions = float(dimensions(index).sum()) if noisy else 0.0
    needed = 8 * (5 * functions**2 + (2 + sample.data.values.shape[1]) * float((sizes**2).sum()))
    if needed > sample.request.memory_limit or too_large_for_tables(index).any():
        raise MemoryLimitError(
            f"linear standard errors of {index.n_cells:,} cells take about {readable(int(needed))}, the memory limit "
            f"is {readable(sample.request.memory_limit)}; fit fewer functions, merge levels with min_frequency=, raise "
            "memory_limit, or ask for errors(method='bootstrap')."
        )
