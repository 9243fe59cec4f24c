"""From a table and a model to the support and its values, which are decomposed.

The model is called once on each distinct raw row. Rows that become equal when their levels are binned or merged
are averaged; the variance lost in that is kept beside the means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.distinct import distinct_rows, pick_rows
from exanova.data.draws import DrawPlan
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.fingerprint import fingerprint
from exanova.data.learning import learn_codes
from exanova.data.mapped import trim
from exanova.data.packing import places_in, row_order
from exanova.data.recoding import recoded
from exanova.data.rules import NBins
from exanova.data.sample import Sample
from exanova.data.scaling import Scaling, find_scaling
from exanova.data.support import Support
from exanova.data.table import Table
from exanova.data.values import ModelValues, align, average, evaluate, is_model
from exanova.data.weights import check_weights, group_totals, power_of
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.progress import Progress
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Observation:
    """A model observed on the distinct rows of a table.

    Attributes:
        encoding: the levels of every feature.
        support: the distinct encoded rows with their weights and names.
        sample: the same rows with the model's values, as everything after this takes them.
        given: names of the outputs, and how the model gave them; its arrays are empty.
        table_kind: the library of the table that was given (``"numpy"`` for a support).
        table_hash: hash of levels, rows, weights and outputs.
        divided: the power of two that weights were divided by.
        different: how many different rows the distinct encoded rows were before; 0 where that was not counted.
    """

    encoding: Encoding
    support: Support
    sample: Sample
    given: ModelValues
    table_kind: str
    table_hash: str
    divided: int = 0
    different: int = 0

    @property
    def total_weight(self) -> float:
        """The sum of the weights as they were given; the largest number there is, where it is larger."""
        with np.errstate(over="ignore"):
            total = np.ldexp(float(self.sample.weight.sum()), self.divided)
        return float(min(total, np.finfo(np.float64).max))

    @property
    def scaling(self) -> Scaling:
        """The mean and the unit of every output."""
        assert self.sample.scaling is not None
        return self.sample.scaling

    @cached_property
    def values(self) -> ModelValues:
        """The outputs at the distinct rows in the units of the model."""
        sample, scaling = self.sample, self.scaling
        means = scaling.centre + sample.values * scaling.unit
        within = np.zeros_like(means) if sample.within is None else sample.within
        return replace(self.given, values=means, within=within * scaling.unit**2)


def observe(
    X: Any,
    model: Any,
    *,
    sample_weight: Any = None,
    min_frequency: float | None = None,
    n_bins: NBins = "auto",
    strategy: str = "quantile",
    response_method: str = "auto",
    batch_size: int | None = None,
    output_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Observation:
    """Encode ``X``, find its distinct rows and the values of ``model`` on them.

    ``X`` is a table or a ``Support``; ``model`` is a callable, a fitted estimator, or an array of outputs aligned
    with the rows. Rows of weight zero are ignored: their levels do not exist, and the model is not called on them.

    >>> rows = observe(np.array([[0, 1], [1, 1], [0, 1]]), lambda X: X.sum(axis=1))
    >>> rows.support.weight.tolist(), rows.values.values.tolist(), rows.values.calls
    ([2, 1], [[1.0], [2.0]], 2)
    """
    levels: dict[str, Any] = {"min_frequency": min_frequency, "n_bins": n_bins, "strategy": strategy}
    rows = read_rows(X, sample_weight=sample_weight, model=model, **levels)
    return rows.sampled(rows.model_values(model, response_method, batch_size, output_names, progress))


@dataclass(frozen=True, eq=False)
class Reading:
    """A table that was read: its levels, its distinct rows and which rows equal which, before any model is called.

    Attributes:
        encoding: the levels of every feature.
        support: the r distinct encoded rows with their weights.
        table: the rows of positive weight, as the model receives them.
        kept: (k,) their positions among the rows given; ``None`` if these are all of them.
        weight: (k,) their weights.
        first: (u,) rows of ``table`` on which a model is called, each distinct raw row once.
        raw_group: (k,) which of those each row equals.
        group: (u,) distinct encoded row of each of those.
        n_rows: number of rows that were given.
        index: the pandas index of the rows that were given, or ``None``.
        is_distribution: whether a ``Support`` was given in place of rows.
        widest: distinct values of the column that has most.
        divided: the power of two that weights were divided by.
        clusters: number of clusters that rows were drawn in; 0 where they are independent.
    """

    encoding: Encoding
    support: Support
    table: Table
    kept: IntArray | None
    weight: NDArray[Any]
    first: IntArray
    raw_group: IntArray
    group: IntArray
    n_rows: int
    index: Any = None
    is_distribution: bool = False
    widest: int = 0
    divided: int = 0
    clusters: int = 0

    @property
    def plan_facts(self) -> dict[str, Any]:
        """What a plan reports about rows that are not in memory; empty for rows in memory."""
        return {}

    @property
    def sample(self) -> Sample:
        """The distinct rows, without values."""
        support = self.support
        values = np.zeros((support.n_rows, 0))
        sample = Sample(support.codes, support.weight, support.sizes, values, self.n_rows, counted=self.widest)
        return replace(sample, clusters=self.clusters)

    @property
    def model_calls(self) -> int:
        """Rows a model would be called on."""
        return len(self.first)

    def model_values(
        self,
        model: Any,
        response_method: str = "auto",
        batch_size: int | None = None,
        output_names: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> ModelValues:
        """The model's values at each distinct raw row (``first``), or the outputs given for each row that was kept."""
        if not is_model(model):
            given: Any = {"output_names": output_names, "features": self.encoding.names}
            return align(model, self.n_rows, index=self.index, kept=self.kept, **given)
        choices: Any = {"response_method": response_method, "batch_size": batch_size, "output_names": output_names}
        return evaluate(model, self.table, self.first, progress=progress, **choices)

    def sampled(self, values: ModelValues, drawn: DrawPlan | None = None) -> Observation:
        """The distinct rows with these values, averaged where rows have become equal."""
        given = not values.calls
        if not given:
            raw, group = self.raw_group, self.group
            weight = group_totals(self.weight, self.raw_group, len(self.first))
        else:
            raw, group, weight = None, recoded(self.group, self.raw_group), self.weight
        table_hash = fingerprint(self.encoding, self.support.codes, group, weight, values.values)
        # Normalised first: a mean of numbers near 1e12 would lose their differences.
        scaling = find_scaling(values.values, weight)
        normalised = scaling.normalised(values.values)
        means, within = average(normalised, group, weight, self.support.n_rows)
        noise = self._noise(normalised) if given and within.any() else None
        values = replace(values, values=values.values[:0].copy(), within=within[:0].copy())
        draws = None
        if drawn is not None:
            noisy = bool(within.any())
            of_rows = group if raw is None else recoded(group, raw)
            at_rows = normalised[raw] if noisy and raw is not None else normalised
            draws = drawn.draws(of_rows, self.weight, at_rows, noisy)
        sample = replace(
            self.sample,
            values=means,
            within=within if within.any() else None,
            noise=noise,
            scaling=scaling,
            draws=draws,
            is_distribution=self.is_distribution,
        )
        kind, different = self.table.kind, len(self.first)
        return Observation(self.encoding, self.support, sample, values, kind, table_hash, self.divided, different)

    def recoded(self, features: Sequence[FeatureLevels]) -> Reading:
        """The same rows with some levels joined: ``features`` have the raw values of these, and fewer levels."""
        encoding, codes = Encoding(tuple(features)), self.support.codes.astype(np.int64)
        for row, old, new in zip(codes, self.encoding.features, features, strict=True):
            if new is not old:
                row[:] = new_codes(old, new)[row]
        at, group = distinct_rows(codes)
        totals = group_totals(self.support.weight, group, len(at))
        order = row_order(pick_rows(codes, at), encoding.sizes)
        support = Support.from_distinct(encoding, codes[:, at[order]], totals[order])
        return replace(self, encoding=encoding, support=support, group=places_in(order)[group[self.group]])

    def _noise(self, values: FloatArray) -> FloatArray:
        """(m,) mean variance of (k, m) outputs between rows that are equal as they were given."""
        _, within = average(values, self.raw_group, self.weight, len(self.first))
        totals = group_totals(self.weight, self.raw_group, len(self.first))
        return np.asarray((totals / totals.sum()) @ within)


