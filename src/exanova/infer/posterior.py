"""Standard errors of shrunken effects: their posterior variances, cell by cell, as the fit itself found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False)
class PosteriorErrors:
    """Posterior standard deviations of every value, without the covariances between cells.

    Attributes:
        stderr: (cells, m), in normalised units.
    """

    stderr: FloatArray

    @property
    def has_all_cells(self) -> bool:
        """Covariances are not known."""
        return False

    @property
    def all_cells(self) -> FloatArray:
        """Not known."""
        _refuse()

    def block(self, cells: slice) -> FloatArray:
        """Not known."""
        _refuse()

    def variances(self, output: int, weights: FloatArray) -> FloatArray:
        """Not known."""
        _refuse()


def _refuse() -> NoReturn:
    raise InputError(
        "effects were shrunk, and of their posterior only the standard error of each cell is known",
        remedy=[
            "call errors(method='bootstrap') first, which refits, or fit with ",
            Parameter("shrinkage", None),
        ],
    )
