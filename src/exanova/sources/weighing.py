"""Whether whole weights of rows that are read in blocks look like counts, from sketches of the first pass.

The rule is that of a table in memory (``data/draws.py``). Sketches of a few thousand rows are exact; beyond that rows
count as repeated only where that is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exanova.data.draws import Repeats, are_small, look_surveyed
from exanova.data.table import Table
from exanova.sources.sketch import Hashes, cell_hashes, distinct_about, merge_sketches, mixed, sketch_of, surely_fewer


def _empty() -> Hashes:
    return np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Rows of positive weight and how they repeat.

    Attributes:
        rows: how many there are.
        pairs, outputs: sketches of the rows with their outputs, and of the outputs alone; empty without outputs.
    """

    rows: int = 0
    pairs: Hashes = field(default_factory=_empty)
    outputs: Hashes = field(default_factory=_empty)

    def look_surveyed(self, total: float, widest: int, rows: Hashes) -> bool:
        """Whether whole weights of this ``total`` do not look like counts.

        Args:
            total: the sum of the weights.
            widest: distinct values of the column that has most.
            rows: the sketch of the rows as they were given, without their outputs.
        """
        if are_small(self.rows, total):
            return False
        repeats = Repeats(
            lambda: surely_fewer(rows, self.rows),
            (lambda: surely_fewer(self.pairs, self.rows)) if len(self.pairs) else None,
            lambda: distinct_about(self.outputs),
        )
        return look_surveyed(self.rows, widest, repeats)


def weighed(table: Table, outputs: Sequence[str], rows: Hashes, copies: float) -> Weighed:
    """The rows of a block with the hashes ``rows`` (n,), which stand for that many ``copies`` in all."""
    if not outputs:
        return Weighed(int(copies))
    values = np.zeros(table.n_rows, dtype=np.uint64)
    for name in outputs:
        values = mixed(values ^ cell_hashes(table.column(name)))
    return Weighed(int(copies), sketch_of(mixed(rows ^ values)), sketch_of(values))


def merge_weighed(several: Sequence[Weighed]) -> Weighed:
    """All rows, from those of their parts."""
    return Weighed(
        sum(one.rows for one in several),
        merge_sketches([one.pairs for one in several]),
        merge_sketches([one.outputs for one in several]),
    )
