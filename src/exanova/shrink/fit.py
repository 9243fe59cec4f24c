"""From a sample and a family to the shrunken decomposition: components, posterior, and their description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.data.sample import Sample
from exanova.design.continuation import Continuation, unobserved_cells
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink.clusters import Shared, shared_in_words
from exanova.shrink.components import VarianceComponents, bounds, described
from exanova.shrink.continued import continued, pairs_to_continue
from exanova.shrink.coordinates import Prior
from exanova.shrink.drift import affordable, drift
from exanova.shrink.equal_rows import Equal
from exanova.shrink.left_out import Alone, LeftOut, left_out_by_rows, left_out_of_shrunk, rows_to_leave_out
from exanova.shrink.posterior import (
    OutputGroup,
    Posterior,
    PosteriorMean,
    Spread,
    solve_by_functions,
    solve_by_rows,
)
from exanova.shrink.prepared import Prepared
from exanova.shrink.ratios import (
    KnownRatios,
    Ratios,
    by_order,
    ratios_as_given,
    ratios_in_clusters,
    ratios_of_leading,
    ratios_of_orders,
    ratios_of_subsets,
    variances,
)
from exanova.shrink.unshrunk import never_shrunk, why_not
from exanova.solve.evidence import Shrinkage, Solution, Solved
from exanova.solve.plan import Plan
from exanova.solve.planning import make_plan
from exanova.solve.request import Request
from exanova.solve.run import run_plan
from exanova.typing import FloatArray, IntArray, Subset

NEGLIGIBLE = 1e-6
"""Share of the variance below which the change by shrinkage does not justify a shrunken fit."""

DETERMINED = "off: the rows determine every function"


def fit_family(
    sample: Sample,
    request: Request,
    subsets: tuple[Subset, ...],
    progress: Progress,
    exactly: Callable[[], Solved] | None = None,
    known: Callable[[], KnownRatios | None] | None = None,
) -> Solved:
    """Shrink the effects of a family that has been chosen, closed downward and in canonical order.

    ``exactly`` is its exact fit, where that is known already; ``known`` gives ratios of its orders, from rows that did
    not choose it.
    """
    reason = never_shrunk(request)
    if exactly is not None and reason is not None:
        return replace(exactly(), shrinkage=Shrinkage(reason))
    order = max(map(len, subsets))
    chosen = replace(request, subsets=subsets, max_order=order, selection=None, max_terms=None, candidates=None)
    plan, survey = make_plan(chosen, sample, sample.n_outputs)
    if request.selection:
        plan = replace(plan, selection=request.selection, route=f"{request.selection} selection")
    exact = exactly or partial(run_plan, sample, chosen, plan, survey, progress)
    reason = why_not(sample, chosen, plan, survey.family)
    if reason is None and survey.family is not None:
        return fit_shrunk(sample, chosen, plan, survey.family, progress, exact, known)
    return replace(exact(), shrinkage=Shrinkage(reason or ""))


def fit_shrunk(
    sample: Sample,
    request: Request,
    plan: Plan,
    family: Family,
    progress: Progress,
    exactly: Callable[[], Solved],
    known: Callable[[], KnownRatios | None] | None = None,
) -> Solved:
    """Decompose with effects shrunk to what the rows can support; by ``exactly`` where they support everything."""
    work = Prepared.of(sample, request, family, progress)
    progress.phase("variance components")
    given = None if known is None else known()
    exact, shared = None, None
    all_ratios = ratios_of_orders(work, request) if given is None else ratios_as_given(work, request, given)
    if work.awaits_leading and all_ratios:
        leading = np.max([work.ratio(one.maximum.evaluation.logs, one.by_subset) for one in all_ratios], axis=0)
        work = work.leading(leading)
        all_ratios = ratios_of_leading(work, all_ratios) if given is None else ratios_as_given(work, request, given)
    if work.in_clusters is not None:
        all_ratios, shared = ratios_in_clusters(work, request, all_ratios, given)
    for by_subset in (False, True):  # where the ratios of orders decide, no others are needed
        all_ratios = ratios_of_subsets(work, all_ratios) if by_subset and work.in_clusters is None else all_ratios
        if _may_be_determined(work, all_ratios):
            exact = exact or exactly()
            if _lost(work, exact, all_ratios).max(initial=0.0) < NEGLIGIBLE:
                return replace(exact, shrinkage=_determined(work, request, exact, all_ratios))
    progress.phase("posterior")
    return _decomposition(work, request, plan, all_ratios, shared)


def _may_be_determined(work: Prepared, all_ratios: list[Ratios]) -> bool:
    """Whether an exact fit may come out the same, so that it is worth computing, from the likelihood alone."""
    if work.basis is None or not all_ratios:
        return False
    functions = np.bincount(work.order_of[work.prior.group])
    variance = work.sample.probability @ work.values**2
    for ratios in all_ratios:
        at = ratios.maximum.evaluation
        effective = by_order(work, ratios, at.effective)
        noise = float((at.residual / variance[ratios.outputs]).max())
        # Noise that an exact fit takes for effects, in the directions that the ratios hold back.
        held_back = float((functions - effective).sum())
        few = float((effective / functions).min()) < 0.5
        if noise > NEGLIGIBLE and (few or noise * held_back > NEGLIGIBLE * work.precision.sum()):
            return False
    return True


def _lost(work: Prepared, exact: Solved, all_ratios: list[Ratios]) -> FloatArray:
    """(m,) mean squared difference of the exact and the shrunken fit, as a share of the variance."""
    fitted = Phi(exact.family, work.sample).synthesise(exact.values)
    out, p = np.zeros(work.values.shape[1]), work.sample.probability
    for ratios in all_ratios:
        own = ratios.outputs
        solved = _solved(work, ratios.maximum.evaluation.logs, ratios.by_subset, own)[0]
        left = work.sample.values[:, own] - fitted[:, own]
        out[own] = p @ (left - solved.residual) ** 2 / (p @ work.values[:, own] ** 2)
    return out


def _determined(work: Prepared, request: Request, exact: Solved, all_ratios: list[Ratios]) -> Shrinkage:
    """Pairs in cells never observed and rows left out, by the posterior mean that the exact fit equals.

    Rows left out may be alone in their cells: the fit of the others then answers them by the continuation as well.
    """
    pairs = pairs_to_continue(work.family, work.prior.subsets, work.values.shape[1])
    elsewhere = bool(len(pairs)) or any(request.neighboured)
    if not np.array_equal(exact.family.cell_key, work.family.cell_key):
        pairs = pairs[:0]
    chosen = _rows_to_leave_out(work, all_ratios, request)
    unseen, left, mse, stderr = _none_unseen(work, pairs), *_none_left_out(work, chosen)
    for ratios in all_ratios if elsewhere else ():
        own = ratios.outputs
        solved, part, out = _one_part(work, request, ratios, chosen, pairs)
        unseen[:, own] = continued(work, pairs, solved, part.ratio)
        left[:, own], mse[own], stderr[own] = out.residual, out.mse, out.stderr
    if not elsewhere:
        return Shrinkage(DETERMINED, continuation=Continuation(pairs, unseen))
    return Shrinkage(
        DETERMINED,
        left_out=left,
        left_out_rows=chosen,
        left_out_mse=mse,
        left_out_stderr=stderr,
        continuation=Continuation(pairs, unseen),
    )


def _rows_to_leave_out(work: Prepared, all_ratios: list[Ratios], request: Request) -> IntArray:
    """Rows left out one at a time: all, unless the factor is one of functions and leaving each out is not cheap."""
    r = work.values.shape[0]
    return np.arange(r) if work.gram is None else rows_to_leave_out(r, work.size, len(all_ratios), request.random_state)


def _none_left_out(work: Prepared, chosen: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Zeros for residuals of rows left out (N, m), their mean square (m,) and its error (m,)."""
    m = work.values.shape[1]
    return np.zeros((len(chosen), m)), np.zeros(m), np.zeros(m)


