"""Queries at rows: the fitted part, its components, Shapley values, interactions, and the score against a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_choice, check_switch, check_whole
from exanova.data.distinct import distinct_rows
from exanova.data.encoding import Encoding
from exanova.data.link import LINKS, link_each, link_means
from exanova.data.observe import values_at
from exanova.data.table import Table
from exanova.data.values import is_model
from exanova.data.weights import check_weights
from exanova.design.between_levels import with_places
from exanova.design.continuation import Continuation, Everywhere, everywhere
from exanova.design.family import Family
from exanova.effects.at_rows import Components, contributions, fitted_part
from exanova.effects.certificate import measure_fit
from exanova.effects.effect import Schema
from exanova.errors import InputError
from exanova.explain.cells import cells_of
from exanova.explain.dividends import largest_order, weight_matrix
from exanova.explain.explanation import Explanation, make_explanation
from exanova.explain.grouping import grouping_of
from exanova.explain.interactions import CHUNK_BYTES, Interactions, interaction_values
from exanova.explain.row_errors import row_freedom, row_stderr, shapley_errors
from exanova.explain.shapley import shapley_values
from exanova.infer.uncertainty import Uncertainty
from exanova.progress import Progress
from exanova.queries.query import QuerySettings, Work, locate
from exanova.typing import Codes, FloatArray, Subset


@dataclass(frozen=True, eq=False, repr=False)
class RowQueries:
    """The queries of a :class:`Decomposition` at rows.

    Attributes:
        schema: names of features, levels and outputs.
        encoding: levels of every feature, to encode new rows.
        family: cells of every subset.
        values: (cells, m) effects.
        uncertainty: their standard errors and what is identified.
        settings: parameters that queries depend on.
        link: the function of the output that was decomposed: ``"identity"``, ``"log"`` or ``"logit"``.
        continuation: the effects of pairs in cells never observed, if the fit was shrunk.
    """

    schema: Schema
    encoding: Encoding
    family: Family
    values: FloatArray
    uncertainty: Uncertainty
    settings: QuerySettings
    link: str = field(default="identity", kw_only=True)
    continuation: Continuation | None = field(default=None, kw_only=True)

    @cached_property
    def everywhere(self) -> Everywhere:
        """The effects as new rows read them: pairs in cells never observed are continued by the prior of the fit."""
        return everywhere(self.family, self.values, self.continuation)

    @property
    def reads_between(self) -> bool:
        """Whether numbers never observed are read between those that were: the prior of a shrunken fit says how."""
        return self.continuation is not None

    def encode(self, table: Table) -> Codes:
        """(d, n) codes of new rows; those of a number never observed follow those of the levels."""
        codes = self.encoding.encode(table, self.settings.handle_unknown, between=self.reads_between)
        return codes.astype(np.int32)

    def read_at(self, codes: Codes) -> Everywhere:
        """The effects as these rows (d, n) read them, with the numbers never observed that they hold."""
        beyond = np.flatnonzero(codes.max(axis=1, initial=-1) >= self.family.sizes)
        return self.read_with(tuple(beyond.tolist()))

    def read_with(self, features: tuple[int, ...]) -> Everywhere:
        """The effects with the places of all numbers never observed of some features; those used last are kept."""
        if not features:
            return self.everywhere
        if features not in self._extended:
            known = {i: self.encoding.features[i].between for i in features}
            self._extended.clear()
            self._extended[features] = with_places(self.everywhere, {i: own for i, own in known.items() if own})
        return self._extended[features]

    @cached_property
    def _extended(self) -> dict[tuple[int, ...], Everywhere]:
        return {}

    @property
    def order(self) -> int:
        """Number of features in the largest subset."""
        return len(self.family.subsets[-1])

    def predict(self, X: Any, *, scale: Literal["link", "response"] = "link") -> FloatArray:
        """The fitted part at the rows of ``X``: (n,) for a model with one output, else (n, m).

        Args:
            X: rows.
            scale: ``"link"``, the scale that was decomposed, on which effects add up; or ``"response"``, that of the
                model's output. The two differ if a ``link`` was given.
        """
        check_choice("scale", scale, ("link", "response"))
        codes, _ = self._locate(X, Work("the fitted part"))
        fitted = self._fitted_part(codes)
        return self.schema.shown(LINKS[self.link].back(fitted) if scale == "response" else fitted)

    def components(self, X: Any) -> Components:
        """Contribution of every subset to every row of ``X``; they add up to ``predict``.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> from exanova import FunctionalANOVA
        >>> parts = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).components(X[:1])
        >>> parts.subsets, parts.values.round(12).tolist()
        (((), ('x0',), ('x1',), ('x0', 'x1')), [[1.5, -1.0, -1.0, 0.5]])
        """
        codes, outside = self._locate(X, Work("the components", 8 * len(self.family.subsets) * self._m))
        read = self.read_at(codes)
        values = contributions(read.family, read.values, codes)
        subsets = tuple(map(self.schema.names, self.family.subsets))
        return Components(self.schema.shown(values), subsets, outside, self.schema.outputs, self.schema)

    def explain(
        self,
        X: Any,
        model: Any = None,
        *,
        residual: Literal["report", "spread"] = "report",
        stderr: bool = False,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """Shapley values of the rows of ``X``.

        Args:
            X: rows, from any table library; columns are matched by name, additional ones are ignored.
            model: the model, or its outputs at these rows; the residual is then reported too.
            residual: ``"report"`` keeps the residual separate; ``"spread"`` divides it equally among the features.
            stderr: whether to compute standard errors of the values (not with ``residual="spread"``).
            groups: names of groups and the features of each, such as ``{"household": ["home", "children"]}``. Each
                effect is then divided among the groups it touches; a feature in no group is a group of its own.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> y = np.array([0.0, 1.0, 1.0, 4.0])
        >>> from exanova import FunctionalANOVA
        >>> e = FunctionalANOVA(max_order=1).fit(X, y).explain(X, y)
        >>> e.residual.round(12).tolist()
        [0.5, -0.5, -0.5, 0.5]
        """
        _check_residual(residual, model, stderr)
        grouping = None if groups is None else grouping_of(groups, self.schema)
        d = len(self.schema.features if grouping is None else grouping.names)
        # Besides the values: levels as numbers and as text; besides the residual: the outputs of the model.
        numbers = d * (self._m + 2) + (0 if model is None else 3 * self._m)
        codes, outside = self._locate(X, Work("the Shapley values", 8 * numbers))
        read = self.read_at(codes)
        with closing(Progress(self.settings.verbose)) as progress:
            left = None if model is None else self.model_values(X, model, progress) - self._fitted_part(codes)
            if grouping is None:
                values = shapley_values(read.family, read.values, codes, self.settings.threads, progress)
                errors = shapley_errors(self.family, self.uncertainty, codes, read) if stderr else None
            else:
                matrix = grouping.shares(self.family.subsets).T
                values = interaction_values(read.family, read.values, codes, matrix, progress)
                errors = self._row_errors(codes, matrix) if stderr else None
        if residual == "spread" and left is not None:
            values, left = values + left[:, None, :] / d, np.zeros_like(left)
        cells = None if self.encoding.is_lossless else cells_of(Table.read(X), self.encoding)
        base, places = self.values[0], self.encoding.between
        return make_explanation(self.schema, values, base, codes, outside, left, errors, grouping, cells, places)

    def interactions(
        self,
        X: Any,
        *,
        index: str = "k-SII",
        order: int = 2,
        stderr: bool = False,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Interactions:
        """An interaction index of the rows of ``X``, for the subsets that exist.

        Args:
            X: rows.
            index: "SV", "SII", "k-SII", "STII", "FSII", "BII", "BV", "FBII", or "Moebius" for the effects themselves.
            order: largest size of a subset.
            stderr: whether to compute the standard errors of the values.
            groups: names of groups and the features of each, as in ``explain``; subsets are then sets of groups.
        """
        check_whole("order", order)
        check_switch("stderr", stderr)
        shown = self.schema.shown
        schema, subsets, matrix = self._index(index, int(order), groups)
        names = tuple(map(schema.names, subsets))
        reached = largest_order(index, int(order), max(map(len, subsets), default=1))
        # Besides the values: the contributions of one chunk of rows, and their weighted sums.
        codes, outside = self._locate(X, Work("the interactions", 8 * len(subsets) * self._m, 2 * CHUNK_BYTES))
        with closing(Progress(self.settings.verbose)) as progress:
            read = self.read_at(codes)
            values = interaction_values(read.family, read.values, codes, matrix, progress)
            both = tuple(map(shown, self._row_errors(codes, matrix))) if stderr else (None, None)
        base = shown(np.broadcast_to(self.values[0], (codes.shape[1], self._m)))
        errors, freedom = both
        return Interactions(shown(values), names, index, reached, base, outside, schema, stderr=errors, freedom=freedom)

    def _row_errors(self, codes: Codes, matrix: Any) -> tuple[FloatArray, FloatArray]:
        """(n, k, m) standard errors of the index with this (k, S) matrix at rows, and their degrees of freedom."""
        return (
            row_stderr(self.family, self.uncertainty, codes, matrix, self.read_at(codes)),
            row_freedom(self.family, self.uncertainty, codes, matrix),
        )

    def score(self, X: Any, model: Any, *, sample_weight: Any = None) -> float | FloatArray:
        """R2 of the fitted part against the model, for example on held-out rows: one number, or one per output."""
        codes, _ = self._locate(X, Work("the score", 8 * 5 * self._m))
        weight = check_weights(sample_weight, codes.shape[1], Table.read(X).index).astype(np.float64)
        target = self.model_values(X, model, weight=weight)
        r2 = measure_fit(target, self._fitted_part(codes), weight / weight.sum()).r2
        return float(r2[0]) if self.schema.single else r2

    def model_values(
        self, X: Any, model: Any, progress: Progress | None = None, weight: NDArray[Any] | None = None
    ) -> FloatArray:
        """(n, m) values of a model at new rows, on the scale of the link; it is called once for each distinct row.

        Outputs given for rows are averaged over equal rows, by ``weight``, before they are linked.
        """
        settings, outputs = self.settings, self.schema.outputs
        values = values_at(X, model, self.encoding, settings.response_method, settings.batch_size, outputs, progress)
        if values.shape[1] != self._m:
            raise InputError(
                f"the model gives {values.shape[1]} outputs, the decomposition has {self._m}; "
                "give the model that was decomposed."
            )
        return values if self.link == "identity" else self._linked(X, model, values, weight)

    def _linked(self, X: Any, model: Any, values: FloatArray, weight: NDArray[Any] | None) -> FloatArray:
        """(n, m) outputs of a model, or given for rows, on the scale of the link."""
        link, rows = LINKS[self.link], np.arange(len(values))
        if is_model(model):
            return link_each(link, values, rows)
        _, group = distinct_rows(self.encode(Table.read(X)))
        given = np.ones(len(values)) if weight is None else weight
        counted = np.where(np.bincount(group, given)[group] > 0, given, 1.0)  # rows of no weight are still shown
        return link_means(link, values, group, counted, rows)

    def _index(
        self, index: str, order: int, groups: Mapping[str, Sequence[str]] | None
    ) -> tuple[Schema, list[Subset], Any]:
        """Names, subsets of features (or sets of groups), and the matrix from effects to an index."""
        if groups is None:
            chosen, matrix = weight_matrix(self.family.subsets, index, order)
            return self.schema, [self.family.subsets[k] for k in chosen], matrix
        grouping = grouping_of(groups, self.schema)
        return grouping.schema(self.schema), *grouping.weights(self.family.subsets, index, order)

    @property
    def _m(self) -> int:
        return int(self.values.shape[1])

    def _fitted_part(self, codes: Codes) -> FloatArray:
        return fitted_part(self.read_at(codes), codes, self.settings.threads)

    def _locate(self, X: Any, work: Work) -> tuple[Codes, NDArray[np.bool_]]:
        between = self.reads_between
        return locate(X, self.encoding, self.family, self.read_at, self.settings, work, between)


def _check_residual(residual: str, model: Any, stderr: bool) -> None:
    check_choice("residual", residual, ("report", "spread"))
    check_switch("stderr", stderr)
    if residual == "spread" and model is None:
        raise InputError("residual='spread' needs the model: explain(X, model, residual='spread').")
    if residual == "spread" and stderr:
        raise InputError("residual='spread' was given with stderr=True; the residual has no standard error.")
