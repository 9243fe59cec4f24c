"""Gram matrices of main effects and pairs from margins: counts of rows in the cells of up to four features.

The entry of the indicators 1{x_A = z} and 1{x_B = w} is one cell of the margin of A and B together, a table of at most
four features. A row adds to C(d, 4) margins, once each, instead of being compared in every pair of indicators. Margins
of three features or fewer are sums of those of four, so that only the largest are counted:

    U = {A + B : A, B in the family},     counted: the members of U that lie in no other.

Margins are additive over rows, exact for whole weights, and far smaller than the Gram matrix. They are counted in
groups that take at most ``GROUP_BYTES``, and each group is read into the matrix before the next is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.data.sample import blocks_of
from exanova.design.family import Family
from exanova.phi.monomials import Monomials
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray, IntArray

GROUP_BYTES = 64_000_000
"""Memory of the margins that are counted together. Larger groups are no faster, since new memory takes time too."""

LARGEST_LISTING = 2_000_000
"""Margins that are listed at most; families with more of them are dense in features and go another way."""

NEAR, NEAR_SECONDS, FAR_SECONDS = 5000, 0.9e-9, 7e-9
"""Cells of a margin that stay in the nearest cache, and seconds to add one row to a margin of that size, and to one of
forty times as many cells or more. Measured on one core: 0.9 ns for 3 to 6 levels, 3 for 10 and 7 for 20."""

LISTING, LOADING = 0.05, 0.5
"""Seconds of work below which margins are not listed, and seconds to load their compiled loops from a cache. Compiling
them for the first time takes some seconds."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins that a family of main effects and pairs needs.

    Attributes:
        sizes: (d,) levels of each feature.
        unions: (n, 4) features of the margins that are counted, -1 after the last, in lexicographic order.
        derived: (k, 2) unions that are read: which of the counted margins has it, and its places there, as bits.
    """

    sizes: IntArray
    unions: IntArray
    derived: IntArray

    @cached_property
    def start(self) -> IntArray:
        """(n + 1,) where the cells of each margin begin, one margin after the other."""
        size = np.where(self.unions >= 0, self.sizes[self.unions], 1).prod(axis=1)
        return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)

    @property
    def n_cells(self) -> int:
        """Cells of all margins that are counted."""
        return int(self.start[-1])

    def groups(self) -> list[slice]:
        """Runs of margins that are counted together."""
        most = max(1, GROUP_BYTES // 8)
        bounds = [0]
        while bounds[-1] < len(self.unions):
            stop = int(np.searchsorted(self.start, self.start[bounds[-1]] + most, side="right")) - 1
            bounds.append(max(bounds[-1] + 1, stop))
        return [slice(a, b) for a, b in pairwise(bounds)]

    def seconds(self, rows: int) -> float:
        """Seconds on one core to count ``rows`` rows, with loops that are loaded."""
        return float(rows * _seconds_per_row(np.diff(self.start)).sum())


def margins_of(family: Family) -> Margins | None:
    """The margins of a family; ``None`` if it has subsets of more than two features, or too many margins."""
    if int(family.layout.order.max()) > 2:
        return None
    features = np.array([s[0] for s in family.subsets if len(s) == 1], dtype=np.int64)
    has = _has_pair(family)
    paired = np.count_nonzero(has.any(axis=0) | has.any(axis=1))
    if max(comb(int(paired), 4), comb(len(features), 3 if paired else 2)) > LARGEST_LISTING:
        return None
    return _listed(family.sizes, features, has)


def fewest_seconds(family: Family, rows: int) -> float:
    """A lower bound of the seconds to count ``rows`` rows, without listing the margins.

    A margin of four features is the union of at most three pairs of disjoint pairs.
    """
    has = _has_pair(family)
    paired, pairs = has.sum(axis=0) + has.sum(axis=1), int(has.sum())
    disjoint = comb(pairs, 2) - sum(comb(int(n), 2) for n in paired)
    return NEAR_SECONDS * rows * (disjoint / 3)


def count_margins(
    margins: Margins, codes: Codes, weight: NDArray[Any], parts: Sequence[slice], group: slice, threads: int = 1
) -> NDArray[Any]:
    """Weights of rows in every cell of a run of margins, one margin after the other.

    The rows, (d, r) codes of weight (r,), are read block by block of their parts. Weights are int64 or float64, and so
    is the result.
    """
    from exanova.phi.margin_kernels import count_cells

    base = int(margins.start[group.start])
    out = np.zeros(int(margins.start[group.stop]) - base, dtype=weight.dtype)
    pieces = parallel.split(group.stop - group.start, 4 * threads if threads > 1 else 1)
    for rows in blocks_of(parts):
        block, own_weight = np.ascontiguousarray(codes[:, rows]), np.ascontiguousarray(weight[rows])

        def task(piece: slice, block: Codes = block, own_weight: NDArray[Any] = own_weight) -> None:
            first, last = group.start + piece.start, group.start + piece.stop
            own = out[int(margins.start[first]) - base : int(margins.start[last]) - base]
            count_cells(block, own_weight, margins.sizes, margins.unions, margins.start, first, last, own)

        parallel.run(task, pieces, threads)
    return out


def margin_gram(
    margins: Margins,
    family: Family,
    basis: Monomials,
    rows: tuple[Codes, NDArray[Any], Sequence[slice]],
    threads: int = 1,
    progress: Progress | None = None,
) -> FloatArray:
    """(q, q) lower triangle of the Gram matrix of indicators on rows (codes, weight, parts); whole if weights are."""
    groups = margins.groups()
    if progress:
        progress.phase("counting margins", len(groups))

    def counted() -> Iterator[tuple[slice, NDArray[Any]]]:
        for group in groups:
            yield group, count_margins(margins, *rows, group, threads)
            if progress:
                progress.step(1)

    return read_gram(margins, family, basis, counted())


def read_gram(
    margins: Margins, family: Family, basis: Monomials, tables: Iterator[tuple[slice, NDArray[Any]]]
) -> FloatArray:
    """The same from margins that were counted, run by run."""
    from exanova.phi.margin_kernels import read_margins

    gram = np.zeros((len(basis), len(basis)))
    gram[0, 0] = family.weight[0]
    position, first, levels, members = _places(family, basis)
    for group, table in tables:
        own = margins.derived[(margins.derived[:, 0] >= group.start) & (margins.derived[:, 0] < group.stop)]
        base = int(margins.start[group.start])
        nothing = np.zeros((0, 0))
        places = position, first, levels, members, nothing, nothing
        read_margins(gram, table, margins.start, base, margins.unions, margins.sizes, own, *places)
    return gram


def multiply(margins: Margins, family: Family, tables: NDArray[Any], values: FloatArray) -> FloatArray:
    """(cells, m) N values, with N[(A, a), (B, b)] the weight of rows in both cells, from all margins at once.

    The product of all cells, those of reference levels included, is as accurate as a pass over the rows.
    """
    from exanova.phi.margin_kernels import read_margins

    out = np.zeros_like(values)
    out[0] = family.weight[0] * values[0]
    position, members = _numbers(family)
    levels = np.zeros((family.n_cells, 2), dtype=np.int64)
    for s, subset in enumerate(family.subsets):
        if subset:
            levels[family.cells_of(s), : len(subset)] = family.codes_of(s).T
    places = position, family.cell_start, levels, members, np.ascontiguousarray(values), out
    unions = margins.start, 0, margins.unions, margins.sizes, margins.derived
    read_margins(np.zeros((0, 0)), tables, *unions, *places)
    return out


def _seconds_per_row(cells: IntArray) -> FloatArray:
    """Seconds to add one row to margins of that many cells: from the nearest cache, or from further away."""
    far = np.clip(np.log(np.maximum(cells, 1) / NEAR) / np.log(40.0), 0.0, 1.0)
    return np.asarray(NEAR_SECONDS + far * (FAR_SECONDS - NEAR_SECONDS))


def _has_pair(family: Family) -> NDArray[np.bool_]:
    """(d, d) whether the family has the pair of two features, in increasing order."""
    has = np.zeros((len(family.sizes), len(family.sizes)), dtype=bool)
    pairs = np.array([s for s in family.subsets if len(s) == 2], dtype=np.int64).reshape(-1, 2)
    has[pairs[:, 0], pairs[:, 1]] = True
    return has


def _listed(sizes: IntArray, features: IntArray, has: NDArray[np.bool_]) -> Margins:
    """All unions, from the largest down: those that lie in none before are counted, all are read."""
    d = len(sizes)
    counted: list[IntArray] = []
    derived: list[IntArray] = []
    known: dict[int, tuple[IntArray, IntArray]] = {}
    for order in (4, 3, 2, 1):
        wanted = _unions(features, has, order)
        keys = _key(wanted, d)
        old_keys, old_places = known.get(order, (np.zeros(0, np.int64), np.zeros((0, 2), np.int64)))
        new = wanted[~np.isin(keys, old_keys)]
        begin = sum(map(len, counted))
        counted.append(np.pad(new, ((0, 0), (0, 4 - order)), constant_values=-1))
        own_keys = np.concatenate([old_keys, _key(new, d)])
        whole = np.stack([begin + np.arange(len(new)), np.full(len(new), (1 << order) - 1)], axis=1)
        places = np.concatenate([old_places, whole])
        derived.append(places[np.isin(own_keys, keys)])
        _remember(known, new, begin, d)
    unions = np.concatenate(counted)
    order_of = np.lexsort(unions.T[::-1])
    rank = np.empty(len(unions), dtype=np.int64)
    rank[order_of] = np.arange(len(unions))
    parts = np.concatenate(derived)
    parts[:, 0] = rank[parts[:, 0]]
    return Margins(sizes.astype(np.int64), unions[order_of], parts[np.lexsort(parts.T[::-1])])


def _remember(known: dict[int, tuple[IntArray, IntArray]], counted: IntArray, begin: int, d: int) -> None:
    """Add all parts of the (n, k) margins that are counted to ``known``: keys, and a margin and its places for each."""
    order = counted.shape[1]
    for kept in range(1, (1 << order) - 1):
        places = [j for j in range(order) if kept >> j & 1]
        keys = _key(counted[:, places], d)
        parts = np.stack([begin + np.arange(len(counted)), np.full(len(counted), kept)], axis=1)
        before = known.get(len(places), (np.zeros(0, np.int64), np.zeros((0, 2), np.int64)))
        keys, parts = np.concatenate([before[0], keys]), np.concatenate([before[1], parts])
        keys, first = np.unique(keys, return_index=True)
        known[len(places)] = keys, parts[first]


def _unions(features: IntArray, has: NDArray[np.bool_], order: int) -> IntArray:
    """(n, order) unions of two members of the family that have ``order`` features."""
    if order > 2 and not has.any():
        return np.zeros((0, order), dtype=np.int64)
    if order == 4:
        features = features[(has | has.T)[features].any(axis=1)]
    chosen: IntArray = features[_combinations(len(features), order)]
    if order == 4:
        i, j, k, m = chosen.T
        chosen = chosen[(has[i, j] & has[k, m]) | (has[i, k] & has[j, m]) | (has[i, m] & has[j, k])]
    if order == 3:
        i, j, k = chosen.T
        chosen = chosen[has[i, j] | has[i, k] | has[j, k]]
    return chosen


def _combinations(n: int, k: int) -> IntArray:
    """(C(n, k), k) increasing numbers below n, in lexicographic order.

    >>> _combinations(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    combinations = np.zeros((1, 0), dtype=np.int64)
    last = np.array([-1])
    for _ in range(k):
        count = n - 1 - last
        begin = np.repeat(np.cumsum(count) - count, count)
        added = np.repeat(last, count) + 1 + np.arange(int(count.sum())) - begin
        combinations = np.column_stack([np.repeat(combinations, count, axis=0), added])
        last = added
    return combinations


def _key(unions: IntArray, d: int) -> IntArray:
    """(n,) one number for each union of equally many features."""
    return np.asarray(unions @ (d ** np.arange(unions.shape[1] - 1, -1, -1, dtype=np.int64)))


def _numbers(family: Family) -> tuple[IntArray, IntArray]:
    """Number of every subset by its features, and the features of each."""
    d, count = len(family.sizes), len(family.subsets)
    position = np.full((d + 1, d + 1), -1, dtype=np.int64)
    members = np.full((count, 2), -1, dtype=np.int64)
    for s, subset in enumerate(family.subsets):
        members[s, : len(subset)] = subset
        position[(*subset, d, d)[:2]] = s
    return position, members


def _places(family: Family, basis: Monomials) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Number of every subset by its features, where its indicators begin, their levels, and the features of each."""
    position, members = _numbers(family)
    levels = np.zeros((len(basis), 2), dtype=np.int64)
    first = np.zeros(len(family.subsets) + 1, dtype=np.int64)
    for s, subset in enumerate(family.subsets):
        kept = np.flatnonzero(basis.number[family.cells_of(s)] >= 0)
        first[s + 1] = first[s] + len(kept)
        if subset:
            levels[first[s] : first[s + 1], : len(subset)] = family.codes_of(s)[:, kept].T
    return position, first, levels, members
