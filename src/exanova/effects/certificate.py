"""The certificate: what was measured about a result, after it was computed, on the tables that are handed out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from exanova import tolerances
from exanova.design import passes
from exanova.design.cells import CellIndex
from exanova.effects.orthogonality import marginal_sums
from exanova.solve.plan import Request
from exanova.solve.routes import Data, Decomposition
from exanova.typing import FloatArray, Subset


@dataclass(frozen=True)
class Redundancy:
    """A subset whose functions are partly expressed by others on this support.

    Attributes:
        features: the subset.
        shared_with: the subsets that express it, in canonical order.
    """

    features: tuple[str, ...]
    shared_with: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        shown = [" x ".join(s) or "the intercept" for s in self.shared_with[:6]]
        more = f" and {len(self.shared_with) - 6} more" if len(self.shared_with) > 6 else ""
        return f"{' x '.join(self.features)} ~ {', '.join(shown)}{more}"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was measured about a decomposition.

    Attributes:
        orthogonality: largest ``|E[f_A 1{x_B = b}]|`` over all A, all B strictly inside A and all b, relative to the
            largest effect.
        reconstruction: largest error of the sum of all effects on the support, relative to the largest effect.
        reconstruction_l2: the same in the L2 norm.
        rank: dimension of the fitted space, the intercept included; ``rank_by_order`` says where it comes from.
        n_functions: functions that were offered.
        r2, mse, relative_mse: one an output; ``relative_mse`` is the mean squared error over E[f^2].
        within_variance: variance of the values given for equal rows, which no function of the inputs explains.
        redundant: subsets that others can express; empty when the decomposition is unique.
        conditioning: 1 over the smallest squared direction that counted as new.
        largest_dropped: largest squared direction that was taken for rounding.
        saturated: whether the family spans every function on the support (then the residual is zero).
        route, method, iterations, seconds: how it was computed.
        residual: what is left of the normal equations, relative to the projections.
        ridge: the penalty that was asked for; the result is exact only without one.
        rank_known: whether the rank was determined (``rank`` is an upper bound otherwise).
        r2_eval, mse_eval: the same as ``r2`` and ``mse`` on held-out rows, one an output, if there were any.
        notes: what misses its tolerance, and the remedy.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> certificate = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 5.0])).certificate_
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
    rank_known: bool = True
    r2_eval: FloatArray | None = None
    mse_eval: FloatArray | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def exact(self) -> bool:
        """Whether everything that was measured met its tolerance."""
        return not self.notes

    @property
    def unique(self) -> bool | None:
        """Whether no other decomposition of this kind over the same subsets exists; ``None`` if not determined."""
        return self.rank == self.n_functions if self.rank_known else None

    def __str__(self) -> str:
        orders = " + ".join(str(k) for k in self.rank_by_order)
        lines = [
            f"exact           {'yes' if self.exact else 'NO: ' + '; '.join(self.notes)}",
            f"orthogonality   {self.orthogonality:.1e} of the largest effect",
            f"reconstruction  {self.reconstruction:.1e} of the largest effect"
            + (" (every function on the support is spanned)" if self.saturated else " (a residual is left)"),
            f"rank            {self.rank:,} = {orders}, of {self.n_functions:,} functions",
            f"unique          {_said(self.unique, f'no, {len(self.redundant)} subsets share')}",
            f"R2              {_joined(self.r2)}"
            + ("" if self.r2_eval is None else f"; on held-out rows {_joined(self.r2_eval)}"),
            f"MSE             {_joined(self.mse)} ({_joined(100 * self.relative_mse)} % of E[f^2])",
            f"route           {self.route}: {self.method}, {self.iterations} iterations, {self.seconds:.2f} s",
        ]
        if self.within_variance.max(initial=0.0) > 0:
            lines.insert(7, f"within rows     {_joined(self.within_variance)} (variance between equal rows)")
        return "\n".join(lines)


@dataclass(frozen=True)
class Fit:
    """Errors of the fitted part on rows: (m,) each, and the largest error."""

    r2: FloatArray
    mse: FloatArray
    relative_mse: FloatArray
    largest: float


def measure_fit(values: FloatArray, fitted: FloatArray, probability: FloatArray) -> Fit:
    """Compare the fitted part with the model on rows with probabilities (r,).

    R2 of an output that does not vary is 1 if it is met to rounding, else 0.

    >>> fit = measure_fit(np.array([[0.0], [2.0]]), np.array([[0.0], [2.0]]), np.array([0.5, 0.5]))
    >>> fit.r2.tolist(), fit.mse.tolist()
    ([1.0], [0.0])
    """
    error = values - fitted
    mean = probability @ values
    variance = probability @ (values - mean) ** 2
    square = probability @ values**2
    mse = probability @ error**2
    still = variance <= (tolerances.EPS * np.abs(mean)) ** 2
    met = mse <= (tolerances.RECONSTRUCTION * np.abs(mean)) ** 2
    r2 = np.where(still, met.astype(float), 1.0 - mse / np.where(still, 1.0, variance))
    relative = np.divide(mse, square, out=np.zeros_like(mse), where=square > 0)
    return Fit(r2, mse, relative, float(np.abs(error).max(initial=0.0)))


def certify(
    data: Data, found: Decomposition, names: tuple[str, ...], within: FloatArray, seconds: float, request: Request
) -> Certificate:
    """Measure a decomposition on its own support."""
    tables = found.index.to_keys(found.values)
    fitted = passes.gather(found.index.layout, data.codes, tables, request.threads)
    fit = measure_fit(data.values, fitted, data.probability)
    scale = float(np.abs(found.values).max(initial=0.0)) or 1.0
    solution = found.solution
    basis = found.basis
    certificate = Certificate(
        orthogonality=largest_conditional_mean(found.index, found.values) / scale,
        reconstruction=fit.largest / scale,
        reconstruction_l2=float(np.sqrt(fit.mse.max(initial=0.0))) / scale,
        rank=min(solution.rank, data.codes.shape[1]),
        rank_by_order=solution.rank_by_order,
        n_functions=found.plan.functions if basis is None else int(basis.dimensions.sum()),
        r2=fit.r2,
        mse=fit.mse,
        relative_mse=fit.relative_mse,
        within_variance=within,
        redundant=_redundancies(found, names),
        conditioning=1.0 / solution.smallest_kept,
        largest_dropped=solution.largest_dropped,
        saturated=found.saturated,
        route=found.plan.route,
        method=solution.method,
        iterations=solution.iterations,
        seconds=seconds,
        residual=solution.residual,
        ridge=request.ridge,
        rank_known=solution.rank_known,
    )
    notes = _notes(certificate, solution.converged, solution.smallest_kept)
    if not request.ridge:  # a penalty makes every function count, redundant or not
        notes += _doubts(data, found)
    return Certificate(**{**certificate.__dict__, "notes": notes})


def largest_conditional_mean(index: CellIndex, values: FloatArray) -> float:
    """Largest ``|E[f_A 1{x_B = b}]|`` over all A of the family, all B strictly inside A, all b and all outputs."""
    return float(marginal_sums(index, values).max(initial=0.0))


def _redundancies(found: Decomposition, names: tuple[str, ...]) -> tuple[Redundancy, ...]:
    """Subsets linked by null directions, from pairs of functions to pairs of subsets."""
    if found.basis is None or len(found.solution.ties) == 0:
        return ()
    subset_of = found.basis.subset_of_function()
    count = len(found.index.subsets)
    first, second = subset_of[found.solution.ties].T
    pairs = np.stack(np.divmod(np.unique(first * count + second), count), axis=1)
    partners: dict[int, list[int]] = defaultdict(list)
    for a, b in pairs.tolist():
        partners[a].append(b)

    def named(s: int) -> tuple[str, ...]:
        subset: Subset = found.index.subsets[s]
        return tuple(names[i] for i in subset)

    return tuple(
        Redundancy(named(a), tuple(named(b) for b in sorted(bs) if b != a)) for a, bs in sorted(partners.items())
    )


def _notes(certificate: Certificate, converged: bool, smallest: float) -> tuple[str, ...]:
    notes = []
    if certificate.orthogonality > tolerances.ORTHOGONALITY:
        notes.append(
            f"an effect has a conditional mean of {certificate.orthogonality:.1e} of the largest effect, above "
            f"{tolerances.ORTHOGONALITY:.1e}; basis='pure' is orthogonal on any support"
        )
    if not converged:
        notes.append(
            f"the solve stopped at a relative residual of {certificate.residual:.1e}; "
            "route='dense' is safer under extreme weights, if it fits in memory"
        )
    if certificate.saturated and certificate.reconstruction > tolerances.RECONSTRUCTION:
        notes.append(
            f"the effects sum to the model only within {certificate.reconstruction:.1e} of the largest effect; "
            "the weights are too unequal for this route, try route='dense'"
        )
    if certificate.largest_dropped and smallest < certificate.largest_dropped * RANK_GAP:
        notes.append(
            f"the rank is not clear-cut: a direction of {smallest:.1e} was kept and one of "
            f"{certificate.largest_dropped:.1e} dropped; route='dense' separates them better"
        )
    if certificate.ridge:
        notes.append(f"ridge={certificate.ridge:g} shrinks the effects; ridge=0 is exact")
    return tuple(notes)


def _doubts(data: Data, found: Decomposition) -> tuple[str, ...]:
    """Why the rank may be wrong although nothing that was measured shows it."""
    rank, rows, solution = found.solution.rank, data.codes.shape[1], found.solution
    every_order = found.plan.max_order is None and not found.plan.route.endswith("selection")
    if solution.rank_known and (rank > rows or (every_order and rank < rows)):
        return (f"rank {rank:,} was found on {rows:,} rows, where all orders have rank {rows:,}; try route='dense'",)
    if found.plan.route != "moments":
        return ()
    if solution.smallest_kept < tolerances.GRAM_DIRECTION:
        return (
            f"a direction of {solution.smallest_kept:.1e} was kept, too light for a Gram matrix to give it in full; "
            "route='dense' sees it, if it fits in memory",
        )
    spread = float(data.weight.min() / data.weight.max())
    if rank < len(solution.kept) and spread < tolerances.GRAM_DIRECTION:
        return (
            f"the weights span {-np.log10(spread):.0f} orders of magnitude and {len(solution.kept) - rank:,} "
            "functions were taken for redundant, which a Gram matrix cannot tell from light ones; "
            "route='dense' can, if it fits in memory",
        )
    return ()


RANK_GAP = 16.0
"""A kept direction closer than this to a dropped one makes the rank doubtful."""


def _said(unique: bool | None, no: str) -> str:
    return "not determined on this route" if unique is None else "yes" if unique else no


def _joined(values: FloatArray) -> str:
    return ", ".join(f"{v:.4g}" for v in values[:8]) + (", ..." if len(values) > 8 else "")
