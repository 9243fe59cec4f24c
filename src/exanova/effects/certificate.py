"""The certificate: measurements of a result, taken after it was computed, on the tables that are returned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.sample import Sample
from exanova.data.scaling import Scaling
from exanova.effects.account import Loss, account
from exanova.effects.cancellation import cancellation, near_redundant
from exanova.effects.certificate_text import described
from exanova.effects.checks import Check, checks_of
from exanova.effects.doubts import doubts
from exanova.effects.measure import Measured
from exanova.effects.orthogonality import conditional_means
from exanova.effects.redundancy import Redundancy, sharing_subsets
from exanova.messages import Parameter, Words
from exanova.solve.evidence import Solved
from exanova.solve.request import Request
from exanova.typing import FloatArray

ROWS_OF_FIT = "on held-out rows that are rows of the fit"
"""How the fit on other rows was measured where the rows given for that had been fitted."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Measurements of a decomposition.

    Attributes:
        orthogonality: largest ``|E[f_A | x_B = b]|`` over all A, all B strictly inside A and all observed b, relative
            to the spread of the model, as the next three are: its largest deviation from its mean, per output.
        reconstruction: largest error of the sum of all effects on the support.
        reconstruction_l2: the same in the L2 norm.
        residual_mean: largest ``|E[residual | x_A = a]|`` over all cells; a least-squares fit leaves none (NaN where
            the fit is not one: shrunk, with a ridge, or where a budget has cut a subset).
        rank: dimension of the fitted space, the intercept included; ``rank_by_order`` splits it by order.
        n_functions: number of functions of all subsets.
        r2, mse, relative_mse: one per output, against the model as given, so that variance hidden by bins or merged
            levels, and noise between equal rows, count as lost; ``relative_mse`` is the mean squared error over E[f^2].
        within_variance: the part of ``mse`` inside rows that are equal once encoded.
        bins: where intervals and merged levels lose nothing, a sentence that says so; else empty.
        columns_out: columns that are in no effect, because they identify rows. A model may use them all the same.
        loss_levels, loss_noise, loss_left_out, loss_shrinkage: the account of loss, see :attr:`loss`.
        cancellation: summed variance of the effects over that of the fitted part, one per output; 1 for independent
            features. Where it is large, effects cancel and must be read together.
        near_redundant: groups of features whose main effects can nearly express each other.
        redundant: subsets that others can express; empty when the decomposition is unique.
        conditioning: 1 over the smallest squared direction that raised the rank (in the orders that were eliminated).
        largest_dropped: largest squared direction that was treated as rounding.
        saturated: whether the family spans every function on the support (then the residual is zero).
        route, method, iterations, seconds: how it was computed.
        residual: residual of the normal equations, relative to the projections.
        ridge: the requested penalty; the result is exact only without one.
        rank_known: whether the rank was determined (``rank`` is an upper bound otherwise).
        converged: whether the solve met its own tolerance.
        r2_eval, mse_eval: the same as ``r2`` and ``mse`` on other rows, one per output, if they were measured there.
            R2 is NaN for an output that does not vary on them.
        eval_method: how they were measured, or why not; for a complete population, why there are no other rows.
        r2_least: where rows that chose the family also measured ``r2_eval``, its value if the choice followed as
            much noise as it could (NaN if nothing else may remain, as where held-out rows are rows of the fit);
            otherwise ``None``.
        sampled: whether the rows are a sample from a larger population.
        shrinkage: the variance components of a shrunken fit, or why nothing was shrunk; empty if not requested.
        effective_functions: of a shrunken fit, for each order from 1 on, how many functions the rows determine.
        notes: checks that failed, each with its remedy.
        unmeasured: quantities not measured because the fit had only moments of the rows; those numbers are NaN
            or ``None``.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> certificate = exanova.FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 1.0, 5.0])).certificate_
    >>> certificate.exact, certificate.unique, certificate.rank
    (True, True, 3)
    """

    orthogonality: float
    reconstruction: float
    reconstruction_l2: float
    rank: int
    rank_by_order: tuple[int, ...]
    n_functions: int
    r2: FloatArray
    mse: FloatArray
    relative_mse: FloatArray
    within_variance: FloatArray
    redundant: tuple[Redundancy, ...]
    conditioning: float
    largest_dropped: float
    saturated: bool
    route: str
    method: str
    iterations: int
    seconds: float
    residual: float
    ridge: float = 0.0
    residual_mean: float = float("nan")
    rank_known: bool = True
    converged: bool = True
    r2_eval: FloatArray | None = None
    r2_least: FloatArray | None = None
    mse_eval: FloatArray | None = None
    eval_method: str = ""
    sampled: bool = True
    loss_levels: FloatArray | None = None
    loss_noise: FloatArray | None = None
    loss_left_out: FloatArray | None = None
    loss_shrinkage: FloatArray | None = None
    cancellation: FloatArray | None = None
    near_redundant: tuple[tuple[str, ...], ...] = ()
    shrinkage: str = ""
    effective_functions: tuple[float, ...] = ()
    notes: tuple[str, ...] = field(default=())
    unmeasured: tuple[str, ...] = ()
    bins: str = ""
    columns_out: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every measurement with its tolerance, one record per check, with the remedy if it failed."""
        return tuple(checks_of(self))

    @property
    def exact(self) -> bool:
        """Whether every check met its tolerance."""
        return not self.notes

    @property
    def loss(self) -> Loss | None:
        """The unexplained variance, in parts that add up to 1 - R2; ``None`` in files without it."""
        parts = (self.loss_levels, self.loss_noise, self.loss_left_out, self.loss_shrinkage)
        levels, noise, left_out, shrinkage = parts
        if levels is None or noise is None or left_out is None or shrinkage is None:
            return None
        return Loss(levels, noise, left_out, shrinkage, bool(self.columns_out))

    @property
    def holds(self) -> bool | None:
        """Whether the fit holds on other rows: at least four fifths of R2 remain on them.

        ``True`` where there are no others, ``None`` where the fit on them was not measured, or only on rows that were
        fitted or chose the family, which may have chosen noise (:attr:`r2_least`).
        """
        if not self.sampled:
            return True
        if self.r2_eval is None or self.failing:
            return None if self.r2_eval is None else False
        return True if self.r2_least is None or bool(self._remains(self.r2_least).all()) else None

    @property
    def hides(self) -> bool:
        """Whether rows of equal levels have different outputs: bins, merged levels or noise hide some variance."""
        return bool((self.within_variance > 0).any())

    @property
    def why_unknown(self) -> str:
        """Why rows that were measured do not tell whether the fit holds on others, where :attr:`holds` is ``None``."""
        return "these were fitted" if self.eval_method == ROWS_OF_FIT else "the same rows made the selection"

    @property
    def failing(self) -> tuple[int, ...]:
        """Numbers of the outputs for which the fit does not hold on other rows, the worst first."""
        if not self.sampled or self.r2_eval is None:
            return ()
        fails = np.flatnonzero(~self._remains(self.r2_eval) & ~np.isnan(self.r2_eval))
        missing = (np.maximum(self.r2, 0.0) - self.r2_eval)[fails]
        return tuple(fails[np.argsort(-missing, kind="stable")].tolist())

    def _remains(self, r2: FloatArray) -> NDArray[np.bool_]:
        """(m,) whether enough of R2 is left in these."""
        return np.asarray(r2 >= tolerances.HOLDS * np.maximum(self.r2, 0.0) - tolerances.RECONSTRUCTION)

    @property
    def cancels(self) -> bool:
        """Whether effects cancel, so that they must be read together."""
        return self.cancellation is not None and bool((self.cancellation > tolerances.CANCELS).any())

    @property
    def unique(self) -> bool | None:
        """Whether no other decomposition of this kind over the same subsets exists; ``None`` if not determined."""
        if self.rank_known or self.rank < self.n_functions:  # ``rank`` is an upper bound where it is not known
            return self.rank == self.n_functions
        return None

    def _repr_html_(self) -> str:
        from exanova.report.notebook import certificate_html

        return certificate_html(self)

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}  {text}" for name, text in described(self))


