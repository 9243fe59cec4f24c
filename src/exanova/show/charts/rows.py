"""Charts of explained rows: a waterfall, a swarm, an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exanova.show.charts.canvas import LABEL_WIDTH, NEUTRAL, alt, finished, inline, panels, sign_colour
from exanova.show.records import Record

STEP = 22
"""Pixels of one step of a waterfall."""


def waterfall_chart(records: Sequence[Record], *, notes: Sequence[str] = ()) -> Any:
    """From the mean to the prediction at one row, one bar a feature, one panel an output."""
    drawn = panels(records, _waterfall, columns=2)
    return finished(drawn, "From the mean to this row", notes)


def _waterfall(records: list[Record]) -> Any:
    shown = [{**r, "order": k} for k, r in enumerate(records)]
    ends = [r[side] for r in records for side in ("start", "end")]
    margin = 0.16 * (max(ends) - min(ends)) or 1.0
    domain = [min(ends) - margin, max(ends) + margin]
    x = alt.X("start:Q", title=None, scale=alt.Scale(domain=domain, nice=False, zero=False))
    y = alt.Y(
        "label:N",
        title=None,
        scale=alt.Scale(domain=[r["label"] for r in shown]),
        axis=alt.Axis(labelLimit=LABEL_WIDTH),
    )
    tooltip = [
        alt.Tooltip("label:N", title="step"),
        alt.Tooltip("output:N"),
        alt.Tooltip("value:Q", format="+.6g"),
        alt.Tooltip("end:Q", format=".6g", title="reached"),
    ]
    base = alt.Chart(inline(shown)).encode(y=y, tooltip=tooltip)
    moves = base.transform_filter("datum.kind != 'base' && datum.kind != 'total'")
    ends_only = base.transform_filter("datum.kind == 'base' || datum.kind == 'total'")
    step = alt.Text("value:Q", format="+.3~g")
    mean = alt.Chart(inline(shown[:1])).mark_rule(strokeDash=[3, 3]).encode(x=x)
    layers = [
        mean,
        moves.mark_bar(height={"band": 0.7}).encode(x=x, x2="end:Q", color=sign_colour()),
        moves.transform_filter("datum.value >= 0").mark_text(align="left", dx=4).encode(x=alt.X("end:Q"), text=step),
        moves.transform_filter("datum.value < 0").mark_text(align="right", dx=-4).encode(x=alt.X("end:Q"), text=step),
        ends_only.mark_tick(thickness=3, color=NEUTRAL, height={"band": 0.9}).encode(x=x),
        ends_only.mark_text(align="left", dx=6, fontWeight="bold").encode(x=x, text=alt.Text("end:Q", format=".4~g")),
    ]
    return alt.layer(*layers).properties(height=STEP * len(shown), width=400)
