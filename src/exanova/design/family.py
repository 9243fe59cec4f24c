"""``Family``: subsets of features and their cells, the distinct values of x_A that occur, addressed by keys.

A cell of A = (i, .., j, k) is the cell of its prefix (i, .., j) followed by a level of k, so that

    key = (cell of the prefix) * N_k + (level of k),     cell = lookup[key],  -1 where nothing was observed.

Keys of one subset lie side by side in one flat space shared by all subsets. A function of x_A is a piece of an
array over that space; summing rows into cells and reading cells at rows are the two passes of ``passes``.
The chain of prefixes keeps keys small at any order: never more than (observed cells) x (levels) of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from exanova.design import passes
from exanova.design.subsets import by_order, canonical_key
from exanova.typing import Codes, FloatArray, IntArray, Subset


@dataclass(frozen=True)
class Family:
    """A family of subsets that is closed downward, in canonical order, the empty set first, with its observed cells.

    Attributes:
        sizes: (d,) levels of each feature.
        subsets: the S members of the family.
        layout: the arrays from which the passes compute keys.
        cell_start: (S + 1,) where the cells of each subset begin in the flat list of cells.
        cell_key: (cells,) key of each cell in the flat key space.
        weight: (cells,) total weight of the rows in each cell.
    """

    sizes: IntArray
    subsets: tuple[Subset, ...]
    layout: passes.Layout
    cell_start: IntArray
    cell_key: IntArray
    weight: FloatArray
    position: dict[Subset, int] = field(repr=False)

    @property
    def n_cells(self) -> int:
        """Cells of all subsets together."""
        return int(self.cell_start[-1])

    @property
    def n_keys(self) -> int:
        """Length of the flat key space."""
        return int(self.layout.key_start[-1])

    def cells_of(self, s: int) -> slice:
        """Where the cells of subset number ``s`` lie in flat arrays over cells."""
        return slice(int(self.cell_start[s]), int(self.cell_start[s + 1]))

    def probability_of(self, s: int) -> FloatArray:
        """(c,) probabilities of the cells of subset number ``s``."""
        return np.asarray(self.weight[self.cells_of(s)] / self.weight[0])

    def sizes_of(self, s: int) -> tuple[int, ...]:
        """Levels of each feature of subset number ``s``."""
        return tuple(int(self.sizes[i]) for i in self.subsets[s])

    def codes_of(self, s: int) -> IntArray:
        """(|A|, c) level of each feature in each cell of subset number ``s``, cells in lexicographic order."""
        subset = self.subsets[s]
        if not subset:
            return np.zeros((0, 1), dtype=np.int64)
        local = self.cell_key[self.cells_of(s)] - self.layout.key_start[s]
        if len(subset) == 1:
            return np.asarray(local)[None, :]
        prefix, last = np.divmod(local, self.sizes[subset[-1]])
        if len(subset) == 2:  # the cells of one feature are its levels
            return np.stack([prefix, last])
        before = self.codes_of(self.position[subset[:-1]])
        return np.vstack([before[:, prefix], last[None, :]])

    def alike(self, numbers: Sequence[int]) -> list[list[int]]:
        """Group subsets that have the same sizes and the same observed cells."""
        groups: dict[tuple[tuple[int, ...], bytes], list[int]] = defaultdict(list)
        for s in numbers:
            sizes = self.sizes_of(s)
            groups[sizes, self._pattern(s, prod(sizes))].append(s)
        return list(groups.values())

    def _pattern(self, s: int, complete: int) -> bytes:
        """A key of the observed cells: equal for two subsets of the same sizes exactly if their cells are equal."""
        cells = self.cells_of(s)
        if cells.stop - cells.start == complete:
            return b"complete"
        if len(self.subsets[s]) <= 2:
            return bytes(self.cell_key[cells] - self.layout.key_start[s])
        return bytes(np.ascontiguousarray(self.codes_of(s)))

    def restricted(self, n_subsets: int) -> Family:
        """The family of the first ``n_subsets`` members."""
        cells = int(self.cell_start[n_subsets])
        return Family(
            self.sizes,
            self.subsets[:n_subsets],
            self.layout.restricted(n_subsets),
            self.cell_start[: n_subsets + 1],
            self.cell_key[:cells],
            self.weight[:cells],
            {s: k for s, k in self.position.items() if k < n_subsets},
        )

    def to_keys(self, values: FloatArray) -> FloatArray:
        """Spread (cells, m) values over the key space; 0 where nothing was observed."""
        out = np.zeros((self.n_keys, values.shape[1]))
        out[self.cell_key] = values
        return out


def intercept_family(sizes: Sequence[int], total: float) -> Family:
    """The family {()}: one cell that contains every row."""
    return Family(
        np.asarray(sizes, dtype=np.int64),
        ((),),
        passes.Layout.intercept(sizes),
        np.array([0, 1]),
        np.array([0]),
        np.array([float(total)]),
        {(): 0},
    )


def extend(family: Family, subsets: Sequence[Subset], codes: Codes, weight: FloatArray, threads: int = 1) -> Family:
    """Add ``subsets``, all of one order, whose prefixes are already in ``family``; one pass over the rows.

    >>> codes = np.array([[0, 0, 1], [0, 1, 1]], dtype=np.uint8)
    >>> family = intercept_family([2, 2], 3.0)
    >>> family = extend(family, [(0,), (1,)], codes, np.ones(3))
    >>> family = extend(family, [(0, 1)], codes, np.ones(3))
    >>> family.codes_of(3)
    array([[0, 0, 1],
           [0, 1, 1]])
    """
    return extend_with_sums(family, subsets, codes, weight[:, None], threads)[0]


def extend_with_sums(
    family: Family, subsets: Sequence[Subset], codes: Codes, weighted: FloatArray, threads: int = 1
) -> tuple[Family, FloatArray]:
    """The same in one pass with sums of other values.

    ``weighted`` (r, 1 + m) has the weights of the rows, then the values. The sums are (cells of ``subsets``, m).
    """
    if not subsets:
        return family, np.zeros((0, weighted.shape[1] - 1))
    old = len(family.subsets)
    prefix = np.array([family.position[s[:-1]] for s in subsets], dtype=np.int64)
    prefix_cells = family.cell_start[prefix + 1] - family.cell_start[prefix]
    key_sizes = prefix_cells * family.sizes[[s[-1] for s in subsets]]
    layout = family.layout.appended(subsets, prefix, key_sizes)
    sums = passes.scatter(layout, codes, weighted, slice(old, old + len(subsets)), threads)
    wider = with_counts(family, subsets, layout, key_sizes, sums[:, 0])
    own = wider.cell_key[family.n_cells :] - int(layout.key_start[old])
    return wider, sums[own, 1:]


def keep_some(family: Family, n_before: int, kept: Sequence[int]) -> Family:
    """The first ``n_before`` subsets and, of the later ones, those numbered ``kept``; no pass over the rows.

    The later ones are of one order, and their prefixes are among the first.
    """
    out = family.restricted(n_before)
    if not len(kept):
        return out
    subsets = [family.subsets[s] for s in kept]
    starts = family.layout.key_start
    weights = [np.zeros(int(starts[s + 1] - starts[s])) for s in kept]
    for s, weight in zip(kept, weights, strict=True):
        weight[family.cell_key[family.cells_of(s)] - starts[s]] = family.weight[family.cells_of(s)]
    prefix, key_sizes = np.array([out.position[s[:-1]] for s in subsets]), np.array([len(w) for w in weights])
    layout = out.layout.appended(subsets, prefix, key_sizes)
    return with_counts(out, subsets, layout, key_sizes, np.concatenate(weights))


def build_family(
    codes: Codes, weight: FloatArray, sizes: Sequence[int], subsets: Sequence[Subset], threads: int = 1
) -> Family:
    """Build the family of ``subsets`` (closed downward, in canonical order), order by order."""
    family = intercept_family(sizes, float(weight.sum()))
    for order, group in by_order(subsets):
        if order:
            family = extend(family, group, codes, weight, threads)
    return family


def with_counts(
    family: Family,
    subsets: Sequence[Subset],
    layout: passes.Layout,
    key_sizes: IntArray,
    counts: FloatArray,
    is_cell: NDArray[np.bool_] | None = None,
) -> Family:
    """Finish an extension: keys of positive weight are the new cells, or those that ``is_cell`` names.

    Every level is a cell of its feature, even if it does not occur in these rows (which may be one chunk of many).
    The code of a level is then the number of its cell, so that rows need no lookup.
    """
    old = len(family.subsets)
    observed = (counts > 0) | (len(subsets[0]) == 1) if is_cell is None else is_cell | (len(subsets[0]) == 1)
    first_key = layout.key_start[old:-1] - layout.key_start[old]
    before = np.concatenate([[0], np.cumsum(observed)])
    cells_before = before[first_key]
    lookup = np.where(observed, before[:-1] - np.repeat(cells_before, key_sizes), -1).astype(np.int32)
    new_keys = np.flatnonzero(observed) + layout.key_start[old]
    starts = np.concatenate([cells_before[1:], [before[-1]]]) + family.n_cells
    position = dict(family.position)
    position.update((s, old + k) for k, s in enumerate(subsets))
    return Family(
        family.sizes,
        family.subsets + tuple(subsets),
        layout.with_lookup(lookup),
        np.concatenate([family.cell_start, starts]),
        np.concatenate([family.cell_key, new_keys]),
        np.concatenate([family.weight, counts[observed]]),
        position,
    )


def dense_family(sizes: Sequence[int], counts: Mapping[Subset, FloatArray], total: float) -> Family:
    """A family of order one or two from the weights of all its cells, one axis per feature; 0 if never observed."""
    family = intercept_family(sizes, total)
    for order, subsets in by_order(sorted(counts, key=canonical_key)):
        prefix = np.array([family.position[s[:-1]] for s in subsets], dtype=np.int64)
        weights = [np.asarray(counts[s], dtype=np.float64).ravel() for s in subsets]
        key_sizes = np.array([len(w) for w in weights], dtype=np.int64)
        layout = family.layout.appended(subsets, prefix, key_sizes)
        assert order <= 2  # beyond, keys follow the observed cells of prefixes
        family = with_counts(family, subsets, layout, key_sizes, np.concatenate(weights))
    return family


def complete_family(sizes: Sequence[int], features: Sequence[int], weights: FloatArray) -> Family:
    """Every subset of ``features`` on a complete table, from the extended tensor of all its margins.

    ``weights`` has shape (N_1 + 1, ..) over ``features``; index 0 on an axis means that feature is not in A.
    """
    family = intercept_family(sizes, float(weights[(0,) * len(features)]))
    for order in range(1, len(features) + 1):
        subsets = list(combinations(features, order))
        counts = []
        for subset in subsets:
            place = tuple(slice(1, None) if i in subset else 0 for i in features)
            counts.append(weights[place].ravel())
        prefix = np.array([family.position[s[:-1]] for s in subsets], dtype=np.int64)
        key_sizes = np.array([len(c) for c in counts], dtype=np.int64)
        layout = family.layout.appended(subsets, prefix, key_sizes)
        family = with_counts(family, subsets, layout, key_sizes, np.concatenate(counts))
    return family
