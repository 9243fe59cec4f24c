"""The two passes over the data: rows into cells (scatter) and cells at rows (gather).

Small work runs in NumPy. Large work runs in compiled kernels, which process all subsets on a block of rows that stays
in cache. Complete tables with all of their subsets are passed over one axis at a time (``lattice``). No order of
summation depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from exanova import parallel
from exanova.design import lattice
from exanova.typing import Codes, FloatArray, IntArray, Subset

COMPILED_FROM = 4_000_000
"""Rows times subsets from which compiling (or loading) a kernel costs less than it saves."""

BY_AXES_FROM = 1000
"""Rows times subsets from which complete tables are passed over one axis at a time."""


@dataclass(frozen=True)
class Layout:
    """Where the keys of each subset lie and how a row finds its own.

    Attributes:
        order: (S,) members of each subset.
        members: (S, k) their features, padded with 0.
        sizes: (d,) levels of each feature.
        chain: (S, k) at column j, where the lookup of the prefix of length j + 1 begins.
        key_start: (S + 1,) where the keys of each subset begin.
        lookup: (keys,) cell of each key inside its subset, -1 if never observed.
    """

    order: IntArray
    members: IntArray
    sizes: IntArray
    chain: IntArray
    key_start: IntArray
    lookup: np.ndarray[tuple[int], np.dtype[np.int32]]

    @classmethod
    def intercept(cls, sizes: Sequence[int]) -> Layout:
        """The layout of the empty set: one key, one cell."""
        one = np.zeros((1, 1), dtype=np.int64)
        return cls(
            np.zeros(1, np.int64),
            one,
            np.asarray(sizes, np.int64),
            one,
            np.array([0, 1]),
            np.zeros(1, np.int32),
        )

    def appended(self, subsets: Sequence[Subset], prefix: IntArray, key_sizes: IntArray) -> Layout:
        """The layout with more subsets of one order, whose lookup ``with_lookup`` fills in afterwards."""
        k = len(subsets[0])
        old = len(self.order)
        members, chain = np.zeros((2, old + len(subsets), max(k, self.members.shape[1])), dtype=np.int64)
        members[:old, : self.members.shape[1]] = self.members
        members[old:, :k] = subsets
        chain[:old, : self.chain.shape[1]] = self.chain
        chain[old:] = chain[prefix]
        if k > 1:
            chain[old:, k - 2] = self.key_start[prefix]
        return replace(
            self,
            order=np.concatenate([self.order, np.full(len(subsets), k)]),
            members=members,
            chain=chain,
            key_start=np.concatenate([self.key_start, self.key_start[-1] + np.cumsum(key_sizes)]),
        )

    def with_lookup(self, lookup: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Layout:
        """Set the lookup of the subsets appended last."""
        return replace(self, lookup=np.concatenate([self.lookup, lookup]))

    def part(self, first: int, last: int) -> Layout:
        """A run of subsets, in the same key space."""
        return replace(
            self,
            order=self.order[first:last],
            members=self.members[first:last],
            chain=self.chain[first:last],
            key_start=self.key_start[first : last + 1],
        )

    def restricted(self, n_subsets: int) -> Layout:
        """The layout of the first subsets alone."""
        start = self.key_start[: n_subsets + 1]
        return replace(
            self,
            order=self.order[:n_subsets],
            members=self.members[:n_subsets],
            chain=self.chain[:n_subsets],
            key_start=start,
            lookup=self.lookup[: start[-1]],
        )


def keys_of_rows(layout: Layout, codes: Codes, s: int, *, new: bool = False) -> IntArray:
    """(n,) key of every row inside subset number ``s``.

    ``new`` rows may contain unknown levels (-1, or beyond those of the layout) and unobserved combinations, whose key
    is -1. The rows of a sample contain neither and are not checked.
    """
    order = int(layout.order[s])
    if not new:
        return _keys_inside(layout, codes, s, order)
    key = np.zeros(codes.shape[1], dtype=np.int64)
    known = np.ones(codes.shape[1], dtype=bool)
    for j in range(order):
        feature = layout.members[s, j]
        level = codes[feature].astype(np.int64)
        known &= (level >= 0) & (level < layout.sizes[feature])
        key = np.where(known, key * layout.sizes[feature] + level, 0)
        if 0 < j < order - 1:
            key = layout.lookup[layout.chain[s, j] + key].astype(np.int64)
            known &= key >= 0
    return np.where(known, key, -1)


def _keys_inside(layout: Layout, codes: Codes, s: int, order: int) -> IntArray:
    """The same for the rows of a sample, without checks."""
    if not order:
        return np.zeros(codes.shape[1], dtype=np.int64)
    features = layout.members[s].tolist()
    key: IntArray = codes[features[0]].astype(np.int64)
    for j in range(1, order):
        key *= layout.sizes[features[j]]
        key += codes[features[j]]
        if j < order - 1:
            key = layout.lookup[layout.chain[s, j] + key].astype(np.int64)
    return key


def cells_of_rows(layout: Layout, codes: Codes, s: int, *, new: bool = False) -> IntArray:
    """(n,) cell of every row inside subset number ``s``; -1 outside the support."""
    key = keys_of_rows(layout, codes, s, new=new)
    cell = layout.lookup[layout.key_start[s] + np.maximum(key, 0)].astype(np.int64)
    return np.where(key >= 0, cell, -1)


def scatter(
    layout: Layout, codes: Codes, values: FloatArray, subsets: slice | None = None, threads: int = 1, *, times: int = 1
) -> FloatArray:
    """Sum (r, m) ``values`` of the rows into the keys of the chosen subsets: (keys, m).

    The rows must be those of a sample. About as many ``times`` the same is done with other values.
    """
    if subsets is None and _goes_by_axes(layout, codes):
        return lattice.scatter_rows(layout, codes, values)
    subsets = subsets or slice(0, len(layout.order))
    base = int(layout.key_start[subsets.start])
    out = np.zeros((int(layout.key_start[subsets.stop]) - base, values.shape[1]))
    if codes.shape[1] * (subsets.stop - subsets.start) * times >= COMPILED_FROM:
        from exanova.design.pass_kernels import scatter_kernel

        def task(piece: slice) -> None:
            first, last = subsets.start + piece.start, subsets.start + piece.stop
            scatter_kernel(codes, values, *arrays_of(layout), first, last, base, out)

        parallel.run(task, parallel.split(subsets.stop - subsets.start, threads), threads)
        return out
    starts = (layout.key_start[subsets.start : subsets.stop + 1] - base).tolist()
    for s, (start, stop) in enumerate(pairwise(starts), start=subsets.start):
        keys = keys_of_rows(layout, codes, s)
        for o in range(values.shape[1]):
            out[start:stop, o] = np.bincount(keys, weights=values[:, o], minlength=stop - start)
    return out


def gather(
    layout: Layout, codes: Codes, tables: FloatArray, threads: int = 1, *, new: bool = False, times: int = 1
) -> FloatArray:
    """(n, m) sum over the subsets of their (keys, m) ``tables`` at each row. Unknown keys add nothing.

    About as many ``times`` the same is done with other tables.
    """
    if not new and _goes_by_axes(layout, codes):
        return lattice.gather_rows(layout, codes, tables)
    n = codes.shape[1]
    out = np.zeros((n, tables.shape[1]))
    if n * len(layout.order) * times >= COMPILED_FROM:
        from exanova.design.pass_kernels import gather_kernel

        def task(rows: slice) -> None:
            gather_kernel(codes, tables, *arrays_of(layout), rows.start, rows.stop, not new, out)

        parallel.run(task, parallel.split(n, threads), threads)
        return out
    for s in range(len(layout.order)):
        keys = keys_of_rows(layout, codes, s, new=new)
        if not new:
            out += tables[layout.key_start[s] + keys]
            continue
        known = keys >= 0
        out[known] += tables[layout.key_start[s] + keys[known]]
    return out


def outside(layout: Layout, codes: Codes, threads: int = 1) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(n,) whether a new row falls in a cell of some subset that was never observed."""
    n = codes.shape[1]
    out = np.zeros(n, dtype=np.bool_)
    if n * len(layout.order) >= COMPILED_FROM:
        from exanova.design.pass_kernels import outside_kernel

        def task(rows: slice) -> None:
            outside_kernel(codes, *arrays_of(layout), rows.start, rows.stop, out)

        parallel.run(task, parallel.split(n, threads), threads)
        return out
    for s in range(len(layout.order)):
        out |= cells_of_rows(layout, codes, s, new=True) < 0
    return out


def _goes_by_axes(layout: Layout, codes: Codes) -> bool:
    """Whether to use ``lattice``: a complete table with all of its subsets, and enough rows to be worth it."""
    reads = codes.shape[1] * len(layout.order)
    return reads >= max(BY_AXES_FROM, len(layout.lookup)) and lattice.is_lattice(layout)


def arrays_of(layout: Layout) -> tuple[np.ndarray, ...]:
    """The arrays of a layout that compiled loops read."""
    return layout.order, layout.members, layout.sizes, layout.chain, layout.key_start, layout.lookup
