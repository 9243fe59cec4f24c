"""Results as plain documents for ``--json``: dictionaries, lists, text, finite numbers, and null for the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from exanova import __version__
from exanova.effects.certificate import Certificate
from exanova.effects.norms import squared_norms
from exanova.effects.tables import GAME, Effect
from exanova.explain.comparison import Comparison
from exanova.show.records import importance_records
from exanova.solve.plan import Plan


def written(document: Mapping[str, Any]) -> bytes:
    """A document as a line of JSON."""
    return json.dumps(plain({"exanova": __version__, **document}), allow_nan=False).encode() + b"\n"


def plain(value: Any) -> Any:
    """The value as JSON has it.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), "x")})
    {'a': [1.0, None], 'b': [2, 'x']}
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def decomposition(anova: Any, effects: int) -> dict[str, Any]:
    """What ``explain`` and ``show`` say: the fit, the certificate, importances, the strongest effects."""
    return {
        "game": GAME,
        "outputs": anova.output_names_,
        "mean": anova.intercept_,
        "rows": anova.plan_.rows,
        "distinct_rows": anova.plan_.distinct_rows,
        "certificate": certificate(anova.certificate_),
        "plan": plan(anova.plan_),
        "selection": anova.selection_,
        "importance": importance_records(anova.decomposition_),
        "strongest_effects": strongest(anova, effects),
    }


def plan(found: Plan) -> dict[str, Any]:
    """The plan with the time to expect."""
    return {**plain(found), "seconds": found.seconds}


def certificate(measured: Certificate) -> dict[str, Any]:
    """The certificate with its two verdicts."""
    return {"exact": measured.exact, "unique": measured.unique, **plain(measured)}


def strongest(anova: Any, count: int) -> list[dict[str, Any]]:
    """The subsets of largest squared norm, all outputs together."""
    state = anova.decomposition_
    norms = squared_norms(state.index, state.values)
    order = np.argsort(-norms[1:].sum(axis=1), kind="stable")[:count] + 1
    return [{"features": state.schema.names(state.index.subsets[s]), "squared_norm": norms[s]} for s in order.tolist()]


def effect(found: Effect) -> dict[str, Any]:
    """The table of one effect."""
    return {
        "features": found.features,
        "outputs": found.output_names,
        "squared_norm": found.norm2,
        "cells": [
            {"levels": levels, "probability": p, "values": values}
            for levels, p, values in zip(found.levels, found.probability, found.values, strict=True)
        ],
    }


def comparison(found: Comparison, count: int) -> dict[str, Any]:
    """The largest changes."""
    return {"game": found.game, "outputs": found.schema.outputs, "changes": found.changes[:count]}
