"""A monitor of two fits: everything that changed by more than a limit, in units of the output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.explain.comparison import Comparison
from exanova.explain.mean_change import MeanChange
from exanova.typing import FloatArray


@dataclass(frozen=True)
class Drift:
    """One monitored quantity.

    Attributes:
        what: its name.
        amount: by how much it changed, the largest over outputs; infinite if it cannot be compared.
    """

    what: str
    amount: float


def drifts(comparison: Comparison, change: MeanChange) -> list[Drift]:
    """All monitored quantities, the largest change first.

    The mean of the output, its changes due to the mix and to the model, and every effect: the root of the mean
    squared difference between the two fits over their common cells.
    """
    monitored = [
        Drift("the mean", _largest(change.total)),
        Drift("the mean, by the mix", _largest(change.mix_total)),
        Drift("the mean, by the model", _largest(change.model_total)),
    ]
    for entry in comparison.changes:
        if entry.features:
            amount = _largest(np.sqrt(entry.difference)) if entry.comparable else float("inf")
            monitored.append(Drift(f"the effect of {' x '.join(entry.features)}", amount))
    return sorted(monitored, key=lambda drift: -drift.amount)


def _largest(amounts: FloatArray) -> float:
    return float(np.abs(amounts).max())
