"""The ratios of every output: of orders, by likelihood; then of subsets, around those of their orders.

Every output has its own where that is affordable; beyond, similar outputs share them, as the likelihood of some rows
drawn at random tells. The same rows say where an expensive search starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import parallel
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.progress import Progress
from exanova.shrink import cost
from exanova.shrink.components import (
    ENOUGH,
    ENOUGH_BY_SUBSET,
    SPREAD_OF_SUBSETS,
    Maximum,
    Pulled,
    alike,
    bounds,
    maximise,
)
from exanova.shrink.likelihood import ByRows
from exanova.shrink.prepared import Prepared
from exanova.shrink.prior import row_kernels
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray

START_ROWS = 1000
"""Distinct rows, drawn at random, on which a search over many functions starts."""

ROUGHLY_PER_ROW = 4e-3
"""Gain in log-likelihood per row that ratios of orders may leave to those of subsets, which start from there."""

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
    """

    outputs: IntArray
    maximum: Maximum
    by_subset: bool


def ratios_of_orders(work: Prepared, request: Request, outputs: IntArray | None = None) -> list[Ratios]:
    """Ratios of the orders, for every output (or those given), or for groups of similar ones where they are many."""
    r, q = work.values.shape[0], len(work.prior.order)
    outputs = work.varying if outputs is None else outputs
    with parallel.suitable_blas(float(min(r, q)) ** 3):
        starts = _starts(work, request, outputs)
        most, groups = cost.sets_of_ratios(r, q, len(outputs)), [np.array([k]) for k in range(len(outputs))]
        if most < len(outputs):
            groups = [np.arange(len(outputs))] if starts is None else alike(starts, most)
        found = []
        follows = cost.has_subset_ratios(r, q, len(groups))
        enough = max(ENOUGH, ROUGHLY_PER_ROW * float(work.precision.sum())) if follows else ENOUGH
        for group in groups:
            start = None if starts is None else starts[group[0]]
            found.append(Ratios(outputs[group], maximise(work.likelihood(outputs[group]), start, enough), False))
        return found


def known_ratios(sample: Sample, request: Request, family: Family, progress: Progress) -> KnownRatios:
    """The ratios of the orders of a family, by the likelihood of rows that did not choose it."""
    work = Prepared.of(sample, request, family, progress)
    orders = work.prior.orders
    out: dict[int, dict[int, float]] = {}
    for ratios in ratios_of_orders(work, request):
        logs = dict(zip(orders, ratios.maximum.found.logs.tolist(), strict=True))
        out |= {o: logs for o in ratios.outputs.tolist()}
    return out


def ratios_as_given(work: Prepared, request: Request, known: KnownRatios) -> list[Ratios]:
    """The likelihood of every output at ratios that are known; outputs with the same ones go together.

    Of an output that was constant on the rows that tell them, none are known: its own likelihood finds them.
    """
    untold = work.varying[[o not in known for o in work.varying.tolist()]]
    found = ratios_of_orders(work, request, untold) if len(untold) else []
    groups: dict[tuple[float, ...], list[int]] = {}
    low = bounds(float(work.precision.sum()))[0]
    for o in np.setdiff1d(work.varying, untold).tolist():
        logs = tuple(known[o].get(k, low) for k in work.prior.orders)
        groups.setdefault(logs, []).append(o)
    with parallel.suitable_blas(float(min(work.values.shape[0], len(work.prior.order))) ** 3):
        return found + [
            Ratios(np.array(own), Maximum(work.likelihood(np.array(own)).at(np.array(logs)), True, 1), False)
            for logs, own in groups.items()
        ]


def ratios_of_subsets(work: Prepared, of_orders: list[Ratios]) -> list[Ratios]:
    """Ratios of the subsets, where they are affordable."""
    r, q = work.values.shape[0], len(work.prior.order)
    if not cost.has_subset_ratios(r, q, len(of_orders)):
        return of_orders
    with parallel.suitable_blas(float(min(r, q)) ** 3):
        return [_around(work, ratios) for ratios in of_orders]


def _around(work: Prepared, of_orders: Ratios) -> Ratios:
    """Ratios of subsets, around those of their orders."""
    order, total = work.grouping(False)
    energy = work.grouping(True)[1]
    first = order[work.prior.start[:-1]]
    centre = of_orders.maximum.found.logs[first] + np.log(energy / total[first])
    likelihood = Pulled(work.likelihood(of_orders.outputs, by_subset=True), centre, SPREAD_OF_SUBSETS)
    found = maximise(likelihood, centre, ENOUGH_BY_SUBSET)
    both = of_orders.maximum.converged and found.converged
    return Ratios(of_orders.outputs, Maximum(found.found, both, of_orders.maximum.steps + found.steps), True)


def _starts(work: Prepared, request: Request, outputs: IntArray) -> FloatArray | None:
    """(m, K) where to start searches whose every step is expensive: maxima on some rows, by kernels of the features."""
    r, q = work.values.shape[0], len(work.prior.order)
    if min(r, q) < START_FROM or r <= START_ROWS or not len(outputs):
        return None
    rows = np.sort(np.random.default_rng(request.random_state).choice(r, START_ROWS, replace=False))
    between = row_kernels(work.sample.codes[:, rows], work.kernels, work.family.subsets)
    p = work.sample.probability[rows] / work.sample.probability[rows].sum()
    kernels = [between[k] / float(p @ np.diagonal(between[k])) for k in work.prior.orders]
    y = work.values[np.ix_(rows, outputs)]
    y = y - p @ y
    noise, out = 1.0 / work.precision[rows], np.zeros((len(outputs), len(kernels)))
    for k in np.flatnonzero(y.any(axis=0)):
        out[k] = maximise(ByRows(kernels, y[:, [k]], noise)).found.logs
    return out


def by_order(work: Prepared, ratios: Ratios, numbers: FloatArray) -> FloatArray:
    """(orders,) sums of numbers of the components."""
    if not ratios.by_subset:
        return numbers
    return np.bincount(work.grouping(False)[0][work.prior.start[:-1]], numbers).astype(np.float64)
