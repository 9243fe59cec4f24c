"""What every chart shares: colours, theme, titles that name the game, inline data, panels side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from exanova.effects.tables import GAME
from exanova.errors import MissingPackageError
from exanova.show.labels import short
from exanova.show.records import Record

try:
    import altair as alt
except ImportError as error:
    raise MissingPackageError(
        'pictures are drawn with altair, which is not installed: pip install "exanova[plot]"'
    ) from error

__all__ = ["alt"]

NEGATIVE, POSITIVE = "#2b6cb0", "#dd7a14"
"""Blue and orange: told apart by every kind of colour vision, and strong enough on white and on black."""

RAMP = ("#0a3a72", "#3f7fbf", "#9ec3e6", "#f4f4f4", "#f9c78d", "#e58a2b", "#8f4400")
"""From the most negative over zero to the most positive."""

NEUTRAL = "#8a8f98"
"""For what has no sign: means, totals, probabilities, cells that were never observed."""

LABEL_WIDTH = 180
"""Pixels of a level's or feature's name; longer ones end in an ellipsis, and the tooltip has them whole."""


def theme(dark: bool = False) -> dict[str, Any]:
    """The configuration of every chart; what it colours is all that differs between light and dark.

    >>> theme()["background"], theme(dark=True)["background"]
    ('white', '#16181d')
    """
    ink, faint, paper = ("#e8eaed", "#3a3f47", "#16181d") if dark else ("#1f2328", "#e3e5e8", "white")
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": faint, "domainColor": NEUTRAL, "tickColor": NEUTRAL}
    return {
        "background": paper,
        "font": "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 14, "subtitleFontSize": 11, "anchor": "start"},
        "axis": {**axis, "labelLimit": LABEL_WIDTH, "titleFontWeight": "normal"},
        "legend": {"labelColor": ink, "titleColor": ink, "labelLimit": LABEL_WIDTH, "titleFontWeight": "normal"},
        "header": {"labelColor": ink, "titleColor": ink},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": NEUTRAL},
        "view": {"stroke": None},
    }


def inline(records: Iterable[Record]) -> alt.InlineData:
    """Records as data of a chart, to which no limit of rows applies."""
    return alt.InlineData(values=list(records))


def finished(chart: Any, title: str, notes: Sequence[str] = ()) -> Any:
    """A chart with its title, what is to be said about it, the game, and the theme."""
    game, _, other = GAME.partition(" (")
    lines = [*notes, f"game: {game}", *([f"({other}"] if other else [])]
    described = chart.properties(
        title=alt.TitleParams(text=title, subtitle=lines), description=". ".join([title, *notes, f"Game: {GAME}"])
    )
    return described.configure(**theme())


def panels(records: Sequence[Record], draw: Callable[[list[Record]], Any], columns: int = 3) -> Any:
    """One chart for each output, side by side; the chart itself if there is one output."""
    outputs = list(dict.fromkeys(record["output"] for record in records))
    if len(outputs) == 1:
        return draw(list(records))
    charts = [
        draw([record for record in records if record["output"] == output]).properties(title=short(output, 40))
        for output in outputs
    ]
    return alt.concat(*charts, columns=columns)


def spread(values: Iterable[float], floor: float = 0.0, room: float = 0.0) -> tuple[float, float]:
    """An interval with zero and all values in it, and ``room`` for text beyond them, as a share of its length.

    Values below ``floor`` are rounding; they are not blown up to fill the picture.
    """
    listed = list(values)
    low, high = min([0.0, *listed]), max([0.0, *listed])
    least = floor if floor > 0 else 1.0
    if high - low <= floor:
        low, high = (-least if low < 0 else 0.0), (least if high > 0 or low == 0 else 0.0)
    margin = room * (high - low)
    return (low - margin if low < 0 else low), (high + margin if high > 0 else high)


def zero_line() -> Any:
    """The line that parts negative values from positive ones, for charts with values along x."""
    return alt.Chart(inline([{}])).mark_rule(strokeWidth=1.5).encode(x=alt.datum(0))


def sign_colour() -> Any:
    """Blue below zero, orange above; position or a printed sign says the same."""
    return alt.when("datum.value < 0").then(alt.value(NEGATIVE)).otherwise(alt.value(POSITIVE))


def counted(shown: int, whole: int, what: str, rule: str) -> list[str]:
    """A note that names what is left out, if anything is."""
    return [f"the {shown:,} of {whole:,} {what} {rule}; {whole - shown:,} left out"] if shown < whole else []
