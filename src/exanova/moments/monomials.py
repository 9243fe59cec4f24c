"""Indicators u_(A,z) of cells without reference levels: products of one-feature indicators, linearly spanning.

With one reference level set aside in each feature, the indicators 1{x_A = z} of the observed cells whose levels
all differ from the reference span, over a family closed downward, the same functions as all indicators do.
A function of x_A written on cells becomes a combination of them by one difference an axis (treatment coding).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exanova.design.cells import CellIndex
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Monomials:
    """The indicators of a family.

    Attributes:
        reference: (d,) reference level of each feature.
        cell: (q,) flat number of the cell each indicator stands for.
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


def reference_levels(index: CellIndex) -> IntArray:
    """(d,) the most frequent level of each feature of the family; 0 for features outside it."""
    reference = np.zeros(len(index.sizes), dtype=np.int64)
    for s, subset in enumerate(index.subsets):
        if len(subset) == 1:
            reference[subset[0]] = int(np.argmax(index.weight[index.cells_of(s)]))
    return reference


def monomials(index: CellIndex, reference: IntArray) -> Monomials:
    """List the indicators of every subset of ``index``, in the order of its cells."""
    number = np.full(index.n_cells, -1, dtype=np.int64)
    cells, prefixes, lasts = [np.array([0])], [np.array([-1])], [np.array([-1])]
    number[0], count = 0, 1
    for s, subset in enumerate(index.subsets):
        if not subset:
            continue
        feature = subset[-1]
        local = index.cell_key[index.cells_of(s)] - index.layout.key_start[s]
        before, level = np.divmod(local, index.sizes[feature])
        before = number[before + index.cell_start[index.position[subset[:-1]]]]
        kept = (before >= 0) & (level != reference[feature])
        chosen = np.flatnonzero(kept) + index.cell_start[s]
        number[chosen] = np.arange(count, count + len(chosen))
        single = index.cell_start[index.position[(feature,)]]
        cells.append(chosen)
        prefixes.append(before[kept])
        lasts.append(number[single + level[kept]])
        count += len(chosen)
    return Monomials(reference, np.concatenate(cells), number, np.concatenate(prefixes), np.concatenate(lasts))


def in_monomials(index: CellIndex, basis: Monomials, s: int, table: FloatArray) -> tuple[IntArray, FloatArray]:
    """Write functions of x_A, given as a (c, k) table on cells, as combinations of indicators.

    Returns:
        (t,) numbers of the indicators and (t, k) their coefficients.
    """
    subset = index.subsets[s]
    sizes = [int(index.sizes[i]) for i in subset]
    dense = np.zeros((*sizes, table.shape[1]))
    dense[tuple(index.codes_of(s))] = table
    for axis, feature in enumerate(subset):
        level = int(basis.reference[feature])
        at_reference = np.take(dense, [level], axis=axis)
        dense = dense - at_reference
        np.moveaxis(dense, axis, 0)[level] = np.moveaxis(at_reference, axis, 0)[0]
    numbers, rows = [], []
    for k in range(len(subset) + 1):
        for kept in combinations(range(len(subset)), k):
            cell_numbers, codes = _indicators(index, basis, tuple(subset[a] for a in kept))
            place: list[int | IntArray] = [int(basis.reference[i]) for i in subset]
            for row, axis in enumerate(kept):
                place[axis] = codes[row]
            rows.append(dense[tuple(place)].reshape(len(cell_numbers), table.shape[1]))
            numbers.append(cell_numbers)
    return np.concatenate(numbers), np.vstack(rows)


def _indicators(index: CellIndex, basis: Monomials, subset: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Numbers and (|B|, t) levels of the indicators of one subset."""
    s = index.position[subset]
    numbers = basis.number[index.cells_of(s)]
    kept = numbers >= 0
    return numbers[kept], index.codes_of(s)[:, kept]
