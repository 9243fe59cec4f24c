"""Grid route: all subsets of a complete table at once, as tensors, by conjugate gradients.

Extended tensors have shape (N_1 + 1, .., N_d + 1); index 0 on axis i means "i is not in A". Three maps, one axis
at a time, each linear in the size of the tensor:

    margins     prepend the sum: applied to p it gives every p_A at once
    expand      [absent | contrasts] -> [absent | cells], contrasts orthonormal for the margin of that feature
    collapse    out[cell] = in[absent] + in[cell]

Then Phi c = collapse(expand(c) / P) with P = margins(p), and its adjoint in L2(p) is expand^T(margins(p y) / P).
Under independence Gamma is the identity, so that one iteration is enough; the Möbius formula and the Walsh transform
are special cases. Columns are scaled to unit norm, which costs one more expansion and saves most of the iterations
when the probabilities span orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from exanova import tolerances
from exanova.solve.cgls import Step, conjugate_gradients
from exanova.typing import FloatArray

SMALL_AXIS = 64
"""Levels of an axis up to which the matrix that sums along it is kept: every iteration needs it. A megabyte in all."""


@dataclass(frozen=True)
class GridSolution:
    """Effects of every subset at once.

    Attributes:
        effects: (N_1 + 1, .., N_d + 1, m) value of f_A at each cell of A, where A is the set of non-zero indices.
        iterations: conjugate gradient iterations.
        residual: of the normal equations, relative to the projections.
        converged: whether it met its tolerance.
    """

    effects: FloatArray
    iterations: int
    residual: float
    converged: bool


@dataclass(frozen=True)
class Grid:
    """The operators of one distribution on a complete table.

    Attributes:
        p: (N_1, .., N_d, 1) probabilities.
        margins_of_p: (N_1 + 1, .., N_d + 1, 1) every p_A.
        contrasts: for each axis, (N + 1, N) from [absent | contrasts] to [absent | cells].
        scale: (N_1, .., N_d, 1) one over the norm of each function.
    """

    p: FloatArray
    margins_of_p: FloatArray
    contrasts: tuple[FloatArray, ...]
    scale: FloatArray

    def tables(self, c: FloatArray) -> FloatArray:
        """Values of every f_A at its cells, for (N_1, .., N_d, m) coefficients."""
        return np.asarray(along_axes(c * self.scale, self.contrasts) / self.margins_of_p)

    def synthesise(self, c: FloatArray) -> FloatArray:
        """Phi c: values on the cells of the table."""
        return collapse(self.tables(c))

    def analyse(self, y: FloatArray) -> FloatArray:
        """Phi^T diag(p) y for (N_1, .., N_d, m) values."""
        adjoint = [matrix.T for matrix in self.contrasts]
        return np.asarray(along_axes(margins(self.p * y) / self.margins_of_p, adjoint) * self.scale)


def make_grid(p: FloatArray) -> Grid:
    """Operators for a strictly positive pmf on a complete table."""
    p = p[..., None]
    extended = margins(p)
    axes = range(p.ndim - 1)
    contrasts = tuple(_contrasts(p.sum(axis=tuple(a for a in range(p.ndim) if a != i))) for i in axes)
    norms = np.sqrt(along_axes(1.0 / extended, [matrix.T**2 for matrix in contrasts]))
    return Grid(p, extended, contrasts, 1.0 / norms)


def solve_grid(p: FloatArray, values: FloatArray, max_iterations: int = 5000, step: Step | None = None) -> GridSolution:
    """Decompose (.., m) values on a complete table with pmf ``p``, all orders."""
    grid = make_grid(p)
    c, residual, iterations = conjugate_gradients(grid, values, max_iterations, step)
    return GridSolution(grid.tables(c), iterations, residual, residual <= tolerances.NORMAL_EQUATIONS)


def along_axes(x: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """Apply one matrix along every axis but the last (a Kronecker product), by one BLAS product per axis.

    Each product transforms the leading axis and moves it to the end, so that the axes are in their original order
    after the last one, behind the outputs.
    """
    outputs = x.shape[-1]
    for matrix in matrices:
        x = x.reshape(matrix.shape[1], -1).T @ matrix.T
    x = x.reshape(outputs, -1).T
    return np.ascontiguousarray(x).reshape(*(matrix.shape[0] for matrix in matrices), outputs)


def margins(x: FloatArray) -> FloatArray:
    """Prepend the sum on every axis but the last.

    >>> margins(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]))[..., 0]
    array([[10.,  4.,  6.],
           [ 3.,  1.,  2.],
           [ 7.,  3.,  4.]])
    """
    return along_axes(x, [_summing(n) for n in x.shape[:-1]])


def collapse(x: FloatArray) -> FloatArray:
    """Add the "absent" entry to every cell, along every axis but the last."""
    return along_axes(x, [_summing(n - 1).T for n in x.shape[:-1]])


def _summing(n: int) -> FloatArray:
    """(n + 1, n) matrix that prepends the sum; its transpose adds the first entry to the others."""
    return _small_summing(n) if n <= SMALL_AXIS else _new_summing(n)


def _new_summing(n: int) -> FloatArray:
    return np.vstack([np.ones((1, n)), np.eye(n)])


_small_summing = cache(_new_summing)


def _contrasts(margin: FloatArray) -> FloatArray:
    """(N + 1, N) matrix: 1 for "absent", then probability times an orthonormal basis of mean-zero functions."""
    root = np.sqrt(margin)
    v = root.copy()
    v[-1] += 1.0
    reflection = np.eye(len(root)) - np.outer(v, v) / (1.0 + root[-1])
    out = np.zeros((len(root) + 1, len(root)))
    out[0, 0] = 1.0
    out[1:, 1:] = reflection[:, :-1] * root[:, None]
    return out
