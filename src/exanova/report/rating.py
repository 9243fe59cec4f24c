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
    found = decomposition.relativities(base)
    order = sorted(found.factors, key=lambda factor: (len(factor.features), -_spread(factor)))
    shown = order[:FACTORS]
    outputs = decomposition.schema.outputs
    return (
        {
            "link": found.link,
            "base": [{"feature": feature, "level": level} for feature, level in found.base.items()],
            "base_values": [
                {"output": output, "value": float(value)}
                for output, value in zip(outputs, found.base_value, strict=True)
            ],
            "words": [_in_words(found, o) for o in range(len(outputs))],
            "notes": list(found.notes),
            "factors": [_factor(found, factor, outputs) for factor in shown],
            "losses": [
                finite({"output": output, **asdict(loss)})
                for output, losses in zip(outputs, found.losses, strict=False)
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


def _factor(found: Relativities, factor: TariffFactor, outputs: tuple[str, ...]) -> Record:
    """One factor: the cells with the most exposure, in their own order."""
    kept = np.sort(np.argsort(-factor.exposure, kind="stable")[:CELLS]).tolist()
    base = tuple(found.base[name] for name in factor.features)
    records = [
        {
            "output": output,
            "levels": list(factor.levels[c]),
            "exposure": float(factor.exposure[c]),
            "relativity": float(factor.relativity[c, o]),
            "low": known(factor.low[c, o]),
            "high": known(factor.high[c, o]),
            "base": bool(factor.anchored and factor.levels[c] == base),
        }
        for o, output in enumerate(outputs)
        for c in kept
    ]
    return {"subset": list(factor.features), "cells": len(factor.levels), "records": records}


def _in_words(found: Relativities, o: int) -> str:
    """The base value, and the loss of tariffs of few orders, in sentences."""
    of = f"the odds of {legible(found.names[o])}" if found.link == "logit" else legible(found.names[o])
    sentences = [f"At the base levels {of} is {number(float(found.base_value[o]))}; the factors multiply it."]
    for loss in found.losses[o][1:] if found.losses else ():
        what = "Main effects alone" if loss.order == 1 else f"Factors of up to {loss.order} features"
        sentences.append(
            f"{what} explain {100 * loss.explained:.1f} % of the deviance and order the rows with a Gini index of "
            f"{loss.gini:.3f}, {100 * loss.gini_share:.1f} % of the largest there is."
        )
    return " ".join(sentences)
