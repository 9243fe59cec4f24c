"""The HTML page of a summary: its figures, the data they are drawn from, and the template around them.

Text from the data reaches the page in two ways, and is escaped in both: through Jinja2, which escapes everything it
inserts, and as JSON in which no character can end a script element. The script puts it on the page as text, and the
policy of the page runs no script but its own two and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from exanova.errors import MissingPackageError
from exanova.show.embed import Payload
from exanova.show.labels import legible, short
from exanova.show.records import Record
from exanova.show.summary import Summary

OUTPUT = {"field": "output", "title": "output", "kind": "text", "file_only": True}
"""The column of outputs: on the page one is chosen, a file has them all."""


@dataclass(frozen=True)
class Figure:
    """A picture with its words and the table behind it.

    Attributes:
        key: name of the picture and of its table.
        title: heading.
        notes: what is said about it.
        label: the picture in words, for those who do not see it.
    """

    key: str
    title: str
    notes: tuple[str, ...]
    label: str


class Page:
    """The figures of a summary, section by section, and the data of the page."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self.payload = Payload(summary.outputs)
        self.payload.content.update(listed={}, config=_theme())
        self.importance = self._importance()
        self.effects = [self._effect(k, effect) for k, effect in enumerate(summary.effects)]
        self.network = self._network() if summary.networks else None
        self.pairs = [self._pair(k, pair) for k, pair in enumerate(summary.pairs)]
        self.certificate = self._certificate()
        self._tables()
        self.payload.content["rows"] = [] if summary.sample is None else self._rows(summary.sample)

    def html(self) -> str:
        """The whole page."""
        scripts = _bundle(), _text("report.js")
        return str(
            _template().render(
                summary=self._summary,
                page=self,
                legible=legible,
                style=_text("report.css"),
                scripts=scripts,
                payload=self.payload.to_json(),
                policy=_policy(scripts),
            )
        )

    def _importance(self) -> Figure:
        from exanova.show.charts import importance_chart

        notes = self.payload.picture("importance", importance_chart, self._summary.importance)
        self._table("importance", self._summary.importance, [("feature", "feature"), ("value", "importance")])
        return Figure("importance", "Importance of features", tuple(notes), "Bars: importance of each feature.")

    def _effect(self, k: int, effect: Record) -> Figure:
        from exanova.show.charts import effect_chart

        name, records = effect["feature"], effect["records"]

        def drawn(alike: list[Record]) -> Any:
            return effect_chart(alike, feature=name, floor=self._summary.rounding)

        notes = self.payload.picture(f"effect-{k}", drawn, records)
        self._table(
            f"effect-{k}",
            records,
            [("level", "level"), ("probability", "probability", "percent"), ("value", "effect")],
        )
        return Figure(f"effect-{k}", legible(name), tuple(notes), f"The effect of each level of {short(name)}.")

    def _pair(self, k: int, pair: Record) -> Figure:
        from exanova.show.charts import pair_chart

        first, second = pair["first"], pair["second"]

        def drawn(alike: list[Record]) -> Any:
            sizes = (pair["levels"][0], pair["levels"][1])
            return pair_chart(alike, first=first, second=second, sizes=sizes, floor=self._summary.rounding)

        notes = self.payload.picture(f"pair-{k}", drawn, pair["records"])
        cells = ("first", legible(first)), ("second", legible(second)), ("observed", "observed")
        self._table(
            f"pair-{k}", pair["records"], [*cells, ("probability", "probability", "percent"), ("value", "effect")]
        )
        title = f"{legible(first)} × {legible(second)}"
        label = f"Heat map: the interaction of {short(first)} and {short(second)}."
        return Figure(f"pair-{k}", title, tuple(notes), label)

    def _network(self) -> Figure:
        from exanova.show.charts import network_chart

        networks = self._summary.networks
        notes = self.payload.chart("network", [network_chart(net["nodes"], net["edges"]) for net in networks])
        edges = [
            {**{f: edge[f] for f in ("first", "second", "value")}, **_output(net["output"])}
            for net in networks
            for edge in net["edges"]
        ]
        self._table("network", edges, [("first", "feature"), ("second", "with"), ("value", "E|f|")])
        label = "Network: features as nodes, the strength of each pair as the width of the line between them."
        return Figure("network", "Which features interact", tuple(notes), label)

    def _certificate(self) -> Figure:
        from exanova.show.charts import certificate_chart

        records, exact = self._summary.certificate, self._summary.verdicts[0]["good"]
        self.payload.chart("certificate", [certificate_chart(records, exact=exact)])
        measured = ("measured", "measured"), ("tolerance", "tolerance"), ("met", "met", "text")
        self._table("certificate", records, [("name", "name"), ("meaning", "meaning"), *measured])
        label = "Each measured error beside the tolerance it is held against, on a logarithmic scale."
        return Figure("certificate", "What was measured", (), label)

    def _tables(self) -> None:
        """Tables without a picture."""
        summary = self._summary
        self._table(
            "fit",
            [{**record, "of": record["output"]} for record in summary.fit],
            [("of", "output"), ("mean", "mean"), ("r2", "R²"), ("mse", "MSE"), ("r2_held_out", "R² on held-out rows")],
        )
        strongest = [{**record, "subset": _joined(record["subset"])} for record in summary.strongest]
        self._table("strongest", strongest, [("subset", "subset"), ("order", "order"), ("value", "E|f|")])
        redundancy = [
            {"subset": _joined(r["subset"]), "with": "; ".join(map(_joined, r["shared_with"]))}
            for r in summary.redundancy
        ]
        self._table("redundancy", redundancy, [("subset", "subset"), ("with", "says the same, in part, as")])

    def _table(self, key: str, records: Sequence[Record], listed: Sequence[tuple[str, ...]]) -> None:
        """Records under a name, and the columns that a reader sees of them: (field, title[, kind])."""
        fields = [field for field, *_ in listed]
        named = [*(["output"] if records and "output" in records[0] else []), *fields]
        self.payload.table(key, [{field: record[field] for field in named} for record in records])
        columns = [
            {"field": field, "title": title, "kind": kind[0] if kind else _kind(records, field)}
            for field, title, *kind in listed
        ]
        several = len(self._summary.outputs) > 1 and "output" in named
        self.payload.content["listed"][key] = [*([OUTPUT] if several else []), *columns]

    def _rows(self, sample: Record) -> list[Record]:
        from exanova.show.charts.rows import STEP, step_names, waterfall_chart

        first = self._summary.outputs[0]
        template = [r for r in sample["rows"][0]["waterfall"] if r["output"] == first]
        self.payload.chart("waterfall", [waterfall_chart(template).properties(height={"step": STEP})])
        self.payload.content["listed"]["row"] = [
            {"field": "row", "title": "row", "kind": "text", "file_only": True},
            *([OUTPUT] if len(self._summary.outputs) > 1 else []),
            {"field": "feature", "title": "feature", "kind": "text"},
            {"field": "level", "title": "level", "kind": "text"},
            {"field": "value", "title": "Shapley value", "kind": "number"},
        ]
        return [self._row(sample["features"], row, step_names) for row in sample["rows"]]

    def _row(self, features: list[str], row: Record, step_names: Any) -> Record:
        waterfalls, tables = [], []
        for k, output in enumerate(self._summary.outputs):
            steps = [r for r in row["waterfall"] if r["output"] == output]
            named = zip(steps, step_names(steps), strict=True)
            waterfalls.append(self.payload.part([{**_step(r), "name": name} for r, name in named]))
            values = zip(features, row["levels"], row["values"][k], strict=True)
            lines = [_line("feature", feature, level, value) for feature, level, value in values]
            ends = [_line(r["kind"], r["label"], "", r["value"]) for r in steps if r["kind"] in ENDS]
            tables.append(self.payload.part([*ends[:1], *lines, *ends[1:]]))
        return {"row": row["row"], "outside": row["outside"], "waterfall": waterfalls, "table": tables}


