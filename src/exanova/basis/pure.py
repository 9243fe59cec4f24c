"""Orthonormal bases of the pure spaces W_A, each a small local problem on the observed cells of A.

A function f of x_A is pure when p_A f, a signed measure on the observed cells, has only vanishing margins of
dimension |A| - 1. Two constructions, for a stack of subsets that share sizes and pattern of observed cells:

closed form (complete table)
    contrasts z -> 1{x_i = z} - 1{x_i = last} for each i, their Kronecker product divided by p_A, then QR.
null space (any pattern)
    K = M diag(sqrt(p_A)) with M the 0/1 margins; an orthonormal basis H of its null space gives H / sqrt(p_A). For
    large tables with few missing cells, from the contrasts that vanish there (:mod:`exanova.basis.holes`).

    Example: cells (0,0), (0,1), (1,0) of two binary features. There are three cells and M (four margins) has
    rank 3, so W_A = {0}. Dividing the product of contrasts by p_A, as on a complete table, would give a function
    of mean -1.

The rank of M depends on the pattern alone, never on the weights, so it is computed once, in whole numbers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import combinations
from math import prod

import numpy as np

from exanova import tolerances
from exanova.basis.holes import has_few_holes, holed_dimension, holed_measures
from exanova.basis.light_cells import has_light_cells, without_lower_functions
from exanova.parallel import suitable_blas
from exanova.typing import FloatArray, IntArray

FEW_CELLS = 64
"""Cells of a local problem up to which BLAS uses one thread anyway."""

FEW_VALUES = 20_000
"""Values in the table of a subset up to which its margins are one small product."""

FEW_EDGES = 500
"""Cells of a pair up to which its connected components are found without a sparse matrix."""

FIT = 1e-8
"""Relative accuracy of the fits of margins that are only used to rank candidates."""


def pure_tables(cell_codes: IntArray, sizes: tuple[int, ...], probability: FloatArray) -> FloatArray:
    """Bases of W_A for a stack of subsets with the same observed cells.

    Args:
        cell_codes: (|A|, c) levels in each observed cell.
        sizes: levels of each feature of A.
        probability: (b, c) probabilities of the cells, one row for each subset of the stack.

    Returns:
        (b, c, k) values of k functions on the c cells, orthonormal in L2(p_A).

    >>> complete = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> table = pure_tables(complete, (2, 2), np.array([[0.1, 0.2, 0.3, 0.4]]))[0]
    >>> bool(abs(np.array([0.1, 0.2, 0.3, 0.4]) @ table**2 - 1).max() < 1e-15)
    True
    >>> pure_tables(complete[:, :3], (2, 2), np.full((1, 3), 1 / 3)).shape
    (1, 3, 0)
    """
    root = np.sqrt(probability)
    if len(sizes) == 0:
        return np.ones((len(root), 1, 1))
    if len(sizes) == 1:
        return _complement_of(root) / root[:, :, None]
    cells, complete = cell_codes.shape[1], prod(sizes)
    if cells == complete or has_few_holes(cells, sizes):
        basis = _closed_form(sizes, root) if cells == complete else _triangular(cell_codes, sizes, root)
        if largest_margin(cell_codes, sizes, root, basis) <= tolerances.purity(cells):
            return _in_full_digits(basis, cell_codes, sizes, root) / root[:, :, None]
    with _suitable_threads(cells):
        basis = _null_space(independent_rows(margin_matrix(cell_codes, sizes)), root)
        return _in_full_digits(basis, cell_codes, sizes, root) / root[:, :, None]


def _in_full_digits(basis: FloatArray, cell_codes: IntArray, sizes: tuple[int, ...], root: FloatArray) -> FloatArray:
    """The (b, c, k) bases, those with very light cells made orthogonal to functions of fewer features once more."""
    light = has_light_cells(root)
    if light.any() and basis.size:
        margins = margin_matrix(cell_codes, sizes)
        for b in np.flatnonzero(light):
            basis[b] = without_lower_functions(basis[b], margins, root[b])
    return basis


def pure_dimension(cell_codes: IntArray, sizes: tuple[int, ...]) -> int:
    """Dimension of W_A from the pattern of observed cells alone.

    >>> pure_dimension(np.array([[0, 0, 1], [0, 1, 0]]), (2, 2))
    0
    """
    cells = int(cell_codes.shape[1])
    if len(sizes) <= 1 or cells == prod(sizes):
        return int(prod(n - 1 for n in sizes))
    if len(sizes) == 2:
        return cells - sum(sizes) + _components(cell_codes, sizes)
    if has_few_holes(cells, sizes):
        return holed_dimension(cell_codes, sizes)
    margins = margin_matrix(cell_codes, sizes)
    # The entries are counts of common cells, exact whole numbers, so that tiny eigenvalues are zeros.
    with _suitable_threads(cells):
        eigenvalues = np.linalg.eigvalsh(margins @ margins.T)
    return cells - int(np.count_nonzero(eigenvalues > tolerances.rank_of_gram(len(margins)) * eigenvalues[-1]))


def pure_energy(cell_codes: IntArray, sizes: tuple[int, ...], probability: FloatArray, sums: FloatArray) -> float:
    """Energy of the projection on W_A of a measure given by its (c, m) sums, without a basis of W_A.

    The squared residual of a least-squares fit of sums / p by the margins in L2(p), accurate enough to rank candidates.

    >>> complete = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> round(pure_energy(complete, (2, 2), np.full(4, 0.25), np.array([[0.25], [0.0], [0.0], [0.0]])), 6)
    0.0625
    """
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import lsmr

    cells, root = cell_codes.shape[1], np.sqrt(probability)
    groups = _margins_of_cells(cell_codes, sizes)
    first = np.concatenate([[0], np.cumsum(groups.max(axis=1) + 1)])
    columns = (groups + first[:-1, None]).T.ravel()
    pointers = np.arange(cells + 1) * len(groups)
    design = csr_array((np.repeat(root, len(groups)), columns, pointers), shape=(cells, int(first[-1])))
    left = [lsmr(design, column, atol=FIT, btol=FIT)[3] for column in (sums / root[:, None]).T]
    return float(np.square(left).sum())


def _suitable_threads(cells: int) -> AbstractContextManager[None]:
    """One BLAS thread for orthogonal factorisations; not worth setting for tiny ones."""
    return suitable_blas(0) if cells > FEW_CELLS else nullcontext()


def margin_matrix(cell_codes: IntArray, sizes: tuple[int, ...]) -> FloatArray:
    """(margins, c) 0/1 matrix: one row for each observed cell of each subset of A with one feature fewer."""
    rows = [np.equal.outer(np.arange(group.max() + 1), group) for group in _margins_of_cells(cell_codes, sizes)]
    return np.vstack(rows).astype(np.float64)


def _margins_of_cells(cell_codes: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """(|A|, c) for each subset of A with one feature fewer, the number of the margin every cell falls in."""
    groups = []
    for kept in combinations(range(len(sizes)), len(sizes) - 1):
        key = np.ravel_multi_index(tuple(cell_codes[list(kept)]), tuple(sizes[i] for i in kept))
        if len(kept) == 1:
            groups.append((np.cumsum(np.bincount(key) > 0) - 1)[key])
        else:
            groups.append(np.unique(key, return_inverse=True)[1].ravel())
    return np.stack(groups)


def independent_rows(margins: FloatArray) -> FloatArray:
    """Rows of a 0/1 matrix that span all of its rows."""
    from scipy.linalg import qr

    r, pivots = qr(margins.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diagonal(r))
    # Pivots of a 0/1 matrix are either of order one or pure rounding.
    rank = int(np.count_nonzero(diagonal > tolerances.rank_of_columns(*margins.shape) * diagonal[0]))
    return np.asarray(margins[np.sort(pivots[:rank])])


def _components(cell_codes: IntArray, sizes: tuple[int, ...]) -> int:
    """Connected components of the graph whose nodes are the levels of two features and whose edges are cells."""
    if cell_codes.shape[1] <= FEW_EDGES:
        return _components_of_few(cell_codes, sizes)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes = sum(sizes)
    edges = (np.ones(cell_codes.shape[1]), (cell_codes[0], sizes[0] + cell_codes[1]))
    return int(connected_components(coo_array(edges, shape=(nodes, nodes)), directed=False)[0])


def _components_of_few(cell_codes: IntArray, sizes: tuple[int, ...]) -> int:
    """The same with the levels of the second feature as bits: each level of the first joins the sets that it meets."""
    met = [0] * sizes[0]
    for first, second in cell_codes.T.tolist():
        met[first] |= 1 << second
    apart: list[int] = []
    for levels in met:
        joined, others = levels, []
        for group in apart:
            if group & levels:
                joined |= group
            else:
                others.append(group)
        apart = [*others, joined] if levels else others
    alone = met.count(0) + sizes[1] - sum(group.bit_count() for group in apart)
    return len(apart) + alone


def _complement_of(root: FloatArray) -> FloatArray:
    """(b, c, c - 1): orthonormal complement of each unit vector of a stack, by a Householder reflection."""
    c = root.shape[1]
    v = root.copy()
    v[:, -1] += 1.0
    # I - v v^T / (1 + root_last) sends the last axis to -root; its other columns are orthogonal to root.
    reflection = v[:, :, None] * v[:, None, :]
    reflection /= -(1.0 + root[:, -1])[:, None, None]
    reflection[:, np.arange(c), np.arange(c)] += 1.0
    return np.asarray(reflection[:, :, :-1])


def _closed_form(sizes: tuple[int, ...], root: FloatArray) -> FloatArray:
    """(b, c, k) orthonormal columns spanning the paper's functions times sqrt(p_A), in the paper's order."""
    contrasts = [np.vstack([np.eye(n - 1), -np.ones((1, n - 1))]) for n in sizes]
    products = np.ones((1, 1))
    for matrix in contrasts:
        products = np.kron(products, matrix).astype(np.float64)
    return np.asarray(np.linalg.qr(products / root[:, :, None])[0], dtype=np.float64)


def _triangular(cell_codes: IntArray, sizes: tuple[int, ...], root: FloatArray) -> FloatArray:
    """(b, c, k) orthonormal columns of a table with few holes, triangular on some cells as those of ``_null_space``."""
    measures = holed_measures(cell_codes, sizes)
    backwards = np.linalg.qr(measures[:, ::-1] / root[:, :, None])[0]
    return np.asarray(backwards[:, :, ::-1], dtype=np.float64)


def largest_margin(cell_codes: IntArray, sizes: tuple[int, ...], root: FloatArray, basis: FloatArray) -> float:
    """Largest margin of the measures sqrt(p_A) times a basis."""
    if basis[0].size <= FEW_VALUES:
        margins = margin_matrix(cell_codes, sizes)
        return float(np.abs((margins * root[:, None, :]) @ basis).max(initial=0.0))
    measures = (root[:, :, None] * basis).transpose(1, 0, 2).reshape(len(root[0]), -1)
    largest = 0.0
    for group in _margins_of_cells(cell_codes, sizes):
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        largest = max(largest, float(np.abs(np.add.reduceat(measures[order], starts)).max(initial=0.0)))
    return largest


def _null_space(margins: FloatArray, root: FloatArray) -> FloatArray:
    """(b, c, k) orthonormal columns that every row of ``margins`` times ``root`` annihilates.

    The orthonormal columns that a factorisation returns for the null space depend on rounding, and ``ties="first"``
    would expose that. They are rotated to be triangular on k cells chosen by the pattern alone, which fixes them up to
    signs.
    """
    q, _ = np.linalg.qr(margins.T * root[:, :, None], mode="complete")
    null = q[:, :, len(margins) :]
    if null.shape[2] < 2:
        return null
    turn, _ = np.linalg.qr(np.swapaxes(null[:, _free_cells(margins)], 1, 2))
    return np.asarray(null @ turn)


def _free_cells(margins: FloatArray) -> IntArray:
    """(k,) cells on which a function with vanishing margins may take any values; they determine the other cells."""
    from scipy.linalg import qr

    _, pivots = qr(margins, mode="r", pivoting=True)
    return np.sort(pivots[len(margins) :]).astype(np.int64)
