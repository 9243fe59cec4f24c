"""Charts of explained rows: a waterfall, a swarm, an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exanova.data.levels import label_levels
from exanova.show.charts.canvas import (
    NEUTRAL,
    NUMBER_WIDTH,
    WHISKER,
    Place,
    alt,
    finished,
    flat,
    growing,
    ink_on_ramp,
    inline,
    left_out,
    name_axis,
    panels,
    printed_numbers,
    ramp_colour,
    sign_colour,
    spread,
    tooltips,
    value_axis,
    with_sign,
    zero_line,
)
from exanova.show.error_bars import REACH
from exanova.show.records import Record, legible_names, short

STEP = 22
"""Pixels of one step of a waterfall."""

LANE = 34
"""Pixels of one feature of a swarm."""

NAME_LENGTH, STEP_WIDTH = 24, 260
"""Characters of a feature or a level, and pixels of both, beside a step of a waterfall."""

MOST, PEAKED = 0.99, 0.5
"""Colours of an image end at the quantile MOST of its sizes, if that is less than PEAKED of the largest one."""

SEAMLESS = {"band": 1.06}
"""Pixels overlap a little, so that the background does not show between them."""

WITH_SIGNS = 0.2
"""Pixels from this share of the largest contribution on have their sign printed."""


def waterfall_chart(records: Sequence[Record], *, notes: Sequence[str] = (), floor: float = 0.0) -> Any:
    """From the mean to the prediction at one row, one bar per feature, one panel per output.

    ``floor`` is the size up to which values are rounding, printed as 0.
    """
    drawn = panels(records, lambda part, place: _waterfall(part, place, floor), columns=2)
    return finished(drawn, "From the mean to this row", notes)


def beeswarm_chart(
    records: Sequence[Record], *, features: int | None = None, notes: Sequence[str] = (), floor: float = 0.0
) -> Any:
    """Shapley values of many rows, one lane per feature; the size of a dot shows its number of rows.

    Args:
        records: dots.
        features: how many there are, if the records may hold some of them only.
        notes: text under the title.
        floor: the size up to which values are rounding.
    """
    names = legible_names(list(dict.fromkeys(r["feature"] for r in records)))
    shown = [{**r, "name": names[r["feature"]]} for r in records]
    remarks = left_out(len(names), features or 0, "features", "of largest mean absolute value")
    drawn = panels(shown, lambda part, place: _swarm(part, place, list(names.values()), shown, floor), columns=3)
    return finished(drawn, "Shapley values of rows", [*notes, *remarks, *flat(records, floor)])


def image_chart(records: Sequence[Record], *, notes: Sequence[str] = ()) -> Any:
    """Contributions of pixels at their positions, one panel per output."""
    sizes = sorted(abs(r["value"]) for r in records)
    largest, most = sizes[-1], sizes[int(MOST * (len(sizes) - 1))]
    is_peaked = 0 < most < PEAKED * largest
    bound = (most if is_peaked else largest) or 1.0
    remarks = [f"colours end at ±{bound:.2g}, the largest contribution is {largest:.2g} in size"] if is_peaked else []
    drawn = panels(records, lambda part, place: _image(part, place, bound), columns=5)
    return finished(drawn, "Contribution of each pixel at this row", [*notes, *remarks])


def step_names(records: Sequence[Record]) -> tuple[str, ...]:
    """Names of the steps of one waterfall, short and all different."""
    return label_levels([_step_name(record) for record in records])


def _waterfall(records: list[Record], place: Place, floor: float) -> Any:
    names = step_names(records)
    shown = [{**r, "name": name, **_reach(r)} for r, name in zip(records, names, strict=True)]
    ends = [r[side] for r in shown for side in ("start", "low", "high")]
    width = 400 if place.alone else 280
    domain = _around(ends, width, floor)
    start, end = value_axis(domain, "start"), value_axis(domain, "end")
    tooltip = [alt.Tooltip("label:N", title="step"), *tooltips("output", "value"), alt.Tooltip("end:Q", format=".6g")]
    base = alt.Chart(inline(shown)).encode(y=name_axis(names, limit=STEP_WIDTH), tooltip=tooltip)
    moves = base.transform_filter("datum.kind != 'base' && datum.kind != 'total'")
    stops = base.transform_filter("datum.kind == 'base' || datum.kind == 'total'")
    reached = alt.Text("end:Q", format=".4~g")
    layers = [
        alt.Chart(inline(shown)).transform_filter("datum.kind == 'base'").mark_rule(strokeDash=[3, 3]).encode(x=start),
        moves.mark_bar(height={"band": 0.7}).encode(x=start, x2="end:Q", color=sign_colour()),
        *_whiskers(moves, domain, shown),
        *printed_numbers(moves, value_axis(domain, "high"), floor, left=value_axis(domain, "low")),
        stops.mark_tick(thickness=3, color=NEUTRAL, height={"band": 0.9}, opacity=1).encode(x=end),
        stops.mark_text(align="left", dx=6, fontWeight="bold").encode(x=end, text=reached),
    ]
    return alt.layer(*layers).properties(height=STEP * len(shown), width=width)


def _reach(record: Record) -> Record:
    """The ends of the 95 % interval of a step, around where it ends; twice that where its error is unknown."""
    half = REACH * (record["stderr"] or 0.0)
    return {"low": record["end"] - half, "high": record["end"] + half}


def _whiskers(moves: Any, domain: tuple[float, float], records: list[Record]) -> list[Any]:
    if all(record["stderr"] is None for record in records):
        return []
    known = moves.transform_filter("datum.stderr != null").mark_rule(style=WHISKER, strokeWidth=1.3)
    return [known.encode(x=value_axis(domain, "low"), x2="high:Q")]


def _around(ends: list[float], width: float, floor: float) -> tuple[float, float]:
    """The ends of an axis of ``width`` pixels with room for numbers on both sides; rounding is not scaled up."""
    low, high = min(ends), max(ends)
    if high - low <= floor:
        margin = 0.1 * max(abs(low), abs(high)) or 1.0
    else:
        margin = (high - low) * NUMBER_WIDTH / (width - 2 * NUMBER_WIDTH)
    return low - margin, high + margin


def _step_name(record: Record) -> str:
    if record["kind"] != "feature":
        return str(record["label"])
    return f"{short(record['feature'], NAME_LENGTH)} = {short(record['level'], NAME_LENGTH)}"


def _swarm(records: list[Record], place: Place, names: list[str], all_records: list[Record], floor: float) -> Any:
    """One panel, on the scales of all of them."""
    width = 420 if place.alone else 240
    domain = spread((r["value"] for r in all_records), width, floor, room=12)
    widest = max([3.0, *(abs(r["offset"]) for r in all_records)]) + 1
    ends = alt.Legend(values=[0, 1], labelExpr="datum.value < 0.5 ? 'first' : 'last'", gradientLength=80)
    viridis = alt.Scale(scheme="viridis", domain=[0, 1])
    base = alt.Chart(inline(records)).encode(y=name_axis(names, labels=place.left))
    dots = base.mark_circle(opacity=0.85, stroke=NEUTRAL, strokeWidth=0.5).encode(
        x=value_axis(domain),
        yOffset=alt.YOffset("offset:Q", scale=alt.Scale(domain=[-widest, widest])),
        color=alt.Color("place:Q", title="level, in its order", scale=viridis, legend=ends),
        size=alt.Size("count:Q", **growing(all_records, "count", "rows", [8, 130], ",.0f")),
        tooltip=[*tooltips("feature", "level", "output", "value"), alt.Tooltip("count:Q", title="rows")],
    )
    return alt.layer(zero_line(), dots).properties(height=LANE * len(names), width=width)


def _image(records: list[Record], place: Place, bound: float) -> Any:
    height, width = (1 + max(r[side] for r in records) for side in ("row", "column"))
    side = max(3, min(30, (420 if place.alone else 150) // max(height, width)))
    x = alt.X("column:O", axis=None, scale=alt.Scale(domain=list(range(width)), padding=0))
    y = alt.Y("row:O", axis=None, scale=alt.Scale(domain=list(range(height)), padding=0))
    base = alt.Chart(inline(records)).encode(x=x, y=y, tooltip=tooltips("feature", "level", "output", "value"))
    layers = [base.mark_rect(width=SEAMLESS, height=SEAMLESS).encode(color=ramp_colour(bound, "contribution"))]
    if place.alone:
        signs = with_sign(base, WITH_SIGNS * bound).mark_text(fontSize=0.8 * side)
        layers.append(signs.encode(text="number:N", color=ink_on_ramp(bound)))
    return alt.layer(*layers).properties(height=side * height, width=side * width)
