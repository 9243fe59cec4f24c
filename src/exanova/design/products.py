"""All pairs of features at once, by products of matrices: the passes of ``passes`` for dense families of pairs.

With one level per feature left out, a function sum_ij f_ij(x_i, x_j) is a quadratic form in one-hot columns z (and a
constant), and summing rows into all pairs of cells is one weighted product:

    f(x) = z^T C z,        S = Z diag(v) Z^T,     sums for the left-out levels follow from the margins.

For hundreds of features with few levels BLAS does this several times faster than reading the tables one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.design.passes import Layout
from exanova.typing import Codes, FloatArray, IntArray

PIECES = 8
"""Runs of rows that are multiplied separately; fixed, so that sums do not depend on the number of threads."""

BLOCK_BYTES = 16_000_000
"""Memory of the one-hot columns of one block of rows."""

PRODUCTS_PER_READ = 16
"""Multiplications that take as long as reading one table at one row (measured: about 30)."""


class OneHot:
    """One-hot columns of features, given by their (r,) codes and sizes, last levels left out, and a constant."""

    def __init__(self, codes: Sequence[NDArray[Any]], sizes: Sequence[int], threads: int) -> None:
        self._threads = threads
        self._kept: SimpleQueue[tuple[NDArray[Any], NDArray[Any]]] = SimpleQueue()
        self.start = np.concatenate([[0], np.cumsum([n - 1 for n in sizes])]).astype(np.int64)
        self._columns = np.empty((int(self.start[-1]) + 1, len(codes[0])), dtype=np.uint8)
        self._columns[-1] = 1
        for column, size, first in zip(codes, sizes, self.start, strict=False):
            for level in range(size - 1):
                self._columns[first + level] = column == level

    def __len__(self) -> int:
        return len(self._columns)

    def products(self, weight: FloatArray, dtype: type[np.floating[Any]] = np.float64) -> FloatArray:
        """(Q + 1, Q + 1) sums over the rows of weight times the product of two columns."""

        def task(rows: slice) -> FloatArray:
            out = np.zeros((len(self), len(self)))
            with self._room(dtype) as (first, second):
                for part in self._blocks(rows):
                    dense = self._dense(part, first)
                    out += np.multiply(dense, weight[part].astype(dtype), out=_shaped(second, dense.shape)) @ dense.T
            return out

        # Only as many pieces at a time as there are threads, to limit the memory held besides their sum.
        total = np.zeros((len(self), len(self)))
        pieces = parallel.split(self._columns.shape[1], PIECES)
        for a in range(0, len(pieces), self._threads):
            for part in self._run(task, pieces[a : a + self._threads]):
                total += part
        return total

    def quadratic(self, form: FloatArray) -> FloatArray:
        """(r,) z^T C z at every row, for a (Q + 1, Q + 1) form C."""

        def task(rows: slice) -> list[FloatArray]:
            values = []
            with self._room(np.float64) as (first, second):
                for part in self._blocks(rows):
                    dense = self._dense(part, first)
                    half = np.matmul(form, dense, out=_shaped(second, dense.shape))
                    values.append(np.einsum("qr,qr->r", half, dense))
            return values

        pieces = parallel.split(self._columns.shape[1], PIECES)
        return np.concatenate([block for piece in self._run(task, pieces) for block in piece])

    def _run(self, task: Any, pieces: list[slice]) -> list[Any]:
        # One BLAS thread each: small products lose more than they gain from BLAS threads.
        with parallel.blas_threads(1):
            return parallel.run(task, pieces, self._threads)

    @contextmanager
    def _room(self, dtype: type[np.floating[Any]]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Two blocks for one piece, kept for the next: a fit makes hundreds of passes, and fresh memory costs more than
        the products.
        """
        try:
            room = self._kept.get_nowait()
        except Empty:
            room = (np.empty(0, dtype), np.empty(0, dtype))
        if room[0].dtype != dtype or not len(room[0]):
            rows = self._columns.shape[1] // PIECES + 1
            values = len(self) * min(rows_of_block(len(self)), rows)
            room = (np.empty(values, dtype), np.empty(values, dtype))
        yield room
        self._kept.put(room)

    def _dense(self, rows: slice, into: NDArray[Any]) -> NDArray[Any]:
        """(Q + 1, n) columns at some rows, in floating point."""
        columns = self._columns[:, rows]
        out = _shaped(into, columns.shape)
        np.copyto(out, columns)
        return out

    def _blocks(self, rows: slice) -> list[slice]:
        step = rows_of_block(len(self))
        return [slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step)]


