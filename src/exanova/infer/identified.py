"""Which part of an effect the rows determine when subsets can express parts of each other.

Z (q x k) is an orthonormal basis of the dependences among the functions, the null space of Gamma: a decomposition may
be changed by Phi Z z for any z without changing any fitted value. A statistic lambda^T T is determined if
Z^T Phi^T lambda vanishes. The certain part of f_A is the least ||f_A + Phi_A Z z|| over z: in the coordinates
c_A = Phi_A^T diag(w_A) f_A of its orthonormal functions, the part of c_A orthogonal to the range of Z_A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis, on_functions
from exanova.design.family import Family
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Dependences:
    """The dependences among the functions of a family, given by one of two orthonormal bases.

    Attributes:
        basis: the functions.
        null: (q, k) basis Z of the dependences, or ``None``.
        independent: (q, rank) basis of their orthogonal complement, or ``None``.
    """

    basis: Basis
    null: FloatArray | None
    independent: FloatArray | None = None

    @classmethod
    def of(cls, basis: Basis, null: FloatArray, independent: FloatArray | None) -> Dependences:
        """The dependences found by a solve; ``null`` may be any basis of them."""
        return cls(basis, None if independent is not None else np.linalg.qr(null)[0], independent)

    def block(self, functions: slice) -> FloatArray:
        """(k, k) block of the projector Z Z^T at some functions."""
        if self.null is not None:
            return self.null[functions] @ self.null[functions].T
        assert self.independent is not None
        rows = self.independent[functions]
        return np.eye(len(rows)) - rows @ rows.T

    def squared_lengths(self, vectors: FloatArray) -> FloatArray:
        """(f,) squared length of Z Z^T v for (q, f) vectors."""
        if self.null is not None:
            return np.asarray(np.square(self.null.T @ vectors).sum(axis=0))
        assert self.independent is not None
        return np.asarray(np.square(vectors - self.independent @ (self.independent.T @ vectors)).sum(axis=0))


def certain_part(family: Family, dependences: Dependences, s: int, values: FloatArray) -> FloatArray:
    """(m,) least norm of the effect of subset number ``s`` with ``values`` (c, m), over all dependences."""
    basis = dependences.basis
    coordinates = basis.table(s).T @ (family.probability_of(s)[:, None] * values)
    sizes, vectors = np.linalg.eigh(dependences.block(basis.functions_of(s)))
    own = vectors[:, sizes <= tolerances.DEPENDENCE**2]
    return np.asarray(np.linalg.norm(own.T @ coordinates, axis=0))


def determined(
    family: Family, dependences: Dependences, weights: FloatArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(f,) whether the sums of T times ``weights`` (cells, f) are the same for every decomposition of the fit."""
    projected = on_functions(family, dependences.basis, weights)
    length = np.square(projected).sum(axis=0)
    return np.asarray(dependences.squared_lengths(projected) <= tolerances.DEPENDENCE**2 * length)
