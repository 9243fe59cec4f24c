"""Plain records that charts, tables and files are made from."""

from exanova.show.records.decomposition import (
    Record,
    certificate_records,
    effect_records,
    importance_records,
    network_records,
    pair_records,
    rounding,
)
from exanova.show.records.rows import beeswarm_records, image_records, waterfall_records

__all__ = [
    "Record",
    "beeswarm_records",
    "certificate_records",
    "effect_records",
    "image_records",
    "importance_records",
    "network_records",
    "pair_records",
    "rounding",
    "waterfall_records",
]
