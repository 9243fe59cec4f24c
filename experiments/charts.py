"""The pictures of the experiments, in the colours of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exanova.show.charts.canvas import NEGATIVE, NEUTRAL, POSITIVE, RAMP, alt, inline, theme
from exanova.typing import FloatArray

SERIES = (POSITIVE, NEGATIVE, NEUTRAL)
"""Colours of what stands side by side, ours first."""


def bars(
    series: Mapping[str, Mapping[str, float]], *, axis: str, title: str, format: str = ".3~g", stacked: bool = False
) -> Any:
    """Horizontal bars, one group for each name, one bar in it for each series; names in the order of the first.

    ``stacked`` puts the bars of a name in one place, where only one of them is not zero.
    """
    records = [{"series": s, "name": n, "value": float(v)} for s, values in series.items() for n, v in values.items()]
    names = list(next(iter(series.values())))
    room = 1.15 * max(record["value"] for record in records)
    base = alt.Chart(inline(record for record in records if not stacked or record["value"])).encode(
        y=alt.Y("name:N", title=None, scale=alt.Scale(domain=names)),
        x=alt.X("value:Q", title=axis, scale=alt.Scale(domain=[0, room], nice=False)),
    )
    if not stacked:
        base = base.encode(yOffset=alt.YOffset("series:N", scale=alt.Scale(domain=list(series))))
    colour = alt.Color("series:N", title=None, scale=alt.Scale(domain=list(series), range=list(SERIES[: len(series)])))
    text = base.mark_text(align="left", dx=3, fontSize=9).encode(text=alt.Text("value:Q", format=format))
    layered = alt.layer(base.mark_bar().encode(color=colour), text)
    height = (12 * (1 if stacked else len(series)) + 6) * len(names)
    return finished(layered.properties(width=420, height=height), title)


def lines(records: Sequence[Mapping[str, Any]], *, x: str, y: str, title: str, log: bool = True) -> Any:
    """One line with points for each ``series`` of the records."""
    scale = alt.Scale(type="log") if log else alt.Scale()
    names = list(dict.fromkeys(record["series"] for record in records))
    colour = alt.Scale(domain=names, range=list(SERIES[: len(names)]))
    chart = alt.Chart(inline(dict(record) for record in records)).mark_line(point=True)
    encoded = chart.encode(
        x=alt.X("x:O", title=x, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:Q", title=y, scale=scale, axis=alt.Axis(format=".0e" if log else ".2~f", tickCount=8)),
        color=alt.Color("series:N", title=None, scale=colour),
        shape=alt.Shape("series:N", title=None, scale=alt.Scale(domain=names)),
    )
    return finished(encoded.properties(width=380, height=240), title)


def dots(series: Mapping[str, Mapping[str, float]], *, axis: str, title: str, least: float) -> Any:
    """One line of points for each name on a logarithmic axis; nothing lies left of ``least``."""
    records = [
        {"series": s, "name": n, "value": max(float(v), least)}
        for s, values in series.items()
        for n, v in values.items()
    ]
    names = list(next(iter(series.values())))
    colour = alt.Scale(domain=list(series), range=list(SERIES[: len(series)]))
    chart = alt.Chart(inline(records)).mark_point(filled=True, size=70, opacity=1)
    encoded = chart.encode(
        y=alt.Y("name:N", title=None, scale=alt.Scale(domain=names), axis=alt.Axis(grid=True)),
        x=alt.X("value:Q", title=axis, scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=8)),
        color=alt.Color("series:N", title=None, scale=colour),
        shape=alt.Shape("series:N", title=None, scale=alt.Scale(domain=list(series))),
    )
    return finished(encoded.properties(width=420, height=26 * len(names)), title)


def picture(image: FloatArray, *, title: str, colours: Sequence[str], bound: tuple[float, float], legend: bool) -> Any:
    """A matrix as a picture of square cells."""
    records = [
        {"row": i, "column": j, "value": float(value)} for i, line in enumerate(image) for j, value in enumerate(line)
    ]
    scale = alt.Scale(domain=list(bound), range=list(colours), clamp=True)
    shown = alt.Legend(title=None, gradientLength=180) if legend else None
    chart = alt.Chart(inline(records)).mark_rect(stroke=None)
    return chart.encode(
        x=alt.X("column:O", axis=None),
        y=alt.Y("row:O", axis=None),
        color=alt.Color("value:Q", scale=scale, legend=shown),
    ).properties(width=224, height=224, title=title)


def signed(image: FloatArray, title: str, bound: float) -> Any:
    """A matrix of values with a sign, white where there is none."""
    return picture(image, title=title, colours=RAMP, bound=(-bound, bound), legend=True)


def shaded(image: FloatArray, title: str, bound: float, legend: bool = True) -> Any:
    """A matrix of values without a sign, from white to black."""
    return picture(image, title=title, colours=["white", "black"], bound=(0.0, bound), legend=legend)


def side_by_side(charts: Sequence[Any], title: str) -> Any:
    """Charts in a row, each with its own colours."""
    return finished(alt.hconcat(*charts).resolve_scale(color="independent"), title)


def finished(chart: Any, title: str) -> Any:
    """A chart with its title and the theme of the library."""
    return chart.properties(title=alt.TitleParams(text=title)).configure(**theme())
