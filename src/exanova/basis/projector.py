"""Pure spaces with too many functions for a table: of a feature and of a pair with many levels.

One feature: the functions orthogonal to the constant. A Householder reflection of the axes gives an orthonormal basis
of them, and is applied without being written down.

A pair: a projector made from a sparse factorisation. For two features with a thousand levels each and fifty thousand
observed cells the pure space has dimension 48,001, too large for a table of its functions. Its orthogonal complement is
small: the additive functions a(x_i) + b(x_j).
In coordinates h = sqrt(p) f,

    Q h = h - sqrt(p) (a_i + b_j),   (a, b) the weighted least-squares fit of h / sqrt(p),

whose normal equations are the Laplacian of the bipartite graph of observed cells: one level fixed in each connected
component, it is factorised once, sparsely. Q is used in place of a table of functions: ``Q @ c`` gives values on
cells, ``Q.T @ s`` the inner products with a measure. There are as many coordinates as cells; Q projects them on the
pure space.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from exanova.typing import FloatArray, IntArray

LARGEST_TABLE = 2500
"""Cells up to which a subset gets a dense table of functions (at most 50 MB)."""


class ImplicitTable(ABC):
    """The functions of one subset as a linear map, used in place of a (cells, coordinates) table of their values.

    Attributes:
        dimension: dimension of the pure space; there may be more coordinates.
        shape: cells and coordinates.
    """

    dimension: int
    shape: tuple[int, int]

    @abstractmethod
    def __matmul__(self, coordinates: FloatArray) -> FloatArray:
        """(cells, m) values of the functions with these coordinates."""

    @abstractmethod
    def adjoint(self, sums: FloatArray) -> FloatArray:
        """(coordinates, m) inner products with a measure on cells."""

    @property
    def T(self) -> _Adjoint:
        """The adjoint: from sums over cells to coordinates."""
        return _Adjoint(self)


class Reflection(ImplicitTable):
    """Orthonormal functions of one feature, orthogonal to the constant: those of ``pure_tables``, not written down.

    I - v v^T / (1 + root_last), with v = root + (0, .., 0, 1), sends the last axis to -root. Its other columns are
    orthogonal to root, the square roots of the probabilities; divided by root they are the functions.

    >>> made = Reflection(np.array([0.5, 0.25, 0.25]))
    >>> made.shape, bool(abs(np.array([0.5, 0.25, 0.25]) @ made.table()).max() < 1e-15)
    ((3, 2), True)
    """

    def __init__(self, probability: FloatArray) -> None:
        self._root = np.sqrt(probability)[:, None]
        self._v = self._root.copy()
        self._v[-1] += 1.0
        self.dimension = len(probability) - 1
        self.shape = (len(probability), len(probability) - 1)

    def __matmul__(self, coordinates: FloatArray) -> FloatArray:
        """(cells, m) values of the functions with these coordinates."""
        out = np.vstack([coordinates, np.zeros((1, coordinates.shape[1]))])
        return np.asarray((out - self._v * (self._v[:-1].T @ coordinates) / self._v[-1]) / self._root)

    def adjoint(self, sums: FloatArray) -> FloatArray:
        """(coordinates, m) inner products with a measure on cells."""
        scaled = sums / self._root
        return np.asarray(scaled[:-1] - self._v[:-1] * (self._v.T @ scaled) / self._v[-1])

    def table(self) -> FloatArray:
        """(cells, cells - 1) the functions written down."""
        return self @ np.eye(self.dimension)


class PureProjector(ImplicitTable):
    """Orthogonal projector on the pure space of one pair.

    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> projector = PureProjector(codes, (2, 2), np.full(4, 0.25))
    >>> projector.dimension, (projector @ np.array([[1.0], [0.0], [0.0], [0.0]])).ravel().round(12).tolist()
    (1, [0.5, -0.5, -0.5, 0.5])
    """

    def __init__(self, cell_codes: IntArray, sizes: tuple[int, int], probability: FloatArray) -> None:
        from scipy.sparse import coo_array, csc_array
        from scipy.sparse.csgraph import connected_components
        from scipy.sparse.linalg import splu

        nodes, cells = sum(sizes), cell_codes.shape[1]
        ends = np.stack([cell_codes[0], sizes[0] + cell_codes[1]])
        count, component = connected_components(
            coo_array((np.ones(cells), (ends[0], ends[1])), shape=(nodes, nodes)), directed=False
        )
        self._root = np.sqrt(probability)
        rows = np.repeat(np.arange(cells), 2)
        design = csc_array((np.repeat(self._root, 2), (rows, ends.T.ravel())), shape=(cells, nodes))
        _, fixed = np.unique(component, return_index=True)
        self._design = csc_array(design[:, np.setdiff1d(np.arange(nodes), fixed)])
        self._solve = splu(csc_array(self._design.T @ self._design)).solve
        self.dimension = cells - nodes + int(count)
        self.shape = (cells, cells)

    def project(self, h: FloatArray) -> FloatArray:
        """Q h for (cells, m) coordinates, projected twice, because the second projection removes rounding errors."""
        for _ in range(2):
            h = h - self._design @ self._solve(np.asarray(self._design.T @ h))
        return np.asarray(h)

    def __matmul__(self, coordinates: FloatArray) -> FloatArray:
        """(cells, m) values of the functions with these coordinates."""
        return self.project(coordinates) / self._root[:, None]

    def adjoint(self, sums: FloatArray) -> FloatArray:
        """(cells, m) coordinates of the inner products with a measure on cells."""
        return self.project(sums / self._root[:, None])


class _Adjoint:
    def __init__(self, implicit: ImplicitTable) -> None:
        self._implicit = implicit

    def __matmul__(self, sums: FloatArray) -> FloatArray:
        return self._implicit.adjoint(sums)
