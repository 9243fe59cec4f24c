"""Covariances of effects for the error bars of a page, as far as they fit.

A Shapley value at a row is a sum of effects at the cells of the row, with fixed weights. All cells of that sum have the
row's level of the feature in common. So where the covariances of all cells are too many, those among the cells that
have a level in common are enough. What remains too large is compressed, if that is close enough (``factors``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from exanova.decomposition import Decomposition
from exanova.design.family import Family
from exanova.design.memory import resolve_limit
from exanova.report.factors import (
    TOLERANCE,
    CellFactor,
    correlations,
    correlations_are_close,
    factor_of,
    have_room,
    is_close,
)
from exanova.show.error_bars import can_compute
from exanova.typing import FloatArray, IntArray

NUMBERS = 250_000
"""Covariances, over all blocks and outputs, up to which a page holds them: 1.3 MB."""

CELLS = 6500
"""Cells up to which the covariance of all of them is computed for a page: 340 MB per output."""

WORK = 1.8e11
"""Multiplications up to which that is done: some ten seconds."""

SHARE = 0.25
"""Share of the memory limit that it may take."""


@dataclass(frozen=True, eq=False)
class LiveErrors:
    """Covariances of cells.

    Attributes:
        blocks: for each block the flat numbers of its cells: one block of all cells, or one for each level of each
            feature, feature by feature.
        triangles: (t, m) the upper triangles of the blocks, row by row, one after the other; if they are whole numbers,
            correlations of different cells; empty where there is a factor.
        factor: covariances of all cells, compressed.
        is_whole: whether they are those of all cells, so that sums have errors.
    """

    blocks: list[IntArray]
    triangles: FloatArray | IntArray
    is_whole: bool
    factor: CellFactor | None = None

    @property
    def compressed(self) -> bool:
        """Whether errors are approximate."""
        return self.factor is not None or self.triangles.dtype.kind == "i"

    @property
    def exact(self) -> bool:
        """Whether every sum of effects has its exact error."""
        return self.is_whole and not self.compressed


def live_errors(decomposition: Decomposition, codes: IntArray | None = None) -> LiveErrors | None:
    """The covariances that a page needs for the error bars of any row; ``None`` where they are unknown or too many.

    Compressed ones must be close enough at the rows ``codes`` (n, d).
    """
    if not _are_known(decomposition):
        return None
    blocks, affordable = cells_by_level(decomposition.family), _is_affordable(decomposition)
    if affordable and _fit(decomposition, [decomposition.family.n_cells]):
        return _computed(decomposition, [np.arange(decomposition.family.n_cells)], True)
    fit = _fit(decomposition, map(len, blocks))
    if fit and decomposition.order < 2:  # blocks of one cell: its variance
        variances = decomposition.uncertainty.stderr[np.concatenate(blocks)] ** 2
        return LiveErrors(blocks, np.nan_to_num(variances), False)
    if not affordable:
        return None
    compressed = None if codes is None or not len(codes) else _compressed(decomposition, blocks, codes, not fit)
    return _computed(decomposition, blocks, False) if compressed is None and fit else compressed


def _fit(decomposition: Decomposition, blocks: Iterable[int]) -> bool:
    """Whether the covariances of blocks of that many cells fit in a page."""
    return bool(sum(n * (n + 1) // 2 for n in blocks) * decomposition.values.shape[1] <= NUMBERS)


def _compressed(
    decomposition: Decomposition, blocks: list[IntArray], codes: IntArray, correlated: bool
) -> LiveErrors | None:
    """A factor or, if they are wanted, correlations; ``None`` if neither is close enough."""
    factored = _factored(decomposition, codes)
    return _correlated(decomposition, blocks, codes) if factored is None and correlated else factored


def _factored(decomposition: Decomposition, codes: IntArray) -> LiveErrors | None:
    """A factor, if it is close enough."""
    family, uncertainty = decomposition.family, decomposition.uncertainty
    if _shares(decomposition) or decomposition.sample is None:
        return None
    factor = factor_of(uncertainty.all_cells, family.weight / family.weight[0], decomposition.sample.n_rows)
    if factor is None or not is_close(decomposition, codes, factor):
        return None
    return LiveErrors([], np.zeros((0, len(factor.unit))), True, factor)


def _correlated(decomposition: Decomposition, blocks: list[IntArray], codes: IntArray) -> LiveErrors | None:
    """Correlations of the cells that have a level in common, if there is room for them and they are close enough."""
    uncertainty = decomposition.uncertainty
    if not have_room(blocks, uncertainty.outputs) or _shares(decomposition):
        return None
    if not correlations_are_close(decomposition, codes):
        return None
    return LiveErrors(blocks, correlations(uncertainty.all_cells, uncertainty.stderr, blocks), False)


def errors_note(decomposition: Decomposition, errors: LiveErrors | None, at_rows: int = 0) -> str:
    """The meaning of the error bars at rows, or why there are none; ``at_rows`` of them have their own."""
    own = f" Those at {at_rows:,} rows of this page are exact." if at_rows else ""
    if errors is None:
        if not _are_known(decomposition):
            return f"No error bars: {why_unknown(decomposition)}."
        if at_rows:
            return (
                f"Whiskers are 95 % intervals of the steps at {at_rows:,} rows of this page. At other levels there are "
                "none: the covariances of the effects are too many for a page."
            )
        return "Sums have no error bars: the covariances of the effects are too many for a page. Their parts have them."
    total = "" if errors.is_whole else " The sum has no error bar: it would take the covariances of all effects."
    if own and not errors.is_whole:
        total, own = " The sum has an error bar only at rows of this page.", ""
    close = (
        f" They are rounded: where this was checked, they are within {100 * TOLERANCE:.0f} % of the exact ones."
        if errors.compressed
        else ""
    )
    shared = (
        " Steps of effects that other subsets can express in part have no error bars." if _shares(decomposition) else ""
    )
    return f"Whiskers are 95 % intervals of the steps.{close}{total}{own if close else ''}{shared}"


def why_unknown(decomposition: Decomposition) -> str:
    """Why the covariances of effects are not there, in words."""
    if decomposition.uncertainty.is_whole:
        return "these rows are the complete population"
    if decomposition.sample is None:
        return "files of decompositions hold no rows"
    return decomposition.uncertainty.why_none or "the covariances of this many effects take long to compute"


def cells_by_level(family: Family) -> list[IntArray]:
    """For each feature and each of its levels, the flat numbers of all cells with that level, in order."""
    cells: list[list[IntArray]] = [[] for _ in range(int(family.sizes.sum()))]
    first = np.concatenate([[0], np.cumsum(family.sizes)])
    for s, subset in enumerate(family.subsets):
        start = int(family.cell_start[s])
        for i, code in zip(subset, family.codes_of(s), strict=True):
            for z in range(int(family.sizes[i])):
                cells[first[i] + z].append(start + np.flatnonzero(code == z))
    empty = np.zeros(0, dtype=np.int64)
    return [np.concatenate(parts) if parts else empty for parts in cells]


def _are_known(decomposition: Decomposition) -> bool:
    """Whether covariances are cheap to compute, or in the file that the decomposition was read from."""
    in_file = decomposition.sample is None and not decomposition.uncertainty.why_none
    return in_file or can_compute(decomposition)


def _is_affordable(decomposition: Decomposition) -> bool:
    """Whether the covariance of all cells takes some seconds and some memory at most."""
    if decomposition.sample is None:  # it is in the file
        return True
    cells, m = decomposition.family.n_cells, decomposition.values.shape[1]
    fits = 8.0 * m * cells**2 <= SHARE * resolve_limit(decomposition.settings.memory_limit)
    return fits and cells <= CELLS and float(decomposition.sample.n_rows) * cells**2 * m <= WORK


def _computed(decomposition: Decomposition, blocks: list[IntArray], is_whole: bool) -> LiveErrors:
    covariance = decomposition.uncertainty.all_cells
    return LiveErrors(blocks, np.concatenate([_upper(covariance, block) for block in blocks]), is_whole)


def _shares(decomposition: Decomposition) -> bool:
    return decomposition.uncertainty.shares


def _upper(covariance: FloatArray, block: IntArray) -> FloatArray:
    """(t, m) upper triangle of a block of (m, cells, cells) covariances."""
    row, column = np.triu_indices(len(block))
    return np.asarray(covariance[:, block[row], block[column]].T)
