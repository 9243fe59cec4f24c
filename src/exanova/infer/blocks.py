"""Covariances of the cells of each effect, by the cheaper of two equivalent methods.

by rows   the influence of every row on every cell, in blocks of rows: r q^2 operations for all outputs together.
by Grams  with B, E the Gram matrices of the functions under the weights k2 and k1 (sums of kappa e^2 and of kappa e),

              Cov_A = (sum of k0 a a^T)_A + Phi_A (Gamma^-1 B Gamma^-T)_A Phi_A^T + X_A K_A^T + K_A X_A^T,
              K_A = Phi_A (Gamma^-1)_A,     X_A = sum over rows of k1 a_A t^T.

          B and E come from adding up pairs of indicators, r |S|^2 / 2 additions; the products take q^3 per output.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from exanova import parallel, tolerances
from exanova.basis.functions import on_functions
from exanova.data.sample import KnownRows
from exanova.infer.influence import CHUNK_BYTES, Influence, leverages_of_rows, places, responses_of_rows
from exanova.infer.units import Totals, Variation
from exanova.phi.gram import weighted_gram
from exanova.phi.monomials import Monomials, in_monomials, monomials, reference_levels
from exanova.phi.operator import Phi
from exanova.phi.projection import projected
from exanova.typing import FloatArray, IntArray

PAIR_WORK = 32
"""Multiplications of a matrix product that take as long as adding up one pair of indicators."""

Blocks = list[FloatArray]
"""For each subset, (m, c, c) covariances of its cells."""


def covariance_blocks(influence: Influence, variation: Variation) -> Blocks:
    """Covariances of the cells of every effect, by the cheaper method."""
    out = empty_blocks(influence)
    if variation.rows is not None:
        (add_by_grams if grams_are_cheaper(influence) else add_by_rows)(influence, variation, out)
    for totals in variation.totals:
        add_totals(influence, totals, out)
    return out


def grams_are_cheaper(influence: Influence) -> bool:
    """Whether Gram matrices take fewer operations than the influence of every row.

    Rows add up pairs of the indicators that are 1 there, which are few where most cells are those of reference levels.
    """
    if influence.inverse is None or not influence.spans:
        return influence.spans
    family, r, m = influence.family, float(influence.phi.codes.shape[1]), influence.values.shape[1]
    q = float(influence.basis.n_functions)
    mono = monomials(family, reference_levels(family))
    active = float(family.weight[mono.cell].sum() / family.weight[0])
    gram = r * min(PAIR_WORK * active**2, float(len(mono)) ** 2) / 2.0
    return bool(m * (q**3 + 2.0 * gram) < r * q**2)


def empty_blocks(influence: Influence) -> Blocks:
    """Zero-filled covariances."""
    m, sizes = influence.values.shape[1], np.diff(influence.family.cell_start).tolist()
    return [np.zeros((m, c, c)) for c in sizes]


def add_by_rows(influence: Influence, variation: Variation, out: Blocks) -> None:
    """Add the contributions of single rows, in blocks of rows."""
    assert variation.rows is not None
    family, r = influence.family, influence.phi.codes.shape[1]
    step = max(16, CHUNK_BYTES // (8 * (family.n_cells + influence.basis.n_functions)))
    for first in range(0, r, step):
        rows = slice(first, min(r, first + step))
        place = places(influence, rows)
        b = leverages_of_rows(influence, place)
        for o in range(influence.values.shape[1]):
            a = responses_of_rows(influence, o, place)
            k0, k1, k2 = _of_rows(variation, rows, o)
            weighted = k0 * a + k1 * b, k1 * a + k2 * b
            for s in range(len(family.subsets)):
                own = family.cells_of(s)
                out[s][o] += weighted[0][:, own].T @ a[:, own] + weighted[1][:, own].T @ b[:, own]


def add_by_grams(influence: Influence, variation: Variation, out: Blocks) -> None:
    """Add the same contributions from Gram matrices, without the influence of each row."""
    assert variation.rows is not None
    k0, k1, k2 = variation.rows
    _add_responses(influence, k0, out)
    if influence.inverse is None:
        return
    family, basis = influence.family, influence.basis
    mono = monomials(family, reference_levels(family))
    with parallel.suitable_blas(float(basis.n_functions) ** 3):
        for o in range(influence.values.shape[1]):
            _add_noise(influence, mono, k2[:, o], [block[o] for block in out])
            _add_cross(influence, mono, k1[:, o], o, [block[o] for block in out])


def _add_responses(influence: Influence, k0: FloatArray, out: Blocks) -> None:
    """(sum of k0 a a^T)_A: from cells alone if no other subset contributes to A, else from the rows."""
    family = influence.family
    mass = influence.phi.analyse(k0[:, None])[:, 0]
    for o in range(influence.values.shape[1]):
        effects = influence.effects(o)
        for s in range(len(family.subsets)):
            tables = dict(influence.responses.applied(s, effects))
            if set(tables) == {s}:
                out[s][o] += (mass[family.cells_of(s)][:, None] * tables[s]).T @ tables[s]
            elif tables:
                out[s][o] += _second_moments(influence, tables, k0)


def _second_moments(influence: Influence, tables: dict[int, FloatArray], k0: FloatArray) -> FloatArray:
    """Sum over rows of k0 a a^T, where a is the sum of the tables of several subsets at the row."""
    size = next(iter(tables.values())).shape[1]
    out, step = np.zeros((size, size)), max(256, CHUNK_BYTES // (16 * size))
    for first in range(0, len(k0), step):
        rows = slice(first, min(len(k0), first + step))
        a = np.zeros((rows.stop - rows.start, size))
        for c, table in tables.items():
            a += table[influence.phi.cells(c, rows)]
        out += (k0[rows, None] * a).T @ a
    return out


def _add_noise(influence: Influence, mono: Monomials, k2: FloatArray, out: Blocks) -> None:
    """Phi_A (Gamma^-1 B Gamma^-T)_A Phi_A^T, with B = U + U^T: a product with a triangle is half the work."""
    from scipy.linalg.blas import dtrmm

    inverse, basis, family = influence.inverse, influence.basis, influence.family
    assert inverse is not None
    counts = weighted_gram(family, mono, influence.phi.codes, k2, influence.threads)
    gram = projected(family, mono, counts, basis)  # B over the total weight
    gram[np.diag_indices_from(gram)] *= 0.5
    half = dtrmm(float(family.weight[0]), gram, inverse, side=1)  # inverse U
    for s, block in enumerate(out):
        own = basis.functions_of(s)
        product = basis.table(s) @ (half[own] @ inverse[own].T) @ basis.table(s).T
        block += product + product.T


def _add_cross(influence: Influence, mono: Monomials, k1: FloatArray, output: int, out: Blocks) -> None:
    """X_A K_A^T and its transpose, X_A = Phi_A R_A - F_A Q_A by the functions of lower orders (``responses``).

    Q_A sums k1 g t^T over the rows, R_A those of the subsets that A lies in.
    """
    inverse, basis = influence.inverse, influence.basis
    assert inverse is not None
    if not k1.any():
        return
    above: dict[int, FloatArray] = {}
    for s, moments in _moments_of_lower(influence, mono, k1, output):
        own = inverse[basis.functions_of(s)].T
        moved = -influence.responses.lower[s].values @ (moments @ own)
        if s in above:
            moved += basis.table(s) @ (above.pop(s) @ own)
        for b, run in influence.responses.lower[s].inside:
            above[b] = above[b] + moments[run] if b in above else moments[run].copy()
        product = moved @ basis.table(s).T
        out[s] += product + product.T


def _moments_of_lower(
    influence: Influence, mono: Monomials, k1: FloatArray, output: int
) -> Iterator[tuple[int, FloatArray]]:
    """For each subset, the last first, (L, q) Q_A: the sum over rows of k1 g t^T."""
    family, basis, members = influence.family, influence.basis, range(len(influence.family.subsets))
    gram = weighted_gram(family, mono, influence.phi.codes, k1, influence.threads)
    functions = np.empty((len(mono), basis.n_functions))
    for s, (numbers, rows) in enumerate(in_monomials(family, mono, members, [basis.table(s) for s in members])):
        functions[:, basis.functions_of(s)] = gram[numbers].T @ rows
    tables = [
        (lower.solved * own).T for lower, own in zip(influence.responses.lower, influence.effects(output), strict=True)
    ]
    coordinates = in_monomials(family, mono, members, tables)
    for s in reversed(members):
        numbers, rows = coordinates[s]
        yield s, rows.T @ functions[numbers]


def add_totals(influence: Influence, totals: Totals, out: Blocks) -> None:
    """Add the contributions of the totals of units."""
    for o, coefficient, moved in moved_by_units(influence, totals):
        for s in range(len(influence.family.subsets)):
            own = moved[:, influence.family.cells_of(s)]
            out[s][o] += (coefficient[:, None] * own).T @ own


def covariance_of_all(influence: Influence, variation: Variation) -> FloatArray:
    """(m, cells, cells) covariance of all cells of all effects: r N^2 operations per output."""
    m, size, r = influence.values.shape[1], influence.family.n_cells, influence.phi.codes.shape[1]
    out = np.zeros((m, size, size))
    step = max(16, CHUNK_BYTES // (16 * size))
    for first in range(0, r if variation.rows is not None else 0, step):
        rows = slice(first, min(r, first + step))
        place = places(influence, rows)
        b = leverages_of_rows(influence, place)
        for o in range(m):
            out[o] += _squares(responses_of_rows(influence, o, place), b, _of_rows(variation, rows, o))
    for totals in variation.totals:
        for o, coefficient, moved in moved_by_units(influence, totals):
            out[o] += (coefficient[:, None] * moved).T @ moved
    return out


def _squares(a: FloatArray, b: FloatArray, of_rows: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
    """(cells, cells) sum over rows of k0 a a' + k1 (a b' + b a') + k2 b b', as products of matrices with themselves.

    With l = k1 / k0 it is k0 (a + l b)(a + l b)' + (k2 - l k1) b b', and the second term vanishes unless the row stands
    for several raw rows with other residuals: one product of half the price in place of two.
    """
    k0, k1, k2 = of_rows
    ratio = k1 / np.where(k0 > 0, k0, 1.0)
    first, rest = np.sqrt(k0) * (a + ratio * b), (k2 - ratio * k1)[:, 0]
    out = first.T @ first
    several = rest > tolerances.CANCELLED * k2[:, 0]
    if several.any():
        second = np.sqrt(rest[several])[:, None] * b[several]
        out += second.T @ second
    return np.asarray(out)


def _of_rows(variation: Variation, rows: slice, output: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """k0, k1 and k2 of a run of rows, as columns."""
    assert variation.rows is not None
    k0, k1, k2 = variation.rows
    return k0[rows, None], k1[rows, output][:, None], k2[rows, output][:, None]


def moved_by_units(influence: Influence, totals: Totals) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Output, coefficients (u,) and changes (u, cells) of the effects, in blocks of units."""
    step, count = max(1, CHUNK_BYTES // (32 * influence.family.n_cells)), len(totals.coefficient)
    for first in range(0, count, step):
        size = min(step, count - first)
        entries = slice(*np.searchsorted(totals.unit, [first, first + size]).tolist())
        for o in range(influence.values.shape[1]):
            moved = moved_effects(influence, totals, entries, first, size, o)
            yield o, totals.coefficient[first : first + size], moved


def moved_effects(
    influence: Influence, totals: Totals, entries: slice, first: int, count: int, output: int
) -> FloatArray:
    """(count, cells) change of every effect by each unit from number ``first`` on: W sigma + Phi Gamma^-1 tau.

    sigma (cells,) sums the shares of the unit's rows in every cell; tau (q,) sums its residuals times functions.
    """
    family, basis, effects = influence.family, influence.basis, influence.effects(output)
    unit, row = totals.unit[entries] - first, totals.row[entries]
    codes = np.ascontiguousarray(influence.phi.codes[:, row])
    mass = _in_cells(influence, codes, unit, count, totals.mass[entries])
    out = np.zeros((count, family.n_cells))
    for s in range(len(family.subsets)):
        for c, table in influence.responses.applied(s, effects):
            out[:, family.cells_of(s)] += mass[:, family.cells_of(c)] @ table
    if influence.inverse is not None:
        sums = _in_cells(influence, codes, unit, count, totals.moment[entries, output])
        solved = influence.inverse @ on_functions(family, basis, sums.T)
        for s in range(len(family.subsets)):
            out[:, family.cells_of(s)] += (basis.table(s) @ solved[basis.functions_of(s)]).T
    return out


def _in_cells(influence: Influence, codes: FloatArray, unit: IntArray, count: int, weight: FloatArray) -> FloatArray:
    """(count, cells) sums of the weights of entries in each cell, for each unit."""
    family = influence.family
    phi = Phi(family, KnownRows(codes))
    out = np.empty((count, family.n_cells))
    for s in range(len(family.subsets)):
        own = family.cells_of(s)
        size = own.stop - own.start
        key = unit * size + phi.cells(s)
        out[:, own] = np.bincount(key, weights=weight, minlength=count * size).reshape(count, size)
    return out
