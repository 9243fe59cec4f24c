"""Functions from records to Altair charts; importing this package needs altair."""

from exanova.show.charts.canvas import theme
from exanova.show.charts.effects import effect_chart, importance_chart, pair_chart
from exanova.show.charts.rows import waterfall_chart

__all__ = ["effect_chart", "importance_chart", "pair_chart", "theme", "waterfall_chart"]
