"""The influence of a row on every effect, in closed form, and the variances that follow from it.

T holds the values of all effects on all N cells, s_i marks the cells that row i falls in, e_i is its residual. Moving
weight to row i changes T by

    psi_i = (W + e_i H) s_i,     H = Phi Gamma^-1 Phi^T,     W = (I - H G) V,

with W given by its blocks (``responses``). So psi_i = a_i + e_i b_i with a_i = W s_i and b_i = Phi Gamma^-1 t_i, where
t_i = Phi^T s_i holds the functions at row i. A linear statistic lambda^T T has the influence lambda^T psi_i: the two
tables W^T lambda and Phi Gamma^-T Phi^T lambda on cells, read at row i.

Gamma^-1 may be any generalised inverse: identified values do not depend on the choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova.basis.functions import Basis, on_cells, on_functions
from exanova.design.family import Family
from exanova.infer.responses import Responses
from exanova.infer.units import Totals, Variation
from exanova.phi.operator import Phi
from exanova.typing import FloatArray, IntArray

CHUNK_BYTES = 64_000_000
"""Memory per block of rows or of statistics."""

MOST_LEVERAGE_WORK = 2e10
"""Multiplications up to which the leverage of every row is computed: about a second."""


@dataclass(frozen=True, eq=False)
class Influence:
    """The arrays from which the influence of every row is computed.

    Attributes:
        family, basis: cells and functions of the family.
        responses: blocks of W.
        inverse: (q, q) inverse of Gamma, or ``None`` if all residuals are zero, so that it is not needed.
        values: (cells, m) effects T.
        phi: the cells of the family at the distinct rows.
        threads: threads to use.
        spans: whether the functions span those of every subset; the columns of a shrunken fit may be fewer.
    """

    family: Family
    basis: Basis
    responses: Responses
    inverse: FloatArray | None
    values: FloatArray
    phi: Phi
    threads: int = 1
    spans: bool = True

    def effects(self, output: int) -> list[FloatArray]:
        """(c,) values of each effect, for one output."""
        return [self.values[self.family.cells_of(s), output] for s in range(len(self.family.subsets))]


def linear(influence: Influence, output: int, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """W^T lambda and Phi Gamma^-T Phi^T lambda, both (cells, f), for statistics with ``weights`` lambda (cells, f)."""
    family, effects = influence.family, influence.effects(output)
    direct = np.zeros_like(weights)
    for b, blocks in enumerate(influence.responses.blocks):
        own = weights[family.cells_of(b)]
        if own.any():
            for c, block in blocks:
                direct[family.cells_of(c)] += effects[c][:, None] * (block.T @ own)
    if influence.inverse is None:
        return direct, np.zeros_like(weights)
    solved = influence.inverse.T @ on_functions(family, influence.basis, weights)
    return direct, on_cells(family, influence.basis, solved)


def covariance(influence: Influence, variation: Variation, output: int, weights: FloatArray) -> FloatArray:
    """(f, f) covariance of the linear statistics with ``weights`` (cells, f)."""
    a, b = (read_at_rows(influence, table) for table in linear(influence, output, weights))
    out = np.zeros((weights.shape[1], weights.shape[1]))
    if variation.rows is not None:
        k0, k1, k2 = variation.rows[0], variation.rows[1][:, output], variation.rows[2][:, output]
        cross = (k1[:, None] * a).T @ b
        out += (k0[:, None] * a).T @ a + cross + cross.T + (k2[:, None] * b).T @ b
    for totals in variation.totals:
        moved = _moved(totals, a, b, output)
        out += (totals.coefficient[:, None] * moved).T @ moved
    return out


def variances(influence: Influence, variation: Variation, output: int, weights: FloatArray) -> FloatArray:
    """(f,) variances of the linear statistics with ``weights`` (cells, f), in blocks of statistics."""
    out = np.empty(weights.shape[1])
    step = max(1, CHUNK_BYTES // (24 * influence.phi.codes.shape[1]))
    for first in range(0, weights.shape[1], step):
        chosen = slice(first, min(weights.shape[1], first + step))
        a, b = (read_at_rows(influence, table) for table in linear(influence, output, weights[:, chosen]))
        out[chosen] = variances_of_rows(variation, a, b, output)
    return out


def variances_of_rows(variation: Variation, a: FloatArray, b: FloatArray, output: int) -> FloatArray:
    """(f,) variances of statistics whose influence is a + e b, both (r, f)."""
    out = np.zeros(a.shape[1])
    if variation.rows is not None:
        k0, k1, k2 = variation.rows[0], variation.rows[1][:, output], variation.rows[2][:, output]
        out += k0 @ a**2 + 2 * (k1 @ (a * b)) + k2 @ b**2
    for totals in variation.totals:
        out += totals.coefficient @ _moved(totals, a, b, output) ** 2
    return np.asarray(np.maximum(out, 0.0))


def read_at_rows(influence: Influence, table: FloatArray) -> FloatArray:
    """(r, f) sums of the entries of a (cells, f) table at each row."""
    return influence.phi.synthesise(table)


def leverages(influence: Influence) -> FloatArray:
    """(r,) t_i^T Gamma^-1 t_i at the distinct rows: times the share of a unit, its influence on its own fitted value.

    They are the rank on the average, which is what all of them are taken for where r q^2 operations are too many.
    """
    q, r = influence.basis.n_functions, influence.phi.codes.shape[1]
    assert influence.inverse is not None
    if float(r) * q**2 > MOST_LEVERAGE_WORK:
        return np.full(r, float(q))
    out, step = np.empty(r), max(16, CHUNK_BYTES // (16 * q))
    for first in range(0, r, step):
        rows = slice(first, min(r, first + step))
        functions = influence.phi.functions(influence.basis, rows=rows)
        out[rows] = np.einsum("ij,ij->i", functions @ influence.inverse.T, functions)
    return out


def _moved(totals: Totals, a: FloatArray, b: FloatArray, output: int) -> FloatArray:
    """(U, f) sum over each unit of mass a + moment b."""
    from scipy.sparse import csr_array

    shape = (len(totals.coefficient), len(a))
    mass = csr_array((totals.mass, (totals.unit, totals.row)), shape=shape)
    moment = csr_array((totals.moment[:, output], (totals.unit, totals.row)), shape=shape)
    return np.asarray(mass @ a + moment @ b)


def places(influence: Influence, rows: slice) -> list[IntArray]:
    """For each subset, (n,) the cell of some of the rows."""
    return [influence.phi.cells(s, rows) for s in range(len(influence.family.subsets))]


def responses_of_rows(influence: Influence, output: int, place: list[IntArray]) -> FloatArray:
    """(rows, cells) a_i = W s_i of rows that fall in the cells ``place``."""
    family, effects = influence.family, influence.effects(output)
    out = np.zeros((len(place[0]), family.n_cells))
    for s in range(len(family.subsets)):
        for c, table in influence.responses.applied(s, effects):
            out[:, family.cells_of(s)] += table[place[c]]
    return out


def leverages_of_rows(influence: Influence, place: list[IntArray]) -> FloatArray:
    """(rows, cells) b_i = Phi Gamma^-1 t_i of the same rows; the same for every output."""
    family, basis = influence.family, influence.basis
    out = np.zeros((len(place[0]), family.n_cells))
    if influence.inverse is None:
        return out
    solved = np.hstack([basis.table(s)[cells] for s, cells in enumerate(place)]) @ influence.inverse.T
    for s in range(len(place)):
        out[:, family.cells_of(s)] = solved[:, basis.functions_of(s)] @ basis.table(s).T
    return out
