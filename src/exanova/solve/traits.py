"""The names of the routes, and how each of them solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

RouteName = Literal["auto", "grid", "dense", "moments", "matrix-free", "completion"]
"""What ``route=`` may be: one of :data:`TRAITS`, or the cheapest that fits."""


@dataclass(frozen=True)
class Traits:
    """How a route solves.

    Attributes:
        iterates: it stops when its residual is small, or when it has no iterations left.
        orthogonal: it factorises the functions on the rows, not their Gram matrix, so that small directions and normal
            equations need no further check.
        whole: it solves for all orders at once, on a table in which every combination occurs.
        repeats: with all orders requested, it is run again with one order more while a residual remains.
        ranks: it determines the rank.
        by_pattern: it determines the rank from the pattern of the observed cells, whatever the weights, so that there
            are no small directions.
    """

    iterates: bool = False
    orthogonal: bool = False
    whole: bool = False
    repeats: bool = False
    ranks: bool = True
    by_pattern: bool = False


TRAITS: Mapping[str, Traits] = {
    "grid": Traits(iterates=True, whole=True),
    "dense": Traits(orthogonal=True),
    "moments": Traits(repeats=True),
    "matrix-free": Traits(iterates=True, ranks=False),
    "completion": Traits(by_pattern=True),
}
"""Every route."""


def traits_of(route: str) -> Traits:
    """The traits of a route in a plan or a certificate; a selection, which is no route, eliminates a Gram matrix.

    >>> traits_of("dense").orthogonal, traits_of("screen selection").orthogonal
    (True, False)
    """
    return TRAITS.get(route, Traits())
