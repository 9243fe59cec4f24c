"""Gram matrices of the paper's functions modulo a prime: whole numbers in doubles, exact.

Up to a factor for each function, phi_A^(z) has the entries +-1 / (count of the cell), and the Gram matrix of
indicators holds counts: modulo a prime both are whole numbers below it. Numbers below 2^20 keep products of 8,192
terms exact in double precision, so that all of it runs in BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exanova.basis.paper import paper_numerators
from exanova.design.cells import CellIndex
from exanova.moments.gram import Moments
from exanova.moments.monomials import Monomials, in_monomials
from exanova.typing import FloatArray, IntArray

PRIMES = (1_048_573, 1_048_571, 1_048_559, 1_048_549, 1_048_517)
"""The largest primes below 2^20."""

COMPILED_FROM = 100_000
"""Numbers from which a compiled pass beats NumPy's remainder."""

TERMS = 8192
"""Products of residues that add up to less than 2^53."""


def product_modulo(left: FloatArray, right: FloatArray, prime: int) -> FloatArray:
    """left @ right modulo a prime, cut so that every partial sum is exact.

    >>> product_modulo(np.array([[3.0, 4.0]]), np.array([[5.0], [6.0]]), 7).tolist()
    [[4.0]]
    """
    if left.shape[1] <= TERMS:
        return residues(left @ right, prime)
    out = np.zeros((left.shape[0], right.shape[1]))
    for a in range(0, left.shape[1], TERMS):
        out += residues(left[:, a : a + TERMS] @ right[a : a + TERMS], prime)
    return residues(out, prime)


def residues(x: FloatArray, prime: int) -> FloatArray:
    """Whole numbers below 2^53 in size, modulo a prime; ``x`` may be overwritten.

    >>> residues(np.array([-1.0, 7.0, 20.0]), 7).tolist()
    [6.0, 0.0, 6.0]
    """
    if x.size < COMPILED_FROM:
        return np.mod(x, prime)
    from exanova.moments.kernels import reduce_in_place

    x = np.ascontiguousarray(x)
    reduce_in_place(x.reshape(-1), float(prime))
    return x


def coordinates_modulo(
    index: CellIndex, indicators: Monomials, s: int, labels: IntArray, prime: int
) -> tuple[IntArray, FloatArray]:
    """Numbers of indicators and (t, k) coefficients, modulo a prime, of the paper's functions of one subset."""
    counts = index.weight[index.cells_of(s)].astype(np.int64)
    inverse = np.array([pow(int(c), -1, prime) for c in counts], dtype=np.float64)
    table = np.mod(paper_numerators(index.codes_of(s), index.sizes_of(s), labels) * inverse[:, None], prime)
    numbers, rows = in_monomials(index, indicators, [s], [table])[0]
    return numbers, np.mod(rows, prime)


def gram_modulo(moments: Moments, labels: Sequence[IntArray], prime: int) -> FloatArray:
    """Gram matrix of the paper's functions, each up to a factor, modulo a prime."""
    index, indicators = moments.index, moments.basis
    coordinates = [coordinates_modulo(index, indicators, s, z, prime) for s, z in enumerate(labels)]
    start = np.concatenate([[0], np.cumsum([rows.shape[1] for _, rows in coordinates])]).astype(np.int64)
    half = np.empty((int(start[-1]), len(indicators)))
    for s, (numbers, rows) in enumerate(coordinates):
        counts = np.mod(moments.gram[numbers], prime).astype(float)
        half[start[s] : start[s + 1]] = product_modulo(rows.T, counts, prime)
    out = np.empty((int(start[-1]), int(start[-1])))
    for s, (numbers, rows) in enumerate(coordinates):
        out[:, start[s] : start[s + 1]] = product_modulo(half[:, numbers], rows, prime)
    return out


def usable_primes(counts: FloatArray) -> list[int]:
    """Primes that divide none of the counts: the others have no inverse for them."""
    return [prime for prime in PRIMES if np.all(counts % prime)]
