"""Families a user names: lists of subsets, graphs of pairs, neighbourhoods of a grid of pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from exanova.design.subsets import canonical_key, close_downward
from exanova.errors import InputError, InputTypeError, UnknownFeatureError
from exanova.typing import Subset


def neighbours(shape: Sequence[int], radius: int = 1) -> list[tuple[int, int]]:
    """Pairs of cells of a grid at most ``radius`` apart on every axis, as column positions in row-major order.

    For tables whose columns are the pixels of an image:
    ``FunctionalANOVA(interactions=exanova.neighbours((28, 28)))``.

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
    steps = [s for s in product(range(-radius, radius + 1), repeat=len(sizes)) if s > (0,) * len(sizes)]
    pairs = []
    for place, cell in enumerate(product(*(range(n) for n in sizes))):
        for step in steps:
            other = [c + s for c, s in zip(cell, step, strict=True)]
            if all(0 <= c < n for c, n in zip(other, sizes, strict=True)):
                pairs.append((place, _position(other, sizes)))
    return pairs


def named_family(interactions: Any, names: Sequence[str], sizes: Sequence[int]) -> tuple[Subset, ...]:
    """The subsets a user named, closed downward, with every main effect; constant features are left out.

    ``interactions``: subsets of feature names or column positions; a mapping from a feature to those it interacts
    with; or a graph with ``edges``.

    >>> named_family([("a", "b")], ["a", "b", "c"], [2, 2, 2])
    ((), (0,), (1,), (2,), (0, 1))
    """
    subsets = [_subset(entry, names) for entry in _entries(interactions)]
    if len(set(subsets)) < len(subsets):
        repeated = next(s for s in subsets if subsets.count(s) > 1)
        raise InputError(
            f"interactions= names {' x '.join(names[i] for i in repeated)} more than once; name each subset once."
        )
    varying = {i for i, n in enumerate(sizes) if n > 1}
    kept = [tuple(i for i in s if i in varying) for s in subsets]
    return tuple(sorted(close_downward([*kept, *((i,) for i in varying)]), key=canonical_key))


def _entries(interactions: Any) -> list[Iterable[Any]]:
    if hasattr(interactions, "edges"):
        edges = interactions.edges() if callable(interactions.edges) else interactions.edges
        return _undirected(tuple(edge)[:2] for edge in edges)
    if isinstance(interactions, Mapping):
        return _undirected((a, b) for a, others in interactions.items() for b in _several(a, others))
    if isinstance(interactions, str) or not isinstance(interactions, Iterable):
        raise InputTypeError(
            f"interactions={interactions!r} was given; expected a list of subsets such as [('a', 'b')], a mapping, "
            "a graph with edges, or neighbours(shape)."
        )
    return list(interactions)


def _undirected(pairs: Iterable[tuple[Any, ...]]) -> list[Iterable[Any]]:
    """Each pair once, whichever way round and however often a graph or mapping holds it."""
    once = {frozenset(pair): pair for pair in pairs}
    return list(once.values())


def _several(feature: Any, others: Any) -> Iterable[Any]:
    if isinstance(others, str) or not isinstance(others, Iterable):
        raise InputTypeError(
            f"interactions= maps {feature!r} to {others!r}; expected a list of features, as {{'a': ['b', 'c']}}."
        )
    return others


def _subset(entry: Any, names: Sequence[str]) -> Subset:
    if isinstance(entry, str) or not isinstance(entry, Iterable):
        raise InputTypeError(f"interactions= holds {entry!r}; each subset is a tuple of feature names, as ('a', 'b').")
    members = [_feature(member, names) for member in entry]
    if not members:
        raise InputError("interactions= holds an empty subset; the intercept is always there, leave it out.")
    if len(set(members)) < len(members):
        raise InputError(f"interactions= holds {tuple(entry)!r}, which names a feature twice.")
    return tuple(sorted(members))


def _feature(member: Any, names: Sequence[str]) -> int:
    if isinstance(member, str):
        if member not in names:
            raise UnknownFeatureError(
                f"interactions= names {member!r}, which is not a column; the columns are {', '.join(names[:20])}"
                + (", ..." if len(names) > 20 else ".")
            )
        return list(names).index(member)
    if not isinstance(member, bool) and hasattr(member, "__index__") and 0 <= int(member) < len(names):
        return int(member)
    raise UnknownFeatureError(
        f"interactions= names {member!r}; expected a column name, or a position from 0 to {len(names) - 1}."
    )


def _is_positive(number: Any) -> bool:
    return not isinstance(number, bool) and hasattr(number, "__index__") and int(number) >= 1


def _position(cell: Sequence[int], sizes: Sequence[int]) -> int:
    place = 0
    for c, n in zip(cell, sizes, strict=True):
        place = place * n + c
    return place
