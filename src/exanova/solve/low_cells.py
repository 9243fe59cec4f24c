"""Functions of few features on a complete table, by their values where few features leave their reference levels.

One level of every feature is its reference. A *low* cell is one in which at most K features have another level: A is
the set of these features and z their levels. A function of order K, a sum of functions of at most K features each, may
take any values on the low cells, and these determine it:

    g(x) = sum over A of b_A(x_A),   b_A zero where a feature of A has its reference level,

with b_A(z) the sum of (-1)^(|A| - |B|) g(z_B) over the subsets B of A. Both directions go axis by axis, in sums and
differences of the values alone, whatever the probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, product
from math import comb, prod

import numpy as np

from exanova.design.family import Family
from exanova.typing import Codes, FloatArray, IntArray, Subset


@dataclass(frozen=True)
class LowCount:
    """How many low cells there are, how many of them are missing, and how many rows are in none."""

    cells: int
    missing: int
    other_rows: int

    @property
    def vanishing(self) -> int:
        """Dimension of the functions that vanish on the rows, where all functions there are of this order."""
        return max(0, self.missing - self.other_rows)


@dataclass(frozen=True, eq=False)
class LowCells:
    """The low cells of the complete table, for all subsets up to some order.

    Attributes:
        family: these subsets.
        reference: (d,) the reference level of every feature: the one of most distinct rows.
        start: (S + 1,) number of the first low cell of each subset; the cells of one are in lexicographic order.
    """

    family: Family
    reference: IntArray
    start: IntArray

    @classmethod
    def of(cls, family: Family, codes: Codes) -> LowCells:
        """The low cells for a family of all subsets up to some order, and distinct rows (d, r)."""
        reference = [int(np.bincount(row).argmax()) for row in codes]
        counts = [prod(n - 1 for n in family.sizes_of(s)) for s in range(len(family.subsets))]
        return cls(family, np.array(reference), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    def __len__(self) -> int:
        return int(self.start[-1])

    def of_subset(self, s: int) -> slice:
        """Numbers of the low cells of a subset."""
        return slice(int(self.start[s]), int(self.start[s + 1]))

    def below(self, s: int) -> IntArray:
        """Numbers of the low cells of the proper subsets of a subset: without its first feature before with it."""
        position, subset = self.family.position, self.family.subsets[s]
        chosen = product((False, True), repeat=len(subset))
        inside = [position[tuple(compress(subset, taken))] for taken in chosen][:-1]
        return np.concatenate([np.arange(self.start[t], self.start[t + 1]) for t in inside])

    def shifted(self, codes: IntArray, subset: Subset) -> IntArray:
        """(|A|, n) the levels of some features counted from their reference level, which is 0."""
        chosen = list(subset)
        return np.asarray(
            (codes.astype(np.int64) - self.reference[chosen, None]) % self.family.sizes[chosen, None], dtype=np.int64
        )

    def shifted_rows(self, codes: Codes) -> IntArray:
        """(d, r) the levels of all features at the rows, counted from their reference levels."""
        return self.shifted(np.asarray(codes), tuple(range(len(codes))))

    def to_tables(self, values: FloatArray) -> FloatArray:
        """(low, m) the b_A for the values of a function on the low cells, in their place."""
        for i in range(len(self.family.sizes)):
            for s, subset in enumerate(self.family.subsets):
                if i in subset:
                    k, shape = subset.index(i), [n - 1 for n in self.family.sizes_of(s)]
                    own = values[self.of_subset(s)].reshape(*shape, -1)
                    without = self.family.position[subset[:k] + subset[k + 1 :]]
                    own -= values[self.of_subset(without)].reshape(*shape[:k], 1, *shape[k + 1 :], -1)
        return values

    def levels(self) -> IntArray:
        """(d, low) level of every feature, counted from its reference level, in every low cell."""
        out = np.zeros((len(self.family.sizes), len(self)), dtype=np.int64)
        for s, subset in enumerate(self.family.subsets):
            shape = tuple(n - 1 for n in self.family.sizes_of(s))
            if subset:
                out[list(subset), self.of_subset(s)] = np.stack(np.unravel_index(np.arange(prod(shape)), shape)) + 1
        return out

    def numbers(self, levels: IntArray) -> IntArray:
        """(n,) number of the low cell that each row of shifted levels (d, n) is in; -1 for none."""
        out = np.full(levels.shape[1], -1, dtype=np.int64)
        patterns, group = np.unique(np.packbits(levels > 0, axis=0), axis=1, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(group.ravel(), minlength=patterns.shape[1]))[:-1]
        for rows in np.split(order, ends):
            subset = tuple(np.flatnonzero(levels[:, rows[0]]).tolist())
            s = self.family.position.get(subset)
            if s is not None:
                out[rows] = self.start[s] + self._inner(s, levels[:, rows])
        return out

    def at(self, tables: FloatArray, levels: IntArray) -> FloatArray:
        """(n, m) sum of the b_A (low, m) at rows of shifted levels (d, n)."""
        out = np.zeros((levels.shape[1], tables.shape[1]))
        for s, subset in enumerate(self.family.subsets):
            rows = np.flatnonzero((levels[list(subset)] > 0).all(axis=0))
            out[rows] += tables[self.start[s] + self._inner(s, levels[:, rows])]
        return out

    def _inner(self, s: int, levels: IntArray) -> IntArray:
        """Number inside its subset of the low cell of rows whose levels there are no reference levels."""
        subset = self.family.subsets[s]
        if not subset:
            return np.zeros(levels.shape[1], dtype=np.int64)
        inner = np.ravel_multi_index(tuple(levels[list(subset)] - 1), tuple(n - 1 for n in self.family.sizes_of(s)))
        return np.asarray(inner, dtype=np.int64)


def interpolation(order: int, features: int) -> FloatArray:
    """(features + 1, order + 1) value, at a cell with a other levels, of the function that is 1 at one low cell below.

    A low cell with b other levels is below a cell if these are its levels there too. The function of that order which
    is 1 in it and 0 in all other low cells takes in the cell the value

        sum over j from b to the order of (-1)^(j - b) comb(a - b, j - b) = (-1)^(order - b) comb(a - b - 1, order - b).

    >>> interpolation(1, 3)[2:].tolist()
    [[-1.0, 1.0], [-2.0, 1.0]]
    """
    out = np.zeros((features + 1, order + 1))
    for a in range(order + 1, features + 1):
        for b in range(order + 1):
            out[a, b] = (-1) ** (order - b) * comb(a - b - 1, order - b)
    return out
