"""Charts of pairs of features: the heat map of one, the network of all."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, degrees
from typing import Any, Literal

from exanova.show.charts.canvas import (
    AMOUNT,
    LABEL_WIDTH,
    LETTER,
    NEUTRAL,
    SLANTED_WIDTH,
    Place,
    alt,
    cell_format,
    faded,
    finished,
    flat,
    growing,
    ink_on_ramp,
    inline,
    known_fields,
    label_angle,
    left_out,
    panels,
    ramp_colour,
    tooltips,
    with_number,
    with_sign,
)
from exanova.show.records import Record, legible_names, short

TOP_LEVELS = 30
"""Rows and columns of a heat map up to which names are legible."""

NUMBERS_UP_TO = 9
"""Columns up to which the cells hold numbers; beyond, signs."""

CELL, ROOMY = 18, 46
"""Pixels of a cell, and of its width if it holds a number."""

CROSS = "M-1,-1L1,1M-1,1L1,-1"
"""The path of the mark of a cell that was never observed."""

RADIUS, NODE = 180, 18
"""Pixels from the middle of a network to its nodes, and from the middle of a node to its name."""

HORIZONTAL_UP_TO = 10
"""Nodes of a network up to which their names are written horizontally."""

WIDEST = 640
"""Pixels of heat maps side by side."""


def pair_chart(
    records: Sequence[Record],
    *,
    first: str,
    second: str,
    sizes: tuple[int, int] | None = None,
    floor: float = 0.0,
    notes: Sequence[str] = (),
) -> Any:
    """A heat map of a pair; crossed cells were never observed and have no value, cells of few rows are faded.

    Args:
        records: cells of the grid.
        first: the feature of the rows.
        second: the feature of the columns.
        sizes: how many levels both features have, if the records may hold some of them only.
        floor: the size up to which values are rounding.
        notes: text under the title.
    """
    rows, columns = (legible_names(list(dict.fromkeys(r[side] for r in records))) for side in ("first", "second"))
    shown = [{**r, "row": rows[r["first"]], "column": columns[r["second"]]} for r in records]
    cut = [
        note
        for name, kept, whole in zip((first, second), (rows, columns), sizes or (0, 0), strict=True)
        for note in left_out(len(kept), whole, f"levels of {short(name, 30)}", "that carry most of E|f|")
    ]
    bound = max([floor, *(abs(r["value"]) for r in records if r["observed"])]) or 1.0
    grid = list(rows.values()), list(columns.values())
    titles = short(first), short(second)
    across = max(1, min(4, WIDEST // (CELL * len(columns) + 20)))
    drawn = panels(shown, lambda part, place: _heat_map(part, place, grid, titles, (floor, bound)), across)
    return finished(drawn, f"Interaction of {titles[0]} and {titles[1]}", [*notes, *cut, *flat(records, floor)])


def network_chart(
    nodes: Sequence[Record], edges: Sequence[Record], *, notes: Sequence[str] = (), floor: float = 0.0
) -> Any:
    """Features on a circle, sized by importance; lines between them as wide as the pair is strong.

    ``floor`` is the size up to which effects are rounding.
    """
    names = legible_names([node["feature"] for node in nodes])
    placed = [{**node, "name": names[node["feature"]], "importance": node["value"]} for node in nodes]
    linked = [{**edge, "importance": edge["value"]} for edge in edges if edge["value"] > floor]
    is_crowded = len(nodes) > HORIZONTAL_UP_TO
    reach = 1 + min(LABEL_WIDTH, LETTER * max(map(len, names.values())) + NODE) / RADIUS
    height = reach if is_crowded else 1 + NODE / RADIUS
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-reach, reach], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-height, height], nice=False))
    layers = [_links(linked, x, y)] if linked else []
    size = alt.Size("value:Q", **growing(placed, "value", "feature, E|f|", [20, 300 if is_crowded else 900]))
    dots = alt.Chart(inline(placed)).mark_circle(opacity=1, color=AMOUNT, stroke="white", strokeWidth=1)
    layers.append(dots.encode(x=x, y=y, size=size, tooltip=tooltips("feature", "importance")))
    layers += [_node_names(placed, x, y, "left", is_crowded), _node_names(placed, x, y, "right", is_crowded)]
    drawn = alt.layer(*layers).properties(width=2 * reach * RADIUS, height=2 * height * RADIUS)
    return finished(drawn, "Features and the strength of their interactions", [*notes, *flat(nodes, floor)])


def _links(edges: list[Record], x: Any, y: Any) -> Any:
    width = alt.StrokeWidth("value:Q", **growing(edges, "value", "pair, E|f|", [0.3, 9]))
    lines = alt.Chart(inline(edges)).mark_rule(opacity=0.55, color=NEUTRAL)
    tooltip = tooltips("first", "second", "importance")
    return lines.encode(x=x, y=y, x2="x2:Q", y2="y2:Q", strokeWidth=width, tooltip=tooltip)


def _heat_map(
    records: list[Record],
    place: Place,
    grid: tuple[list[str], list[str]],
    titles: tuple[str, str],
    sizes: tuple[float, float],
) -> Any:
    """One panel; ``sizes`` are the value up to which all is rounding, and the largest."""
    (rows, columns), (floor, bound) = grid, sizes
    roomy = len(columns) <= NUMBERS_UP_TO and place.alone
    cell = ROOMY if roomy else CELL
    axis = alt.Axis(labelAngle=label_angle(columns, cell), labelLimit=SLANTED_WIDTH, domain=False, ticks=False)
    x = alt.X("column:N", title=titles[1], scale=alt.Scale(domain=columns), axis=axis)
    sides = alt.Axis(labels=place.left, domain=False, ticks=False, labelPadding=6)
    y = alt.Y("row:N", title=titles[0] if place.left else None, scale=alt.Scale(domain=rows), axis=sides)
    tooltip = [alt.Tooltip("first:N", title=titles[0]), alt.Tooltip("second:N", title=titles[1])]
    tooltip += tooltips("output", "value", "probability", *known_fields(records, "rows", "stderr"))
    shown = alt.Chart(inline(r for r in records if r["observed"])).encode(x=x, y=y, tooltip=tooltip)
    printed = with_number(shown, floor, cell_format(bound)) if roomy else with_sign(shown, floor)
    cells = shown.mark_rect(stroke=NEUTRAL, strokeWidth=0.4)
    layers = [cells.encode(color=ramp_colour(bound, "effect"), **faded(records))]
    text = printed.mark_text(fontSize=10).encode(text="number:N")
    if any(r["few"] for r in records):  # the background shows through faded cells and needs another text colour
        layers.append(text.transform_filter("datum.few"))
        text = text.transform_filter("!datum.few")
    layers.append(text.encode(color=ink_on_ramp(bound)))
    never = [{**r, "kind": "never observed"} for r in records if not r["observed"]]
    if never:
        shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=["never observed"], range=[CROSS]))
        marks = alt.Chart(inline(never)).mark_point(color=NEUTRAL, size=50, strokeWidth=1)
        layers.append(marks.encode(x=x, y=y, shape=shape, tooltip=tooltip))
    return alt.layer(*layers).properties(width=cell * len(columns), height=CELL * len(rows))


def _node_names(nodes: list[Record], x: Any, y: Any, align: Literal["left", "right"], is_crowded: bool) -> Any:
    """Names outside the circle: of its right half they start at the node, of its left half they end there.

    On a crowded circle they are radial, like the spokes of a wheel.
    """
    turned = 0 if align == "left" else 180
    half = [
        {**node, "angle": turned - degrees(atan2(node["y"], node["x"])) if is_crowded else 0}
        for node in nodes
        if (node["x"] < 0) == (align == "right")
    ]
    text = alt.Chart(inline(half)).mark_text(align=align, dx=-NODE if align == "right" else NODE, limit=LABEL_WIDTH)
    angle = alt.Angle("angle:Q", scale=None)
    return text.encode(x=x, y=y, text="name:N", angle=angle, tooltip=tooltips("feature", "importance"))
