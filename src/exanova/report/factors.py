"""Covariances of very many cells, compressed so that a page can hold them, and whether what they give is close enough.

A factor F of few columns stands for the covariances of all cells: C is nearly F F^T off the diagonal, and the diagonal
is kept as it is, so that single cells have their exact standard errors. F holds the directions in which effects at
frequent cells vary most, as whole numbers of one byte. Where that is not close enough for the sums a page shows, it is
not used: blocks of cells that have a level in common then hold correlations, in one byte each, for Shapley values.

What is close enough is measured at rows of the page, and at rows with some levels changed: no standard error may be off
by more than ``TOLERANCE``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import parallel, tolerances
from exanova.decomposition import Decomposition
from exanova.explain.row_errors import cells_at, with_the_sum
from exanova.typing import FloatArray, IntArray

BYTES = 1_500_000
"""Bytes of all factors or correlations of a page: 2 MB as text, beside effects of at most 6,500 cells."""

TOLERANCE = 0.05
"""Largest error of a standard error, relative to it, that compression may cause."""

CHECKED = 400
"""Rows at which that is measured, and as many with changed levels."""

LEAST = 8
"""A factor is tried if it may have one column for that many cells or rows: with fewer it is never close enough."""

SPARE = 20
"""Vectors more than are wanted in the search for the strongest directions, so that the last of them are found too."""

ROUNDS = 3
"""Products with the matrix in that search: the covariances of effects fall off fast enough for so few."""

ALL_EIGENVALUES = 3
"""If at least one vector in this many is wanted, computing all of them takes no longer."""

STEPS = 127
"""Largest whole number of a byte with a sign."""


@dataclass(frozen=True, eq=False)
class CellFactor:
    """Covariances of n cells as F F^T and a diagonal.

    Attributes:
        numbers: (m, n, r) whole numbers of one byte.
        scale, unit: (m, n) and (m, r): one of them is worth the product of the two.
        own: (m, n) the rest of the variance of every cell.
    """

    numbers: IntArray
    scale: FloatArray
    unit: FloatArray
    own: FloatArray

    def variances(self, output: int, cells: IntArray, weights: FloatArray) -> FloatArray:
        """(k,) variances of the sums of cells times ``weights`` (k, cells)."""
        parts = ((weights * self.scale[output, cells]) @ self.numbers[output, cells]) * self.unit[output]
        variances = (parts**2).sum(axis=1) + weights**2 @ self.own[output, cells]
        return np.asarray(np.maximum(variances, 0.0))


def statistics(decomposition: Decomposition) -> FloatArray:
    """(d + 1, S) weights of the effects in the Shapley value of every feature, and in the fitted part."""
    family = decomposition.family
    return np.asarray(with_the_sum(family.subsets, len(family.sizes)).toarray())


def factor_of(covariance: FloatArray, probability: FloatArray, rows: int) -> CellFactor | None:
    """The factor of (m, n, n) covariances with as many columns as a page holds; ``None`` if they are too few.

    Args:
        covariance: of all cells.
        probability: (n,) of the cells.
        rows: of the fit.
    """
    m, n, _ = covariance.shape
    rank = min(n, BYTES // (m * n))
    if rank * LEAST < min(n, rows):
        return None
    parts = [_strongest(block, np.sqrt(probability), rank) for block in covariance]
    numbers, scale, unit = (np.stack([part[k] for part in parts]) for k in range(3))
    kept = ((numbers * unit[:, None, :]) ** 2).sum(axis=2) * scale**2
    own = np.diagonal(covariance, axis1=1, axis2=2) - kept
    return CellFactor(numbers.astype(np.int8), scale, unit, own)


def _strongest(covariance: FloatArray, root: FloatArray, rank: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The directions of cells, times ``root``, that vary most: (n, rank) whole numbers and their two scales."""
    values, kept = _leading(covariance * root[:, None] * root, rank)
    step = np.abs(kept).max(axis=1, initial=0.0) / STEPS
    numbers = np.rint(kept / np.where(step > 0, step, 1.0)[:, None])
    return numbers, step / np.where(root > 0, root, 1.0), np.sqrt(np.maximum(values, 0.0))


