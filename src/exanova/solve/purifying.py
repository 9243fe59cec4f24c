"""From the tables b_A of functions on a complete table to their coefficients on pure functions of the observed cells.

From the highest order down: the effect of A is the part of its table that is orthogonal to functions of fewer features,

    f_A = Phi_A c_A,   c_A = Phi_A^T diag(p_A) b_A,

and what remains, b_A - f_A, is a sum of functions of fewer features on the observed cells of A, which is added to their
tables. Each step is a product with one small matrix of A, for all functions at once. Where A has missing cells, what
remains is first continued into them so that it is a sum of functions of fewer features there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from exanova.basis.functions import Basis
from exanova.design.family import Family
from exanova.solve.low_cells import LowCells
from exanova.typing import FloatArray, IntArray


def purified(family: Family, basis: Basis, low: LowCells, tables: FloatArray) -> FloatArray:
    """(q, m) coefficients of functions given by their (low, m) tables, which are overwritten.

    The family has all subsets up to some order. Its maps, as large as all functions on their cells, are not kept.
    """
    for s in range(len(family.subsets) - 1, 0, -1):
        maps = local_maps(family, basis, low, s)
        table = tables[maps.own]
        tables[maps.below] += maps.remainder @ table
        tables[maps.own][: len(maps.mine)] = maps.mine @ table
    if len(tables) == basis.n_functions:
        return tables
    rows = [np.arange(a, a + k) for a, k in zip(low.start, basis.dimensions, strict=False)]
    return np.asarray(tables[np.concatenate(rows)])


@dataclass(frozen=True, eq=False)
class LocalMaps:
    """What becomes of the table of a subset.

    Attributes:
        own: its low cells.
        mine: (k, own) from its table to its coefficients.
        below: low cells of its proper subsets.
        remainder: (below, own) from its table to what it adds to theirs.
    """

    own: slice
    mine: FloatArray
    below: IntArray
    remainder: FloatArray


def local_maps(family: Family, basis: Basis, low: LowCells, s: int) -> LocalMaps:
    """The maps of subset number ``s``."""
    sizes, functions = family.sizes_of(s), basis.table(s)
    place = np.ravel_multi_index(tuple(low.shifted(family.codes_of(s), family.subsets[s])), sizes)
    below, top = _places(sizes)
    whole = np.zeros((prod(sizes), functions.shape[1]))
    whole[place] = functions * family.probability_of(s)[:, None]
    mine = whole[top].T.copy()
    whole[place] = functions
    fewer = _differences(whole, sizes)
    remainder = -(fewer[below] @ mine)
    if len(place) < len(whole):
        missing = np.setdiff1d(np.arange(len(whole)), place)
        filled = _differences(np.equal.outer(np.arange(len(whole)), missing).astype(np.float64), sizes)
        left = np.eye(len(top)) - fewer[top] @ mine
        remainder -= filled[below] @ np.linalg.lstsq(filled[top], left)[0]
    return LocalMaps(low.of_subset(s), mine, low.below(s), remainder)


@lru_cache(maxsize=256)
def _places(sizes: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Where low cells lie in a complete table, flat: those of its proper subsets, as in ``LowCells.below``; its own."""
    numbers = np.arange(prod(sizes)).reshape(sizes)
    chosen: tuple[int | slice, int | slice] = (0, slice(1, None))
    parts = [np.ravel(numbers[place]) for place in product(chosen, repeat=len(sizes))]
    return np.concatenate(parts[:-1]), parts[-1]


def _differences(values: FloatArray, sizes: tuple[int, ...]) -> FloatArray:
    """The b_B of all B inside a subset, for (cells, m) values on its complete table, in their place."""
    table = values.reshape(*sizes, values.shape[1])
    for axis in range(len(sizes)):
        along = np.moveaxis(table, axis, 0)
        along[1:] -= along[:1]
    return values
