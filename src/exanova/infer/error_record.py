"""``Errors``: how standard errors were computed, and what they do not cover, in words."""

from __future__ import annotations

from dataclasses import dataclass

from exanova.effects.effect import FEW_ROWS
from exanova.messages import count_of

FEW_CLUSTERS = 40
"""Clusters below which the intervals of importances were measured to be too narrow; those of cells are not."""


def too_few(unit: str, units: int) -> str:
    """What a small number of independent units means for intervals, in words; empty where there are enough.

    >>> too_few("a cluster", 25)
    '25 clusters are few: intervals of importances are too narrow below 40'
    """
    if not unit.startswith("a cluster") or units >= FEW_CLUSTERS:
        return ""
    return f"{count_of(units, 'cluster')} are few: intervals of importances are too narrow below {FEW_CLUSTERS}"


@dataclass(frozen=True)
class Errors:
    """How standard errors were computed.

    Attributes:
        method: ``"linear"`` (closed form), ``"bootstrap"`` (refits) or, for shrunken effects, ``"posterior"``.
        weights: how the weights were interpreted: ``"frequency"`` or ``"probability"``.
        unit: the independent unit.
        units: number of units.
        refits: number of refits; 0 in closed form.
        unidentified: effects that the rows do not determine: without a standard error, unless effects are shrunk.
        few_rows: cells with fewer than 30 rows, where linear errors are unreliable.
        seconds: computing time.

    >>> import exanova
    >>> import numpy as np
    >>> X = np.array([["a"], ["a"], ["b"], ["b"]])
    >>> anova = exanova.FunctionalANOVA(shrinkage=None).fit(X, np.array([0.0, 1.0, 3.0, 4.0]))
    >>> errors = anova.errors()
    >>> errors.method, errors.unit, errors.units
    ('linear', 'a row', 4)
    """

    method: str
    weights: str
    unit: str
    units: int
    refits: int
    unidentified: int
    few_rows: int
    seconds: float

    def __str__(self) -> str:
        how = f"{self.refits} refits" if self.refits else "closed form" if self.method == "linear" else self.method
        weights = "counts of equal rows" if self.weights == "frequency" else "inverse sampling probabilities"
        lines = [
            f"standard errors by {how}, {self.seconds:.2f} s; independent unit: {self.unit} ({self.units:,} in all)",
            f"weights are {weights}",
        ]
        if few := too_few(self.unit, self.units):
            lines.append(few)
        if self.unidentified:
            effects = count_of(self.unidentified, "effect")
            if self.method == "posterior":
                lines.append(f"{effects} are shared with other subsets on these rows: the prior divides them")
            else:
                lines.append(f"no standard errors for {effects} that other subsets can express in part on these rows")
        if self.few_rows:
            cells = count_of(self.few_rows, "cell")
            lines.append(f"{cells} with fewer than {FEW_ROWS} rows; check with method='bootstrap'")
        return "\n".join(lines)
