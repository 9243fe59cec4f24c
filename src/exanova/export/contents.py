"""The tables of an export as columns of plain cells, in the same order for every format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition, tariff_against
from exanova.effects.certificate_text import described
from exanova.effects.effect import GAME, Effect, free_name
from exanova.effects.norms import absolute_norms, squared_norms
from exanova.explain.importance_errors import importance_stderr
from exanova.explain.relativities import Relativities
from exanova.progress import Progress
from exanova.show.error_bars import can_compute, cell_errors, errors_in_words, what_varies, why_none
from exanova.show.records import importance_records
from exanova.typing import FloatArray, Level

Cell = str | int | float | bool | None
"""A text, a number, a boolean, or nothing: the cells of a table."""

IMPORTANCES = ("l1", "l2", "variance", "shapley-effects")
"""Kinds of importance that need only the effects; mean absolute Shapley values join them where known."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """One table.

    Attributes:
        name: its name, unique among the tables of an export.
        about: what it holds, in a sentence.
        columns: the cells of every column, by its name.
        subset: names of the features, if it is the table of an effect.
        grid: codes of the levels of each line, (order, lines), if it is the table of an effect.
    """

    name: str
    about: str
    columns: dict[str, list[Cell]]
    subset: tuple[str, ...] = ()
    grid: Any = None

    @property
    def lines(self) -> int:
        """Number of lines, without the header."""
        return len(next(iter(self.columns.values())))


def overview(decomposition: Decomposition, about: Mapping[str, str]) -> list[Sheet]:
    """Every table but those of the effects."""
    return [
        summary_sheet(decomposition),
        provenance_sheet(decomposition, about),
        certificate_sheet(decomposition),
        fit_sheet(decomposition),
        importance_sheet(decomposition),
        effects_sheet(decomposition),
        *([] if (tariff := tariff_of_export(decomposition)) is None else tariff_sheets(tariff)),
    ]


def effect_sheets(decomposition: Decomposition, progress: Progress) -> Iterator[Sheet]:
    """The table of every effect but the intercept, in canonical order."""
    for names in decomposition.effects:
        if names:
            yield effect_sheet(decomposition, decomposition.effects[names])
            progress.step()


def summary_sheet(decomposition: Decomposition) -> Sheet:
    """What was explained and how far it can be trusted, in words."""
    schema, family, plan = decomposition.schema, decomposition.family, decomposition.plan
    facts = [
        ("game", GAME),
        ("rows", f"{plan.rows:,} given, {plan.distinct_rows:,} distinct"),
        ("features", ", ".join(schema.features)),
        ("outputs", ", ".join(schema.outputs)),
        ("effects", f"{len(family.subsets) - 1:,}, of up to {decomposition.order} features"),
        ("standard errors", known_errors(decomposition)),
        *described(decomposition.certificate),
    ]
    return Sheet("summary", "What was explained, and how far it can be trusted.", _pairs(facts))


def known_errors(decomposition: Decomposition) -> str:
    """The meaning of the standard errors, or why there are none."""
    if decomposition.certificate.sampled and decomposition.uncertainty.cheap:
        return f"Standard errors: {what_varies(decomposition)}."
    return errors_in_words(decomposition).replace("error bars", "standard errors")


def provenance_sheet(decomposition: Decomposition, about: Mapping[str, str]) -> Sheet:
    """The provenance of the numbers."""
    return Sheet("provenance", "Where the numbers come from.", _pairs(provenance_facts(decomposition, about)))


def provenance_facts(decomposition: Decomposition, about: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and texts of the provenance, and what was added to it."""
    known = decomposition.provenance
    facts = [("Provenance", "not recorded: saved by an earlier version")] if known is None else known.facts()
    return [*facts, *about.items()]


