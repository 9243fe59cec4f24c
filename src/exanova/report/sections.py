"""The sections of a summary: effects, interactions, tests and networks as records, within the limits of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.norms import absolute_norms, strongest_first
from exanova.messages import count_of
from exanova.progress import Progress
from exanova.report.alike import notes_on_levels
from exanova.report.explorer import GivenRows
from exanova.report.live import EFFECT_LEVELS, PAIR_LEVELS
from exanova.show.error_bars import can_compute, can_compute_importance, cell_errors, known, main_means
from exanova.show.records import Record, columns_of, effect_records, legible, network_records, pair_records, rounding
from exanova.typing import FloatArray

PAIRS, SUBSETS, REDUNDANT = 30, 100, 100
"""Largest numbers of pairs in full, of subsets by strength and of redundant subsets."""

HIGHER, HIGHER_CELLS = 10, 12
"""Interactions of three or more features that are tabulated, and cells of each."""

TESTS = 3000
"""Effects up to which they are tested for being zero: a test takes some tens of microseconds."""

EFFECT_NUMBERS, PAIR_NUMBERS = 16_000, 20_000
"""Values in all effects and in all pairs that a report lists."""

NETWORKS = 12
"""Outputs up to which each has its own network."""

SMALL = 1e-3
"""Effects of at most this share of the largest are named in one line, and not drawn."""


def main_effects(
    decomposition: Decomposition, features: Sequence[str], progress: Progress
) -> tuple[list[Record], list[str]]:
    """Main effects of the features, in this order, as far as the budget goes, and the names of those left out."""
    with_effect = [name for name in features if (name,) in decomposition.effects]
    means = main_means(decomposition)
    bounds = _largest(decomposition)
    shown: list[Record] = []
    spent = 0
    progress.phase("report: effects", len(with_effect))
    for name in with_effect:
        records = effect_records(decomposition, name, means=means)
        levels = len(records) // len(decomposition.schema.outputs)
        kept = _strongest_levels(records, EFFECT_LEVELS)
        spent += len(kept)
        if shown and spent > EFFECT_NUMBERS:
            break
        effect = decomposition.effects[name]
        small = bool((np.abs(effect.values).max(axis=0) <= bounds).all())
        shown.append(
            {
                "feature": name,
                "levels": levels,
                "identified": effect.identified,
                "small": small,
                "notes": notes_on_levels(decomposition, effect),
                "joined": {
                    label: list(map(str, of)) for label, of in decomposition.joined_levels.get(name, {}).items()
                },
                "records": kept,
            }
        )
        progress.step()
    return shown, with_effect[len(shown) :]


def small_interactions(decomposition: Decomposition) -> int:
    """How many interactions are small."""
    numbers = [s for s, subset in enumerate(decomposition.family.subsets) if len(subset) > 1]
    return len(numbers) - len(_not_small(decomposition, numbers))


def small_effects_in_words(effects: Sequence[Record]) -> str:
    """One line for the features that have next to no effect of their own; empty if there are none."""
    names = [legible(effect["feature"]) for effect in effects if effect["small"]]
    if not names:
        return ""
    subject = f"{len(names):,} features have" if len(names) > 1 else "One feature has"
    return f"{subject} no effect of their own, or less than 0.1 % of the largest: {listed(names, 40)}.".replace(
        "One feature has no effect of their own", "One feature has no effect of its own"
    )


def pairs(decomposition: Decomposition) -> tuple[list[Record], int]:
    """The strongest pairs that are not small, as far as the budget goes, and how many of those are left out."""
    family, schema = decomposition.family, decomposition.schema
    strength = absolute_norms(family, decomposition.values).sum(axis=1)
    numbers = _not_small(decomposition, [s for s, subset in enumerate(family.subsets) if len(subset) == 2])
    numbers.sort(key=lambda s: -strength[s])
    shown: list[Record] = []
    spent = 0
    for s in numbers[:PAIRS]:
        first, second = schema.names(family.subsets[s])
        records = pair_records(decomposition, first, second, PAIR_LEVELS)
        spent += len(records)
        if shown and spent > PAIR_NUMBERS:
            break
        levels = [int(family.sizes[i]) for i in family.subsets[s]]
        shown.append(
            {"first": first, "second": second, "levels": levels, "value": float(strength[s]), "records": records}
        )
    return shown, len(numbers) - len(shown)


def higher_effects(decomposition: Decomposition) -> tuple[list[Record], int]:
    """The strongest effects of three or more features, each with the cells that carry most of it, and how many more."""
    family, schema = decomposition.family, decomposition.schema
    strength = absolute_norms(family, decomposition.values).sum(axis=1)
    numbers = _not_small(decomposition, [s for s, subset in enumerate(family.subsets) if len(subset) > 2])
    numbers.sort(key=lambda s: -strength[s])
    return [_higher(decomposition, schema.names(family.subsets[s])) for s in numbers[:HIGHER]], len(numbers) - HIGHER


def strongest(decomposition: Decomposition) -> tuple[list[Record], int]:
    """The strongest subsets of any order, and how many are left out."""
    family, schema = decomposition.family, decomposition.schema
    norms = absolute_norms(family, decomposition.values)
    order = 1 + strongest_first(norms[1:].sum(axis=1))
    records = [
        {
            "subset": list(schema.names(family.subsets[s])),
            "order": len(family.subsets[s]),
            "output": output,
            "value": float(norms[s, k]),
        }
        for s in order[:SUBSETS].tolist()
        for k, output in enumerate(schema.outputs)
    ]
    return records, len(order) - SUBSETS


def significance(decomposition: Decomposition) -> tuple[list[Record], int]:
    """Which effects differ from zero, as far as that is cheap to compute, and how many lines are left out."""
    if not can_compute(decomposition) or len(decomposition.family.subsets) > TESTS:
        return [], 0
    columns = columns_of(decomposition.significance())
    count, outputs = len(columns["subset"]), decomposition.schema.outputs
    columns.setdefault("output", list(outputs) * count)
    fields = ("subset", "output", "statistic", "df", "p", "q", "significant")
    lines = zip(*(columns[field] for field in fields), strict=True)
    tested = [dict(zip(fields, line, strict=True)) for line in lines]
    shown = [finite(record) for record in tested if not math.isnan(record["p"])][:SUBSETS]
    return shown, len(tested) - len(shown)


def networks(decomposition: Decomposition) -> list[Record]:
    """The network of each output, or of all of them added up where there are many."""
    outputs = decomposition.schema.outputs if len(decomposition.schema.outputs) <= NETWORKS else (None,)
    drawn = [(output, *network_records(decomposition, output)) for output in outputs]
    return [{"output": output, "nodes": nodes, "edges": edges} for output, nodes, edges in drawn]


def levels_left(effects: list[Record], shown: list[Record]) -> Iterator[str]:
    """Sentences on the levels that are not shown."""
    long = [e["feature"] for e in effects if e["levels"] > EFFECT_LEVELS]
    if long:
        yield f"Levels of {listed(long)}: the {EFFECT_LEVELS} that carry most of the effect are shown."
    wide = [f"{p['first']} x {p['second']}" for p in shown if max(p["levels"]) > PAIR_LEVELS]
    if wide:
        yield f"Levels in {listed(wide)}: the {PAIR_LEVELS} per side that carry most of the effect are shown."


def left(count: int, what: str, which: str, of: str = "") -> Iterator[str]:
    """A sentence on what is left out, if anything is.

    >>> [*left(1, "pair", "the weakest"), *left(2, "factor", "the weakest", "of the tariff"), *left(0, "pair", "none")]
    ['1 pair: the weakest.', '2 factors of the tariff: the weakest.']
    """
    if count > 0:
        yield f"{' '.join([count_of(count, what), of]).strip()}: {which}."


def listed(names: Sequence[Any], limit: int = 8) -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def finite(record: Record) -> Record:
    """The record with ``None`` for numbers that are not finite."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}