ENDS = ("base", "residual", "total")
"""Steps of a waterfall that are no feature."""


def _step(record: Record) -> Record:
    return {field: record[field] for field in ("kind", "label", "start", "end", "value", "output")}


def _line(kind: str, feature: str, level: str, value: float) -> Record:
    return {"kind": kind, "feature": feature, "level": level, "value": value}


def _output(name: str | None) -> Record:
    return {} if name is None else {"output": name}


def _joined(subset: Sequence[str]) -> str:
    return " × ".join(map(legible, subset)) or "(mean)"


def _kind(records: Sequence[Record], field: str) -> str:
    return "number" if any(isinstance(record[field], float | int) for record in records) else "text"


def _theme() -> Record:
    from exanova.show.charts import theme

    return theme()


def _text(name: str) -> str:
    return files("exanova.show").joinpath("templates", name).read_text(encoding="utf-8")


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingPackageError(
            'an HTML report is made with jinja2, which is not installed: pip install "exanova[app]"'
        ) from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("report.html.j2"))


@cache
def _bundle() -> str:
    """Vega-Lite and what it stands on, as one script; made once a process, which takes seconds."""
    try:
        import altair
        import vl_convert
    except ImportError as error:
        raise MissingPackageError(
            f'an HTML report needs {error.name}, which is not installed: pip install "exanova[app]"'
        ) from error
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return str(script).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts, use its own styles. Nothing else, and no network."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
