"""Poker hands dealt from the rules: ranks against suits, known in advance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from exanova import FunctionalANOVA
from exanova.typing import FloatArray, IntArray
from experiments.charts import bars
from experiments.harness import SEED, Check, Report, Row, Settings, below, equal

HANDS = 25_010
"""As many hands as the training file of the dataset has."""


def dealt(hands: int) -> IntArray:
    """(hands, 5) cards of 52, without replacement."""
    return np.random.default_rng(SEED).random((hands, 52)).argsort(axis=1)[:, :5]


def table_of(cards: IntArray) -> pd.DataFrame:
    """Suits S1..S5 and ranks C1..C5, in the columns of the dataset."""
    columns = {}
    for k in range(5):
        columns[f"S{k + 1}"], columns[f"C{k + 1}"] = cards[:, k] // 13 + 1, cards[:, k] % 13 + 1
    return pd.DataFrame(columns)


def is_nothing(cards: IntArray) -> FloatArray:
    """1 where a hand is of class 0: five ranks, no straight (ace low or high), not all of one suit."""
    ranks = np.sort(cards % 13, axis=1)
    distinct = (np.diff(ranks, axis=1) > 0).all(axis=1)
    high = (ranks == [0, 9, 10, 11, 12]).all(axis=1)
    straight = distinct & ((ranks[:, 4] - ranks[:, 0] == 4) | high)
    flush = np.ptp(cards // 13, axis=1) == 0
    return (distinct & ~straight & ~flush).astype(np.float64)


def run(settings: Settings) -> Report:
    cards = dealt(4000 if settings.quick else HANDS)
    X, values = table_of(cards), is_nothing(cards)
    mains = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, values)
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(X, values)
    c = anova.certificate_
    norms = {names: float(effect.norm2[0]) for names, effect in anova.effects_.items() if len(names) == 2}
    strongest = sorted(norms, key=lambda names: -norms[names])[:10]
    rank_pairs = [pair for pair in strongest if {name[0] for name in pair} == {"C"}]
    importance = {row.feature: float(row.value) for row in anova.importance("shapley").itertuples()}
    ratio = sum(importance[f"C{k}"] for k in range(1, 6)) / sum(importance[f"S{k}"] for k in range(1, 6))
    return Report(
        title="Poker hands from the rules",
        about=(
            f"The Poker Hand experiment without a download and without a model: {len(X):,} hands dealt at random, and "
            "whether a hand is nothing at all (class 0). Pairs of ranks decide nearly everything, suits only through "
            "the rare flush; a decomposition that shows otherwise is wrong."
        ),
        model="none, the rules of the game.",
        rows=[
            Row("hands that are nothing", "", f"{100 * values.mean():.1f} %", "50.1 % of all hands of 52 cards"),
            Row("rank of the main effects", "76", f"{mains.certificate_.rank}"),
            Row(
                "R2 of the main effects",
                "0.003",
                f"{mains.certificate_.r2[0]:.3f}",
                "the paper: a model of these rules",
            ),
            Row("rank up to pairs", "", f"{c.rank:,}", f"R2 {c.r2[0]:.2f}"),
            Row("pairs of ranks among the ten strongest", "", f"{len(rank_pairs)} of 10", chief=True),
            Row("importance of ranks over suits", "about 10", f"{ratio:.1f}", "Shapley values, pairs included", True),
        ],
        figures=[picture(settings, importance)],
        checks=[
            equal("rank of the main effects", mains.certificate_.rank, 76),
            equal("rank up to pairs, as of the dataset", c.rank, 2506),
            equal("pairs of ranks among the ten strongest", len(rank_pairs), 10),
            below("largest conditional mean of an effect", c.orthogonality, 1e-12),
            below("share of hands that are nothing against the exact one", abs(values.mean() - EXACT), 0.02),
            Check("ranks matter more than suits", f"{ratio:.1f} times", ratio > 2),
        ],
    )


EXACT = 1_302_540 / 2_598_960
"""Hands without a pair, a straight or a flush, of all hands."""


def picture(settings: Settings, importance: dict[str, float]) -> Any:
    total = sum(importance.values())
    names = [f"{kind}{k}" for kind in "CS" for k in range(1, 6)]
    series = {"mean absolute Shapley value": {name: 100 * importance[name] / total for name in names}}
    chart = bars(series, axis="share, per cent", title="Ranks (C) and suits (S) of five cards", format=".1f")
    return settings.figure("poker-hands.svg", chart, "Importance of ranks and suits for the rules of poker.")
