"""Compiled inner loops over pairs of rows: sums of kernels of cells, read at the cells that two rows fall in.

One row at a time, so that its part of the result and one line of a table stay in cache while the other rows are read.
Only one triangle is written or read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.compiled import compiled


@compiled()
def add_at_rows(tables: Any, start: Any, width: Any, cells: Any, ratio: Any, out: Any) -> None:
    """out[i, j] += sum over s of ratio[s] * table_s[cells[s, i], cells[s, j]] for j >= i.

    ``cells`` are unsigned, so that the loop over j needs no check for negative places.
    """
    count, rows = cells.shape
    for i in range(rows):
        own = out[i]
        for s in range(count):
            weight = ratio[s]
            if weight == 0.0:
                continue
            first = start[s] + width[s] * np.int64(cells[s, i])
            line, at = tables[first : first + width[s]], cells[s]
            for j in range(i, rows):
                own[j] += weight * line[at[j]]


@compiled(fastmath=True)
def products_at_rows(tables: Any, start: Any, width: Any, cells: Any, matrix: Any, out: Any) -> None:
    """out[s] += sum over i, j of matrix[i, j] * table_s[cells[s, i], cells[s, j]], given matrix[i, j] for j >= i."""
    count, rows = cells.shape
    for i in range(rows):
        own = matrix[i]
        for s in range(count):
            first = start[s] + width[s] * np.int64(cells[s, i])
            line, at = tables[first : first + width[s]], cells[s]
            total = 0.0
            for j in range(i + 1, rows):
                total += own[j] * line[at[j]]
            out[s] += 2.0 * total + own[i] * line[at[i]]


@compiled(fastmath=True)
def lines_at_rows(
    tables: Any, start: Any, width: Any, cells: Any, ratio: Any, chosen: Any, matrix: Any, out: Any
) -> None:
    """out[i] += sum over s and j of ratio[s] * table_s[cells[s, i], cells[s, j]] * matrix[i, j], for chosen[s, i]."""
    count, rows = cells.shape
    for i in range(rows):
        own = matrix[i]
        for s in range(count):
            if not chosen[s, i]:
                continue
            first = start[s] + width[s] * np.int64(cells[s, i])
            line, at = tables[first : first + width[s]], cells[s]
            total = 0.0
            for j in range(rows):
                total += own[j] * line[at[j]]
            out[i] += ratio[s] * total
