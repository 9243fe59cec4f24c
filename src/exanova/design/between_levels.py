"""Effects at numbers never observed: between two levels that were, by the prior under which effects are shrunk.

That prior is a random walk along the levels of a column of numbers. Given its values at the levels, its mean between
two neighbours is the straight line between their values, and beyond the first and the last it stays at theirs: the
increments of a random walk are independent. In the prior of a larger subset the same holds along each such column, so
that its mean at a place between levels is that of the cells around it, weighted by how near they are.

Such places become levels of their own, which follow the others, with cells of weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from exanova.data.between import Between
from exanova.design.continuation import EXTRAPOLATED, NOTHING, Everywhere, unobserved_cells
from exanova.design.family import Family, intercept_family, with_counts
from exanova.design.passes import cells_of_rows
from exanova.design.subsets import by_order
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of one subset: (k, c) codes, (c, m) values, and (c,) which cell of the effects each is, or -1."""

    codes: IntArray
    values: FloatArray
    own: IntArray


def with_places(read: Everywhere, places: Mapping[int, Between]) -> Everywhere:
    """The effects with the places of some features, by their numbers, as levels that follow the observed ones."""
    old = read.family
    sizes = old.sizes.copy()
    for i, more in places.items():
        sizes[i] += len(more)
    whole = intercept_family(sizes.tolist(), float(old.weight[0]))
    values, own = [read.values[:1]], [np.zeros(1, dtype=np.int64)]
    for order, subsets in by_order(old.subsets):
        if not order:
            continue
        prefix = np.array([whole.position[subset[:-1]] for subset in subsets], dtype=np.int64)
        key_sizes = np.diff(whole.cell_start)[prefix] * sizes[[subset[-1] for subset in subsets]]
        start = np.concatenate([[0], np.cumsum(key_sizes)])
        weights, is_cell = np.zeros(start[-1]), np.zeros(start[-1], dtype=bool)
        for k, subset in enumerate(subsets):
            cells = _extended(read, old.position[subset], places)
            key = start[k] + _keys(whole, subset, cells.codes)
            ascending = np.argsort(key, kind="stable")
            is_cell[key], weights[key] = True, np.where(cells.own >= 0, old.weight[cells.own], 0.0)
            values.append(cells.values[ascending])
            own.append(cells.own[ascending])
        layout = whole.layout.appended(subsets, prefix, key_sizes)
        whole = with_counts(whole, subsets, layout, key_sizes, weights, is_cell)
    cell = np.concatenate(own)
    number = np.where(cell >= 0, read.number[cell], -1)
    return Everywhere(whole, np.concatenate(values), number, _in_words(read))


def _in_words(read: Everywhere) -> str:
    """What the effect of a combination does that never occurred."""
    family = read.family
    if read.unseen != NOTHING:
        return read.unseen
    with_holes = [s for s in range(len(family.subsets)) if unobserved_cells(family, s)]
    zero = any(read.values[family.cells_of(s)].any() for s in with_holes)
    return f"{EXTRAPOLATED} between numbers and counts as 0 elsewhere" if zero else EXTRAPOLATED


def _extended(read: Everywhere, s: int, places: Mapping[int, Between]) -> _Cells:
    """The cells of one subset with those at the places of its features: one feature after the other."""
    family = read.family
    own = family.cells_of(s)
    cells = _Cells(family.codes_of(s), read.values[own], np.arange(own.start, own.stop))
    for j, i in enumerate(family.subsets[s]):
        if i in places:
            cells = _along(cells, j, int(family.sizes[i]), places[i])
    return cells


def _along(cells: _Cells, j: int, levels: int, places: Between) -> _Cells:
    """The cells with those at the places of their feature number ``j``, means of the cells around them."""
    weight = np.zeros((levels + len(places), levels))
    weight[np.arange(levels), np.arange(levels)] = 1.0
    at = levels + np.arange(len(places))
    weight[at, places.lower] += 1.0 - places.share
    weight[at, places.upper] += places.share
    target, source = np.nonzero(weight)
    by_source = np.argsort(source, kind="stable")
    target, count = target[by_source], np.bincount(source, minlength=levels)
    times = count[cells.codes[j]]
    cell = np.repeat(np.arange(len(times)), times)
    step = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    codes = cells.codes[:, cell]
    from_level = codes[j].copy()
    codes[j] = target[(np.cumsum(count) - count)[from_level] + step]
    values = weight[codes[j], from_level][:, None] * cells.values[cell]
    same, first, inverse = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    sums = np.zeros((same.shape[1], values.shape[1]))
    np.add.at(sums, inverse.ravel(), values)
    return _Cells(same, sums, np.where(same[j] < levels, cells.own[cell[first]], -1))


def _keys(family: Family, subset: tuple[int, ...], codes: IntArray) -> IntArray:
    """(c,) keys of cells inside a subset that a family is about to have."""
    if len(subset) == 1:
        return np.asarray(codes[0])
    before = codes[0]  # every level is a cell
    if len(subset) > 2:
        rows = np.zeros((len(family.sizes), codes.shape[1]), dtype=np.int64)
        rows[list(subset)] = codes
        before = cells_of_rows(family.layout, rows, family.position[subset[:-1]])
    return np.asarray(before * family.sizes[subset[-1]] + codes[-1])
