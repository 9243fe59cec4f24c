"""``PairList``: millions of pairs of features as two arrays, which reads like a list of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from exanova.typing import IntArray, Subset


class PairList(Sequence[Subset]):
    """Pairs of features, in order; a pair is made when it is read.

    >>> pairs = PairList.of([2, 5, 7])
    >>> list(pairs), pairs[1]
    ([(2, 5), (2, 7), (5, 7)], (2, 7))
    """

    def __init__(self, first: IntArray, second: IntArray) -> None:
        self._first, self._second = first, second

    @classmethod
    def of(cls, features: Sequence[int]) -> PairList:
        """All pairs of increasing ``features``, in lexicographic order."""
        number = np.array(features, dtype=np.int64)
        one, other = np.triu_indices(len(number), 1)
        return cls(number[one], number[other])

    def only(self, numbers: IntArray) -> PairList:
        """Some of the pairs, by their numbers."""
        return PairList(self._first[numbers], self._second[numbers])

    def __len__(self) -> int:
        return len(self._first)

    @overload
    def __getitem__(self, number: int) -> Subset: ...

    @overload
    def __getitem__(self, number: slice) -> PairList: ...

    def __getitem__(self, number: int | slice) -> Subset | PairList:
        if isinstance(number, slice):
            return PairList(self._first[number], self._second[number])
        return int(self._first[number]), int(self._second[number])


def numbers_in(features: Sequence[int], pairs: Iterable[Subset]) -> IntArray:
    """Numbers of ``pairs`` among all pairs of increasing ``features``, in lexicographic order.

    >>> numbers_in([2, 5, 7], [(5, 7), (2, 5)]).tolist()
    [2, 0]
    """
    i, j = np.searchsorted(features, np.array(list(pairs), dtype=np.int64).reshape(-1, 2)).T
    return np.asarray(i * len(features) - i * (i + 1) // 2 + j - i - 1, dtype=np.int64)
