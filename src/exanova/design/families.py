"""Families specified by the user: lists of subsets, graphs of pairs, neighbourhoods in a grid of pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from exanova.design.memory import resolve_limit
from exanova.design.subsets import close_downward, closure_at_most, closure_size, listable
from exanova.errors import InputError, InputTypeError, MemoryLimitError, UnknownFeatureError
from exanova.messages import Parameter
from exanova.typing import Subset


def neighbours(shape: Sequence[int], radius: int = 1) -> list[tuple[int, int]]:
    """Pairs of cells of a grid at most ``radius`` apart on every axis, as column positions in row-major order.

    For tables whose columns are the pixels of an image:
    ``FunctionalANOVA(subsets=exanova.neighbours((28, 28)))``.

    >>> neighbours((2, 2))
    [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    >>> neighbours((3,))
    [(0, 1), (1, 2)]
    """
    sizes = list(shape) if isinstance(shape, Iterable) else []
    if not sizes or not all(_is_positive(n) for n in (*sizes, radius)):
        raise InputError(
            f"shape={shape!r}, radius={radius!r} were given; expected positive whole numbers, as in "
            "neighbours((28, 28), radius=1)."
        )
    _refuse_neighbours(sizes, int(radius))
    reach = [range(-min(int(radius), n - 1), min(int(radius), n - 1) + 1) for n in sizes]
    steps = [s for s in product(*reach) if s > (0,) * len(sizes)]
    pairs = []
    for place, cell in enumerate(product(*(range(n) for n in sizes))):
        for step in steps:
            other = [c + s for c, s in zip(cell, step, strict=True)]
            if all(0 <= c < n for c, n in zip(other, sizes, strict=True)):
                pairs.append((place, _position(other, sizes)))
    return pairs


def _refuse_neighbours(sizes: Sequence[int], radius: int) -> None:
    """Refuse more pairs than can be listed. The number of pairs is computed axis by axis, without listing them."""
    reach = [min(radius, n - 1) for n in sizes]
    within = [n + far * (2 * n - far - 1) for n, far in zip(sizes, reach, strict=True)]
    count, most = (prod(within) - prod(sizes)) // 2, listable(resolve_limit(None))
    if count > most:
        raise MemoryLimitError(
            f"shape={tuple(sizes)}, radius={radius} has {count:,} pairs of neighbours, and at most {most:,} can be "
            "listed in the available memory. What would fit: a smaller radius=, or a coarser grid."
        )


def named_family(
    given: Any, names: Sequence[str], sizes: Sequence[int], memory_limit: int | None = None
) -> tuple[Subset, ...]:
    """The user's subsets, closed downward, with every main effect and without constant features.

    ``given``: subsets of feature names or column positions; a mapping from a feature to those it interacts
    with; or a graph with ``edges``. A family too large to list in ``memory_limit`` bytes is refused before listing.

    >>> named_family([("a", "b")], ["a", "b", "c"], [2, 2, 2])
    ((), (0,), (1,), (2,), (0, 1))
    """
    most = listable(memory_limit)
    subsets = _named_subsets(given, names, most)
    varying = {i for i, n in enumerate(sizes) if n > 1}
    kept = {tuple(i for i in s if i in varying) for s in subsets} | {(i,) for i in varying}
    _refuse_closure(kept, most)
    return tuple(close_downward(kept))


def _refuse_closure(subsets: set[Subset], most: int) -> None:
    """Refuse a family whose downward closure has more than ``most`` members, before listing it.

    Three checks, cheapest first: the subsets of the largest member alone; an upper bound on the closure; a count,
    member by member, that stops at ``most``.
    """
    largest = max(map(len, subsets), default=0)
    counted = 2**largest
    if counted <= most and closure_at_most(subsets) > most:
        counted = closure_size(subsets, most)
    if counted > most:
        raise MemoryLimitError(
            Parameter("subsets"),
            f" names {len(subsets):,} subsets, main effects included, the largest of {largest} features: with all "
            f"of their parts, which a decomposition needs, these are at least {counted:,} subsets, and at most "
            f"{most:,} can be listed within the memory limit",
            remedy=[
                f"What would fit: subsets of fewer features (one of {max(0, most.bit_length() - 1)} has "
                f"{2 ** max(0, most.bit_length() - 1):,} parts), fewer of them, or a larger ",
                Parameter("memory_limit"),
            ],
        )


def _named_subsets(given: Any, names: Sequence[str], most: int) -> dict[Subset, None]:
    """The subsets in the order given, without duplicates."""
    entries, both_ways = _entries(given)
    position = {name: i for i, name in reversed(list(enumerate(names)))}
    named: dict[Subset, None] = {}
    for entry in entries:
        subset = _subset(entry, position)
        if subset in named and not both_ways:
            raise InputError(
                Parameter("subsets"),
                f" names {' x '.join(names[i] for i in subset)} more than once",
                remedy="name each subset once",
            )
        named[subset] = None
        if len(named) > most:
            raise MemoryLimitError(
                Parameter("subsets"),
                f" names more than {most:,} subsets, which is all that can be listed within the memory limit",
                remedy=["What would fit: fewer subsets, or a larger ", Parameter("memory_limit")],
            )
    return named


def _entries(given: Any) -> tuple[Iterable[Any], bool]:
    """The entries to read as subsets, and whether duplicates are allowed (a graph may list a pair in both orders)."""
    if hasattr(given, "edges"):
        edges = given.edges() if callable(given.edges) else given.edges
        return (tuple(edge)[:2] for edge in edges), True
    if isinstance(given, Mapping):
        return ((a, b) for a, others in given.items() for b in _several(a, others)), True
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputTypeError.given(
            "subsets",
            given,
            "a list of subsets such as [('a', 'b')], a mapping, a graph with edges, or neighbours(shape)",
        )
    return given, False


def _several(feature: Any, others: Any) -> Iterable[Any]:
    if isinstance(others, str) or not isinstance(others, Iterable):
        raise InputTypeError(
            Parameter("subsets"),
            f" maps {feature!r} to {others!r}",
            expected="a list of features, as {'a': ['b', 'c']}",
        )
    return others


def _subset(entry: Any, position: Mapping[str, int]) -> Subset:
    if isinstance(entry, str) or not isinstance(entry, Iterable):
        raise InputTypeError(
            Parameter("subsets"), f" holds {entry!r}", expected="tuples of feature names, as ('a', 'b')"
        )
    members = [_feature(member, position) for member in entry]
    if not members:
        raise InputError(
            Parameter("subsets"), " holds an empty subset", remedy="leave it out; the intercept is always included"
        )
    if len(set(members)) < len(members):
        raise InputError(
            Parameter("subsets"), f" holds {tuple(entry)!r}, which names a feature twice", remedy="name it once"
        )
    return tuple(sorted(members))


def _feature(member: Any, position: Mapping[str, int]) -> int:
    if isinstance(member, str):
        if member not in position:
            columns = sorted(position, key=position.__getitem__)
            raise UnknownFeatureError(
                Parameter("subsets"),
                f" names {member!r}, which is not a column",
                remedy=f"the columns are {', '.join(columns[:20])}{', ...' if len(columns) > 20 else ''}",
            )
        return position[member]
    if not isinstance(member, bool) and hasattr(member, "__index__") and 0 <= int(member) < len(position):
        return int(member)
    raise UnknownFeatureError(
        Parameter("subsets"),
        f" names {member!r}",
        expected=f"a column name, or a position from 0 to {len(position) - 1}",
    )


def _is_positive(number: Any) -> bool:
    return not isinstance(number, bool) and hasattr(number, "__index__") and int(number) >= 1


def _position(cell: Sequence[int], sizes: Sequence[int]) -> int:
    place = 0
    for c, n in zip(cell, sizes, strict=True):
        place = place * n + c
    return place
