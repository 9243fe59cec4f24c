"""Conjugate gradients for least squares, Phi^T D Phi c = Phi^T D y, with Phi given as an operator.

Started from zero, the iterates stay in the range of Phi^T and converge to the minimum-norm solution. Every output has
its own step lengths. Runs are restarted from recomputed residuals, so that rounding does not accumulate and the
reported residual is a measured one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from exanova import tolerances
from exanova.typing import FloatArray

PATIENCE, PATIENCE_AT_ROUNDING = 60, 6
"""Iterations without a smaller residual (at least half of all) after which only rounding errors change; and if the
residual is already of the size of rounding errors."""

Step = Callable[[int, str], None]


class Operator(Protocol):
    """A linear map in L2(p); arrays have outputs on their last axis."""

    @property
    def p(self) -> FloatArray:
        """Probabilities, to multiply values by."""
        ...

    def synthesise(self, c: FloatArray) -> FloatArray:
        """Phi c."""
        ...

    def analyse(self, y: FloatArray) -> FloatArray:
        """Phi^T diag(p) y."""
        ...


def conjugate_gradients(
    operator: Operator, values: FloatArray, limit: int, step: Step | None = None, scale: FloatArray | None = None
) -> tuple[FloatArray, float, int]:
    """Coefficients, relative residual of the normal equations, number of iterations.

    Residuals are relative to ``scale`` (m,), by default the size of the projections themselves.
    """
    mu = operator.analyse(values)
    scale = _size(mu) if scale is None else scale
    c, residual, done = np.zeros_like(mu), np.inf, 0
    best = c
    while done < limit:
        left = values - operator.synthesise(c)
        gradient = operator.analyse(left)
        before, residual = residual, relative(gradient, scale)
        if residual > before / 2:
            return (best, before, done) if residual > before else (c, residual, done)
        best = c
        if residual <= (tolerances.NORMAL_EQUATIONS if done else tolerances.ITERATIVE):
            break
        delta, used = _sweep(operator, left, gradient, residual, limit - done, scale, step)
        c, done = c + delta, done + used
    return c, residual, done


def _sweep(
    operator: Operator,
    left: FloatArray,
    gradient: FloatArray,
    start: float,
    limit: int,
    scale: FloatArray,
    step: Step | None,
) -> tuple[FloatArray, int]:
    """One run from zero, until the recursive residual is at rounding level or stops decreasing."""
    c, direction = np.zeros_like(gradient), gradient
    squared = _dot(gradient, gradient)
    used, best, best_size, best_used = 0, c, start, 0
    while used < limit and used - best_used <= _patience(best_size, best_used):
        used += 1
        image = operator.synthesise(direction)
        curvature = _dot(image * operator.p, image)
        # An output that has converged is not updated any more: rounding would move it away again.
        moving = (curvature > 0) & (np.sqrt(squared) > tolerances.ITERATIVE * scale)
        length = np.divide(squared, curvature, out=np.zeros_like(squared), where=moving)
        c = c + length * direction
        left = left - length * image
        gradient = operator.analyse(left)
        new = _dot(gradient, gradient)
        size = relative(gradient, scale)
        if step:
            step(1, f"residual {size:.1e}")
        if size < best_size:
            best, best_size, best_used = c, size, used
        if size <= tolerances.ITERATIVE or size <= start * tolerances.EPS:
            break
        ratio = np.divide(new, squared, out=np.zeros_like(squared), where=squared > 0)
        direction, squared = gradient + ratio * direction, new
    return best, used


def _patience(residual: float, used: int) -> int:
    return PATIENCE_AT_ROUNDING if residual <= tolerances.NORMAL_EQUATIONS else max(PATIENCE, used)


def preconditioned(
    operator: Operator,
    target: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
    limit: int,
    patience: int,
    scale: FloatArray,
    step: Step | None = None,
) -> tuple[FloatArray, int]:
    """(r, m) a with Phi Phi^T D a = target, and the number of iterations; ``target`` is in the range of Phi.

    The inverse that ``precondition`` approximates is symmetric in L2(p). Runs are restarted from recomputed residuals
    while that at least halves them.
    """
    a, done, residual = np.zeros_like(target), 0, np.inf
    best = a
    while done < limit:
        left = target - operator.synthesise(operator.analyse(a))
        before, residual = residual, _relative_in(operator.p, left, scale)
        best = a if residual < before else best
        if residual <= tolerances.NORMAL_EQUATIONS or residual > before / 2:
            break
        delta, used = _run(operator, left, precondition, limit - done, patience, scale, step)
        a, done = a + delta, done + used
    return best, done


def _run(
    operator: Operator,
    left: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
    limit: int,
    patience: int,
    scale: FloatArray,
    step: Step | None,
) -> tuple[FloatArray, int]:
    """One run of preconditioned conjugate gradients from zero; the iterate with the smallest recursive residual."""
    a = np.zeros_like(left)
    start = _relative_in(operator.p, left, scale)
    best, best_size, best_used, used = a, start, 0, 0
    direction = change = precondition(left)
    product = _dot(operator.p * left, change)
    while used < limit and used - best_used <= patience:
        used += 1
        image = operator.synthesise(operator.analyse(direction))
        curvature = _dot(operator.p * direction, image)
        moving = (curvature > 0) & (product > 0) & (_norm_in(operator.p, left) > tolerances.ITERATIVE * scale)
        length = np.divide(product, curvature, out=np.zeros_like(product), where=moving)
        a, left = a + length * direction, left - length * image
        size = _relative_in(operator.p, left, scale)
        if step:
            step(1, f"residual {size:.1e}")
        if size < best_size:
            best, best_size, best_used = a, size, used
        if size <= tolerances.ITERATIVE or size <= start * tolerances.EPS:
            break
        change, before = precondition(left), product
        product = _dot(operator.p * left, change)
        direction = change + np.divide(product, before, out=np.zeros_like(product), where=before > 0) * direction
    return best, used


def _norm_in(p: FloatArray, y: FloatArray) -> FloatArray:
    return np.sqrt(_dot(p * y, y))


def _relative_in(p: FloatArray, y: FloatArray, scale: FloatArray) -> float:
    """Largest norm in L2(p) relative to ``scale``."""
    norm = _norm_in(p, y)
    return float(np.divide(norm, scale, out=np.zeros_like(norm), where=scale > 0).max(initial=0.0))


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("im,im->m", a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])))


def _size(x: FloatArray) -> FloatArray:
    return np.sqrt(_dot(x, x))


def relative(x: FloatArray, scale: FloatArray) -> float:
    """Largest norm of an output, relative to ``scale`` (m,)."""
    size = _size(x)
    return float(np.divide(size, scale, out=np.zeros_like(size), where=scale > 0).max(initial=0.0))
