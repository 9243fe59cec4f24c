"""Nominal columns with very many levels: joining levels by the model's values, and an unbiased evaluation of the fit.

Which levels are joined is learned from the outputs, so rows used for joining cannot measure the fit on other rows. Rows
held out by ``eval_set`` are not used for joining; without it, the complete procedure, joining included, is repeated on
four fifths of the rows and evaluated on the others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.basis.projector import LARGEST_TABLE
from exanova.data.draws import DrawPlan, Kind
from exanova.data.feature import FeatureLevels, is_number
from exanova.data.folds import ENOUGH_CLUSTERS, ENOUGH_ROWS, FOLDS, enough_left_out, folds_of
from exanova.data.joining import Most, columns_to_join, in_groups, join_rows
from exanova.data.observe import Observation, Reading
from exanova.data.rules import NBins, by_text, check_max_levels, is_asked
from exanova.data.sample import Sample, drawn_without_replacement, held_clusters, held_out
from exanova.data.table import Table
from exanova.data.values import ModelValues
from exanova.effects.certificate import Certificate
from exanova.infer.fitted_sample import why_whole
from exanova.other_rows.other_clusters import variance_across
from exanova.progress import Progress
from exanova.queries.query import seed_of
from exanova.solve.plan import Plan
from exanova.sources.observed import SourceReading
from exanova.typing import FloatArray, IntArray

LEFT_OUT = "on rows left out, a fifth at a time, with levels joined by the others"
ONE_CLUSTER = "all rows are in one cluster"
CLUSTERS_LEFT_OUT = "on clusters left out, a fifth at a time, with levels joined by the others"


@dataclass(frozen=True, eq=False)
class Apart:
    """Rows that were read in blocks before the levels of the columns ``chosen`` were joined."""

    rows: SourceReading
    chosen: Mapping[int, Most]

    @property
    def divides(self) -> bool:
        """Whether single rows can be left out: their outputs are known, and not only sums of them."""
        return self.rows.rows.tally.is_apart

    def folds(self, seed: int | None) -> Iterator[tuple[Sample, Sample]]:
        """The rows without a fifth of them and with levels joined anew, and that fifth; until enough were left out."""
        rows, left_out = self.rows, 0
        clusters = None if rows.clusters is None else folds_of(rows.clusters, seed)[0]
        of_clusters: list[NDArray[np.bool_]] = []
        for part in parts_of(rows.copies, clusters, seed):
            fitted = rows.thinned(rows.copies - part).joined(self.chosen)
            scaling = fitted.observation.scaling
            yield fitted.sample, rows.thinned(part).recoded(fitted.encoding.features, scaling).sample
            left_out += int(part.sum())
            of_clusters.append(part > 0)
            covered = np.any(of_clusters, axis=0)
            if left_out >= ENOUGH_ROWS and (
                rows.clusters is None or len(np.unique(rows.clusters[covered])) >= ENOUGH_CLUSTERS
            ):
                return


def parts_of(copies: IntArray, fold: IntArray | None, seed: int | None) -> Iterator[IntArray]:
    """(k,) how many of the ``copies`` (k,) of each row are left out at a time: by ``fold`` (k,), or else at random.

    >>> np.sum(list(parts_of(np.array([7, 3]), None, 0)), axis=0).tolist()
    [7, 3]
    """
    if fold is not None:
        for k in range(int(fold.max()) + 1):
            yield np.where(fold == k, copies, 0)
        return
    parts, rest = min(FOLDS, int(copies.sum())), copies
    for k in range(parts):
        number = None if seed is None else seed + k
        part = drawn_without_replacement(rest, 1.0 / (parts - k), number)
        yield part
        rest = rest - part


@dataclass(frozen=True, eq=False)
class Joined:
    """Rows after their levels were joined.

    Attributes:
        rows: the rows; unchanged if there was nothing to join.
        values: the model's values at them, if they were computed already.
        changed: whether any levels were joined.
        held: rows that were held out before, if there are any.
        apart: rows that were read in blocks as they were before, to join them without some.
    """

    rows: Reading | SourceReading
    values: ModelValues | None = None
    changed: bool = False
    held: Sample | None = None
    apart: Apart | None = None

    def recorded(self, observed: Observation) -> Observation:
        """The rows that were given, of which ``observed`` may be a part."""
        return observed if self.held is None or self.apart is None else self.apart.rows.observation

    @property
    def row_values(self) -> FloatArray:
        """(k, m) values of every row that was kept."""
        assert self.values is not None
        assert isinstance(self.rows, Reading)
        return self.values.values[self.rows.raw_group] if self.values.calls else self.values.values


def to_join(rows: Reading | SourceReading, given: Mapping[str, Any]) -> dict[int, Most]:
    """Columns with too many levels by the parameters ``given``, and how many they may have.

    In a complete population, levels have no errors; ``shrinkage=None`` is an exact fit; ``n_bins=None`` keeps
    numbers as levels. In these cases levels are joined only if a number of levels was given.
    """
    max_levels = by_text(given["max_levels"])
    check_max_levels(max_levels, rows.encoding.names)
    if rows.is_distribution:
        return {}
    order, count = _highest_order(given), rows.support.n_rows
    chosen = columns_to_join(rows.encoding.features, max_levels, partial(_too_large, order=order, rows=count))
    whole = given["shrinkage"] is None or (bool(chosen) and bool(why_whole(given["sampled"], rows.sample)))
    features = rows.encoding.features
    may = (j for j in chosen if not whole and not _kept_as_they_are(features[j], given["n_bins"]))
    free = set(may) | {j for j in chosen if is_asked(max_levels, features[j].name)}
    return {j: most for j, most in chosen.items() if j in free}


def _highest_order(given: Mapping[str, Any]) -> int:
    """The highest order whose subsets need tables for certain; where orders are added one by one, three."""
    if given["subsets"] is not None:
        return 2
    return 3 if given["max_order"] is None else max(2, int(given["max_order"]))


def _too_large(levels: list[int], order: int, rows: int) -> bool:
    """Whether a column with the first of these numbers of ``levels`` makes a subset too large for a table.

    >>> _too_large([200, 4, 4, 2], 2, 20_000), _too_large([200, 4, 4, 2], 3, 20_000), _too_large([200, 4, 4], 3, 900)
    (False, True, False)
    """
    if math.prod(levels[:2]) > LARGEST_TABLE:
        return True
    return min(rows, math.prod(levels[:order])) > LARGEST_TABLE


def as_many_as_stay(rows: Reading | SourceReading, chosen: Mapping[int, Most]) -> Reading | SourceReading:
    """The rows with as many levels in the columns ``chosen`` as a fit may keep, which a plan needs before any output.

    Levels that a fit may leave separate stay as they are, and so do rows that are read in blocks.
    """
    firm = {j: most.levels for j, most in chosen.items() if most.firm}
    if not firm or isinstance(rows, SourceReading):
        return rows
    features = rows.encoding.features
    return rows.recoded([in_groups(one, firm[j]) if j in firm else one for j, one in enumerate(features)])


def join_many_levels(
    rows: Reading, values: ModelValues, chosen: Mapping[int, Most], kind: Kind, progress: Progress
) -> Joined:
    """Join the levels of the columns ``chosen`` by the values of the model at the rows, with weights of a kind."""
    progress.phase("joining levels")
    joined = join_rows(rows, values, chosen, kind)
    return Joined(joined, values, joined.encoding != rows.encoding)


def join_source(rows: SourceReading, given: Mapping[str, Any], share: float | None, progress: Progress) -> Joined:
    """Join the levels of rows that were counted in blocks, where they are too many.

    A ``share`` of the distinct rows that is to be held out is not used for that.
    """
    chosen = to_join(rows, given) if rows.sample.n_outputs else {}
    if not chosen:
        return Joined(rows)
    progress.phase("joining levels")
    if share is None:
        joined, held = rows.joined(chosen), None
    else:
        joined, held = rows.split(chosen, share, seed_of(given["random_state"]))
    return Joined(joined, None, joined.encoding != rows.encoding, held, Apart(rows, chosen))


def held_rows(rows: Reading, share: float, seed: int | None, cluster: IntArray | None = None) -> NDArray[np.bool_]:
    """(k,) rows to evaluate the fit on, from which nothing is learned: a random share of the distinct ones.

    Rows of a ``cluster`` (k,) are held out together. Every level keeps a row to be learned from: levels that occur only
    in rows held out would be unknown.
    """
    if cluster is not None:
        raw = rows.support.codes[:, rows.group[rows.raw_group]]
        return held_clusters(raw, rows.support.sizes, cluster, share, seed)[cluster]
    return np.asarray(held_out(rows.support.codes, rows.support.sizes, share, seed)[rows.group[rows.raw_group]])


def fit_apart(
    fit: Callable[..., Any],
    rows: Reading,
    values: ModelValues,
    share: float,
    seed: int | None,
    drawn: DrawPlan,
) -> None:
    """Hold out a share of the rows before any level is joined, fit to the others, and evaluate the fit on them.

    Args:
        fit: ``FunctionalANOVA.fit``.
        rows, values: all rows, and the model's values at them.
        share, seed: which rows are held out.
        drawn: how the rows were drawn.
    """
    known = Joined(rows, values).row_values
    known = known[:, 0] if values.single else known
    held = held_rows(rows, share, seed, drawn.cluster)
    out, fitted = np.flatnonzero(held), np.flatnonzero(~held)
    design = {"clusters": drawn.cluster, "strata": drawn.stratum, "replicate_weights": drawn.replicates}
    own: dict[str, Any] = {name: None if given is None else given[fitted] for name, given in design.items()}
    if drawn.replicates is not None:
        own["replicate_weights"] = (own["replicate_weights"], drawn.scale)
    own |= {"sample_weight": rows.weight[fitted], "output_names": values.output_names}
    fit(rows.table.rows(fitted), known[fitted], eval_set=(rows.table.rows(out), known[out]), **own)


def with_fits_again(plan: Plan, rows: Reading | SourceReading, eval_set: Any) -> Plan:
    """The plan of a fit whose levels are joined, with the seconds of the fits to parts of the rows that evaluate it."""
    if eval_set is not None or isinstance(rows, SourceReading):
        return plan
    count = len(rows.weight)
    parts = min(FOLDS, count)
    again = min(parts, math.ceil(ENOUGH_ROWS * parts / count)) if parts > 1 else 0
    return replace(plan, seconds=plan.seconds * (1.0 + again * (1.0 - 1.0 / parts)))


def by_joining_again(
    certificate: Certificate,
    joined: Joined,
    fit: Callable[[Table, FloatArray, Any], Any],
    seed: int | None,
    cluster: IntArray | None = None,
) -> Certificate:
    """The certificate with the fit on rows left out, by fits to the others that join levels anew.

    Args:
        certificate: of the fit to all rows.
        joined: all rows.
        fit: from rows, their outputs and weights to an estimator that predicts others.
        seed: of the random division of the rows.
        cluster: (k,) cluster of every row; its rows are left out together. ``None`` where rows are independent.
    """
    assert isinstance(joined.rows, Reading)
    table, values, weight = joined.rows.table, joined.row_values, joined.rows.weight
    fold, parts = folds_of(np.arange(len(values)) if cluster is None else cluster, seed)
    if parts < 2:
        return replace(certificate, eval_method=ONE_CLUSTER)
    squared, left_out = np.zeros(values.shape[1]), np.zeros(len(values), dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the fits to a part; the fit to all rows has warned
        for k in range(parts):
            if enough_left_out(left_out, cluster):
                break
            held = fold == k
            left_out |= held
            refit = fit(table.rows(np.flatnonzero(~held)), values[~held], weight[~held])
            fitted = np.asarray(refit.predict(table.rows(np.flatnonzero(held)))).reshape(-1, values.shape[1])
            squared += weight[held] @ (values[held] - fitted) ** 2
    p = weight[left_out] / weight[left_out].sum()
    mse = squared / weight[left_out].sum()
    if cluster is None:
        variance = p @ (values[left_out] - p @ values[left_out]) ** 2
    else:
        variance = variance_across(values, weight, cluster)
    r2 = 1.0 - np.divide(mse, variance, out=np.zeros_like(mse), where=variance > 0)
    return replace(
        certificate, r2_eval=r2, mse_eval=mse, eval_method=LEFT_OUT if cluster is None else CLUSTERS_LEFT_OUT
    )


def _kept_as_they_are(feature: FeatureLevels, n_bins: NBins) -> bool:
    """Whether a column holds numbers, each of which was meant to be a level."""
    named = by_text(n_bins)
    own = named.get(feature.name, "auto") if isinstance(named, Mapping) else named
    return own is None and all(map(is_number, feature.values))
