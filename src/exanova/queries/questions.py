"""Questions about sets of rows, answered from the effects: why one group scores higher, and why this row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.argument_checks import check_switch, output_number
from exanova.data.table import Table
from exanova.data.values import is_model
from exanova.data.weights import check_weights
from exanova.effects.certificate import Certificate
from exanova.errors import InputError
from exanova.explain.contrasting import Parts, Rows, Sources, contrast, has_single_unit
from exanova.explain.difference import Difference
from exanova.explain.grouping import grouping_of
from exanova.explain.ranking import Contributions, ranked_rows
from exanova.explain.reason_texts import ReasonSettings, RowTexts, check_reasons, id_texts, one_row
from exanova.explain.reasons import Reasons
from exanova.explain.row_sets import RowSets, group_sets, read_labels
from exanova.infer.refits import RefitErrors
from exanova.infer.same_rows import SameRows, find_same_rows
from exanova.infer.uncertainty import Uncertainty
from exanova.infer.units import A_ROW, independent_units, raw_rows
from exanova.messages import Parameter, joined, listed
from exanova.progress import Progress
from exanova.queries.query import Work
from exanova.queries.row_queries import RowQueries
from exanova.typing import Codes, FloatArray

FEATURES, PAIRS = 6, 3
"""Features of a group that nearly express each other, and pairs of sets without errors, named in a note."""


@dataclass(frozen=True, eq=False, repr=False)
class Questions(RowQueries):
    """The questions that a :class:`Decomposition` answers about sets of rows.

    Attributes:
        certificate: the measured accuracy of the effects.
    """

    certificate: Certificate

    def difference(
        self,
        rows_a: Any,
        rows_b: Any = None,
        model: Any = None,
        *,
        by: Any = None,
        within: Any = None,
        sample_weight: Any = None,
        weights: Literal["auto", "frequency", "probability"] = "auto",
        groups: Mapping[str, Sequence[str]] | None = None,
        stderr: bool = True,
    ) -> Difference:
        """Why one set of rows scores higher than another: the difference of the means, split over subsets.

        The parts of all subsets, and the residual if the model is given, add up to the difference exactly. Standard
        errors include the sampling of the rows and of the effects; ``included`` of the result says so in words.

        Args:
            rows_a: the first set of rows; or, with ``by``, all rows.
            rows_b: the second set of rows.
            model: the model, or its outputs at the rows (for two sets of rows, a pair); the residual is then a part.
            by: in place of ``rows_b``, the groups of the rows: the name of a column of ``rows_a``, or one label (or
                truth value) per row. Two groups are compared with each other, more of them each with all others.
            within: compare inside the strata of this column (or of these labels).
            sample_weight: weights of the rows (for two sets of rows, a pair).
            weights: what they are, as in ``fit``: ``"frequency"`` counts equal rows (the default for whole numbers),
                ``"probability"`` weighs one row each, as exposure and survey weights do.
            groups: names of groups of features and the features of each, as in ``explain``.
            stderr: whether to compute standard errors.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> from exanova import FunctionalANOVA
        >>> anova = FunctionalANOVA(max_order=1).fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
        >>> print(anova.difference(X, by=[True, True, False, False]))
        True against False: mean of the model 0.5 and 2.5
          x0       -2
          x1       +0
          (total)  -2
        standard errors: none: every combination of levels occurs, each equally often, so that the rows of the fit are \
