"""Rows of codes packed into as few 64-bit words as hold them, and their order.

Words compare as rows do: first by the first feature, then by the second, and so on. Distinct rows are kept in that
order everywhere, so that nothing depends on the order in which rows were given, or on how they were split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from exanova.typing import Codes, IntArray

Words: TypeAlias = NDArray[np.uint64]
"""(w, n) the words of every row, the one that compares first above the others."""

CAPACITY = 2**64
"""Numbers that one word holds."""


def word_places(sizes: Sequence[int]) -> list[list[int]]:
    """Which features share a word, each in the order of the features.

    >>> word_places([2**40, 2**20, 2**10])
    [[0, 1], [2]]
    """
    places: list[list[int]] = []
    room = 0
    for feature, size in enumerate(sizes):
        if size > room:
            places.append([])
            room = CAPACITY
        places[-1].append(feature)
        room //= max(1, size)
    return places


def pack_rows(codes: Codes | Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> Words:
    """Codes (d, n), each below its size, as words (w, n).

    >>> pack_rows(np.array([[0, 1], [2, 0]]), [2, 3]).tolist()
    [[2, 3]]
    """
    places = word_places(sizes)
    words = np.zeros((len(places), len(codes[0])), dtype=np.uint64)
    for word, members in zip(words, places, strict=True):
        for feature in members:
            word *= np.uint64(max(1, sizes[feature]))
            word += codes[feature].astype(np.uint64)
    return words


def unpack_rows(words: Words, sizes: Sequence[int]) -> Codes:
    """The codes (d, n) behind words (w, n), of the smallest unsigned dtype.

    >>> unpack_rows(np.array([[2, 3]], dtype=np.uint64), [2, 3]).tolist()
    [[0, 1], [2, 0]]
    """
    codes = np.empty((len(sizes), words.shape[1]), dtype=np.min_scalar_type(max(1, *sizes) - 1))
    for word, members in zip(words, word_places(sizes), strict=True):
        rest = word.copy()
        for feature in reversed(members):
            size = np.uint64(max(1, sizes[feature]))
            codes[feature] = rest % size
            rest //= size
    return codes


def order_of(words: Words) -> IntArray:
    """The stable order (n,) of words (w, n); quick for a few sorted runs, and where no first word occurs twice."""
    order = np.argsort(words[0], kind="stable")
    first = words[0][order]
    if len(words) == 1 or (first[1:] != first[:-1]).all():
        return order
    return np.lexsort(words[::-1])


def row_order(codes: Codes, sizes: Sequence[int]) -> IntArray:
    """The order (n,) in which rows of codes (d, n) ascend, the first feature first.

    >>> row_order(np.array([[1, 0, 1], [0, 1, 1]]), [2, 2]).tolist()
    [1, 0, 2]
    """
    return order_of(pack_rows(codes, sizes))


def places_in(order: IntArray) -> IntArray:
    """The place (n,) that each has in an order.

    >>> places_in(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
