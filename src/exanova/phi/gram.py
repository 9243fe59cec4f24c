"""Gram matrices of indicators: the weight of the rows with x_A = z and x_B = w, without reference levels.

They are additive over rows. With whole-number weights their entries are exact integers, which do not depend on how the
rows were split, nor on which of three ways they are counted: from margins, from bitsets, or pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.compiled import worth_loading
from exanova.design import passes
from exanova.design.family import Family
from exanova.phi.bitsets import count_common, digits, pack
from exanova.phi.margins import LISTING, LOADING, Margins, fewest_seconds, margin_gram, margins_of
from exanova.phi.monomials import Monomials, monomials, reference_levels
from exanova.phi.projection import mirrored
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray, IntArray

BLAS_BLOCK_BYTES = 128_000_000
"""Memory of one block of rows of the dense indicator matrix, for real weights."""


BITSET_BYTES, MANY_ROWS = 64_000_000, 65_536
"""Memory of the bitsets of one block of rows, and rows that are one block whatever their number of indicators; no
block has more than sixteen times as many."""

SPARSE = 8
"""Ratio of all indicators to those that are 1 at a row, from which adding pairs is faster than multiplying matrices."""

BANDS, BAND_BYTES = 8, 1_000_000
"""Fewest bands of rows of a Gram matrix that are added separately, and the memory of one, so that it stays in the
caches; whatever the number of threads."""

LISTED_BYTES = 64_000_000
"""Memory of the indicators that are 1 at one block of rows."""

MARGINS = 1.0
"""Seconds by margins, relative to those of the faster other way, up to which a Gram matrix is read from margins."""

WORD_SECONDS, PAIR_SECONDS, PRODUCT_SECONDS = 0.33e-9, 1.4e-9, 0.04e-9
"""Seconds on one core to compare 64 rows of two bitsets, to add one row to one entry of the matrix, and to add one
product in a symmetric product of matrices. Measured for 20 features of 10 levels, 30 of 6, of 4 and of 3."""


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
    if progress:
        progress.phase("counting common rows")
    step = max(MANY_ROWS, min(8 * BITSET_BYTES // len(basis), 16 * MANY_ROWS))
    for a in range(0, len(weight), step):
        block, own = codes[:, a : a + step], weight[a : a + step]
        for factor, rows in digits(own):
            chosen = block if len(rows) == block.shape[1] else block[:, rows]
            count_common(pack(chosen, singles, basis), gram, factor, threads, progress.step if progress else None)
    return gram


def weighted_gram(
    family: Family,
    basis: Monomials,
    codes: Codes,
    weight: FloatArray,
    threads: int = 1,
    parts: Sequence[slice] | None = None,
) -> FloatArray:
    """Gram matrix for real weights of either sign: by margins, by pairs of indicators that are 1, or by BLAS."""
    margins = _worthwhile_margins(family, len(basis), weight)
    if margins is not None:
        rows = codes, weight, parts or (slice(0, len(weight)),)
        return mirrored(margin_gram(margins, family, basis, rows, threads))
    active = float(family.weight[basis.cell].sum() / family.weight[0])
    if active * SPARSE < len(basis):
        gram = _added_gram(family, basis, codes, weight, threads)
    else:
        gram = _multiplied_gram(family, basis, codes, weight)
    return mirrored(gram)


def _added_gram(family: Family, basis: Monomials, codes: Codes, weight: FloatArray, threads: int) -> FloatArray:
    """Lower triangle. Threads split the rows of the matrix, not of the data: sums do not depend on their number."""
    from exanova.phi.gram_kernels import add_common, list_indicators

    gram = np.zeros((len(basis), len(basis)))
    number = np.full(family.n_keys, -1, dtype=np.int32)
    number[family.cell_key] = basis.number
    block = max(1024, LISTED_BYTES // (4 * len(family.subsets)))
    bands = parallel.split(len(basis), max(BANDS, gram.nbytes // BAND_BYTES))
    for a in range(0, codes.shape[1], block):
        rows = slice(a, min(a + block, codes.shape[1]))
        given = np.ascontiguousarray(codes[:, rows]), *passes.arrays_of(family.layout), number
        start, nothing = np.empty(rows.stop - rows.start + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        list_indicators(*given, start, nothing)
        listed = np.empty(int(start[-1]), dtype=np.int32)
        list_indicators(*given, start, listed)
        parallel.run(partial(_add_band, add_common, start, listed, weight[rows], gram), bands, threads)
    return gram


def _add_band(
    add_common: Callable[..., None],
    start: IntArray,
    listed: NDArray[np.int32],
    weight: FloatArray,
    gram: FloatArray,
    band: slice,
) -> None:
    add_common(start, listed, weight, band.start, band.stop, gram)


def _multiplied_gram(family: Family, basis: Monomials, codes: Codes, weight: FloatArray) -> FloatArray:
    """Lower triangle, by a blocked symmetric product."""
    from scipy.linalg.blas import dsyrk

    q, r = len(basis), codes.shape[1]
    gram = np.zeros((q, q), order="F")
    block = max(64, BLAS_BLOCK_BYTES // (8 * q))
    singles = single_levels(family, basis)
    for a in range(0, r, block):
        own, cut = weight[a : a + block], codes[:, a : a + block]
        for sign in (1.0, -1.0):
            chosen = sign * own > 0
            if chosen.any():
                dense = _dense_indicators(cut if chosen.all() else cut[:, chosen], singles, basis)
                dense *= np.sqrt(sign * own[chosen])
                gram = dsyrk(sign, dense, beta=1.0, c=gram, overwrite_c=True, trans=0, lower=1)
    return np.asarray(gram)


def single_levels(family: Family, basis: Monomials) -> list[tuple[int, int]]:
    """(feature, level) of each indicator of one feature, in order."""
    out: list[tuple[int, int]] = []
    for s, subset in enumerate(family.subsets):
        if len(subset) == 1:
            kept = basis.number[family.cells_of(s)] >= 0
            out.extend((subset[0], int(level)) for level in np.flatnonzero(kept))
    return out


@dataclass(frozen=True)
class CommonRows:
    """Weights of the rows common to every two indicators of a family.

    Attributes:
        indicators: the indicators.
        gram: (q, q) symmetric; whole numbers, exactly, if the weights of the rows are whole.
    """

    indicators: Monomials
    gram: NDArray[Any]


def common_rows(
    family: Family,
    codes: Codes,
    weight: NDArray[Any],
    threads: int = 1,
    progress: Progress | None = None,
    parts: Sequence[slice] | None = None,
) -> CommonRows:
    """The Gram matrix of indicators on rows: codes (d, r), weight (r,), by the fastest of three methods.

    The weights of rows common to two indicators are read from margins (families of pairs), counted by bitsets, one
    pass per binary digit of the weights, or added up pair by pair, which is faster if few indicators are 1 at a row.
    Sums of whole numbers are exact in each, so that all give the same matrix.
    """
    mono = monomials(family, reference_levels(family))
    whole = weight.dtype.kind == "i"
    margins = _loaded_margins(family, len(mono), weight) if whole else None
    gram: NDArray[Any]
    if margins is not None:
        rows = codes, weight, parts or (slice(0, len(weight)),)
        gram = mirrored(margin_gram(margins, family, mono, rows, threads, progress))
    elif whole and SPARSE * len(family.subsets) >= len(mono) * _digits_per_row(weight):
        gram = counted_gram(family, mono, codes, weight, threads, progress)
    elif whole:
        gram = mirrored(_added_gram(family, mono, codes, weight.astype(np.float64), threads))
    else:
        gram = weighted_gram(family, mono, codes, weight, threads, parts)
    return CommonRows(mono, gram)


def gram_seconds(family: Family, indicators: int, weight: NDArray[Any]) -> float:
    """Seconds on one core to add up the Gram matrix of about that many indicators, by the fastest way."""
    margins = _worthwhile_margins(family, indicators, weight)
    return _seconds_otherwise(family, indicators, weight) if margins is None else LOADING + margins.seconds(len(weight))


def _worthwhile_margins(
    family: Family, indicators: int, weight: NDArray[Any], loading: float = LOADING
) -> Margins | None:
    """The margins of a family, if loading their loops and counting them is the fastest way to its Gram matrix."""
    limit = MARGINS * _seconds_otherwise(family, indicators, weight) - loading
    if limit <= LISTING or fewest_seconds(family, len(weight)) > limit:
        return None
    margins = margins_of(family)
    return margins if margins is not None and margins.seconds(len(weight)) <= limit else None


def _loaded_margins(family: Family, indicators: int, weight: IntArray) -> Margins | None:
    """The same for counts, which are the same numbers either way, so that loops may be loaded at the second fit."""
    margins = _worthwhile_margins(family, indicators, weight, loading=0.0)
    if margins is None:
        return None
    saved = MARGINS * _seconds_otherwise(family, indicators, weight) - margins.seconds(len(weight))
    return margins if worth_loading("exanova.phi.margin_kernels", saved, LOADING) else None


def _seconds_otherwise(family: Family, indicators: int, weight: NDArray[Any]) -> float:
    """Seconds without margins: by bitsets (of counts) or products (under real weights), or pair by pair."""
    r, subsets = len(weight), len(family.subsets)
    entries = indicators * indicators / 2
    if weight.dtype.kind == "i":
        matrix = entries * r / 64 * _digits_per_row(weight) * WORD_SECONDS
    else:
        matrix = entries * r * PRODUCT_SECONDS
    return float(min(matrix, r * subsets * subsets / 2 * PAIR_SECONDS))


def _digits_per_row(weight: NDArray[Any]) -> float:
    """Binary digits of whole weights that are one, on average: how often a row enters some bitset."""
    return float(np.bitwise_count(weight).mean())


def _dense_indicators(codes: Codes, singles: list[tuple[int, int]], basis: Monomials) -> FloatArray:
    dense = np.empty((len(basis), codes.shape[1]), order="F")
    dense[0] = 1.0
    for q, (feature, level) in enumerate(singles, start=1):
        dense[q] = codes[feature] == level
    for q in range(1 + len(singles), len(basis)):
        np.multiply(dense[basis.prefix[q]], dense[basis.last[q]], out=dense[q])
    return dense
