"""The analytical case: five variables, one a copy of another, one constant."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd

from exanova import FunctionalANOVA
from exanova.typing import FloatArray
from experiments.charts import bars
from experiments.harness import Check, Report, Row, Settings, Table, below, equal

PAPER = {(): 0.111, ("1",): 0.518, ("2",): 0.074, ("4",): 0.0, ("1", "2"): 0.074, ("1", "4"): 0.0, ("2", "4"): 0.0}
PAPER[("1", "2", "4")] = 0.0
"""Squared norms as printed."""

BY_HAND = {(): Fraction(1, 9), ("1",): Fraction(14, 27), ("2",): Fraction(2, 27), ("1", "2"): Fraction(2, 27)}
"""The same, from the nine values of sign(x1 - x2 / 2)."""


def table() -> pd.DataFrame:
    """The 27 rows of the support: 1, 2 and 4 free, 3 a copy of 2, 5 constant."""
    rows = [(a, b, b, c, 1) for a, b, c in product(range(3), repeat=3)]
    return pd.DataFrame(rows, columns=["1", "2", "3", "4", "5"])


def function(rows: pd.DataFrame) -> FloatArray:
    return np.sign(rows["1"].to_numpy() - rows["2"].to_numpy() + 0.5 * rows["3"].to_numpy())


def norms(anova: FunctionalANOVA) -> dict[tuple[str, ...], float]:
    """E[f_A^2] of every subset."""
    return {names: float(effect.norm2[0]) for names, effect in anova.effects_.items()}


def run(settings: Settings) -> Report:
    X = table()
    first = FunctionalANOVA(shrinkage=None, max_order=None, basis="paper", ties="first").fit(X, function)
    share = FunctionalANOVA(shrinkage=None, max_order=None).fit(X, function)
    ours, shared = norms(first), norms(share)
    used = {name for features, _ in first.paper_functions_ or () for name in features}
    rows = [
        Row(f"squared norm of {shown(key)}", f"{PAPER[key]:.3f}", f"{ours[key]:.3f}", chief=bool(PAPER[key]))
        for key in PAPER
    ]
    rows[1] = Row(rows[1].what, rows[1].paper, rows[1].ours, "14/27 = 0.5185, which the paper cuts off", True)
    rows.append(Row("variables in the functions kept", "1, 2, 4", ", ".join(sorted(used))))
    names = [key for key in shared if shared[key] > 1e-12 or key in BY_HAND]
    figure = settings.figure(
        "analytical.svg",
        bars(
            {
                "ties=first, as in the paper": {shown(key): ours.get(key, 0.0) for key in names},
                "ties=share, the default": {shown(key): shared[key] for key in names},
            },
            axis="squared norm",
            title="Squared norms of the effects",
        ),
        "Squared norms by both rules for redundancy: the first in order takes all, or the copies share.",
    )
    return Report(
        title="Analytical case",
        about=(
            "Five variables: 1, 2 and 4 are independent and uniform on {0, 1, 2}, 3 is a copy of 2, and 5 is constant. "
            "The function is sign(x1 - x2 + x3 / 2), which on this support depends on 1 and 2 alone. The paper keeps "
            'the first of two functions that coincide (`basis="paper", ties="first"`), so 3 and 5 never appear.'
        ),
        model="none, the function itself.",
        rows=rows,
        tables=[sharing(share, names, shared)],
        figures=[figure],
        checks=[
            below("norms against fractions worked out by hand", distance(ours), 1e-12),
            below("norms against the paper's digits", max(abs(ours[key] - PAPER[key]) for key in PAPER), 1e-3),
            equal("variables in the functions kept", sorted(used), ["1", "2", "4"]),
            below("error of the sum of the effects", first.certificate_.reconstruction, 1e-12),
            below("largest conditional mean, default settings", share.certificate_.orthogonality, 1e-12),
            Check("2 and its copy share alike", f"{shared['2',]:.4g} and {shared['3',]:.4g}", alike(share)),
        ],
    )


def distance(found: dict[tuple[str, ...], float]) -> float:
    return max(abs(value - float(BY_HAND.get(key, 0))) for key, value in found.items())


def alike(anova: FunctionalANOVA) -> bool:
    return bool(np.allclose(anova.effects_["2"].values, anova.effects_["3"].values, atol=1e-12))


def sharing(share: FunctionalANOVA, names: list[tuple[str, ...]], shared: dict[tuple[str, ...], float]) -> Table:
    """What the default makes of the same function."""
    return Table(
        'By default (`ties="share"`) no order of the columns matters: 2 and its copy 3 get equal effects that add up '
        "to the one above, and so do their pairs with 1. A half of an effect has a quarter of its squared norm.",
        ["effect", "squared norm"],
        [[shown(key), f"{shared[key]:.4f}"] for key in names],
    )


def shown(key: tuple[str, ...]) -> str:
    return "{" + ", ".join(key) + "}" if key else "the mean"
