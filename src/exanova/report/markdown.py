"""A summary as Markdown, for a terminal, a pull request or a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from exanova.printed_numbers import plus_minus, printed, printed_change
from exanova.report.summary import Summary
from exanova.show.records import Record, legible

FEATURES, LEVELS, PAIRS, CELLS, OUTPUTS = 20, 12, 10, 3, 6
"""Features, levels of each, pairs, cells of each and outputs that a text shows; JSON and HTML have more."""


def to_markdown(summary: Summary) -> str:
    """The summary as text with headings and tables; what comes from the data is escaped."""
    outputs = summary.outputs[:OUTPUTS]
    parts = [
        [f"# {escaped(summary.title)}", "", escaped(summary.headline), ""],
        _first(summary),
        _does(summary),
        _importance(summary, outputs),
        _effects(summary, outputs),
        _pairs(summary, outputs),
        _higher(summary, outputs),
        _groups(summary, outputs),
        _change(summary, outputs),
        _domains(summary, outputs),
        _reasons(summary),
        _tariff(summary, outputs),
        _sure(summary),
        _redundancy(summary),
        _computed(summary),
        _left_out(summary),
        _provenance(summary),
    ]
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def escaped(text: str) -> str:
    r"""Text that Markdown shows unchanged.

    >>> escaped("a|b <i>*x*")
    'a\\|b &lt;i&gt;\\*x\\*'
    """
    shown = legible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", shown)


def _does(summary: Summary) -> Iterator[str]:
    yield from ("## What the model does", "")
    for paragraph in summary.findings:
        yield from (escaped(paragraph), "")
    yield from _facts(summary, "data")


def _facts(summary: Summary, of: str) -> Iterator[str]:
    yield from (f"- {escaped(f['name'])}: {escaped(f['value'])}" for f in summary.facts if f["of"] == of)
    yield ""


def _first(summary: Summary) -> Iterator[str]:
    yield from ("## Read this first", "", *map(_answered, summary.read_first), "")


def _answered(verdict: Record) -> str:
    stop = "." if verdict["because"][:1].isupper() else ""
    return f"- **{verdict['question']}** {escaped(verdict['answer'])}{stop} {escaped(verdict['because'])}"


def _sure(summary: Summary) -> Iterator[str]:
    yield from ("## How sure is this?", "", *map(_answered, summary.verdicts), "")
    held = any(record["r2_held_out"] is not None for record in summary.fit)
    fields = ["mean", "r2", "mse", *(["r2_held_out"] if held else [])]
    titles = ["output", "mean", "R²", "MSE", *(["R² on held-out rows"] if held else [])]
    rows = [[escaped(r["output"]), *(_number(r[field]) for field in fields)] for r in summary.fit[:OUTPUTS]]
    yield from _table(titles, rows)
    yield from _more(len(summary.fit) - len(rows), "outputs")


def _computed(summary: Summary) -> Iterator[str]:
    yield from ("## How it was computed", "")
    yield from _facts(summary, "computed")


def _provenance(summary: Summary) -> Iterator[str]:
    if summary.provenance:
        yield from ("## Provenance", "")
        yield from (f"- {escaped(fact['name'])}: {escaped(fact['value'])}" for fact in summary.provenance)
        yield ""


def _importance(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    net = "Net shares of the variance, divided equally among features: effects cancel."
    amount = "Mean size of the effects; what features do together is divided equally among them."
    yield from ("## Importance", "", net if summary.importance_kind == "variance" else amount, "")
    lines = _by(summary.importance, ("feature",), outputs, _with_error)
    rows = [[escaped(feature), *texts] for (feature,), texts in lines[:FEATURES]]
    yield from _table(["feature", *_headings(outputs)], rows)
    yield from _more(len(lines) - len(rows), "features")


def _effects(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    drawn = [effect for effect in summary.effects if not effect["small"]]
    if summary.effects:
        yield from ("## Effects of single features", "", f"Value ± standard error. {summary.errors}", "")
    if summary.small_effects:
        yield from (escaped(summary.small_effects), "")
    for effect in drawn[:FEATURES]:
        yield from (f"### {escaped(effect['feature'])}", "")
        lines = _by(effect["records"], ("level", "probability", "rows"), outputs, _with_error)
        rows = [[escaped(name), f"{100 * p:.3g} %", _number(n), *texts] for (name, p, n), texts in lines[:LEVELS]]
        titles = ["level", "share of rows", "rows", *_headings(outputs)]
        means = _means(effect["records"]) if len(outputs) == 1 else []
        if means:
            titles.append("mean of the model at the level, minus its overall mean")
            rows = [[*row, mean] for row, mean in zip(rows, means, strict=False)]
        yield from _table(titles, rows)
        yield from _more(effect["levels"] - len(rows), "levels")
        for note in effect["notes"]:
            yield from (escaped(note), "")
    yield from _more(len(drawn) - FEATURES, "features")


def _means(records: Sequence[Record]) -> list[str]:
    """The mean of the model at each level, of a single output; nothing where it is unknown."""
    known = all(record.get("mean") is not None for record in records)
    return [_signed(record["mean"]) for record in records] if known else []


def _pairs(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if not summary.pairs:
        return
    yield from ("## Strongest interactions", "")
    strongest = [r for r in summary.strongest if r["order"] > 1]
    lines = _by([{**r, "subset": _joined(r["subset"])} for r in strongest], ("subset",), outputs)
    yield from _table(
        ["subset", *_headings(outputs, "mean size")], [[s, *map(_number, values)] for (s,), values in lines[:FEATURES]]
    )
    yield from (f"The cells of each pair that carry most of it, {CELLS} per pair:", "")
    rows = [row for pair in summary.pairs[:PAIRS] for row in _cells(pair, outputs)]
    yield from _table(["pair", "levels", "share of rows", "rows", *_headings(outputs)], rows)


def _cells(pair: Record, outputs: Sequence[str]) -> Iterator[list[str]]:
    observed = [r for r in pair["records"] if r["observed"]]
    observed.sort(key=lambda r: -r["probability"] * abs(r["value"]))
    lines = _by(observed, ("first", "second", "probability", "rows"), outputs, _with_error)
    name = _joined([pair["first"], pair["second"]])
    for (first, second, share, rows), texts in lines[:CELLS]:
        yield [name, f"{escaped(first)}, {escaped(second)}", f"{100 * share:.3g} %", _number(rows), *texts]


def _higher(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if not summary.higher:
        return
    yield from ("## Interactions of three or more features", "", "The cells that carry most of each.", "")
    rows = []
    for effect in summary.higher:
        entries = [{**r, "levels": ", ".join(map(escaped, r["levels"]))} for r in effect["records"]]
        lines = _by(entries, ("levels", "probability", "rows"), outputs, _with_error)
        rows += [
            [_joined(effect["subset"]), levels, f"{100 * share:.3g} %", _number(count), *texts]
            for (levels, share, count), texts in lines[:CELLS]
        ]
    yield from _table(["features", "levels", "share of rows", "rows", *_headings(outputs)], rows)


def _groups(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if summary.groups is None:
        return
    yield from (f"## Why groups differ: {escaped(summary.groups['by'])}", "")
    for contrast in summary.groups["contrasts"]:
        for sentence in contrast["words"][:OUTPUTS]:
            yield from (escaped(sentence), "")
        lines = _by(contrast["records"], ("part",), outputs, _part)
        yield from _table(["part", *_headings(outputs)], [[escaped(part), *texts] for (part,), texts in lines])
    yield from (f"Standard errors: {escaped(summary.groups['included'])}.", "")


def _change(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if summary.change is None:
        return
    yield from ("## What changed since the earlier fit", "")
    for sentence in summary.change["words"][:OUTPUTS]:
        yield from (escaped(sentence), "")
    rows = [
        [escaped(r["output"]), escaped(r["part"]), *(_part(part) for part in _both(r))]
        for r in summary.change["records"]
        if r["output"] in outputs
    ]
    yield from _table(["output", "part", "the mix changed", "the model changed"], rows)
    yield from (
        f"- {escaped(note)}" for note in [f"Standard errors: {summary.change['included']}", *summary.change["notes"]]
    )
    yield ""


def _domains(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if summary.domains is None:
        return
    yield from ("## Groups of features as one", "")
    yield from (
        f"- {escaped(entry['group'])}: {', '.join(map(escaped, entry['features']))}"
        for entry in summary.domains["members"]
    )
    records = [{**r, "feature": r["group"]} for r in summary.domains["records"]]
    lines = _by(records, ("group",), outputs, _with_error)
    yield ""
    yield from _table(["group", *_headings(outputs)], [[escaped(group), *texts] for (group,), texts in lines])


def _reasons(summary: Summary) -> Iterator[str]:
    if summary.reasons:
        yield from ("## The lowest and the highest rows, and why", "")
    for entry in summary.reasons:
        yield from (f"### {escaped(entry['title'])}", "")
        for row in entry["rows"]:
            name = row["row"] if row["id"] is None else escaped(row["id"])
            yield f"- Row {name}: {escaped(row['words'])}"
            yield from (f"    {k}. {escaped(r['sentence'])}" for k, r in enumerate(row["reasons"], 1))
        yield ""


def _tariff(summary: Summary, outputs: Sequence[str]) -> Iterator[str]:
    if summary.tariff is None:
        return
    yield from ("## Tariff", "")
    for sentence in summary.tariff["words"][:OUTPUTS]:
        yield from (escaped(sentence), "")
    base = ", ".join(f"{escaped(b['feature'])} = {escaped(b['level'])}" for b in summary.tariff["base"])
    yield from (f"Base levels: {base}.", "")
    for factor in summary.tariff["factors"][:FEATURES]:
        entries = [{**r, "levels": ", ".join(map(escaped, r["levels"]))} for r in factor["records"]]
        lines = _by(entries, ("levels", "exposure"), outputs, _relativity)
        rows = [[levels, _number(exposure), *texts] for (levels, exposure), texts in lines[:LEVELS]]
        yield from _table([_joined(factor["subset"]), "exposure", *_headings(outputs, "relativity")], rows)
        yield from _more(factor["cells"] - len(rows), "cells")
    yield from (f"- {escaped(note)}" for note in summary.tariff["notes"])
    yield ""


def _relativity(record: Record) -> str:
    """A relativity with its interval."""
    if record["base"]:
        return "1 (base)"
    interval = "" if record["low"] is None else f" [{record['low']:.3f}, {record['high']:.3f}]"
    return f"{record['relativity']:.3f}{interval}"


def _both(record: Record) -> Iterator[Record]:
    yield from ({"value": record[name], "stderr": record[f"{name}_stderr"]} for name in ("mix", "model"))


def _part(record: Record) -> str:
    error = "" if record["stderr"] is None else plus_minus(record["stderr"])
    return f"{_signed(record['value'])}{error}"


def _redundancy(summary: Summary) -> Iterator[str]:
    yield from ("## Redundancy among features", "", escaped(summary.redundancy_note), "")
    for entry in summary.redundancy[:FEATURES]:
        yield f"- {_joined(entry['subset'])} ~ {', '.join(map(_joined, entry['shared_with']))}"
    yield from _more(len(summary.redundancy) - FEATURES, "subsets")
    yield ""


def _left_out(summary: Summary) -> Iterator[str]:
    if summary.left_out:
        yield from ("## Left out", "", *(f"- {escaped(sentence)}" for sentence in summary.left_out), "")


def _value(record: Record) -> float:
    return float(record["value"])


def _with_error(record: Record) -> str:
    """A value with its standard error, where that is known."""
    shown = _number(record["value"]) if "feature" in record else _signed(record["value"])
    return shown if record["stderr"] is None else f"{shown}{plus_minus(record['stderr'])}"


def _by(
    records: Iterable[Record], fields: tuple[str, ...], outputs: Sequence[str], of: Callable[[Record], Any] = _value
) -> list[tuple[tuple[Any, ...], list[Any]]]:
    """Values of the outputs side by side, for each combination of the fields, in the order they come."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for r in records:
        lines.setdefault(tuple(r[field] for field in fields), {})[r["output"]] = of(r)
    return [(key, [values.get(output, "") for output in outputs]) for key, values in lines.items()]


def _headings(outputs: Sequence[str], alone: str = "value") -> list[str]:
    return [alone] if len(outputs) == 1 else [escaped(output) for output in outputs]


def _joined(subset: Sequence[str]) -> str:
    return " x ".join(map(escaped, subset)) or "the mean"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _number(value: float | None) -> str:
    return "" if value is None else printed(value)


def _signed(value: float) -> str:
    return printed_change(value)


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield from (f"and {count:,} more {what}", "")
