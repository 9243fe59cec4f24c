"""From any table and any model to a support with values: the path of the data up to the mathematics.

``table`` reads, with ``series`` and ``arrow`` for the columns of each library and ``column`` and ``times`` for their
cells. ``learning`` finds the levels by the ``rules``: ``factor`` lists values, ``cutting`` bins numbers (``binning``
and ``segments`` place the edges, ``intervals`` labels the bins) and times (``periods``), or at the thresholds of a
model (``trees`` and its neighbours read them). ``encoding`` replays each ``feature``, ``support`` keeps the distinct
rows, ``values`` calls the model, ``alignment`` matches its outputs with the rows, ``observe`` runs all of these steps.
"""

from exanova.data.column import Column
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.learning import learn_encoding
from exanova.data.observe import Observation, observe
from exanova.data.support import Support, check_weights, distinct_rows
from exanova.data.table import Table, frame_of_kind
from exanova.data.values import ModelValues, align, average, evaluate

__all__ = [
    "Column",
    "Encoding",
    "FeatureLevels",
    "ModelValues",
    "Observation",
    "Support",
    "Table",
    "align",
    "average",
    "check_weights",
    "distinct_rows",
    "evaluate",
    "frame_of_kind",
    "learn_encoding",
    "observe",
]
