"""Charts of the decomposition itself: importances, main effects, pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exanova.show.charts.canvas import (
    LABEL_WIDTH,
    NEUTRAL,
    RAMP,
    alt,
    counted,
    finished,
    inline,
    panels,
    sign_colour,
    spread,
    zero_line,
)
from exanova.show.labels import legible_names, short
from exanova.show.records import Record

AMOUNTS = {
    "l1": "E|f|, each effect divided among its features",
    "l2": "E[f²], each effect divided among its features",
    "shapley": "mean absolute Shapley value",
    "variance": "share of the variance, Cov(f_A, f) / Var f",
    "shapley-effects": "share of the variance (Shapley effects)",
}
"""What the bars of each kind of importance measure."""

TOP_FEATURES, TOP_LEVELS = 20, 30
"""Bars that a reader takes in at once."""

POINTS = 60
"""Ordered levels up to which each gets a point of its own."""

STEP = 20
"""Pixels of a bar and the space around it."""

NUMBERS_UP_TO, SIGNS_UP_TO = 10, 40
"""Levels a side up to which the cells of a heat map hold numbers, and signs."""


def importance_chart(records: Sequence[Record], *, kind: str = "l1", top: int = TOP_FEATURES) -> Any:
    """Bars of the most important features, one panel an output; the note names how many are left out."""
    kept, whole = _largest(records, "feature", top)
    names = legible_names(kept)
    shown = [{**r, "name": names[r["feature"]]} for r in records if r["feature"] in names]
    title = f"Importance of features: {AMOUNTS[kind]}"
    domain = spread((r["value"] for r in shown), room=0.18)
    notes = counted(len(kept), whole, "features", "of largest importance")
    drawn = panels(shown, lambda part: _bars(part, list(names.values()), domain, "feature"))
    return finished(drawn, title, notes)


def effect_chart(records: Sequence[Record], *, feature: str, top: int = TOP_LEVELS, floor: float = 0.0) -> Any:
    """A main effect: bars with probabilities, or a line with points where the levels have an order."""
    title = f"Effect of {short(feature)}"
    if any(r["ordered"] for r in records):
        return _ordered_chart(records, title, floor)
    kept, whole = _largest(records, "level", top, weigh=True)
    names = legible_names([level for level in dict.fromkeys(r["level"] for r in records) if level in set(kept)])
    shown = [{**r, "name": names[r["level"]]} for r in records if r["level"] in names]
    domain = spread((r["value"] for r in shown), floor, room=0.18)
    notes = [*counted(len(names), whole, "levels", "that carry most of E|f|"), *_flat(records, floor)]
    drawn = panels(shown, lambda part: _bars(part, list(names.values()), domain, "level"))
    return finished(drawn, title, notes)


def pair_chart(
    records: Sequence[Record],
    *,
    first: str,
    second: str,
    sizes: tuple[int, int] | None = None,
    floor: float = 0.0,
) -> Any:
    """A heat map of a pair; crossed cells were never observed and have no value.

    ``sizes`` are the numbers of levels of both features, where the records hold some of them only.
    """
    rows, columns = (list(dict.fromkeys(r[side] for r in records)) for side in ("first", "second"))
    names = legible_names(rows), legible_names(columns)
    shown = [
        {**r, "row": names[0][r["first"]], "column": names[1][r["second"]], "sign": _sign(r["value"])} for r in records
    ]
    notes = [
        note
        for name, kept, whole in zip((first, second), (rows, columns), sizes or (0, 0), strict=True)
        for note in counted(len(kept), whole, f"levels of {short(name, 30)}", "that carry most of E|f|")
    ]
    bound = max((abs(r["value"]) for r in records if r["observed"]), default=0.0)
    bound = max(bound, floor) or 1.0
    axes = short(first), short(second), list(names[0].values()), list(names[1].values())
    drawn = panels(shown, lambda part: _heat_map(part, axes, bound), columns=2)
    return finished(drawn, f"Interaction of {short(first)} and {short(second)}", notes + _flat(records, floor))


def _largest(records: Sequence[Record], field: str, top: int, weigh: bool = False) -> tuple[list[str], int]:
    """The ``top`` values of a field by the sum of |value| (times probability), and how many there are."""
    total: dict[str, float] = {}
    for r in records:
        amount = abs(r["value"]) * (r["probability"] if weigh else 1.0)
        total[r[field]] = total.get(r[field], 0.0) + amount
    return sorted(total, key=lambda name: -total[name])[:top], len(total)


def _sign(value: float | None) -> str:
    return "" if not value else "−" if value < 0 else "+"


def _flat(records: Sequence[Record], floor: float) -> list[str]:
    values = [abs(r["value"]) for r in records if r["value"] is not None]
    return ["zero up to rounding"] if floor and max(values, default=0.0) <= floor else []


def _bars(records: list[Record], names: list[str], domain: tuple[float, float], of: str) -> Any:
    """Horizontal bars with their values printed; those of levels have their probabilities in a column on the right."""
    y = alt.Y("name:N", title=None, scale=alt.Scale(domain=names))
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=5))
    tooltip = [alt.Tooltip(f"{of}:N"), alt.Tooltip("output:N"), alt.Tooltip("value:Q", format="+.6g")]
    if of == "level":
        tooltip.append(alt.Tooltip("probability:Q", format=".3%"))
    base = alt.Chart(inline(records)).encode(y=y, tooltip=tooltip)
    text = alt.Text("value:Q", format="+.3~g")
    layers = [
        base.mark_bar(height={"band": 0.75}).encode(x=x, color=sign_colour()),
        base.transform_filter("datum.value >= 0").mark_text(align="left", dx=4).encode(x=x, text=text),
        base.transform_filter("datum.value < 0").mark_text(align="right", dx=-4).encode(x=x, text=text),
        zero_line(),
    ]
    if of == "level":
        share = alt.Text("probability:Q", format=".1~%")
        layers.append(base.mark_text(align="right", dx=48, opacity=0.8).encode(x=alt.value("width"), text=share))
        layers.append(_heading("probability"))
    return alt.layer(*layers).properties(height=STEP * len(names), width=320)


def _heading(text: str) -> Any:
    """The name of the column of text at the right edge."""
    mark = alt.Chart(inline([{}])).mark_text(align="right", dx=48, dy=-8, opacity=0.8)
    return mark.encode(x=alt.value("width"), y=alt.value(0), text=alt.value(text))


def _ordered_chart(records: Sequence[Record], title: str, floor: float) -> Any:
    names = legible_names(list(dict.fromkeys(r["level"] for r in records)))
    shown = [{**r, "name": names[r["level"]]} for r in records]
    domain = spread((r["value"] for r in records), floor, room=0.08)
    drawn = panels(shown, lambda part: _line(part, list(names.values()), domain), columns=2)
    return finished(drawn, title, _flat(records, floor))


def _line(records: list[Record], names: list[str], domain: tuple[float, float]) -> Any:
    """A line through the ordered levels; a level outside the order, such as missing, is a point on its own."""
    axis = alt.Axis(labelAngle=-40, labelOverlap="greedy", labelLimit=LABEL_WIDTH // 2)
    x = alt.X("name:O", title=None, scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("value:Q", title="effect", scale=alt.Scale(domain=domain, nice=False))
    tooltip = [
        alt.Tooltip("level:N"),
        alt.Tooltip("output:N"),
        alt.Tooltip("value:Q", format="+.6g"),
        alt.Tooltip("probability:Q", format=".3%"),
    ]
    base = alt.Chart(inline(records)).encode(x=x, y=y, tooltip=tooltip)
    size = alt.Size("probability:Q", scale=alt.Scale(range=[15, 260], domainMin=0), legend=alt.Legend(format=".1~%"))
    points = base.mark_point(filled=True, opacity=1).encode(color=sign_colour(), size=size)
    if len(names) > POINTS:
        points = base.mark_point(filled=True, opacity=1, size=6).encode(color=sign_colour())
    line = base.transform_filter("datum.ordered").mark_line(color=NEUTRAL, strokeWidth=1.5)
    zero = alt.Chart(inline([{}])).mark_rule(strokeWidth=1.5).encode(y=alt.datum(0))
    width = min(560, max(160, 44 * len(names)))
    return alt.layer(zero, line, points).properties(width=width, height=240)


def _heat_map(records: list[Record], axes: tuple[str, str, list[str], list[str]], bound: float) -> Any:
    row_title, column_title, rows, columns = axes
    side = 46 if max(len(rows), len(columns)) <= NUMBERS_UP_TO else 20
    x = alt.X("column:N", title=column_title, scale=alt.Scale(domain=columns), axis=alt.Axis(labelAngle=-40))
    y = alt.Y("row:N", title=row_title, scale=alt.Scale(domain=rows))
    scale = alt.Scale(domain=[-bound, bound], range=list(RAMP))
    tooltip = [
        alt.Tooltip("first:N", title=row_title),
        alt.Tooltip("second:N", title=column_title),
        alt.Tooltip("output:N"),
        alt.Tooltip("value:Q", format="+.6g"),
        alt.Tooltip("probability:Q", format=".3%"),
    ]
    seen = alt.Chart(inline(r for r in records if r["observed"])).encode(x=x, y=y, tooltip=tooltip)
    layers = [seen.mark_rect().encode(color=alt.Color("value:Q", scale=scale, title="effect"))]
    text = alt.Text("value:Q", format="+.2~g") if side > 20 else alt.Text("sign:N")
    strong = 0.6 * bound
    signs = alt.when(f"abs(datum.value) > {strong!r}").then(alt.value("white")).otherwise(alt.value("#1f2328"))
    layers.append(seen.mark_text(fontSize=10).encode(text=text, color=signs))
    missing = [{**r, "kind": "never observed"} for r in records if not r["observed"]]
    if missing:
        layers.append(_crosses(missing, x, y, tooltip))
    return alt.layer(*layers).properties(width=side * len(columns), height=side * len(rows))


def _crosses(records: list[Record], x: Any, y: Any, tooltip: list[Any]) -> Any:
    """Cells that never occurred, each with a cross, named in the legend."""
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=["never observed"], range=["M-1,-1L1,1M-1,1L1,-1"]))
    marks = alt.Chart(inline(records)).mark_point(color=NEUTRAL, size=60, strokeWidth=1)
    return marks.encode(x=x, y=y, shape=shape, tooltip=tooltip)
