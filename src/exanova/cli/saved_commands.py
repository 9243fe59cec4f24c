"""The commands that read a saved decomposition: explain rows, show effects, write tables."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.cli import output, text
from exanova.cli.columns import check_columns, learned_kinds, predictions
from exanova.cli.many_files import Explaining, is_large, is_many
from exanova.cli.output import STDOUT, Target, Targets, emit_document, report_targets, write_table
from exanova.cli.screen import Screen, busy
from exanova.cli.table_files import ReadOptions, display_name, read_table
from exanova.errors import InputError, OutsideSupportWarning
from exanova.estimator import FunctionalANOVA, load
from exanova.export import suffix_of
from exanova.provenance import file_hash
from exanova.show.records import rounding
from exanova.typing import FloatArray


@dataclass(frozen=True)
class RowOptions:
    """Options of ``rows``: where to write, which index up to which order, how to print, columns with predictions,
    columns to copy, and groups of features."""

    output: str
    index: str
    order: int
    force: bool
    json: bool
    quiet: bool
    prediction: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printing:
    """Whether to replace files, to print JSON, to print nothing."""

    force: bool
    json: bool
    quiet: bool


def rows(saved: str, data: str, reading: ReadOptions, options: RowOptions, rules: dict[str, Any]) -> None:
    """Explain new rows with a saved decomposition."""
    if is_many(data) or (is_large(data, reading) and options.output.lower().endswith(".parquet")):
        _rows_of_files(saved, data, reading, options, rules)
        return
    to_file = [Target("--output", options.output, output.TABLES)] if options.output != STDOUT else []
    targets = Targets(to_file, [saved, data], options.force)
    anova = load(saved).set_params(**rules)
    with busy(f"reading {display_name(data)}", options.quiet):
        table = read_table(data, reading, learned_kinds(anova))
    check_columns(table, list(anova.feature_names_in_), display_name(data))
    check_columns(table, [*options.prediction, *options.ids], display_name(data))
    residual = _residual(anova, table, options.prediction)
    values, outside = _values(anova, table, options, residual)
    values = output.with_columns(values, {name: table.column(name) for name in options.ids})
    summary = {"rows": table.num_rows, "outside_support": outside, "index": options.index}
    if to_file:
        targets.write("--output", lambda path: write_table(path, values))
    if options.json:
        emit_document(summary | ({"output": options.output} if to_file else {"values": values.to_pylist()}))
    elif not to_file:
        write_table(STDOUT, values)
    elif not options.quiet:
        Screen().files(
            [(f"{options.index} of {table.num_rows:,} rows, {outside:,} outside the support", options.output)]
        )


def _rows_of_files(saved: str, data: str, reading: ReadOptions, options: RowOptions, rules: dict[str, Any]) -> None:
    """Explain the rows of several files, one block at a time, into a folder of Parquet files."""
    if options.output == STDOUT:
        raise InputError("several files are explained into a folder; give --output FOLDER.")
    anova = load(saved).set_params(**rules)

    def explained(block: Any) -> tuple[Any, int]:
        values, outside = _values(anova, block, options, _residual(anova, block, options.prediction))
        return output.with_columns(values, {name: block.column(name) for name in options.ids}), outside

    columns = (*options.prediction, *options.ids)
    count, outside = Explaining(data, reading, columns, options.output, options.force).run(anova, explained)
    if options.json:
        emit_document({"rows": count, "outside_support": outside, "index": options.index, "output": options.output})
    elif not options.quiet:
        Screen().files([(f"{options.index} of {count:,} rows, {outside:,} outside the support", options.output)])


def show(
    saved: str,
    effects: int,
    names: Sequence[str],
    report: str | None,
    force: bool,
    json: bool,
    joined: bool = False,
) -> None:
    """Show a saved decomposition, or some of its effects, optionally with similar neighbours ``joined``."""
    targets = Targets(report_targets(report), [saved], force)
    anova = load(saved)
    features = list(anova.feature_names_in_)
    chosen = [anova.effects_[text.subset(name, features, "--effect")] for name in names]
    chosen = [effect.joined() for effect in chosen] if joined else chosen
    targets.write("--report", anova.report)
    if json:
        tables = {"effects": [output.effect_document(effect) for effect in chosen]} if chosen else {}
        emit_document({**output.decomposition_document(anova, effects), **tables})
        return
    screen = Screen()
    if not chosen:
        screen.decomposition(anova, effects)
    for effect in chosen:
        screen.effect(effect, rounding(anova.decomposition_))
    screen.files([("report", report)] if report else [])


def export(saved: str, path: str, sql: dict[str, Any], words: Sequence[str], printing: Printing) -> None:
    """Write the tables of a saved decomposition."""
    is_folder = not suffix_of(path)
    targets = Targets([Target("PATH", path, is_folder=is_folder)], [saved], printing.force)
    with busy(f"writing {path}", printing.quiet):
        anova = load(saved)
        about = {"File: decomposition": f"{saved} (sha256 {file_hash(saved)})"}
        about["Command of the export"] = shlex.join(["exanova", *words])
        targets.write("PATH", lambda place: anova.export(place, about=about, **sql))
    if printing.json:
        emit_document({"export": path})
    elif not printing.quiet:
        Screen().files([("export", path)])


def _residual(anova: FunctionalANOVA, table: Any, names: Sequence[str]) -> FloatArray | None:
    """(n, m) predictions in the file minus the fitted part; ``None`` if no predictions were named."""
    given = predictions(anova, table, names)
    if given is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # warned once, with the values
        return given - np.reshape(anova.predict(table), given.shape)


def _values(anova: FunctionalANOVA, table: Any, options: RowOptions, residual: FloatArray | None) -> tuple[Any, int]:
    """The values of all rows as a pyarrow table, and the number of rows outside the support."""
    groups = text.groups(options.groups, list(anova.feature_names_in_))
    if options.index == "SV":
        explained = anova.explain(table, groups=groups)
        return output.shapley_table(explained, residual), int(explained.outside.sum())
    interactions = anova.interactions(table, index=options.index, order=options.order, groups=groups)
    return output.interaction_table(interactions, residual), int(interactions.outside.sum())
