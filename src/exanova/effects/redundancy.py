"""Which effects are not determined by the model alone: subsets that can express parts of each other on the support.

The functions of a family may be linearly dependent on the rows. Let Z be an orthonormal basis of the dependences, the
null space of Gamma, one row for each function. An effect f_A is determined exactly if the rows of A in Z vanish:
otherwise a dependence can be added to the decomposition that changes f_A but no fitted value. Two subsets share if the
block (Z Z^T)_(A, B) of the projector on the dependences does not vanish. Neither depends on the bases of the subsets
or on the route.

Two identical columns have one dependence for each function, and each column shares with the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.parallel import suitable_blas
from exanova.solve.elimination import orthonormalised
from exanova.typing import FloatArray, IntArray

TILE = 1024
"""Functions whose blocks of the projector are computed together."""


@dataclass(frozen=True)
class Redundancy:
    """A subset whose effect is not determined: other subsets can express part of it on this support.

    Attributes:
        features: the subset.
        shared_with: the subsets that can express part of it, in canonical order.
    """

    features: tuple[str, ...]
    shared_with: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        shown = [" x ".join(s) or "the intercept" for s in self.shared_with[:6]]
        more = f" and {len(self.shared_with) - 6} more" if len(self.shared_with) > 6 else ""
        return f"{' x '.join(self.features)} ~ {', '.join(shown)}{more}"


def sharing_subsets(
    null: FloatArray, subset_of: IntArray, independent: FloatArray | None = None
) -> dict[int, list[int]]:
    """For every subset whose effect is not determined, the other subsets with which it shares.

    Args:
        null: (q, k) any basis of the dependences among q functions.
        subset_of: (q,) number of the subset of each function, non-decreasing.
        independent: (q, rank) instead of ``null``, an orthonormal basis of its orthogonal complement.

    >>> null = np.array([[0.0], [1.0], [-1.0], [0.0]])
    >>> sharing_subsets(null, np.array([0, 1, 2, 3]))
    {1: [2], 2: [1]}
    """
    if independent is None and not null.shape[1]:
        return {}
    z = orthonormalised(null) if independent is None else independent
    part = np.square(z).sum(axis=1)
    # Blocks of Z Z^T and of I - Z Z^T differ only on the diagonal.
    size = np.bincount(subset_of, weights=part if independent is None else 1.0 - part)
    involved = (size > tolerances.DEPENDENCE**2)[subset_of]
    z, owner = z[involved], subset_of[involved]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    subsets = owner[first]
    partners: list[list[int]] = [[] for _ in subsets]
    ends = [*first[1:], len(owner)]
    a = 0
    while a < len(subsets):
        b = max(a + 1, int(np.searchsorted(ends, first[a] + TILE, side="right")))
        shares = _blocks_above(z[first[a] :], int(ends[b - 1] - first[a]), first[a:] - first[a], b - a)
        for k in range(a, len(subsets)):  # the projector is symmetric
            partners[k] += (subsets[a:][shares[k - a]] if k < b else subsets[a:b][shares[:, k - a]]).tolist()
        a = b
    return dict(zip(subsets.tolist(), partners, strict=True))


def _blocks_above(z: FloatArray, rows: int, first: IntArray, count: int) -> NDArray[np.bool_]:
    """(count, S) which blocks of Z Z^T in its first ``rows`` do not vanish, except those on the diagonal.

    ``first``: (S,) where the functions of each subset begin, of which ``count`` are in these rows.
    """
    with suitable_blas(float(rows) * z.size):
        squares = np.square(z[:rows] @ z.T)
    blocks = np.add.reduceat(np.add.reduceat(squares, first, axis=1), first[:count], axis=0)
    shares = np.asarray(blocks > tolerances.DEPENDENCE**2)
    shares[range(count), range(count)] = False
    return shares
