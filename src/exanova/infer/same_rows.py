"""Whether given rows are those of the fit, and which raw row each of them then is.

A statistic of rows and effects has two sources of variation: the rows it is computed over, and the rows the effects
were fitted to. Where both are the same rows the two vary together, and the influence of a row is the sum of both parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.distinct import distinct_rows
from exanova.data.draws import Draws, Kind
from exanova.data.sample import Sample
from exanova.typing import Codes, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SameRows:
    """Rows that are those of a fit, in any order.

    Attributes:
        place: (n,) raw row of the fit that each is; distinct row, where the fit keeps no raw rows.
        draws: how these rows were drawn, in their own order.
    """

    place: IntArray
    draws: Draws


def find_same_rows(
    sample: Sample, codes: Codes, weight: NDArray[Any], values: FloatArray | None = None
) -> SameRows | None:
    """The rows of the fit that (d, n) ``codes`` with (n,) positive ``weight`` are; ``None`` if they are other rows.

    All rows of the fit are needed, with the same weights. ``values`` (n, m) are the normalised outputs at these rows,
    which distinguish equal rows with different outputs where the order of the rows does not.
    """
    group = _distinct_of(sample, codes)
    if group is None:
        return None
    if sample.draws is None:
        return _by_totals(sample, group, weight)
    place = _by_order(sample.draws, group, weight)
    if place is None:
        place = _by_content(sample.draws, group, weight, values)
    return None if place is None else SameRows(place, _taken(sample.draws, place))


def other_rows(weight: NDArray[Any], side: IntArray) -> Draws:
    """Rows drawn independently of the fit, separately on each of several sides (n,)."""
    kind: Kind = "frequency" if weight.dtype.kind in "iu" else "probability"
    return Draws(np.arange(len(weight)), weight, kind, stratum=np.unique(side, return_inverse=True)[1].astype(np.int64))


def _distinct_of(sample: Sample, codes: Codes) -> IntArray | None:
    """(n,) distinct row of the fit that each row equals; ``None`` if one equals none."""
    r = sample.n_rows
    together = np.concatenate([sample.codes.astype(np.int64), codes.astype(np.int64)], axis=1)
    first, inverse = distinct_rows(together)
    return None if len(first) > r else inverse[r:]


def _by_totals(sample: Sample, group: IntArray, weight: NDArray[Any]) -> SameRows | None:
    """By counts alone: as many of each distinct row."""
    if sample.counts is None or weight.dtype.kind not in "iu":
        return None
    totals = np.bincount(group, weight, sample.n_rows)
    return SameRows(group, Draws(group, weight, "frequency")) if np.array_equal(totals, sample.counts) else None


def _by_order(draws: Draws, group: IntArray, weight: NDArray[Any]) -> IntArray | None:
    same = np.array_equal(draws.group, group) and np.array_equal(draws.weight, weight)
    return np.arange(len(group)) if same else None


def _by_content(draws: Draws, group: IntArray, weight: NDArray[Any], values: FloatArray | None) -> IntArray | None:
    """Rows in another order, matched by distinct row, weight and outputs; not where they were drawn together."""
    together = draws.cluster is not None or draws.stratum is not None or draws.replicates is not None
    if together or len(group) != len(draws.group) or (draws.values is not None and values is None):
        return None
    known = [draws.weight, draws.group] if draws.values is None else [*draws.values.T, draws.weight, draws.group]
    given = [weight, group] if draws.values is None or values is None else [*values.T, weight, group]
    before, after = np.lexsort(known), np.lexsort(given)
    if not all(np.array_equal(a[before], b[after]) for a, b in zip(known, given, strict=True)):
        return None
    place = np.empty(len(group), dtype=np.int64)
    place[after] = before
    return place


def _taken(draws: Draws, place: IntArray) -> Draws:
    """The draws in the order ``place`` (k,)."""

    def chosen(array: Any) -> Any:
        return None if array is None else array[place]

    return Draws(
        draws.group[place],
        draws.weight[place],
        draws.kind,
        chosen(draws.values),
        chosen(draws.cluster),
        chosen(draws.stratum),
        chosen(draws.replicates),
        draws.scale,
    )
