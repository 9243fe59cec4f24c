"""How many functions a budget should have: nested families, each shrunk, judged by rows that chose nothing.

Where all pairs are affordable no budget is needed: the likelihood holds back what the rows do not carry. In high
dimension screening proposes subsets, and in-sample gain always asks for more of them. So it runs on part of the rows;
the family after each of its rounds is shrunk on the same rows and judged on the others; and the smallest family about
as good as the best says how many functions to ask for when screening all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exanova.design import passes
from exanova.progress import Progress
from exanova.shrink.fit import fit_family
from exanova.solve.plan import Request
from exanova.solve.routes import Data
from exanova.typing import FloatArray, IntArray, Subset

HELD_OUT = 0.25
"""Share of the distinct rows that judge."""

AS_GOOD = 0.002
"""Share of the variance by which a family may be worse than the best and still be preferred for being smaller."""


def split_rows(rows: int, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Numbers of the rows that choose, and of those that judge.

    >>> choose, judge = split_rows(8)
    >>> len(choose), len(judge), len(set(choose) | set(judge))
    (6, 2, 8)
    """
    order = np.random.default_rng(seed).permutation(rows)
    judging = round(rows * HELD_OUT)
    return np.sort(order[judging:]), np.sort(order[:judging])


def part_of(data: Data, rows: IntArray) -> Data:
    """Some of the distinct rows of a sample, in the same codes."""
    within = None if data.within is None else data.within[rows]
    codes = np.ascontiguousarray(data.codes[:, rows])
    return replace(data, codes=codes, weight=data.weight[rows], values=data.values[rows], within=within)


def held_out_errors(
    data: Data, judges: Data, request: Request, families: Sequence[tuple[Subset, ...]], progress: Progress
) -> FloatArray:
    """(F, m) mean squared errors, on the rows of ``judges``, of the shrunken fit of each family to ``data``.

    Both have the same codes. A cell that ``data`` never saw adds nothing.
    """
    codes = judges.codes.astype(np.int32)  # signed codes may lie outside the cells
    out = []
    for family in families:
        found = fit_family(data, request, family, progress)
        fitted = passes.gather(found.index.layout, codes, found.index.to_keys(found.values), request.threads)
        out.append(judges.probability @ (judges.values - fitted) ** 2)
    return np.array(out)


def where_to_stop(errors: FloatArray, variance: FloatArray) -> int:
    """Number of the smallest family that is about as good as the best: ``errors`` (F, m), ``variance`` (m,).

    >>> where_to_stop(np.array([[0.5], [0.2], [0.1], [0.0999], [0.12]]), np.array([1.0]))
    2
    """
    varying = variance > 0
    if not varying.any():
        return 0
    relative = (errors[:, varying] / variance[varying]).mean(axis=1)
    return int(np.flatnonzero(relative <= relative.min() + AS_GOOD)[0])
