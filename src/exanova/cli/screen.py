"""Results on a terminal, as tables of rich; names are shown as plain text, never as markup."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from exanova.cli.option_names import with_options
from exanova.cli.output import known_errors, strongest
from exanova.cli.text import visible
from exanova.design.memory import readable
from exanova.effects.effect import GAME, Effect
from exanova.explain.comparison import Comparison
from exanova.printed_numbers import plus_minus, printed, printed_change, printed_error
from exanova.report.findings import main_findings
from exanova.report.words import verdicts
from exanova.show.records import importance_records, legible
from exanova.solve.plan import Plan

OUTPUTS = 4
"""Outputs with a column each; the others are in ``--json`` and in the report."""

BAR = 20
"""Length of the longest bar."""


class Screen:
    """Standard output: a terminal, or plain text if it is redirected."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)

    def decomposition(self, anova: Any, effects: int) -> None:
        """Summary, certificate in words, importances, strongest effects."""
        plan, outputs = anova.plan_, anova.output_names_
        self._heading(f"Functional ANOVA of {_named(outputs)}")
        distinct = f"{plan.distinct_rows:,} distinct" if plan.distinct_rows else "as moments"
        self._line(f"{plan.rows:,} rows ({distinct}), {anova.n_features_in_} features, route {plan.route}")
        self._findings(anova)
        self._certificate(anova)
        self._importance(anova)
        self._strongest(anova, effects)
        self._redundant(anova.certificate_.redundant)
        self._line(f"game: {GAME}")

    def effect(self, effect: Effect, least: float) -> None:
        """The table of one effect; values up to ``least`` are zero up to rounding and shown as 0."""
        self._heading(f"Effect of {_subset(effect.features)}")
        table = Table(box=box.SIMPLE_HEAD)
        for name in effect.features:
            table.add_column(Text(legible(name)), overflow="fold")
        table.add_column("share of rows", justify="right")
        table.add_column("rows", justify="right")
        outputs, errors = _value_columns(table, effect.output_names), known_errors(effect)
        alone = outputs == 1 and errors is not None
        if alone:
            table.add_column("stderr", justify="right")
        means = effect.model_mean[:, :outputs] if outputs == 1 else np.full((len(effect.levels), 1), np.nan)
        if np.isfinite(means).all():
            table.add_column("mean of the model", justify="right")
        for c, levels in enumerate(effect.levels):
            values = [printed_change(v) if abs(v) > least else "0" for v in effect.values[c, :outputs]]
            if errors is not None:
                known = errors[c, :outputs]
                texts = ["" if e != e else printed_error(e) if e > least else "0" for e in known]  # NaN is not itself
                values = [*values, *texts] if alone else [f"{v} ± {e}" for v, e in zip(values, texts, strict=True)]
            values += [printed(means[c, 0])] if np.isfinite(means).all() else []
            rows = _count(effect.rows[c])
            table.add_row(*(Text(legible(level)) for level in levels), f"{effect.probability[c]:.4f}", rows, *values)
        self._console.print(table)
        if not effect.has_stderr:
            self._line("no standard errors: other subsets can express part of this effect on these rows")

    def comparison(self, comparison: Comparison, count: int) -> None:
        """The largest changes, each with the cell that changed most."""
        self._heading("Largest changes (squared norm of the difference)")
        self._line(f"game: {comparison.game}")
        table = Table(box=box.SIMPLE_HEAD)
        for name in ("subset", "before", "after", "difference", "largest change"):
            table.add_column(name, justify="left" if name in ("subset", "largest change") else "right", overflow="fold")
        for change in comparison.changes[:count]:
            norms = (change.norm_before, change.norm_after, change.difference)
            where = "" if change.found_in == "both" else f" (only in the {change.found_in})"
            where = where if change.comparable else " (no levels in common)"
            table.add_row(
                Text(_subset(change.features) + where), *(printed(n.sum()) for n in norms), Text(_largest_cell(change))
            )
        self._console.print(table)
        self._more(len(comparison.changes) - count, "subsets", "--changes")
        for note in comparison.notes:
            self._line(f"note: {note}")

    def lines(self, text: str) -> None:
        """A text, line by line."""
        for line in with_options(text).splitlines():
            self._console.print(Text(visible(line)), soft_wrap=True)

    def plan(self, plan: Plan) -> None:
        """What a fit would do, cost and hold."""
        orders = " + ".join(f"{k:,}" for k in plan.functions_by_order)
        self._heading("Plan (nothing was fitted)")
        self._pairs(
            [
                ("rows", f"{plan.distinct_rows:,} distinct of {plan.rows:,}"),
                ("features", f"{plan.features} that vary"),
                ("largest order", "all" if plan.max_order is None else str(plan.max_order)),
                ("subsets", f"{plan.subsets:,}" if plan.subsets else "chosen by the selection"),
                ("functions", f"{plan.functions:,} = {orders}"),
                ("route", plan.route),
                ("memory", f"about {readable(plan.memory)} (limit: {readable(plan.memory_limit)})"),
                ("passes over the rows", f"{plan.passes:,}"),
                ("time", f"about {_seconds(plan.seconds)} s, plus the calls of the model"),
                ("model calls", f"{plan.model_calls:,} rows"),
                *([("files", plan.source)] if plan.source else []),
            ],
        )

    def files(self, written: Sequence[tuple[str, str]]) -> None:
        """Files that were written."""
        for what, path in written:
            self._line(f"{what}: {legible(path)}")

    def next_commands(self, commands: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Commands to run next."""
        self._heading("Next steps")
        for why, words in commands:
            self._console.print(Text(f"  {shlex.join(words)}", style="bold"), soft_wrap=True)
            self._line(f"      {why}")

    def _findings(self, anova: Any) -> None:
        """The findings, in the words of the report."""
        for paragraph in main_findings(anova.decomposition_):
            self._line("")
            self._line(paragraph)

    def _certificate(self, anova: Any) -> None:
        self._line("")
        for v in verdicts(anova.decomposition_):
            style = "bold yellow" if v.care else {True: "bold green", False: "bold red", None: "bold"}[v.good]
            self._console.print(Text.assemble(f"{v.question} ", (v.answer, style)))
            self._console.print(Padding(Text(with_options(v.because)), (0, 0, 0, 4)))
        self._line("")

    def _importance(self, anova: Any) -> None:
        kind = "variance" if anova.certificate_.cancels else "l1"
        amounts: dict[str, list[float]] = defaultdict(list)
        texts: dict[str, list[str]] = defaultdict(list)
        for record in importance_records(anova.decomposition_, kind):
            amounts[record["feature"]].append(record["value"])
            texts[record["feature"]].append(_with_error(record["value"], record["stderr"]))
        self._heading(f"Importance of features ({IMPORTANCE[kind]})")
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("feature", overflow="fold")
        outputs = _value_columns(table, anova.output_names_)
        table.add_column("", no_wrap=True)
        total = {name: sum(map(abs, values)) for name, values in amounts.items()}
        largest = max(total.values(), default=0.0) or 1.0
        for name in list(amounts)[:SHOWN]:
            bar = "█" * round(BAR * total[name] / largest)
            table.add_row(Text(legible(name)), *texts[name][:outputs], Text(bar, style="blue"))
        self._console.print(table)
        self._more(len(amounts) - SHOWN, "features", None)

    def _strongest(self, anova: Any, count: int) -> None:
        effects = strongest(anova, count)
        self._heading("Strongest effects (squared norm)")
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("subset", overflow="fold")
        table.add_column("order", justify="right")
        outputs = _value_columns(table, anova.output_names_)
        for entry in effects:
            errors = [None] * outputs if entry["stderr"] is None else entry["stderr"]
            norms = [_with_error(v, e) for v, e in zip(entry["squared_norm"][:outputs], errors, strict=False)]
            table.add_row(Text(_subset(entry["features"])), str(len(entry["features"])), *norms)
        self._console.print(table)
        self._more(len(anova.effects_) - 1 - count, "effects", "--effects")
        if why := anova.decomposition_.uncertainty.lonely:
            self._line(f"no standard errors: {why}")

    def _redundant(self, redundant: Sequence[Any]) -> None:
        if redundant:
            self._line("Subsets that carry the same information on these rows (--ties splits their effects):")
        for entry in redundant[:5]:
            others = ", ".join(_subset(s) for s in entry.shared_with[:4])
            self._line(f"  {_subset(entry.features)} ~ {others}{', ...' if len(entry.shared_with) > 4 else ''}")
        self._more(len(redundant) - 5, "subsets", None)

    def _pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        table = Table(box=None, show_header=False, padding=(0, 2))
        for name, value in pairs:
            table.add_row(name, Text(value))
        self._console.print(table)

    def _heading(self, text: str) -> None:
        self._console.print(Text(text, style="bold"))

    def _line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _more(self, count: int, what: str, option: str | None) -> None:
        if count > 0:
            self._line(f"  and {count:,} more {what}{f' ({option} N shows more)' if option else ''}")


IMPORTANCE = {
    "l1": "E|effect|, interactions shared equally among their features",
    "variance": "net shares of the variance, because effects cancel; interactions shared equally among their features",
}
"""What importances measure."""

SHOWN = 10
"""Number of features listed by importance."""


@contextmanager
def busy(doing: str, quiet: bool) -> Iterator[None]:
    """Show the current step on standard error, if that is a terminal."""
    console = Console(stderr=True, highlight=False, markup=False)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(Text(doing)):
        yield


def _value_columns(table: Table, outputs: Sequence[str]) -> int:
    """Add a column for each of the first outputs; returns how many."""
    shown = outputs[:OUTPUTS]
    for name in shown:
        table.add_column(Text("value" if len(outputs) == 1 else legible(name)), justify="right", overflow="fold")
    return len(shown)


def _with_error(value: float, stderr: float | None) -> str:
    """A number with its standard error, where that is known."""
    return printed(value) if stderr is None else f"{printed(value)}{plus_minus(stderr)}"


def _count(rows: float) -> str:
    return "" if rows != rows else f"{rows:,.0f}" if rows == int(rows) else f"{rows:,.1f}"


def _largest_cell(change: Any) -> str:
    if not change.cells or not change.features:
        return ""
    cell = change.cells[0]
    k = int(abs(cell.after - cell.before).argmax())
    levels = ", ".join(map(legible, cell.levels))
    return f"{levels}: {printed(cell.before[k])} to {printed(cell.after[k])}"


def _subset(features: Sequence[str]) -> str:
    return " x ".join(map(legible, features)) or "(intercept)"


def _named(outputs: Sequence[str]) -> str:
    if len(outputs) == 1:
        return legible(outputs[0])
    shown = ", ".join(map(legible, outputs[:6]))
    return f"{len(outputs)} outputs ({shown}{', ...' if len(outputs) > 6 else ''})"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"
