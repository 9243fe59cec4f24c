"""Uncertainty of the numbers in a chart, and the reason if there are no error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.decomposition import Decomposition
from exanova.effects.effect import FEW_ROWS, Effect
from exanova.errors import MemoryLimitError
from exanova.infer.error_record import too_few
from exanova.infer.units import raw_rows, smallest_stratum
from exanova.typing import FloatArray

Record = dict[str, Any]

REACH = NormalDist().inv_cdf(0.975)
"""Standard errors from a value to the ends of its 95 % interval, where a cell does not say otherwise."""

FADED = f"faded: fewer than {FEW_ROWS} rows"

MEANS = "diamonds: mean of the model at the level, less its overall mean"


@dataclass(frozen=True, eq=False)
class CellErrors:
    """Rows and standard errors of the cells of one effect.

    Attributes:
        rows: (c,) rows of each cell; NaN where unknown.
        few: (c,) cells with too few rows to be reliable; none for a complete population.
        stderr: (c, m) standard errors; NaN where unknown.
        reach: (c,) standard errors from a value to the ends of its 95 % interval.
    """

    rows: FloatArray
    few: NDArray[np.bool_]
    stderr: FloatArray
    reach: FloatArray

    def fields(self, cell: int, output: int) -> Record:
        """``rows``, ``few``, ``stderr``, ``reach`` of a cell; ``None`` where unknown."""
        return {
            "rows": _whole(self.rows[cell]),
            "few": bool(self.few[cell]),
            "stderr": known(self.stderr[cell, output]),
            "reach": float(self.reach[cell]),
        }


NO_CELL: Record = {"rows": None, "few": False, "stderr": None, "reach": REACH}
"""The fields of a cell that was never observed."""


def cell_errors(decomposition: Decomposition, effect: Effect) -> CellErrors:
    """Rows and standard errors of an effect that need no long computation."""
    cheap = decomposition.uncertainty.cheap
    stderr = effect.stderr if cheap else np.full(effect.values.shape, np.nan)
    few = effect.few_rows & decomposition.certificate.sampled
    return CellErrors(effect.rows, few, stderr, _reach(effect) if cheap else np.full(len(few), REACH))


def _reach(effect: Effect) -> FloatArray:
    """(c,) standard errors from the values of an effect to the ends of their intervals; normal where there are none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        multiples = (effect.interval()[1] - effect.values) / effect.stderr
    return np.where(
        np.isfinite(multiples).any(axis=1), np.nanmax(np.where(np.isfinite(multiples), multiples, 0.0), axis=1), REACH
    )


def main_means(decomposition: Decomposition) -> FloatArray | None:
    """(c, m) mean of the model at each cell of the mean and of the main effects, less its overall mean; if known."""
    return decomposition.uncertainty.main_means


def error_notes(decomposition: Decomposition, effects: Iterable[Effect]) -> list[str]:
    """The meaning of the whiskers of some effects, or why there are none."""
    why = why_none(decomposition)
    if why:
        return [f"no error bars: {why}"]
    if not any(effect.has_stderr for effect in effects):
        return [UNIDENTIFIED]
    return [f"whiskers: 95 % intervals; {what_varies(decomposition)}"]


def importance_notes(decomposition: Decomposition, records: Sequence[Record], refused: str = "") -> list[str]:
    """The same for importances, which are known for a feature if all its effects are identified."""
    why = refused or why_none(decomposition)
    if not why and decomposition.sample is None:
        why = "a file holds standard errors of effects, not of importances"
    if not why and not can_compute_importance(decomposition):
        why = "they take long to compute for this many features; importance(stderr=True) computes them"
    if why:
        return [f"no error bars: {why}"]
    if all(record["stderr"] is None for record in records):
        return ["no error bars: other subsets can express part of these effects on these rows"]
    return [f"whiskers: 95 % intervals; {what_varies(decomposition)}"]


UNIDENTIFIED = "no error bars: other subsets can express part of this effect on these rows"


def what_varies(decomposition: Decomposition) -> str:
    """The source of variation of intervals: which rows were drawn."""
    summary = decomposition.uncertainty.summary
    if summary is None:  # the standard errors have not been computed yet
        unit, units = decomposition.uncertainty.fitted.units
    else:
        unit, units = summary.unit, summary.units
    few = too_few(unit, units)
    varies = "which rows were drawn" if unit == "a row" else unit
    return f"what varies is {varies} ({units:,})" + (f"; {few}" if few else "")


def errors_in_words(decomposition: Decomposition, refused: str = "") -> str:
    """The same for all effects of a report, as a sentence; ``refused`` says why they could not be computed."""
    why = refused or why_none(decomposition)
    if why:
        return f"There are no error bars: {why}."
    return f"Whiskers are 95 % intervals: {what_varies(decomposition)}."


def mark_notes(records: Sequence[Record]) -> Iterator[str]:
    """The meaning of diamonds and faded marks, where there are any."""
    if any(record.get("mean") is not None for record in records):
        yield MEANS
    if any(record.get("few") for record in records):
        yield FADED


def can_compute(decomposition: Decomposition) -> bool:
    """Whether covariances of effects are known or cheap: those of a file are not, because it holds no rows."""
    return decomposition.sample is not None and decomposition.uncertainty.cheap


ERRORS_WORK = 1e11
"""Multiplications up to which a report, or the command for a file, computes standard errors: some seconds."""


def compute_errors(decomposition: Decomposition, work: float) -> str:
    """Compute standard errors that are not cached, if they take at most ``work`` multiplications.

    Returns:
        Why they were refused, if they were; otherwise nothing.
    """
    if decomposition.sample is None or not decomposition.certificate.sampled or decomposition.uncertainty.cheap:
        return ""
    fitted = decomposition.uncertainty.fitted
    if (fitted.why_not_linear and fitted.posterior is None) or smallest_stratum(raw_rows(fitted.sample)) < 2:
        return ""
    fewer, more = sorted([float(decomposition.family.n_cells), float(fitted.sample.n_rows)])
    if fewer**2 * more <= work:
        try:
            decomposition.errors()
        except MemoryLimitError as refusal:
            return f"they were refused: {str(refusal).rstrip('.')}"
    return ""


IMPORTANCE_WORK = 3e9
"""Reads of a table at a row up to which standard errors of importances are computed for a chart: a few seconds."""


def can_compute_importance(decomposition: Decomposition) -> bool:
    """Whether standard errors of importances are cheap: every feature has a statistic at every row and output."""
    if not can_compute(decomposition):
        return False
    assert decomposition.sample is not None
    statistics = len(decomposition.schema.features) * len(decomposition.schema.outputs)
    return float(decomposition.sample.n_rows) * len(decomposition.family.subsets) * statistics <= IMPORTANCE_WORK


def known(value: float) -> float | None:
    """A number, or ``None`` where it is not known."""
    return float(value) if math.isfinite(value) else None


def why_none(decomposition: Decomposition) -> str:
    """Why no effect has a standard error; empty where there are some."""
    if not decomposition.certificate.sampled:
        return "these rows are the complete population"
    if decomposition.uncertainty.cheap:
        return ""
    if decomposition.sample is None:
        return "the file holds no standard errors"
    fitted = decomposition.uncertainty.fitted
    if fitted.why_not_linear and fitted.posterior is None:
        return "errors(method='bootstrap') computes them by refitting"
    return decomposition.uncertainty.lonely or "errors() computes them"


def _whole(rows: float) -> float | int | None:
    """A number of rows, as a whole number where it is one."""
    return int(rows) if math.isfinite(rows) and rows == int(rows) else known(rows)
