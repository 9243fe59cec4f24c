"""Standard errors of explanations of rows: every index is a sum of effects with fixed weights.

At a row, the index of a subset B is sum over A of M[B, A] T_A(x_A): a linear statistic of T with the weight M[B, A] at
the cell of A that the row falls in. For few rows, the influence of every such statistic is computed; for many, the
covariance of all cells once, and then the sum over pairs of the cells of each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.distinct import distinct_rows
from exanova.data.sample import NewRows
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.explain.dividends import weight_matrix
from exanova.infer.freedom import joint_freedom
from exanova.infer.uncertainty import Uncertainty
from exanova.phi.operator import Phi
from exanova.typing import Codes, FloatArray, IntArray, Subset

WEIGHTS_BYTES = 64_000_000
"""Memory of the weights of the statistics of one block of rows."""


def row_stderr(
    family: Family, uncertainty: Uncertainty, codes: Codes, matrix: Any, read: Everywhere | None = None
) -> FloatArray:
    """(n, k, m) standard errors of the index with the sparse ``matrix`` (k, S) at the rows ``codes`` (d, n).

    Cells that never occurred count as 0, with standard error 0. NaN if a value is not identified, and if it is in part
    that of a cell never observed, by which ``read`` continues an effect.
    """
    first, inverse = distinct_rows(codes)
    place = cells_at(family, codes[:, first])
    dense = np.asarray(matrix.todense(), dtype=np.float64)
    single = np.count_nonzero(dense, axis=1) == 1
    stderr = np.empty((len(place), len(dense), uncertainty.outputs))
    stderr[:, single] = _of_single_effects(uncertainty, place, dense[single])
    if not single.all():
        sums = dense[~single]
        by_cells = _many(family, uncertainty, place, sums)
        stderr[:, ~single] = (_by_cells if by_cells else _by_statistics)(family, uncertainty, place, sums)
    if read is not None and read.continued.any():
        stderr[_with_continued(read, codes[:, first], dense)] = np.nan
    return stderr[inverse]


def _with_continued(read: Everywhere, codes: Codes, matrix: FloatArray) -> NDArray[np.bool_]:
    """(n, k) whether the index at a row has a part from a cell never observed."""
    place = cells_at(read.family, codes)
    return np.asarray(((place >= 0) & read.continued[place]).astype(np.float64) @ (matrix != 0).T > 0)


def row_freedom(family: Family, uncertainty: Uncertainty, codes: Codes, matrix: Any) -> FloatArray:
    """(n, k, m) degrees of freedom of these standard errors, from those of the cells that a value is read from."""
    first, inverse = distinct_rows(codes)
    place = cells_at(family, codes[:, first])
    variance = np.append(np.nan_to_num(uncertainty.stderr) ** 2, np.zeros((1, uncertainty.outputs)), axis=0)
    freedom = np.append(uncertainty.freedom, np.inf)  # the last entry stands for cells that never occurred
    out = np.empty((len(place), matrix.shape[0], uncertainty.outputs))
    for k, row in enumerate(matrix.tocsr()):
        own = place[:, row.indices].T
        parts = row.data[:, None, None] ** 2 * variance[own]
        out[:, k] = joint_freedom(parts, freedom[own][:, :, None])
    return out[inverse]


def cells_at(family: Family, codes: Codes) -> IntArray:
    """(n, S) flat number of the cell of every subset at every row, -1 for one that never occurred."""
    out = np.empty((codes.shape[1], len(family.subsets)), dtype=np.int64)
    phi = Phi(family, NewRows(codes))
    for s in range(len(family.subsets)):
        cell = phi.cells(s)
        out[:, s] = np.where(cell >= 0, family.cell_start[s] + cell, -1)
    return out


def weights_at(family: Family, place: IntArray, matrix: FloatArray) -> FloatArray:
    """(cells, n k) weights of the index at rows that fall in the cells ``place`` (n, S)."""
    n, k = len(place), len(matrix)
    out = np.zeros((family.n_cells + 1, n, k))  # the last entry collects cells that never occurred
    rows = np.arange(n)
    for s in range(len(family.subsets)):
        out[place[:, s], rows] = matrix[:, s]
    return out[:-1].reshape(family.n_cells, n * k)


def _many(family: Family, uncertainty: Uncertainty, place: IntArray, matrix: FloatArray) -> bool:
    """Whether the covariance of all cells costs less than the influence of every statistic."""
    if uncertainty.has_all_cells:
        return True
    rows = uncertainty.fitted.sample.n_rows
    single = len(place) * len(matrix) * rows * len(family.subsets)
    return family.n_cells <= MOST_CELLS and rows * family.n_cells**2 / PRODUCTS_PER_READ < single


MOST_CELLS = 6000
"""Largest number of cells whose covariance matrix is computed: 300 MB per output."""

PRODUCTS_PER_READ = 8
"""Multiplications in a matrix product that take as long as reading one table at one row."""


def _of_single_effects(uncertainty: Uncertainty, place: IntArray, matrix: FloatArray) -> FloatArray:
    """(n, k, m) errors of indices that are one effect each, with a weight: those of its cells."""
    own = np.abs(matrix).argmax(axis=1)
    stderr = np.append(uncertainty.stderr, np.zeros((1, uncertainty.outputs)), axis=0)  # the last: cells never observed
    return np.asarray(np.abs(matrix[np.arange(len(matrix)), own])[:, None] * stderr[place[:, own]])


def _by_statistics(family: Family, uncertainty: Uncertainty, place: IntArray, matrix: FloatArray) -> FloatArray:
    n, k = len(place), len(matrix)
    step = max(1, WEIGHTS_BYTES // (8 * k * family.n_cells))
    parts = []
    for a in range(0, n, step):
        weights = weights_at(family, place[a : a + step], matrix)
        parts.append(uncertainty.linear_stderr(weights).reshape(-1, k, uncertainty.outputs))
    return np.concatenate(parts)


def _by_cells(family: Family, uncertainty: Uncertainty, place: IntArray, matrix: FloatArray) -> FloatArray:
    n, k = len(place), len(matrix)
    covariance = uncertainty.all_cells
    out = np.empty((n, k, len(covariance)))
    for row, cells in enumerate(place):
        occurs = cells >= 0
        own = matrix[:, occurs]
        block = covariance[:, cells[occurs][:, None], cells[occurs]]
        out[row] = np.einsum("ka,mab,kb->km", own, block, own, optimize=True)
    step = max(1, WEIGHTS_BYTES // (8 * k * family.n_cells))
    for a in range(0, n, step) if uncertainty.shares else ():
        known = uncertainty.determined(weights_at(family, place[a : a + step], matrix))
        out[a : a + step][~known.reshape(-1, k)] = np.nan
    return np.sqrt(np.maximum(out, 0.0))


def shapley_errors(
    family: Family, uncertainty: Uncertainty, codes: Codes, read: Everywhere | None = None
) -> tuple[FloatArray, FloatArray]:
    """(n, d, m) standard errors of the Shapley values of rows (d, n), and their degrees of freedom.

    The error of a feature without effects is 0.
    """
    chosen, matrix = weight_matrix(family.subsets, "SV", 1)
    shape = (codes.shape[1], codes.shape[0], uncertainty.outputs)
    stderr, freedom = np.zeros(shape), np.full(shape, np.inf)
    features = [family.subsets[k][0] for k in chosen]
    if features:
        stderr[:, features] = row_stderr(family, uncertainty, codes, matrix, read)
        freedom[:, features] = row_freedom(family, uncertainty, codes, matrix)
    return stderr, freedom


def with_the_sum(subsets: tuple[Subset, ...], d: int) -> Any:
    """The sparse (d + 1, S) weights of the effects in the Shapley value of every feature, and in the fitted part."""
    from scipy.sparse import csr_array

    chosen, matrix = weight_matrix(subsets, "SV", 1)
    out = np.zeros((d + 1, len(subsets)))
    out[[subsets[k][0] for k in chosen]] = np.asarray(matrix.todense())
    out[-1] = 1.0
    return csr_array(out)
