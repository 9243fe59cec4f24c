"""Charts of single features, importances and main effects, and the chart of the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

from exanova.show.charts.canvas import (
    AMOUNT,
    AT_X,
    AT_Y,
    NEGATIVE,
    NEUTRAL,
    NUMBER,
    NUMBER_WIDTH,
    POSITIVE,
    SAYING,
    SLANTED_WIDTH,
    WHISKER,
    Place,
    alt,
    faded,
    finished,
    flat,
    growing,
    inline,
    known_fields,
    label_angle,
    left_out,
    name_axis,
    panels,
    printed_numbers,
    reached,
    sign_colour,
    spread,
    tooltips,
    value_axis,
    with_ends,
    with_number,
    zero_line,
)
from exanova.show.records import Record, legible_names, short

AMOUNTS = {
    "l1": "E|f|, each effect divided among its features",
    "l2": "E[f²], each effect divided among its features",
    "shapley": "mean absolute Shapley value",
    "variance": "share of the variance, Cov(f_A, f) / Var f, each divided among its features",
    "shapley-effects": "share of the variance, Shapley effects",
}
"""The quantity that the bars of each kind of importance show."""

SIGNED = ("variance", "shapley-effects")
"""Kinds of importance that can be negative."""

TOP_FEATURES, TOP_LEVELS = 20, 30
"""Default numbers of bars, for features and for levels."""

POINTS = 40
"""Ordered levels up to which each gets a point sized by its share of rows."""

EFFECTS, BOTH = 52, 124
"""Pixels right of the bars where the column of their values ends, and that of their shares of rows."""

EDGE = 8
"""Pixels between the longest bar or whisker and the edge."""

HEIGHT = 220
"""Pixels of the axis of values of a line."""

STEP = 20
"""Pixels of a bar and the space around it."""

VERDICTS = {True: "met", False: "missed", None: "not judged"}
"""Verdicts on a measurement; shape, colour and word show the same."""

SMALLEST = 1e-20
"""Where a measured zero stands on the logarithmic scale."""

CHECK_STEP = 54
"""Pixels of one measurement."""


def importance_chart(
    records: Sequence[Record],
    *,
    kind: str = "l1",
    top: int = TOP_FEATURES,
    floor: float = 0.0,
    notes: Sequence[str] = (),
) -> Any:
    """Bars of the most important features, with 95 % intervals where they are known, one panel per output.

    Args:
        records: of all features.
        kind: what was measured.
        top: most features; a note names how many are left out.
        floor: the size up to which effects are rounding.
        notes: text under the title.
    """
    floor = {"l1": floor, "l2": floor**2, "shapley": floor}.get(kind, 0.0)  # shares have no unit
    kept, whole = _largest(records, "feature", top)
    names = legible_names(kept)
    shown = [{**r, "name": names[r["feature"]]} for r in records if r["feature"] in names]
    cut = left_out(len(kept), whole, "features", "of largest importance")
    drawn = _bars(shown, list(names.values()), "feature", signed=kind in SIGNED, floor=floor)
    return finished(drawn, "Importance of features", [AMOUNTS[kind], *notes, *cut, *flat(records, floor)])


def effect_chart(
    records: Sequence[Record],
    *,
    feature: str,
    top: int = TOP_LEVELS,
    floor: float = 0.0,
    notes: Sequence[str] = (),
) -> Any:
    """A main effect: bars with probabilities, or a line with points where the levels have an order.

    Whiskers are 95 % intervals, diamonds the mean of the model at a level; marks of few rows are faded.

    Args:
        records: levels of the feature.
        feature: its name.
        top: most bars.
        floor: the size up to which values are rounding.
        notes: text under the title.
    """
    title = f"Effect of {short(feature)}"
    if any(r["ordered"] for r in records):
        return _ordered_chart(records, title, floor, notes)
    kept, whole = _largest(records, "level", top)
    names = legible_names([level for level in dict.fromkeys(r["level"] for r in records) if level in set(kept)])
    shown = [{**r, "name": names[r["level"]]} for r in records if r["level"] in names]
    cut = left_out(len(names), whole, "levels", "that carry most of E|f|")
    drawn = _bars(shown, list(names.values()), "level", signed=True, floor=floor)
    return finished(drawn, title, [*notes, *cut, *flat(records, floor)])


def certificate_chart(records: Sequence[Record], *, exact: bool, notes: Sequence[str] = ()) -> Any:
    """Measured values and tolerances on a logarithmic scale; each says whether it is met."""
    shown = [_drawn(record) for record in records]
    largest = max(record[field] or 0.0 for record in records for field in ("measured", "tolerance"))
    domain = [SMALLEST / 10, 10.0 ** max(0, round(log10(largest) + 1) if largest > 0 else 0)]
    axis = alt.Axis(format=".0e", tickCount=8, labelOverlap="greedy")
    scale = alt.Scale(type="log", domain=domain, nice=False)
    x = alt.X("place:Q", title="relative size (logarithmic)", scale=scale, axis=axis)
    words = list(VERDICTS.values())
    legend = alt.Legend(title=None, orient="bottom")
    colour = alt.Color("verdict:N", legend=legend, scale=alt.Scale(domain=words, range=[NEGATIVE, POSITIVE, NEUTRAL]))
    shape = alt.Shape("verdict:N", legend=legend, scale=alt.Scale(domain=words, range=["circle", "cross", "diamond"]))
    tooltip = [
        alt.Tooltip("name:N"),
        alt.Tooltip("meaning:N"),
        alt.Tooltip("measured:Q", format=".3e"),
        alt.Tooltip("tolerance:Q", format=".3e"),
        alt.Tooltip("verdict:N"),
    ]
    base = alt.Chart(inline(shown)).encode(y=name_axis([r["name"] for r in shown]), tooltip=tooltip)
    limits = base.transform_filter("datum.tolerance != null").encode(x=alt.X("tolerance:Q", scale=scale))
    dots = base.encode(x=x)
    layers = [
        limits.mark_tick(thickness=3, color=NEUTRAL, opacity=1, height={"band": 0.6}),
        limits.mark_text(align="left", dx=6, opacity=0.8).encode(text="limit:N"),
        dots.mark_point(filled=True, size=110, opacity=1).encode(color=colour, shape=shape),
        dots.mark_text(align="left", dx=-6, dy=-13).encode(text="label:N"),
        base.mark_text(align="left", dy=15, opacity=0.8).encode(x=AT_X(4), text="meaning:N"),
    ]
    drawn = alt.layer(*layers).properties(height=CHECK_STEP * len(shown), width=460)
    return finished(drawn, f"Certificate: {'exact' if exact else 'not exact'}", notes)


def _largest(records: Sequence[Record], field: str, top: int) -> tuple[list[str], int]:
    """The ``top`` values of a field by the sum of |value| (times the probability, if there is one), and how many."""
    total: dict[str, float] = {}
    for r in records:
        total[r[field]] = total.get(r[field], 0.0) + abs(r["value"]) * r.get("probability", 1.0)
    return sorted(total, key=lambda name: -total[name])[:top], len(total)


def _bars(records: list[Record], names: list[str], of: str, signed: bool, floor: float) -> Any:
    """Bars of features with their amounts beside them, or of levels with columns of numbers at the right edge."""
    values = reached(records) if signed else [max(0.0, end) for end in reached(records)]
    colour, form = (sign_colour(), "+.3g") if signed else (alt.ColorValue(AMOUNT), ".3g")
    known = known_fields(records, "stderr", "rows", "mean")
    tooltip = tooltips(of, "output", "value", *(["probability"] if of == "level" else []), *known)

    def draw(part: list[Record], place: Place) -> Any:
        width = 360 if place.alone else 190
        domain = spread(values, width, floor, room=EDGE if of == "level" else NUMBER_WIDTH)
        x, y = value_axis(domain), name_axis(names, labels=place.left)
        base = with_ends(alt.Chart(inline(part)), signed).encode(y=y, tooltip=tooltip)
        bars = base.mark_bar(height={"band": 0.75}).encode(x=x, color=colour, **faded(records))
        if of == "level":
            printed = [*_column(with_number(base, floor, form), "number:N", "effect", EFFECTS)]
            printed += (
                _column(base, alt.Text("probability:Q", format=".1%"), "share of rows", BOTH) if place.right else []
            )
        else:
            ends = value_axis(domain, "high"), value_axis(domain, "low")
            printed = printed_numbers(base, ends[0], floor, form, left=ends[1])
        layers = alt.layer(bars, zero_line(), *_on_bars(base, domain, known), *printed)
        return layers.properties(height=STEP * len(names), width=width)

    return panels(records, draw)


def _on_bars(base: Any, domain: Sequence[float], known: Sequence[str]) -> list[Any]:
    """Whiskers and diamonds, where standard errors and means are known."""
    whiskers = base.transform_filter("datum.stderr != null").mark_rule(style=WHISKER, strokeWidth=1.5)
    means = base.transform_filter("datum.mean != null").mark_point(style=WHISKER, shape="diamond", size=32, opacity=1)
    return [
        *([whiskers.encode(x=value_axis(domain, "low"), x2="high:Q")] if "stderr" in known else []),
        *([means.encode(x=value_axis(domain, "mean"))] if "mean" in known else []),
    ]


def _column(base: Any, text: Any, title: str, place: int) -> list[Any]:
    """Numbers in print, ending ``place`` pixels right of the bars, with their name at the height of the axis."""
    heading = alt.Chart(inline([{}])).mark_text(align="right", dx=place, dy=13, opacity=0.8, fontSize=10)
    return [
        base.mark_text(align="right", dx=place, opacity=0.8).encode(x=AT_X("width"), text=text),
        heading.encode(x=AT_X("width"), y=AT_Y("height"), text=SAYING(title)),
    ]


def _ordered_chart(records: Sequence[Record], title: str, floor: float, notes: Sequence[str]) -> Any:
    names = legible_names(list(dict.fromkeys(r["level"] for r in records)))
    shown = [{**r, "name": names[r["level"]]} for r in records]
    domain = spread(reached(records), HEIGHT, floor, room=16)
    known = known_fields(records, "stderr", "rows", "mean")
    drawn = panels(shown, lambda part, place: _line(part, place, list(names.values()), domain, known), columns=2)
    return finished(drawn, title, [*notes, *flat(records, floor)])


def _line(
    records: list[Record], place: Place, names: list[str], domain: tuple[float, float], known: Sequence[str]
) -> Any:
    """A line through the ordered levels; a level outside the order, such as missing, is a point on its own."""
    width = min(560 if place.alone else 300, max(160, 44 * len(names)))
    axis = alt.Axis(
        labelAngle=label_angle(names, width / len(names)),
        labelOverlap=len(names) > POINTS and "greedy",
        labelLimit=SLANTED_WIDTH,
        ticks=len(names) <= POINTS,
    )
    x = alt.X("name:O", title=None, scale=alt.Scale(domain=names), axis=axis)
    scale = alt.Scale(domain=list(domain), nice=False)
    title = "effect" if place.left else None
    y, low, mean = (
        alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format=NUMBER))
        for field in ("value", "low", "mean")
    )
    tooltip = tooltips("level", "output", "value", "probability", *known)
    base = with_ends(alt.Chart(inline(records))).encode(x=x, y=y, tooltip=tooltip)
    line = base.transform_filter("datum.ordered").mark_line(color=NEUTRAL, strokeWidth=1.5)
    points = base.mark_point(filled=True, opacity=1, size=10).encode(color=sign_colour(), **faded(records))
    layers = [line, points]
    if len(names) <= POINTS:
        size = growing(records, "probability", "share of rows", [10, 260], ".1~%")
        layers = [line, points.encode(size=alt.Size("probability:Q", **size))]
    if "stderr" in known:
        whiskers = base.transform_filter("datum.stderr != null").mark_rule(style=WHISKER, strokeWidth=1.2)
        layers.append(whiskers.encode(y=low, y2="high:Q"))
    if "mean" in known and len(names) <= POINTS:
        means = base.transform_filter("datum.mean != null").mark_point(
            style=WHISKER, shape="diamond", size=28, opacity=1
        )
        layers.append(means.encode(y=mean))
    zero = alt.Chart(inline([{}])).mark_rule(strokeWidth=1.5).encode(y=alt.YDatum(0))
    return alt.layer(zero, *layers).properties(width=width, height=HEIGHT)


def _drawn(record: Record) -> Record:
    verdict, measured, tolerance = VERDICTS[record["met"]], record["measured"], record["tolerance"]
    label = f"{measured:.1e}, {verdict}" if measured else f"0, {verdict}"
    limit = None if tolerance is None else f"tolerance {tolerance:.0e}"
    return {**record, "verdict": verdict, "place": max(measured, SMALLEST), "label": label, "limit": limit}
