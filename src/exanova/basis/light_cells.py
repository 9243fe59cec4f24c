"""Pure functions where some cells weigh far less than others.

In coordinates h = sqrt(p) f, functions of fewer features may vanish except in the lightest cells: two main effects that
differ only there have a difference as small as sqrt(p). An orthogonal factorisation of margins scaled by sqrt(p) knows
such a direction to eps / sqrt(p), and effects that only it distinguishes to eps / p, which no mean of an effect shows.
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
    return np.asarray(np.square(root.min(axis=1)) < tolerances.LIGHT_CELL * np.square(root.max(axis=1)))


def without_lower_functions(basis: FloatArray, margins: FloatArray, root: FloatArray) -> FloatArray:
    """A (c, k) orthonormal basis less what functions of fewer features explain of it; twice, because of rounding.

    >>> margins, root = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.sqrt([1.0, 1e-12, 1.0])
    >>> exact = np.array([[-1e-6], [1.0], [0.0]])
    >>> pure = without_lower_functions(exact + [[1e-12], [0.0], [1e-9]], margins, root)
    >>> bool(abs(pure - exact).max() < 1e-17)
    True
    """
    lower, _ = np.linalg.qr(lower_functions(margins, root, len(root) - basis.shape[1]))
    for _ in range(2):
        basis = basis - lower @ (lower.T @ basis)
    return np.asarray(basis)


def lower_functions(margins: FloatArray, root: FloatArray, rank: int) -> FloatArray:
    """(c, rank) columns spanning those of ``margins`` times ``root``, each 1 in a cell where all others are 0.

    The cells are as heavy as possible: what a column has outside its own lies in lighter ones and is never far above 1.
    """
    from scipy.linalg import qr, solve_triangular

    _, pivots = qr(margins * root, mode="r", pivoting=True, check_finite=False)
    own, others = pivots[:rank], pivots[rank:]
    q, r = np.linalg.qr(margins[:, own])
    reduced = solve_triangular(r, q.T @ margins[:, others], check_finite=False)
    # Entries of reduced whole numbers are of order one or rounding, which the weight of a cell would magnify.
    reduced[np.abs(reduced) < tolerances.WELL_CONDITIONED] = 0.0
    out = np.zeros((len(root), rank))
    out[own, np.arange(rank)] = 1.0
    out[others] = reduced.T * root[others, None] / root[own]
    return out
