"""Standard errors of importances by the delta method, and the bias of squared ones.

The influence of row i on an importance has two parts: the weight of the row itself, and the change psi_i of the effects
times the gradient of the importance in T. With w_a the probability of cell a and v_i the centred fitted part,

    E|f_A|          |f_A(x_i)| + sum of w_a sign(T_a) psi_ia
    E[f_A^2]        f_A(x_i)^2 + 2 sum of w_a T_a psi_ia
    Cov(f_A, f)     f_A(x_i) (v_i + e_i) + sum of E[(f - mean) 1{x_A = a}] psi_ia
    Var f           (v_i + e_i)^2
    E|shap_j|       |shap_j(x_i)| + sum over A with j, over cells a, of E[sign(shap_j) 1{x_A = a}] psi_ia / |A|

each minus its mean. A share is a quotient of two of them. Amounts of features are sums over subsets. Squares of
estimates are biased upward by sum of w_a se_a^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exanova.data.sample import KnownRows, group_sums
from exanova.design.family import Family
from exanova.effects.norms import absolute_norms, covariances, squared_norms
from exanova.explain.importance import Division
from exanova.explain.importance_intervals import (
    bias_of_absolutes,
    bias_of_each,
    interval_of_absolutes,
    interval_of_squares,
)
from exanova.explain.mean_shapley import read_at_rows
from exanova.infer.bands import quantile, student
from exanova.infer.linear import LinearErrors, RowTerms
from exanova.infer.posterior_errors import PosteriorErrors
from exanova.infer.refits import RefitErrors
from exanova.infer.stored_errors import StoredErrors
from exanova.infer.uncertainty import Uncertainty
from exanova.phi.operator import Phi
from exanova.typing import FloatArray


def importance_stderr(
    family: Family, uncertainty: Uncertainty, kind: str, by: str, division: Division | None = None
) -> FloatArray:
    """(S, m) standard errors of the amounts of every subset, or (d, m) of every feature; NaN if not identified.

    A ``division`` among groups takes the place of features.
    """
    division = Division.of(family, by) if division is None else division
    unit, engine = uncertainty.fitted.unit, uncertainty.engine
    assert not isinstance(engine, StoredErrors)
    power = {"l1": 1, "shapley": 1, "l2": 2}.get(kind, 0)
    if isinstance(engine, LinearErrors | PosteriorErrors):
        out = _linear(family, uncertainty, engine, kind, division)
    else:
        out = _of_refits(family, uncertainty, engine, kind, division)
    out = out * unit**power
    out[_unknown(uncertainty, division)] = np.nan
    return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Effects with their uncertainty, and to whom importances go.

    Attributes:
        family: cells of every subset.
        values: (cells, m) effects.
        uncertainty: of the effects.
        division: among subsets, features or groups.
    """

    family: Family
    values: FloatArray
    uncertainty: Uncertainty
    division: Division

    @property
    def posterior(self) -> bool:
        """Whether the effects are shrunk."""
        return isinstance(self.uncertainty.engine, PosteriorErrors)

    def shared(self, amounts: FloatArray) -> FloatArray:
        """(f, m) amounts of subsets (S, m), divided."""
        return np.asarray(self.division.parts.T @ amounts)

    def doubt(self, kind: str) -> FloatArray:
        """(f, m) what intervals move importances by: their upward bias, or the part a posterior adds to them."""
        stderr = np.nan_to_num(self.uncertainty.stderr)
        if kind == "shapley":
            return self._doubt_at_rows(stderr)
        if kind == "l1":
            return self.shared(bias_of_absolutes(self.family, self.values, stderr, self.posterior))
        if not self.posterior:
            return self.shared(upward_bias(self.family, self.uncertainty))
        spread = squared_norms(self.family, stderr)
        spread[0] = 0.0
        return self.shared(spread)

    def _doubt_at_rows(self, stderr: FloatArray) -> FloatArray:
        """(f, m) the same of mean absolute Shapley values, whose parts at a row are taken to err independently."""
        sample, parts = self.uncertainty.fitted.sample, self.division.parts
        out = np.zeros((parts.shape[1], self.values.shape[1]))
        for rows in sample.each_block():
            codes = sample.codes[:, rows]
            values = read_at_rows(self.family, self.values, codes, parts)
            errors = np.sqrt(read_at_rows(self.family, stderr**2, codes, parts.power(2)))
            out += np.einsum("n,nfm->fm", sample.probability[rows], bias_of_each(values, errors, self.posterior))
        return out

    @property
    def squares(self) -> tuple[FloatArray, FloatArray]:
        """(f, m) squared norms and their standard errors."""
        squares = squared_norms(self.family, self.values)
        squares[0] = 0.0
        by = self.division.by
        return self.shared(squares), importance_stderr(self.family, self.uncertainty, "l2", by, self.division)

    @property
    def freedom(self) -> FloatArray:
        """(f, 1) degrees of freedom: the median over the cells of an effect, averaged over the effects of an amount."""
        cells = self.uncertainty.freedom
        subsets = range(len(self.family.subsets))
        median = np.array([np.median(cells[self.family.cells_of(s)]) for s in subsets])
        weight = np.asarray(self.division.parts.sum(axis=0)).ravel()
        shared = np.asarray(self.division.parts.T @ median)
        mean = np.divide(shared, weight, out=np.full(len(weight), np.inf), where=weight > 0)
        return np.asarray(mean[:, None])


