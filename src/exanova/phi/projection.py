"""Gamma from the Gram matrix of indicators: T^T M T / total, with T the coordinates of functions in indicators.

A function of x_A is a combination of the indicators of A and of its parts. With subsets taken from the last to the
first, the rows (and then the columns) of A can be overwritten by those of its functions: they are needed for no subset
after it. The whole takes no second matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.basis.functions import Basis
from exanova.design.family import Family
from exanova.phi.monomials import Coordinates, Monomials, in_monomials
from exanova.typing import FloatArray, IntArray

ROWS = 256
"""Rows of the matrix whose columns are rewritten at once, so that they stay in the caches."""

MIRROR = 256
"""Side of the tiles in which one triangle is copied to the other."""


def mirrored(lower: NDArray[Any]) -> NDArray[Any]:
    """Copy the lower triangle to the upper one, in place, tile by tile so that both stay in the caches."""
    for a in range(0, len(lower), MIRROR):
        b = min(len(lower), a + MIRROR)
        lower[a:b, b:] = lower[b:, a:b].T
        above = np.triu_indices(b - a, 1)
        lower[a:b, a:b][above] = lower[a:b, a:b].T[above]
    return lower


def projected(family: Family, mono: Monomials, gram: NDArray[Any], basis: Basis) -> FloatArray:
    """(q, q) Gamma, Fortran order, from a symmetric Gram matrix of indicators; one of float64 is overwritten."""
    members = range(len(basis.tables))
    coordinates = in_monomials(family, mono, members, [basis.table(s) for s in members])
    largest = max(rows.size for _, rows in coordinates) * max(basis.n_functions, len(mono))
    own = _own_indicators(family, mono)
    room = np.diff(basis.start) <= np.diff(own)
    with parallel.suitable_blas(largest):
        if not room.all():  # dependent functions, as the paper's may be
            return _in_new_matrix(gram, coordinates, basis, float(family.weight[0]))
        gram = np.ascontiguousarray(gram, dtype=np.float64)
        return _in_place(gram, coordinates, basis, own, float(family.weight[0]))


def _own_indicators(family: Family, mono: Monomials) -> IntArray:
    """(S + 1,) where the indicators of each subset begin."""
    kept = np.concatenate([[0], np.cumsum(mono.number >= 0)])
    return np.asarray(kept[family.cell_start])


def _in_place(gram: FloatArray, coordinates: Coordinates, basis: Basis, own: IntArray, total: float) -> FloatArray:
    """The first rows and columns of each subset's own indicators become those of its functions, which then move up.

    Only the lower triangle of the result is computed, for which a row needs no column after its own subset.
    """
    counts = np.diff(basis.start)
    for s in range(len(counts) - 1, -1, -1):
        numbers, rows = coordinates[s]
        gram[own[s] : own[s] + counts[s], : own[s + 1]] = (rows.T / total) @ gram[numbers, : own[s + 1]]
    places = np.concatenate([np.arange(own[s], own[s] + k) for s, k in enumerate(counts)])
    flat, q = gram.reshape(-1), len(places)
    for a in range(0, q, ROWS):
        block = gram[places[a : a + ROWS]]
        last = int(np.searchsorted(basis.start, a + len(block)))
        for s in range(last - 1, -1, -1):
            numbers, rows = coordinates[s]
            block[:, own[s] : own[s] + counts[s]] = block[:, numbers] @ rows
        flat[a * q : (a + len(block)) * q].reshape(len(block), q)[:] = block[:, places]
    return np.asarray(mirrored(flat[: q * q].reshape(q, q))).T


def _in_new_matrix(gram: NDArray[Any], coordinates: Coordinates, basis: Basis, total: float) -> FloatArray:
    """The same where a subset has more functions than indicators of its own."""
    q = basis.n_functions
    half = np.empty((q, len(gram)))
    gamma = np.empty((q, q), order="F")
    for s, (numbers, rows) in enumerate(coordinates):
        half[basis.functions_of(s)] = (rows.T / total) @ gram[numbers]
    for s, (numbers, rows) in enumerate(coordinates):
        gamma[:, basis.functions_of(s)] = half[:, numbers] @ rows
    return gamma
