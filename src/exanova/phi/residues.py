"""Arithmetic modulo primes below 2^20: exact, with whole numbers stored in doubles.

Sums of 8,192 products of numbers below 2^20 are exact in double precision, so that everything runs in BLAS. Weights
need not be counts: a double is a whole number times a power of two, and two has an inverse modulo every odd prime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.basis.paper import paper_numerators
from exanova.design import passes
from exanova.design.family import Family
from exanova.phi.monomials import Coordinates, Monomials, in_monomials
from exanova.typing import Codes, FloatArray, IntArray

COMPILED_FROM = 100_000
"""Array size from which residues are worth loading a compiled loop, which takes a quarter of the time."""

TERMS = 8192
"""Products of residues whose sum stays below 2^53, with a margin of at least 2^35."""

COUNT_DIGITS = 32
"""Binary digits of the largest count; rounded real weights span 53 or more."""

LARGEST = 2**20
"""All primes are below this."""


def primes() -> Iterator[int]:
    """The primes between 2^19 and 2^20, the largest first: 38,635 of them.

    >>> listed = primes()
    >>> next(listed), next(listed)
    (1048573, 1048571)
    """
    small = [n for n in range(2, isqrt(LARGEST)) if all(n % k for k in range(2, isqrt(n) + 1))]
    return (n for n in range(LARGEST - 1, LARGEST // 2, -2) if all(n % k for k in small))


def product_modulo(left: FloatArray, right: FloatArray, prime: int) -> FloatArray:
    """left @ right modulo a prime, split so that every partial sum is exact.

    >>> product_modulo(np.array([[3.0, 4.0]]), np.array([[5.0], [6.0]]), 7).tolist()
    [[4.0]]
    """
    if left.shape[1] <= TERMS:
        return modulo(left @ right, prime)
    out = np.zeros((left.shape[0], right.shape[1]))
    for a in range(0, left.shape[1], TERMS):
        out += modulo(left[:, a : a + TERMS] @ right[a : a + TERMS], prime)
    return modulo(out, prime)


def modulo(x: FloatArray, prime: int) -> FloatArray:
    """Whole numbers below 2^53 - 2^20 in size, modulo a prime; ``x`` may be overwritten.

    >>> modulo(np.array([-1.0, 7.0, 20.0]), 7).tolist()
    [6.0, 0.0, 6.0]
    """
    if x.size < COMPILED_FROM:
        return _few_modulo(x, float(prime))
    from exanova.phi.gram_kernels import reduce_in_place

    x = np.ascontiguousarray(x)
    reduce_in_place(x.reshape(-1), float(prime))
    return x


def _few_modulo(x: FloatArray, prime: float) -> FloatArray:
    """As the compiled loop does it: a tenth of the time of NumPy's remainder, which divides."""
    quotient = np.floor(x * (1.0 / prime))
    quotient *= prime
    rest = np.subtract(x, quotient, out=quotient)
    # The quotient may be off by one.
    np.add(rest, prime, out=rest, where=rest < 0.0)
    np.subtract(rest, prime, out=rest, where=rest >= prime)
    return rest


def weights_modulo(weight: NDArray[Any], prime: int) -> FloatArray:
    """(r,) whole numbers or doubles modulo an odd prime, without rounding: 0.5 is the inverse of 2.

    >>> weights_modulo(np.array([0.5, 3.0, 0.75]), 7).tolist()
    [4.0, 3.0, 6.0]
    """
    if weight.dtype.kind != "f":
        return np.asarray(np.mod(weight, prime), dtype=np.float64)
    mantissa, exponent = np.frexp(weight.astype(np.float64))
    shifts, of_row = np.unique(exponent.astype(np.int64) - 53, return_inverse=True)
    powers = np.array([pow(2, int(shift), prime) for shift in shifts], dtype=np.int64)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return np.asarray(whole % prime * powers[of_row] % prime, dtype=np.float64)


def are_counts(weight: NDArray[Any]) -> bool:
    """Whether weights are whole numbers, up to a common power of two.

    >>> are_counts(np.array([0.5, 1.5])), are_counts(np.array([0.1, 0.2]) + 0.3)
    (True, False)
    """
    if weight.dtype.kind != "f":
        return True
    mantissa, exponent = np.frexp(weight)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2(whole & -whole) + exponent - 53
    return bool(exponent.max() - lowest.min() <= COUNT_DIGITS)


def cell_weights_modulo(family: Family, codes: Codes, weight: NDArray[Any], first: int, prime: int) -> FloatArray:
    """(cells,) weights of cells modulo a prime; those of the subsets before number ``first`` are set to one."""
    rows = weights_modulo(weight, prime)[:, None]
    sums = passes.scatter(family.layout, codes, rows, slice(first, len(family.subsets)))[:, 0]
    keys = family.cell_key[family.cell_start[first] :] - int(family.layout.key_start[first])
    out = np.ones(family.n_cells)
    out[family.cell_start[first] :] = np.mod(sums[keys], prime)
    return out


def paper_coordinates(
    family: Family,
    indicators: Monomials,
    subsets: Sequence[int],
    labels: Sequence[IntArray | None],
    cells: FloatArray,
    prime: int,
) -> Coordinates | None:
    """Coordinates of the paper's functions in indicators, modulo a prime.

    Up to a factor, phi_A^(z) has the entries +-1 / (weight of the cell). ``cells`` (cells,) holds these weights. The
    result is ``None`` if one of them is a multiple of the prime and has no inverse. Subsets without labels have no
    functions.
    """
    tables = []
    for s, z in zip(subsets, labels, strict=True):
        weight = cells[family.cells_of(s)]
        if z is None:
            tables.append(np.zeros((len(weight), 0)))
            continue
        if not weight.all():
            return None
        inverse = np.array([pow(int(w), -1, prime) for w in weight], dtype=np.float64)
        tables.append(paper_numerators(family.codes_of(s), family.sizes_of(s), z) * inverse[:, None])
    return [(numbers, modulo(rows, prime)) for numbers, rows in in_monomials(family, indicators, subsets, tables)]
