"""Rows as codes, which the page explains itself: rows that a reader finds, filters and groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.table import Table
from exanova.data.values import align, is_model
from exanova.decomposition import Decomposition
from exanova.effects.at_rows import fitted_part
from exanova.explain.cells import cell_text, cells_of, hides
from exanova.messages import count_of
from exanova.report.explorer import ROWS, GivenRows, spread_rows
from exanova.typing import FloatArray, IntArray

CODES, CELL = 300_000, 4
"""Levels in all rows of a page: 0.4 MB; and how many of them take as much as a number, name or time in full."""

CALLED = 2000
"""Rows at which a model is called for its residuals; outputs that are given need no call."""


@dataclass(frozen=True, eq=False)
class LiveRows:
    """Rows of a page.

    Attributes:
        numbers: (n,) positions of the rows in the table they come from.
        ids: (n,) what the rows are called, or ``None``.
        codes: (n, d) levels, -1 where unknown.
        cells: (n,) what the rows hold as text, "" where missing, by the number of each feature whose levels hide it.
        residual: (n, m) model minus fitted part, or ``None`` if the model is not known at these rows.
        weight: (n,) rows that each stands for, or ``None`` for one.
        mass: (n,) weights in means, or ``None`` where these are the rows each stands for.
        total: rows of the table.
        given: whether the table was given, and is not that of the distinct rows of the fit.
        between: how many rows are not here because they hold numbers never observed, which the page cannot read.
    """

    numbers: IntArray
    ids: list[str] | None
    codes: NDArray[np.int64]
    residual: FloatArray | None
    weight: FloatArray | None
    mass: FloatArray | None
    total: int
    given: bool
    cells: dict[int, list[str]] = field(default_factory=dict)
    between: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the table."""
        return len(self.numbers) == self.total

    @property
    def weighting(self) -> str:
        """The weighting of rows in means, in words."""
        return "each counting once" if self.mass is None else "weighted as in the fit"

    @property
    def note(self) -> str:
        """A description of the rows, and the sum of the steps of a row."""
        whose = "rows given, numbered from 0" if self.given else "distinct rows of the fit"
        count = len(self.numbers)
        which = f"All {count:,} {whose}." if count == self.total else f"{count:,} of the {self.total:,} {whose}."
        if self.between:
            which += f" {count_of(self.between, 'row')} with numbers never observed cannot be read here."
        if self.residual is not None:
            return f"{which} The steps of a row lead from the mean to the model; the residual is one step."
        return f"{which} The steps of a row lead from the mean to the fitted part."


def live_rows(decomposition: Decomposition, given: GivenRows) -> LiveRows | None:
    """Rows of the table given, or of the fit without it, as many as a page holds; ``None`` if neither is there."""
    features = decomposition.encoding.features
    if given.table is not None:
        hidden = sum(map(hides, features))
        return _from_table(decomposition, given, max(ROWS, CODES // (len(features) + CELL * hidden)))
    most = max(ROWS, CODES // len(features))
    return None if decomposition.sample is None else _from_fit(decomposition, most)


def _from_table(decomposition: Decomposition, given: GivenRows, most: int) -> LiveRows:
    table, model, predictions = given.table, given.model, given.predictions(decomposition)
    assert table is not None
    called = model is not None and is_model(model)
    rows = spread_rows(predictions, min(most, CALLED) if called else most)
    read = _can_read(decomposition, table, rows)
    rows, between = rows[read], int((~read).sum())
    chosen, residual = table.rows(rows), None
    if model is not None:
        asked = model if called else align(model, table.n_rows, index=table.index, kept=rows).values
        residual = decomposition.model_values(chosen, asked) - predictions[rows]
    codes = decomposition.encoding.encode(chosen, decomposition.settings.handle_unknown)
    ids = None if given.ids is None else given.ids[rows].tolist()
    mass = _mass_in_fit(decomposition, codes) if len(rows) == table.n_rows else None
    columns = enumerate(cells_of(chosen, decomposition.encoding))
    cells = {k: [cell_text(cell) or "" for cell in own.tolist()] for k, own in columns if own is not None}
    return LiveRows(rows, ids, np.ascontiguousarray(codes.T), residual, None, mass, table.n_rows, True, cells, between)


def _can_read(decomposition: Decomposition, table: Table, rows: IntArray) -> NDArray[np.bool_]:
    """(n,) whether a row has no number between the levels that were observed: the page knows levels alone."""
    codes = decomposition.encode(table.rows(rows))
    return np.asarray((codes < decomposition.family.sizes[:, None]).all(axis=0))


def _mass_in_fit(decomposition: Decomposition, codes: NDArray[Any]) -> FloatArray | None:
    """(n,) weights in the fit of rows (d, n) that are those of the fit, in their order; ``None`` for others."""
    sample = decomposition.sample
    if sample is None or sample.draws is None or len(sample.draws.group) != codes.shape[1]:
        return None
    if not np.array_equal(sample.codes[:, sample.draws.group], codes):
        return None
    weight = sample.draws.weight.astype(np.float64)
    return None if (weight == 1.0).all() else weight


def _from_fit(decomposition: Decomposition, most: int) -> LiveRows:
    sample = decomposition.sample
    assert sample is not None
    rows = spread_rows(fitted_part(decomposition.everywhere, sample.codes), most)
    codes = sample.codes[:, rows].T.astype(np.int64)
    copies, mass = sample.copies[rows], sample.mass[rows]
    own = None if np.array_equal(copies, mass) else mass
    return LiveRows(rows, None, np.ascontiguousarray(codes), None, copies, own, sample.n_rows, False)
