"""Which functions raise the rank, decided exactly: elimination of whole-number Gram matrices modulo primes.

The paper's functions are far from orthogonal where cells are missing; one after the other, their pivots on real
data fall smoothly to 1e-9, below the rounding of a Gram matrix, and a greedy choice in floating point goes wrong.
But with whole-number weights everything is rational: up to a factor for each function, phi_A^(z) has the entries
+-1 / (count of the cell), and the Gram matrix of indicators holds counts. Modulo a prime the same elimination is
exact. A pivot that is zero in the rationals is zero modulo every prime; one that is not vanishes modulo a given
prime with probability 1 / prime, so that two primes that agree leave no doubt worth naming.

Numbers below 2^20 keep products of 8,192 terms exact in double precision: the elimination runs in BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from exanova.basis.paper import paper_numerators
from exanova.design.cells import CellIndex
from exanova.moments.gram import Moments
from exanova.moments.monomials import in_monomials
from exanova.typing import FloatArray, IntArray

PRIMES = (1_048_573, 1_048_571, 1_048_559, 1_048_549, 1_048_517)
"""The largest primes below 2^20."""

TERMS = 8192
"""Products of residues that add up to less than 2^53."""

PANEL = 64


def raises_rank(moments: Moments, labels: Sequence[IntArray], weights_are_counts: bool) -> NDArray[np.bool_] | None:
    """(q,) which of the paper's functions, in their order, are independent of those before them.

    ``None`` where the weights are no counts, and nothing can be decided exactly.
    """
    if not weights_are_counts:
        return None
    # A prime that divides a count has no inverse for it: that prime cannot speak.
    primes = [prime for prime in PRIMES if np.all(moments.index.weight % prime)]
    return agreed(lambda prime: rank_profile(gram_modulo(moments, labels, prime), prime), primes)


def agreed(profile: Callable[[int], NDArray[np.bool_]], primes: Sequence[int] = PRIMES) -> NDArray[np.bool_]:
    """The profile on which two primes agree; a prime can only miss, never invent, a direction."""
    seen: list[NDArray[np.bool_]] = []
    for prime in primes:
        found = profile(prime)
        if any(np.array_equal(found, other) for other in seen):
            return found
        seen.append(found)
    raise ArithmeticError("no two primes agree on the rank: this cannot be chance")


def gram_modulo(moments: Moments, labels: Sequence[IntArray], prime: int) -> FloatArray:
    """Gram matrix of the paper's functions (each up to a factor) modulo a prime, as whole numbers in doubles."""
    coordinates = [_coordinates(moments, s, labels[s], prime) for s in range(len(labels))]
    start = np.concatenate([[0], np.cumsum([rows.shape[1] for _, rows in coordinates])]).astype(np.int64)
    counts = moments.gram
    half = np.empty((int(start[-1]), len(moments.basis)))
    for s, (numbers, rows) in enumerate(coordinates):
        half[start[s] : start[s + 1]] = product_modulo(rows.T, np.mod(counts[numbers], prime).astype(float), prime)
    out = np.empty((int(start[-1]), int(start[-1])))
    for s, (numbers, rows) in enumerate(coordinates):
        out[:, start[s] : start[s + 1]] = product_modulo(half[:, numbers], rows, prime)
    return out


def rank_profile(gram: FloatArray, prime: int) -> NDArray[np.bool_]:
    """(q,) columns of a symmetric matrix modulo a prime that the earlier ones do not span.

    >>> rank_profile(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 5.0]]), 7).tolist()
    [True, False, True]
    """
    size = len(gram)
    left, right = np.zeros((size, size)), np.zeros((size, size))
    kept = np.zeros(size, dtype=bool)
    rank = 0
    for a in range(0, size, PANEL):
        b = min(size, a + PANEL)
        rest = gram[a:, a:b] - product_modulo(left[a:, :rank], right[a:b, :rank].T, prime)
        rank = _panel(np.mod(rest, prime), slice(a, b), left, right, kept, rank, prime)
    return kept


def product_modulo(left: FloatArray, right: FloatArray, prime: int) -> FloatArray:
    """left @ right modulo a prime, cut so that every partial sum is exact."""
    out = np.zeros((left.shape[0], right.shape[1]))
    for a in range(0, left.shape[1], TERMS):
        out += np.mod(left[:, a : a + TERMS] @ right[a : a + TERMS], prime)
    return np.mod(out, prime)


def _panel(
    rest: FloatArray,
    columns: slice,
    left: FloatArray,
    right: FloatArray,
    kept: NDArray[np.bool_],
    rank: int,
    prime: int,
) -> int:
    """Eliminate one panel: S = (S_j / pivot) S_j^T column by column; ``rest`` holds rows from the panel on."""
    first = rank
    for j in range(columns.stop - columns.start):
        done = slice(first, rank)
        row = columns.start + j
        column = np.mod(rest[:, j] - left[columns.start :, done] @ right[row, done], prime)
        pivot = int(column[j])
        if pivot == 0:
            continue
        column[:j] = 0.0
        right[columns.start :, rank] = column
        left[columns.start :, rank] = np.mod(column * pow(pivot, -1, prime), prime)
        kept[row] = True
        rank += 1
    return rank


def _coordinates(moments: Moments, s: int, labels: IntArray, prime: int) -> tuple[IntArray, FloatArray]:
    """Indicators and coefficients, modulo a prime, of the functions of one subset."""
    index: CellIndex = moments.index
    counts = index.weight[index.cells_of(s)].astype(np.int64)
    inverse = np.array([pow(int(c), -1, prime) for c in counts], dtype=np.float64)
    table = np.mod(paper_numerators(index.codes_of(s), _sizes(index, s), labels) * inverse[:, None], prime)
    numbers, rows = in_monomials(index, moments.basis, s, table)
    return numbers, np.mod(rows, prime)


def _sizes(index: CellIndex, s: int) -> tuple[int, ...]:
    return tuple(int(index.sizes[i]) for i in index.subsets[s])