def importance_interval(
    estimates: Estimates, kind: str, value: FloatArray, stderr: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """(f, m) ends of the intervals of importances with their standard errors."""
    wider = student(level, estimates.freedom) / quantile(level)
    reach = stderr * wider
    if kind in ("variance", "shapley-effects"):
        middle = value - estimates.shared(bias_of_shares(estimates.family, estimates.uncertainty))
        return middle - quantile(level) * reach, middle + quantile(level) * reach
    squares, errors = (value, stderr) if kind == "l2" else estimates.squares
    ends = interval_of_squares(squares, estimates.doubt("l2"), errors * wider, level, estimates.posterior)
    if kind != "l2":
        own = interval_of_absolutes(value, estimates.doubt(kind), reach, level, estimates.posterior)
        scale = np.divide(value, np.sqrt(squares), out=np.zeros_like(value), where=squares > 0)
        ends = np.minimum(own[0], scale * np.sqrt(ends[0])), np.maximum(own[1], scale * np.sqrt(ends[1]))
    unknown = np.isnan(stderr)
    return np.where(unknown, np.nan, ends[0]), np.where(unknown, np.nan, ends[1])


def upward_bias(family: Family, uncertainty: Uncertainty) -> FloatArray:
    """(S, m) sum over the cells of w_a se_a^2: the upward bias of the squared norm of every effect.

    For shrunken effects only the noise they follow makes the squares too large: the rest of a posterior variance is the
    part that shrinkage may have removed.
    """
    stderr = uncertainty.stderr
    if uncertainty.computed and isinstance(uncertainty.engine, PosteriorErrors):
        stderr = np.sqrt(uncertainty.engine.by_noise) * uncertainty.fitted.unit
    bias = squared_norms(family, stderr)
    bias[0] = 0.0
    return bias


def bias_of_shares(family: Family, uncertainty: Uncertainty) -> FloatArray:
    """(S, m) upward bias of Cov(f_A, f) / Var f for effects of an exact fit in closed form; 0 for others.

    Effects follow the noise of the values that they are compared with. With the functions Phi_A of an effect and
    omega_i the share of row i, that adds sum over i of omega_i^2 noise_i^2 |Phi_A(x_i)|^2 to the covariance: exactly so
    for noise of equal variance, where it is the number of functions times the variance of a mean.
    """
    out, engine = np.zeros((len(family.subsets), uncertainty.outputs)), uncertainty.engine
    if not isinstance(engine, LinearErrors):
        return out
    draws, rows = engine.draws, uncertainty.fitted.sample.n_rows
    share = draws.squared / float(draws.weight.sum()) ** 2
    noise = group_sums(share[:, None] * engine.noise**2, draws.group, rows)
    sums = engine.influence.phi.analyse(noise)
    for s in range(1, len(out)):
        lengths = np.square(engine.influence.basis.table(s)).sum(axis=1)
        out[s] = lengths @ sums[family.cells_of(s)]
    variance = uncertainty.model_variance
    return np.divide(out, variance, out=np.zeros_like(out), where=variance > 0)


def _unknown(uncertainty: Uncertainty, division: Division) -> NDArray[np.bool_]:
    """(f,) amounts with a part of a subset that is not identified."""
    missing = sorted(uncertainty.without_stderr)
    return np.asarray(division.parts.toarray()[missing].any(axis=0))


@dataclass(frozen=True, eq=False)
class _RowShares:
    """Quantities at the rows for the importances of one output, in normalised units."""

    family: Family
    uncertainty: Uncertainty
    output: int

    @cached_property
    def effects(self) -> FloatArray:
        """(cells,) T."""
        return np.asarray(self.uncertainty.fitted.effects[:, self.output])

    @cached_property
    def probability(self) -> FloatArray:
        """(cells,) w."""
        return np.asarray(self.family.weight / self.family.weight[0])

    @cached_property
    def centred(self) -> FloatArray:
        """(r,) v, the centred fitted part."""
        return np.asarray(self.read(self.effects[:, None])[:, 0] - self.effects[0])

    @cached_property
    def model_sums(self) -> FloatArray:
        """(cells,) E[(f - mean) 1{x_A = a}]."""
        sample = self.uncertainty.fitted.sample
        values = sample.values[:, self.output]
        weighted = sample.probability * (values - sample.probability @ values)
        return np.asarray(self.phi.analyse(weighted[:, None])[:, 0])

    def read(self, table: FloatArray) -> FloatArray:
        """(r, f) sums of a (cells, f) table at the rows."""
        return self.phi.synthesise(table)

    def spread(self, numbers: FloatArray, parts: FloatArray) -> FloatArray:
        """(cells, f) the (cells,) ``numbers`` times the (S, f) weight of their subset in each amount."""
        return numbers[:, None] * np.repeat(parts, np.diff(self.family.cell_start), axis=0)

    @cached_property
    def phi(self) -> Phi:
        """The cells of the family at the rows."""
        fitted = self.uncertainty.fitted
        return Phi(self.family, fitted.sample, fitted.request.threads)


def _linear(
    family: Family, uncertainty: Uncertainty, engine: LinearErrors | PosteriorErrors, kind: str, division: Division
) -> FloatArray:
    parts = division.parts.toarray()
    out = np.empty((parts.shape[1], uncertainty.outputs))
    for o in range(uncertainty.outputs):
        rows = _RowShares(family, uncertainty, o)
        gradient, terms = _STATISTICS[kind](rows, parts)
        out[:, o] = np.sqrt(engine.smooth_variances(o, gradient, terms))
    return out


def _absolute(rows: _RowShares, parts: FloatArray) -> tuple[FloatArray, RowTerms]:
    gradient = rows.spread(rows.probability * np.sign(rows.effects), parts)
    return gradient, RowTerms(rows.read(rows.spread(np.abs(rows.effects), parts)))


def _squared(rows: _RowShares, parts: FloatArray) -> tuple[FloatArray, RowTerms]:
    gradient = rows.spread(2.0 * rows.probability * rows.effects, parts)
    return gradient, RowTerms(rows.read(rows.spread(rows.effects**2, parts)))


def _share(rows: _RowShares, parts: FloatArray) -> tuple[FloatArray, RowTerms]:
    """Cov(f_A, f) / Var f: (influence of the numerator - share * influence of the variance) / variance."""
    variance = rows.uncertainty.model_variance[rows.output]
    if not variance:
        return np.zeros((len(rows.effects), parts.shape[1])), RowTerms()
    effects, v = rows.read(rows.spread(rows.effects, parts)), rows.centred[:, None]
    share = np.add.reduceat(rows.effects * rows.model_sums, rows.family.cell_start[:-1]) @ parts / variance
    gradient = rows.spread(rows.model_sums, parts) / variance
    direct, by_residual = effects * v - share * v**2, effects - 2.0 * share * v
    return gradient, RowTerms(
        direct / variance, by_residual / variance, np.broadcast_to(-share / variance, direct.shape)
    )


def _absolute_shapley(rows: _RowShares, parts: FloatArray) -> tuple[FloatArray, RowTerms]:
    sample, family = rows.uncertainty.fitted.sample, rows.family
    values = read_at_rows(family, rows.effects[:, None], sample.codes, parts)[:, :, 0]
    signs = rows.phi.analyse(sample.probability[:, None] * np.sign(values))
    return signs * rows.spread(np.ones(len(rows.effects)), parts), RowTerms(np.abs(values))


_STATISTICS: dict[str, Callable[[_RowShares, FloatArray], tuple[FloatArray, RowTerms]]] = {
    "l1": _absolute,
    "l2": _squared,
    "variance": _share,
    "shapley-effects": _share,
    "shapley": _absolute_shapley,
}


def _of_refits(
    family: Family, uncertainty: Uncertainty, engine: RefitErrors, kind: str, division: Division
) -> FloatArray:
    """Standard deviations of the same amounts over refits."""
    parts, codes = division.parts.toarray(), uncertainty.fitted.sample.codes
    by_refit = []
    for effects, p, sums, variance in zip(
        engine.effects, engine.probability, engine.sums, engine.variance, strict=True
    ):
        if kind == "shapley":
            values = read_at_rows(family, effects, codes, parts)
            by_refit.append(np.einsum("n,ndm->dm", p, np.abs(values)))
            continue
        weight = Phi(family, KnownRows(codes)).analyse(p[:, None])[:, 0]
        weighed = replace(family, weight=weight)
        if kind == "l1":
            amounts = absolute_norms(weighed, effects)
        elif kind == "l2":
            amounts = squared_norms(weighed, effects)
        else:
            amounts = covariances(weighed, effects, sums) / np.where(variance > 0, variance, 1.0)
        by_refit.append(parts.T @ amounts)
    return np.asarray(np.std(np.stack(by_refit), axis=0, ddof=1))