def certificate_sheet(decomposition: Decomposition) -> Sheet:
    """The measurements, with their tolerances."""
    checks = decomposition.certificate.checks
    columns: dict[str, list[Cell]] = {
        "check": [c.name for c in checks],
        "meaning": [c.meaning for c in checks],
        "measured": [finite(c.measured) for c in checks],
        "tolerance": [None if c.tolerance is None else finite(c.tolerance) for c in checks],
        "met": [c.met for c in checks],
        "remedy": [str(c.remedy) for c in checks],
    }
    return Sheet("certificate", "Measurements of the effects, with their tolerances.", columns)


def fit_sheet(decomposition: Decomposition) -> Sheet:
    """How well the effects describe the model, one line per output."""
    c = decomposition.certificate
    measured: dict[str, FloatArray | None] = {
        "mean": decomposition.intercept,
        "r2": c.r2,
        "mse": c.mse,
        "relative_mse": c.relative_mse,
        "within_variance": c.within_variance,
        "r2_other_rows": c.r2_eval,
        "mse_other_rows": c.mse_eval,
        "cancellation": c.cancellation,
    }
    columns: dict[str, list[Cell]] = {"output": list(decomposition.schema.outputs)}
    columns |= {name: _optional(values, len(c.r2)) for name, values in measured.items()}
    return Sheet("fit", "Mean of the model and quality of the fit, per output.", columns)


def importance_sheet(decomposition: Decomposition) -> Sheet:
    """Importances of features of every kind, one line per kind, feature and output."""
    kinds = [*IMPORTANCES, *(["shapley"] if decomposition.mean_shapley.known is not None else [])]
    records = [{"kind": kind, **record} for kind in kinds for record in importance_records(decomposition, kind)]
    fields = ("kind", "feature", "output", "value", "stderr")
    columns: dict[str, list[Cell]] = {field: [record[field] for record in records] for field in fields}
    return Sheet("importance", "Importances of the features, largest first within each kind.", columns)


def effects_sheet(decomposition: Decomposition) -> Sheet:
    """Every effect with its size, one line per effect and output."""
    family, schema, m = decomposition.family, decomposition.schema, len(decomposition.schema.outputs)
    subsets = range(1, len(family.subsets))
    norm1, norm2 = absolute_norms(family, decomposition.values), squared_norms(family, decomposition.values)
    known = can_compute(decomposition)
    stderr = (
        importance_stderr(family, decomposition.uncertainty, "l2", "subset") if known else np.full_like(norm2, np.nan)
    )
    variance = np.where(decomposition.variance > 0, decomposition.variance, 1.0)
    identified = decomposition.uncertainty.identified
    columns: dict[str, list[Cell]] = {
        "subset": [subset_name(schema.names(family.subsets[s])) for s in subsets for _ in range(m)],
        "order": [len(family.subsets[s]) for s in subsets for _ in range(m)],
        "output": [output for _ in subsets for output in schema.outputs],
        "cells": [int(family.cell_start[s + 1] - family.cell_start[s]) for s in subsets for _ in range(m)],
        "norm1": _numbers(norm1[1:]),
        "norm2": _numbers(norm2[1:]),
        "norm2_stderr": _numbers(stderr[1:]),
        "share": _numbers(decomposition.covariance[1:] / variance),
        "identified": [identified(s) for s in subsets for _ in range(m)],
    }
    return Sheet("effects", "Every effect: E|f|, E[f^2], share of the variance.", columns)


def tariff_of_export(decomposition: Decomposition) -> Relativities | None:
    """Relativities against the most frequent levels, with intervals that are cheap; ``None`` without a link."""
    if decomposition.link == "identity":
        return None
    return tariff_against(decomposition, "most frequent", why_none(decomposition))


BASE_VALUE = "(base value)"
"""The factor of the first line of a tariff, whose relativity is the fitted value at the base levels."""


