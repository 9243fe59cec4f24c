"""What the rows determine of an effect when subsets can express parts of each other.

Z (q x k) is an orthonormal basis of the dependences among the functions, the null space of Gamma: a decomposition may
be changed by Phi Z z for any z without changing a single fitted value. A statistic lambda^T T is determined when
Z^T Phi^T lambda vanishes. The certain part of f_A is the least ||f_A + Phi_A Z z|| over z: in the coordinates
c_A = Phi_A^T diag(w_A) f_A of its orthonormal functions, what c_A has outside the range of Z_A.
"""

from __future__ import annotations

import numpy as np

from exanova import tolerances
from exanova.basis.tables import Basis, on_functions
from exanova.design.cells import CellIndex
from exanova.typing import FloatArray


def certain_part(index: CellIndex, basis: Basis, null: FloatArray, s: int, values: FloatArray) -> FloatArray:
    """(m,) least norm of the effect of subset number ``s`` with ``values`` (c, m), over all dependences ``null``."""
    table = basis.table(s)
    coordinates = table.T @ (index.probability_of(s)[:, None] * values)
    left, sizes, _ = np.linalg.svd(null[basis.functions_of(s)], full_matrices=False)
    shared = left[:, sizes > tolerances.DEPENDENCE]
    return np.asarray(np.linalg.norm(coordinates - shared @ (shared.T @ coordinates), axis=0))


def determined(
    index: CellIndex, basis: Basis, null: FloatArray, weights: FloatArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(f,) whether the sums of T times ``weights`` (cells, f) are the same for every decomposition of this kind."""
    projected = on_functions(index, basis, weights)
    moved = np.linalg.norm(null.T @ projected, axis=0)
    return np.asarray(moved <= tolerances.DEPENDENCE * np.maximum(np.linalg.norm(projected, axis=0), tolerances.EPS))
