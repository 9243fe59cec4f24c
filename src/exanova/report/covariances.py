"""Covariances of effects for the error bars of a page, as far as they fit.

A Shapley value at a row is a sum of effects at the cells of the row, with fixed weights. All cells of that sum have the
row's level of the feature in common. So where the covariances of all cells are too many, those among the cells that
have a level in common are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.decomposition import Decomposition
from exanova.design.family import Family
from exanova.show.error_bars import can_compute
from exanova.typing import FloatArray, IntArray

NUMBERS = 250_000
"""Covariances, over all blocks and outputs, up to which a page holds them: 1.3 MB."""

CELLS = 3000
"""Cells up to which the covariance of all of them is computed for a page: 72 MB per output."""

WORK = 2e10
"""Multiplications up to which that is done: some seconds."""


@dataclass(frozen=True, eq=False)
class LiveErrors:
    """Covariances of cells.

    Attributes:
        blocks: for each block the flat numbers of its cells: one block of all cells, or one for each level of each
            feature, feature by feature.
        triangles: (t, m) the upper triangles of the blocks, row by row, one after the other.
        is_whole: whether there is one block of all cells.
    """

    blocks: list[IntArray]
    triangles: FloatArray
    is_whole: bool


def live_errors(decomposition: Decomposition) -> LiveErrors | None:
    """The covariances that a page needs for the error bars of any row; ``None`` where they are unknown or too many."""
    family, m = decomposition.family, decomposition.values.shape[1]
    if not _are_known(decomposition):
        return None
    affordable = _is_affordable(decomposition)
    if affordable and _triangle(family.n_cells) * m <= NUMBERS:
        return _computed(decomposition, [np.arange(family.n_cells)], True)
    blocks = cells_by_level(family)
    if sum(_triangle(len(block)) for block in blocks) * m > NUMBERS:
        return None
    if decomposition.order < 2:  # blocks of one cell: its variance
        variances = decomposition.uncertainty.stderr[np.concatenate(blocks)] ** 2
        return LiveErrors(blocks, np.nan_to_num(variances), False)
    return _computed(decomposition, blocks, False) if affordable else None


def errors_note(decomposition: Decomposition, found: LiveErrors | None) -> str:
    """The meaning of the error bars at rows, or why there are none."""
    if found is None:
        if not _are_known(decomposition):
            return f"No error bars: {why_unknown(decomposition)}."
        return "No error bars for sums: the covariances of the effects are too many for a page. The parts have theirs."
    total = "" if found.is_whole else " The sum has none: that would take the covariances of all effects."
    shared = " Where other subsets can express part of an effect there are none." if _shares(decomposition) else ""
    return f"Whiskers are 95 % intervals of the steps.{total}{shared}"


def why_unknown(decomposition: Decomposition) -> str:
    """Why the covariances of effects are not there, in words."""
    if decomposition.uncertainty.is_whole:
        return "these rows are all there is"
    if decomposition.sample is None:
        return "files of decompositions hold no rows"
    return decomposition.uncertainty.why_none or "the covariances of so many effects take long to compute"


def cells_by_level(family: Family) -> list[IntArray]:
    """For each feature and each of its levels, the flat numbers of all cells with that level, in order."""
    found: list[list[IntArray]] = [[] for _ in range(int(family.sizes.sum()))]
    first = np.concatenate([[0], np.cumsum(family.sizes)])
    for s, subset in enumerate(family.subsets):
        start = int(family.cell_start[s])
        for i, code in zip(subset, family.codes_of(s), strict=True):
            for z in range(int(family.sizes[i])):
                found[first[i] + z].append(start + np.flatnonzero(code == z))
    empty = np.zeros(0, dtype=np.int64)
    return [np.concatenate(parts) if parts else empty for parts in found]


def _are_known(decomposition: Decomposition) -> bool:
    """Whether covariances are cheap to compute, or in the file that the decomposition was read from."""
    in_file = decomposition.sample is None and not decomposition.uncertainty.why_none
    return in_file or can_compute(decomposition)


def _is_affordable(decomposition: Decomposition) -> bool:
    """Whether the covariance of all cells takes some seconds and some memory at most."""
    if decomposition.sample is None:  # it is in the file
        return True
    cells, m = decomposition.family.n_cells, decomposition.values.shape[1]
    return cells <= CELLS and float(decomposition.sample.n_rows) * cells**2 * m <= WORK


def _computed(decomposition: Decomposition, blocks: list[IntArray], is_whole: bool) -> LiveErrors:
    covariance = decomposition.uncertainty.all_cells
    return LiveErrors(blocks, np.concatenate([_upper(covariance, block) for block in blocks]), is_whole)


def _shares(decomposition: Decomposition) -> bool:
    return decomposition.uncertainty.shares


def _triangle(cells: int) -> int:
    return cells * (cells + 1) // 2


def _upper(covariance: FloatArray, block: IntArray) -> FloatArray:
    """(t, m) upper triangle of a block of (m, cells, cells) covariances."""
    row, column = np.triu_indices(len(block))
    return np.asarray(covariance[:, block[row], block[column]].T)
