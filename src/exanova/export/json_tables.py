"""A decomposition as one JSON document, described by ``tables.schema.json`` beside this module.

Levels are values with their labels, so that numbers and booleans keep their types; unknown values are null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exanova.decomposition import Decomposition
from exanova.effects.effect import GAME, Effect
from exanova.export.contents import (
    Sheet,
    certificate_sheet,
    effects_sheet,
    finite,
    fit_sheet,
    importance_sheet,
    level_cells,
    tariff_of_export,
    tariff_sheets,
    whole,
)
from exanova.progress import Progress
from exanova.show.error_bars import cell_errors

FORMAT, VERSION = "exanova-tables", 1
"""Name and version of the document; the version increases when a field changes its meaning or is removed."""

SCHEMA = Path(__file__).with_name("tables.schema.json")
"""The JSON Schema of the document."""


def to_json(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> bytes:
    """The document, in ASCII."""
    return (
        json.dumps(document(decomposition, about, progress), ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
    )


def document(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """The document as plain values."""
    schema, certificate = decomposition.schema, decomposition.certificate
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "game": GAME,
        "provenance": _provenance(decomposition),
        "about": dict(about),
        "features": _features(decomposition),
        "outputs": list(schema.outputs),
        "intercept": [finite(value) for value in decomposition.intercept.tolist()],
        "fit": _records(fit_sheet(decomposition)),
        "certificate": {
            "exact": certificate.exact,
            "unique": certificate.unique,
            "holds": certificate.holds,
            "notes": [str(note) for note in certificate.notes],
            "checks": _records(certificate_sheet(decomposition)),
        },
        "importance": _records(importance_sheet(decomposition)),
        "sizes": _records(effects_sheet(decomposition)),
        "tariff": _tariff(decomposition),
        "effects": list(_effects(decomposition, progress)),
    }


def _provenance(decomposition: Decomposition) -> dict[str, Any] | None:
    known = decomposition.provenance
    if known is None:
        return None
    files = [{"role": role, "path": path, "sha256": digest} for role, path, digest in known.files]
    return {**asdict(known), "settings": {name: value for name, value in known.settings}, "files": files}


def _tariff(decomposition: Decomposition) -> dict[str, Any] | None:
    """Relativities and their loss; ``None`` without a link."""
    tariff = tariff_of_export(decomposition)
    if tariff is None:
        return None
    factors, *loss = map(_records, tariff_sheets(tariff))
    return {
        "link": tariff.link,
        "base": dict(tariff.base),
        "base_value": [finite(value) for value in tariff.base_value.tolist()],
        "relativities": factors[len(tariff.names) :],  # the base values are in the lines before
        "loss": loss[0] if loss else [],
        "notes": list(tariff.notes),
    }


def _features(decomposition: Decomposition) -> list[dict[str, Any]]:
    return [
        {
            "name": feature.name,
            "labels": list(feature.labels),
            "levels": level_cells(feature.levels, feature.labels),
            "ordered_levels": feature.ordered,
        }
        for feature in decomposition.encoding.features
    ]


def _effects(decomposition: Decomposition, progress: Progress) -> Iterator[dict[str, Any]]:
    for names in decomposition.effects:
        if names:
            yield _effect(decomposition, decomposition.effects[names])
            progress.step()


def _effect(decomposition: Decomposition, effect: Effect) -> dict[str, Any]:
    errors = cell_errors(decomposition, effect)
    stderr = [[finite(value) for value in line] for line in errors.stderr.tolist()]
    return {
        "features": list(effect.features),
        "identified": effect.identified,
        "cells": [
            {
                "codes": codes,
                "levels": list(levels),
                "probability": finite(effect.probability[k]),
                "rows": whole(float(errors.rows[k])),
                "values": [finite(value) for value in effect.values[k].tolist()],
                "stderr": None if all(value is None for value in stderr[k]) else stderr[k],
            }
            for k, (codes, levels) in enumerate(
                zip(decomposition.family.codes_of(effect.number).T.tolist(), effect.levels, strict=True)
            )
        ],
    }


def _records(sheet: Sheet) -> list[dict[str, Any]]:
    return [dict(zip(sheet.columns, line, strict=True)) for line in zip(*sheet.columns.values(), strict=True)]
