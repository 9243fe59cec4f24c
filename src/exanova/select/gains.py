"""The gain of each candidate subset: how much of a residual it would explain.

    gain(A) = || P_(W_A) e ||^2 = | H_A^T s_A |^2,     s_A = E[e 1{x_A = cell}],

with H_A an orthonormal basis of the pure space W_A. For all pairs at once the sums s_A are one weighted product of
one-hot columns, with one level per feature left out and restored from the margins: seconds for hundreds of thousands of
pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import pure_basis
from exanova.basis.pure import pure_dimension, pure_energy, pure_tables
from exanova.data.sample import Sample
from exanova.design.family import Family, extend_with_sums
from exanova.design.products import OneHot, restored
from exanova.phi.bitsets import count_common, pack_singles
from exanova.select.pair_list import PairList, numbers_in
from exanova.solve import price
from exanova.typing import Codes, FloatArray, IntArray, Subset

SORTED = 10_000
"""Candidates that are sorted at once, the best first."""

BLOCK_BYTES = 64_000_000
"""Memory of one stack of local problems."""

WIDE = price.WIDE
"""Cells above which the gain comes from a fit of the margins, because a basis would cost cells^3."""


@dataclass(frozen=True)
class Gains:
    """The gain of each candidate.

    Attributes:
        subsets: the candidates.
        energy: (k,) energy of the projection of the residual, all outputs together.
        functions: (k,) functions of each candidate.
    """

    subsets: list[Subset] | PairList
    energy: FloatArray
    functions: IntArray

    def only(self, numbers: IntArray) -> Gains:
        """Some of the candidates."""
        own = self.subsets
        chosen = own.only(numbers) if isinstance(own, PairList) else [own[k] for k in numbers]
        return Gains(chosen, self.energy[numbers], self.functions[numbers])

    def worth(self) -> FloatArray:
        """(k,) energy per function, -1 for candidates without functions."""
        out = np.full(len(self.energy), -1.0)
        return np.asarray(np.divide(self.energy, self.functions, out=out, where=self.functions > 0))

    def best_first(self) -> IntArray:
        """Numbers of the candidates by decreasing energy per function, without those that have no functions."""
        return np.array(list(self.in_turn()), dtype=np.int64)

    def in_turn(self) -> Iterator[int]:
        """The same one after the other: who needs a few of millions does not wait until all are sorted."""
        worth = self.worth()
        left = np.flatnonzero(worth > 0.0)
        while len(left):
            own = worth[left]
            least = -np.partition(-own, SORTED - 1)[SORTED - 1] if len(left) > SORTED else 0.0
            best, left = left[own >= least], left[own < least]
            yield from best[np.argsort(-worth[best], kind="stable")].tolist()


class PairScreen:
    """Gains of all pairs of varying features; everything that does not depend on the residual is computed once."""

    def __init__(self, codes: Codes, probability: FloatArray, sizes: Sequence[int], threads: int = 1) -> None:
        self._codes, self._sizes, self._threads = codes, list(sizes), threads
        self._features = [i for i, n in enumerate(sizes) if n > 1]
        self._start = np.concatenate([[0], np.cumsum([sizes[i] - 1 for i in self._features])]).astype(np.int64)
        self._counts = self._common_rows()
        self._weights = probability
        self.pairs = PairList.of(self._features)
        # (pairs,) the two features of every pair, as places in the list of varying features.
        self._one, self._other = np.triu_indices(len(self._features), 1)

    def numbers(self, pairs: Iterable[Subset]) -> IntArray:
        """Numbers of these pairs among all."""
        return numbers_in(self._features, pairs)

    def dimensions(self) -> IntArray:
        """(pairs,) dimension of the pure space of every pair, from the pattern of observed cells alone."""
        out = np.zeros(len(self.pairs), dtype=np.int64)
        for (a, b), numbers in self._shapes.items():
            step = max(1, BLOCK_BYTES // (8 * a * b))
            codes = _codes_of_cells(a, b)
            for first in range(0, len(numbers), step):
                chosen = numbers[first : first + step]
                occurs = (self._tables(self._counts, chosen) > 0.5).reshape(len(chosen), -1)
                for alike in _patterns(occurs):
                    out[chosen[alike]] = pure_dimension(codes[:, occurs[alike[0]]], (a, b))
        return out

    def gains(self, residual: FloatArray) -> Gains:
        """Gains of every pair for an (r, m) residual."""
        energy, functions = np.zeros(len(self.pairs)), np.zeros(len(self.pairs), dtype=np.int64)
        # Single precision is enough to rank candidates and takes half the time; these sums have no other use.
        sums = [self._products(self._weights * column, np.float32) for column in residual.T]
        for (a, b), numbers in self._shapes.items():
            cells = max(1, a * b)
            step = max(1, BLOCK_BYTES // (16 * cells * max(1, min(cells, WIDE))))
            for first in range(0, len(numbers), step):
                chosen = numbers[first : first + step]
                counts = self._tables(self._counts, chosen)
                probability = self._tables(self._probability, chosen)
                tables = np.stack([self._tables(s, chosen) for s in sums], axis=-1)
                energy[chosen], functions[chosen] = _stack_gains(counts > 0.5, probability, tables)
        return Gains(self.pairs, energy, functions)

    @cached_property
    def _probability(self) -> FloatArray:
        equal = bool((self._weights == self._weights[0]).all())
        return self._counts * self._weights[0] if equal else self._products(self._weights, np.float64)

    @cached_property
    def _shapes(self) -> dict[tuple[int, int], IntArray]:
        """Numbers of the pairs, grouped by their numbers of levels."""
        sizes, kind = np.unique([self._sizes[i] for i in self._features], return_inverse=True)
        group = kind[self._one] * len(sizes) + kind[self._other]
        counts = np.bincount(group, minlength=len(sizes) ** 2)
        order = np.argsort(group, kind="stable") if np.count_nonzero(counts) > 1 else np.arange(len(group))
        pieces = np.split(order, np.cumsum(counts)[:-1])
        shapes = product(sizes.tolist(), repeat=2)
        return {shape: numbers for shape, numbers in zip(shapes, pieces, strict=True) if len(numbers)}

    def _common_rows(self) -> FloatArray:
        """The same for equal weights, exactly, by counting bits, so that rounding cannot change which cells occur."""
        q = int(self._start[-1]) + 1
        words = np.zeros((q, -(-self._codes.shape[1] // 64)), dtype=np.uint64)
        levels = [(i, level) for i in self._features for level in range(self._sizes[i] - 1)]
        pack_singles(words, self._codes, levels)
        counts = np.zeros((q, q), dtype=np.int64)
        count_common(words, counts, 1, self._threads)
        return np.roll(counts, -1, axis=(0, 1)).astype(np.float64)  # the constant goes last

    def _products(self, weight: FloatArray, dtype: type[np.floating[Any]]) -> FloatArray:
        """(Q + 1, Q + 1) weighted sums of products of one-hot columns (last level left out), and their margins."""
        return self._one_hot.products(weight, dtype)

    @cached_property
    def _one_hot(self) -> OneHot:
        sizes = [self._sizes[i] for i in self._features]
        return OneHot([self._codes[i] for i in self._features], sizes, self._threads)

    def _tables(self, products: FloatArray, numbers: IntArray) -> FloatArray:
        """(b, N_i, N_j) table of each of these pairs, all of one shape."""
        n_i, n_j = (self._sizes[i] for i in self.pairs[numbers[0]])
        first = self._start[self._one[numbers], None] + np.arange(n_i - 1)
        second = self._start[self._other[numbers], None] + np.arange(n_j - 1)
        return restored(products, first, second)


class SubsetScreen:
    """Gains of listed subsets of any order; dimensions, which do not depend on the residual, are computed once."""

    def __init__(self, sample: Sample, threads: int = 1) -> None:
        self._sample, self._threads = sample, threads
        self._dimension: dict[Subset, int] = {}

    def gains(self, family: Family, subsets: list[Subset], residual: FloatArray) -> Gains:
        """Gains of subsets of one order, whose prefixes are in ``family``, by one pass over the rows."""
        sample, old = self._sample, len(family.subsets)
        weighted = np.hstack([sample.mass[:, None], sample.probability[:, None] * residual])
        wider, values = extend_with_sums(family, subsets, sample.codes, weighted, self._threads)
        cells = wider.cell_start[old:] - family.n_cells
        energy, functions = np.zeros(len(subsets)), np.zeros(len(subsets), dtype=np.int64)
        wide = np.diff(cells) > WIDE
        for k in np.flatnonzero(wide):
            energy[k], functions[k] = self._wide(wider, old + int(k), values[cells[k] : cells[k + 1]])
        narrow = np.flatnonzero(~wide)
        for k, table in zip(narrow, pure_basis(wider, (old + narrow).tolist()), strict=True):
            energy[k] = np.square(table.T @ values[cells[k] : cells[k + 1]]).sum()
            functions[k] = table.shape[1]
        return Gains(subsets, energy, functions)

    def _wide(self, family: Family, s: int, sums: FloatArray) -> tuple[float, int]:
        """Energy and number of functions of a subset with many cells, without a basis."""
        codes, sizes, subset = family.codes_of(s), family.sizes_of(s), family.subsets[s]
        if subset not in self._dimension:
            self._dimension[subset] = pure_dimension(codes, sizes)
        return pure_energy(codes, sizes, family.probability_of(s), sums), self._dimension[subset]


def _stack_gains(occurs: NDArray[np.bool_], probability: FloatArray, sums: FloatArray) -> tuple[FloatArray, IntArray]:
    """Energy and numbers of functions of a stack of pairs with (b, N_i, N_j) cells and (b, N_i, N_j, m) sums."""
    b, n_i, n_j = occurs.shape
    flat, p, s = occurs.reshape(b, -1), probability.reshape(b, -1), sums.reshape(b, n_i * n_j, -1)
    if (n_i, n_j) == (2, 2):
        return _binary_gains(flat, p, s)
    energy, functions = np.zeros(b), np.zeros(b, dtype=np.int64)
    codes = _codes_of_cells(n_i, n_j)
    for chosen in _patterns(flat):
        cells = np.flatnonzero(flat[chosen[0]])
        mass = p[np.ix_(chosen, cells)]
        mass = mass / mass.sum(axis=1, keepdims=True)
        if len(cells) > WIDE:
            own = zip(mass, s[np.ix_(chosen, cells)], strict=True)
            energy[chosen] = [pure_energy(codes[:, cells], (n_i, n_j), *one) for one in own]
            functions[chosen] = pure_dimension(codes[:, cells], (n_i, n_j))
            continue
        tables = pure_tables(codes[:, cells], (n_i, n_j), mass)
        projections = np.einsum("bck,bcm->bkm", tables, s[np.ix_(chosen, cells)])
        energy[chosen], functions[chosen] = np.square(projections).sum(axis=(1, 2)), tables.shape[2]
    return energy, functions


def _codes_of_cells(n_i: int, n_j: int) -> IntArray:
    """(2, N_i N_j) the two levels of every cell of a complete pair."""
    return np.array(list(product(range(n_i), range(n_j)))).T


def _patterns(occurs: NDArray[np.bool_]) -> list[IntArray]:
    """Numbers of the rows of a (b, cells) table, grouped into equal rows."""
    complete = occurs.all(axis=1)  # as most are
    groups: dict[bytes, list[int]] = defaultdict(list)
    for k in np.flatnonzero(~complete).tolist():
        groups[occurs[k].tobytes()].append(k)
    patterns = [np.flatnonzero(complete), *map(np.array, groups.values())]
    return [numbers for numbers in patterns if len(numbers)]


def _binary_gains(occurs: NDArray[np.bool_], p: FloatArray, s: FloatArray) -> tuple[FloatArray, IntArray]:
    """Two binary features: one function, +-1 / p, or none if a cell is missing."""
    complete = occurs.all(axis=1)
    sign = np.array([1.0, -1.0, -1.0, 1.0])
    inverse = np.divide(1.0, p, out=np.zeros_like(p), where=occurs)
    projections = np.einsum("c,bc,bcm->bm", sign, inverse, s)
    norm = inverse.sum(axis=1)
    energy = np.where(complete, np.square(projections).sum(axis=1) / np.where(norm > 0, norm, 1.0), 0.0)
    return np.asarray(energy), np.asarray(complete, dtype=np.int64)


def cost(sizes: Sequence[int], subset: Subset) -> int:
    """Number of functions if every cell occurs: an upper bound."""
    return prod(sizes[i] - 1 for i in subset)
