"""Poker Hand: how much ranks and suits matter, beside what attention rollout says."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova import FunctionalANOVA
from exanova.typing import FloatArray
from experiments.charts import bars
from experiments.harness import Check, Report, Row, Settings, Table, below
from experiments.high_rank import Target, fit
from experiments.poker_models import target

RANKS, SUITS = ([f"{kind}{k}" for k in range(1, 6)] for kind in "CS")

ABOUT = """What matters in a hand of poker are the ranks; suits matter only through the flush, one hand in five
hundred. The paper takes Shapley values of the decomposition at rank 5,000, divides the residual equally among the ten
features, averages absolute values over the rows, and compares them with attention rollout. Dividing the residual gives
ranks and suits the same amount on every row; kept apart, as is the default here, it favours neither."""

WHY = """Going through the functions in canonical order, the first triples are those with S1, the suit of the first
card. 2,400 of them on 25,010 hands fit what is chance, and S1 gets twice the share of the other suits for it. Up to
pairs the quotient is larger, and it is that of the [rules of the game](poker_hands.md). Dividing the residual equally
pulls it towards 1."""

REMARK = """Attention rollout (Abnar and Zuidema) averages the heads, adds the path around each layer, and multiplies
through the layers. The classifier reads all ten tokens, so what reaches a feature is averaged over them. It shows
where information may have flowed, not what it was used for."""

APART, DIVIDED, ROLLOUT = "Shapley values", "residual divided, as in the paper", "attention rollout"


def shares(amounts: FloatArray, names: list[str]) -> dict[str, float]:
    """Per cent of the total, ranks before suits."""
    percent = 100 * amounts / amounts.sum()
    return {name: float(percent[names.index(name)]) for name in [*RANKS, *SUITS]}


def ratio(percent: dict[str, float]) -> float:
    """How many times the importance of the suits that of the ranks is."""
    return sum(percent[name] for name in RANKS) / sum(percent[name] for name in SUITS)


def importances(anova: FunctionalANOVA, hands: Target, names: list[str]) -> dict[str, dict[str, float]]:
    """Mean absolute Shapley values, the residual kept apart and divided."""
    apart, divided = (anova.explain(hands.X, hands.values, residual=how).values for how in ("report", "spread"))
    return {
        APART: shares(np.abs(apart).mean(axis=0), names),
        DIVIDED: shares(np.abs(divided).mean(axis=0), names),
    }


def run(settings: Settings) -> Report:
    hands, arrays = target(settings)
    names = list(hands.X.columns)
    budget = 400 if settings.quick else 5000
    anova = fit(hands.X, hands.values, None, {"max_order": 3, "max_terms": budget, "selection": "canonical"})
    found = importances(anova, hands, names)
    pairs = ratio(importances(fit(hands.X, hands.values, None, {"max_order": 2}), hands, names)[APART])
    if "rollout" in arrays:
        found[ROLLOUT] = shares(np.asarray(arrays["rollout"]), names)
    c = anova.certificate_
    quotients = {kind: ratio(percent) for kind, percent in found.items()}
    ours = quotients[APART]
    return Report(
        title="Poker Hand: ranks and suits",
        about=ABOUT,
        model=hands.model,
        rows=[
            Row(
                "ranks over suits, residual divided", "about 10", f"{quotients[DIVIDED]:.1f}", f"R2 {c.r2[0]:.2f}", True
            ),
            Row("ranks over suits, residual apart", "", f"{ours:.1f}"),
            Row("ranks over suits, up to pairs", "", f"{pairs:.1f}", "no triples, residual apart", True),
            Row("ranks over suits, attention rollout", "about 1", *rolled(quotients), chief=True),
        ],
        tables=[table_of(found)],
        figures=[picture(settings, found)],
        checks=[
            below("largest conditional mean of any effect", c.orthogonality, 1e-12),
            Check("ranks matter more than suits", f"{ours:.1f} times", settings.quick or ours > 3),
        ],
        remarks=[WHY, *([REMARK] if "rollout" in arrays else [])],
    )


def rolled(quotients: dict[str, float]) -> tuple[str, str]:
    """What attention rollout says, and why it says nothing where it does not."""
    if ROLLOUT in quotients:
        return f"{quotients[ROLLOUT]:.1f}", ""
    return "not run", "torch is not installed, so that there is no transformer to roll out"


def table_of(found: dict[str, dict[str, float]]) -> Table:
    rows = [[name, *(f"{percent[name]:.1f}" for percent in found.values())] for name in [*RANKS, *SUITS]]
    return Table("Share of each feature, in per cent (C1 to C5 ranks, S1 to S5 suits):", ["feature", *found], rows)


def picture(settings: Settings, found: dict[str, dict[str, float]]) -> Any:
    chart = bars(found, axis="share of the importance, per cent", title="Global importance, Poker Hand", format=".1f")
    caption = "Importance of the ranks (C) and suits (S) of five cards for the probability of class 0."
    return settings.figure("poker-importance.svg", chart, caption)