def _none_unseen(work: Prepared, pairs: IntArray) -> FloatArray:
    """(K, m) zeros for the cells of pairs that were never observed."""
    return np.zeros((sum(unobserved_cells(work.family, s) for s in pairs.tolist()), work.values.shape[1]))


def _decomposition(
    work: Prepared, request: Request, plan: Plan, all_ratios: list[Ratios], shared: Shared | None = None
) -> Solved:
    """Posterior mean, leave-one-out errors from its factor, and the evidence."""
    m = work.values.shape[1]
    p = work.sample.probability
    chosen = _rows_to_leave_out(work, all_ratios, request)
    values = np.zeros((work.family.n_cells, m))
    pairs = pairs_to_continue(work.family, work.prior.subsets, m)
    unseen, left, mse, stderr = _none_unseen(work, pairs), *_none_left_out(work, chosen)
    parts, equations, steps = [], 0.0, 0
    for ratios in all_ratios:
        outputs = ratios.outputs
        with parallel.suitable_blas(float(work.size) ** 3):
            solved, part, out = _one_part(work, request, ratios, chosen, pairs)
        values[:, outputs], left[:, outputs] = _on_cells(work, solved), out.residual
        unseen[:, outputs] = continued(work, pairs, solved, part.ratio)
        mse[outputs], stderr[outputs] = out.mse, out.stderr
        parts.append(part)
        equations, steps = max(equations, solved.equations), max(steps, solved.steps)
    components = _components(work, all_ratios)
    posterior = Posterior(work.prior, tuple(parts), components, float(work.precision.sum()))
    values[0] = p @ work.sample.values
    shrinkage = Shrinkage(
        described(components) + _of_leading(work) + shared_in_words(work.sample, shared),
        posterior.effective,
        left,
        left_out_rows=chosen,
        left_out_mse=mse,
        left_out_stderr=stderr,
        posterior=posterior,
        least_squares=_least_squares(work),
        continuation=Continuation(pairs, unseen),
    )
    solution = _solution(work, components, equations, steps)
    return Solved(work.family, values, plan, solution, work.basis, False, shrinkage)


