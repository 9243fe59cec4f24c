"""Functions of a run of subsets as operators between coefficients and rows, for solves without a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.basis.functions import Basis, on_cells, on_functions
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.solve.low_orders import LowOrders
from exanova.typing import FloatArray


class RunOfSubsets:
    """The functions of a run of subsets as an operator between coefficients and rows."""

    def __init__(self, sample: Sample, family: Family, basis: Basis, subsets: slice, threads: int) -> None:
        self._p, self._family, self._basis = sample.probability[:, None], family, basis
        self._functions = slice(int(basis.start[subsets.start]), int(basis.start[subsets.stop]))
        self._subsets = range(subsets.start, subsets.stop)
        self._phi = Phi(family, sample, threads, subsets=subsets, repeated=True)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self._functions.stop - self._functions.start

    def synthesise(self, c: FloatArray) -> FloatArray:
        """(r, m) values at the rows, for (size, m) coordinates."""
        everything = np.zeros((self._basis.n_functions, c.shape[1]))
        everything[self._functions] = c
        return self._phi.synthesise(on_cells(self._family, self._basis, everything, self._subsets))

    def analyse(self, y: FloatArray) -> FloatArray:
        """(size, m) inner products with (r, m) values."""
        sums = self._phi.analyse(self._p * y)
        return on_functions(self._family, self._basis, sums, self._subsets)[self._functions]


@dataclass(frozen=True)
class Reduced:
    """E = (I - P) Phi of the higher orders."""

    low: RunOfSubsets
    high: RunOfSubsets
    eliminated: LowOrders
    p: FloatArray

    def without_low(self, y: FloatArray) -> FloatArray:
        """(I - P) y."""
        return y - self.low.synthesise(self.eliminated.solve(self.low.analyse(y)))

    def synthesise(self, c: FloatArray) -> FloatArray:
        """E c."""
        return self.without_low(self.high.synthesise(c))

    def analyse(self, y: FloatArray) -> FloatArray:
        """Phi^T diag(p) y; exact for y already without the lower orders."""
        return self.high.analyse(y)
