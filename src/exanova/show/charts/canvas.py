"""Elements shared by all charts: colours, theme, titles that name the game, inline data, panels side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from exanova.effects.effect import GAME
from exanova.errors import MissingPackageError
from exanova.show.error_bars import REACH
from exanova.show.records import Record, legible, short

try:
    import altair as alt
except ImportError as error:
    raise MissingPackageError(
        'charts need altair, which is not installed; install it: pip install "exanova[plot]"'
    ) from error

__all__ = ["alt"]

NEGATIVE, POSITIVE = "#2b6cb0", "#dd7a14"
"""Blue and orange: distinguishable with every kind of colour vision, on white and on black."""

RAMP = ("#0a3a72", "#3f7fbf", "#9ec3e6", "#f4f4f4", "#f9c78d", "#e58a2b", "#8f4400")
"""From the most negative over zero to the most positive."""

AMOUNT = "#66768c"
"""For amounts without a sign."""

NEUTRAL = "#8a8f98"
"""For lines, means and totals, and cells that were never observed."""

INK = "#1f2328"
"""For print on light colours."""

AT_X, AT_Y, SAYING = (cast(Any, channel) for channel in (alt.XValue, alt.YValue, alt.TextValue))
"""Channels with one value for all; altair gives their constructors no types, and makes them faster than ``value``."""

LABEL_WIDTH = 180
"""Pixels of a level's or feature's name; longer ones end in an ellipsis, and the tooltip has them in full."""

SLANTED_WIDTH = 130
"""The same of a name that is written at a slant."""

LETTER = 7
"""Pixels of a letter, about."""

WHISKER = "whisker"
"""The style of error bars, means and whatever else is drawn on top of colours, in the colour of print."""

FAINT = 0.35
"""Opacity of marks with few rows."""

NUMBER = ".6~g"
"""Format of numbers on axes: without leading or trailing zeros."""

NUMBER_WIDTH = 62
"""Pixels of a printed number and the space around it."""


EDGE, WIDER = 5, 1
"""Pixels around a chart, and by which a letter of a browser may be wider than the one a chart is laid out with."""


class Place(NamedTuple):
    """Position of a chart among the panels: at the left edge, at the right edge, or alone (then at both)."""

    left: bool
    right: bool
    alone: bool


def theme(dark: bool = False) -> dict[str, Any]:
    """The configuration of every chart; only the colours of text, lines and background differ in dark mode.

    >>> theme()["background"], theme(dark=True)["background"]
    ('white', '#16181d')
    """
    ink, faint, paper = ("#e8eaed", "#3a3f47", "#16181d") if dark else (INK, "#e3e5e8", "white")
    written = {"labelColor": ink, "titleColor": ink, "labelLimit": LABEL_WIDTH, "titleFontWeight": "normal"}
    return {
        "background": paper,
        "font": "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 14, "subtitleFontSize": 11, "anchor": "start"},
        "axis": {**written, "gridColor": faint, "domainColor": NEUTRAL, "tickColor": NEUTRAL},
        "legend": {**written, "titleLimit": LABEL_WIDTH},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": NEUTRAL},
        "view": {"stroke": None},
        "style": {WHISKER: {"color": ink, "stroke": ink}},
    }


def inline(records: Iterable[Record]) -> alt.InlineData:
    """Records as data of a chart, without a limit on rows.

    All text is made legible, because every field ends up in the chart, at least as a description for screen readers,
    and a control character would make the file unreadable.
    """
    # A tuple, because altair deep-copies lists at every step of building a chart.
    return alt.InlineData(values=tuple(_legible_record(record) for record in records))


def _legible_record(record: Record) -> Record:
    return {field: legible(value) if isinstance(value, str) else value for field, value in record.items()}


def finished(chart: Any, title: str, notes: Sequence[str] = ()) -> Any:
    """A chart with its title, its notes, the game, and the theme."""
    game, _, other = GAME.partition(" (")
    described = chart.properties(
        title=alt.TitleParams(text=title, subtitle=[*notes, f"game: {game}", f"({other}"], offset=12),
        description=". ".join([title, *notes, f"Game: {GAME}"]),
    )
    return shown_offline(described.configure(**theme()))


class _Offline:
    """A chart that a notebook shows as a drawing: the page that altair makes by default loads scripts from a network.

    Another altair renderer, if enabled, is used as usual, for instance for tooltips.
    """

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **options)  # type: ignore[misc]
        try:
            import vl_convert
        except ImportError:  # then there is no other way to draw it
            return super()._repr_mimebundle_(*args, **options)  # type: ignore[misc]
        version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
        drawn = with_room(self.to_dict())  # type: ignore[attr-defined]
        svg = vl_convert.vegalite_to_svg(drawn, vl_version=version)
        return {"image/svg+xml": svg, "text/plain": repr(type(self).__name__)}


def with_room(chart: dict[str, Any]) -> dict[str, Any]:
    """The specification of a chart with room on the right for letters wider than those it is laid out with.

    >>> with_room({"title": {"text": "effect", "subtitle": ["a note"]}})["padding"]["right"]
    11
    """
    title = chart.get("title", {})
    longest = max(map(len, [str(title.get("text", "")), *title.get("subtitle", [])]))
    return {**chart, "padding": {"left": EDGE, "top": EDGE, "bottom": EDGE, "right": EDGE + WIDER * longest}}


class OfflineLayer(_Offline, alt.LayerChart):
    """A chart of several layers."""


class OfflineConcat(_Offline, alt.ConcatChart):
    """Charts side by side."""


OFFLINE = {alt.LayerChart: OfflineLayer, alt.ConcatChart: OfflineConcat}


def shown_offline(chart: Any) -> Any:
    """The same chart, which a notebook shows without a network."""
    # Not by assignment, which altair takes for a property of the chart.
    object.__setattr__(chart, "__class__", OFFLINE.get(type(chart), type(chart)))
    return chart


def panels(records: Sequence[Record], draw: Callable[[list[Record], Place], Any], columns: int = 4) -> Any:
    """One chart for each output, side by side; the chart itself if there is one output."""
    outputs = list(dict.fromkeys(record["output"] for record in records))
    if len(outputs) == 1:
        return draw(list(records), Place(True, True, True))
    lines = -(-len(outputs) // columns)
    columns = -(-len(outputs) // lines)  # as many in every line, as far as they go
    charts = []
    for k, output in enumerate(outputs):
        part = [record for record in records if record["output"] == output]
        place = Place(k % columns == 0, k % columns == columns - 1 or k == len(outputs) - 1, False)
        charts.append(draw(part, place).properties(title=alt.TitleParams(short(output, 40), fontSize=12)))
    return alt.concat(*charts, columns=columns)


def spread(
    values: Iterable[float], width: float, floor: float = 0.0, room: float = NUMBER_WIDTH
) -> tuple[float, float]:
    """The ends of an axis of ``width`` pixels with zero and all values on it, and ``room`` pixels beyond the values.

    Values up to ``floor`` are rounding and are not scaled up to fill the chart.
    """
    listed = list(values)
    low, high = min([0.0, *listed]), max([0.0, *listed])
    if high - low <= floor:
        low, high = -floor, floor or 1.0
    sides = (low < 0) + (high > 0)
    margin = (high - low) * room / (width - sides * room)
    return (low - margin if low < 0 else low), (high + margin if high > 0 else high)


def value_axis(domain: Sequence[float], field: str = "value") -> Any:
    """A horizontal axis of values, with few ticks."""
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return alt.X(f"{field}:Q", title=None, scale=scale, axis=alt.Axis(tickCount=5, format=NUMBER))


def name_axis(names: Sequence[str], field: str = "name", labels: bool = True, limit: int = LABEL_WIDTH) -> Any:
    """A vertical axis of names in the given order, one band each."""
    axis = alt.Axis(labels=labels, labelLimit=limit, domain=False, ticks=False, labelPadding=6)
    return alt.Y(f"{field}:N", title=None, scale=alt.Scale(domain=list(names)), axis=axis)


def zero_line() -> Any:
    """The line between negative and positive values, for charts with values along x."""
    return alt.Chart(inline([{}])).mark_rule(strokeWidth=1.5).encode(x=alt.XDatum(0))


def with_number(base: Any, floor: float = 0.0, form: str = "+.3g") -> Any:
    """A chart whose data have their values as text, in the field ``number``; rounding is printed as 0."""
    return base.transform_calculate(number=f"abs(datum.value) <= {floor!r} ? '0' : format(datum.value, '{form}')")


def with_sign(base: Any, floor: float) -> Any:
    """The same with their signs alone; what does not exceed ``floor`` has none."""
    return base.transform_calculate(number=f"abs(datum.value) <= {floor!r} ? '' : datum.value < 0 ? '−' : '+'")


def printed_numbers(base: Any, x: Any, floor: float = 0.0, form: str = "+.3g", left: Any = None) -> list[Any]:
    """Values as text, outside the bar: to its left if negative, else to its right.

    ``x`` is where bars end on the right, ``left`` where those of negative values do, if that is another field.
    """
    left = x if left is None else left
    numbers = with_number(base, floor, form).encode(text="number:N")
    return [
        numbers.transform_filter("datum.value >= 0").mark_text(align="left", dx=4).encode(x=x),
        numbers.transform_filter("datum.value < 0").mark_text(align="right", dx=-4).encode(x=left),
    ]


def either(test: str, colour: str, otherwise: str) -> Any:
    """One colour where a test holds and another elsewhere; much faster in altair than ``when``."""
    return alt.ColorValue(otherwise, condition={"test": test, "value": colour})


def with_ends(base: Any, signed: bool = True) -> Any:
    """A chart whose data have the ends of their 95 % interval, in ``low`` and ``high``; the value where unknown."""
    reach = f"(datum.stderr == null ? 0 : (datum.reach == null ? {REACH!r} : datum.reach) * datum.stderr)"
    low = f"datum.value - {reach}"
    return base.transform_calculate(low=low if signed else f"max(0, {low})", high=f"datum.value + {reach}")


def interval(record: Record) -> tuple[float, float]:
    """The ends of the 95 % interval of a record; its value twice where no standard error is known."""
    half = (record.get("reach") or REACH) * (record.get("stderr") or 0.0)
    return record["value"] - half, record["value"] + half


def reached(records: Iterable[Record]) -> list[float]:
    """Everything an axis must cover: values, intervals and means."""
    listed = list(records)
    means = [r["mean"] for r in listed if r.get("mean") is not None]
    return [*(end for r in listed for end in interval(r)), *means]


def faded(records: Iterable[Record]) -> dict[str, Any]:
    """The channel that fades marks of few rows, if there are any."""
    if not any(r.get("few") for r in records):
        return {}
    return {"opacity": alt.OpacityValue(1, condition={"test": "datum.few", "value": FAINT})}


def sign_colour() -> Any:
    """Blue below zero, orange above; position or a printed sign shows the same."""
    return either("datum.value < 0", NEGATIVE, POSITIVE)


def growing(records: Sequence[Record], field: str, title: str, span: Sequence[float], form: str = ".2g") -> Any:
    """Scale and legend of a size or width that grows with an amount from zero, with two amounts in the legend."""
    largest = max((record[field] for record in records), default=1.0) or 1.0
    legend = alt.Legend(values=[largest / 2, largest], format=form, symbolFillColor=AMOUNT, symbolStrokeColor=NEUTRAL)
    return {"title": title, "scale": alt.Scale(domain=[0, largest], range=list(span)), "legend": legend}


def ramp_colour(bound: float, title: str) -> Any:
    """Values between two bounds of equal size as colours, zero as white; beyond the bounds the colour stays."""
    scale = alt.Scale(domain=[-bound, bound], range=list(RAMP), interpolate="rgb", clamp=True)
    return alt.Color("value:Q", title=title, scale=scale, legend=alt.Legend(format=".2~g"))


def cell_format(bound: float) -> str:
    """How values up to ``bound`` are printed in narrow cells: two digits of the largest, as many decimals for all.

    >>> cell_format(0.0038), cell_format(0.2), cell_format(250.0), cell_format(1e-7)
    ('+.4f', '+.2f', '+.0f', '+.1e')
    """
    magnitude = math.floor(math.log10(bound))
    return f"+.{max(0, 1 - magnitude)}f" if -3 <= magnitude <= 4 else "+.1e"


def ink_on_ramp(bound: float) -> Any:
    """The colour of print on those colours; the blue ones are darker than the orange ones."""
    return either(f"datum.value < {-0.5 * bound!r} || datum.value > {0.7 * bound!r}", "white", INK)


def tooltips(*fields: str) -> list[Any]:
    """What a pointer shows: names in full, shares as percentages, values with their sign."""
    formats = {"value": "+.6g", "probability": ".3%", "importance": ".6g", "rows": ",.6~g", "stderr": ".3g"}
    formats |= {"low": "+.6g", "high": "+.6g", "mean": "+.6g"}
    titles = {"probability": "share of rows", "stderr": "standard error"}
    return [
        alt.Tooltip(f"{name}:Q", format=formats[name], title=titles.get(name, name))
        if name in formats
        else alt.Tooltip(f"{name}:N")
        for name in fields
    ]


def known_fields(records: Iterable[Record], *fields: str) -> list[str]:
    """The fields that have a value in some record."""
    listed = list(records)
    return [field for field in fields if any(r.get(field) is not None for r in listed)]


def label_angle(names: Sequence[str], width: float) -> int:
    """The slant of names under columns of this width: none where all of them fit."""
    return 0 if max(map(len, names)) * LETTER <= width else -40


def left_out(shown: int, whole: int, what: str, rule: str) -> list[str]:
    """A note that names what is left out, if anything is.

    >>> left_out(20, 784, "features", "of largest importance")
    ['the 20 of 784 features of largest importance; 764 are left out']
    """
    return [f"the {shown:,} of {whole:,} {what} {rule}; {whole - shown:,} are left out"] if shown < whole else []


def flat(records: Sequence[Record], floor: float) -> list[str]:
    """A note for values that are all rounding."""
    values = [abs(record["value"]) for record in records if record["value"] is not None]
    return ["all zero, up to rounding"] if max(values, default=0.0) <= floor else []
