"""Families of feature subsets: closed downward, in canonical order (by size, then lexicographically)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from math import comb

from exanova.typing import Subset

LARGEST_LISTING = 20_000_000
"""The largest number of subsets that is ever listed."""

SUBSET_BYTES = 250
"""Memory per listed subset, including the set that detects duplicates and the sort keys."""


def listable(memory_limit: int | None) -> int:
    """How many subsets may be listed in ``memory_limit`` bytes.

    >>> listable(25_000), listable(None)
    (100, 20000000)
    """
    return LARGEST_LISTING if memory_limit is None else min(LARGEST_LISTING, memory_limit // SUBSET_BYTES)


def canonical_key(subset: Subset) -> tuple[int, Subset]:
    """Sort key of the canonical order.

    >>> sorted([(1, 2), (3,), (), (0, 3)], key=canonical_key)
    [(), (3,), (0, 3), (1, 2)]
    """
    return len(subset), subset


def up_to_order(features: Iterable[int], max_order: int) -> list[Subset]:
    """Every subset of ``features`` with at most ``max_order`` members, in canonical order.

    >>> up_to_order([0, 2, 5], 2)
    [(), (0,), (2,), (5,), (0, 2), (0, 5), (2, 5)]
    """
    features = sorted(features)
    return [s for k in range(min(max_order, len(features)) + 1) for s in combinations(features, k)]


def close_downward(subsets: Iterable[Iterable[int]]) -> list[Subset]:
    """The smallest family that contains ``subsets``, the empty set and every subset of a member, in canonical order.

    >>> close_downward([(2, 1), (0,)])
    [(), (0,), (1,), (2,), (1, 2)]
    """
    family: set[Subset] = {()}
    for subset in subsets:
        _add_parts(family, subset)
    return sorted(family, key=canonical_key)


def closure_size(subsets: Iterable[Iterable[int]], enough: int) -> int:
    """The size of ``close_downward(subsets)``; counting stops once it exceeds ``enough``.

    >>> closure_size([(0, 1), (1, 2)], 100), closure_size([(0, 1), (1, 2), (3, 4)], 5)
    (6, 6)
    """
    family: set[Subset] = {()}
    for subset in subsets:
        _add_parts(family, subset)
        if len(family) > enough:
            break
    return len(family)


def _add_parts(family: set[Subset], subset: Iterable[int]) -> None:
    """Add a subset and all of its subsets to a family."""
    members = tuple(sorted(set(subset)))
    if members not in family:
        family.update(s for k in range(1, len(members) + 1) for s in combinations(members, k))


def closure_at_most(subsets: Collection[Subset]) -> int:
    """An upper bound on the size of ``close_downward(subsets)``, without listing its members.

    For each order, the smaller of two counts: subsets of the members, added up, and subsets of all features. The bound
    is exact for one subset, for pairs, and for all subsets up to an order.

    >>> closure_at_most([(0, 1, 2)]), closure_at_most([(0, 1), (1, 2)]), len(close_downward([(0, 1), (1, 2)]))
    (8, 6, 6)
    """
    features, sizes = len({i for s in subsets for i in s}), Counter(map(len, subsets))
    largest = max(sizes, default=0)
    parts = (sum(count * comb(size, k) for size, count in sizes.items()) for k in range(1, largest + 1))
    return 1 + sum(min(comb(features, k), bound) for k, bound in enumerate(parts, start=1))


def proper_parts(subset: Subset) -> Iterator[Subset]:
    """The non-empty proper subsets.

    >>> list(proper_parts((1, 4, 6)))
    [(1,), (4,), (6,), (1, 4), (1, 6), (4, 6)]
    """
    for size in range(1, len(subset)):
        yield from combinations(subset, size)


def by_order(family: Iterable[Subset]) -> Iterator[tuple[int, list[Subset]]]:
    """Group a canonical family by the size of its members.

    >>> [(k, len(group)) for k, group in by_order([(), (0,), (1,), (0, 1)])]
    [(0, 1), (1, 2), (2, 1)]
    """
    group: list[Subset] = []
    for subset in family:
        if group and len(subset) != len(group[0]):
            yield len(group[0]), group
            group = []
        group.append(subset)
    if group:
        yield len(group[0]), group
