"""Plain records of explained rows: one row as a waterfall or an image, many rows as a swarm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exanova.effects.norms import strongest_first
from exanova.errors import InputError
from exanova.explain.explanation import Explanation
from exanova.show.error_bars import known
from exanova.show.records import Record, legible
from exanova.typing import FloatArray, IntArray

STEPS = 70
"""Columns of dots across a swarm."""


def waterfall_records(explanation: Explanation, top: int = 10) -> list[Record]:
    """The steps from the mean to the prediction at one row, for every output.

    Args:
        explanation: of one row.
        top: features shown on their own, the largest first; the others are added up.

    Returns:
        ``label``, ``feature``, ``level``, ``start``, ``end``, ``value``, ``stderr``, ``output``, ``kind``: each step
        starts where the one before ended; ``stderr`` is ``None`` where it is not known. Kinds: "base", "feature",
        "rest", "residual", "total".
    """
    row = _one_row(explanation)
    values, base, residual = _by_output(row)
    return [
        record
        for k, output in enumerate(row.output_names)
        for record in _steps(
            row, values[:, k], float(base[k]), None if residual is None else float(residual[k]), output, top
        )
    ]


def image_records(explanation: Explanation, shape: Sequence[int]) -> list[Record]:
    """``feature``, ``level``, ``row``, ``column``, ``output``, ``value``: features laid out row by row."""
    row = _one_row(explanation)
    width = _width(shape, len(row.feature_names))
    values = _by_output(row)[0]
    return [
        {
            "feature": name,
            "level": str(row.display_cells[i]),
            "row": i // width,
            "column": i % width,
            "output": output,
            "value": float(values[i, k]),
        }
        for k, output in enumerate(row.output_names)
        for i, name in enumerate(row.feature_names)
    ]


def beeswarm_records(explanation: Explanation, top: int = 12) -> list[Record]:
    """Rows gathered into dots: those with the same level and almost the same value of a feature are one.

    Returns:
        ``feature``, ``output``, ``level``, ``place`` (of the level among those of the feature, 0 to 1), ``value``
        (mean of the dot), ``count`` (rows in it), ``offset`` (of the dot across the swarm), for the ``top`` features.
    """
    n, d, m = len(explanation), len(explanation.feature_names), len(explanation.output_names)
    values = np.reshape(explanation.values, (n, d, m))
    step = (float(values.max(initial=0.0)) - float(values.min(initial=0.0))) / STEPS or 1.0
    order = strongest_first(np.abs(values).sum(axis=(0, 2)))[:top]
    return [
        record for k in range(m) for i in order.tolist() for record in _dots(explanation, i, k, values[:, i, k], step)
    ]


def _one_row(explanation: Explanation) -> Explanation:
    if not np.ndim(explanation.outside):
        return explanation
    if len(explanation) != 1:
        raise InputError(f"{len(explanation):,} rows were given; this chart shows one row.")
    return explanation[0]


def _by_output(row: Explanation) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """(d, m) values, (m,) base and (m,) residual of one row."""
    d, m = len(row.feature_names), len(row.output_names)
    residual = None if row.residual is None else np.reshape(row.residual, (m,))
    return np.reshape(row.values, (d, m)), np.reshape(row.base_values, (m,)), residual


def _steps(
    row: Explanation, values: FloatArray, base: float, residual: float | None, output: str, top: int
) -> list[Record]:
    k = row.output_names.index(output)
    order = strongest_first(np.abs(values))
    shown = order if len(order) <= top + 1 else order[:top]  # one feature alone needs no line for the rest
    rest = order[len(shown) :]
    records = [_step("base", "mean", base, base, base, output)]
    here, held = base, row.display_cells
    for i in shown.tolist():
        name, level, value = row.feature_names[i], str(row.display_data[i]), float(values[i])
        step = _step("feature", f"{legible(name)} = {legible(str(held[i]))}", here, here + value, value, output)
        error = None if row.stderr is None else known(np.reshape(row.stderr, (len(row.feature_names), -1))[i, k])
        records.append({**step, "feature": name, "level": level, "stderr": error})
        here += value
    if len(rest):
        left = float(values[rest].sum())
        records.append(_step("rest", f"{len(rest):,} other features", here, here + left, left, output))
        here += left
    if residual is not None:
        records.append(_step("residual", "residual", here, here + residual, residual, output))
        here += residual
    label = "fitted part" if residual is None else "model"
    return [*records, _step("total", label, here, here, here, output)]


def _step(kind: str, label: str, start: float, end: float, value: float, output: str) -> Record:
    return {
        "label": label,
        "feature": None,
        "level": None,
        "start": start,
        "end": end,
        "value": value,
        "stderr": None,
        "output": output,
        "kind": kind,
    }


def _width(shape: Sequence[int], features: int) -> int:
    """Columns of an image whose shape fits the number of features."""
    sides = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise InputError(f"shape={shape!r} was given; expected two whole numbers, rows and columns of the image.")
    height, width = int(sides[0]), int(sides[1])
    if height * width != features:
        raise InputError(
            f"shape={shape!r} has {height * width:,} pixels, the decomposition {features:,} features; "
            "give the rows and columns of an image with one pixel for each feature."
        )
    return width


def _dots(explanation: Explanation, i: int, k: int, values: FloatArray, step: float) -> list[Record]:
    """Dots of one feature and output."""
    column = np.round(values / step).astype(np.int64)
    groups, first, group, count = np.unique(
        np.stack([column, explanation.data[:, i]]), axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    mean = np.bincount(group.ravel(), weights=values) / count
    labels = explanation.schema.labels[explanation.schema.features.index(explanation.feature_names[i])]
    last = max(1, len(labels) - 1)
    offsets = _offsets(groups[0].astype(np.int64))
    return [
        {
            "feature": explanation.feature_names[i],
            "output": explanation.output_names[k],
            "level": explanation.display_data[first[g], i],
            "place": max(0.0, place) / last,
            "value": float(mean[g]),
            "count": int(count[g]),
            "offset": float(offsets[g]),
        }
        for g, place in enumerate(groups[1].tolist())
    ]


def _offsets(column: IntArray) -> FloatArray:
    """Places across the swarm of dots in sorted columns: each column is centred on the line."""
    _, start, size = np.unique(column, return_index=True, return_counts=True)
    rank = np.arange(len(column)) - np.repeat(start, size)
    return np.asarray(rank - np.repeat((size - 1) / 2, size))
