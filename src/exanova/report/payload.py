"""Records and arrays as the data of a page: every column written once, long columns of numbers in binary.

A page holds a pool of columns, and tables as references into it, one part for each output.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.report.cohort_errors import CohortErrors
from exanova.report.covariances import LiveErrors
from exanova.report.errors_at_rows import ErrorsAtRows
from exanova.report.factors import CellFactor
from exanova.report.live import LiveEffects, LiveFeature
from exanova.report.live_rows import LiveRows
from exanova.show.records import Record, legible_names

LONG = 12
"""Numbers from which a column is written in binary."""


class Payload:
    """What a page is given, grown one table at a time.

    >>> payload = Payload(["a", "b"])
    >>> records = [{"level": "x", "output": o, "value": v} for o, v in (("a", 1.5), ("b", 2.5))]
    >>> payload.table("t", records)
    >>> [part["fields"] for part in payload.content["tables"]["t"]]
    [{'level': 0, 'output': 1, 'value': 2}, {'level': 0, 'output': 3, 'value': 4}]
    """

    def __init__(self, outputs: Sequence[str]) -> None:
        self._outputs = list(outputs)
        self._columns: list[Any] = []
        self._numbers: dict[str, int] = {}
        self.content: dict[str, Any] = {"outputs": self._outputs, "columns": self._columns, "tables": {}}

    def part(self, records: Sequence[Record]) -> Record:
        """Records with the same fields as references to columns."""
        names = records[0] if records else ()
        return {
            "length": len(records),
            "fields": {name: self._column([record[name] for record in records]) for name in names},
        }

    def table(self, name: str, records: Sequence[Record]) -> None:
        """Records under a name: one part for each output, or one for all if they name none."""
        self.content["tables"][name] = [self.part(part) for part in self._by_output(records)]

    def to_json(self) -> str:
        """The page's data as JSON that can stand inside a script element."""
        return in_script(json.dumps(self.content, ensure_ascii=False, allow_nan=False, separators=(",", ":")))

    def _by_output(self, records: Sequence[Record]) -> list[list[Record]]:
        if not any("output" in record for record in records):
            return [list(records)]
        parts: dict[str, list[Record]] = {output: [] for output in self._outputs}
        for record in records:
            parts[record["output"]].append(record)
        return list(parts.values())

    def _column(self, values: list[Any]) -> int:
        """The place of a column in the pool, which holds equal ones once."""
        packed = _packed_column(values)
        key = json.dumps(packed)
        if key not in self._numbers:
            self._numbers[key] = len(self._columns)
            self._columns.append(packed)
        return self._numbers[key]


def packed(values: NDArray[Any] | None) -> Any:
    """An array in binary: whole numbers as narrow as they fit, others as 8 bytes, or 4 if they were given so.

    Whole numbers of one byte with a sign stay that.

    >>> packed(np.array([1, 2, 255]))
    {'u1': 'AQL/'}
    """
    if values is None:
        return None
    kind = _kind(values)
    return {kind: base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind[0]}{kind[1]}").tobytes()).decode()}


def effects_content(effects: LiveEffects) -> Record:
    """The effects of a page: numbers beside a value to as many digits as anybody reads."""
    narrow = {"stderr": effects.stderr, "reach": effects.reach, "means": effects.means}
    return {
        "subsets": effects.subsets,
        "cells": effects.cells,
        "keys": [packed(key) for key in effects.keys],
        "values": packed(effects.values),
        **{name: _narrow(array) for name, array in narrow.items()},
        "rows": packed(_whole(effects.rows)),
        "share": packed(effects.share),
        "unidentified": effects.unidentified,
        "complete": effects.is_complete,
        "continued": [packed(values) for values in effects.continued],
        "unseen": effects.unseen,
    }


def features_content(features: Sequence[LiveFeature]) -> list[Record]:
    """Names and levels; how they are shown, where that differs."""
    shown = legible_names([feature.name for feature in features])
    return [_feature(feature, shown[feature.name]) for feature in features]


def rows_content(rows: LiveRows) -> Record:
    """Rows as codes; unknown values are ``None``."""
    counted = None if rows.weight is None else _whole(rows.weight)
    return {
        "numbers": packed(rows.numbers),
        "ids": rows.ids,
        "codes": packed(rows.codes),
        "residual": packed(rows.residual),
        "weight": packed(counted),
        "mass": packed(rows.mass),
        "total": rows.total,
        "cells": {str(k): _texts(cells) for k, cells in rows.cells.items()},
    }


