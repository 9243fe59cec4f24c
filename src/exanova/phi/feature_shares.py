"""Read tables at rows and add them to every feature of their subset: the pass behind Shapley values.

Three implementations: all subsets at once for a few rows, one subset after the other in NumPy, and a compiled loop.
Each adds in the order of the subsets, so that the three agree to the last bit.
"""

from __future__ import annotations

import numpy as np

from exanova import parallel
from exanova.design import few, passes
from exanova.design.family import Family
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray

CHUNK = 4096
"""Rows processed at once by one thread, which bounds the memory needed besides the result."""


def share_among_features(
    family: Family, tables: FloatArray, codes: Codes, threads: int = 1, progress: Progress | None = None
) -> FloatArray:
    """(n, d, m) for each feature, the sum of the (keys, m) ``tables`` of its subsets; unobserved cells add nothing."""
    n, d, m = codes.shape[1], codes.shape[0], tables.shape[1]
    out = np.empty((n, d, m))
    share_chunk = _few_rows if few.applies(n, len(family.subsets), m) else _plain_chunk
    if n * len(family.subsets) >= passes.COMPILED_FROM:
        share_chunk = _compiled_chunk
    if progress:
        progress.phase("explaining rows", n)

    def task(rows: slice) -> None:
        out[rows] = share_chunk(family, tables, np.ascontiguousarray(codes[:, rows])).transpose(1, 0, 2)
        if progress:
            progress.step(rows.stop - rows.start)

    parallel.run(task, [slice(a, min(n, a + CHUNK)) for a in range(0, n, CHUNK)], threads)
    return out


def _plain_chunk(family: Family, tables: FloatArray, codes: Codes) -> FloatArray:
    """(d, n, m) by NumPy, one subset after the other."""
    out = np.zeros((codes.shape[0], codes.shape[1], tables.shape[1]))
    for s, subset in enumerate(family.subsets):
        if not subset:
            continue
        keys = passes.keys_of_rows(family.layout, codes, s, new=True)
        shared = np.where((keys >= 0)[:, None], tables[family.layout.key_start[s] + np.maximum(keys, 0)], 0.0)
        for feature in subset:
            out[feature] += shared
    return out


def _few_rows(family: Family, tables: FloatArray, codes: Codes) -> FloatArray:
    """(d, n, m) with all subsets at once, summed in the order of the subsets as in the other two."""
    layout, (d, n), m = family.layout, codes.shape, tables.shape[1]
    keys = few.keys_of_subsets(layout, codes)
    shared = np.where((keys >= 0)[:, :, None], tables[layout.key_start[:-1, None] + np.maximum(keys, 0)], 0.0)
    subset, place = np.nonzero(np.arange(layout.members.shape[1]) < layout.order[:, None])
    feature = layout.members[subset, place]
    columns = shared.reshape(len(keys), n * m)[subset].T
    sums = [np.bincount(feature, weights=column, minlength=d) for column in columns]
    return np.array(sums, dtype=np.float64).T.reshape(d, n, m)


def _compiled_chunk(family: Family, tables: FloatArray, codes: Codes) -> FloatArray:
    from exanova.phi.share_kernels import share_kernel

    out = np.zeros((codes.shape[0], codes.shape[1], tables.shape[1]))
    layout = family.layout
    share_kernel(
        codes, tables, layout.order, layout.members, layout.sizes, layout.chain, layout.key_start, layout.lookup, out
    )
    return out