def tariff_sheets(tariff: Relativities) -> list[Sheet]:
    """The tariff, the base value on its first line, and its loss by order where that is known."""
    what = "odds" if tariff.link == "logit" else "value"
    about = (
        f"Relativities against the base levels: the fitted {what} of a row is the base value times its relativities."
    )
    sheets = [Sheet("tariff", " ".join([about, *(f"Note: {note}." for note in tariff.notes)]), _tariff_columns(tariff))]
    if tariff.losses:
        lines = [(name, loss) for name, losses in zip(tariff.names, tariff.losses, strict=True) for loss in losses]
        columns: dict[str, list[Cell]] = {"output": [name for name, _ in lines]}
        columns["order"] = [loss.order for _, loss in lines]
        for field in ("deviance", "explained", "gini", "gini_share", "balance"):
            columns[field] = [finite(getattr(loss, field)) for _, loss in lines]
        sheets.append(Sheet("tariff loss", "Loss of a tariff of factors up to each order, on the rows.", columns))
    return sheets


def _tariff_columns(tariff: Relativities) -> dict[str, list[Cell]]:
    base = ", ".join(f"{name} = {level}" for name, level in tariff.base.items())
    lines: list[tuple[Cell, ...]] = [
        (BASE_VALUE, base, name, None, finite(value), None, None, True)
        for name, value in zip(tariff.names, tariff.base_value.tolist(), strict=True)
    ]
    for f in tariff.factors:
        for c, levels in enumerate(f.levels):
            for o, name in enumerate(tariff.names):
                numbers = (finite(values[c, o]) for values in (f.relativity, f.low, f.high))
                lines.append((f.name, " x ".join(levels), name, finite(f.exposure[c]), *numbers, tariff.is_base(f, c)))
    names = ("factor", "level", "output", "exposure", "relativity", "low", "high", "base")
    return dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))


def effect_sheet(decomposition: Decomposition, effect: Effect) -> Sheet:
    """One effect: levels, probability, rows, values, standard errors and whether it is identified."""
    schema, family = decomposition.schema, decomposition.family
    codes = family.codes_of(effect.number)
    errors = cell_errors(decomposition, effect)
    columns: dict[str, list[Cell]] = {}
    for name, i, row in zip(effect.features, family.subsets[effect.number], codes, strict=True):
        shown = level_cells(decomposition.encoding.levels[i], schema.labels[i])
        columns[name] = [shown[code] for code in row.tolist()]
    columns[free_name("probability", columns)] = _numbers(effect.probability)
    columns[free_name("rows", columns)] = [whole(value) for value in errors.rows.tolist()]
    for k, name in enumerate(schema.value_columns):
        columns[free_name(name, columns)] = _numbers(effect.values[:, k])
    for k, name in enumerate(schema.stderr_columns):
        columns[free_name(name, columns)] = _numbers(errors.stderr[:, k])
    columns[free_name("identified", columns)] = [effect.identified] * len(effect.levels)
    about = f"Effect of {subset_name(effect.features)} in every observed combination of levels."
    return Sheet(subset_name(effect.features), about, columns, effect.features, codes)


def subset_name(features: tuple[str, ...]) -> str:
    """A subset of features as text."""
    return " x ".join(features)


def level_cells(levels: tuple[Level, ...], labels: tuple[str, ...]) -> list[Cell]:
    """Levels as cells: numbers and booleans unchanged, all others by their labels.

    >>> level_cells((1, "a", None, True), ("1", "a", "(missing)", "True"))
    [1, 'a', '(missing)', True]
    """
    plain = (bool, int, float)
    return [
        level if type(level) in plain and math.isfinite(level) else label
        for level, label in zip(levels, labels, strict=True)
    ]


def finite(value: float) -> float | None:
    """A number; ``None`` where there is none."""
    return float(value) if math.isfinite(value) else None


def whole(value: float) -> int | float | None:
    """A number of rows: whole where it is, ``None`` where it is not known."""
    return int(value) if math.isfinite(value) and value == math.floor(value) else finite(value)


def _pairs(facts: list[tuple[str, str]]) -> dict[str, list[Cell]]:
    return {"name": [name for name, _ in facts], "value": [str(value) for _, value in facts]}


def _numbers(values: FloatArray) -> list[Cell]:
    return [finite(value) for value in np.asarray(values).ravel().tolist()]


def _optional(values: FloatArray | None, count: int) -> list[Cell]:
    return [None] * count if values is None else _numbers(values)
