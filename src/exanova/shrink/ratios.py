"""The ratios of every output: of orders, by likelihood; then of subsets, around those of their orders.

Every output has its own where that is affordable; beyond, similar outputs share them, according to the likelihood of
some random rows. The same rows give the start of an expensive search. All functions may explain a few rows without any
noise; the same ratios under the leading functions, or with many rows, would hold nothing back. There the likelihood of
all rows, given the functions that the fit uses, decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exanova import parallel
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.clusters import Shared
from exanova.shrink.components import (
    ENOUGH,
    ENOUGH_BY_SUBSET,
    Maximum,
    Pulled,
    alike,
    bounds,
    maximise,
    spread_of_subsets,
)
from exanova.shrink.prepared import Prepared
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray

ROUGHLY_PER_ROW = 4e-3
"""Gain in log-likelihood per row that ratios of orders may leave to those of subsets, which start from there."""

ROUGHLY = 0.5
"""Gain in log-likelihood that a search on some rows may leave to the one on all of them."""

EXPENSIVE_PER_ROW = 1e-3
"""Gain per row that ratios of subsets may leave where every step factorises a matrix of ``START_FROM`` or more."""

NEARLY_ALL = 0.75
"""Functions determined by some rows, over these rows, above which they hardly tell noise from effects."""

START_FROM = 1500
"""Functions from which a start on few rows saves more than it costs."""


KnownRatios = dict[int, dict[int, float]]
"""For each output, the logarithm of the ratio of each order."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """The ratios of some outputs.

    Attributes:
        outputs: (g,) their numbers.
        maximum: where their likelihood is largest.
        by_subset: whether there is one ratio for each subset, or for each order.
        noise: where rows of a cluster share something, (g,) tau^2 of what they do not share, and (S',) the variance of
            the noise in the columns of every subset over it; else ``None``.
    """

    outputs: IntArray
    maximum: Maximum
    by_subset: bool
    noise: tuple[FloatArray, FloatArray] | None = None


def ratios_of_orders(work: Prepared, request: Request, outputs: IntArray | None = None) -> list[Ratios]:
    """Ratios of the orders, for every output (or those given), or for groups of similar ones where they are many.

    Where rows are many, those drawn at random say where the search starts; and that is all where ratios of subsets
    follow, or where the leading functions have to be chosen first (:func:`ratios_of_leading`).
    """
    outputs = work.varying if outputs is None else outputs
    with parallel.suitable_blas(float(work.size) ** 3):
        starts = _starts(work, outputs)
        most, groups = cost.sets_of_ratios(work.size, len(outputs)), [np.array([k]) for k in range(len(outputs))]
        if most < len(outputs):
            groups = [np.arange(len(outputs))] if starts is None else alike(_logs(starts), most)
        firsts = [None if starts is None else starts[group[0]] for group in groups]
        return [
            Ratios(outputs[group], start, False)
            if start is not None and _is_enough(work, start, len(groups))
            else _on_all_rows(work, outputs[group], start, len(groups))
            for group, start in zip(groups, firsts, strict=True)
        ]


def _is_enough(work: Prepared, start: Maximum, sets: int) -> bool:
    """Whether ratios by some rows need no search on all of them: others follow, for the same functions."""
    told = float(start.evaluation.effective.sum()) < NEARLY_ALL * len(work.drawn)
    return work.awaits_leading or (told and not work.has_leading and has_subset_ratios(work, sets))


def ratios_of_leading(work: Prepared, of_all: list[Ratios]) -> list[Ratios]:
    """Ratios of the orders where only the leading functions are used, given those of all functions.

    What the other functions carry is noise to them (:meth:`Prepared.noisier`): the search starts from there.
    """
    with parallel.suitable_blas(float(work.size) ** 3):
        return [_on_all_rows(work, one.outputs, one.maximum, len(of_all)) for one in of_all]


def _on_all_rows(work: Prepared, outputs: IntArray, start: Maximum | None, sets: int) -> Ratios:
    """Ratios of the orders by the likelihood of all rows; roughly, where others follow that start from there."""
    follows = work.awaits_leading or has_subset_ratios(work, sets)
    enough = max(ENOUGH, ROUGHLY_PER_ROW * float(work.precision.sum())) if follows else ENOUGH
    logs = None if start is None else work.noisier(start.evaluation.logs)
    return Ratios(outputs, maximise(work.likelihood(outputs), logs, enough), False)


def has_subset_ratios(work: Prepared, sets: int) -> bool:
    """Whether ratios of subsets are affordable beside those of orders."""
    kept = work.gram is not None or work.rows.of.are_kept
    return kept and cost.has_subset_ratios(work.size, len(work.prior.subsets), sets)


def _logs(starts: list[Maximum]) -> FloatArray:
    return np.array([start.evaluation.logs for start in starts])


def known_ratios(sample: Sample, request: Request, family: Family, progress: Progress) -> KnownRatios:
    """The ratios of the orders of a family, by the likelihood of rows that did not choose it."""
    work = Prepared.of(sample, request, family, progress)
    shared = work.find_shared(request.random_state)
    work = work if shared is None else work.sharing(shared)
    orders = work.prior.orders
    out: dict[int, dict[int, float]] = {}
    for ratios in ratios_of_orders(work, request):
        logs = dict(zip(orders, ratios.maximum.evaluation.logs.tolist(), strict=True))
        out |= {o: logs for o in ratios.outputs.tolist()}
    return out


def ratios_as_given(work: Prepared, request: Request, known: KnownRatios) -> list[Ratios]:
    """The likelihood of every output at ratios that are known; outputs with the same ones go together.

    An output that was constant on those rows has no known ratios: its own likelihood determines them.
    """
    unknown = work.varying[[o not in known for o in work.varying.tolist()]]
    all_ratios = ratios_of_orders(work, request, unknown) if len(unknown) else []
    groups: dict[tuple[float, ...], list[int]] = {}
    low = bounds(float(work.precision.sum()))[0]
    for o in np.setdiff1d(work.varying, unknown).tolist():
        logs = tuple(known[o].get(k, low) for k in work.prior.orders)
        groups.setdefault(logs, []).append(o)
    with parallel.suitable_blas(float(work.size) ** 3):
        for logs, own in groups.items():
            there = work.likelihood(np.array(own)).at(work.noisier(np.array(logs)))
            all_ratios.append(Ratios(np.array(own), Maximum(there, True, 1), False))
    return all_ratios


def ratios_in_clusters(
    work: Prepared, request: Request, of_orders: list[Ratios], known: KnownRatios | None
) -> tuple[list[Ratios], Shared | None]:
    """Ratios by a likelihood that knows what rows of a cluster share, for a fit that takes rows for independent.

    Args:
        work: the rows.
        request: the parameters of the fit.
        of_orders: ratios of orders that take rows for independent.
        known: ratios of orders that are given, if they are.

    Returns:
        the ratios, and what rows share; ``None`` and ratios as of independent rows where that cannot be estimated.
    """
    all_ratios = ratios_of_subsets(work, of_orders)
    weights = [len(one.outputs) * work.ratio(one.maximum.evaluation.logs, True) for one in all_ratios if one.by_subset]
    shared = work.find_shared(request.random_state, np.sum(weights, axis=0) if weights else None)
    if shared is None:
        return all_ratios, None
    within = work.sharing(shared)
    of_orders = ratios_of_orders(within, request) if known is None else ratios_as_given(within, request, known)
    return [_of_noise(work, shared.noise, one) for one in ratios_of_subsets(within, of_orders)], shared


def _of_noise(work: Prepared, noise: FloatArray, ratios: Ratios) -> Ratios:
    """The same ratios to the noise in the columns of every subset, in place of tau^2."""
    at, energy = ratios.maximum.evaluation, work.prior.energy
    over = (
        noise if ratios.by_subset else np.bincount(work.order_of, energy * noise) / np.bincount(work.order_of, energy)
    )
    logs = np.clip(at.logs - np.log(over), *bounds(float(work.precision.sum())))
    with parallel.suitable_blas(float(work.size) ** 3):
        there = work.likelihood(ratios.outputs, ratios.by_subset).at(logs)
    own = noise if ratios.by_subset else over[work.order_of]
    return replace(ratios, maximum=replace(ratios.maximum, evaluation=there), noise=(at.residual, own))


def ratios_of_subsets(work: Prepared, of_orders: list[Ratios]) -> list[Ratios]:
    """Ratios of the subsets, where they are affordable."""
    if not has_subset_ratios(work, len(of_orders)):
        return of_orders
    with parallel.suitable_blas(float(work.size) ** 3):
        return [_around(work, ratios) for ratios in of_orders]


def _around(work: Prepared, of_orders: Ratios) -> Ratios:
    """Ratios of subsets, around those of their orders."""
    energy, first, outputs = work.prior.energy, work.order_of, of_orders.outputs
    centre = of_orders.maximum.evaluation.logs[first] + np.log(energy / work.total[first])
    spread = spread_of_subsets(float(work.precision.sum()))
    likelihood = Pulled(work.likelihood(outputs, by_subset=True), centre, spread)
    enough = EXPENSIVE_PER_ROW * likelihood.count if work.size >= START_FROM else 0.0
    maximum = maximise(likelihood, centre, max(enough, ENOUGH_BY_SUBSET))
    both = of_orders.maximum.converged and maximum.converged
    return Ratios(outputs, Maximum(maximum.evaluation, both, of_orders.maximum.steps + maximum.steps), True)


def _starts(work: Prepared, outputs: IntArray) -> list[Maximum] | None:
    """For each output, the maximum on some rows, where a step on all of them is expensive."""
    expensive = len(work.drawn) < work.sample.n_rows and work.size >= START_FROM
    if not expensive or not len(outputs):
        return None
    return [maximise(work.on_some(outputs[[k]]), enough=ROUGHLY) for k in range(len(outputs))]


def variances(work: Prepared, ratios: Ratios) -> FloatArray:
    """(g, orders) variance that the prior expects of the effects of every order, for each output."""
    own = np.exp(ratios.maximum.evaluation.logs)
    if ratios.noise is None:
        return np.outer(ratios.maximum.evaluation.residual, by_order(work, ratios, own))
    residual, noise = ratios.noise
    over = noise if ratios.by_subset else noise[np.unique(work.order_of, return_index=True)[1]]
    return np.outer(residual, by_order(work, ratios, own * over))


def by_order(work: Prepared, ratios: Ratios, numbers: FloatArray) -> FloatArray:
    """(orders,) sums of numbers of the components."""
    if not ratios.by_subset:
        return numbers
    return np.bincount(work.order_of, numbers).astype(np.float64)
