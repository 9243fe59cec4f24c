"""The change of a mean between two fits: the part due to other rows, and the part due to other effects.

With E_0, E_1 the means over the rows of the first and the second fit, and f^0, f^1 their fitted parts,

    E_1 f^1 - E_0 f^0  =  sum over A of E_1 f^0_A                            the mix: first effects, second rows
                        + E_0 (f^1 - f^0)                                    the model: its level, on the first rows
                        + sum over A of E_1 (g_A - f^0_A)                    the model: its effects, on the second rows

where g_A are the effects of f^1 under the distribution of the *first* rows: both models are then centred in the same
way, and a model that did not change contributes nothing. The g_A come from the tables of f^1, one subset after the
other from the highest order down: what fewer features can express under the first distribution is moved to their
tables. Nothing is lost, so that the parts add up exactly. An effect counts as 0 in a cell its fit has never observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exanova import tolerances
from exanova.design.family import Family
from exanova.explain.aligned import AllParts, CommonCells, common_cells_of
from exanova.typing import FloatArray, IntArray, Subset

MOST_WEIGHTS = 20_000_000
"""Cells of the second fit times subsets up to which it is kept how model parts depend on its effects: 160 MB."""

DENSE_COLUMNS = 1500
"""Functions of fewer features up to which a table is projected by a dense factorisation."""


@dataclass(frozen=True, eq=False)
class MixAndModel:
    """The parts of a change, one line per subset of either fit.

    Attributes:
        subsets: positions of features, the empty subset first.
        mix, model: (S, m) parts; those of the empty subset are 0 and the change of level.
        shared: (S, 2) probability of the cells that both fits have, under each.
        mix_weights: (cells of the first, S) how the mix depends on the first effects.
        model_weights: (cells of the second, S) how the model parts depend on the second effects; ``None`` where that is
            too large to keep.
        second_moment: (S, m) E_1 (f^0_A)^2 over the second rows.
        carried: (cells of the second, m) the first effects on the cells of the second fit; a cell that lies in several
            of the first has their mean.
    """

    subsets: tuple[Subset, ...]
    mix: FloatArray
    model: FloatArray
    shared: FloatArray
    mix_weights: FloatArray
    model_weights: FloatArray | None
    second_moment: FloatArray
    carried: FloatArray


def mix_and_model(
    families: tuple[Family, Family], values: tuple[FloatArray, FloatArray], parts: list[AllParts], place_of: IntArray
) -> MixAndModel:
    """Split the change of the mean between two fits with (cells, m) ``values`` each.

    ``place_of`` (d,) is the position in the second fit of each feature of the first, whose ``parts`` of levels are in
    the order of the first.
    """
    back = {int(j): i for i, j in enumerate(place_of)}
    union = {*families[0].subsets, *(tuple(sorted(back[j] for j in subset)) for subset in families[1].subsets)}
    subsets = tuple(sorted(union, key=lambda subset: (len(subset), subset)))
    cells = {subset: common_cells_of(families, place_of, subset, parts) for subset in subsets}
    after = _model_weights(cells, subsets, families[1].n_cells)
    moved = centred_under_first(values[1], cells, subsets) if after is None else {}
    m, n0 = values[0].shape[1], len(values[0])
    mix, model, moment = (np.zeros((len(subsets), m)) for _ in range(3))
    mix_weights, carried = np.zeros((n0, len(subsets))), np.zeros((families[1].n_cells, m))
    for k, subset in enumerate(subsets):
        own = cells[subset]
        known = own.place[0] >= 0
        mix_weights[:, k] = np.bincount(own.place[0][known], own.probability[1][known], n0)
        moment[k] = mix_weights[:, k] @ values[0] ** 2
        before = mix_weights[:, k] @ values[0]
        later = own.probability[1] @ moved[subset] if after is None else after[:, k] @ values[1]
        model[k] = later - before
        mix[k] = before if subset else 0.0
        _carry(own, values[0], carried)
    shared = np.stack([cells[subset].shared for subset in subsets])
    return MixAndModel(subsets, mix, model, shared, mix_weights, after, moment, carried)


def _carry(own: CommonCells, first: FloatArray, out: FloatArray) -> None:
    """Write the first effects, averaged over the parts of each cell of the second fit, to the rows of these cells."""
    there = own.place[1] >= 0
    place, probability = own.place[1][there], own.probability[1][there]
    values = np.where((own.place[0] >= 0)[:, None], first[np.maximum(own.place[0], 0)], 0.0)[there]
    whole = np.bincount(place, probability, len(out))
    np.add.at(out, place, (probability / np.where(whole > 0, whole, 1.0)[place])[:, None] * values)


def _model_weights(cells: dict[Subset, CommonCells], subsets: tuple[Subset, ...], n_cells: int) -> FloatArray | None:
    """(cells of the second, S) how E_1 g_A depends on the second effects; ``None`` if that is too large.

    What :func:`centred_under_first` does, transposed: it begins with the means of the tables of all subsets, and goes
    from the lowest order up.
    """
    if n_cells * len(subsets) > MOST_WEIGHTS:
        return None
    tables = {subset: np.zeros((len(cells[subset].keys), len(subsets))) for subset in subsets}
    for k, subset in enumerate(subsets):
        tables[subset][:, k] = cells[subset].probability[1]
    out = np.zeros((n_cells, len(subsets)))
    for subset in sorted(subsets, key=len):
        if subset:
            _take_up(subset, cells, tables)
        there = cells[subset].place[1] >= 0
        np.add.at(out, cells[subset].place[1][there], tables[subset][there])
    return out


def centred_under_first(
    given: FloatArray, cells: dict[Subset, CommonCells], subsets: tuple[Subset, ...]
) -> dict[Subset, FloatArray]:
    """For each subset, (k, w) its g on the common cells, from the effects ``given`` (cells of the second, w)."""
    out = {}
    for subset in subsets:
        place = cells[subset].place[1]
        out[subset] = np.where((place >= 0)[:, None], given[np.maximum(place, 0)], 0.0)
    for subset in sorted(subsets, key=len, reverse=True):
        if subset and out[subset].any():
            _hand_down(subset, cells, out)
    return out


def _hand_down(subset: Subset, cells: dict[Subset, CommonCells], tables: dict[Subset, FloatArray]) -> None:
    """Subtract what fewer features can express under the first distribution, and add it to their tables."""
    margins, design, root = _margins(subset, cells)
    coefficients = _least_squares(root * design, root * tables[subset])
    tables[subset] = tables[subset] - design @ coefficients
    start = 0
    for part in margins:
        stop = start + len(cells[part].keys)
        tables[part] = tables[part] + coefficients[start:stop]
        start = stop


def _take_up(subset: Subset, cells: dict[Subset, CommonCells], weights: dict[Subset, FloatArray]) -> None:
    """The transpose of :func:`_hand_down`, for weights on the tables in place of tables."""
    margins, design, root = _margins(subset, cells)
    gained = np.concatenate([weights[part] for part in margins]) - design.T @ weights[subset]
    weights[subset] = weights[subset] + root * _least_squares((root * design).T, gained)


def _margins(subset: Subset, cells: dict[Subset, CommonCells]) -> tuple[list[Subset], FloatArray, FloatArray]:
    """The largest parts of a subset, the 0/1 matrix of their cells, and (k, 1) roots of the first probabilities."""
    own = cells[subset]
    margins = [part for part in combinations(subset, len(subset) - 1) if part in cells]
    columns = [_margin(own, subset, part, cells[part]) for part in margins]
    starts = np.cumsum([0, *(len(cells[part].keys) for part in margins)])
    design = np.zeros((len(own.keys), int(starts[-1])))
    for start, column in zip(starts, columns, strict=False):
        design[np.arange(len(column)), start + column] = 1.0
    return margins, design, np.sqrt(own.probability[0])[:, None]


def _margin(own: CommonCells, subset: Subset, part: Subset, inner: CommonCells) -> IntArray:
    """(k,) the cell of ``part`` that each cell of ``subset`` lies in."""
    place = {tuple(key): j for j, key in enumerate(inner.keys.tolist())}
    chosen = [subset.index(i) for i in part]
    return np.array([place[tuple(key)] for key in own.keys[:, chosen].tolist()], dtype=np.int64)


def _least_squares(design: FloatArray, values: FloatArray) -> FloatArray:
    """The least-squares coefficients of least norm."""
    if min(design.shape) <= DENSE_COLUMNS:
        return np.asarray(np.linalg.lstsq(design, values, rcond=None)[0])
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import lsmr

    sparse, stop = csr_array(design), tolerances.LEAST_SQUARES
    return np.stack([lsmr(sparse, column, atol=stop, btol=stop)[0] for column in values.T], axis=1)
