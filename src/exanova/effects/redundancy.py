"""Which effects are not determined by the model alone: subsets that can express parts of each other on the support.

The functions of a family may be linearly dependent on the rows. Let Z be an orthonormal basis of the dependences, the
null space of Gamma, one row for each function. An effect f_A is determined exactly if the rows of A in Z vanish:
otherwise a dependence can be added to the decomposition that changes f_A but no fitted value. Two subsets share if the
block (Z Z^T)_(A, B) of the projector on the dependences does not vanish. Neither depends on the bases of the subsets
or on the route.

Two identical columns have one dependence for each function, and each column shares with the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from exanova.effects.dependence_blocks import DependenceBlocks
from exanova.typing import FloatArray, IntArray


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
) -> Iterator[tuple[int, IntArray]]:
    """Every subset whose effect is not determined, in order, and the other subsets with which it shares.

    One after the other, because of thousands of subsets each may share with each.

    Args:
        null: (q, k) any basis of the dependences among q functions.
        subset_of: (q,) number of the subset of each function, non-decreasing.
        independent: (q, rank) instead of ``null``, an orthonormal basis of its orthogonal complement.

    >>> null = np.array([[0.0], [1.0], [-1.0], [0.0]])
    >>> [(s, others.tolist()) for s, others in sharing_subsets(null, np.array([0, 1, 2, 3]))]
    [(1, [2]), (2, [1])]
    """
    if independent is None and not null.shape[1]:
        return
    first = np.flatnonzero(np.diff(subset_of, prepend=-1))
    blocks = DependenceBlocks.of(null, independent, np.append(first, len(subset_of)))
    involved, subsets = blocks.involved(), subset_of[first]
    for k, own in zip(involved.tolist(), blocks.shared(involved), strict=True):
        yield int(subsets[k]), subsets[own]
