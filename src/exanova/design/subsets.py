"""Families of feature subsets: closed downward, in canonical order (by size, then lexicographically)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from exanova.typing import Subset


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
    """The smallest family holding ``subsets``, the empty set and every subset of a member, in canonical order.

    >>> close_downward([(2, 1), (0,)])
    [(), (0,), (1,), (2,), (1, 2)]
    """
    family: set[Subset] = {()}
    for subset in subsets:
        members = tuple(sorted(set(subset)))
        if members not in family:
            family.update(s for k in range(1, len(members) + 1) for s in combinations(members, k))
    return sorted(family, key=canonical_key)


def proper_parts(subset: Subset) -> Iterator[Subset]:
    """The subsets strictly inside, the empty one left out.

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
