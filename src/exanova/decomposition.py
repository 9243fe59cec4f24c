"""``Decomposition``: the effects of a model with their names and evidence, and all queries on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.effects.certificate import Certificate
from exanova.effects.effect import GAME, Effects, Schema
from exanova.effects.printed import text_of
from exanova.errors import InputError, InputTypeError
from exanova.explain.changing import Fit, mean_change
from exanova.explain.comparison import Comparison, compare
from exanova.explain.importance_errors import importance_stderr
from exanova.explain.mean_change import MeanChange
from exanova.explain.relativities import BETWEEN_LEVELS, Relativities, TariffLoss, losses_in_words
from exanova.explain.tariff import tariff_of
from exanova.infer.error_record import Errors
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.uncertainty import Uncertainty
from exanova.messages import Parameter, Words, count_of
from exanova.provenance import Provenance
from exanova.queries.effect_queries import EffectQueries
from exanova.queries.query import QuerySettings
from exanova.select.record import Selection
from exanova.solve.plan import Plan
from exanova.typing import FloatArray

if TYPE_CHECKING:
    from exanova.show.plots import Plots

Functions = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""Functions of the paper's basis, each as the names of its features and its levels."""


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(EffectQueries):
    """Effects of a model with names and evidence: the attribute ``decomposition_`` of a :class:`FunctionalANOVA`.

    The record is immutable; ``with_settings`` returns another record with the same effects. Results computed on first
    use (standard errors, mean absolute Shapley values) are cached and shared by such records.

    Attributes:
        schema: names of features, levels and outputs.
        encoding: levels of every feature, to encode new rows.
        family: cells of every subset.
        values: (cells, m) effects.
        uncertainty: their standard errors and what is identified.
        settings: parameters that queries depend on.
        covariance: (S, m) Cov(f_A, f) with the model.
        variance: (m,) Var f of the model.
        mean_shapley: E|Shapley value| of every feature.
        certificate: the measured accuracy of the effects.
        plan: how they were computed.
        ties: how redundancy among subsets of one order was resolved, ``"share"`` or ``"first"``.
        selection: how a budget was spent, if there was one.
        paper_functions: functions kept by the paper's algorithm, if it was used.
        losses: under a link, what tariffs of effects up to each order lose, per output.
        sample: the weighted distinct rows of the fit; ``None`` if it was read from a file (files contain no rows).
        provenance: version, date, settings, rows and hashes of the fit; ``None`` in files of exanova 0.1.

    >>> from exanova import FunctionalANOVA
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> decomposition = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).decomposition_
    >>> decomposition.intercept.tolist(), decomposition.order, decomposition.certificate.exact
    ([1.5], 2, True)
    """

    plan: Plan
    ties: str = "share"
    selection: Selection | None = None
    paper_functions: Functions | None = None
    sample: Sample | None = None
    losses: tuple[tuple[TariffLoss, ...], ...] = ()
    provenance: Provenance | None = None

    @cached_property
    def effects(self) -> Effects:
        """Mapping from feature names to :class:`Effect`."""
        features = self.encoding.features
        return Effects(self.family, self.values, self.schema, self.uncertainty, self._left_out_by, features)

    @property
    def _left_out_by(self) -> Words | None:
        """The parameter that left subsets out, if subsets were chosen."""
        if self.selection is None:
            return None
        if self.selection.budget is None:
            return Words(Parameter("selection", self.selection.method))
        return Words("the budget (", Parameter("max_terms", self.selection.budget), ")")

    @property
    def joined_levels(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Values that share a level, by column and label: levels joined or merged as too many or too rare.

        >>> import exanova
        >>> X = np.array([["a", "u"], ["b", "v"], ["c", "u"], ["c", "v"]])
        >>> anova = exanova.FunctionalANOVA(min_frequency=2).fit(X, np.arange(4.0))
        >>> anova.decomposition_.joined_levels
        {'x0': {'(other)': ('a', 'b')}}
        """
        by_column = {feature.name: feature.joined for feature in self.encoding.features}
        return {name: joined for name, joined in by_column.items() if joined}

    @property
    def intercept(self) -> FloatArray:
        """(m,) weighted mean of the model."""
        return np.array(self.values[0])

    def with_settings(self, settings: QuerySettings) -> Decomposition:
        """The same effects with other settings for queries."""
        return replace(self, settings=settings)

    def compare(self, other: Any) -> Comparison:
        """Compare with another decomposition of the same columns, largest changes first."""
        second = self._on_the_same_scale(other)
        encodings = (self.encoding, second.encoding)
        return compare(self.effects, second.effects, self.schema, second.schema, encodings)

    def relativities(self, base: Any = "most frequent") -> Relativities:
        """The tariff: exp of main effects and pairs against a base level, with intervals and exposures.

        The base value times the relativities of a row is its fitted value (the odds, for ``link="logit"``); the result
        includes the loss of factors up to each order in deviance and in the Gini index.

        Args:
            base: ``"most frequent"`` level of each feature, or a mapping from features to levels, or to values that
                their levels hold; features not in the mapping have their most frequent one.

        Raises:
            InputError: unless the fit has ``link="log"`` or ``link="logit"``.
        """
        if self.link == "identity":
            raise InputError(
                "relativities are ratios, and the effects of this fit add up on the scale of the output",
                remedy=["fit with ", Parameter("link", "log"), ", or ", Parameter("link", "logit"), " for odds"],
            )
        return tariff_against(self, base)

    def change(self, other: Any) -> MeanChange:
        """Why the mean changed from this fit to another one of the same columns: the mix of the rows, or the model.

        The mix is the change that the rows of the other fit make with the effects of this one; the model is the change
        that its effects make on its rows, with both models centred on the rows of this fit. Both are split over
        subsets of features and add up to the change of the mean exactly.

        Args:
            other: a later fit, or its decomposition.
        """
        return mean_change(_as_fit(self), _as_fit(self._on_the_same_scale(other)))

    def _on_the_same_scale(self, other: Any) -> Decomposition:
        """Another decomposition, refused if its effects are not on the scale of these."""
        second = decomposition_of(other)
        if second.link != self.link:
            raise InputError(
                f"the effects are on different scales, with the links {self.link!r} and {second.link!r}",
                expected=["two fits with the same ", Parameter("link")],
            )
        return second

    @property
    def plot(self) -> Plots:
        """Charts of this decomposition: importances, effects, pairs, rows, the certificate."""
        from exanova.show.plots import Plots

        return Plots(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        X: Any = None,
        model: Any = None,
        id: Any = None,
        by: str | None = None,
        since: Any = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        base: Any = "most frequent",
        title: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write a report: one HTML page that works offline, or JSON or Markdown, by the suffix of ``path``.

        Args:
            path: ends in ``.html``, ``.json`` or ``.md``; an existing file is replaced atomically.
            X: rows for the row explorer; by default those of the fit. A loaded decomposition has none.
            model: the model, or its outputs at the rows of ``X``; the explorer then shows the residual of each row.
            id: an identifier of each row of ``X``, by which it is found: the name of a column, or one per row; by
                default an index of pandas names them, or their position.
            by: column of ``X`` whose groups are compared, as in ``difference``: a section says why they differ.
            since: an earlier fit of the same columns: a section says why the mean changed, as ``change`` does.
            groups: names of groups of features and the features of each: a section has the importance of each group,
                and groups of rows and reasons are shown by group.
            base: base levels of the tariff that a fit with a link has, as in ``relativities``.
            title: heading of the report.
            about: further facts to show at the top, such as ``{"Data": "loans.csv"}``.

        >>> import json, os, tempfile
        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     anova.report(os.path.join(folder, "small.json"))
        ...     with open(os.path.join(folder, "small.json"), encoding="utf-8") as file:
        ...         json.load(file)["verdicts"][-1]["answer"]
        'Yes'
        """
        from exanova.report import ReportArguments, write_report

        arguments = ReportArguments(X=X, model=model, id=id, by=by, since=since, groups=groups, base=base)
        write_report(self, path, arguments, title=title, about=about)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        dialect: Literal["standard", "duckdb", "sqlite", "postgres"] | None = None,
        table: str | None = None,
        keep: Sequence[str] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the tables of this decomposition, in a format by the suffix of ``path``.

        A workbook (``.xlsx``), JSON by a schema (``.json``), a query that scores rows in a database (``.sql``), tables
        for papers (``.md``, ``.tex``), or a folder with every table as CSV and Parquet (a name that ends in ``/``). All
        of them include the provenance; none contains rows or the model.

        Args:
            path: what to write; an existing file, or the folder of an earlier export, is replaced atomically.
            dialect: of SQL: ``"standard"`` (default), ``"duckdb"``, ``"sqlite"`` or ``"postgres"``.
            table: of SQL: name of the table to score, by default ``rows``.
            keep: of SQL: further columns of that table to return, such as a key.
            about: further facts to write with the provenance.

        >>> import json, os, tempfile
        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     anova.export(os.path.join(folder, "tables.json"))
        ...     with open(os.path.join(folder, "tables.json"), encoding="utf-8") as file:
        ...         json.load(file)["effects"][0]["features"]
        ['x0']
        """
        from exanova.export import write_export

        write_export(self, path, about=about, dialect=dialect, table=table, keep=keep)

    def __str__(self) -> str:
        distinct = count_of(self.plan.distinct_rows, "distinct row")
        if not self.plan.distinct_rows:
            distinct = f"moments of {count_of(self.plan.rows, 'row')}"
        rows = f"{distinct} and {count_of(len(self.schema.features), 'feature')}"
        if self.link != "identity":
            explained = losses_in_words(self.losses, self.certificate.hides)
            rows += f"\nlink: {self.link}; effects add up on the {self.link} of the output{explained}"
        stderr = shares = None
        if self.sample is not None and self.uncertainty.cheap and len(self.schema.outputs) == 1:
            stderr = importance_stderr(self.family, self.uncertainty, "l2", "subset")[:, 0]
        if self.certificate.cancels:
            shares = self.covariance.sum(axis=1) / (self.variance.sum() or 1.0)
        why = f"\nno standard errors: {self.uncertainty.lonely}" if self.uncertainty.lonely else ""
        return text_of(self.family, self.values, self.schema, self.certificate, rows, stderr, shares) + why

    def _repr_html_(self) -> str:
        from exanova.report.notebook import decomposition_html

        return decomposition_html(self)

    def __repr__(self) -> str:
        effects, outputs = count_of(len(self.family.subsets), "effect"), count_of(len(self.schema.outputs), "output")
        return f"<Decomposition: {effects} of up to {count_of(self.order, 'feature')}, {outputs}; {GAME}>"


def decomposition_of(other: Any, name: str = "other") -> Decomposition:
    """The decomposition of another fit, given as the argument ``name``: itself, or its estimator."""
    if hasattr(type(other), "decomposition_"):  # an estimator, which raises if it is not fitted
        other = other.decomposition_
    if not isinstance(other, Decomposition):
        raise InputTypeError(
            Parameter(name), f" is a {type(other).__name__}", expected="another fitted FunctionalANOVA"
        )
    return other


def _as_fit(decomposition: Decomposition) -> Fit:
    return Fit(
        decomposition.schema,
        decomposition.encoding,
        decomposition.family,
        decomposition.values,
        decomposition.uncertainty,
    )


def tariff_against(decomposition: Decomposition, base: Any, why_none: str = "") -> Relativities:
    """The tariff of a fit with a link; ``why_none`` says why it should have no intervals."""
    tariff = tariff_of(_as_fit(decomposition), decomposition.link, base, decomposition.losses, why_none)
    if not (decomposition.losses and decomposition.certificate.hides):
        return tariff
    return replace(tariff, notes=(*tariff.notes, f"deviance and Gini index: {BETWEEN_LEVELS}"))


def uncertainty_of(
    family: Family,
    values: FloatArray,
    schema: Schema,
    certificate: Certificate,
    fitted: FittedSample | None = None,
    stored: Mapping[str, FloatArray] | None = None,
    summary: Errors | None = None,
) -> Uncertainty:
    """The uncertainty of effects, from the rows or from the contents of a file.

    Args:
        family, values, schema, certificate: the decomposition.
        fitted: the rows as standard errors need them.
        stored, summary: standard errors that were computed before, and how they were computed.
    """
    position = {schema.names(subset): s for s, subset in enumerate(family.subsets)}
    shared = frozenset(position[r.features] for r in certificate.redundant if r.features in position)
    unique = certificate.unique if certificate.rank_known else None
    return Uncertainty(family, values, fitted, stored, summary, unique, shared)