def _leading(matrix: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """The (rank,) largest eigenvalues of a positive (n, n) matrix and their (n, rank) vectors, nearly.

    Of a large matrix they come from a few products with a random block of vectors (subspace iteration): n^2 rank
    operations in place of n^3. What they miss stays in the diagonal, and whether it matters is measured (``is_close``).
    """
    n, width = len(matrix), rank + SPARE
    with parallel.suitable_blas(float(n) * n * width):
        if ALL_EIGENVALUES * width >= n:
            with parallel.suitable_blas(0.0):
                values, vectors = np.linalg.eigh(matrix)
            return values[-rank:], vectors[:, -rank:]
        block = np.random.default_rng(0).standard_normal((n, width))
        for _ in range(ROUNDS):
            with parallel.suitable_blas(0.0):
                block = np.linalg.qr(block)[0]
            block = matrix @ block
        with parallel.suitable_blas(0.0):
            block = np.linalg.qr(block)[0]
        values, turned = np.linalg.eigh(block.T @ matrix @ block)
        return values[-rank:], block @ turned[:, -rank:]


def places_to_check(decomposition: Decomposition, codes: IntArray) -> IntArray:
    """(k, S) cells of rows (n, d) and of rows with one to three levels changed; -1 for cells never observed."""
    rng = np.random.default_rng(0)
    rows = codes[np.unique(np.linspace(0, len(codes) - 1, min(len(codes), CHECKED)).round().astype(np.int64))]
    changed = rows.copy()
    for k in range(3):
        feature = rng.integers(rows.shape[1], size=len(rows))
        some = np.flatnonzero(rng.integers(3, size=len(rows)) >= k)
        changed[some, feature[some]] = rng.integers(decomposition.family.sizes[feature[some]])
    asked = np.ascontiguousarray(np.concatenate([rows, changed]).T).astype(np.int32)
    return cells_at(decomposition.family, asked)


def is_close(decomposition: Decomposition, codes: IntArray, factor: CellFactor) -> bool:
    """Whether a factor gives the standard errors of Shapley values and of fitted parts at rows (n, d)."""
    covariance, weights = decomposition.uncertainty.all_cells, statistics(decomposition)
    for place in places_to_check(decomposition, codes):
        occurs = place >= 0
        cells, own = place[occurs], weights[:, occurs]
        for o, block in enumerate(covariance):
            exact = np.einsum("ka,ab,kb->k", own, block[np.ix_(cells, cells)], own, optimize=True)
            if not _close(exact, factor.variances(o, cells, own)):
                return False
    return True


def correlations(covariance: FloatArray, stderr: FloatArray, blocks: list[IntArray]) -> IntArray:
    """(t, m) correlations above the diagonals of blocks of cells, row by row, as whole numbers of one byte."""
    inverse = np.where(stderr > 0, 1.0 / np.where(stderr > 0, stderr, 1.0), 0.0).T
    parts = []
    for block in blocks:
        row, column = np.triu_indices(len(block), 1)
        a, b = block[row], block[column]
        parts.append(np.rint(STEPS * covariance[:, a, b] * inverse[:, a] * inverse[:, b]).T)
    return np.asarray(np.clip(np.concatenate(parts), -STEPS, STEPS).astype(np.int8))


def have_room(blocks: list[IntArray], outputs: int) -> bool:
    """Whether a page has room for the correlations of blocks of cells."""
    return sum(len(block) * (len(block) - 1) // 2 for block in blocks) * outputs <= BYTES


def correlations_are_close(decomposition: Decomposition, codes: IntArray) -> bool:
    """Whether correlations in one byte give the standard errors of Shapley values at rows (n, d)."""
    covariance, weights = decomposition.uncertainty.all_cells, statistics(decomposition)[:-1]
    for place in places_to_check(decomposition, codes):
        occurs = place >= 0
        cells, own = place[occurs], weights[:, occurs]
        for block in covariance:
            part = block[np.ix_(cells, cells)]
            exact = np.einsum("ka,ab,kb->k", own, part, own, optimize=True)
            size = np.sqrt(np.maximum(np.diagonal(part), 0.0))
            scale = np.outer(size, size)
            coarse = np.rint(STEPS * part / np.where(scale > 0, scale, 1.0)) / STEPS * scale
            np.fill_diagonal(coarse, np.diagonal(part))
            if not _close(exact, np.einsum("ka,ab,kb->k", own, coarse, own, optimize=True)):
                return False
    return True


def _close(exact: FloatArray, approximate: FloatArray) -> bool:
    """Whether the roots differ by the tolerance at most; those of rounding errors are zero."""
    a, b = np.sqrt(np.maximum(exact, 0.0)), np.sqrt(np.maximum(approximate, 0.0))
    return bool((np.abs(a - b) <= TOLERANCE * a + tolerances.ZERO_ERROR * a.max(initial=0.0)).all())
