"""The figures of a report, section by section, and the data that its script draws and lists them from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from exanova.report.explorer import ROW_FEATURES
from exanova.report.payload import Payload
from exanova.report.summary import Summary
from exanova.show.charts import (
    certificate_chart,
    effect_chart,
    importance_chart,
    network_chart,
    pair_chart,
    theme,
    waterfall_chart,
)
from exanova.show.charts.explained import STEP, step_names
from exanova.show.error_bars import UNIDENTIFIED
from exanova.show.records import Record, legible, short

WHOLE, BROAD = 330, 150
"""Pixels of a heat map, without its axes, that do not fit beside another on a screen, and on paper."""

PARTNERS = 5
"""Subsets named beside a redundant one; a file has all of them."""

ENDS = ("base", "residual", "total")
"""Steps of a waterfall that are no feature."""


@dataclass(frozen=True)
class Figure:
    """A picture with its words; the table behind it goes by the same key.

    Attributes:
        key: name of the picture and of its table.
        title: heading.
        notes: what is said about it.
        label: the picture in words, for those who do not see it.
        room: "whole" if it needs the width of a screen, "broad" if that of a sheet of paper, else nothing.
    """

    key: str
    title: str
    notes: tuple[str, ...]
    label: str
    room: str = ""


@dataclass(frozen=True)
class Listed:
    """A column of a table as a reader sees it.

    Attributes:
        field: where its values are in a record.
        title: heading.
        kind: "text", "number", "percent", "error" (two digits), or "value" for a number on the scale of the model,
            where rounding is 0.
        only: "page" or "file", if it is in one of the two only.
    """

    field: str
    title: str
    kind: str = "text"
    only: str = ""


VALUE, PROBABILITY = Listed("value", "effect", "value"), Listed("probability", "probability", "percent")
ROWS, STDERR = Listed("rows", "rows", "number"), Listed("stderr", "± (standard error)", "error")
MEAN = Listed("mean", "mean of the model here, less its overall mean", "value")
AMOUNT = Listed("value", "E|f|", "value")


OPTIONAL = (ROWS, STDERR, MEAN)
"""Columns of which nothing may be known."""


class Page:
    """The figures of a summary and the data of the page."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self.payload = Payload(summary.outputs)
        self.payload.content.update(config=theme(), rounding=summary.rounding, listed={}, rows=[])
        self.importance = self._importance()
        self.effects = [self._effect(f"effect-{k}", effect) for k, effect in enumerate(summary.effects)]
        self.network = self._network() if summary.networks else None
        self.pairs = [self._pair(f"pair-{k}", pair) for k, pair in enumerate(summary.pairs)]
        self.certificate = self._certificate()
        self._fit()
        self._strongest()
        self._significance()
        self._redundancy()
        if summary.sample is not None:
            self._rows(summary.sample)

    @property
    def has_faded(self) -> bool:
        """Whether some level has few rows."""
        return any(record["few"] for effect in self._summary.effects for record in effect["records"])

    @property
    def has_means(self) -> bool:
        """Whether the mean of the model is known at levels."""
        return any(record["mean"] is not None for effect in self._summary.effects for record in effect["records"])

    @property
    def has_faded_pairs(self) -> bool:
        """Whether some cell of a pair has few rows."""
        return any(record["few"] for pair in self._summary.pairs for record in pair["records"])

    def _importance(self) -> Figure:
        records, kind = self._summary.importance, self._summary.importance_kind

        def chart(alike: list[Record]) -> Any:
            notes = self._summary.importance_notes
            return importance_chart(alike, kind=kind, floor=self._summary.rounding, notes=notes)

        drawn = self.payload.picture("importance", chart, records)
        name = "net share of the variance" if kind == "variance" else "importance"
        self._table("importance", records, Listed("feature", "feature"), Listed("value", name, "value"), STDERR)
        return Figure("importance", "Importance of features", drawn.notes, "Bars: importance of each feature.")

    def _effect(self, key: str, effect: Record) -> Figure:
        name, records = effect["feature"], effect["records"]

        def chart(alike: list[Record]) -> Any:
            return effect_chart(alike, feature=name, floor=self._summary.rounding, notes=notes)

        notes = [UNIDENTIFIED] if effect["identified"] is False else []
        drawn = self.payload.picture(key, chart, records)
        self._table(key, records, Listed("level", "level"), PROBABILITY, ROWS, VALUE, STDERR, MEAN)
        return Figure(key, legible(name), drawn.notes, f"The effect of each level of {short(name)}.")

    def _pair(self, key: str, pair: Record) -> Figure:
        first, second, (rows, columns) = pair["first"], pair["second"], pair["levels"]

        def chart(alike: list[Record]) -> Any:
            sizes = rows, columns
            return pair_chart(alike, first=first, second=second, sizes=sizes, floor=self._summary.rounding)

        drawn = self.payload.picture(key, chart, pair["records"])
        levels = (
            Listed("first", legible(first)),
            Listed("second", legible(second)),
            Listed("observed", "observed"),
        )
        self._table(key, pair["records"], *levels, PROBABILITY, ROWS, VALUE, STDERR)
        title = f"{legible(first)} × {legible(second)}"
        label = f"Heat map: the interaction of {short(first)} and {short(second)}."
        return Figure(key, title, drawn.notes, label, _room(drawn.width))

    def _network(self) -> Figure:
        networks, floor = self._summary.networks, self._summary.rounding
        charts = [network_chart(network["nodes"], network["edges"], floor=floor) for network in networks]
        drawn = self.payload.chart("network", charts)
        edges = [
            {**({} if network["output"] is None else {"output": network["output"]}), **edge}
            for network in networks
            for edge in network["edges"]
        ]
        self._table("network", edges, Listed("first", "feature"), Listed("second", "with"), AMOUNT)
        label = "Network: features as nodes, the strength of each pair as the width of the line between them."
        return Figure("network", "Which features interact", drawn.notes, label)

    def _certificate(self) -> Figure:
        records = self._summary.certificate
        self.payload.chart("certificate", [certificate_chart(records, exact=self._summary.verdicts[-1]["good"])])
        measured = Listed("measured", "measured", "number"), Listed("tolerance", "tolerance", "number")
        words = Listed("name", "name"), Listed("meaning", "meaning")
        self._table("certificate", records, *words, *measured, Listed("met", "met"))
        label = "Each measured error beside the tolerance it is held against, on a logarithmic scale."
        return Figure("certificate", "What was measured", (), label)

    def _fit(self) -> None:
        records = [{"of": r["output"], **{k: v for k, v in r.items() if k != "output"}} for r in self._summary.fit]
        measures = [
            Listed("mean", "mean", "value"),
            Listed("r2", "R²", "number"),
            Listed("mse", "MSE", "number"),
            Listed("relative_mse", "MSE / E[f²]", "percent"),
            Listed("within_variance", "variance between equal rows", "number"),
            Listed("r2_held_out", "R² on held-out rows", "number"),
            Listed("mse_held_out", "MSE on held-out rows", "number"),
        ]
        known = [column for column in measures if any(record[column.field] is not None for record in records)]
        self._table("fit", records, Listed("of", "output"), *known)

    def _strongest(self) -> None:
        records = [{**record, "subset": _joined(record["subset"])} for record in self._summary.strongest]
        self._table("strongest", records, Listed("subset", "subset"), Listed("order", "order", "number"), AMOUNT)

    def _significance(self) -> None:
        numbers = [Listed(field, title, "error") for field, title in (("p", "p"), ("q", "q (false discoveries)"))]
        clear = Listed("significant", "told from zero")
        statistics = Listed("statistic", "statistic", "number"), Listed("df", "directions", "number")
        self._table(
            "significance", self._summary.significance, Listed("subset", "subset"), *statistics, *numbers, clear
        )

    def _redundancy(self) -> None:
        records = [
            {
                "subset": _joined(entry["subset"]),
                "some": "; ".join(map(_joined, entry["shared_with"][:PARTNERS])),
                "count": len(entry["shared_with"]),
                "all": "; ".join(map(_joined, entry["shared_with"])),
            }
            for entry in self._summary.redundancy
        ]
        self._table(
            "redundancy",
            records,
            Listed("subset", "subset"),
            Listed("some", f"says the same, in part, as (the first {PARTNERS})", only="page"),
            Listed("all", "says the same, in part, as", only="file"),
            Listed("count", "of how many", "number"),
        )

    def _rows(self, sample: Record) -> None:
        template = [r for r in sample["rows"][0]["waterfall"] if r["output"] == self._summary.outputs[0]]
        chart = waterfall_chart(template, floor=self._summary.rounding).properties(height={"step": STEP})
        self.payload.chart("waterfall", [chart])
        self.payload.content["rows"] = [self._row(sample["features"], row) for row in sample["rows"]]
        self._listed(
            "row",
            Listed("row", "row", only="file"),
            *([Listed("output", "output", only="file")] if len(self._summary.outputs) > 1 else []),
            Listed("kind", "kind", only="file"),
            Listed("feature", "feature"),
            Listed("level", "level"),
            Listed("value", "Shapley value", "value"),
        )

    def _row(self, features: list[str], row: Record) -> Record:
        """A row with one waterfall and one table an output."""
        waterfalls, tables = [], []
        for output, values in zip(self._summary.outputs, row["values"], strict=True):
            steps = [record for record in row["waterfall"] if record["output"] == output]
            named = zip(steps, step_names(steps), strict=True)
            waterfalls.append([{**_step(record), "name": name} for record, name in named])
            ends = [_line(r["kind"], r["label"], None, r["value"]) for r in steps if r["kind"] in ENDS]
            tables.append([ends[0], *_largest(features, row["levels"], values), *ends[1:]])
        return {
            "row": row["row"],
            "outside": row["outside"],
            "waterfall": [self.payload.part(records) for records in waterfalls],
            "table": [self.payload.part(records) for records in tables],
        }

    def _table(self, key: str, records: Sequence[Record], *columns: Listed) -> None:
        """Records under a name, and the columns a reader sees; a file names the output beside them.

        Columns in which nothing is known are left out.
        """
        columns = tuple(c for c in columns if c not in OPTIONAL or any(r[c.field] is not None for r in records))
        by_output = bool(records) and "output" in records[0]
        fields = [*(["output"] if by_output else []), *(column.field for column in columns)]
        self.payload.table(key, [{field: record[field] for field in fields} for record in records])
        several = by_output and len(self._summary.outputs) > 1
        self._listed(key, *([Listed("output", "output", only="file")] if several else []), *columns)

    def _listed(self, key: str, *columns: Listed) -> None:
        self.payload.content["listed"][key] = [asdict(column) for column in columns]


def _room(width: int) -> str:
    return "broad whole" if width > WHOLE else "broad" if width > BROAD else ""


def _step(record: Record) -> Record:
    return {field: record[field] for field in ("kind", "label", "start", "end", "value", "output")}


def _line(kind: str, feature: str, level: str | None, value: float) -> Record:
    return {"kind": kind, "feature": feature, "level": level, "value": value}


def _largest(features: list[str], levels: list[str], values: list[float]) -> Iterator[Record]:
    """The features of a row with the largest values, in their own order, and what the others add up to."""
    order = sorted(range(len(values)), key=lambda i: -abs(values[i]))
    for i in sorted(order[:ROW_FEATURES]):
        yield _line("feature", features[i], levels[i], values[i])
    rest = order[ROW_FEATURES:]
    if rest:
        yield _line("rest", f"{len(rest):,} other features", None, sum(values[i] for i in rest))


def _joined(subset: Sequence[str]) -> str:
    return " × ".join(map(legible, subset)) or "(mean)"
