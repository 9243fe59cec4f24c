"""Contributions of features to rows, ranked, with the standard errors of contributions and of their differences.

The contribution of feature j at row x against a row z is sum over A with j of (f_A(x_A) - f_A(z_A)) / |A|: a sum of
effects in the cells of x and z with fixed weights. Against the mean the cells of z drop out. So is the difference of
two contributions, whose standard error determines whether their order is certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.effects.norms import strongest_first
from exanova.explain.row_errors import MOST_CELLS, PRODUCTS_PER_READ, cells_at
from exanova.infer.bands import quantile
from exanova.infer.uncertainty import Uncertainty
from exanova.typing import Codes, FloatArray, IntArray

BLOCK_BYTES = 64_000_000
"""Memory of the weights of one block of statistics."""

LEVEL = 0.95
"""Level at which two contributions count as different."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """The largest contributions of one row.

    Attributes:
        owners: (k,) features or groups, the strongest first.
        values: (k,) their contributions.
        stderr: (k,) standard errors, NaN where there are none.
        unique: (k,) whether they are determined.
        apart: (k,) standard error of the difference from the next; NaN where unknown, infinite without a next.
        distance: (k,) size of that difference.
    """

    owners: IntArray
    values: FloatArray
    stderr: FloatArray
    unique: NDArray[np.bool_]
    apart: FloatArray
    distance: FloatArray

    def distinguishable(self, k: int) -> bool | None:
        """Whether number ``k`` is distinguishable from the next; ``None`` if that is unknown."""
        if np.isnan(self.apart[k]):
            return None
        return bool(np.isinf(self.apart[k]) or self.distance[k] > quantile(LEVEL) * self.apart[k])


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of features to rows, for one output.

    Attributes:
        effects: values of all subsets at their cells, as new rows read them.
        shares: (S, G) share of every feature or group in each subset.
        place: (n, S) cells of the rows, -1 for none.
        reference: (S,) cells of the row to compare with; ``None`` for the mean.
        output: number of the output.
    """

    effects: Everywhere
    shares: FloatArray
    place: IntArray
    reference: IntArray | None
    output: int

    @classmethod
    def of(
        cls, effects: Everywhere, shares: FloatArray, codes: Codes, reference: Codes | None, output: int
    ) -> Contributions:
        """The contributions at rows (d, n), against a row (d, 1) or the mean."""
        compared = None if reference is None else cells_at(effects.family, reference)[0]
        return cls(effects, shares, cells_at(effects.family, codes), compared, output)

    @property
    def values(self) -> FloatArray:
        """(n, G) contributions, zero where they are rounding."""
        out = self._read(self.place) @ self.shares
        if self.reference is not None:
            out = out - self._read(self.reference[None]) @ self.shares
        size = np.abs(self.effects.values[:, self.output]).max(initial=0.0)
        return np.where(np.abs(out) <= tolerances.CANCELLED * size, 0.0, out)

    def weights(self, row: int, owner: FloatArray) -> tuple[IntArray, FloatArray]:
        """Cells and weights of the sum of contributions of owners with (G,) coefficients, at one row.

        Cells have their numbers among the observed ones, -1 if an effect is continued there.
        """
        by_subset = self.shares @ owner
        cells, weights = self.place[row], by_subset
        if self.reference is not None:
            cells, weights = np.concatenate([cells, self.reference]), np.concatenate([by_subset, -by_subset])
        used = (cells >= 0) & (weights != 0)
        return self.effects.number[cells[used]], weights[used]

    def _read(self, place: IntArray) -> FloatArray:
        """(n, S) values of the effects in these cells, 0 where there is none."""
        return np.where(place >= 0, self.effects.values[np.maximum(place, 0), self.output], 0.0)


