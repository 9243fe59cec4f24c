"""Grid route for uneven weights: a complete table is decomposed from the highest order down.

The effect of A is the residual of the table of A after fitting functions of fewer features,

    f_A = T_A - sum_i g_i(x_(A without i)),   g the least-squares fit in L2(p_A),

and each g_i is added to the table of A without i, where it is decomposed in turn. Every fit is small, by conjugate
gradients on the margins of one table; tables of the same shape are fitted together. Weights that span orders of
magnitude slow down only the highest order, where there is a single table; in ``grid``, which fits all orders at once,
they slow down every iteration.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise
from math import prod

import numpy as np

from exanova import tolerances
from exanova.solve.cgls import Step, conjugate_gradients
from exanova.solve.grid import GridSolution, margins
from exanova.typing import FloatArray, Subset

STACK_CELLS = 1_000_000
"""Cells times outputs of the tables that are fitted together."""


class MarginFunctions:
    """Functions of all features but one, on a stack of complete tables; an operator of ``cgls``.

    Coordinates are values times the square root of the probability of their margin, for each feature left out in turn.
    """

    def __init__(self, p: FloatArray) -> None:
        self._p = p
        self._inverse = [1.0 / np.sqrt(p.sum(axis=j, keepdims=True)) for j in range(p.ndim - 1)]
        ends = np.cumsum([0, *(root.size // p.shape[-1] for root in self._inverse)])
        self._pieces = [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def p(self) -> FloatArray:
        """(N_1, .., N_k, columns) probabilities."""
        return self._p

    def tables(self, c: FloatArray) -> list[FloatArray]:
        """The g_i on their cells, with length 1 on the axis that is left out."""
        pairs = zip(self._pieces, self._inverse, strict=True)
        return [c[piece].reshape(inverse.shape) * inverse for piece, inverse in pairs]

    def synthesise(self, c: FloatArray) -> FloatArray:
        """The sum of the g_i on the cells of the tables."""
        out = np.zeros_like(self._p)
        for table in self.tables(c):
            out += table
        return out

    def analyse(self, y: FloatArray) -> FloatArray:
        """The margins of p y, in coordinates."""
        weighted, columns = self._p * y, y.shape[-1]
        return np.concatenate(
            [
                (weighted.sum(axis=j, keepdims=True) * inverse).reshape(-1, columns)
                for j, inverse in enumerate(self._inverse)
            ]
        )


def solve_top_down(
    p: FloatArray, values: FloatArray, max_iterations: int = 5000, step: Step | None = None
) -> GridSolution:
    """Decompose (.., m) values on a complete table with pmf ``p``, all orders; each fit within ``max_iterations``."""
    d, m = p.ndim, values.shape[-1]
    everything = margins(p[..., None])
    scale = np.sqrt((p[..., None] * values**2).reshape(-1, m).sum(axis=0))
    effects = np.zeros((*everything.shape[:-1], m))
    tables: dict[Subset, FloatArray] = {tuple(range(d)): values}
    worst, iterations = 0.0, 0
    for order in range(d, 0, -1):
        for stack in _stacks(p.shape, order, m):
            weights = [np.broadcast_to(everything[_place(subset, d)], tables[subset].shape) for subset in stack]
            parts = MarginFunctions(_side_by_side(weights))
            table = _side_by_side([tables.pop(subset) for subset in stack])
            fitted = conjugate_gradients(parts, table, max_iterations, step, np.tile(scale, len(stack)))
            worst, iterations = max(worst, fitted[1]), iterations + fitted[2]
            for k, given in enumerate(parts.tables(fitted[0])):
                table = table - given
                _hand_down(tables, stack, k, given, m)
            for number, subset in enumerate(stack):
                effects[_place(subset, d)] = table[..., number * m : (number + 1) * m]
    effects[(0,) * d] = tables[()]
    return GridSolution(effects, iterations, worst, worst <= tolerances.NORMAL_EQUATIONS)


def groups_of_shapes(sizes: tuple[int, ...]) -> int:
    """Lower bound on the number of stacks of tables of the same shape."""
    return sum(len({tuple(sizes[i] for i in s) for s in combinations(range(len(sizes)), k)}) for k in range(len(sizes)))


def _stacks(sizes: tuple[int, ...], order: int, outputs: int) -> list[list[Subset]]:
    """Subsets of one order whose tables have the same shape, in stacks that are fitted together."""
    alike: dict[tuple[int, ...], list[Subset]] = defaultdict(list)
    for subset in combinations(range(len(sizes)), order):
        alike[tuple(sizes[i] for i in subset)].append(subset)
    out = []
    for shape, subsets in alike.items():
        at_once = max(1, STACK_CELLS // (prod(shape) * outputs))
        out += [subsets[a : a + at_once] for a in range(0, len(subsets), at_once)]
    return out


def _place(subset: Subset, d: int) -> tuple[slice | int, ...]:
    """Position of a subset in an extended tensor: index 0 on the axes of absent features."""
    return tuple(slice(1, None) if i in subset else 0 for i in range(d))


def _side_by_side(tables: list[FloatArray]) -> FloatArray:
    """Stack tables of one shape, with their outputs, along the last axis."""
    return np.concatenate(tables, axis=-1)


def _hand_down(tables: dict[Subset, FloatArray], stack: list[Subset], k: int, given: FloatArray, m: int) -> None:
    """Add the functions without the k-th feature of every subset to the tables of the smaller subsets."""
    squeezed = given.squeeze(axis=k)
    for number, subset in enumerate(stack):
        rest = subset[:k] + subset[k + 1 :]
        piece = squeezed[..., number * m : (number + 1) * m]
        tables[rest] = tables[rest] + piece if rest in tables else piece
