"""The moments of a set of rows: the sufficient statistics of a fit.

    cells     weight and sums of F in every cell of every subset
    gram      M[(A,z),(B,w)] = weight of the rows with x_A = z and x_B = w, over indicators without reference levels
    squares   sum of F^2

All are additive: the moments of two sets of rows add up to the moments of their union. With whole-number weights
M consists of exact integers, so the sum does not depend on how the rows were split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.basis.functions import Basis
from exanova.design import passes
from exanova.design.family import Family, union
from exanova.errors import InputError
from exanova.phi.bitsets import count_common, digits, pack
from exanova.phi.monomials import Monomials, in_monomials, monomials, reference_levels
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray, IntArray

BLAS_BLOCK_BYTES = 128_000_000
"""Memory of one block of rows of the dense indicator matrix, for real weights."""


SPARSE = 8
"""Ratio of all indicators to those that are 1 at a row, from which adding pairs is faster than multiplying matrices."""

BANDS = 8
"""Bands of rows of a Gram matrix that are added separately; fixed, whatever the number of threads."""

MIRROR = 256


@dataclass(frozen=True)
class Moments:
    """Sufficient statistics of weighted rows for a family of subsets.

    Attributes:
        family: cells of the family and their weights.
        basis: the indicators of the Gram matrix.
        gram: (q, q) symmetric, integers when every weight is one.
        sums: (cells, m) weighted sums of F in each cell.
        squares: (m,) weighted sum of F squared.
    """

    family: Family
    basis: Monomials
    gram: NDArray[Any]
    sums: FloatArray
    squares: FloatArray

    def __add__(self, other: Moments) -> Moments:
        """Moments of the two sets of rows together."""
        return add(self, other)


def collect(
    family: Family,
    codes: Codes,
    weight: NDArray[Any],
    values: FloatArray,
    *,
    reference: IntArray | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Moments:
    """Collect the moments of rows: codes (d, r), weight (r,), values (r, m)."""
    basis = monomials(family, reference_levels(family) if reference is None else reference)
    gram: NDArray[Any]
    if weight.dtype.kind == "i":
        gram = counted_gram(family, basis, codes, weight, threads, progress)
    else:
        gram = weighted_gram(family, basis, codes, weight, threads)
    weighted = weight[:, None] * values
    sums = passes.scatter(family.layout, codes, weighted, threads=threads)[family.cell_key]
    return Moments(family, basis, gram, sums, np.einsum("rm,rm->m", weighted, values))


def counted_gram(
    family: Family,
    basis: Monomials,
    codes: Codes,
    weight: IntArray,
    threads: int = 1,
    progress: Progress | None = None,
) -> IntArray:
    """Exact integer Gram matrix by population counts."""
    gram = np.zeros((len(basis), len(basis)), dtype=np.int64)
    singles = single_levels(family, basis)
    for factor, rows in digits(weight):
        chosen = codes if len(rows) == codes.shape[1] else codes[:, rows]
        if progress:
            progress.phase("counting common rows")
        count_common(pack(chosen, singles, basis), gram, factor, threads, progress.step if progress else None)
    return gram


def weighted_gram(family: Family, basis: Monomials, codes: Codes, weight: FloatArray, threads: int = 1) -> FloatArray:
    """Gram matrix for real weights: pair by pair if few indicators are 1 at a row, by BLAS if many are."""
    active = float(family.weight[basis.cell].sum() / family.weight[0])
    if active * SPARSE < len(basis):
        gram = _added_gram(family, basis, codes, weight, threads)
    else:
        gram = _multiplied_gram(family, basis, codes, weight)
    return _mirrored(gram)


def _added_gram(family: Family, basis: Monomials, codes: Codes, weight: FloatArray, threads: int) -> FloatArray:
    """Lower triangle. Threads split the rows of the matrix, not of the data: sums do not depend on their number."""
    from exanova.phi.gram_kernels import add_common

    gram = np.zeros((len(basis), len(basis)))
    block = max(1024, BLAS_BLOCK_BYTES // (16 * len(family.subsets)))
    for a in range(0, codes.shape[1], block):
        rows = slice(a, min(a + block, codes.shape[1]))
        numbers = np.empty((len(family.subsets), rows.stop - rows.start), dtype=np.int32)
        for s in range(len(family.subsets)):
            inside = passes.cells_of_rows(family.layout, codes[:, rows], s)
            numbers[s] = basis.number[family.cells_of(s)][inside]
        task = partial(_add_band, add_common, numbers, weight[rows], gram)
        parallel.run(task, parallel.split(len(basis), BANDS), threads)
    return gram


def _add_band(
    add_common: Callable[..., None], numbers: NDArray[np.int32], weight: FloatArray, gram: FloatArray, band: slice
) -> None:
    add_common(numbers, weight, band.start, band.stop, gram)


def _multiplied_gram(family: Family, basis: Monomials, codes: Codes, weight: FloatArray) -> FloatArray:
    """Lower triangle, by a blocked symmetric product."""
    from scipy.linalg.blas import dsyrk

    q, r = len(basis), codes.shape[1]
    gram = np.zeros((q, q), order="F")
    block = max(64, BLAS_BLOCK_BYTES // (8 * q))
    singles = single_levels(family, basis)
    for a in range(0, r, block):
        dense = _dense_indicators(codes[:, a : a + block], singles, basis)
        dense *= np.sqrt(weight[a : a + block])
        gram = dsyrk(1.0, dense, beta=1.0, c=gram, overwrite_c=True, trans=0, lower=1)
    return np.asarray(gram)


def _mirrored(lower: FloatArray) -> FloatArray:
    """Copy the lower triangle to the upper one, in place, tile by tile so that both stay in the caches."""
    for a in range(0, len(lower), MIRROR):
        b = min(len(lower), a + MIRROR)
        lower[a:b, b:] = lower[b:, a:b].T
        above = np.triu_indices(b - a, 1)
        lower[a:b, a:b][above] = lower[a:b, a:b].T[above]
    return lower


def single_levels(family: Family, basis: Monomials) -> list[tuple[int, int]]:
    """(feature, level) of each indicator of one feature, in order."""
    out: list[tuple[int, int]] = []
    for s, subset in enumerate(family.subsets):
        if len(subset) == 1:
            kept = basis.number[family.cells_of(s)] >= 0
            out.extend((subset[0], int(level)) for level in np.flatnonzero(kept))
    return out


def function_gram(
    family: Family,
    basis: Basis,
    codes: Codes,
    weight: NDArray[Any],
    threads: int = 1,
    progress: Progress | None = None,
) -> FloatArray:
    """Gamma of the functions of ``basis`` on rows: codes (d, r), weight (r,), by the faster of two methods.

    Rows common to two indicators are counted by bitsets, one pass per binary digit of the weights, or added up pair by
    pair, which is faster if few indicators are 1 at a row. Sums of whole numbers are exact either way.
    """
    mono = monomials(family, reference_levels(family))
    whole = weight.dtype.kind == "i"
    planes = int(weight.max()).bit_length() if whole else 1
    if whole and SPARSE * len(family.subsets) >= basis.n_functions * planes:
        gram: NDArray[Any] = counted_gram(family, mono, codes, weight, threads, progress)
    elif whole:
        gram = _mirrored(_added_gram(family, mono, codes, weight.astype(np.float64), threads))
    else:
        gram = weighted_gram(family, mono, codes, weight, threads)
    return _projected(family, mono, gram, basis)


def projected_gram(moments: Moments, basis: Basis) -> FloatArray:
    """Gamma = T^T M T / total for the functions of ``basis``."""
    return _projected(moments.family, moments.basis, moments.gram, basis)


def _projected(family: Family, mono: Monomials, gram: NDArray[Any], basis: Basis) -> FloatArray:
    """T^T M T / total, one (subset, everything) product at a time."""
    q = basis.n_functions
    total = float(family.weight[0])
    half = np.empty((q, len(mono)))
    members = range(len(basis.tables))
    coordinates = in_monomials(family, mono, members, [basis.table(s) for s in members])
    largest = max(rows.size for _, rows in coordinates) * max(q, len(mono))
    gamma = np.empty((q, q), order="F")
    with parallel.suitable_blas(largest):
        for s, (numbers, rows) in enumerate(coordinates):
            half[basis.functions_of(s)] = (rows.T / total) @ gram[numbers]
        for s, (numbers, rows) in enumerate(coordinates):
            gamma[:, basis.functions_of(s)] = half[:, numbers] @ rows
    return gamma


def add(first: Moments, second: Moments) -> Moments:
    """Align the cells of two sets of moments by their levels, then add them."""
    if first.family.subsets != second.family.subsets or not np.array_equal(first.family.sizes, second.family.sizes):
        raise InputError("moments of different families or encodings were added; collect both with the same ones.")
    if not np.array_equal(first.basis.reference, second.basis.reference):
        raise InputError("moments with different reference levels were added; pass the same reference= to both.")
    family, into_first, into_second = union(first.family, second.family)
    basis = monomials(family, first.basis.reference)
    kinds = {first.gram.dtype, second.gram.dtype}
    gram = np.zeros((len(basis), len(basis)), dtype=np.result_type(*kinds))
    sums = np.zeros((family.n_cells, first.sums.shape[1]))
    for part, into in ((first, into_first), (second, into_second)):
        numbers = basis.number[into[part.basis.cell]]
        gram[np.ix_(numbers, numbers)] += part.gram
        sums[into] += part.sums
    return Moments(family, basis, gram, sums, first.squares + second.squares)


def _dense_indicators(codes: Codes, singles: list[tuple[int, int]], basis: Monomials) -> FloatArray:
    dense = np.empty((len(basis), codes.shape[1]), order="F")
    dense[0] = 1.0
    for q, (feature, level) in enumerate(singles, start=1):
        dense[q] = codes[feature] == level
    for q in range(1 + len(singles), len(basis)):
        np.multiply(dense[basis.prefix[q]], dense[basis.last[q]], out=dense[q])
    return dense
