"""Effects as arrays for the page, which draws them and computes with them what a reader chooses.

Where all effects fit in a page, the page is *complete*: it can compute the fitted part of any combination of levels.
Where they do not, it holds those that are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from exanova.decomposition import Decomposition
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.infer.bands import student
from exanova.show.error_bars import main_means
from exanova.show.records import ordered_places
from exanova.typing import FloatArray, IntArray, Subset

NUMBERS = 120_000
"""Values of effects, over all cells and outputs, up to which a page holds all of them: 2 MB with standard errors."""

LARGEST_KEY = 2**52
"""Combinations of levels of one subset up to which a number in a browser distinguishes them."""

EFFECT_LEVELS, PAIR_LEVELS = 200, 30
"""Levels of one feature in a page that is not complete, by how much of the effect they carry."""


@dataclass(frozen=True, eq=False)
class LiveFeature:
    """A feature on the page.

    Attributes:
        name: its name.
        levels: its levels as text: all of them, or those of the cells that the page holds.
        total: how many levels there are.
        places: for each level, whether it has a place in an order.
    """

    name: str
    levels: tuple[str, ...]
    total: int
    places: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class LiveEffects:
    """Effects on cells, subset after subset; c cells in all.

    Attributes:
        features: the d features.
        subsets: positions of the features of each subset.
        keys: for each subset, its cells as numbers whose digits are the levels, the last feature the last digit;
            ``None`` where every combination is a cell.
        cells: number of cells of each subset.
        values, stderr: (c, m); standard errors are NaN where they are not known.
        reach: (c,) standard errors from a value to the ends of its 95 % interval; ``None`` where none are known.
        rows: (c,) rows of each cell, NaN where unknown.
        share: (c,) share of the rows in each cell.
        means: (c, m) mean of the model at the levels of single features, less its overall mean; NaN elsewhere. ``None``
            without rows.
        unidentified: numbers of the subsets that other subsets can express in part.
        is_complete: whether all effects are there.
        continued: for each subset, (k, m) its values in the combinations that never occurred, in the order of their
            numbers; ``None`` where they count as 0.
        unseen: how the effect of such a combination is treated, in words.
    """

    features: list[LiveFeature]
    subsets: list[Subset]
    keys: list[IntArray | None]
    cells: list[int]
    values: FloatArray
    stderr: FloatArray
    reach: FloatArray | None
    rows: FloatArray
    share: FloatArray
    means: FloatArray | None
    unidentified: list[int]
    is_complete: bool
    continued: list[FloatArray | None]
    unseen: str


def live_effects(decomposition: Decomposition, drawn: Sequence[int]) -> LiveEffects:
    """All effects, or where they are too many those of the subsets number ``drawn``, with their strongest levels."""
    family = decomposition.family
    is_complete = fits(decomposition.everywhere.family, decomposition.values.shape[1])
    numbers = list(range(len(family.subsets))) if is_complete else [0, *sorted(drawn)]
    cells = [_all_cells(family, s) if is_complete else _strongest_cells(decomposition, s) for s in numbers]
    codes = [family.codes_of(s)[:, kept - family.cell_start[s]] for s, kept in zip(numbers, cells, strict=True)]
    subsets = [family.subsets[s] for s in numbers]
    used = None if is_complete else _levels_used(len(family.sizes), subsets, codes)
    features = [_feature(decomposition, i, None if used is None else used[i]) for i in range(len(family.sizes))]
    flat = np.concatenate(cells)
    known = decomposition.uncertainty
    values = decomposition.values[flat]
    return LiveEffects(
        features,
        subsets,
        [_keys(subset, own, features, used) for subset, own in zip(subsets, codes, strict=True)],
        [len(kept) for kept in cells],
        values,
        known.stderr[flat] if known.cheap else np.full(values.shape, np.nan),
        student(0.95, known.freedom[flat]) if known.cheap else None,
        known.rows[flat],
        family.weight[flat] / family.weight[0],
        _means(decomposition, flat),
        [k for k, s in enumerate(numbers) if s and not known.has_stderr(s)],
        is_complete,
        [_continued(decomposition.everywhere, s) if is_complete else None for s in numbers],
        decomposition.everywhere.unseen,
    )


def fits(family: Family, outputs: int) -> bool:
    """Whether all effects fit in a page."""
    largest = max(prod(family.sizes_of(s)) for s in range(len(family.subsets)))
    return family.n_cells * outputs <= NUMBERS and largest < LARGEST_KEY


def _continued(effects: Everywhere, s: int) -> FloatArray | None:
    """(k, m) values of a subset in combinations that never occurred; ``None`` if there are none."""
    own = effects.family.cells_of(s)
    unseen = effects.continued[own]
    return effects.values[own][unseen] if unseen.any() else None


def _all_cells(family: Family, s: int) -> IntArray:
    return np.arange(family.cell_start[s], family.cell_start[s + 1])


def _strongest_cells(decomposition: Decomposition, s: int) -> IntArray:
    """Flat numbers of the cells of a subset whose levels, feature by feature, carry most of E|f|."""
    family = decomposition.family
    own, codes = family.cells_of(s), family.codes_of(s)
    amount = family.probability_of(s) * np.abs(decomposition.values[own]).sum(axis=1)
    limit = EFFECT_LEVELS if len(codes) == 1 else PAIR_LEVELS
    kept = np.ones(len(amount), dtype=np.bool_)
    for i, code in zip(family.subsets[s], codes, strict=True):
        carried = np.bincount(code, amount, int(family.sizes[i]))
        kept &= np.isin(code, np.argsort(-carried, kind="stable")[:limit])
    return np.asarray(own.start + np.flatnonzero(kept))


def _levels_used(features: int, subsets: Sequence[Subset], codes: Sequence[IntArray]) -> list[IntArray]:
    used: list[list[IntArray]] = [[] for _ in range(features)]
    for subset, own in zip(subsets, codes, strict=True):
        for i, code in zip(subset, own, strict=True):
            used[i].append(np.unique(code))
    empty = np.zeros(0, dtype=np.int64)
    return [np.unique(np.concatenate(parts)) if parts else empty for parts in used]


def _feature(decomposition: Decomposition, i: int, used: IntArray | None) -> LiveFeature:
    labels, places = decomposition.schema.labels[i], ordered_places(decomposition, i)
    kept = range(len(labels)) if used is None else used.tolist()
    levels = tuple(labels[c] for c in kept)
    return LiveFeature(decomposition.schema.features[i], levels, len(labels), tuple(places[c] for c in kept))


def _keys(
    subset: Subset, codes: IntArray, features: Sequence[LiveFeature], used: list[IntArray] | None
) -> IntArray | None:
    """The cells as numbers, or ``None`` if they are all there are."""
    sizes = [len(features[i].levels) for i in subset]
    if codes.shape[1] == prod(sizes):
        return None
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for i, code, size in zip(subset, codes, sizes, strict=True):
        key = key * size + (code if used is None else np.searchsorted(used[i], code))
    return key


def _means(decomposition: Decomposition, flat: IntArray) -> FloatArray | None:
    means = main_means(decomposition)
    if means is None:
        return None
    out = np.full((len(flat), means.shape[1]), np.nan)
    first = flat < len(means)
    out[first] = means[flat[first]]
    return out
