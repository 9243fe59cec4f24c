"""Indicators u_(A,z) of cells without reference levels: products of one-feature indicators that span the family.

With one reference level set aside per feature, the indicators 1{x_A = z} of the observed cells whose levels all differ
from the reference span the same functions as all indicators, if the family is closed downward. A function given by its
values on cells becomes a combination of them by one difference per axis (treatment coding).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exanova.design.family import Family
from exanova.typing import FloatArray, IntArray

Coordinates = list[tuple[IntArray, FloatArray]]
"""For each subset, (t,) numbers of indicators and (t, k) coefficients of its k functions in them."""

STACK_BYTES = 64_000_000
"""Memory of the functions that are rewritten at once."""


@dataclass(frozen=True)
class Monomials:
    """The indicators of a family.

    Attributes:
        reference: (d,) reference level of each feature.
        cell: (q,) flat number of the cell of each indicator.
        number: (cells,) number of the indicator of each cell, -1 for a cell with a reference level.
        prefix: (q,) number of the indicator of the cell without its last feature (-1 for the constant).
        last: (q,) number of the indicator of its last level alone (-1 for the constant).
    """

    reference: IntArray
    cell: IntArray
    number: IntArray
    prefix: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.cell)

    def restricted(self, n_cells: int) -> Monomials:
        """The indicators of the first subsets of the family, which have ``n_cells`` cells."""
        count = int(np.searchsorted(self.cell, n_cells))
        return Monomials(
            self.reference, self.cell[:count], self.number[:n_cells], self.prefix[:count], self.last[:count]
        )


def reference_levels(family: Family) -> IntArray:
    """(d,) the most frequent level of each feature of the family; 0 for features outside it."""
    reference = np.zeros(len(family.sizes), dtype=np.int64)
    for s, subset in enumerate(family.subsets):
        if len(subset) == 1:
            reference[subset[0]] = int(np.argmax(family.weight[family.cells_of(s)]))
    return reference


def monomials(family: Family, reference: IntArray) -> Monomials:
    """List the indicators of every subset of ``family``, in the order of its cells."""
    number = np.full(family.n_cells, -1, dtype=np.int64)
    cells, prefixes, lasts = [np.array([0])], [np.array([-1])], [np.array([-1])]
    number[0], count = 0, 1
    for s, subset in enumerate(family.subsets):
        if not subset:
            continue
        feature = subset[-1]
        local = family.cell_key[family.cells_of(s)] - family.layout.key_start[s]
        before, level = np.divmod(local, family.sizes[feature])
        before = number[before + family.cell_start[family.position[subset[:-1]]]]
        kept = (before >= 0) & (level != reference[feature])
        chosen = np.flatnonzero(kept) + family.cell_start[s]
        number[chosen] = np.arange(count, count + len(chosen))
        single = family.cell_start[family.position[(feature,)]]
        cells.append(chosen)
        prefixes.append(before[kept])
        lasts.append(number[single + level[kept]])
        count += len(chosen)
    return Monomials(reference, np.concatenate(cells), number, np.concatenate(prefixes), np.concatenate(lasts))


def in_monomials(family: Family, basis: Monomials, subsets: Sequence[int], tables: Sequence[FloatArray]) -> Coordinates:
    """Write functions of x_A, given as (c, k) tables on cells, as combinations of indicators.

    Args:
        family: the cells.
        basis: the indicators.
        subsets: numbers of the subsets A.
        tables: the functions of each.

    Returns:
        (t,) numbers of the indicators and (t, k) their coefficients, for each subset.
    """
    table_of = dict(zip(subsets, tables, strict=True))
    coordinates: dict[int, tuple[IntArray, FloatArray]] = {}
    for members in family.alike(subsets):
        groups: dict[tuple[tuple[int, ...], int], list[int]] = defaultdict(list)
        for s in members:
            levels = tuple(int(basis.reference[i]) for i in family.subsets[s])
            groups[levels, table_of[s].shape[1]].append(s)
        for (levels, _), group in groups.items():
            at_once = max(1, STACK_BYTES // (8 * (1 + table_of[group[0]].size)))
            for a in range(0, len(group), at_once):
                stack = group[a : a + at_once]
                numbers, rows = _stack_in_monomials(
                    family, basis, stack, np.stack([table_of[s] for s in stack]), levels
                )
                coordinates.update(zip(stack, zip(numbers, rows, strict=True), strict=True))
    return [coordinates[s] for s in subsets]


def _stack_in_monomials(
    family: Family, basis: Monomials, members: list[int], tables: FloatArray, reference: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """The same for (b, c, k) tables of subsets with the same cells and reference levels: (b, t) and (b, t, k)."""
    first, count = members[0], tables.shape[2]
    dense = np.zeros((len(members), *family.sizes_of(first), count))
    dense[(slice(None), *family.codes_of(first))] = tables
    for axis, level in enumerate(reference):
        at_reference = (*(slice(None),) * (axis + 1), slice(level, level + 1))
        kept = dense[at_reference].copy()
        dense -= kept
        dense[at_reference] = kept
    numbers, rows = [], []
    for size in range(len(reference) + 1):
        for axes in combinations(range(len(reference)), size):
            parts = [family.position[tuple(family.subsets[s][a] for a in axes)] for s in members]
            cells = np.flatnonzero(basis.number[family.cells_of(parts[0])] >= 0)
            levels = family.codes_of(parts[0])[:, cells]
            place: list[int | IntArray] = list(reference)
            for row, axis in enumerate(axes):
                place[axis] = levels[row]
            rows.append(dense[(slice(None), *place)].reshape(len(members), len(cells), count))
            numbers.append(basis.number[family.cell_start[parts][:, None] + cells])
    return np.concatenate(numbers, axis=1), np.concatenate(rows, axis=1)