def _shaped(room: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The beginning of a long array as an array of some shape."""
    return room[: math.prod(shape)].reshape(shape)


def rows_of_block(columns: int) -> int:
    """Rows whose one-hot columns are multiplied at a time.

    >>> rows_of_block(100), rows_of_block(1000)
    (8192, 2000)
    """
    return min(8192, max(256, BLOCK_BYTES // (8 * columns)))


def restored(products: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """(b, N_i, N_j) sums of pairs from the (b, N - 1) columns of their features; left-out levels from margins."""
    out = np.empty((len(first), first.shape[1] + 1, second.shape[1] + 1))
    out[:, :-1, :-1] = products[first[:, :, None], second[:, None, :]]
    out[:, :-1, -1] = products[first, -1] - out[:, :-1, :-1].sum(axis=2)
    out[:, -1, :-1] = products[second, -1] - out[:, :-1, :-1].sum(axis=1)
    out[:, -1, -1] = products[-1, -1] - products[first, -1].sum(axis=1) - out[:, -1, :-1].sum(axis=1)
    return out


class PairProducts:
    """The two passes over a run of pairs of a layout."""

    def __init__(self, layout: Layout, codes: Codes, threads: int) -> None:
        self._pairs, self._key_start = layout.members[:, :2], layout.key_start
        self._features = np.unique(self._pairs)
        self._sizes = layout.sizes
        sizes = [int(layout.sizes[i]) for i in self._features]
        self._levels: dict[int, IntArray] = {}
        moved = []
        for i, size in zip(self._features.tolist(), sizes, strict=True):
            # The most frequent level is left out, so that restoring its sums from margins loses the fewest digits.
            common = int(np.bincount(codes[i], minlength=size).argmax())
            self._levels[i] = np.append(np.delete(np.arange(size), common), common)
            moved.append(np.argsort(self._levels[i]).astype(codes.dtype)[codes[i]])
        self._one_hot = OneHot(moved, sizes, threads)
        self._groups = self._grouped()

    def gather(self, tables: FloatArray) -> FloatArray:
        """(r, m) sum of the (keys, m) tables of the pairs at every row."""
        return np.stack([self._one_hot.quadratic(self._form(column)) for column in tables.T], axis=1)

    def scatter(self, values: FloatArray) -> FloatArray:
        """(keys, m) sums of (r, m) values in the keys of the pairs, from the first key of the run on."""
        base = int(self._key_start[0])
        out = np.zeros((int(self._key_start[-1]) - base, values.shape[1]))
        for o, column in enumerate(values.T):
            products = self._one_hot.products(column)
            for keys, first, second in self._groups:
                out[keys - base, o] = restored(products, first, second)
        return out

    def _form(self, table: FloatArray) -> FloatArray:
        """C: differences from the left-out levels, whose values go to the constant."""
        form = np.zeros((len(self._one_hot), len(self._one_hot)))
        for keys, first, second in self._groups:
            values = table[keys]
            corner = values[:, -1:, -1:]
            form[first[:, :, None], second[:, None, :]] = (
                values[:, :-1, :-1] - values[:, :-1, -1:] - values[:, -1:, :-1] + corner
            )
            np.add.at(form[-1], first, values[:, :-1, -1] - corner[:, :, 0])
            np.add.at(form[-1], second, values[:, -1, :-1] - corner[:, :, 0])
            form[-1, -1] += corner.sum()
        return form

    def _grouped(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """For pairs of one shape: (b, N_i, N_j) keys, the left-out levels last, and (b, N - 1) columns of each."""
        start = dict(zip(self._features.tolist(), self._one_hot.start.tolist(), strict=False))
        shapes, group = np.unique(self._sizes[self._pairs], axis=0, return_inverse=True)
        out = []
        for k, (n_i, n_j) in enumerate(shapes.tolist()):
            members = np.flatnonzero(group.ravel() == k)
            i, j = self._pairs[members].T.tolist()
            rows, columns = np.stack([self._levels[f] for f in i]), np.stack([self._levels[f] for f in j])
            keys = self._key_start[members][:, None, None] + rows[:, :, None] * n_j + columns[:, None, :]
            first = np.array([start[f] for f in i])[:, None] + np.arange(n_i - 1)
            second = np.array([start[f] for f in j])[:, None] + np.arange(n_j - 1)
            out.append((keys, first, second))
        return out


def products_are_faster(layout: Layout) -> bool:
    """Whether the subsets are pairs, and dense enough that products of all columns cost less than reading tables."""
    if not len(layout.order) or not (layout.order == 2).all():
        return False
    columns = 1 + int((layout.sizes[np.unique(layout.members[:, :2])] - 1).sum())
    return columns * columns <= PRODUCTS_PER_READ * len(layout.order)
