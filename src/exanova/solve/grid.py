"""Grid route: all subsets of a complete table at once, as tensors, by conjugate gradients.

Extended tensors have shape (N_1 + 1, .., N_d + 1); index 0 on axis i means "i is not in A". Three maps, one axis
at a time, each linear in the size of the tensor:

    margins     prepend the sum: applied to p it gives every p_A at once
    expand      [absent | contrasts] -> [absent | cells], contrasts orthonormal for the margin of that feature
    collapse    out[cell] = in[absent] + in[cell]

Then Phi c = collapse(expand(c) / P) with P = margins(p), and its adjoint in L2(p) is expand^T(margins(p y) / P).
Under independence Gamma is the identity: one iteration, and the Möbius formula and the Walsh transform follow.
Columns are scaled to unit norm, which costs one more expansion and spares most of the iterations when the
probabilities spread over orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.typing import FloatArray


@dataclass(frozen=True)
class GridSolution:
    """Effects of every subset at once.

    Attributes:
        effects: (N_1 + 1, .., N_d + 1, m) value of f_A at each cell of A, A read off the non-zero indices.
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


def solve_grid(
    p: FloatArray, values: FloatArray, max_iterations: int = 5000, step: Callable[[int, str], None] | None = None
) -> GridSolution:
    """Decompose (.., m) values on a complete table with pmf ``p``, all orders."""
    grid = make_grid(p)
    c, residual, iterations = _conjugate_gradients(grid, values, max_iterations, step)
    return GridSolution(grid.tables(c), iterations, residual, residual <= tolerances.NORMAL_EQUATIONS)


def along_axes(x: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """Apply one matrix along every axis but the last (a Kronecker product), as one BLAS product an axis.

    Each product takes the leading axis and leaves its image as the trailing one, so that after the last the axes
    stand again in their order, behind the outputs.
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
    return along_axes(x, [np.vstack([np.ones((1, n)), np.eye(n)]) for n in x.shape[:-1]])


def collapse(x: FloatArray) -> FloatArray:
    """Add what is absent to every cell, on every axis but the last."""
    return along_axes(x, [np.hstack([np.ones((n - 1, 1)), np.eye(n - 1)]) for n in x.shape[:-1]])


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


def _conjugate_gradients(
    grid: Grid, values: FloatArray, limit: int, step: Callable[[int, str], None] | None
) -> tuple[FloatArray, float, int]:
    """Solve Phi^T D Phi c = Phi^T D y by CGLS, every output with its own step lengths, restarted on true residuals.

    Each restart computes the residual afresh, so that what is reported was measured and rounding does not build up.
    """
    mu = grid.analyse(values)
    scale = _size(mu)
    c, residual, done = np.zeros_like(mu), np.inf, 0
    while done < limit:
        left = values - grid.synthesise(c)
        gradient = grid.analyse(left)
        before, residual = residual, _relative(gradient, scale)
        if residual <= tolerances.ITERATIVE or residual > before / 2:
            break
        delta, used = _sweep(grid, left, gradient, residual, limit - done, scale, step)
        c, done = c + delta, done + used
    return c, residual, done


def _sweep(
    grid: Grid,
    left: FloatArray,
    gradient: FloatArray,
    start: float,
    limit: int,
    scale: FloatArray,
    step: Callable[[int, str], None] | None,
) -> tuple[FloatArray, int]:
    """One run of CGLS from zero, until the recurred residual has fallen to rounding."""
    c, direction = np.zeros_like(gradient), gradient
    squared = _dot(gradient, gradient)
    used = 0
    while used < limit:
        used += 1
        image = grid.synthesise(direction)
        curvature = _dot(image * grid.p, image)
        length = np.divide(squared, curvature, out=np.zeros_like(squared), where=curvature > 0)
        c = c + length * direction
        left = left - length * image
        gradient = grid.analyse(left)
        new = _dot(gradient, gradient)
        size = _relative(gradient, scale)
        if step:
            step(1, f"residual {size:.1e}")
        if size <= tolerances.ITERATIVE or size <= start * tolerances.EPS:
            break
        ratio = np.divide(new, squared, out=np.zeros_like(squared), where=squared > 0)
        direction, squared = gradient + ratio * direction, new
    return c, used


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("im,im->m", a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])))


def _size(x: FloatArray) -> FloatArray:
    return np.sqrt(_dot(x, x))


def _relative(x: FloatArray, scale: FloatArray) -> float:
    size = _size(x)
    return float(np.divide(size, scale, out=np.zeros_like(size), where=scale > 0).max(initial=0.0))
