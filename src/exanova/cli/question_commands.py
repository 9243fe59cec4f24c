"""The commands that answer questions: read files, query the library, print or write the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exanova.atomic_files import write_whole
from exanova.cli import text
from exanova.cli.columns import as_numbers, check_columns, learned_kinds, predictions
from exanova.cli.output import TABLES, Target, Targets, comparison_document, emit_document, report_targets, write_table
from exanova.cli.saved_commands import Printing
from exanova.cli.screen import Screen, busy
from exanova.cli.table_files import ReadOptions, display_name, read_table
from exanova.data.table import Table
from exanova.errors import InputError
from exanova.estimator import load
from exanova.explain.difference import Difference
from exanova.explain.mean_change import MeanChange
from exanova.explain.monitor import drifts
from exanova.explain.reasons import Reasons
from exanova.explain.relativities import Relativities
from exanova.export.workbook import tariff_workbook
from exanova.packages import package
from exanova.printed_numbers import printed
from exanova.report.explorer import MOST_FREQUENT

WORKBOOK = ".xlsx"
"""The suffix of a tariff as a workbook."""


@dataclass(frozen=True)
class Compared:
    """Which rows are compared: columns of groups, strata, weights and predictions, and groups of features."""

    by: str
    within: str | None
    weight: str | None
    weights: Any
    prediction: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that are named."""
        return [name for name in (self.by, self.within, self.weight, *self.prediction) if name is not None]


@dataclass(frozen=True)
class Shown:
    """How an answer is shown: the file to write, by subset or by feature, whether to replace files, as JSON."""

    output: str | None
    subsets: bool
    force: bool
    json: bool


def compare(before: str, after: str, count: int, limit: float | None, json: bool) -> bool:
    """Compare two saved decompositions of the same columns; whether something changed by more than the limit."""
    first, second = load(before), load(after)
    comparison, change = first.compare(second), first.change(second)
    watched = drifts(comparison, change)
    above = [] if limit is None else [drift for drift in watched if not drift.amount <= limit]
    if json:
        monitor = {} if limit is None else {"monitor": {"limit": limit, "failed": bool(above), "above": above}}
        document = {**comparison_document(comparison, count), "mean": change_document(change), "watched": watched}
        emit_document(document | monitor)
        return bool(above)
    screen = Screen()
    screen.comparison(comparison, count)
    screen.lines(str(change))
    if limit is not None and not above:
        screen.lines(
            f"nothing changed by more than {limit:g}; the largest is {watched[0].what}: {printed(watched[0].amount)}"
        )
    for drift in above:
        amount = "cannot be compared" if np.isinf(drift.amount) else printed(drift.amount)
        screen.lines(f"above {limit:g}: {drift.what}: {amount}")
    return bool(above)


def change_document(change: MeanChange) -> dict[str, Any]:
    """The parts of a change of the mean."""
    names = ("subsets", "mix", "mix_stderr", "model", "model_stderr", "found_in", "shared", "total", "total_stderr")
    sums = ("means", "mix_total", "mix_total_stderr", "model_total", "model_total_stderr", "notes")
    return {**{name: getattr(change, name) for name in (*names, *sums)}, "standard_errors": change.included}


def difference(
    saved: str, data: str, reading: ReadOptions, compared: Compared, shown: Shown, rules: dict[str, Any]
) -> None:
    """Split the gap between groups of rows."""
    targets = _targets(shown, [saved, data])
    anova = load(saved).set_params(**rules)
    table = read_table(data, reading, learned_kinds(anova))
    check_columns(table, [*anova.feature_names_in_, *compared.columns], display_name(data))
    gap = anova.difference(
        table,
        by=compared.by,
        within=compared.within,
        model=predictions(anova, table, compared.prediction),
        sample_weight=None if compared.weight is None else as_numbers(table, compared.weight, "--weight"),
        weights=compared.weights,
        groups=text.groups(compared.groups, list(anova.feature_names_in_)),
    )
    frame = gap.to_frame("subset" if shown.subsets else "feature")
    targets.write("--output", lambda path: write_table(path, as_arrow(frame)))
    if shown.json:
        emit_document(difference_document(gap))
    elif shown.output is None:
        Screen().lines(str(gap))


@dataclass(frozen=True)
class AskedReasons:
    """Options of ``rows --reasons``: how many, in which direction, against what, for which output, columns, groups."""

    count: int
    direction: str
    against: str
    output: str | None
    prediction: tuple[str, ...]
    ids: tuple[str, ...]
    groups: tuple[str, ...]


def reasons(
    saved: str, data: str, reading: ReadOptions, asked: AskedReasons, shown: Shown, rules: dict[str, Any]
) -> None:
    """The strongest reasons of every row."""
    targets = _targets(shown, [saved, data])
    if len(asked.ids) > 1:
        raise InputError("--reasons takes one --id column; give one.")
    anova = load(saved).set_params(**rules)
    table = read_table(data, reading, learned_kinds(anova))
    check_columns(table, [*anova.feature_names_in_, *asked.prediction, *asked.ids], display_name(data))
    direction: Any = asked.direction
    row_reasons = anova.reasons(
        table,
        asked.count,
        direction=direction,
        against=_against(asked.against, table),
        model=predictions(anova, table, asked.prediction),
        output=asked.output,
        id=asked.ids[0] if asked.ids else None,
        groups=text.groups(asked.groups, list(anova.feature_names_in_)),
    )
    targets.write("--output", lambda path: write_table(path, as_arrow(row_reasons.to_frame())))
    if shown.json:
        emit_document(reasons_document(row_reasons))
    elif shown.output is None:
        Screen().lines(
            "\n".join([*(line for row in row_reasons for line in row_reasons.lines_of(row)), *row_reasons.notes])
        )


