"""The paper's functions phi_A^(z), as tables on the observed cells of A.

On a complete table they span the pure space. Where cells are missing they do not lie in it, but over a family that is
closed downward they span the same functions together as the pure bases.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from exanova import tolerances
from exanova.typing import FloatArray, IntArray


def paper_tables(cell_codes: IntArray, sizes: tuple[int, ...], probability: FloatArray) -> tuple[FloatArray, IntArray]:
    """Functions that do not vanish on the support, of unit norm, in the paper's order of z.

    Args:
        cell_codes: (|A|, c) levels in each observed cell.
        sizes: levels of each feature of A.
        probability: (c,) probabilities of the cells.

    Returns:
        (c, k) values of the functions, and (k, |A|) their z.

    >>> table, z = paper_tables(np.array([[0, 0, 1], [0, 1, 0]]), (2, 2), np.full(3, 1 / 3))
    >>> bool(np.allclose(table.mean(axis=0), -1 / 3))
    True
    """
    labels = list(product(*(range(n - 1) for n in sizes)))
    z = np.array(labels, dtype=np.int64).reshape(len(labels), len(sizes))
    numerator = paper_numerators(cell_codes, sizes, z)
    table = numerator / probability[:, None]
    norm = np.sqrt(probability @ table**2)
    kept = norm > 0
    return table[:, kept] / norm[kept], z[kept]


def paper_numerators(cell_codes: IntArray, sizes: tuple[int, ...], z: IntArray) -> FloatArray:
    """(c, k) products of 1{x_i = z_i} - 1{x_i = last} over the features of A: -1, 0 or 1 at every cell."""
    numerator = np.ones((cell_codes.shape[1], len(z)))
    for i, n in enumerate(sizes):
        level = cell_codes[i][:, None]
        numerator *= (level == z[:, i]).astype(float) - (level == n - 1)
    return numerator


def orthonormalised(table: FloatArray, probability: FloatArray) -> FloatArray:
    """(c, k') functions with the same span as ``table``, orthonormal in L2(p_A)."""
    root = np.sqrt(probability)[:, None]
    u, s, _ = np.linalg.svd(table * root, full_matrices=False)
    kept = s > tolerances.rank_of_columns(*table.shape) * s.max(initial=0.0)
    return np.asarray(u[:, kept] / root)
