"""Functions from records to Altair charts; importing this package needs altair."""

from exanova.show.charts.canvas import theme
from exanova.show.charts.effects import certificate_chart, effect_chart, importance_chart
from exanova.show.charts.explained import beeswarm_chart, image_chart, waterfall_chart
from exanova.show.charts.pairs import network_chart, pair_chart

__all__ = [
    "beeswarm_chart",
    "certificate_chart",
    "effect_chart",
    "image_chart",
    "importance_chart",
    "network_chart",
    "pair_chart",
    "theme",
    "waterfall_chart",
]