def rank(values: FloatArray, n: int, direction: str) -> tuple[IntArray, IntArray]:
    """The n strongest of (G,) contributions in a direction, and the one after each of them, -1 if there is none.

    >>> [places.tolist() for places in rank(np.array([0.5, -1.0, -0.2, 0.0]), 1, "lower")]
    [[1], [2]]
    """
    size = {"lower": -values, "higher": values, "both": np.abs(values)}[direction]
    order = strongest_first(size)
    owners = order[size[order] > 0]
    after = np.append(owners, -1)[1 : len(owners) + 1]
    return owners[:n], after[:n]


def ranked_rows(at: Contributions, uncertainty: Uncertainty, n: int, direction: str, stderr: bool) -> Iterable[Ranked]:
    """The strongest contributions of every row, with or without standard errors."""
    values, groups = at.values, at.shares.shape[1]
    statistics: list[tuple[IntArray, FloatArray]] = []
    picked = [rank(row, n, direction) for row in values]
    for row, (owners, after) in enumerate(picked):
        for owner, following in zip(owners.tolist(), after.tolist(), strict=True):
            alone = np.zeros(groups)
            alone[owner] = 1.0
            apart = alone.copy()
            if following >= 0:
                same = direction != "both" or np.sign(values[row, owner]) == np.sign(values[row, following])
                apart[following] = -1.0 if same else 1.0
            statistics += [at.weights(row, alone), at.weights(row, apart)]
    whole = np.array([bool((cells >= 0).all()) for cells, _ in statistics], dtype=bool)
    statistics = [(cells[cells >= 0], weights[cells >= 0]) for cells, weights in statistics]
    known = _determined(uncertainty, statistics)
    errors = np.full(len(known), np.nan)
    if stderr:
        errors = np.where(known & whole, _errors(at.output, uncertainty, statistics), np.nan)
    start = 0
    for row, (owners, after) in enumerate(picked):
        own = slice(2 * start, 2 * (start + len(owners)))
        start += len(owners)
        size = np.abs(values[row])
        distance = size[owners] - np.where(after >= 0, size[after], 0.0)
        apart = np.where((after >= 0) | (not stderr), errors[own][1::2], np.inf)
        yield Ranked(owners, values[row, owners], errors[own][::2], known[own][::2], apart, distance)


def _errors(output: int, uncertainty: Uncertainty, statistics: list[tuple[IntArray, FloatArray]]) -> FloatArray:
    """(f,) standard errors of sums of effects, given by cells and weights."""
    if _many(uncertainty, len(statistics)):
        covariance = uncertainty.all_cells[output]
        variances = [w @ covariance[np.ix_(cells, cells)] @ w for cells, w in statistics]
        return np.sqrt(np.maximum(variances, 0.0))
    errors = np.full(len(statistics), np.nan)
    for chosen, weights in _blocks(uncertainty.family, statistics):
        errors[chosen] = uncertainty.linear_stderr(weights)[:, output]
    return errors


def _determined(uncertainty: Uncertainty, statistics: list[tuple[IntArray, FloatArray]]) -> NDArray[np.bool_]:
    """(f,) whether the rows of the fit determine them."""
    known = np.ones(len(statistics), dtype=bool)
    for chosen, weights in _blocks(uncertainty.family, statistics) if uncertainty.shares else ():
        known[chosen] = uncertainty.determined(weights)
    return known


def _many(uncertainty: Uncertainty, count: int) -> bool:
    """Whether the covariance of all cells costs less than every statistic by itself."""
    if uncertainty.has_all_cells:
        return True
    family = uncertainty.family
    return family.n_cells <= MOST_CELLS and family.n_cells**2 / PRODUCTS_PER_READ < count * len(family.subsets)


def _blocks(family: Family, statistics: list[tuple[IntArray, FloatArray]]) -> Iterable[tuple[slice, FloatArray]]:
    """Some statistics at a time, with their (cells, f) weights."""
    step = max(1, BLOCK_BYTES // (8 * family.n_cells))
    for first in range(0, len(statistics), step):
        part = statistics[first : first + step]
        weights = np.zeros((family.n_cells, len(part)))
        for k, (cells, own) in enumerate(part):
            np.add.at(weights[:, k], cells, own)
        yield slice(first, first + len(part)), weights
