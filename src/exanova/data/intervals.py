"""Edges with few digits, and intervals as text: the shortest decimal between neighbours, and on which side it lies.

Bin ``k`` of the edges ``e_0 < ... < e_K`` is ``[e_k, e_(k+1))``; the first and the last reach beyond their ends. A cut
just above a number v ("up to v") is the edge that follows v among floating-point numbers, and is written with v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_DOWN, Decimal

import numpy as np
from numpy.typing import NDArray

from exanova.data.levels import ANY_VALUE
from exanova.typing import FloatArray, IntArray

PLAIN_FROM, PLAIN_BELOW = 1e-5, 1e16
"""Sizes between which a number is written without an exponent."""


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
            inner.append(round_between(float(values[below]), float(values[above])))
    return (float(values[0]), *inner, float(values[-1]))


def round_between(low: float, high: float) -> float:
    """The number e with ``low < e <= high`` that takes fewest digits to write; of several the one nearest the middle.

    >>> round_between(2437.3, 2612.9), round_between(0.12, 0.19), round_between(-3.0, 7.0), round_between(1.0, 1.5)
    (2500.0, 0.15, 0.0, 1.2)
    """
    if low < 0.0 <= high:
        return 0.0
    below, above = Decimal(repr(low)), Decimal(repr(high))
    middle = (below + above) / 2
    power = max(abs(below), abs(above)).adjusted()
    while True:
        step = Decimal(1).scaleb(power)
        highest = (above / step).to_integral_value(ROUND_FLOOR)
        count = min((middle / step).to_integral_value(ROUND_HALF_DOWN), highest)
        # Of neighbouring floats the middle of their texts may round to the lower one; the higher one itself does not.
        for number in (count, count + 1, highest):
            found = number * step
            if below < found <= above and low < float(found) <= high:
                return float(found)
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


def interval_labels(edges: Sequence[float], alone: Sequence[bool] | NDArray[np.bool_], whole: bool) -> tuple[str, ...]:
    """Each bin as text; the first and the last have one end only, because rows beyond the range fall into them.

    >>> interval_labels([0.5, 1.25, 3.0, 7.0], [False] * 3, whole=False)
    ('< 1.25', '[1.25, 3)', '>= 3')
    >>> interval_labels([0.0, 5e-324, 2500.0, 9e4], [True, False, False], whole=False)
    ('0', '(0, 2500)', '>= 2500')
    """
    if len(edges) == 2:
        return (ANY_VALUE,)
    last = len(edges) - 2
    return tuple(_label(k, last, edges[k], edges[k + 1], bool(alone[k]), whole) for k in range(last + 1))


def _label(k: int, last: int, low: float, high: float, alone: bool, whole: bool) -> str:
    if alone and (k in (0, last) or high <= low + whole or math.nextafter(low, math.inf) == high):
        return number_text(low)
    if whole and 0 < k < last and high == low + 1:
        return number_text(low)
    (open_low, from_), (open_high, to) = _ends(low), _ends(high)
    if k == 0:
        return f"<= {to}" if open_high else f"< {to}"
    if k == last:
        return f"> {from_}" if open_low else f">= {from_}"
    return f"{'(' if open_low else '['}{from_}, {to}{']' if open_high else ')'}"


def _ends(edge: float) -> tuple[bool, str]:
    """Whether an edge is written as the number just below it, and that number or the edge as text."""
    under = math.nextafter(edge, -math.inf)
    written, other = number_text(edge), number_text(under)
    return (True, other) if len(other) < len(written) and math.isfinite(under) else (False, written)
