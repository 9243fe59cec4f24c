"""Edges with few digits, and intervals as text: the shortest decimal between neighbours, and on which side it lies.

Bin ``k`` of the edges ``e_0 < ... < e_K`` is ``[e_k, e_(k+1))``; the first and the last reach beyond their ends. A cut
just above a number v ("up to v") is the edge that follows v among floating-point numbers, and is written with v.

Numbers of single precision, also those that a column of double precision holds, are written as they were before they
were rounded: 2.96 and not 2.9600000381469727. Their order stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_DOWN, Decimal

import numpy as np
from numpy.typing import NDArray

from exanova.data.levels import ANY_VALUE, LARGEST_SINGLE, shortest
from exanova.typing import FloatArray, IntArray

PLAIN_FROM, PLAIN_BELOW = 1e-5, 1e16
"""Sizes between which a number is written without an exponent."""

DIGITS_OF = 1000
"""Approximate number of values of a column whose digits are examined."""


def edges_between(
    values: FloatArray, starts: IntArray, alone: NDArray[np.bool_], whole: bool, room: tuple[IntArray, IntArray]
) -> tuple[float, ...]:
    """Edges (b + 1,) of the bins of sorted values (k,) that begin at ``starts`` (b,).

    Args:
        values: sorted distinct numbers.
        starts: first value of each bin.
        alone: (b,) bins that hold one value and should hold no other.
        whole: whether the column holds whole numbers only.
        room: (b - 1,) the last value that has to stay below each cut, and the first that has to stay above.

    >>> values, starts = np.array([0.0, 0.31, 2437.3, 2612.9]), np.array([0, 1, 3])
    >>> edges_between(values, starts, np.array([True, False, False]), False, (starts[1:] - 1, starts[1:]))
    (0.0, 5e-324, 2500.0, 2612.9)
    """
    inner = []
    for k, (p, below, above) in enumerate(zip(starts[1:].tolist(), *map(np.ndarray.tolist, room), strict=True)):
        if alone[k + 1]:
            inner.append(float(values[p]))
        elif alone[k]:
            lower = float(values[p - 1])
            inner.append(lower + 1.0 if whole else math.nextafter(lower, math.inf))
        else:
            inner.append(_value_written_so(values, round_between(float(values[below]), float(values[above]))))
    return (float(values[0]), *inner, float(values[-1]))


def _value_written_so(values: FloatArray, edge: float) -> float:
    """The value of single precision that is written like an edge, which then begins a bin; else the edge itself."""
    place = int(np.searchsorted(values, edge))
    near = values[max(0, place - 1) : place + 1].tolist()
    return next((value for value in near if shortest(value) == edge), edge)


def round_between(low: float, high: float) -> float:
    """The number e with ``low < e <= high`` that takes fewest digits to write; of several the one nearest the middle.

    >>> round_between(2437.3, 2612.9), round_between(0.12, 0.19), round_between(-3.0, 7.0), round_between(1.0, 1.5)
    (2500.0, 0.15, 0.0, 1.2)
    >>> round_between(float(np.float32(0.29)), float(np.float32(0.295)))  # not 0.29, which is how the lower is written
    0.292
    """
    if low < 0.0 <= high:
        return 0.0
    texts = shortest(low), shortest(high)
    below, above = map(Decimal, map(repr, texts if texts[0] < texts[1] else (low, high)))
    middle = (below + above) / 2
    power = max(abs(below), abs(above)).adjusted()
    while True:
        step = Decimal(1).scaleb(power)
        highest = (above / step).to_integral_value(ROUND_FLOOR)
        count = min((middle / step).to_integral_value(ROUND_HALF_DOWN), highest)
        # Of neighbouring floats the middle of their texts may round to the lower one; the higher one itself does not.
        for number in (count, count + 1, highest):
            candidate = number * step
            if below < candidate <= above and low < float(candidate) <= high:
                return float(candidate)
            if candidate == above:
                return high
        power -= 1


def number_text(number: float) -> str:
    """A number in full, with the fewest digits that distinguish it from its neighbours.

    >>> number_text(2500.0), number_text(0.00005), number_text(1e-9), number_text(1e22)
    ('2500', '0.00005', '1e-09', '1e+22')
    """
    if number == 0.0 or PLAIN_FROM <= abs(number) < PLAIN_BELOW:
        text = f"{Decimal(repr(number)):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return repr(number)


def are_single(numbers: Iterable[float]) -> bool:
    """Whether numbers come from single precision: all are exact there, and some were written with fewer digits.

    >>> are_single([0.5, 0.10000000149011612]), are_single([0.5, 0.25]), are_single([0.1, 0.10000000149011612])
    (True, False, False)
    """
    values = np.fromiter(numbers, dtype=np.float64)
    if not (np.abs(values) < LARGEST_SINGLE).all() or not (values == values.astype(np.float32)).all():
        return False
    some = values[:: max(1, len(values) // DIGITS_OF)]
    return any(shortest(number) != number for number in some.tolist())


def have_single_ends(edges: Sequence[float]) -> bool:
    """Whether edges are those of a column of single precision: the values of its rows among them say so.

    >>> have_single_ends([0.10000000149011612, 0.5, 0.9]), have_single_ends([0.1, 0.5, 0.9])
    (True, False)
    """
    return any(shortest(near) != near for edge in edges for near in (edge, math.nextafter(edge, -math.inf)))


def interval_labels(
    edges: Sequence[float], alone: Sequence[bool] | NDArray[np.bool_], whole: bool, single: bool = False
) -> tuple[str, ...]:
    """Each bin as text; the first and the last have one end only, because rows beyond the range fall into them.

    Args:
        edges: (b + 1,) the edges.
        alone: (b,) bins that hold one value.
        whole: whether the column holds whole numbers only.
        single: whether it holds numbers of single precision, which are written with their own digits.

    >>> interval_labels([0.5, 1.25, 3.0, 7.0], [False] * 3, whole=False)
    ('< 1.25', '[1.25, 3)', '>= 3')
    >>> interval_labels([0.0, 5e-324, 2500.0, 9e4], [True, False, False], whole=False)
    ('0', '(0, 2500)', '>= 2500')
    """
    if len(edges) == 2:
        return (ANY_VALUE,)
    last = len(edges) - 2
    written = _single_text if single else number_text
    ends = [_end(edge, written) for edge in edges]
    return tuple(
        written(edges[k])
        if _is_one_value(k, last, (edges[k], edges[k + 1]), bool(alone[k]), whole)
        else _label(k, last, ends[k], ends[k + 1])
        for k in range(last + 1)
    )


def _is_one_value(k: int, last: int, bin_: tuple[float, float], alone: bool, whole: bool) -> bool:
    """Whether bin ``k`` is written as the value it begins with."""
    low, high = bin_
    if alone and (k in (0, last) or high <= low + whole or math.nextafter(low, math.inf) == high):
        return True
    return whole and 0 < k < last and high == low + 1


def _label(k: int, last: int, low: tuple[bool, str], high: tuple[bool, str]) -> str:
    (open_low, from_), (open_high, to) = low, high
    if k == 0:
        return f"<= {to}" if open_high else f"< {to}"
    if k == last:
        return f"> {from_}" if open_low else f">= {from_}"
    return f"{'(' if open_low else '['}{from_}, {to}{']' if open_high else ')'}"


def _end(edge: float, text: Callable[[float], str]) -> tuple[bool, str]:
    """Whether an edge is written as the number just below it, and that number or the edge as text."""
    under = math.nextafter(edge, -math.inf)
    written, other = text(edge), text(under)
    return (True, other) if len(other) < len(written) and math.isfinite(under) else (False, written)


def _single_text(number: float) -> str:
    return number_text(shortest(number))
