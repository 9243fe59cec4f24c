"""Charts and records as the data of a page: every column and every drawing plan written once.

A page holds a pool of columns, and tables as references into it: a level's probability is the same for every output,
and a picture and the table behind it show the same numbers. A picture is a Vega-Lite specification without data, beside
the tables that fill it, one for each output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exanova.show.records import Record

COMPANIONS, DIGITS = ("stderr", "mean"), 5
"""Fields beside a value, and how many of their digits a page holds."""

NO_CONFIG = ("config", "title", "description", "$schema")
"""Parts of a specification that the page says itself."""


@dataclass(frozen=True)
class Drawn:
    """What a page has to know of a chart: what it says about itself, and its width in pixels without axes."""

    notes: tuple[str, ...]
    width: int


class Payload:
    """What a page is given, grown one table and one picture at a time.

    >>> payload = Payload(["a", "b"])
    >>> records = [{"level": "x", "output": o, "value": v} for o, v in (("a", 1.5), ("b", 2.5))]
    >>> payload.table("t", records)
    >>> [part["fields"] for part in payload.content["tables"]["t"]]
    [{'level': 0, 'output': 1, 'value': 2}, {'level': 0, 'output': 3, 'value': 4}]
    """

    def __init__(self, outputs: Sequence[str]) -> None:
        self._outputs = list(outputs)
        self._columns: list[Any] = []
        self._specs: list[Any] = []
        self._numbers: dict[str, int] = {}
        self.content: dict[str, Any] = {
            "outputs": self._outputs,
            "columns": self._columns,
            "specs": self._specs,
            "tables": {},
            "pictures": {},
        }

    def part(self, records: Sequence[Record]) -> Record:
        """Records with the same fields as references to columns."""
        names = records[0] if records else ()
        fields = {name: self._column([_short(name, record[name]) for record in records]) for name in names}
        return {"length": len(records), "fields": fields}

    def table(self, name: str, records: Sequence[Record]) -> None:
        """Records under a name: one part for each output, or one for all if they name none."""
        self.content["tables"][name] = [self.part(part) for part in self._by_output(records)]

    def picture(self, name: str, draw: Callable[[list[Record]], Any], records: Sequence[Record]) -> Drawn:
        """A chart of the records of any one output, on the scales of all of them.

        Args:
            name: the picture.
            draw: makes the chart, with one panel for the records of one output.
            records: of all outputs.

        """
        # As records of one output they share one panel and its scales; whose they are comes through as "panel".
        panel = {output: k for k, output in enumerate(self._outputs)}
        alike = [{**r, "output": "", "panel": panel[r["output"]]} for r in records]
        return self.chart(name, [draw(alike)])

    def chart(self, name: str, charts: Sequence[Any]) -> Drawn:
        """A chart for each output, or one for all of them."""
        drawn = [chart.to_dict(validate=False) for chart in charts]
        self.content["pictures"][name] = [self._filled(spec) for spec in drawn]
        return Drawn(tuple(_notes(drawn[0])), drawn[0].get("width", 0))

    def to_json(self) -> str:
        """The page's data as JSON that can stand inside a script element."""
        return in_script(json.dumps(self.content, ensure_ascii=False, allow_nan=False, separators=(",", ":")))

    def _filled(self, spec: Record) -> Record:
        datasets = spec.pop("datasets", {})
        names = {name: f"d{k}" for k, name in enumerate(datasets)}
        plan = _renamed({key: value for key, value in spec.items() if key not in NO_CONFIG}, names)
        data = {names[name]: self._panels(records) for name, records in datasets.items()}
        return {"spec": self._number(self._specs, plan), "data": data}

    def _panels(self, records: Sequence[Record]) -> list[Record]:
        if not any("panel" in record for record in records):
            return [self.part(records)]
        parts: list[list[Record]] = [[] for _ in self._outputs]
        for record in records:
            named = {**record, "output": self._outputs[record["panel"]]}
            del named["panel"]
            parts[record["panel"]].append(named)
        return [self.part(part) for part in parts]

    def _by_output(self, records: Sequence[Record]) -> list[list[Record]]:
        if not any("output" in record for record in records):
            return [list(records)]
        parts: dict[str, list[Record]] = {output: [] for output in self._outputs}
        for record in records:
            parts[record["output"]].append(record)
        return list(parts.values())

    def _column(self, values: list[Any]) -> int:
        return self._number(self._columns, _packed(values))

    def _number(self, pool: list[Any], entry: Any) -> int:
        """The place of an entry in a pool, which holds equal ones once."""
        key = f"{id(pool)} {json.dumps(entry)}"
        if key not in self._numbers:
            self._numbers[key] = len(pool)
            pool.append(entry)
        return self._numbers[key]


def in_script(text: str) -> str:
    r"""JSON or JavaScript whose strings cannot end the script element they stand in, nor open another.

    >>> in_script('["</script>"]')
    '["\\u003c/script\\u003e"]'
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _short(field: str, value: Any) -> Any:
    """Numbers that only go with others, to as many digits as anybody reads."""
    return float(f"{value:.{DIGITS}g}") if field in COMPANIONS and value is not None else value


def _packed(values: list[Any]) -> Any:
    """A column: one value for all, texts written once, or the values as they are."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values):
        return {"all": first}
    texts = list(dict.fromkeys(values)) if all(isinstance(value, str) for value in values) else []
    if len(texts) and len(texts) < len(values):
        place = {text: k for k, text in enumerate(texts)}
        return {"texts": texts, "codes": [place[value] for value in values]}
    return values


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """A specification whose data are called by other names."""
    if isinstance(value, list):
        return [_renamed(entry, names) for entry in value]
    if not isinstance(value, dict):
        return value
    renamed = {key: _renamed(entry, names) for key, entry in value.items()}
    if isinstance(value.get("data"), dict) and "name" in value["data"]:
        renamed["data"] = {"name": names[value["data"]["name"]]}
    return renamed


def _notes(spec: Record) -> list[str]:
    lines = spec.get("title", {}).get("subtitle", [])
    game = next((k for k, text in enumerate(lines) if text.startswith("game: ")), len(lines))
    return list(lines[:game])