def _of_leading(work: Prepared) -> str:
    """The description if only some of the functions were used."""
    if not work.has_leading:
        return ""
    return f"; only {work.size:,} of the {work.functions:,} functions, those with the largest prior variance"


def _least_squares(work: Prepared) -> FloatArray:
    """(m,) mean squared residual of the same functions without shrinkage: the fit under the largest ratios."""
    out, outputs = np.zeros(work.values.shape[1]), work.varying
    if len(outputs):
        logs = np.full(len(work.prior.orders), bounds(float(work.precision.sum()))[1])
        out[outputs] = work.sample.probability @ _solved(work, logs, False, outputs)[0].residual ** 2
    return out


def _solved(work: Prepared, logs: FloatArray, by_subset: bool, outputs: IntArray) -> tuple[PosteriorMean, FloatArray]:
    """The posterior mean at some ratios, and the factor it was found with."""
    lower, values = work.factor(logs, by_subset, outputs), work.values[:, outputs]
    if work.gram is not None:
        scale = work.scale(logs, by_subset)
        return solve_by_functions(lower, scale, work.columns, values, work.precision), lower
    effects = partial(work.rows.effects, work.ratio(logs, by_subset))
    return solve_by_rows(lower, effects, work.phi.synthesise, values, work.precision), lower


def _on_cells(work: Prepared, solved: PosteriorMean) -> FloatArray:
    """(cells, m) the effects of a posterior mean."""
    return solved.coordinates if work.gram is None else work.prior.on_cells(work.family, solved.coordinates)


def _one_part(
    work: Prepared, request: Request, ratios: Ratios, chosen: IntArray, pairs: IntArray
) -> tuple[PosteriorMean, OutputGroup, LeftOut]:
    evaluation = ratios.maximum.evaluation
    solved, lower = _solved(work, evaluation.logs, ratios.by_subset, ratios.outputs)
    equal, ratio = Equal.of(work.sample, ratios.outputs), work.ratio(evaluation.logs, ratios.by_subset)
    effective = evaluation.effective
    if work.gram is not None:
        scale, codes = work.scale(evaluation.logs, ratios.by_subset), work.sample.codes
        likelihood = work.by_functions(ratios.outputs, ratios.by_subset)
        effective = effective if likelihood.probes is None else likelihood.determined(lower)
        spread = Spread(lower)

        def at_rows(rows: IntArray) -> FloatArray:
            return work.prior.on_rows(work.family, codes[:, rows]) * scale

        alone = _alone(work, request, solved, pairs, _drift(work, ratios, solved), chosen), work.prior.group
        left = left_out_of_shrunk(lower, at_rows, solved.residual, work.precision, chosen, equal, alone)
    else:
        read, sums = (partial(how, work.phi, work.prior, ratio) for how in (_read, _sums))
        spread = Spread(lower, read, 1.0 / work.precision, sums)
        moved = _drift(work, ratios, solved, lower)
        own = _alone(work, request, solved, pairs, moved, np.arange(len(work.values)))
        follows = partial(work.rows.lines, ratio, own.subsets)
        left = left_out_by_rows(lower, solved.residual, work.precision, equal, (own, follows))
    residual, noise = evaluation.residual * left.repeated, ratios.noise
    noise = None if noise is None else (noise[0] * left.repeated, noise[1])
    part = OutputGroup(ratios.outputs, residual, ratio, spread, by_order(work, ratios, effective), noise)
    return solved, part, left