def _largest(decomposition: Decomposition) -> FloatArray:
    """(m,) size up to which an effect is small: a share of the largest value of any effect of that output."""
    beyond = np.abs(decomposition.values[1:])
    largest = beyond.max(axis=0) if len(beyond) else np.zeros(decomposition.values.shape[1])
    return np.maximum(SMALL * largest, rounding(decomposition))


def _not_small(decomposition: Decomposition, numbers: Sequence[int]) -> list[int]:
    """Those of the subsets whose effects are more than a thousandth of the largest for some output."""
    bounds, family = _largest(decomposition), decomposition.family
    return [s for s in numbers if (np.abs(decomposition.values[family.cells_of(s)]).max(axis=0) > bounds).any()]


def _strongest_levels(records: list[Record], top: int) -> list[Record]:
    """The records of the ``top`` levels that carry most of E|f|."""
    if len(records) <= top:
        return records
    carried: dict[int, float] = {}
    for r in records:
        carried[r["position"]] = carried.get(r["position"], 0.0) + r["probability"] * abs(r["value"])
    kept = set(sorted(carried, key=lambda position: -carried[position])[:top])
    return [r for r in records if r["position"] in kept]


def _higher(decomposition: Decomposition, names: tuple[str, ...]) -> Record:
    """One effect of three or more features, with the cells that carry most of E|f|, the first first."""
    effect = decomposition.effects[names]
    errors = cell_errors(decomposition, effect)
    amount = effect.probability * np.abs(effect.values).sum(axis=1)
    cells = strongest_first(amount)[:HIGHER_CELLS].tolist()
    records = [
        {
            "levels": list(effect.levels[c]),
            "probability": float(effect.probability[c]),
            "output": output,
            "value": float(effect.values[c, k]),
            **errors.fields(c, k),
        }
        for k, output in enumerate(effect.output_names)
        for c in cells
    ]
    return {
        "subset": list(names),
        "cells": len(effect.levels),
        "share": float(amount[cells].sum() / (amount.sum() or 1.0)),
        "records": records,
    }


def domains(decomposition: Decomposition, given: GivenRows, kind: str) -> Record | None:
    """``members`` of every group and the importance of each; ``None`` where no groups were given."""
    if given.groups is None:
        return None
    with_errors = can_compute_importance(decomposition)
    columns = columns_of(decomposition.importance(kind, groups=given.groups, stderr=with_errors))
    count = len(columns["group"])
    outputs = columns.get("output", decomposition.schema.outputs * count)
    errors = columns["stderr"] if with_errors else [float("nan")] * count
    lines = zip(columns["group"], outputs, columns["value"], errors, strict=True)
    return {
        "members": [{"group": str(name), "features": list(features)} for name, features in given.groups.items()],
        "records": [{"group": str(g), "output": str(o), "value": float(v), "stderr": known(e)} for g, o, v, e in lines],
    }