def new_codes(old: FeatureLevels, new: FeatureLevels) -> IntArray:
    """For each level of a feature, its code after joining."""
    codes = np.empty(len(old.levels), dtype=np.int64)
    codes[list(old.codes)] = new.codes
    if old.missing_code >= 0:
        codes[old.missing_code] = new.missing_code
    return codes


def read_rows(
    X: Any,
    *,
    sample_weight: Any = None,
    min_frequency: float | None = None,
    n_bins: NBins = "auto",
    strategy: str = "quantile",
    model: Any = None,
) -> Reading:
    """Encode ``X`` and find its distinct rows, raw and encoded; no model is called.

    With ``strategy="model"`` the thresholds of ``model`` are read.

    >>> rows = read_rows(np.array([[0, 1], [1, 1], [0, 1]]))
    >>> rows.model_calls, rows.support.weight.tolist()
    (2, [2, 1])
    """
    if isinstance(X, Support):
        if sample_weight is not None or min_frequency is not None or n_bins not in (None, "auto"):
            raise InputError(
                Parameter("sample_weight"),
                ", ",
                Parameter("min_frequency"),
                " and ",
                Parameter("n_bins"),
                " describe rows of a table; a Support has its weights and levels already",
                remedy="Leave them out",
            )
        return _rows_of_support(X)
    table = Table.read(X)
    n, index = table.n_rows, table.index
    weight, kept = check_weights(sample_weight, n, index), None
    power = power_of(sample_weight, weight)
    if not weight.all():
        kept = np.flatnonzero(weight)
        table, weight = table.rows(kept), weight[kept]
    encoding, codes, raw, widest = learn_codes(table, weight, min_frequency, n_bins, strategy, model)
    first, raw_group = distinct_rows(raw)
    codes = pick_rows(codes, first)
    if encoding.is_lossless:  # the raw rows are distinct, and so are the encoded ones
        at = group = np.arange(len(first), dtype=raw_group.dtype)
        totals = group_totals(weight, raw_group, len(at))
    else:
        at, group = distinct_rows(codes)
        totals = group_totals(weight, recoded(group, raw_group), len(at))
    order = row_order(pick_rows(codes, at), encoding.sizes)
    support = Support.from_distinct(encoding, codes[:, at[order]], totals[order])
    group = places_in(order)[group]
    del raw, codes
    trim(n)
    more: dict[str, Any] = {"index": index, "widest": widest, "divided": power}
    return Reading(encoding, support, table, kept, weight, first, raw_group, group, n, **more)


def _rows_of_support(support: Support) -> Reading:
    every = np.arange(support.n_rows)
    return Reading(
        Encoding.from_levels(support.feature_names, support.levels),
        support,
        Table(support.feature_names, "numpy", support.table()),
        None,
        support.weight,
        every,
        every,
        every,
        support.n_rows,
        is_distribution=True,
    )


def values_at(
    X: Any,
    model: Any,
    encoding: Encoding,
    response_method: str = "auto",
    batch_size: int | None = None,
    output_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """(n, m) values of a model at the rows of ``X``, called once for each distinct row, or the outputs given.

    The model receives the columns that were fitted, in their order, in the table library of ``X``.
    """
    table = Table.read(X).select(encoding.names)
    if not is_model(model):
        return align(model, table.n_rows, index=table.index).values
    first, group = distinct_rows(encoding.raw_codes(table))
    values = evaluate(model, table, first, response_method=response_method, batch_size=batch_size, progress=progress)
    return np.asarray(values.values[group])
