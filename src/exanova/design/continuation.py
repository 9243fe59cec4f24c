"""Effects in cells never observed: the values by which a prior continues pairs, and effects as new rows read them.

The effects of a decomposition are tables over observed cells; norms, importances and everything else about the rows of
a fit are computed from these alone. New rows may fall in other cells. A shrunken fit has a prior that says what to
expect there (:mod:`exanova.shrink.continued`); ``Everywhere`` puts both together, as a family in which every
combination of the levels of such a pair is a cell. Cells without rows have weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from exanova.design.family import Family, intercept_family, with_counts
from exanova.design.subsets import by_order
from exanova.messages import count_of
from exanova.typing import FloatArray, IntArray

NOTHING, EXTRAPOLATED = "counts as 0", "is extrapolated by the prior of the fit"
"""What the effect of a combination of levels that never occurred does."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """Values of pairs in cells never observed.

    Attributes:
        pairs: (P,) numbers of the subsets, ascending.
        values: (K, m) values of their cells never observed, pair after pair, in lexicographic order.
    """

    pairs: IntArray
    values: FloatArray

    def times(self, unit: FloatArray) -> Continuation:
        """The same in another unit (m,) of every output."""
        return Continuation(self.pairs, self.values * unit)


@dataclass(frozen=True, eq=False)
class Everywhere:
    """Effects as new rows read them.

    Attributes:
        family: the family with the cells that are continued.
        values: (cells, m) effects.
        number: (cells,) number of each cell among the observed ones, -1 for one that was never observed.
        unseen: how the effect of a combination of levels that never occurred is treated, in words.
    """

    family: Family
    values: FloatArray
    number: IntArray
    unseen: str

    @cached_property
    def continued(self) -> NDArray[np.bool_]:
        """(cells,) which cells were never observed."""
        return np.asarray(self.number < 0)

    def observed_weights(self, weights: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """(observed cells, f) the part of (cells, f) weights in observed cells, and (f,) whether that is all."""
        if not self.continued.any():
            return weights, np.ones(weights.shape[1], dtype=bool)
        return weights[~self.continued], np.asarray(~weights[self.continued].any(axis=0))


def everywhere(family: Family, values: FloatArray, continuation: Continuation | None) -> Everywhere:
    """Effects (cells, m) on observed cells together with their continuation, if there is one.

    >>> family = intercept_family([2, 2], 3.0)
    >>> from exanova.design.family import extend
    >>> codes = np.array([[0, 0, 1], [0, 1, 1]], dtype=np.uint8)
    >>> for subsets in ([(0,), (1,)], [(0, 1)]):
    ...     family = extend(family, subsets, codes, np.ones(3))
    >>> read = everywhere(family, np.arange(8.0)[:, None], Continuation(np.array([3]), np.array([[-9.0]])))
    >>> read.values[read.family.cells_of(3), 0].tolist(), read.number[-4:].tolist()
    ([5.0, 6.0, -9.0, 7.0], [5, 6, -1, 7])
    """
    if continuation is None or not len(continuation.values):
        return Everywhere(family, values, np.arange(family.n_cells), NOTHING)
    whole, number = completed(family, continuation.pairs.tolist())
    out = np.empty((whole.n_cells, values.shape[1]))
    out[number >= 0], out[number < 0] = values, continuation.values
    return Everywhere(whole, out, number, _in_words(family, values, continuation))


def _in_words(family: Family, values: FloatArray, continuation: Continuation) -> str:
    """What the effect of a combination does that never occurred; subsets without an effect do not count."""
    pairs, count = set(continuation.pairs.tolist()), len(continuation.pairs)
    others = [s for s, subset in enumerate(family.subsets) if len(subset) > 1 and s not in pairs]
    zero = [s for s in others if unobserved_cells(family, s) and values[family.cells_of(s)].any()]
    return f"{EXTRAPOLATED} in {count_of(count, 'pair')} and counts as 0 in other subsets" if zero else EXTRAPOLATED


def unobserved_cells(family: Family, s: int) -> int:
    """How many combinations of the levels of a subset never occurred."""
    cells = family.cells_of(s)
    return prod(family.sizes_of(s)) - int(cells.stop - cells.start)


def completed(family: Family, pairs: Sequence[int]) -> tuple[Family, IntArray]:
    """The family with every combination of these pairs as a cell, and the old number of each of its cells, or -1.

    Cells keep their order. Larger subsets keep their cells, under keys that count the new cells of their prefixes.
    """
    whole = intercept_family(family.sizes.tolist(), float(family.weight[0]))
    chosen, first = set(pairs), 1
    moved, numbers = np.zeros(family.n_cells, dtype=np.int64), [np.zeros(1, dtype=np.int64)]
    for order, subsets in by_order(family.subsets):
        if not order:
            continue
        prefix = np.array([whole.position[subset[:-1]] for subset in subsets], dtype=np.int64)
        key_sizes = np.diff(whole.cell_start)[prefix] * family.sizes[[subset[-1] for subset in subsets]]
        layout = whole.layout.appended(subsets, prefix, key_sizes)
        start = np.concatenate([[0], np.cumsum(key_sizes)])
        old = np.full(int(start[-1]), -1, dtype=np.int64)
        is_cell = np.zeros(len(old), dtype=bool)
        for k, s in enumerate(range(first, first + len(subsets))):
            cells = np.arange(family.cell_start[s], family.cell_start[s + 1])
            old[start[k] + _new_keys(family, s, moved)] = cells
            is_cell[start[k] : start[k + 1]] = s in chosen
        is_cell |= old >= 0
        before = whole.n_cells
        whole = with_counts(whole, subsets, layout, key_sizes, np.where(old >= 0, family.weight[old], 0.0), is_cell)
        numbers.append(old[is_cell])
        for s in range(first, first + len(subsets)):
            own = numbers[-1][whole.cell_start[s] - before : whole.cell_start[s + 1] - before]
            moved[own[own >= 0]] = np.flatnonzero(own >= 0)
        first += len(subsets)
    return whole, np.concatenate(numbers)


def _new_keys(family: Family, s: int, moved: IntArray) -> IntArray:
    """(c,) keys of the cells of a subset inside it, given the new number of every cell inside its own subset."""
    subset = family.subsets[s]
    local = family.cell_key[family.cells_of(s)] - family.layout.key_start[s]
    if len(subset) < 3:
        return np.asarray(local)
    before, level = np.divmod(local, family.sizes[subset[-1]])
    prefix = family.position[subset[:-1]]
    return np.asarray(moved[before + family.cell_start[prefix]] * family.sizes[subset[-1]] + level)
