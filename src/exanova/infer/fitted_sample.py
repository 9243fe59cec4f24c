"""The rows of a fit, as standard errors need them: kept by reference, used only when errors are computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exanova import parallel, tolerances
from exanova.basis.functions import Basis, build_basis, dimensions, order_slices, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.design.memory import readable
from exanova.errors import InputError, MemoryLimitError
from exanova.infer.identified import Dependences
from exanova.infer.influence import Influence
from exanova.infer.responses import find_responses
from exanova.infer.units import independent_units, raw_rows
from exanova.messages import Parameter, Words
from exanova.phi.operator import Phi
from exanova.shrink.posterior import Posterior
from exanova.solve.elimination import factorise
from exanova.solve.evidence import Solution
from exanova.solve.inverse import inverse_from_factor, inverse_of_kept
from exanova.solve.request import Request
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False)
class FittedSample:
    """Distinct rows with their normalised values, how they were drawn, and the parameters of the fit.

    Attributes:
        sample: the rows that were fitted.
        effects: (cells, m) their effects, in normalised units.
        request: the parameters of the fit.
        solved: functions and evidence of the solve, where some effects are not identified; else ``None``.
        posterior: the posterior of shrunken effects, or ``None``.
        whole: why these rows are the complete population, in words; empty for a sample.
    """

    sample: Sample
    effects: FloatArray
    request: Request
    solved: tuple[Basis, Solution] | None = None
    posterior: Posterior | None = None
    whole: str = ""

    @property
    def unit(self) -> FloatArray:
        """(m,) the unit of every output."""
        scaling = self.sample.scaling
        return np.ones(self.sample.n_outputs) if scaling is None else scaling.unit

    @property
    def kind(self) -> str:
        """What the weights are: ``"frequency"`` or ``"probability"``."""
        return raw_rows(self.sample).kind

    def rows_of_cells(self, family: Family) -> FloatArray:
        """(cells,) raw rows in every cell; where weights are probabilities the effective number (sum w)^2 / sum w^2."""
        draws, r = raw_rows(self.sample), self.sample.n_rows
        if draws.kind == "frequency":
            return family.weight.copy()
        sums_of_rows = (np.bincount(draws.group, own, r) for own in (draws.weight, draws.squared, draws.counts))
        by_row = np.stack([*sums_of_rows], axis=1).astype(np.float64)
        total, squares, counts = Phi(family, self.sample, self.request.threads).analyse(by_row).T
        known = squares >= np.finfo(np.float64).tiny  # squares of very small weights are 0 in floating point
        return np.asarray(np.where(known, total**2 / np.where(known, squares, 1.0), counts))

    def clusters_of_cells(self, family: Family) -> FloatArray | None:
        """(cells,) clusters with rows in every cell; ``None`` where rows were not drawn in clusters."""
        draws = raw_rows(self.sample)
        if draws.cluster is None:
            return None
        count, out = int(draws.cluster.max()) + 1, np.zeros(family.n_cells)
        phi = Phi(family, self.sample, self.request.threads)
        for s in range(len(family.subsets)):
            own = family.cells_of(s)
            together = np.unique(phi.cells(s)[draws.group] * count + draws.cluster)
            out[own] = np.bincount(together // count, minlength=own.stop - own.start)
        return out

    @property
    def dependences(self) -> Dependences | None:
        """The dependences among the functions, where some effects are not identified."""
        if self.solved is None:
            return None
        basis, solution = self.solved
        return Dependences.of(basis, solution.null, solution.independent)

    @property
    def units(self) -> tuple[str, int]:
        """The independent unit in words, and the number of units."""
        return independent_units(raw_rows(self.sample))

    @property
    def why_not_linear(self) -> Words:
        """Why effects are not those of a least-squares fit on pure functions, in words; empty where they are."""
        request = self.request
        if self.posterior is not None:
            return Words(Parameter("shrinkage", "auto"))
        if request.basis != "pure":
            return Words(Parameter("basis", request.basis))
        if request.ridge:
            return Words(Parameter("ridge", request.ridge))
        if request.selection and request.ties == "first":
            return Words(Parameter("ties", "first"), " under a budget, which may cut a subset")
        return Words()

    @property
    def spread(self) -> FloatArray:
        """(m,) largest deviation of every output from its mean."""
        return self.sample.spread

    def without_rounding(self, effects: FloatArray) -> FloatArray:
        """(.., m) numbers, zero where they are rounding relative to the spread of the model."""
        return np.where(np.abs(effects) <= tolerances.RECONSTRUCTION * self.spread, 0.0, effects)


def why_whole(sampled: bool | str, sample: Sample) -> str:
    """Why the rows are the complete population, in words; empty for a sample.

    By default a distribution is complete, and so is a table of every combination of levels, each equally often and with
    one value: a random sample would not look like this.
    """
    if sampled is True:
        return ""
    if sampled is False:
        return "the rows were declared complete"
    if sample.is_distribution:
        return "a distribution was given in place of rows"
    complete = sample.n_rows == math.prod(sample.sizes)
    if complete and sample.within is None and sample.weight.min() == sample.weight.max():
        return "every combination of levels occurs, each equally often"
    return ""


def prepare(fitted: FittedSample, family: Family) -> tuple[Influence, FloatArray]:
    """The influence of every row, and the (r, m) residuals of the distinct rows, zero where they are rounding."""
    if fitted.why_not_linear:
        raise InputError(
            "linear standard errors are for least-squares fits on pure functions, not for ",
            fitted.why_not_linear,
            remedy="use errors(method='bootstrap'), which refits",
        )
    sample, threads = fitted.sample, fitted.request.threads
    residual = _residual(fitted, Phi(family, sample, threads).synthesise(fitted.effects))
    noisy = bool(residual.any()) or (sample.draws is not None and sample.draws.values is not None)
    _refuse_large(fitted, family, noisy)
    with parallel.suitable_blas(0):
        basis = build_basis(family)
        responses = find_responses(family, basis)
    inverse = inverse_gram(sample, family, basis, threads, fitted.solved is None) if noisy else None
    return Influence(family, basis, responses, inverse, fitted.effects, Phi(family, sample, threads), threads), residual


def inverse_gram(sample: Sample, family: Family, basis: Basis, threads: int, unique: bool = True) -> FloatArray:
    """(q, q) an inverse of Gamma on its range; singular as the fit found it, if effects are not ``unique``."""
    gamma = Phi(family, sample, threads).gram(basis)
    with parallel.suitable_blas(float(len(gamma)) ** 3):
        inverse = _positive_inverse(gamma) if unique else None
        if inverse is None:  # singular: eliminated as the fit itself does
            inverse = inverse_of_kept(factorise(gamma, order_slices(family, basis), "share"))
        return inverse


def _positive_inverse(gamma: FloatArray) -> FloatArray | None:
    """The inverse of a matrix whose pivots are all above the tolerance of the rank; ``None`` for any other."""
    from scipy.linalg.lapack import dpotrf

    lower, failed = dpotrf(gamma, lower=1, clean=1)
    if failed or np.diagonal(lower).min() ** 2 <= tolerances.rank_of_gram(len(gamma)):
        return None
    return inverse_from_factor(lower)


def _residual(fitted: FittedSample, values: FloatArray) -> FloatArray:
    """(r, m) residual of the fitted (r, m) ``values``, zero for every output that the effects fit up to rounding."""
    residual = fitted.sample.values - values
    met = np.abs(residual).max(axis=0, initial=0.0) <= tolerances.RECONSTRUCTION * fitted.spread
    return np.where(met, 0.0, residual)


def _refuse_large(fitted: FittedSample, family: Family, noisy: bool) -> None:
    """Raise where the inverse of the Gram matrix, or the covariances of the cells of an effect, do not fit."""
    sizes = np.diff(family.cell_start).astype(np.float64)
    large = too_large_for_tables(family)
    bootstrap = ", or use errors(method='bootstrap')"
    if large.any():
        raise MemoryLimitError(
            "linear standard errors need the functions of every subset as a table, and a subset with "
            f"{int(sizes[large].max()):,} cells is too large for one",
            remedy=["merge levels with ", Parameter("min_frequency"), bootstrap],
        )
    functions = float(dimensions(family).sum()) if noisy else 0.0
    needed = 8 * (5 * functions**2 + (2 + fitted.sample.n_outputs) * float((sizes**2).sum()))
    if needed > fitted.request.memory_limit:
        raise MemoryLimitError(
            f"linear standard errors of {family.n_cells:,} cells take about {readable(int(needed))}, the memory limit "
            f"is {readable(fitted.request.memory_limit)}",
            remedy=[
                "fit fewer functions, merge levels with ",
                Parameter("min_frequency"),
                ", give a larger ",
                Parameter("memory_limit"),
                bootstrap,
            ],
        )
