"""Compiled inner loop of Shapley values; imported only when there are many rows to explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.compiled import compiled
from exanova.design.pass_kernels import fill_keys_checked

BLOCK = 512
"""Rows per block: with hundreds of features, their values for every feature fit in the second-level cache."""


@compiled()
def share_kernel(
    codes: Any,
    tables: Any,
    order: Any,
    members: Any,
    sizes: Any,
    chain: Any,
    key_start: Any,
    lookup: Any,
    out: Any,
) -> None:
    """Add the share of every effect to each of its features in ``out`` (d, n, m)."""
    n, m = out.shape[1], out.shape[2]
    keys, shares = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK)
    for a in range(0, n, BLOCK):
        b = min(n, a + BLOCK)
        for s in range(order.shape[0]):
            if order[s] == 0:
                continue
            fill_keys_checked(codes, members, sizes, chain, lookup, s, order[s], a, b, keys)
            start = key_start[s]
            if m == 1:
                for t in range(b - a):
                    shares[t] = tables[start + keys[t], 0] if keys[t] >= 0 else 0.0
                for j in range(order[s]):
                    own = out[members[s, j], a:b, 0]
                    for t in range(b - a):
                        own[t] += shares[t]
                continue
            for j in range(order[s]):
                feature = members[s, j]
                for t in range(b - a):
                    if keys[t] >= 0:
                        for o in range(m):
                            out[feature, a + t, o] += tables[start + keys[t], o]
