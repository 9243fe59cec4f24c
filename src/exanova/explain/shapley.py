"""Shapley values of rows: every effect shared equally among its features, all outputs at once."""

from __future__ import annotations

import numpy as np

from exanova import parallel
from exanova.design import few, passes
from exanova.design.cells import CellIndex
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray

CHUNK = 4096
"""Rows explained at once by one thread: what bounds memory beside the result itself."""


def shapley_values(
    index: CellIndex, values: FloatArray, codes: Codes, threads: int = 1, progress: Progress | None = None
) -> FloatArray:
    """(n, d, m) sum over A containing i of f_A / |A|; cells never observed add nothing.

    >>> from exanova.design.cells import extend, intercept_index
    >>> codes = np.array([[0, 1], [0, 1]], dtype=np.uint8)
    >>> index = extend(intercept_index([2, 2], 2.0), [(0,), (1,)], codes, np.ones(2))
    >>> shapley_values(index, np.array([[1.0], [-2.0], [2.0], [0.5], [-0.5]]), codes)[:, :, 0].tolist()
    [[-2.0, 0.5], [2.0, -0.5]]
    """
    n, d, m = codes.shape[1], codes.shape[0], values.shape[1]
    out = np.empty((n, d, m))
    order = np.maximum(index.layout.order, 1)
    shares = values / np.repeat(order, np.diff(index.cell_start))[:, None]
    tables = index.to_keys(shares)
    share_chunk = _few_rows if n <= few.ROWS else _plain_chunk
    if n * len(index.subsets) >= passes.COMPILED_FROM:
        share_chunk = _compiled_chunk
    if progress:
        progress.phase("explaining rows", n)

    def task(rows: slice) -> None:
        out[rows] = share_chunk(index, tables, np.ascontiguousarray(codes[:, rows])).transpose(1, 0, 2)
        if progress:
            progress.step(rows.stop - rows.start)

    parallel.run(task, [slice(a, min(n, a + CHUNK)) for a in range(0, n, CHUNK)], threads)
    return out


def _plain_chunk(index: CellIndex, tables: FloatArray, codes: Codes) -> FloatArray:
    """(d, n, m) by NumPy, one subset after the other."""
    out = np.zeros((codes.shape[0], codes.shape[1], tables.shape[1]))
    for s, subset in enumerate(index.subsets):
        if not subset:
            continue
        keys = passes.keys_of_rows(index.layout, codes, s)
        shared = np.where((keys >= 0)[:, None], tables[index.layout.key_start[s] + np.maximum(keys, 0)], 0.0)
        for feature in subset:
            out[feature] += shared
    return out


def _few_rows(index: CellIndex, tables: FloatArray, codes: Codes) -> FloatArray:
    """(d, n, m) with all subsets at once; every sum is made in the order of the subsets, as in the other two."""
    layout, (d, n), m = index.layout, codes.shape, tables.shape[1]
    keys = few.keys_of_subsets(layout, codes)
    shared = np.where((keys >= 0)[:, :, None], tables[layout.key_start[:-1, None] + np.maximum(keys, 0)], 0.0)
    subset, place = np.nonzero(np.arange(layout.members.shape[1]) < layout.order[:, None])
    feature = layout.members[subset, place]
    columns = shared.reshape(len(keys), n * m)[subset].T
    sums = [np.bincount(feature, weights=column, minlength=d) for column in columns]
    return np.array(sums, dtype=np.float64).T.reshape(d, n, m)


def _compiled_chunk(index: CellIndex, tables: FloatArray, codes: Codes) -> FloatArray:
    from exanova.explain.kernels import share_kernel

    out = np.zeros((codes.shape[0], codes.shape[1], tables.shape[1]))
    layout = index.layout
    share_kernel(
        codes, tables, layout.order, layout.members, layout.sizes, layout.chain, layout.key_start, layout.lookup, out
    )
    return out