the whole population
        """
        check_switch("stderr", stderr)
        grouping = grouping_of({} if groups is None else groups, self.schema)
        with closing(Progress(self.settings.verbose)) as progress:
            rows, sets, left_out = self._rows_to_compare(rows_a, rows_b, model, by, within, sample_weight, progress)
            rows = rows.weighing(weights)
            sources, included = self.error_sources(rows, stderr)
            parts = Parts(self.read_at(rows.codes), grouping.shares(self.family.subsets))
            progress.phase("comparing", len(sets))
            contrasts = []
            for pair in sets:
                contrasts.append(contrast(parts, rows, pair, sources))
                progress.step(1)
        notes = [f"only one group within {', '.join(map(repr, left_out))}: nothing to compare"] if left_out else []
        notes += _single_units(rows, sets, sources)
        named = tuple(map(self.schema.names, self.family.subsets))
        return Difference(
            tuple(contrasts),
            named,
            grouping.names,
            self.schema,
            groups is not None,
            included,
            (*notes, *self._identification()),
        )

    def reasons(
        self,
        X: Any,
        n: int = 4,
        *,
        direction: Literal["lower", "higher", "both"] = "lower",
        against: Any = "mean",
        model: Any = None,
        output: str | int | None = None,
        id: Any = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        stderr: bool = True,
    ) -> Reasons:
        """Why these rows: the features that lower (or raise) the output of each row most, as ranked sentences.

        The contribution of a feature is its Shapley value, or its difference from that of another row. Each reason says
        whether it is determined by the rows of the fit and whether it is distinguishable from the next. This is
        evidence about the model; it is not a statement that any rule or regulation is complied with.

        Args:
            X: rows to explain.
            n: largest number of reasons per row.
            direction: ``"lower"`` for what lowers the output, ``"higher"`` for what raises it, ``"both"`` for either.
            against: ``"mean"``; another row, as a table of one row or a mapping from features to values; or
                ``"best"``, the row with the highest fitted value (the lowest, for reasons why a row is higher) among
                the rows of the fit, or of ``X`` if the decomposition was read from a file.
            model: the model, or its outputs at these rows, to state the residual.
            output: which output, by name or number, if there are several.
            id: an identifier of each row to copy to the result: the name of a column of ``X``, or one per row.
            groups: names of groups of features and the features of each, as in ``explain``.
            stderr: whether to compute standard errors.
        """
        check_reasons(n, direction)
        check_switch("stderr", stderr)
        o = output_number(output, self.schema.outputs)
        grouping = grouping_of({} if groups is None else groups, self.schema)
        codes, outside = self._locate(X, Work("the reasons", 8 * (len(self.family.subsets) + 4 * int(n))))
        table = Table.read(X).select(self.schema.features)
        residual = None if model is None else self.model_values(X, model)[:, o] - self._fitted_part(codes)[:, o]
        texts = RowTexts(grouping, self.schema, table, codes, id_texts(X, id), self.encoding.between)
        return self.reasons_of_rows(texts, outside, residual, ReasonSettings(int(n), direction, against, o, stderr))

    def reasons_of_rows(
        self, texts: RowTexts, outside: NDArray[np.bool_], residual: FloatArray | None, settings: ReasonSettings
    ) -> Reasons:
        """Reasons for rows whose levels are known: what :meth:`reasons` and the report say."""
        codes, o = texts.codes, settings.output
        reference, words = self._reference(settings.against, codes, settings.direction, o)
        fitted = self._without_rounding(self._fitted_part(codes)[:, o], o)
        against = self.values[:1, o] if reference is None else self._fitted_part(reference)[:, o]
        compared = float(self._without_rounding(against, o)[0])
        residual = None if residual is None else self._without_rounding(residual, o)
        shares = texts.grouping.shares(self.family.subsets).toarray()
        read = self.read_at(codes if reference is None else np.concatenate([codes, reference], axis=1))
        at = Contributions.of(read, shares, codes, reference, o)
        with_errors = settings.stderr and not self.uncertainty.why_none
        ranked = ranked_rows(at, self.uncertainty, settings.count, settings.direction, with_errors)
        rows = [
            texts.row(
                k, strongest, float(fitted[k]), compared, None if residual is None else float(residual[k]), outside[k]
            )
            for k, strongest in enumerate(ranked)
        ]
        notes = [f"no standard errors: {self.uncertainty.why_none}"] if settings.stderr and not with_errors else []
        notes += self._identification()
        output = self.schema.outputs[o]
        own: dict[str, Any] = {"unseen": read.unseen, "link": self.link}
        return Reasons(tuple(rows), output, settings.direction, words, tuple(notes), self.schema, **own)

    def _without_rounding(self, values: FloatArray, output: int) -> FloatArray:
        """Values on the scale of an output, zero where they are the rounding of effects that cancel."""
        size = np.abs(self.values[:, output]).max()
        return np.where(np.abs(values) <= tolerances.UNCHANGED * size, 0.0, values)

    def _reference(self, against: Any, codes: Codes, direction: str, output: int) -> tuple[Codes | None, str]:
        """(d, 1) the row to compare with, ``None`` for the mean, and what it is called."""
        if isinstance(against, str) and against == "mean":
            return None, "the mean"
        if isinstance(against, str) and against == "best":
            sample = self.uncertainty.sample
            rows = codes if sample is None else sample.codes.astype(np.int32)
            fitted = self._fitted_part(rows)[:, output]
            best = int(fitted.argmin() if direction == "higher" else fitted.argmax())
            which = "lowest" if direction == "higher" else "highest"
            return rows[:, [best]], f"the {which} of {'these rows' if sample is None else 'the rows of the fit'}"
        row, _ = self._locate(one_row(against, self.schema), Work("a row"))
        if row.shape[1] != 1:
            raise InputError(Parameter("against"), f" has {row.shape[1]} rows", expected="'mean', 'best', or one row")
        return row, "the row compared with"

    def _rows_to_compare(
        self, first: Any, second: Any, model: Any, by: Any, within: Any, weight: Any, progress: Progress
    ) -> tuple[Rows, list[RowSets], list[str]]:
        if (second is None) == (by is None):
            raise InputError(
                "difference() needs two sets of rows",
                expected=["rows_a and rows_b, or the rows and ", Parameter("by"), " with the column of their groups"],
            )
        if by is None:
            if within is not None:
                words = (Parameter("within"), " was given without ", Parameter("by"))
                raise InputError(*words, remedy="give all rows, and the column of their groups")
            weights, models = _pair(weight, "sample_weight"), _pair(model, "model")
            parts = [self._rows(X, m, w, progress) for X, m, w in zip((first, second), models, weights, strict=True)]
            side = np.repeat([1, -1], [len(part.weight) for part in parts])
            return _joined(*parts), [RowSets(("rows_a", "rows_b"), side)], []
        table = Table.read(first)
        labels = read_labels(table, by, "by")
        strata = None if within is None else read_labels(table, within, "within")
        kept = check_weights(weight, table.n_rows, table.index) > 0
        sets, left_out = group_sets(labels.among(kept), None if strata is None else strata.among(kept))
        return self._rows(first, model, weight, progress), sets, left_out

    def _rows(self, X: Any, model: Any, weight: Any, progress: Progress) -> Rows:
        """Rows of positive weight with their codes and outputs."""
        work = Work("the difference", 8 * (4 + 3 * self._m))
        codes, outside = self._locate(X, work)
        table = Table.read(X)
        weights = check_weights(weight, table.n_rows, table.index)
        values = None if model is None else self.model_values(X, model, progress, weights)
        kept = weights > 0
        return Rows(
            np.ascontiguousarray(codes[:, kept]),
            weights[kept],
            None if values is None else values[kept],
            outside[kept],
        )

    def error_sources(self, rows: Rows, stderr: bool) -> tuple[Sources, str]:
        """What standard errors are made of, and what they include, in words."""
        uncertainty, unit = self.uncertainty, np.ones(self._m)
        if not stderr:
            return Sources(uncertainty, False, False, None, unit), "not computed"
        sample = uncertainty.sample
        same = None if sample is None else find_same_rows(sample, rows.codes, rows.weight, self._normalised(rows))
        if same is not None and uncertainty.is_whole:
            return Sources(uncertainty, False, False, None, unit), f"none: {uncertainty.why_none}"
        if uncertainty.why_none:
            known = f"the sampling of the rows alone; the effects are taken as known: {uncertainty.why_none}"
            known += "" if uncertainty.is_whole else "; parts that do not differ between the rows of a set have none"
            return Sources(uncertainty, False, True, None, unit), known + _drawn_together(uncertainty)
        refits = isinstance(uncertainty.engine, RefitErrors)
        linear = not uncertainty.is_shrunken
        unit = uncertainty.unit
        sources = Sources(uncertainty, True, True, None if refits else same, unit, linear)
        without = "" if linear or rows.values is None else "; the residual of a shrunken fit has none"
        from_file = (
            "; the compared rows are treated as new rows, because the file holds no rows" if sample is None else ""
        )
        together = "" if sources.same is not None else _drawn_together(uncertainty)
        return sources, _included(same, refits) + from_file + together + without

    def _normalised(self, rows: Rows) -> FloatArray | None:
        sample = self.uncertainty.sample
        if rows.values is None or sample is None or sample.scaling is None:
            return None
        return sample.scaling.normalised(rows.values)

    def _identification(self) -> list[str]:
        """What is not identified, or nearly not, in words."""
        notes = []
        # The standard errors of a shrunken fit include how surely its prior splits what subsets share.
        if self.certificate.redundant and not self.certificate.effective_functions:
            shown = joined((str(r) for r in self.certificate.redundant[:3]), "; ")
            more = " and others" if len(self.certificate.redundant) > 3 else ""
            notes.append(
                f"some subsets carry the same information on the rows of the fit ({shown}{more}): their parts together "
                "are determined, how they are split among them is a convention"
            )
        for group in self.certificate.near_redundant[:3]:
            notes.append(f"{listed(group, FEATURES)} can nearly express each other: read their parts together")
        return notes


def _single_units(rows: Rows, sets: list[RowSets], sources: Sources) -> list[str]:
    """Which pairs of sets have no standard errors because one of them is a single unit, in words."""
    titles = [own.title for own in sets if sources.rows and has_single_unit(rows, own.side, sources)]
    if not titles:
        return []
    what = "row" if sources.same is None or sources.same.draws.cluster is None else "cluster"
    return [f"no standard errors of {listed(titles, PAIRS)}: a single {what} does not show how much {what}s vary"]


def _drawn_together(uncertainty: Uncertainty) -> str:
    """A remark on rows other than those of the fit, where these were not drawn one by one."""
    sample, summary = uncertainty.sample, uncertainty.summary
    known = A_ROW if summary is None else summary.unit
    unit = known if sample is None else independent_units(raw_rows(sample))[0]
    if unit == A_ROW:
        return ""
    return (
        "; the rows compared are taken as drawn one by one, although those of the fit were not (independent unit: "
        f"{unit}), so that errors of means over them may be too small"
    )


def _included(same: SameRows | None, refits: bool) -> str:
    if same is None:
        return "the sampling of the rows of the fit (the effects) and, independently of it, of the rows compared"
    if refits:
        return "refits for the effects and the sampling of the rows compared, as if the two were independent"
    return "the sampling of the rows, which are those of the fit: sets and effects vary together"


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    """One entry for each of two sets of rows."""
    if given is None or (name == "model" and is_model(given)):
        return given, given
    if not isinstance(given, tuple) or len(given) != 2:
        outputs = "a model, or a pair of outputs" if name == "model" else "a pair"
        raise InputError(f"{name}= is for two sets of rows", expected=f"{outputs}: at rows_a and at rows_b")
    return given


def _joined(first: Rows, second: Rows) -> Rows:
    weights = np.concatenate([first.weight, second.weight])
    values = None
    if first.values is not None and second.values is not None:
        values = np.concatenate([first.values, second.values])
    codes = np.concatenate([first.codes, second.codes], axis=1)
    return Rows(codes, weights, values, np.concatenate([first.outside, second.outside]))
