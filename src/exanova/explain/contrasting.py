"""The parts of a difference between two sets of rows, from effects at the rows, with their standard errors.

Mean over the first set minus mean over the second, of f = sum of f_A + residual:

    sum over A of (E_1 f_A - E_2 f_A)  +  (E_1 residual - E_2 residual).

The first is lambda^T T with lambda the difference of the shares of rows in each cell (:mod:`infer.contrast_errors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.draws import weight_kind
from exanova.data.sample import NewRows
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.explain.difference import Contrast
from exanova.explain.row_sets import RowSets
from exanova.infer.contrast_errors import contrast_variances, own_influence, rows_variances
from exanova.infer.linear import LinearErrors
from exanova.infer.same_rows import SameRows, other_rows
from exanova.infer.uncertainty import Uncertainty
from exanova.infer.units import fewest_units
from exanova.phi.operator import Phi
from exanova.typing import Codes, FloatArray, IntArray

STATISTICS_BYTES = 64_000_000
"""Memory of the weights and influences of one block of parts."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to compare, all of positive weight.

    Attributes:
        codes: (d, n) levels.
        weight: (n,) weights, whole numbers if they count rows.
        values: (n, m) outputs of the model, or ``None``.
        outside: (n,) rows with a combination never observed.
    """

    codes: Codes
    weight: NDArray[Any]
    values: FloatArray | None
    outside: NDArray[np.bool_]

    def weighing(self, kind: str) -> Rows:
        """The same rows with weights of a kind: ``"frequency"``, ``"probability"``, or ``"auto"`` as they are."""
        counted = weight_kind(kind, self.weight.dtype.kind in "iu") == "frequency"
        return self if counted else replace(self, weight=self.weight.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Parts:
    """The effects of which a difference is a sum.

    Attributes:
        read: values of all subsets at their cells, as new rows read them.
        shares: (S, G) sparse share of every feature or group in each subset.
    """

    read: Everywhere
    shares: Any

    @property
    def family(self) -> Family:
        """The cells of every subset."""
        return self.read.family

    @property
    def effects(self) -> FloatArray:
        """(cells, m) values there."""
        return self.read.values


@dataclass(frozen=True, eq=False)
class Sources:
    """The sources of standard errors.

    Attributes:
        uncertainty: of the effects, and what is identified.
        effects: whether the errors of the effects are included; otherwise effects are treated as known.
        rows: whether the rows are a sample; without that there are no errors at all.
        same: which rows of the fit the rows are; ``None`` for other rows.
        unit: (m,) unit of every output.
        linear: whether the residual has a standard error: its noise is part of the errors of the effects.
    """

    uncertainty: Uncertainty
    effects: bool
    rows: bool
    same: SameRows | None
    unit: FloatArray
    linear: bool = True


def contrast(parts: Parts, rows: Rows, sets: RowSets, sources: Sources) -> Contrast:
    """The difference between two sets of rows."""
    alpha = signed_shares(rows.weight, sets.side)
    cells = share_differences(parts.family, rows, sets.side)
    products = cells[:, None] * parts.effects
    by_subset = np.add.reduceat(products, parts.family.cell_start[:-1], axis=0)
    sizes = np.add.reduceat(np.abs(products), parts.family.cell_start[:-1], axis=0)
    largest = np.abs(parts.effects[1:]).max(axis=0, initial=0.0)
    by_subset[np.abs(by_subset) <= np.maximum(tolerances.CANCELLED * sizes, tolerances.UNCHANGED * largest)] = 0.0
    by_subset[0] = 0.0
    by_feature, explained = parts.shares.T @ by_subset, by_subset.sum(axis=0)
    fitted = Phi(parts.family, NewRows(rows.codes)).synthesise(parts.effects)
    residual = None if rows.values is None else _residual(alpha, rows.values, fitted)
    shown = fitted if rows.values is None else rows.values
    means = np.stack([_mean(shown, rows.weight, sets.side == sign) for sign in (1, -1)])
    errors = _Errors(parts, rows, sets.side[None], cells[:, None], fitted, sources)
    return Contrast(
        *sets.names,
        sets.stratum,
        rows=_counts(sets.side, np.ones(len(alpha), dtype=bool)),
        outside=_counts(sets.side, rows.outside),
        means=means,
        by_subset=by_subset,
        by_feature=by_feature,
        residual=residual,
        total=explained if residual is None else explained + residual,
        by_subset_stderr=errors.of_parts(np.eye(len(by_subset)))[0],
        by_feature_stderr=errors.of_parts(parts.shares.toarray())[0],
        residual_stderr=errors.of_residuals()[0],
        total_stderr=errors.of_totals()[0],
        identified=errors.identified,
    )


def feature_errors(parts: Parts, rows: Rows, sides: Iterable[IntArray], sources: Sources) -> Iterator[FloatArray]:
    """For each pair of sets, (G + 2, m) standard errors of the parts of every feature or group, residual and total.

    What does not depend on the sets is read at the rows once, and many pairs of sets are computed together.
    """
    fitted = Phi(parts.family, NewRows(rows.codes)).synthesise(parts.effects)
    shares = np.hstack([parts.shares.toarray(), np.ones((len(parts.family.subsets), 1))])
    by_cell = np.repeat(shares, np.diff(parts.family.cell_start), axis=0)
    at_rows, waiting = _at_rows(parts, rows, by_cell), iter(sides)
    while together := list(islice(waiting, _together(parts, rows, sources, shares.shape[1]))):
        side = np.stack(together)
        errors = _Errors(parts, rows, side, _many_differences(parts.family, rows, side), fitted, sources)
        stderr = errors.of_sums(by_cell, at_rows)
        total = stderr[:, -1] if rows.values is None else errors.of_totals()
        yield from np.concatenate([stderr[:, :-1], errors.of_residuals()[:, None], total[:, None]], axis=1)


def has_single_unit(rows: Rows, side: IntArray, sources: Sources) -> bool:
    """Whether a set is one row, or rows of one cluster: how others of its kind would vary is then not known."""
    draws = other_rows(rows.weight, side) if sources.same is None else sources.same.draws
    return fewest_units(draws, side) < 2


def signed_shares(weight: NDArray[Any], side: IntArray) -> FloatArray:
    """(n,) alpha: the share of each row in the first set, minus that in the second."""
    out = np.zeros(len(weight))
    for sign in (1, -1):
        own = side == sign
        out[own] = sign * weight[own] / float(weight[own].sum())
    return out


def share_differences(family: Family, rows: Rows, side: IntArray) -> FloatArray:
    """(cells,) share of the first set in each cell minus that of the second, zero where the two are equal.

    Rows in no cell count nowhere.
    """
    return np.asarray(_many_differences(family, rows, side[None])[:, 0])


def _many_differences(family: Family, rows: Rows, sides: IntArray) -> FloatArray:
    """(cells, k) the same for many pairs of sets (k, n)."""
    from scipy.sparse import csr_array

    masses = [np.where(sides == sign, rows.weight, 0).astype(np.float64).T for sign in (1, -1)]
    totals = [mass.sum(axis=0) for mass in masses]
    phi, out = Phi(family, NewRows(rows.codes)), np.empty((family.n_cells, len(sides)))
    for s in range(len(family.subsets)):
        cell, own = phi.cells(s), family.cells_of(s)
        known = np.flatnonzero(cell >= 0)
        inside = csr_array((np.ones(len(known)), (cell[known], known)), shape=(own.stop - own.start, len(cell)))
        first, second = (inside @ mass / total for mass, total in zip(masses, totals, strict=True))
        out[own] = first - second
    return out


def _residual(alpha: FloatArray, values: FloatArray, fitted: FloatArray) -> FloatArray:
    """(m,) sums of alpha times (n, m) values less fitted parts, zero where they are the rounding of these."""
    sums = alpha @ (values - fitted)
    sizes = np.abs(alpha) @ (np.abs(values) + np.abs(fitted))
    return np.where(np.abs(sums) <= tolerances.CANCELLED * sizes, 0.0, sums)


def _mean(values: FloatArray, weight: NDArray[Any], own: NDArray[np.bool_]) -> FloatArray:
    mass = weight[own].astype(np.float64)
    return np.asarray(mass @ values[own] / mass.sum())


def _counts(side: IntArray, counted: NDArray[np.bool_]) -> tuple[int, int]:
    return int(counted[side > 0].sum()), int(counted[side < 0].sum())


@dataclass(frozen=True, eq=False)
class _Errors:
    """Standard errors of the parts of k contrasts, in units of the model.

    Attributes:
        parts, rows, sources: see there.
        sides: (k, n) +1 in the first set of each contrast, -1 in the second, 0 in neither.
        cells: (cells, k) differences of shares.
        fitted: (n, m) sums of all effects at the rows.
    """

    parts: Parts
    rows: Rows
    sides: IntArray
    cells: FloatArray
    fitted: FloatArray
    sources: Sources

    @property
    def identified(self) -> NDArray[np.bool_]:
        """(S,) whether the part of each subset in the first contrast is determined."""
        family, uncertainty = self.parts.family, self.sources.uncertainty
        count = len(family.subsets)
        out = np.array([uncertainty.has_stderr(s) for s in range(count)])
        for s in np.flatnonzero(~out).tolist() if uncertainty.knows_dependences else ():
            weights = np.zeros((family.n_cells, 1))
            weights[family.cells_of(s), 0] = self.cells[family.cells_of(s), 0]
            out[s] = bool(uncertainty.determined(self.parts.read.observed_weights(weights)[0])[0])
        return out

    def of_parts(self, shares: FloatArray) -> FloatArray:
        """(k, f, m) standard errors of sums of parts of subsets with (S, f) ``shares``."""
        out = np.full((len(self.sides), shares.shape[1], self.parts.effects.shape[1]), np.nan)
        step = _columns(self.parts, self.rows, self.sources)
        for first in range(0, shares.shape[1] if self.sources.rows else 0, step):
            chosen = slice(first, min(shares.shape[1], first + step))
            by_cell = np.repeat(shares[:, chosen], np.diff(self.parts.family.cell_start), axis=0)
            out[:, chosen] = self.of_sums(by_cell, _at_rows(self.parts, self.rows, by_cell))
        return out

    def of_sums(self, by_cell: FloatArray, at_rows: list[FloatArray]) -> FloatArray:
        """(k, f, m) standard errors of sums of effects with shares ``by_cell`` (cells, f).

        Args:
            by_cell: shares of the effects in each sum.
            at_rows: the sums at the rows, (n, f) for each output.
        """
        if not self.sources.rows:
            return np.full((len(self.sides), by_cell.shape[1], len(at_rows)), np.nan)
        weights = self.cells[:, :, None] * by_cell[:, None, :]
        return self._errors(weights.reshape(len(by_cell), -1), at_rows)

    def of_totals(self) -> FloatArray:
        """(k, m) standard errors of the total differences: with the model, of the rows alone."""
        if self.rows.values is None:
            return np.asarray(self.of_parts(np.ones((len(self.parts.family.subsets), 1)))[:, 0])
        return self._of_rows(self.rows.values)

    def of_residuals(self) -> FloatArray:
        """(k, m) standard errors of the residuals."""
        values, sources = self.rows.values, self.sources
        if values is None or not sources.rows or not sources.linear:
            return np.full((len(self.sides), self.parts.effects.shape[1]), np.nan)
        left = values - self.fitted
        if not sources.effects:
            return self._of_rows(left)
        if sources.same is not None and isinstance(sources.uncertainty.engine, LinearErrors):
            left = sources.uncertainty.engine.as_noise(left / _divisor(sources.unit), sources.same.place) * sources.unit
        return np.asarray(self._errors(-self.cells, [left[:, [o]] for o in range(left.shape[1])])[:, 0])

    def _of_rows(self, values: FloatArray) -> FloatArray:
        """(k, m) standard errors of the differences of the means of (n, m) values."""
        if not self.sources.rows:
            return np.full((len(self.sides), values.shape[1]), np.nan)
        if self.sources.effects and self.sources.same is not None:
            nothing = np.zeros((self.parts.family.n_cells, len(self.sides)))
            return np.asarray(self._errors(nothing, [values[:, [o]] for o in range(values.shape[1])])[:, 0])
        return np.sqrt(self._variances_of_rows(self._own(values)).reshape(len(self.sides), -1))

    def _own(self, values: FloatArray) -> FloatArray:
        """(n, k f) influence of the rows themselves on the differences of the means of ``values`` (n, f)."""
        return np.hstack([own_influence(values, self.rows.weight, side) for side in self.sides])

    def _errors(self, weights: FloatArray, at_rows: list[FloatArray]) -> FloatArray:
        """(k, f, m) errors of sums of T times ``weights`` (cells, k f); for each output, (n, f) sums at the rows."""
        uncertainty, unit = self.sources.uncertainty, self.sources.unit
        weights, whole = self.parts.read.observed_weights(weights)
        out = np.empty((weights.shape[1], len(at_rows)))
        for o, values in enumerate(at_rows):
            own = self._own(values) / _divisor(unit)[o]
            if self.sources.effects:
                variances = contrast_variances(uncertainty, o, weights, own, self._variances_of_rows, self.sources.same)
            else:
                variances = self._variances_of_rows(own)
            stderr = np.sqrt(np.maximum(variances, 0.0))
            out[:, o] = np.where(stderr <= tolerances.NO_ERROR, 0.0, stderr) * unit[o]
        if self.sources.effects:  # an effect has no error in cells never observed
            out[~whole] = np.nan
        elif not uncertainty.is_whole:  # all of the error is that of the effect, which is not known
            out[out == 0.0] = np.nan
        single = np.array([has_single_unit(self.rows, side, self.sources) for side in self.sides])
        out[np.repeat(single, weights.shape[1] // len(self.sides))] = np.nan
        if uncertainty.knows_dependences:
            out[~uncertainty.determined(weights)] = np.nan
        return out.reshape(len(self.sides), -1, len(at_rows))

    def _variances_of_rows(self, own: FloatArray) -> FloatArray:
        """(k f,) variances that come from other rows alone, whose influence is ``own`` (n, k f)."""
        each = np.split(own, len(self.sides), axis=1)
        variances = [rows_variances(part, self.rows.weight, side) for part, side in zip(each, self.sides, strict=True)]
        return np.concatenate(variances)


def _columns(parts: Parts, rows: Rows, sources: Sources) -> int:
    """How many sums are computed together."""
    sample = sources.uncertainty.sample
    fitted = 0 if sample is None else sample.n_rows
    return max(1, STATISTICS_BYTES // (8 * (parts.family.n_cells + 4 * max(len(rows.weight), fitted))))


def _together(parts: Parts, rows: Rows, sources: Sources, sums: int) -> int:
    """How many pairs of sets are computed together, each with this number of sums."""
    return max(1, _columns(parts, rows, sources) // sums)


def _at_rows(parts: Parts, rows: Rows, shares: FloatArray) -> list[FloatArray]:
    """For every output, (n, f) sums of the effects at the rows with (cells, f) ``shares``."""
    phi = Phi(parts.family, NewRows(rows.codes))
    return [phi.synthesise(parts.effects[:, [o]] * shares) for o in range(parts.effects.shape[1])]


def _divisor(unit: FloatArray) -> FloatArray:
    """(m,) units to divide by: one for an output that is constant, whose errors are zero in its own unit of zero."""
    return np.where(unit > 0, unit, 1.0)
