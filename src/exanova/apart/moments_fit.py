"""A decomposition from moments: the moments route, with margins in place of passes over rows.

The residual of given effects in every cell follows from the margins, to the accuracy of a pass over rows, so that the
solve is refined as with rows. Quantities that need the rows themselves are not measured, and the certificate lists
them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exanova import __version__, parallel
from exanova.apart.moments import Moments, identity
from exanova.basis.functions import Basis, build_basis, on_cells, on_functions, order_slices
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.scaling import Scaling
from exanova.decomposition import Decomposition, uncertainty_of
from exanova.design.family import Family, dense_family
from exanova.effects.average_leverage import on_average
from exanova.effects.cancellation import cancellation
from exanova.effects.certificate import Certificate, notes_of, redundancies
from exanova.effects.effect import Schema
from exanova.effects.norms import covariances
from exanova.effects.orthogonality import conditional_means
from exanova.errors import InputError
from exanova.explain.mean_shapley import MeanShapley
from exanova.messages import count_of
from exanova.phi.margins import Margins, multiply, read_gram
from exanova.phi.monomials import monomials, reference_levels
from exanova.phi.projection import mirrored, projected
from exanova.provenance import Provenance, timestamp
from exanova.queries.query import QuerySettings
from exanova.solve.evidence import Solution, Solved
from exanova.solve.moments_route import solve_moments
from exanova.solve.plan import Plan
from exanova.typing import FloatArray

UNMEASURED = (
    "largest error",
    "standard errors",
    "variance within equal rows",
    "mean absolute Shapley values",
    "near-redundant features",
)
"""Quantities that need rows, in words."""


@dataclass(frozen=True, eq=False)
class Observed:
    """The part of moments that was observed, normalised.

    Attributes:
        encoding: levels that occur.
        family: observed cells.
        margins, counts: the margins over these levels.
        sums: (cells, m) expectations of the normalised outputs in every cell.
        square: (m,) expectation of their squares.
        scaling: centre and unit of every output.
    """

    encoding: Encoding
    family: Family
    margins: Margins
    counts: NDArray[Any]
    sums: FloatArray
    square: FloatArray
    scaling: Scaling

    def co_occurring(self, values: FloatArray) -> FloatArray:
        """(cells, m) expectation in every cell of the function with these (cells, m) effects."""
        return np.asarray(multiply(self.margins, self.family, self.counts, values) / self.family.weight[0])


def fit_moments(
    moments: Moments,
    settings: QuerySettings,
    *,
    ties: Literal["share", "first"] = "share",
    max_order: int | None = None,
    kind: str = "numpy",
    memory_limit: int = 8 * 10**9,
    shrinkage: str = "",
) -> Decomposition:
    """The decomposition of the rows behind moments, over all subsets up to their order (or a smaller one)."""
    started = time.perf_counter()
    order = moments.max_order if max_order is None else max_order
    if order > moments.max_order:
        raise InputError.given("max_order", order, f"at most {moments.max_order}, the order of these moments")
    part = observed_part(moments, order)
    with parallel.blas_threads(settings.threads):
        basis = build_basis(part.family)
        mono = monomials(part.family, reference_levels(part.family))
        tables = iter([(slice(0, len(part.margins.unions)), part.counts)])
        gram = mirrored(read_gram(part.margins, part.family, mono, tables))
        gamma = projected(part.family, mono, gram, basis)
        solution = solve_moments(gamma, order_slices(part.family, basis), _projections(part, basis), ties)
    values = on_cells(part.family, basis, solution.coefficients)
    plan = _plan(moments, part, basis, order, memory_limit)
    solution = replace(solution, method=f"{solution.method}, from moments of {count_of(len(moments.shards), 'shard')}")
    solved = Solved(part.family, values, plan, solution, basis, False)
    done = _decomposition(moments, part, solved, settings, kind, ties, time.perf_counter() - started)
    return replace(done, certificate=replace(done.certificate, shrinkage=shrinkage))


def observed_part(moments: Moments, order: int) -> Observed:
    """Moments without the levels that no row has."""
    sizes = moments.sizes
    everything = [np.arange(n) for n in sizes]
    main = {s: moments.table_of(s) for s in moments.cells.subsets if len(s) == 1}
    kept = [np.flatnonzero(main[(i,)]) if (i,) in main else everything[i] for i in range(len(sizes))]
    encoding = Encoding(tuple(_only(f, k) for f, k in zip(moments.encoding.features, kept, strict=True)))
    own = [s for s in moments.cells.subsets if len(s) <= order and all(len(kept[i]) > 1 for i in s)]
    tables = {s: np.asarray(moments.table_of(s)[np.ix_(*(kept[i] for i in s))]) for s in own if s}
    total = float(moments.weight[0])
    family = dense_family(encoding.sizes, tables, total)
    margins = replace(moments.margins, sizes=np.array(encoding.sizes, dtype=np.int64))
    counts = _kept_cells(moments, kept)
    raw = np.concatenate(
        [
            _kept_sums(moments, s, kept)[np.asarray(tables[s]).ravel() > 0 if len(s) > 1 else slice(None)]
            if s
            else moments.sums[:1]
            for s in family.subsets
        ]
    )
    mean = raw[0] / total
    spread = np.sqrt(np.maximum(moments.squares / total - mean**2, 0.0))
    varies = spread > np.finfo(float).eps * np.maximum(np.abs(moments.centre + mean), np.sqrt(moments.squares / total))
    unit = np.exp2(np.ceil(np.log2(np.where(varies, spread, 1.0))))
    sums = (raw - family.weight[:, None] * mean) / (total * unit) * varies
    square = np.where(varies, np.maximum(moments.squares / total - mean**2, 0.0) / unit**2, 0.0)
    return Observed(encoding, family, margins, counts, sums, square, Scaling(moments.centre + mean, unit * varies))


def _only(feature: FeatureLevels, kept: NDArray[np.int64]) -> FeatureLevels:
    """A feature with some of its levels; the others are unknown from now on."""
    if len(kept) == len(feature.levels):
        return feature
    new = np.full(len(feature.levels) + 1, -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    codes = [int(new[code]) for code in feature.codes]
    pairs = [(v, c) for v, c in zip(feature.values, codes, strict=False) if c >= 0]
    return replace(
        feature,
        levels=tuple(feature.levels[k] for k in kept),
        labels=tuple(feature.labels[k] for k in kept),
        values=tuple(v for v, _ in pairs),
        codes=tuple(codes) if feature.edges else tuple(c for _, c in pairs),
    )


def _kept_cells(moments: Moments, kept: list[NDArray[np.int64]]) -> NDArray[Any]:
    """The margins over the levels kept, one after the other."""
    if all(len(k) == n for k, n in zip(kept, moments.sizes, strict=True)):
        return moments.counts
    margins, parts = moments.margins, []
    for k, union in enumerate(margins.unions.tolist()):
        members = [i for i in union if i >= 0]
        table = moments.counts[margins.start[k] : margins.start[k + 1]].reshape([moments.sizes[i] for i in members])
        parts.append(table[np.ix_(*(kept[i] for i in members))].ravel())
    return np.concatenate(parts) if parts else moments.counts


def _kept_sums(moments: Moments, subset: tuple[int, ...], kept: list[NDArray[np.int64]]) -> FloatArray:
    """(cells, m) sums of one subset over the levels kept."""
    cells = moments.cells
    own = moments.sums[cells.cells_of(cells.position[subset])]
    table = own.reshape([*(moments.sizes[i] for i in subset), own.shape[1]])
    return table[np.ix_(*(kept[i] for i in subset), np.arange(own.shape[1]))].reshape(-1, own.shape[1])


def _projections(part: Observed, basis: Basis) -> Any:
    """Projections of the residual of given coefficients, from margins."""

    def project(coefficients: FloatArray | None) -> FloatArray:
        if coefficients is None:
            return on_functions(part.family, basis, part.sums)
        fitted = part.co_occurring(on_cells(part.family, basis, coefficients))
        return on_functions(part.family, basis, part.sums - fitted)

    return project


def _decomposition(
    moments: Moments,
    part: Observed,
    solved: Solved,
    settings: QuerySettings,
    kind: str,
    ties: str,
    seconds: float,
) -> Decomposition:
    names, scaling, unit = part.encoding.names, part.scaling, part.scaling.unit
    certificate = _certified(moments, part, solved, names, seconds)
    schema = Schema(names, part.encoding.labels, moments.outputs, kind, moments.single)
    effects = scaling.effects(solved.values)
    return Decomposition(
        schema=schema,
        encoding=part.encoding,
        family=part.family,
        values=effects,
        uncertainty=uncertainty_of(part.family, effects, schema, certificate),
        settings=settings,
        covariance=covariances(part.family, solved.values, part.sums) * unit**2,
        variance=part.square * unit**2,
        mean_shapley=MeanShapley(part.family, effects, None),
        certificate=certificate,
        plan=solved.plan,
        ties=ties,
        provenance=_provenance(moments, part),
    )


def _certified(moments: Moments, part: Observed, solved: Solved, names: tuple[str, ...], seconds: float) -> Certificate:
    """Measurements of the result from margins, relative to the standard deviation of each output."""
    solution: Solution = solved.solution
    fitted = part.co_occurring(solved.values)
    share = part.family.weight / part.family.weight[0]
    power = np.einsum("cm,cm->m", solved.values, fitted)
    mse = np.maximum(part.square - 2.0 * np.einsum("cm,cm->m", solved.values, part.sums) + power, 0.0)
    scale = np.where(part.square > 0, np.sqrt(part.square), 1.0)
    r2 = 1.0 - np.divide(mse, part.square, out=np.zeros_like(mse), where=part.square > 0)
    unit, centre = part.scaling.unit, part.scaling.centre
    square = part.square * unit**2 + centre**2
    residual_means = (np.abs(part.sums - fitted) / share[:, None]).max(axis=0)
    certificate = Certificate(
        orthogonality=float((conditional_means(part.family, solved.values) / scale).max(initial=0.0)),
        reconstruction=float("nan"),
        reconstruction_l2=float((np.sqrt(mse) / scale).max(initial=0.0)),
        residual_mean=float((residual_means / scale).max(initial=0.0)),
        rank=solution.rank,
        rank_by_order=solution.rank_by_order,
        n_functions=solved.plan.functions,
        r2=r2,
        mse=mse * unit**2,
        relative_mse=np.divide(mse * unit**2, square, out=np.zeros_like(mse), where=square > 0),
        within_variance=np.full(len(mse), np.nan),
        redundant=redundancies(solved, names),
        conditioning=1.0 / solution.smallest_kept,
        largest_dropped=solution.largest_dropped,
        saturated=False,
        route=solved.plan.route,
        method=solution.method,
        iterations=solution.iterations,
        seconds=seconds,
        residual=solution.residual,
        converged=bool(solution.converged),
        cancellation=cancellation(part.family, solved.values, np.maximum(power - solved.values[0] ** 2, 0.0)),
        unmeasured=UNMEASURED,
    )
    rows = float(part.family.weight[0]) if moments.counts.dtype.kind in "iu" else float(moments.rows)
    return on_average(replace(certificate, notes=notes_of(certificate)), rows)


def _plan(moments: Moments, part: Observed, basis: Basis, order: int, memory_limit: int) -> Plan:
    orders = [own.stop - own.start for own in order_slices(part.family, basis)]
    memory = moments.counts.nbytes + 3 * 8 * basis.n_functions**2 + 16 * part.sums.nbytes
    return Plan(
        rows=moments.rows,
        distinct_rows=0,
        features=sum(n > 1 for n in part.encoding.sizes),
        max_order=order,
        subsets=len(part.family.subsets),
        cells=part.family.n_cells,
        functions=basis.n_functions,
        functions_by_order=tuple(orders),
        route="moments",
        memory=memory,
        memory_limit=memory_limit,
        passes=0,
        model_calls=0,
    )


def _provenance(moments: Moments, part: Observed) -> Provenance:
    settings = (("max_order", str(moments.max_order)), ("shards", str(len(moments.shards))))
    total = float(part.family.weight[0])
    return Provenance(
        version=__version__,
        date=timestamp(),
        settings=settings,
        seed=None,
        rows=moments.rows,
        distinct_rows=0,
        total_weight=total,
        weighted=total != moments.rows,
        table_hash=identity(moments),
    )
