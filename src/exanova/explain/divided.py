"""The rows of divided cells: how those of one fit lie among the cells of another.

A cell of one fit may be cut into parts by the bins of the other, and then neither fit knows how its rows divide. But
both know the rows of their own cells. So the parts of each cell get its rows in such a way that the two fits agree as
well as they can: beginning with lengths, the parts are scaled in turn to the rows of the cells of the one fit and of
the other, which leads to the two closest divisions. For fits of the same rows it finds the rows of every part between
the edges of one column, and of every cell that lies in one cell of the other fit.
"""

from __future__ import annotations

import numpy as np

from exanova.typing import FloatArray, IntArray

ROUNDS = 500
"""Scalings at most: parts of a chain of overlapping bins move towards each other slowly."""

SETTLED = 1e-14
"""Change of a probability below which the divisions no longer move."""


def divided(cells: IntArray, shares: FloatArray, totals: tuple[FloatArray, FloatArray]) -> FloatArray:
    """(2, k) probability of common parts under each fit, those of one cell adding up to its total.

    Args:
        cells: (2, k) the cell of each fit that holds a part.
        shares: (2, k) the share of the part in that cell, by length.
        totals: probability of every cell of each fit, to be divided among its parts.

    >>> cells = np.array([[0, 1, 1], [0, 0, 1]])  # below 30, [30, 50), from 50: one fit cuts at 30, the other at 50
    >>> shares = np.array([[1.0, 0.3, 0.7], [0.6, 0.4, 1.0]])
    >>> divided(cells, shares, (np.array([0.5, 0.5]), np.array([0.9, 0.1]))).round(6).tolist()
    [[0.5, 0.4, 0.1], [0.5, 0.4, 0.1]]
    """
    out = np.stack([_scaled(shares[side], cells[side], totals[side]) for side in (0, 1)])
    for _ in range(ROUNDS):
        second = _scaled(out[0], cells[1], totals[1])
        moved = np.stack([_scaled(second, cells[0], totals[0]), second])
        settled = np.abs(moved - out).max(initial=0.0) <= SETTLED
        out = moved
        if settled:
            break
    return out


def _scaled(amounts: FloatArray, cells: IntArray, totals: FloatArray) -> FloatArray:
    """Amounts scaled to the total of each cell; a cell of no amount is divided equally."""
    sums, count = np.bincount(cells, amounts, len(totals)), np.bincount(cells, minlength=len(totals))
    share = np.where(sums[cells] > 0, amounts / np.where(sums > 0, sums, 1.0)[cells], 1.0 / count[cells])
    return np.asarray(share * totals[cells])