def _against(given: str, table: Any) -> Any:
    """The mean, the best, or a row of the table by its number."""
    if not given.isdecimal():
        return given
    if int(given) >= table.num_rows:
        raise InputError(f"--against {given} was given; the table has {table.num_rows:,} rows, numbered from 0.")
    return table.slice(int(given), 1)


def reasons_document(row_reasons: Reasons) -> dict[str, Any]:
    """Every reason with its sentence."""
    rows = [
        {**vars(row), "reasons": [{**vars(r), "sentence": r.sentence(row_reasons.output)} for r in row.reasons]}
        for row in row_reasons
    ]
    asked = {
        "game": row_reasons.game,
        "output": row_reasons.output,
        "direction": row_reasons.direction,
        "against": row_reasons.against,
    }
    return {**asked, "notes": row_reasons.notes, "rows": rows}


def relativities(saved: str, base: Sequence[str], shown: Shown) -> None:
    """The tariff of a saved decomposition."""
    targets = _targets(shown, [saved], (*TABLES, WORKBOOK))
    anova = load(saved)
    tariff = anova.relativities(_base(base))
    targets.write("--output", lambda path: _write_tariff(path, tariff))
    if shown.json:
        names = ("base", "base_value", "factors", "losses", "link", "names", "notes", "game")
        emit_document({name: getattr(tariff, name) for name in names})
    elif shown.output is None:
        Screen().lines(str(tariff))


def _write_tariff(path: str, tariff: Relativities) -> None:
    """Write a tariff as a workbook with its loss, or as one table."""
    if path.lower().endswith(WORKBOOK):
        write_whole(path, tariff_workbook(tariff))
    else:
        write_table(path, as_arrow(tariff.to_frame()))


def _base(given: Sequence[str]) -> Any:
    """Base levels by feature, or the most frequent."""
    pairs = [text.partition("=") for text in given]
    if not all(equals for _, equals, _ in pairs):
        raise InputError("--base needs a feature and its level, such as --base region=north.")
    return {name: level for name, _, level in pairs} if pairs else MOST_FREQUENT


@dataclass(frozen=True)
class ReportOptions:
    """Options of ``report``: rows with their columns, an earlier fit, groups of features, base levels, a title."""

    data: str | None
    prediction: tuple[str, ...]
    id: str | None
    by: str | None
    since: str | None
    groups: tuple[str, ...]
    base: tuple[str, ...]
    title: str | None

    @property
    def columns(self) -> list[str]:
        """The columns that are named."""
        return [name for name in (*self.prediction, self.id, self.by) if name is not None]


def report(
    saved: str, path: str, reading: ReadOptions, options: ReportOptions, rules: dict[str, Any], printing: Printing
) -> None:
    """Write the report of a saved decomposition, with rows and answers."""
    if options.data is None and options.columns:
        raise InputError("--prediction, --id and --by name columns of a table; give it with --data DATA.")
    targets = Targets(report_targets(path, "FILE"), [saved, options.data, options.since], printing.force)
    anova = load(saved).set_params(**rules)
    table = None
    if options.data is not None:
        table = read_table(options.data, reading, learned_kinds(anova))
        check_columns(table, [*anova.feature_names_in_, *options.columns], display_name(options.data))
    asked = {
        "model": None if table is None else predictions(anova, table, options.prediction),
        "id": options.id,
        "by": options.by,
        "since": None if options.since is None else load(options.since),
        "groups": text.groups(options.groups, list(anova.feature_names_in_)),
        "base": _base(options.base),
        "title": options.title,
        "about": {} if options.data is None else {"Data": Path(options.data).name},
    }
    with busy("writing the report", printing.quiet):
        targets.write("FILE", lambda place: anova.report(place, X=table, **asked))
    if printing.json:
        emit_document({"report": path})
    elif not printing.quiet:
        Screen().files([("report", path)])


def difference_document(gap: Difference) -> dict[str, Any]:
    """The parts of every contrast."""
    return {
        "game": gap.game,
        "outputs": gap.schema.outputs,
        "subsets": gap.subsets,
        "features": gap.features,
        "standard_errors": gap.included,
        "notes": gap.notes,
        "contrasts": gap.contrasts,
    }


def as_arrow(frame: Any) -> Any:
    """A table of any library as one of pyarrow."""
    table = Table.read(frame)
    return package("pyarrow").table({name: table.column(name).values.tolist() for name in table.names})


def _targets(shown: Shown, inputs: Sequence[str], suffixes: tuple[str, ...] = TABLES) -> Targets:
    wanted = [] if shown.output is None else [Target("--output", shown.output, suffixes)]
    return Targets(wanted, inputs, shown.force)
