"""``FloatFactor``: the growing factor of a Gram matrix in floating point; ``ResidueFactor`` is the same modulo a prime.

New functions are appended, and only their rows of Gamma are ever computed. Left-looking Cholesky by panels, in the
order in which functions arrive, skipping a function whose pivot vanishes:

    L[new, panel] = (Gamma[new, panel] - L[new, before] L[panel, before]^T) L[panel, panel]^-T

Appending in several rounds costs as much as one factorisation of the final family, q^3 / 3, all of it in BLAS
products. The factor serves both rules for ties: kept functions only, or shared through the row space.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.solve.elimination import Factor, OrderFactor, Ties, row_space, skip_panel
from exanova.typing import FloatArray

PANEL = 128
"""Functions factorised together."""

MERGED = 1024
"""Columns of L up to which neighbouring panels are merged."""


@dataclass(frozen=True)
class _Panel:
    """A panel of kept functions: their numbers, their columns of L, and their triangle of L."""

    functions: NDArray[np.int64]
    columns: slice
    triangle: FloatArray


class FloatFactor:
    """L with Gamma = L L^T on the kept functions; gains a row per function and a column per direction.

    >>> factor = FloatFactor(capacity=3)
    >>> factor.append(np.array([[1.0]]))
    >>> factor.append(np.array([[0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]))
    >>> factor.rank, factor.kept.tolist()
    (2, [True, True, False])
    """

    def __init__(self, capacity: int, max_rank: int | None = None) -> None:
        self._max_rank = sys.maxsize if max_rank is None else max_rank
        self._l = np.zeros((capacity, min(capacity, self._max_rank)))
        self._panels: list[_Panel] = []
        self._kept = np.zeros(capacity, dtype=bool)
        self.size = 0
        self.rank = 0
        self.smallest, self.dropped = 1.0, 0.0

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(size,) which functions raised the rank."""
        return self._kept[: self.size]

    @property
    def full(self) -> bool:
        """Whether the rank has reached its limit."""
        return self.rank >= self._max_rank

    def append(self, gamma_rows: FloatArray, chosen: NDArray[np.bool_] | None = None) -> None:
        """Add functions, given their (new, old + new) rows of Gamma.

        ``chosen`` (new,) marks those that raise the rank, if that was decided exactly; by default pivots decide.
        """
        from scipy.linalg import solve_triangular

        new, total = gamma_rows.shape
        self._reserve(total)
        self._panels = self._merged()
        rows, before = self._l[self.size : total], self.rank
        for panel in self._panels:
            rest = gamma_rows[:, panel.functions] - self._before(rows, panel)
            rows[:, panel.columns] = solve_triangular(panel.triangle, rest.T, lower=True, check_finite=False).T
        own = gamma_rows[:, self.size :] - rows[:, :before] @ rows[:, :before].T
        tolerance = max(tolerances.GROWING, tolerances.rank_of_gram(total))
        for a in range(0, new, PANEL):
            piece = slice(a, min(new, a + PANEL))
            self._add_panel(own, rows, before, piece, tolerance, None if chosen is None else chosen[piece])
        self.size = total

    def forget(self, keep: NDArray[np.bool_]) -> None:
        """Drop functions of the last batch that did not raise the rank, where ``keep`` (batch,) is False."""
        first = self.size - len(keep)
        number = np.cumsum(keep) - 1 + first
        useful = np.flatnonzero(keep) + first
        self._l[first : first + len(useful)] = self._l[useful]
        self._kept[first : first + len(useful)] = self._kept[useful]
        self._kept[first + len(useful) : self.size] = False
        self._panels = [
            p if p.functions[0] < first else _Panel(number[p.functions - first], p.columns, p.triangle)
            for p in self._panels
        ]
        self._l[first + len(useful) : self.size] = 0.0
        self.size = first + len(useful)

    def factor(self, orders: Sequence[slice], ties: Ties) -> Factor:
        """The factor split by orders; functions of one order must have arrived together, lower orders first."""
        parts, right = [], []
        first = 0
        for functions in orders:
            kept = np.flatnonzero(self._kept[functions])
            others = np.flatnonzero(~self._kept[functions])
            columns = slice(first, first + len(kept))
            first = columns.stop
            lower = self._l[functions, columns]
            pivots = np.concatenate([kept, others])
            if len(others):
                lower = lower[pivots]
            space = row_space(lower) if ties == "share" else None
            parts.append(OrderFactor(functions, pivots, lower, self.dropped, space))
            right.append(self._l[functions.stop : self.size, columns].T)
        return Factor(tuple(parts), tuple(right))

    def solve(self, projections: FloatArray) -> FloatArray:
        """Coefficients (size, m) of the kept functions whose projections are given; zero for the others."""
        from scipy.linalg import solve_triangular

        half = np.zeros((self.rank, projections.shape[1]))
        for panel in self._panels:
            known = self._l[panel.functions, : panel.columns.start] @ half[: panel.columns.start]
            rest = projections[panel.functions] - known
            half[panel.columns] = solve_triangular(panel.triangle, rest, lower=True, check_finite=False)
        coefficients = np.zeros_like(projections)
        for panel in reversed(self._panels):
            rest = half[panel.columns]
            solved = solve_triangular(panel.triangle, rest, lower=True, trans="T", check_finite=False)
            half[: panel.columns.start] -= self._l[panel.functions, : panel.columns.start].T @ solved
            coefficients[panel.functions] = solved
        return coefficients

    def _merged(self) -> list[_Panel]:
        """Merge neighbouring panels: products with many columns are faster."""
        out: list[_Panel] = []
        for panel in self._panels:
            last = out[-1] if out else None
            if last and panel.columns.stop - last.columns.start <= MERGED:
                functions = np.concatenate([last.functions, panel.functions])
                columns = slice(last.columns.start, panel.columns.stop)
                out[-1] = _Panel(functions, columns, self._l[functions, columns])
            else:
                out.append(panel)
        return out

    def _before(self, rows: FloatArray, panel: _Panel) -> FloatArray:
        done = slice(0, panel.columns.start)
        return np.asarray(rows[:, done] @ self._l[panel.functions, done].T)

    def _add_panel(
        self,
        own: FloatArray,
        rows: FloatArray,
        before: int,
        panel: slice,
        tolerance: float,
        chosen: NDArray[np.bool_] | None,
    ) -> None:
        """Factorise one panel of new functions; ``own`` (new, new) is Gamma minus the directions up to ``before``."""
        from scipy.linalg import solve_triangular

        done, width = self.rank, panel.stop - panel.start
        added = slice(before, done)
        rest = own[panel.start :, panel] - rows[panel.start :, added] @ rows[panel, added].T
        small, taken, refused, least = skip_panel(rest[:width].copy(), tolerance, self._max_rank - self.rank, chosen)
        self.dropped, self.smallest = max(self.dropped, refused), min(self.smallest, least)
        if not taken:
            return
        columns = slice(done, done + len(taken))
        triangle = small[taken]
        rows[panel.start :, columns] = solve_triangular(triangle, rest[:, taken].T, lower=True, check_finite=False).T
        rows[panel, columns] = small
        functions = np.array(taken, dtype=np.int64) + self.size + panel.start
        self._kept[functions] = True
        self._panels.append(_Panel(functions, columns, triangle))
        self.rank = columns.stop

    def _reserve(self, total: int) -> None:
        if total <= len(self._l):
            return
        total += total // 4  # grow by a quarter, to reallocate rarely
        grown = np.zeros((total, max(self._l.shape[1], min(total, self._max_rank))))
        grown[: self.size, : self._l.shape[1]] = self._l[: self.size]
        kept = np.zeros(total, dtype=bool)
        kept[: self.size] = self._kept[: self.size]
        self._l, self._kept = grown, kept
