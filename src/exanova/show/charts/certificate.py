"""The chart of a certificate: what was measured, against what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

from exanova.show.charts.canvas import AT_X, NEGATIVE, NEUTRAL, POSITIVE, alt, finished, inline, name_axis
from exanova.show.records import Record

VERDICTS = {True: "met", False: "missed", None: "not judged"}
"""What is said of a measurement: shape, colour and word say the same."""

SMALLEST = 1e-20
"""Where a measured zero stands on the logarithmic scale."""

STEP = 54
"""Pixels of one measurement."""


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
        dots.mark_text(align="left", dx=-6, dy=-13).encode(text="said:N"),
        base.mark_text(align="left", dy=15, opacity=0.8).encode(x=AT_X(4), text="meaning:N"),
    ]
    drawn = alt.layer(*layers).properties(height=STEP * len(shown), width=460)
    return finished(drawn, f"Certificate: {'exact' if exact else 'not exact'}", notes)


def _drawn(record: Record) -> Record:
    verdict, measured, tolerance = VERDICTS[record["met"]], record["measured"], record["tolerance"]
    said = f"{measured:.1e}, {verdict}" if measured else f"0, {verdict}"
    limit = None if tolerance is None else f"tolerance {tolerance:.0e}"
    return {**record, "verdict": verdict, "place": max(measured, SMALLEST), "said": said, "limit": limit}
