"""The account of loss: the variance of the model that is not explained, in parts that add up to 1 - R2.

levels       between rows that bins or merged levels made equal
noise        between equal rows, where outputs were given for rows and differ
left_out     orders and terms that were not fitted: the residual of a least-squares fit
shrinkage    additional residual of shrunken effects, compared with a least-squares fit of the same functions
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.data.sample import Sample
from exanova.typing import FloatArray

ORDERS_AND_COLUMNS = "orders, terms and columns left out"
LEVELS_AND_COLUMNS = "bins, merged levels and columns left out"
"""The same parts where columns were left out: rows that differ in these alone have become equal, too."""


@dataclass(frozen=True, eq=False)
class Loss:
    """Shares of the model's variance that are not explained, one per output; they add up to 1 - R2.

    Attributes:
        levels: (m,) lost to bins and merged levels: between rows that they made equal.
        noise: (m,) noise between equal rows.
        left_out: (m,) orders and terms left out.
        shrinkage: (m,) lost to shrinkage.
        columns: whether columns that identify rows were left out, which lose some of the first, and of ``left_out``.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> anova = exanova.FunctionalANOVA(max_order=1).fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    >>> anova.certificate_.loss.left_out.round(3).tolist()
    [0.111]
    """

    levels: FloatArray
    noise: FloatArray
    left_out: FloatArray
    shrinkage: FloatArray
    columns: bool = False

    @property
    def total(self) -> FloatArray:
        """(m,) total share that is not explained: 1 - R2."""
        return self.levels + self.noise + self.left_out + self.shrinkage

    def named(self, output: int) -> dict[str, float]:
        """The parts of one output that exceed rounding, by name."""
        parts = {
            ORDERS_AND_COLUMNS if self.columns else "orders and terms left out": self.left_out,
            LEVELS_AND_COLUMNS if self.columns else "bins and merged levels": self.levels,
            "noise between equal rows": self.noise,
            "shrinkage": self.shrinkage,
        }
        shares = {name: float(part[output]) for name, part in parts.items()}
        return {name: share for name, share in shares.items() if share > tolerances.RECONSTRUCTION}


def account(sample: Sample, squared: FloatArray, least_squares: FloatArray | None = None) -> Loss:
    """The loss of a fit with the (m,) mean squared residual ``squared`` at the distinct rows.

    ``least_squares`` (m,) is the mean squared residual of a least-squares fit of the same functions, for a fit that was
    shrunk. An output that does not vary has no loss.
    """
    zero, inside = np.zeros(sample.n_outputs), sample.within_variance
    noise = zero if sample.noise is None else np.minimum(sample.noise, inside)
    variance = sample.variance + inside
    left_out = squared if least_squares is None else np.minimum(least_squares, squared)
    parts = (inside - noise, noise, left_out, squared - left_out)
    shares = [np.divide(part, variance, out=zero.copy(), where=variance > 0) for part in parts]
    return Loss(shares[0], shares[1], shares[2], shares[3])
