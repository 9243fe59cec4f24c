"""Interaction indices in closed form from Harsanyi dividends: each is a weighted sum over larger subsets.

The effects f_A(x_A) are the dividends of the game v(S) = sum of f_A over A inside S. Every index here reads

    I(S) = sum over T containing S of  w(|S|, |T|) f_T,

so that an index is defined by a table of weights by two sizes. With k the requested order:

    Moebius   1 for T = S
    SII       1 / (t - s + 1)                     SV    SII of single features
    BII       1 / 2^(t - s)                       BV    BII of single features
    k-SII     sum over s <= u <= min(k, t) of  B_(u-s) C(t - s, u - s) / (t - u + 1),  B the Bernoulli numbers
    STII      1 for T = S when s < k;  1 / C(t, k) when s = k
    FSII      1 for T = S;  (-1)^(k-s) s/(k+s) C(k, s) C(t-1, k) / C(t+k-1, k+s)  when t > k
    FBII      1 for T = S;  (-1)^(k-s) C(t-s-1, k-s) / 2^(t-s)                    when t > k
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from exanova.argument_checks import check_choice
from exanova.typing import FloatArray, Subset


def size_weights(index: str, order: int, largest: int) -> FloatArray:
    """(order + 1, largest + 1) weight w(s, t) of a dividend of size t in the index of a subset of size s.

    >>> size_weights("SII", 1, 3)[1].tolist()
    [0.0, 1.0, 0.5, 0.3333333333333333]
    """
    out = np.zeros((order + 1, largest + 1))
    for s in range(1, order + 1):
        for t in range(s, largest + 1):
            out[s, t] = WEIGHTS[index](s, t, order)
    return out


def bernoulli(count: int) -> list[float]:
    """The Bernoulli numbers B_0 .. B_count, with B_1 = -1/2, by their recurrence in exact fractions.

    >>> bernoulli(4)
    [1.0, -0.5, 0.16666666666666666, 0.0, -0.03333333333333333]
    """
    numbers = [Fraction(1)]
    for k in range(1, count + 1):
        numbers.append(-sum(comb(k + 1, j) * numbers[j] for j in range(k)) / Fraction(k + 1))
    return [float(b) for b in numbers]


def largest_order(index: str, order: int, highest: int) -> int:
    """The effective order of an index: 1 for values of single features, and at most that of the highest effect."""
    return 1 if index in ("SV", "BV") else min(order, max(highest, 1))


def supersets(subsets: tuple[Subset, ...], order: int) -> tuple[list[int], list[list[int]]]:
    """Members of size 1 .. order, and for each the members of the family that contain it, by number."""
    chosen = [k for k, subset in enumerate(subsets) if 1 <= len(subset) <= order]
    number = {subsets[k]: j for j, k in enumerate(chosen)}
    containing: list[list[int]] = [[] for _ in chosen]
    for t, subset in enumerate(subsets):
        for inner in _nonempty_parts(subset, order):
            containing[number[inner]].append(t)
    return chosen, containing


def weight_matrix(subsets: tuple[Subset, ...], index: str, order: int) -> tuple[list[int], Any]:
    """Numbers of the subsets of an index, and the sparse (chosen, subsets) matrix from dividends to the index."""
    from scipy.sparse import csr_array

    check_choice("index", index, WEIGHTS)
    highest = len(subsets[-1])
    order = largest_order(index, order, highest)
    weights = size_weights(index, order, highest)
    chosen, containing = supersets(subsets, order)
    rows = np.repeat(np.arange(len(chosen)), [len(c) for c in containing])
    columns = np.array([t for c in containing for t in c], dtype=np.int64)
    sizes = np.array([len(s) for s in subsets], dtype=np.int64)
    own = np.array([len(subsets[k]) for k in chosen], dtype=np.int64)
    entries = weights[own[rows], sizes[columns]] if len(rows) else np.zeros(0)
    return chosen, csr_array((entries, (rows, columns)), shape=(len(chosen), len(subsets)))


def _moebius(s: int, t: int, k: int) -> float:
    return float(s == t)


def _sii(s: int, t: int, k: int) -> float:
    return 1.0 / (t - s + 1)


def _bii(s: int, t: int, k: int) -> float:
    return float(0.5 ** (t - s))


def _k_sii(s: int, t: int, k: int) -> float:
    numbers = bernoulli(k)
    return sum(numbers[u - s] * comb(t - s, u - s) / (t - u + 1) for u in range(s, min(k, t) + 1))


def _stii(s: int, t: int, k: int) -> float:
    return float(s == t) if s < k else 1.0 / comb(t, k)


def _fsii(s: int, t: int, k: int) -> float:
    if t <= k:
        return float(s == t)
    return float((-1) ** (k - s) * s / (k + s) * comb(k, s) * comb(t - 1, k) / comb(t + k - 1, k + s))


def _fbii(s: int, t: int, k: int) -> float:
    if t <= k:
        return float(s == t)
    return float((-1) ** (k - s) * comb(t - s - 1, k - s) * 0.5 ** (t - s))


WEIGHTS: dict[str, Callable[[int, int, int], float]] = {
    "Moebius": _moebius,
    "SV": _sii,
    "SII": _sii,
    "k-SII": _k_sii,
    "STII": _stii,
    "FSII": _fsii,
    "BII": _bii,
    "BV": _bii,
    "FBII": _fbii,
}
"""w(s, t) of every index, for a subset of size s, a dividend of size t and the order k."""


def _nonempty_parts(subset: Subset, order: int) -> list[Subset]:
    return [part for size in range(1, min(order, len(subset)) + 1) for part in combinations(subset, size)]