def _texts(cells: list[str]) -> Record:
    """Texts, each written once, and which of them each cell holds."""
    texts = list(dict.fromkeys(cells))
    place = {text: k for k, text in enumerate(texts)}
    return {"texts": texts, "codes": packed(np.array([place[cell] for cell in cells]))}


def errors_content(errors: LiveErrors) -> Record:
    """Covariances; the page finds the cells of each block itself."""
    if errors.factor is not None:
        return {"whole": errors.is_whole, "factor": [_factor(errors.factor, o) for o in range(len(errors.factor.unit))]}
    if errors.triangles.dtype.kind == "i":
        return {"whole": errors.is_whole, "correlations": packed(errors.triangles)}
    return {"whole": errors.is_whole, "triangles": packed(errors.triangles.astype(np.float32))}


def _factor(factor: CellFactor, output: int) -> Record:
    return {
        "entries": packed(factor.numbers[output]),
        "scale": packed(factor.scale[output]),
        "unit": packed(factor.unit[output]),
        "own": packed(factor.own[output].astype(np.float32)),
    }


def at_rows_content(errors: ErrorsAtRows) -> Record:
    """Standard errors at rows: in units of the largest one, to the nearest of 65,534 steps; 65,535 for none."""
    largest = float(np.nanmax(errors.stderr, initial=0.0))
    steps = np.rint(errors.stderr / (largest or 1.0) * 65_534)
    return {
        "rows": packed(errors.rows),
        "largest": largest,
        "steps": packed(np.where(np.isnan(steps), 65_535, steps).astype(np.int64)),
    }


def cohorts_content(errors: CohortErrors) -> Record:
    """Standard errors of differences between groups of rows: one line for each pair of groups."""
    return {"sets": errors.sets.tolist(), "stderr": packed(errors.stderr.astype(np.float32))}


def in_script(text: str) -> str:
    r"""JSON or JavaScript whose strings cannot end the script element they stand in, nor open another.

    >>> in_script('["</script>"]')
    '["\\u003c/script\\u003e"]'
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _feature(feature: LiveFeature, shown: str) -> Record:
    out: Record = {"name": feature.name, "levels": feature.levels}
    labels = legible_names(feature.levels)
    if shown != feature.name:
        out["shown"] = shown
    if any(label != level for level, label in labels.items()):
        out["levels_shown"] = [labels[level] for level in feature.levels]
    if feature.total != len(feature.levels):
        out["total"] = feature.total
    if any(feature.places):
        out["places"] = [int(place) for place in feature.places]
    return out


def _narrow(values: NDArray[np.float64] | None) -> Any:
    if values is None or not np.isfinite(values).any():
        return None
    with np.errstate(over="ignore"):
        return packed(values.astype(np.float32))


def _whole(rows: NDArray[np.float64]) -> NDArray[Any] | None:
    if not np.isfinite(rows).any():
        return None
    return rows.astype(np.int64) if np.isfinite(rows).all() and (rows == np.floor(rows)).all() else rows


def _kind(values: NDArray[Any]) -> str:
    if values.dtype.kind == "f":
        return "f4" if values.dtype.itemsize == 4 else "f8"
    if values.dtype == np.int8:
        return "i1"
    largest = int(values.max(initial=0))
    if values.min(initial=0) < 0:
        return "i4"
    return "u1" if largest < 2**8 else "u2" if largest < 2**16 else "i4" if largest < 2**31 else "f8"


def _packed_column(values: list[Any]) -> Any:
    """A column: one value for all, texts written once, numbers in binary, or the values as they are."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values):
        return {"all": first}
    texts = list(dict.fromkeys(values)) if all(isinstance(value, str) for value in values) else []
    if len(texts) and len(texts) < len(values):
        place = {text: k for k, text in enumerate(texts)}
        return {"texts": texts, "codes": [place[value] for value in values]}
    if len(values) >= LONG and all(value is None or type(value) is float for value in values):
        return packed(np.array([np.nan if value is None else value for value in values]))
    return values
