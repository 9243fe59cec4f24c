"""The tariff of a decomposition on the log or logit scale, as a section of the report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition
from exanova.explain.relativities import Relativities, TariffFactor
from exanova.report.findings import number
from exanova.report.sections import finite
from exanova.show.error_bars import known
from exanova.show.records import Record, legible

FACTORS, CELLS = 40, 60
"""Factors that a report tabulates, and cells of each."""


def tariff(decomposition: Decomposition, base: Any) -> tuple[Record | None, int, int]:
    """Relativities against base levels, ``None`` without a link; and how many factors and cells are left out."""
    if decomposition.link == "identity":
        return None, 0, 0
    relativities = decomposition.relativities(base)
    order = sorted(relativities.factors, key=lambda factor: (len(factor.features), -_spread(factor)))
    shown = order[:FACTORS]
    outputs = decomposition.schema.outputs
    return (
        {
            "link": relativities.link,
            "base": [{"feature": feature, "level": level} for feature, level in relativities.base.items()],
            "base_values": [
                {"output": output, "value": float(value)}
                for output, value in zip(outputs, relativities.base_value, strict=True)
            ],
            "words": [_in_words(relativities, o) for o in range(len(outputs))],
            "notes": list(relativities.notes),
            "factors": [_factor(relativities, factor, outputs) for factor in shown],
            "losses": [
                finite({"output": output, **asdict(loss)})
                for output, losses in zip(outputs, relativities.losses, strict=False)
                for loss in losses
            ],
        },
        len(order) - len(shown),
        sum(max(0, len(factor.levels) - CELLS) for factor in shown),
    )


def _spread(factor: TariffFactor) -> float:
    """The spread of the relativities of a factor, on the log scale, by exposure."""
    logs = np.log(factor.relativity)
    share = factor.exposure / factor.exposure.sum()
    return float((share @ (logs - share @ logs) ** 2).sum())


def _factor(relativities: Relativities, factor: TariffFactor, outputs: tuple[str, ...]) -> Record:
    """One factor: the cells with the most exposure, in their own order."""
    kept = np.sort(np.argsort(-factor.exposure, kind="stable")[:CELLS]).tolist()
    records = [
        {
            "output": output,
            "levels": list(factor.levels[c]),
            "exposure": float(factor.exposure[c]),
            "relativity": float(factor.relativity[c, o]),
            "low": known(factor.low[c, o]),
            "high": known(factor.high[c, o]),
            "base": relativities.is_base(factor, c),
        }
        for o, output in enumerate(outputs)
        for c in kept
    ]
    return {"subset": list(factor.features), "cells": len(factor.levels), "records": records}


def _in_words(relativities: Relativities, o: int) -> str:
    """The base value, and the loss of tariffs of few orders, in sentences."""
    of = (
        f"the odds of {legible(relativities.names[o])}"
        if relativities.link == "logit"
        else legible(relativities.names[o])
    )
    sentences = [f"At the base levels {of} is {number(float(relativities.base_value[o]))}; the factors multiply it."]
    for loss in relativities.losses[o][1:] if relativities.losses else ():
        what = "Main effects alone" if loss.order == 1 else f"Factors of up to {loss.order} features"
        sentences.append(
            f"{what} explain {100 * loss.explained:.1f} % of the deviance and order the rows with a Gini index of "
            f"{loss.gini:.3f}, {100 * loss.gini_share:.1f} % of the largest there is."
        )
    return " ".join(sentences)
