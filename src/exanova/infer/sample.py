"""The rows a fit was made of, as standard errors need them: kept by reference, used only when errors are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import parallel, tolerances
from exanova.basis.tables import Basis, build_basis, dimensions, too_large_for_tables
from exanova.data.draws import Draws
from exanova.data.scaling import Scaling
from exanova.design import passes
from exanova.design.cells import CellIndex
from exanova.design.memory import readable
from exanova.errors import InputError, MemoryLimitError
from exanova.infer.draws import Variation, find_variation, raw_residuals, raw_rows
from exanova.infer.influence import Influence
from exanova.infer.responses import find_responses
from exanova.moments.gram import collect, projected_gram
from exanova.solve.elimination import factorise, solve
from exanova.solve.plan import Request
from exanova.solve.routes import Data
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct rows with their normalised values, how they were drawn, and what was asked of the fit.

    Attributes:
        data: the rows that were fitted.
        scaling: centre and unit of every output.
        request: what was asked of the engine.
        draws: the raw rows behind the distinct ones, where their weights do not say everything.
        dependences: functions and a basis (q, k) of the dependences among them, ``None`` where there are none.
        whole: why these rows are all there is, in words; empty for a sample.
    """

    data: Data
    scaling: Scaling
    request: Request
    draws: Draws | None = None
    dependences: tuple[Basis, FloatArray] | None = None
    whole: str = ""

    @property
    def kind(self) -> str:
        """What the weights are: ``"frequency"`` or ``"probability"``."""
        return raw_rows(self.data, self.draws).kind

    def rows_of_cells(self, index: CellIndex) -> FloatArray:
        """(cells,) raw rows in every cell; for weights that are probabilities the effective number (sum w)^2 / sum w^2."""
        draws = raw_rows(self.data, self.draws)
        if draws.kind == "frequency":
            return index.weight.copy()
        both = np.stack([draws.weight, draws.weight**2], axis=1)
        by_row = np.stack([np.bincount(draws.group, weights=c, minlength=self.data.codes.shape[1]) for c in both.T], 1)
        sums = passes.scatter(index.layout, self.data.codes, by_row, threads=self.request.threads)[index.cell_key]
        return np.asarray(sums[:, 0] ** 2 / sums[:, 1])

    def refuse_linear(self) -> None:
        """Raise where effects are not those of a least-squares fit on pure functions."""
        request = self.request
        reason = ""
        if request.basis != "pure":
            reason = f"basis={request.basis!r}"
        elif request.ridge:
            reason = f"ridge={request.ridge:g}"
        elif request.selection and request.ties == "first":
            reason = "ties='first' under a budget, which may cut a subset"
        if reason:
            raise InputError(
                f"linear standard errors belong to least-squares fits on pure functions, not to {reason}; ask for "
                "errors(method='bootstrap'), which refits."
            )


def prepare(sample: Sample, index: CellIndex, values: FloatArray) -> tuple[Influence, Variation]:
    """The influence of every row and what varies, for the (cells, m) effects ``values`` in normalised units."""
    sample.refuse_linear()
    data, threads = sample.data, sample.request.threads
    fitted = passes.gather(index.layout, data.codes, index.to_keys(values), threads)
    residual = _without_rounding(data, data.values - fitted)
    draws = raw_rows(data, sample.draws)
    noisy = bool(residual.any() or raw_residuals(data, draws, residual).any())
    _refuse_large(sample, index, noisy)
    basis = build_basis(index)
    inverse = inverse_gram(data, index, basis, threads) if noisy else None
    responses = find_responses(index, basis)
    influence = Influence(index, basis, responses, inverse, values, data.codes, threads)
    return influence, find_variation(data, draws, residual)


def inverse_gram(data: Data, index: CellIndex, basis: Basis, threads: int) -> FloatArray:
    """(q, q) an inverse of Gamma on its range, lower orders first."""
    nothing = np.zeros((data.codes.shape[1], 1))
    moments = collect(index, data.codes, data.weight, nothing, threads=threads)
    gamma = projected_gram(moments, basis)
    ends = np.flatnonzero(np.diff(index.layout.order, append=index.layout.order[-1] + 1)) + 1
    bounds = [0, *(int(basis.start[end]) for end in ends)]
    orders = [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    with parallel.suitable_blas(float(len(gamma)) ** 3):
        return solve(factorise(gamma, orders, "share"), np.eye(len(gamma)))


def _without_rounding(data: Data, residual: FloatArray) -> FloatArray:
    """The residual, zero for every output that the effects meet to rounding."""
    spread = np.abs(data.values - data.probability @ data.values).max(axis=0, initial=0.0)
    met = np.abs(residual).max(axis=0, initial=0.0) <= tolerances.RECONSTRUCTION * spread
    return np.where(met, 0.0, residual)


def _refuse_large(sample: Sample, index: CellIndex, noisy: bool) -> None:
    """Raise where the inverse of the Gram matrix, or the covariances of the cells of an effect, do not fit."""
    sizes = np.diff(index.cell_start).astype(np.float64)
    functions = float(dimensions(index).sum()) if noisy else 0.0
    needed = 8 * (5 * functions**2 + (2 + sample.data.values.shape[1]) * float((sizes**2).sum()))
    if needed > sample.request.memory_limit or too_large_for_tables(index).any():
        raise MemoryLimitError(
            f"linear standard errors of {index.n_cells:,} cells take about {readable(int(needed))}, the memory limit is "
            f"{readable(sample.request.memory_limit)}; fit fewer functions, merge levels with min_frequency=, raise "
            "memory_limit, or ask for errors(method='bootstrap')."
        )
