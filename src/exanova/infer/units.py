"""Which parts of the rows vary independently, as sums over the distinct rows.

The variance of a statistic with influence xi_i = a_i + e_i b_i, where a and b depend on the distinct row alone and
e_i is the residual of raw row i, is a sum over independent units of the squared sum of omega_i xi_i over the unit. Two
kinds of sums are enough for every sampling design:

    rows    sum over rows of  k0 a^2 + 2 k1 a b + k2 b^2,   k_j = sum of kappa_i e_i^j over raw rows of a distinct row
    totals  sum over units of coefficient * (sum over rows of mass a + moment b)^2

Single rows need the first, clusters and replicate weights the second, and strata subtract their totals by it. Units of
one stratum (everything is one, where none were given) count n / (n - 1) times, so that their variance has no bias.

Residuals of a fit are smaller than the noise they represent, by sqrt(1 - h) with h the leverage of the unit. As
estimates of noise they are divided by it, so that noise of equal variance in all rows is estimated without bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.draws import Draws, Kind
from exanova.data.sample import Sample
from exanova.errors import InputError
from exanova.typing import FloatArray, IntArray

A_ROW = "a row"
"""The independent unit where rows were drawn one by one."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over units, as P entries, one per pair of a unit and a distinct row that occur together.

    Attributes:
        unit: (P,) number of the unit.
        row: (P,) distinct row.
        mass: (P,) sum of the shares omega of its raw rows.
        moment: (P, m) sum of omega times residual.
        coefficient: (U,) factor of the square of each unit.
    """

    unit: IntArray
    row: IntArray
    mass: FloatArray
    moment: FloatArray
    coefficient: FloatArray


@dataclass(frozen=True, eq=False)
class Variation:
    """The independent sources of variation.

    Attributes:
        rows: k0 (r,), k1 (r, m) and k2 (r, m), or ``None`` if only totals vary.
        totals: units with their coefficients.
    """

    rows: tuple[FloatArray, FloatArray, FloatArray] | None
    totals: tuple[Totals, ...]


def raw_rows(sample: Sample) -> Draws:
    """The raw draws; by default, each distinct row as many times as its weight."""
    if sample.draws is not None:
        return sample.draws
    kind: Kind = "probability" if sample.counts is None else "frequency"
    return Draws(np.arange(sample.n_rows), sample.weight, kind)


def independent_units(draws: Draws) -> tuple[str, int]:
    """The independent unit in words, and the number of units."""
    within = "" if draws.stratum is None else ", drawn within its stratum"
    if draws.replicates is not None:
        return "a column of replicate weights", int(draws.replicates.shape[1])
    if draws.cluster is not None:
        return "a cluster" + within, int(draws.cluster.max()) + 1
    return A_ROW + within, round(float(draws.counts.sum()))


def smallest_stratum(draws: Draws) -> float:
    """Number of units in the smallest stratum; a variance needs at least two."""
    return float("inf") if draws.replicates is not None else float(_units_of_strata(draws).min())


def why_lonely(draws: Draws) -> str:
    """Why variances cannot be estimated, if a stratum holds a single unit; empty otherwise."""
    if draws.replicates is not None:
        return ""
    return _in_words(_units_of_strata(draws), "row" if draws.cluster is None else "cluster")


def _units_of_strata(draws: Draws) -> FloatArray:
    """Units in every stratum: clusters, or rows."""
    if draws.cluster is not None:
        return np.bincount(_strata_of_clusters(draws, draws.cluster)).astype(np.float64)
    stratum = np.zeros(len(draws.counts), dtype=np.int64) if draws.stratum is None else draws.stratum
    return np.bincount(stratum, weights=draws.counts).astype(np.float64)


def fewest_units(draws: Draws, side: IntArray) -> float:
    """Number of units in the smaller of two sets of the raw rows, those with (k,) ``side`` above and below zero."""
    if draws.replicates is not None:
        return float("inf")
    if draws.cluster is not None:
        return float(min(len(np.unique(draws.cluster[side * sign > 0])) for sign in (1, -1)))
    return float(min(draws.counts[side * sign > 0].sum() for sign in (1, -1)))


def raw_residuals(sample: Sample, draws: Draws, residual: FloatArray) -> FloatArray:
    """(k, m) residual of every raw row in normalised units, from the (r, m) residuals of the distinct rows."""
    out = residual[draws.group]
    return out if draws.values is None else out + (draws.values - sample.values[draws.group])


def free_parts(draws: Draws, leverage: FloatArray) -> FloatArray:
    """(k,) 1 - h of every raw row, from the (r,) leverage of the distinct rows for a share of one.

    h is the leverage of the part of a row's unit that lies in its distinct row. Replicate weights have their own
    variation and are not corrected.
    """
    if draws.replicates is not None:
        return np.ones(len(draws.weight))
    return np.clip(1.0 - unit_shares(draws) * leverage[draws.group], 0.0, 1.0)


def noise_factor(free: FloatArray) -> FloatArray:
    """(k,) 1 / sqrt(1 - h) of every raw row; 1 for a row that determines its own fit."""
    return np.asarray(1.0 / np.sqrt(np.where(free > tolerances.FREE, free, 1.0)))


def unit_shares(draws: Draws) -> FloatArray:
    """(k,) share of the total weight that the unit of each raw row has in its distinct row."""
    share = np.asarray(draws.weight / float(draws.weight.sum()))
    if draws.cluster is None:
        return np.asarray(share / draws.counts)
    _, place = np.unique(draws.cluster * (int(draws.group.max()) + 1) + draws.group, return_inverse=True)
    return np.asarray(np.bincount(place, weights=share)[place])


def find_variation(draws: Draws, noise: FloatArray, rows: int) -> Variation:
    """The sources of variation, given the (k, m) noise of the raw rows and the number of distinct rows.

    Everything is in normalised units.
    """
    share = draws.weight / float(draws.weight.sum())
    if draws.replicates is not None:
        return _replicated(draws, share, noise, rows)
    if draws.cluster is not None:
        return _clustered(draws, draws.cluster, share, noise)
    return _single(draws, share, noise, rows)


def raw_variances(draws: Draws, xi: FloatArray) -> FloatArray:
    """(f,) variances of statistics with any influence ``xi`` (k, f) at the raw rows.

    The same sums as in a :class:`Variation`, for influences that are not of the form a + e b.
    """
    share = draws.weight / float(draws.weight.sum())
    if draws.replicates is not None:
        assert draws.scale is not None
        change = draws.replicates / draws.replicates.sum(axis=0) - share[:, None]
        return np.asarray(draws.scale @ (change.T @ xi) ** 2)
    around, unequal = xi - share @ xi, None
    moved = share[:, None] * around
    if draws.cluster is None:
        counts = draws.counts
        if draws.squares is not None:  # rows of one entry whose weights are not alike vary more than their mean does
            unequal = draws.squares / float(draws.weight.sum()) ** 2 - share**2 / counts
        stratum = np.zeros(len(share), dtype=np.int64) if draws.stratum is None else draws.stratum
    else:
        stratum = _strata_of_clusters(draws, draws.cluster)
        moved, counts = _by_group(draws.cluster, moved, len(stratum)), np.ones(len(stratum))
    units = np.bincount(stratum, weights=counts)
    mean = _by_group(stratum, moved, len(units)) / units[:, None]
    apart, factor = moved / counts[:, None] - mean[stratum], (units / (units - 1.0))[stratum]
    more = 0.0 if unequal is None else (factor * unequal) @ around**2
    return np.asarray((factor * counts) @ apart**2 + more)


def _single(draws: Draws, share: FloatArray, e: FloatArray, r: int) -> Variation:
    """Every row is a unit; a row of frequency w is w units of share 1 / total each."""
    counts = draws.counts
    stratum = np.zeros(len(share), dtype=np.int64) if draws.stratum is None else draws.stratum
    units = np.bincount(stratum, weights=counts)
    _refuse_lonely(units, "row")
    factor = units / (units - 1.0)
    kappa = factor[stratum] * draws.squared / float(draws.weight.sum()) ** 2
    k0, k1, k2 = (_by_group(draws.group, kappa[:, None] * e**power, r) for power in range(3))
    totals = () if draws.stratum is None else (_strata_totals(draws, stratum, share, e, factor / units),)
    return Variation((k0[:, 0], k1, k2), totals)


def _clustered(draws: Draws, cluster: IntArray, share: FloatArray, e: FloatArray) -> Variation:
    stratum_of = _strata_of_clusters(draws, cluster)
    units = np.asarray(np.bincount(stratum_of), dtype=np.float64)
    _refuse_lonely(units, "cluster")
    factor = units / (units - 1.0)
    totals = [_totals(cluster, draws.group, share, e, factor[stratum_of])]
    if draws.stratum is not None:
        totals.append(_strata_totals(draws, draws.stratum, share, e, factor / units))
    return Variation(None, tuple(totals))


def _strata_of_clusters(draws: Draws, cluster: IntArray) -> IntArray:
    """(C,) stratum of every cluster."""
    out = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    if draws.stratum is not None:
        out[cluster] = draws.stratum
    return out


def _replicated(draws: Draws, share: FloatArray, e: FloatArray, r: int) -> Variation:
    """One unit per column: the result changes by the sum of the changes of the shares times the influence."""
    assert draws.replicates is not None
    assert draws.scale is not None
    change = draws.replicates / draws.replicates.sum(axis=0) - share[:, None]
    b = change.shape[1]
    mass = np.concatenate([_by_group(draws.group, column[:, None], r)[:, 0] for column in change.T])
    moment = np.concatenate([_by_group(draws.group, column[:, None] * e, r) for column in change.T])
    totals = Totals(np.repeat(np.arange(b), r), np.tile(np.arange(r), b), mass, moment, draws.scale)
    return Variation(None, (totals,))


def _strata_totals(draws: Draws, stratum: IntArray, share: FloatArray, e: FloatArray, part: FloatArray) -> Totals:
    """The correction for centring within strata: the squared total of each, over its number of units."""
    return _totals(stratum, draws.group, share, e, -part)


def _totals(unit: IntArray, group: IntArray, share: FloatArray, e: FloatArray, coefficient: FloatArray) -> Totals:
    """Entries for every unit and distinct row that occur together."""
    key, place = np.unique(unit * (int(group.max()) + 1) + group, return_inverse=True)
    own, row = np.divmod(key, int(group.max()) + 1)
    mass = _by_group(place, share[:, None], len(key))[:, 0]
    return Totals(own, row, mass, _by_group(place, share[:, None] * e, len(key)), coefficient)


def _by_group(group: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(size, m) sums of (k, m) values."""
    sums = [np.bincount(group, weights=column, minlength=size) for column in values.T]
    return np.asarray(np.stack(sums, axis=1), dtype=np.float64)


def _refuse_lonely(units: NDArray[Any], what: str) -> None:
    why = _in_words(units, what)
    if why:
        raise InputError(why + ".")


def _in_words(units: NDArray[Any], what: str) -> str:
    """Why a variance between units cannot be estimated in some stratum, and what to do; empty if it can in all."""
    if (units > 1).all():
        return ""
    if len(units) == 1:
        return f"there is a single {what}, so that variances cannot be estimated; at least 2 are needed"
    lonely = int((units <= 1).sum())
    hold, them = ("holds", "it") if lonely == 1 else ("hold", "them")
    return (
        f"{lonely} of {len(units)} strata {hold} a single {what}, so that the variance within {them} cannot be "
        f"estimated; join {them} with others"
    )
