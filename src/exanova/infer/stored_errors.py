"""Standard errors of a decomposition read from a file: the covariance of all cells, if the file holds it.

It answers for every linear statistic of the effects (Shapley values, differences, reasons); what also depends on the
rows of the fit (importances, tests) needs the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.design.memory import readable
from exanova.errors import InputError, MemoryLimitError
from exanova.infer.fitted_sample import FittedSample
from exanova.messages import Parameter
from exanova.typing import FloatArray

MOST_NUMBERS = 2**19
"""Numbers of a covariance up to which files hold it: 4 MB."""


def numbers_of(outputs: int, cells: int) -> int:
    """How many numbers the covariances of all cells have in a file.

    >>> numbers_of(1, 3)
    6
    """
    return outputs * cells * (cells + 1) // 2


def check_keepable(why_none: str, outputs: int, cells: int, fitted: FittedSample | None) -> None:
    """Refuse covariances that do not exist, for the reason ``why_none``, or that do not fit in memory."""
    if why_none:
        raise InputError(
            Parameter("covariances", True), f" was given, and there are none: {why_none}", remedy="Leave it out"
        )
    needed = 4 * 8 * numbers_of(outputs, cells)  # as matrices, and once more where they are put together
    if fitted is not None and needed > fitted.request.memory_limit:
        raise MemoryLimitError(
            f"the covariances of {cells:,} cells take about {readable(needed)} of memory, the limit is "
            f"{readable(fitted.request.memory_limit)}",
            remedy=[
                "leave out ",
                Parameter("covariances"),
                ", fit fewer functions, or give a larger ",
                Parameter("memory_limit"),
            ],
        )


@dataclass(frozen=True, eq=False)
class StoredErrors:
    """Standard errors from covariances.

    Attributes:
        all_cells: (m, cells, cells) covariance of all values, in the units of the model.
    """

    all_cells: FloatArray

    @property
    def stderr(self) -> FloatArray:
        """(cells, m) standard error of every value."""
        return np.sqrt(np.maximum(np.diagonal(self.all_cells, axis1=1, axis2=2).T, 0.0))

    @property
    def has_all_cells(self) -> bool:
        """The covariance of all cells is what there is."""
        return True

    def block(self, cells: slice) -> FloatArray:
        """(m, c, c) covariance of the cells of one subset, given as a slice."""
        return self.all_cells[:, cells, cells]

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """(f,) variances of the sums of T times ``weights`` (cells, f)."""
        return np.asarray(np.maximum(np.einsum("af,af->f", weights, self.all_cells[output] @ weights), 0.0))


def packed(covariance: FloatArray) -> FloatArray:
    """(m, k) the lower triangles of (m, n, n) symmetric matrices, row by row.

    >>> packed(np.array([[[1.0, 2.0], [2.0, 5.0]]])).tolist()
    [[1.0, 2.0, 5.0]]
    """
    lower = np.tril_indices(covariance.shape[1])
    return np.ascontiguousarray(covariance[:, lower[0], lower[1]])


def unpacked(triangles: FloatArray, n: int) -> FloatArray:
    """(m, n, n) symmetric matrices from their (m, k) lower triangles.

    >>> unpacked(np.array([[1.0, 2.0, 5.0]]), 2).tolist()
    [[[1.0, 2.0], [2.0, 5.0]]]
    """
    out = np.empty((len(triangles), n, n))
    row, column = np.tril_indices(n)
    out[:, row, column] = triangles
    out[:, column, row] = triangles
    return out