@dataclass(frozen=True)
class FitErrors:
    """Errors of the fitted part on rows: (m,) each; ``squared`` is ``mse`` without the variance within rows.

    ``undefined`` are the outputs that do not vary on these rows and are not met there, so that R2 says nothing of them.
    """

    r2: FloatArray
    mse: FloatArray
    squared: FloatArray
    relative_mse: FloatArray
    largest: FloatArray
    undefined: NDArray[np.bool_]


def measure_fit(
    values: FloatArray, fitted: FloatArray, probability: FloatArray, within: FloatArray | None = None
) -> FitErrors:
    """Compare the fitted part with the model on rows with probabilities (r,).

    ``within`` (r, m) is the variance of the values averaged at each row: it is part of the model and of the error. R2
    of an output that does not vary is 1 if it is fitted up to rounding, else 0.

    >>> fit = measure_fit(np.array([[0.0], [2.0]]), np.array([[0.0], [2.0]]), np.array([0.5, 0.5]))
    >>> fit.r2.tolist(), fit.mse.tolist()
    ([1.0], [0.0])
    """
    rows = Sample(np.zeros((0, len(values)), dtype=np.uint8), probability, (), values, len(values), within)
    return measure_sample(rows, fitted)


def measure_sample(sample: Sample, fitted: FloatArray) -> FitErrors:
    """Compare the fitted part (r, m) with the values of a sample, block by block of rows."""
    inside, mean, largest = sample.within_variance, sample.mean, np.zeros(sample.n_outputs)
    for rows in sample.each_block():
        np.maximum(largest, np.abs(sample.values[rows] - fitted[rows]).max(axis=0, initial=0.0), out=largest)
    variance = sample.variance + inside
    square = sample.expected(lambda rows: sample.values[rows] ** 2) + inside
    squared = sample.expected(lambda rows: (sample.values[rows] - fitted[rows]) ** 2)
    mse = squared + inside
    constant = variance <= (tolerances.EPS * np.abs(mean)) ** 2
    met = mse <= (tolerances.RECONSTRUCTION * np.abs(mean)) ** 2
    r2 = np.where(constant, met.astype(float), 1.0 - mse / np.where(constant, 1.0, variance))
    relative = np.divide(mse, square, out=np.zeros_like(mse), where=square > 0)
    return FitErrors(r2, mse, squared, relative, largest, constant & ~met)