def _drift(
    work: Prepared, ratios: Ratios, solved: PosteriorMean, lower: FloatArray | None = None
) -> FloatArray | float:
    """(r, m) how errors of rows left out move with the ratios, where that counts and is affordable."""
    from scipy.linalg.lapack import dpotri

    at = ratios.maximum.evaluation
    if not ratios.by_subset or not affordable(work.rows, work.sample.n_rows):
        return 0.0
    ratio, noise = work.ratio(at.logs, True), 1.0 / work.precision
    inverse, _ = dpotri(work.rows.factor(ratio, noise) if lower is None else lower, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    moved = drift(work.rows, ratio, inverse, solved.residual, work.precision, at.residual, at.information)
    return np.asarray(moved / np.reshape(np.broadcast_to(work.sample.copies, work.precision.shape), (-1, 1)))


def _alone(
    work: Prepared,
    request: Request,
    solved: PosteriorMean,
    pairs: IntArray,
    moved: FloatArray | float,
    chosen: IntArray,
) -> Alone:
    """Effects of cells in which one of the ``chosen`` rows is alone, unless read from neighbours; and ``moved``."""
    values, family = _on_cells(work, solved), work.family
    alone = np.empty((len(work.prior.subsets), len(chosen)), dtype=bool)
    fitted, by_subset = np.zeros((len(chosen), values.shape[1])), work.rows.alone(work.sample.copies, chosen)
    levels: dict[int, NDArray[np.bool_]] = {}
    for s, out, (own, cells) in zip(work.prior.subsets, alone, by_subset, strict=True):
        subset = family.subsets[s]
        if len(subset) == 1:  # these come before their pairs
            codes = work.sample.codes[subset[0], chosen]
            own = own & (codes >= (request.neighboured[subset[0]] if request.neighboured else 0))
            levels[subset[0]] = own
        if len(subset) == 2 and (s in pairs or not unobserved_cells(family, s)):
            own = own & (levels[subset[0]] | levels[subset[1]])
        rows = np.flatnonzero(own)
        fitted[rows] += values[family.cells_of(s)][cells[rows]]
        out[:] = own
    return Alone(alone, fitted + (moved[chosen] if isinstance(moved, np.ndarray) else moved))


def _read(phi: Phi, prior: Prior, ratio: FloatArray, v: FloatArray, subset: int | None) -> FloatArray:
    """Z S v at the rows, of all columns or of those of one subset; can be pickled."""
    v = np.sqrt(ratio)[prior.group, None] * v
    if subset is None:
        return phi.synthesise(prior.on_cells(phi.family, v))
    k = prior.subsets.index(subset)
    on_cells = prior.tables[k] @ v[prior.start[k] : prior.start[k + 1]]
    return np.asarray(on_cells[phi.cells(subset)])


def _sums(phi: Phi, prior: Prior, ratio: FloatArray, w: FloatArray) -> FloatArray:
    """S Z^T w for numbers (r, f) at the rows; can be pickled."""
    return np.asarray(np.sqrt(ratio)[prior.group, None] * prior.on_columns(phi.family, phi.analyse(w)))


def _components(work: Prepared, all_ratios: list[Ratios]) -> tuple[VarianceComponents, ...]:
    """Variance components of every output; none of one that is constant."""
    orders, r = work.prior.orders, work.values.shape[0]
    out = [VarianceComponents(orders, (0.0,) * len(orders), 0.0, True, r)] * work.values.shape[1]
    for ratios in all_ratios:
        maximum, own = ratios.maximum, variances(work, ratios)
        residuals = maximum.evaluation.residual.tolist()
        for o, residual, variance in zip(ratios.outputs.tolist(), residuals, own.tolist(), strict=True):
            out[o] = VarianceComponents(
                orders, tuple(variance), residual, maximum.converged, r, maximum.steps, ratios.by_subset
            )
    return tuple(out)


def _solution(work: Prepared, components: tuple[VarianceComponents, ...], equations: float, steps: int) -> Solution:
    orders, own = work.family.layout.order, work.functions_of
    q = int(own.sum())
    return Solution(
        coefficients=np.zeros((0, work.values.shape[1])),
        kept=np.ones(q, dtype=bool),
        rank_by_order=tuple(int(own[orders == k].sum()) for k in range(int(orders.max()) + 1)),
        smallest_kept=1.0,
        largest_dropped=0.0,
        null=np.zeros((q, 0)),
        iterations=max(1, steps),
        residual=equations,
        method="posterior mean under variance components",
        converged=all(c.converged for c in components),
        rank_known=False,
    )
