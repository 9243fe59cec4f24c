"""Reasons for the lowest and the highest rows: ranked sentences, as a section of the report."""

from __future__ import annotations

import warnings

import numpy as np

from exanova.data.values import align, is_model
from exanova.decomposition import Decomposition
from exanova.effects.at_rows import fitted_part
from exanova.errors import OutsideSupportWarning
from exanova.explain.grouping import grouping_of
from exanova.explain.reason_texts import ReasonSettings, RowTexts
from exanova.explain.reasons import Reasons, RowReasons
from exanova.report.explorer import GivenRows
from exanova.report.findings import shown_output
from exanova.show.error_bars import can_compute, known
from exanova.show.records import Record, legible
from exanova.typing import FloatArray, IntArray

ROWS, REASONS, OUTPUTS = 3, 3, 3
"""Rows at each end, reasons for each, and outputs they are given for."""

DIGITS = 10
"""Digits by which fitted values are distinguished."""

ENDS = {"lower": "lowest", "higher": "highest"}


def reasons(decomposition: Decomposition, given: GivenRows) -> list[Record]:
    """For the first outputs, the lowest rows with what lowers them and the highest with what raises them.

    The rows are those given, or those of the fit; there are none without either.
    """
    if given.table is None and decomposition.sample is None:
        return []
    records = []
    for o in range(min(OUTPUTS, len(decomposition.schema.outputs))):
        fitted = _fitted(decomposition, given)[:, o]
        for direction, rows in (("lower", _first(fitted)), ("higher", _first(-fitted))):
            own = _reasons_of(
                decomposition, given, rows, ReasonSettings(REASONS, direction, "mean", o, can_compute(decomposition))
            )
            records.append(_record(decomposition, own, rows, o))
    return records


def _first(fitted: FloatArray) -> IntArray:
    """(k,) rows with the lowest values, of equal ones the first; what differs by rounding is equal.

    >>> _first(np.array([3.0, 1.0 + 1e-15, 1.0, 2.0, 5.0])).tolist()
    [1, 2, 3]
    """
    scale = float(np.abs(fitted).max(initial=0.0)) or 1.0
    return np.argsort(np.round(fitted / scale, DIGITS), kind="stable")[:ROWS]


def _fitted(decomposition: Decomposition, given: GivenRows) -> FloatArray:
    """(n, m) the fitted part at the rows."""
    if given.table is not None:
        return given.predictions(decomposition)
    assert decomposition.sample is not None
    return fitted_part(decomposition.everywhere, decomposition.sample.codes)


def _reasons_of(decomposition: Decomposition, given: GivenRows, rows: IntArray, settings: ReasonSettings) -> Reasons:
    grouping = grouping_of(given.groups or {}, decomposition.schema)
    if given.table is None:
        assert decomposition.sample is not None
        codes = np.ascontiguousarray(decomposition.sample.codes[:, rows]).astype(np.int32)
        texts = RowTexts(grouping, decomposition.schema, None, codes, None)
        return decomposition.reasons_of_rows(texts, np.zeros(len(rows), dtype=np.bool_), None, settings)
    model = given.model
    if model is not None and not is_model(model):
        model = align(model, given.table.n_rows, index=given.table.index, kept=rows).values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # repeated for each row
        return decomposition.reasons(
            given.table.rows(rows),
            settings.count,
            direction=settings.direction,  # type: ignore[arg-type]
            model=model,
            output=settings.output,
            id=None if given.ids is None else given.ids[rows],
            groups=given.groups,
            stderr=settings.stderr,
        )


def _record(decomposition: Decomposition, reasons: Reasons, rows: IntArray, o: int) -> Record:
    output = shown_output(decomposition, o)
    return {
        "output": reasons.output,
        "direction": reasons.direction,
        "title": f"The {ENDS[reasons.direction]} rows: what makes {output} {reasons.direction} than the mean",
        "rows": [_row(reasons, row, int(number), output) for row, number in zip(reasons, rows, strict=True)],
        "notes": list(reasons.notes),
    }


def _row(reasons: Reasons, row: RowReasons, number: int, output: str) -> Record:
    return {
        "row": number,
        "id": row.id,
        "words": row.words(legible(reasons.value_words), reasons.against),
        "fitted": row.fitted,
        "compared": row.compared,
        "residual": row.residual,
        "outside": row.outside,
        "reasons": [
            {**vars(reason), "stderr": known(reason.stderr), "sentence": reason.sentence(output, reasons.link)}
            for reason in row.reasons
        ],
    }