def certify(
    sample: Sample,
    solved: Solved,
    measured: Measured,
    names: tuple[str, ...],
    scaling: Scaling,
    seconds: float,
    request: Request,
) -> Certificate:
    """The certificate of a decomposition on its support; everything but ``scaling`` is in normalised units."""
    fitted = measured.fitted
    fit, within = measure_sample(sample, fitted), sample.within_variance
    # Everything is measured relative to the spread of the model, output by output.
    scale = np.where(sample.spread > 0, sample.spread, 1.0)
    solution, basis, shrunk = solved.solution, solved.basis, solved.shrinkage
    lost = account(sample, fit.squared, None if shrunk is None else shrunk.least_squares)
    variance = sample.expected(lambda rows: (fitted[rows] - solved.values[0]) ** 2)
    near = near_redundant(sample, solved.family, request.threads, solved.gram)
    certificate = Certificate(
        orthogonality=_worst(conditional_means(solved.family, solved.values) / scale),
        reconstruction=_worst(fit.largest / scale),
        reconstruction_l2=_worst(np.sqrt(fit.squared) / scale),
        residual_mean=_residual_mean(solved, measured.residual_means / scale, request),
        rank=min(solution.rank, sample.n_rows),
        rank_by_order=solution.rank_by_order,
        n_functions=solved.plan.functions if basis is None else int(basis.dimensions.sum()),
        r2=fit.r2,
        mse=fit.mse * scaling.unit**2,
        relative_mse=_relative_to_square(sample, fit.mse, within, scaling),
        within_variance=within * scaling.unit**2,
        redundant=redundancies(solved, names),
        conditioning=1.0 / solution.smallest_kept,
        largest_dropped=solution.largest_dropped,
        saturated=solved.saturated,
        route=solved.plan.route,
        method=solution.method,
        iterations=solution.iterations,
        seconds=seconds,
        residual=solution.residual,
        ridge=request.ridge,
        rank_known=solution.rank_known,
        converged=bool(solution.converged),
        loss_levels=lost.levels,
        loss_noise=lost.noise,
        loss_left_out=lost.left_out,
        loss_shrinkage=lost.shrinkage,
        cancellation=cancellation(solved.family, solved.values, variance),
        near_redundant=tuple(tuple(names[i] for i in group) for group in near),
        shrinkage="" if shrunk is None else shrunk.described,
        effective_functions=() if shrunk is None else shrunk.effective,
    )
    notes = notes_of(certificate)
    # A penalty makes every function count, redundant or not.
    if not request.ridge and not certificate.effective_functions:
        notes += doubts(sample, solved, request)
    return replace(certificate, notes=notes) if notes else certificate


def _worst(values: FloatArray) -> float:
    return float(values.max(initial=0.0))


def _relative_to_square(sample: Sample, mse: FloatArray, within: FloatArray, scaling: Scaling) -> FloatArray:
    """(m,) mean squared error over E[f^2], in the units of the model."""
    variance = (sample.variance + within) * scaling.unit**2
    square = variance + (scaling.centre + sample.mean * scaling.unit) ** 2
    return np.divide(mse * scaling.unit**2, square, out=np.zeros_like(mse), where=square > 0)


def _residual_mean(solved: Solved, means: FloatArray, request: Request) -> float:
    """Largest of (m,) means of the residual in any cell; NaN if the fit is not a projection on the whole family."""
    shrunk = solved.shrinkage is not None and solved.shrinkage.posterior is not None
    if shrunk or request.ridge or (request.selection and request.ties == "first"):
        return float("nan")
    return _worst(means)


def redundancies(solved: Solved, names: tuple[str, ...]) -> tuple[Redundancy, ...]:
    """The subsets whose effects are not determined, with those they share with, by name."""
    if solved.basis is None:
        return ()
    named = [tuple(names[i] for i in subset) for subset in solved.family.subsets]
    sharing = sharing_subsets(solved.solution.null, solved.basis.subset_of_function(), solved.solution.independent)
    return tuple(Redundancy(named[a], tuple(map(named.__getitem__, others.tolist()))) for a, others in sharing)


def notes_of(certificate: Certificate) -> tuple[str, ...]:
    """The checks that failed, with their remedies."""
    failed = [check.remedy for check in certificate.checks if check.met is False]
    if not certificate.ridge:
        return tuple(failed)
    ridge = Words(Parameter("ridge", certificate.ridge), " shrinks the effects; ", Parameter("ridge", 0), " is exact")
    return (*failed, ridge)
