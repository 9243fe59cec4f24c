"""Mean absolute Shapley values: computed by the fit where that is cheap, else when first asked for, then kept."""

from __future__ import annotations

import numpy as np

from exanova.design.cells import CellIndex
from exanova.errors import InputError
from exanova.explain.shapley import CHUNK, shapley_values
from exanova.typing import Codes, FloatArray

CHEAP = 2**17
"""Values read at rows (rows times features in subsets times outputs) up to which a fit computes them unasked: a
millisecond, some percent of the fit itself."""


class MeanShapley:
    """(d, m) E|Shapley value| of every feature over the rows of the fit.

    A decomposition read from a file has no rows: it knows them if they were known when it was saved.
    """

    def __init__(
        self,
        index: CellIndex,
        values: FloatArray,
        support: tuple[Codes, FloatArray] | None,
        known: FloatArray | None = None,
    ) -> None:
        self._index, self._values, self._support, self._known = index, values, support, known
        if support is not None and known is None and self._work <= CHEAP:
            self.compute()

    @property
    def known(self) -> FloatArray | None:
        """The values, if they were computed."""
        return self._known

    def compute(self, threads: int = 1) -> FloatArray:
        """The values, computed from the rows if they are not known yet.

        Raises:
            InputError: if they are not known and there are no rows.
        """
        if self._known is None:
            if self._support is None:
                raise InputError(
                    "this decomposition was read from a file without mean absolute Shapley values, and files hold no "
                    "rows. Call importance('shapley') on the fitted object before save(), or average the absolute "
                    "values of explain(X) over rows of your own."
                )
            self._known = mean_absolute(self._index, self._values, *self._support, threads)
        return self._known

    @property
    def _work(self) -> int:
        rows = 0 if self._support is None else self._support[0].shape[1]
        return int(rows * self._index.layout.order.sum() * self._values.shape[1])


def mean_absolute(
    index: CellIndex, values: FloatArray, codes: Codes, probability: FloatArray, threads: int = 1
) -> FloatArray:
    """(d, m) mean of the absolute Shapley values of rows (d, r) with probabilities (r,).

    Sums are made in pieces of one size, so that they do not depend on the number of threads.
    """
    total = np.zeros((codes.shape[0], values.shape[1]))
    step = CHUNK * max(1, threads)
    for a in range(0, codes.shape[1], step):
        sizes = np.abs(shapley_values(index, values, codes[:, a : a + step], threads))
        for b in range(0, len(sizes), CHUNK):
            piece = slice(b, b + CHUNK)
            total += np.einsum("n,ndm->dm", probability[a : a + step][piece], sizes[piece])
    return total
