"""``anova.plot``: every chart of a fitted decomposition, with Altair."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exanova.argument_checks import check_choice, check_switch, check_whole, output_number
from exanova.data.table import Table, frame_of_kind
from exanova.decomposition import Decomposition
from exanova.effects.effect import GAME, Schema
from exanova.errors import InputError
from exanova.explain.explanation import Explanation
from exanova.messages import Parameter, count_of
from exanova.show import records, row_records
from exanova.show.error_bars import can_compute, error_notes, importance_notes, mark_notes
from exanova.show.records import short

Output = str | int | Sequence[str | int] | None
"""Which outputs to draw: one by name or number, several in a list, ``None`` for all."""

MOST_PANELS = 12
"""Outputs drawn side by side."""

LINE = 90
"""Characters in a line of notes."""


class Plots:
    """Charts of a fitted decomposition.

    Each method returns an Altair chart: a notebook shows it, ``chart.save("x.png")`` (or ``.svg``) writes it without a
    browser, and ``chart.save("x.html", inline=True)`` writes a page that works offline. Needs ``exanova[plot]``.

    Models with several outputs get one panel per output; ``output=`` chooses one, by name or number, or several in a
    list. Names that are too long for an axis are truncated there and complete in the tooltip.

    >>> import numpy as np
    >>> from exanova import FunctionalANOVA
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> plot = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).plot
    >>> plot.effect("x0").to_dict()["title"]["text"]
    'Effect of x0'
    """

    def __init__(self, decomposition: Decomposition) -> None:
        self._decomposition = decomposition

    def importance(self, kind: str = "l1", *, output: Output = None, top: int = 20) -> Any:
        """Bars of the most important features, with 95 % intervals where standard errors are known or cheap.

        Args:
            kind: as in ``FunctionalANOVA.importance``.
            output: which outputs.
            top: most features; the note under the title says how many are left out.
        """
        charts, names = _charts(), self._outputs(output)
        listed = _of(records.importance_records(self._decomposition, kind), names)
        notes = importance_notes(self._decomposition, listed)
        return charts.importance_chart(listed, kind=kind, top=_checked(top), floor=self._floor, notes=notes)

    def effect(
        self, feature: str, *, output: Output = None, top: int = 30, ordered: bool | None = None, joined: bool = False
    ) -> Any:
        """The main effect of a feature: bars with the share of rows of each level, or a line if levels are ordered.

        Whiskers are 95 % intervals, where standard errors are known or cheap to compute (``errors()`` computes them);
        levels with fewer than 30 rows are faded. A diamond is the mean of the model at the level, less its overall
        mean: where it is far from the effect, other features account for the difference.

        Args:
            feature: its name.
            output: which outputs.
            top: most bars; beyond, the levels that carry most of E|f| are shown.
            ordered: whether its levels have an order. By default numbers, dates and bins do, and the categories of
                a categorical column whose order is not the natural one.
            joined: whether neighbouring levels that do not differ beyond their error are drawn as one.
        """
        check_choice("ordered", ordered, (True, False, None))
        check_switch("joined", joined)
        charts, names, feature = _charts(), self._outputs(output), str(feature)
        listed = _of(records.effect_records(self._decomposition, feature, ordered, joined=joined), names)
        notes = [*error_notes(self._decomposition, [self._decomposition.effects[feature]]), *mark_notes(listed)]
        return charts.effect_chart(listed, feature=feature, top=_checked(top), floor=self._floor, notes=notes)

    def pair(self, first: str, second: str, *, output: Output = None, top: int = 30) -> Any:
        """The interaction of two features as a heat map; crossed cells never occurred and have no value.

        Cells with fewer than 30 rows are faded; the tooltip has rows and standard errors.

        Args:
            first: feature of the rows.
            second: feature of the columns.
            output: which outputs.
            top: most levels of each feature; beyond, those that carry most of E|f| are shown.
        """
        charts, names = _charts(), self._outputs(output)
        first, second = str(first), str(second)
        listed = _of(records.pair_records(self._decomposition, first, second, _checked(top)), names)
        schema = self._decomposition.schema
        rows, columns = (len(schema.labels[schema.features.index(name)]) for name in (first, second))
        notes, sizes = list(mark_notes(listed)), (rows, columns)
        return charts.pair_chart(listed, first=first, second=second, sizes=sizes, floor=self._floor, notes=notes)

    def network(self, *, output: str | int | None = None, top: int = 24) -> Any:
        """Features on a circle, sized by importance, with lines as wide as their interactions are strong.

        Args:
            output: one output; by default all are added up.
            top: most features.
        """
        charts = _charts()
        name = None if output is None else self._outputs(output)[0]
        nodes, edges = records.network_records(self._decomposition, name, _checked(top))
        notes = self._network_notes(name, len(nodes), len(edges))
        return charts.network_chart(nodes, edges, notes=notes, floor=self._floor)

    def waterfall(self, row: Any, model: Any = None, *, output: Output = None, top: int = 10) -> Any:
        """The way from the mean to the prediction at one row, by Shapley values, with 95 % intervals where cheap.

        Args:
            row: a table of one row, or a mapping from features to levels.
            model: the model, to show the residual too.
            output: which outputs.
            top: largest number of features shown separately; the others are added up.
        """
        charts = _charts()
        errors = can_compute(self._decomposition)
        table = _one_row(row, self._decomposition.schema)
        explained = self._explained(table, model, output, errors)
        steps = row_records.waterfall_records(explained, _checked(top))
        notes = [
            *_outside(self._decomposition, table, explained),
            *(["whiskers: 95 % intervals of the steps"] if errors else []),
        ]
        return charts.waterfall_chart(steps, notes=notes, floor=self._floor)

    def beeswarm(self, X: Any, *, output: Output = None, top: int = 12) -> Any:
        """Shapley values of rows, one lane per feature; rows with the same level and about the same value are one dot.

        Args:
            X: rows.
            output: which outputs.
            top: most features.
        """
        charts = _charts()
        explained = self._explained(X, None, output)
        dots = row_records.beeswarm_records(explained, _checked(top))
        notes = [f"{len(explained):,} rows", *_outside(self._decomposition, X, explained)]
        return charts.beeswarm_chart(dots, features=len(explained.feature_names), notes=notes, floor=self._floor)

    def certificate(self) -> Any:
        """The measurements of the decomposition and their tolerances."""
        charts, measured = _charts(), self._decomposition.certificate
        unique = {
            True: "unique",
            False: f"not unique; {count_of(len(measured.redundant), 'subset')} can be expressed by others",
            None: "",
        }
        sentences = [*filter(None, [unique[measured.unique]]), *measured.notes]
        notes = [line for sentence in sentences for line in textwrap.wrap(sentence, LINE)]
        return charts.certificate_chart(records.certificate_records(measured), exact=measured.exact, notes=notes)

    def image(self, row: Any, shape: tuple[int, int], *, output: Output = None) -> Any:
        """The Shapley value of each feature at one row, laid out as an image, row by row.

        Args:
            row: a table of one row, or a mapping from features to levels.
            shape: rows and columns of the image, (28, 28) for 784 features.
            output: which outputs; one alone is drawn large, with signs.
        """
        charts = _charts()
        table = _one_row(row, self._decomposition.schema)
        explained = self._explained(table, None, output)
        several = ["output= draws a single output, with signs"] if len(explained.output_names) > 1 else []
        outside = _outside(self._decomposition, table, explained)
        return charts.image_chart(row_records.image_records(explained, shape), notes=[*outside, *several])

    def __repr__(self) -> str:
        names = [name for name in vars(Plots) if not name.startswith("_")]
        return f"<Plots: {', '.join(names)}; {GAME}>"

    @property
    def _floor(self) -> float:
        """The size below which a value is rounding."""
        return records.rounding(self._decomposition)

    def _explained(self, X: Any, model: Any, output: Output, stderr: bool = False) -> Explanation:
        schema, names = self._decomposition.schema, self._outputs(output)
        explained = self._decomposition.explain(X, model, stderr=stderr)
        return explained if schema.single else explained[..., [schema.outputs.index(name) for name in names]]

    def _outputs(self, output: Output) -> tuple[str, ...]:
        """Names of the outputs to draw; raises if there is none of that name, or too many for one chart."""
        known = self._decomposition.schema.outputs
        asked = known if output is None else output if isinstance(output, list | tuple) else [output]
        names = tuple(dict.fromkeys(known[output_number(one, known)] for one in asked))
        if not 0 < len(names) <= MOST_PANELS:
            raise InputError(
                f"{len(names):,} outputs were requested; a chart has room for {MOST_PANELS}",
                remedy=["Choose some, for example ", Parameter("output", known[0]), f" or {list(known[:3])!r}"],
            )
        return names

    def _network_notes(self, output: str | None, nodes: int, edges: int) -> list[str]:
        schema, subsets = self._decomposition.schema, self._decomposition.family.subsets
        pairs, features = sum(len(subset) == 2 for subset in subsets), len(schema.features)
        several = f"all {len(schema.outputs)} outputs added up" if len(schema.outputs) > 1 else None
        return [
            *filter(None, [several if output is None else f"output {short(output)}"]),
            *([f"the {nodes:,} of {features:,} features of largest importance"] if nodes < features else []),
            *([f"the {edges:,} strongest pairs of these features, of {pairs:,} pairs in all"] if edges < pairs else []),
            *([] if pairs else ["no pair is part of this decomposition"]),
        ]


def _charts() -> Any:
    """The chart functions, imported on first use: everything else works without altair."""
    from exanova.show import charts

    return charts


def _of(listed: list[records.Record], outputs: Sequence[str]) -> list[records.Record]:
    """Records of the chosen outputs, in the order they were chosen."""
    chosen = set(outputs)
    return [record for record in listed if record["output"] in chosen]


def _checked(top: Any) -> int:
    check_whole("top", top)
    return int(top)


def _outside(decomposition: Decomposition, X: Any, explained: Explanation) -> list[str]:
    count = int(explained.outside.sum())
    if not count:
        return []
    unseen = decomposition.read_at(decomposition.encode(Table.read(X))).unseen
    return [f"{count:,} of {explained.outside.size:,} rows hold a combination that never occurred; its effect {unseen}"]


def _one_row(row: Any, schema: Schema) -> Any:
    """A table of one row from a table of one row, a mapping of features to levels, a series, or a flat array.

    A mapping becomes a table of the library that was fitted; keys that are not features are ignored.
    """
    if isinstance(row, np.ndarray) and row.ndim == 1:
        row = row[None, :]
    elif isinstance(row, Mapping):
        row = _from_mapping(row, schema)
    elif not hasattr(row, "columns") and callable(getattr(row, "to_dict", None)):
        row = _from_mapping(row.to_dict(), schema)  # a row cut out of a pandas table
    table = Table.read(row)
    if table.n_rows != 1:
        raise InputError(f"{table.n_rows:,} rows were given; this chart shows one: give X[k:k+1], or a mapping.")
    return row


def _from_mapping(row: Mapping[Any, Any], schema: Schema) -> Any:
    given = {str(name): level for name, level in row.items()}
    absent = [name for name in schema.features if name not in given]
    if absent:
        raise InputError(
            f"the row has no level for {', '.join(map(repr, absent[:5]))}"
            + (f" and {len(absent) - 5:,} more" if len(absent) > 5 else "")
            + "; give every feature that was fitted, with None where it is missing."
        )
    if schema.kind == "numpy":
        return np.array([[given[name] for name in schema.features]], dtype=object)
    return frame_of_kind(schema.kind, {name: [given[name]] for name in schema.features})
