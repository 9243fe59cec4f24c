"""From a sample and a family to the shrunken decomposition: components, posterior, and what is told about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from exanova import parallel
from exanova.basis.tables import Basis, build_basis, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.design.memory import readable
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink import price
from exanova.shrink.components import (
    ENOUGH_BY_SUBSET,
    SPREAD_OF_SUBSETS,
    Components,
    Maximum,
    alike,
    bounds,
    described,
    maximise,
)
from exanova.shrink.coordinates import Prior, gram_of_columns, make_prior
from exanova.shrink.left_out import LeftOut, left_out_by_rows, left_out_of_shrunk, rows_to_leave_out
from exanova.shrink.likelihood import ByColumns, ByFunctions, ByRows, Pulled
from exanova.shrink.posterior import (
    Columns,
    Part,
    Posterior,
    PosteriorMean,
    ReadColumns,
    Spread,
    solve_by_functions,
    solve_by_rows,
)
from exanova.shrink.prior import level_kernel, row_kernels
from exanova.solve.evidence import Shrinkage, Solution, Solved
from exanova.solve.plan import Plan
from exanova.solve.planning import make_plan
from exanova.solve.request import Request
from exanova.solve.run import run_plan
from exanova.solve.survey import load_of
from exanova.typing import FloatArray, IntArray, Subset

START_ROWS = 1000
"""Distinct rows, drawn at random, on which a search over many functions starts."""

START_FROM = 1500
"""Functions from which a start on few rows saves more than it costs."""

NEGLIGIBLE = 1e-6
"""Share of the variance below which what shrinking changes is not worth a fit of its own."""

DETERMINED = "off: the rows determine every function"


def why_not(sample: Sample, request: Request, plan: Plan, index: Family | None) -> str | None:
    """Why a fit is not shrunk although that was asked for; ``None`` where it is."""
    if request.basis != "pure" or request.ties != "share" or request.ridge or request.selection:
        return "off: shrinkage goes with basis='pure', ties='share' and no ridge or budget"
    if index is None or not request.sampled:
        return "off: the rows are all there is"
    if too_large_for_tables(index).any():
        return "off: a pair has too many cells for a table of functions"
    needed = price.shrinking(plan.functions, index, load_of(sample, sample.n_outputs))
    if needed > request.memory_limit:
        return (
            f"off: shrinking {plan.functions:,} functions needs about {readable(needed)}, the memory limit is "
            f"{readable(request.memory_limit)}"
        )
    if min(plan.functions, sample.n_rows) > LARGEST:
        return f"off: {plan.functions:,} functions on {sample.n_rows:,} rows are more than a shrunken fit takes"
    return None


LARGEST = 15_000
"""Functions or rows, whichever are fewer, beyond which a factorisation takes minutes."""


def fit_family(sample: Sample, request: Request, family: tuple[Subset, ...], progress: Progress) -> Solved:
    """Shrink the effects of a family that has been chosen, closed downward and in canonical order."""
    order = max(map(len, family))
    chosen = replace(request, subsets=family, max_order=order, selection=None, max_terms=None, candidates=None)
    plan, survey = make_plan(chosen, sample, sample.n_outputs)

    def exactly() -> Solved:
        return run_plan(sample, chosen, plan, survey, progress)

    reason = why_not(sample, chosen, plan, survey.family)
    if reason is None and survey.family is not None:
        return fit_shrunk(sample, chosen, plan, survey.family, progress, exactly)
    return replace(exactly(), shrinkage=Shrinkage(reason or ""))


def fit_shrunk(
    sample: Sample, request: Request, plan: Plan, index: Family, progress: Progress, exactly: Callable[[], Solved]
) -> Solved:
    """Decompose with effects shrunk to what the rows can carry; by ``exactly`` where they carry everything."""
    work = _Work.of(sample, request, index, progress)
    progress.phase("variance components")
    found = _of_orders(work, request)
    if _may_be_determined(work, found):
        exact = exactly()
        if _lost(work, exact, found).max(initial=0.0) < NEGLIGIBLE:
            return replace(exact, shrinkage=Shrinkage(DETERMINED))
    found = _of_subsets(work, found)
    progress.phase("posterior")
    return _decomposition(work, request, plan, found)


@dataclass(frozen=True, eq=False)
class _Work:
    """A sample and a family, prepared: columns, centred values, and the sums over rows that a likelihood needs."""

    sample: Sample
    index: Family
    phi: Phi
    basis: Basis
    kernels: dict[int, FloatArray]
    prior: Prior
    values: FloatArray
    precision: FloatArray
    columns: Columns
    gram: FloatArray | None

    @classmethod
    def of(cls, sample: Sample, request: Request, index: Family, progress: Progress) -> _Work:
        kernels = {
            subset[0]: level_kernel(index.probability_of(s), request.ordered[subset[0]] if request.ordered else 0)
            for s, subset in enumerate(index.subsets)
            if len(subset) == 1
        }
        progress.phase("functions")
        with parallel.suitable_blas(0):
            basis = build_basis(index)
            prior = make_prior(index, basis, kernels)
        p, r, q = sample.probability, sample.n_rows, len(prior.order)
        # Whole numbers are counts of equal rows; of other weights only the proportions mean something.
        precision = r * p if sample.counts is None else sample.mass
        phi = Phi(index, sample, request.threads, repeated=True)
        gram = None
        if not price.by_rows(r, q):
            gamma = phi.gram(basis, progress=progress)[1:, 1:] * float(precision.sum())
            gram = gram_of_columns(np.asfortranarray(gamma), prior)
        values = sample.values - p @ sample.values
        return cls(sample, index, phi, basis, kernels, prior, values, precision, columns_of(phi, prior), gram)

    @property
    def varying(self) -> IntArray:
        """Outputs that are not constant."""
        return np.flatnonzero(self.values.any(axis=0)) if len(self.prior.order) else np.zeros(0, dtype=np.int64)

    def grouping(self, by_subset: bool) -> tuple[IntArray, FloatArray]:
        """(q,) component of each column, an order or a subset, and (K,) the prior energy of each."""
        prior = self.prior
        if not by_subset:
            return np.searchsorted(prior.orders, prior.order), np.array([prior.total[k] for k in prior.orders])
        group = np.repeat(np.arange(len(prior.subsets)), np.diff(prior.start))
        energy = np.array([float(np.square(factor).sum()) for factor in prior.factors])
        return group, energy

    def scale(self, ratios: Ratios) -> FloatArray:
        """(q,) standard deviation of each coordinate in units of tau."""
        group, total = self.grouping(ratios.by_subset)
        return np.asarray(np.sqrt(np.exp(ratios.maximum.found.logs) / total)[group])

    def likelihood(self, outputs: IntArray, by_subset: bool = False) -> ByFunctions | ByRows | ByColumns:
        """The likelihood of some outputs with the same ratios, of orders or of subsets."""
        y, (group, total) = self.values[:, outputs], self.grouping(by_subset)
        within = 0.0 if self.sample.within is None else self.precision @ self.sample.within[:, outputs]
        if self.gram is not None:
            squares, count = self.precision @ y**2, float(self.precision.sum())
            return ByFunctions(self.gram, self._projections[:, outputs], squares, group, total, count, within)
        noise = 1.0 / self.precision
        if by_subset:
            return ByColumns(self._at_rows, y, noise, group, total, within)
        return ByRows(self._row_kernels, y, noise, within)

    @cached_property
    def _at_rows(self) -> FloatArray:
        return self.prior.on_rows(self.index, self.sample.codes)

    @cached_property
    def _row_kernels(self) -> list[FloatArray]:
        return kernels_of_rows(self.phi, self.prior)

    @cached_property
    def _projections(self) -> FloatArray:
        return self.columns.analyse(self.precision[:, None] * self.values)


def columns_of(phi: Phi, prior: Prior) -> Columns:
    """The columns of a prior as an operator on rows."""
    index = phi.family

    def synthesise(coordinates: FloatArray) -> FloatArray:
        return phi.synthesise(prior.on_cells(index, coordinates))

    def analyse(values: FloatArray) -> FloatArray:
        return prior.on_columns(index, phi.analyse(values))

    return Columns(synthesise, analyse)


def kernels_of_rows(phi: Phi, prior: Prior) -> list[FloatArray]:
    """For each order, (r, r) Z_k Z_k^T over its total: subset by subset, so that Z is never written down."""
    r = phi.codes.shape[1]
    out = {k: np.zeros((r, r)) for k in prior.orders}
    for s, _, table in prior.groups():
        order, at_rows = len(phi.family.subsets[s]), phi.cells(s)
        out[order] += (table @ table.T / prior.total[order])[at_rows[:, None], at_rows]
    return [out[k] for k in prior.orders]


@dataclass(frozen=True, eq=False)
class Ratios:
    """The ratios of some outputs.

    Attributes:
        outputs: (g,) their numbers.
        maximum: where their likelihood is largest.
        by_subset: whether there is one ratio for each subset, or for each order.
    """

    outputs: IntArray
    maximum: Maximum
    by_subset: bool


def _of_orders(work: _Work, request: Request) -> list[Ratios]:
    """Ratios of the orders, for every output or for groups of similar ones where outputs are many."""
    r, q = work.values.shape[0], len(work.prior.order)
    outputs = work.varying
    with parallel.suitable_blas(float(min(r, q)) ** 3):
        starts = _starts(work, request, outputs)
        most, groups = price.sets_of_ratios(r, q, len(outputs)), [np.array([k]) for k in range(len(outputs))]
        if most < len(outputs):
            groups = [np.arange(len(outputs))] if starts is None else alike(starts, most)
        found = []
        for group in groups:
            start = None if starts is None else starts[group[0]]
            found.append(Ratios(outputs[group], maximise(work.likelihood(outputs[group]), start), False))
        return found


def _of_subsets(work: _Work, of_orders: list[Ratios]) -> list[Ratios]:
    """Ratios of the subsets, where they are affordable."""
    r, q = work.values.shape[0], len(work.prior.order)
    if not price.has_subset_ratios(r, q, len(of_orders)):
        return of_orders
    with parallel.suitable_blas(float(min(r, q)) ** 3):
        return [_around(work, ratios) for ratios in of_orders]


def _around(work: _Work, of_orders: Ratios) -> Ratios:
    """Ratios of subsets, around those of their orders."""
    order, total = work.grouping(False)
    energy = work.grouping(True)[1]
    first = order[work.prior.start[:-1]]
    centre = of_orders.maximum.found.logs[first] + np.log(energy / total[first])
    likelihood = Pulled(work.likelihood(of_orders.outputs, by_subset=True), centre, SPREAD_OF_SUBSETS)
    found = maximise(likelihood, centre, ENOUGH_BY_SUBSET)
    both = of_orders.maximum.converged and found.converged
    return Ratios(of_orders.outputs, Maximum(found.found, both, of_orders.maximum.steps + found.steps), True)


def _starts(work: _Work, request: Request, outputs: IntArray) -> FloatArray | None:
    """(m, K) where to start searches whose every step is expensive: maxima on some rows, by kernels of the features."""
    r, q = work.values.shape[0], len(work.prior.order)
    if min(r, q) < START_FROM or r <= START_ROWS or not len(outputs):
        return None
    rows = np.sort(np.random.default_rng(request.random_state).choice(r, START_ROWS, replace=False))
    between = row_kernels(work.sample.codes[:, rows], work.kernels, work.index.subsets)
    p = work.sample.probability[rows] / work.sample.probability[rows].sum()
    kernels = [between[k] / float(p @ np.diagonal(between[k])) for k in work.prior.orders]
    y = work.values[np.ix_(rows, outputs)]
    y = y - p @ y
    noise, out = 1.0 / work.precision[rows], np.zeros((len(outputs), len(kernels)))
    for k in np.flatnonzero(y.any(axis=0)):
        out[k] = maximise(ByRows(kernels, y[:, [k]], noise)).found.logs
    return out


def _by_order(work: _Work, ratios: Ratios, numbers: FloatArray) -> FloatArray:
    """(orders,) sums of numbers of the components."""
    if not ratios.by_subset:
        return numbers
    return np.bincount(work.grouping(False)[0][work.prior.start[:-1]], numbers).astype(np.float64)


def _may_be_determined(work: _Work, found: list[Ratios]) -> bool:
    """Whether an exact fit may come out the same, so that it is worth making: judged from the likelihood alone."""
    if work.gram is None or not found:
        return False
    functions = np.bincount(work.grouping(False)[0])
    variance = work.sample.probability @ work.values**2
    for ratios in found:
        at = ratios.maximum.found
        effective = _by_order(work, ratios, at.effective)
        noise = float((at.residual / variance[ratios.outputs]).max())
        # Noise that an exact fit takes for effects, in the directions that the ratios hold back.
        held_back = float((functions - effective).sum())
        few = float((effective / functions).min()) < 0.5
        if noise > NEGLIGIBLE and (few or noise * held_back > NEGLIGIBLE * work.precision.sum()):
            return False
    return True


def _lost(work: _Work, exact: Solved, found: list[Ratios]) -> FloatArray:
    """(m,) mean squared difference of the exact and the shrunken fit, as a share of the variance."""
    fitted = Phi(exact.index, work.sample).synthesise(exact.values)
    out, p = np.zeros(work.values.shape[1]), work.sample.probability
    for ratios in found:
        own = ratios.outputs
        lower = work.likelihood(own, ratios.by_subset).factor(ratios.maximum.found.logs)
        solved = solve_by_functions(lower, work.scale(ratios), work.columns, work.values[:, own], work.precision)
        left = work.sample.values[:, own] - fitted[:, own]
        out[own] = p @ (left - solved.residual) ** 2 / (p @ work.values[:, own] ** 2)
    return out


def _decomposition(work: _Work, request: Request, plan: Plan, found: list[Ratios]) -> Solved:
    """Posterior mean, what its factor tells of rows left out, and the evidence."""
    r, m = work.values.shape
    q, p = len(work.prior.order), work.sample.probability
    chosen = np.arange(r) if work.gram is None else rows_to_leave_out(r, q, len(found), request.random_state)
    coordinates, left = np.zeros((q, m)), np.zeros((len(chosen), m))
    mse, stderr = np.zeros(m), np.zeros(m)
    parts, equations, steps = [], 0.0, 0
    for ratios in found:
        outputs = ratios.outputs
        with parallel.suitable_blas(float(min(r, q)) ** 3):
            solved, part, out = _one_part(work, ratios, chosen)
        coordinates[:, outputs], left[:, outputs] = solved.coordinates, out.residual
        mse[outputs], stderr[outputs] = out.mse, out.stderr
        parts.append(part)
        equations, steps = max(equations, solved.equations), max(steps, solved.steps)
    components = _components(work, found)
    posterior = Posterior(work.prior, tuple(parts), components, float(work.precision.sum()))
    values = work.prior.on_cells(work.index, coordinates)
    values[0] = p @ work.sample.values
    shrinkage = Shrinkage(
        described(components),
        posterior.effective,
        left,
        left_out_rows=chosen,
        left_out_mse=mse,
        left_out_stderr=stderr,
        posterior=posterior,
        least_squares=_least_squares(work),
    )
    solution = _solution(work, components, equations, steps)
    return Solved(work.index, values, plan, solution, work.basis, False, shrinkage)


def _least_squares(work: _Work) -> FloatArray:
    """(m,) mean squared residual of the same functions without shrinkage: the fit under the largest ratios."""
    out, outputs = np.zeros(work.values.shape[1]), work.varying
    if len(outputs):
        logs = np.full(len(work.prior.orders), bounds(float(work.precision.sum()))[1])
        likelihood, values = work.likelihood(outputs), work.values[:, outputs]
        solve = solve_by_functions if isinstance(likelihood, ByFunctions) else solve_by_rows
        found = solve(likelihood.factor(logs), work.prior.scale(np.exp(logs)), work.columns, values, work.precision)
        out[outputs] = work.sample.probability @ found.residual**2
    return out


def _one_part(work: _Work, ratios: Ratios, chosen: IntArray) -> tuple[PosteriorMean, Part, LeftOut]:
    found, scale = ratios.maximum.found, work.scale(ratios)
    likelihood = work.likelihood(ratios.outputs, ratios.by_subset)
    lower, values = likelihood.factor(found.logs), work.values[:, ratios.outputs]
    if isinstance(likelihood, ByFunctions):
        solved = solve_by_functions(lower, scale, work.columns, values, work.precision)
        spread = Spread(lower)
        codes = work.sample.codes

        def at_rows(rows: IntArray) -> FloatArray:
            return work.prior.on_rows(work.index, codes[:, rows]) * scale

        left = left_out_of_shrunk(lower, at_rows, solved.residual, work.precision, chosen)
    else:
        solved = solve_by_rows(lower, scale, work.columns, values, work.precision)
        spread = Spread(lower, _reader(work, scale))
        left = left_out_by_rows(lower, solved.residual, work.precision)
    part = Part(ratios.outputs, found.residual, scale, spread, _by_order(work, ratios, found.effective))
    return solved, part, left


def _reader(work: _Work, scale: FloatArray) -> ReadColumns:
    """Z S v at the rows, of all columns or of those of one subset."""
    columns, phi = work.columns, work.phi
    own = {s: (place, table) for s, place, table in work.prior.groups()}

    def read(v: FloatArray, subset: int | None) -> FloatArray:
        if subset is None:
            return columns.synthesise(scale[:, None] * v)
        place, table = own[subset]
        on_cells = table @ (scale[place, None] * v[place])
        return np.asarray(on_cells[phi.cells(subset)])

    return read


def _components(work: _Work, found: list[Ratios]) -> tuple[Components, ...]:
    """Components of every output; none of one that is constant."""
    orders, r = work.prior.orders, work.values.shape[0]
    out = [Components(orders, (0.0,) * len(orders), 0.0, True, r)] * work.values.shape[1]
    for ratios in found:
        maximum = ratios.maximum
        sums = _by_order(work, ratios, np.exp(maximum.found.logs))
        for o, residual in zip(ratios.outputs.tolist(), maximum.found.residual.tolist(), strict=True):
            variance = tuple(float(residual * ratio) for ratio in sums)
            out[o] = Components(orders, variance, residual, maximum.converged, r, maximum.steps, ratios.by_subset)
    return tuple(out)


def _solution(work: _Work, components: tuple[Components, ...], equations: float, steps: int) -> Solution:
    orders, dimensions, q = work.index.layout.order, work.basis.dimensions, work.basis.n_functions
    return Solution(
        coefficients=np.zeros((0, work.values.shape[1])),
        kept=np.ones(q, dtype=bool),
        rank_by_order=tuple(int(dimensions[orders == k].sum()) for k in range(int(orders.max()) + 1)),
        smallest_kept=1.0,
        largest_dropped=0.0,
        null=np.zeros((q, 0)),
        iterations=max(1, steps),
        residual=equations,
        method="posterior mean under variance components",
        converged=all(c.converged for c in components),
        rank_known=False,
    )
