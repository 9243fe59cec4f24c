"""Pure functions where some cells weigh far less than others.

In coordinates h = sqrt(p) f, functions of fewer features may vanish except in the lightest cells: two main effects that
differ only there have a difference as small as sqrt(p). An orthogonal factorisation of margins scaled by sqrt(p) knows
such a direction to eps / sqrt(p), and effects that are told apart by it to eps / p, which no mean of an effect shows.
The margins themselves are whole numbers. They are reduced so that each row is 1 in a cell of its own, where all others
are 0, and otherwise differs from 0 in lighter cells only; scaled, such rows are nearly orthogonal. What a basis has
along them is removed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.typing import FloatArray


def has_light_cells(root: FloatArray) -> NDArray[np.bool_]:
    """(b,) whether each row of the (b, c) square roots of probabilities varies so much that directions are lost."""
    return np.asarray(np.square(root.min(axis=1)) < tolerances.GRAM_DIRECTION * np.square(root.max(axis=1)))


def without_lower_functions(basis: FloatArray, margins: FloatArray, root: FloatArray) -> FloatArray:
    """A (c, k) orthonormal basis less what functions of fewer features explain of it; twice, because of rounding.

    >>> margins, root = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.sqrt([1.0, 1e-12, 1.0])
    >>> exact = np.array([[-1e-6], [1.0], [0.0]])
    >>> found = without_lower_functions(exact + [[1e-12], [0.0], [1e-9]], margins, root)
    >>> bool(abs(found - exact).max() < 1e-17)
    True
    """
    lower, _ = np.linalg.qr(lower_functions(margins, root))
    for _ in range(2):
        basis = basis - lower @ (lower.T @ basis)
    return np.asarray(basis)


def lower_functions(margins: FloatArray, root: FloatArray) -> FloatArray:
    """(c, rank) columns spanning those of ``margins`` times ``root``, each 1 in a cell where all others are 0.

    Elimination of 0/1 rows, the heaviest cells first: what a row keeps outside its own cell lies in lighter ones, so
    that no column has an entry far above 1.
    """
    order = np.argsort(-root, kind="stable")
    reduced = margins[:, order]
    own: list[int] = []
    for cell in range(len(order)):
        if (rank := len(own)) == len(reduced):
            break
        pivot = rank + int(np.argmax(np.abs(reduced[rank:, cell])))
        # Entries of reduced whole numbers are of order one or rounding.
        if abs(reduced[pivot, cell]) > tolerances.WELL_CONDITIONED:
            _eliminate(reduced, rank, pivot, cell)
            own.append(cell)
    out = np.empty((len(order), len(own)))
    out[order] = reduced[: len(own)].T * root[order, None] / root[order[own]]
    return out


def _eliminate(rows: FloatArray, rank: int, pivot: int, cell: int) -> None:
    """Make a row the next one, 1 in the cell, and the others 0 there, in place."""
    rows[[rank, pivot]] = rows[[pivot, rank]]
    rows[rank] /= rows[rank, cell]
    others = np.flatnonzero(rows[:, cell])
    others = others[others != rank]
    rows[others] -= np.outer(rows[others, cell], rows[rank])
