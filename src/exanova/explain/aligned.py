"""Two families of the same columns on common cells: levels of both fits, split at the edges of either.

Every level of either fit is a union of parts. A part of both has a level in each (:mod:`common_levels`); the rest of a
level is a part of one fit alone. A level that is divided in several parts has its rows divided as in the other fit,
which knows better than lengths do: many rows may hold the same value. A cell of a subset is divided among the
combinations of the parts of its levels, its probability by their shares, so that margins of the divided probabilities
are those of the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from exanova import tolerances
from exanova.data.feature import FeatureLevels
from exanova.design.family import Family
from exanova.explain.common_levels import common_levels
from exanova.typing import FloatArray, IntArray, Subset


@dataclass(frozen=True, eq=False)
class AllParts:
    """The parts of the levels of one column in two fits.

    Attributes:
        codes: (2, k) level of each fit that holds a part, -1 for none.
        shares: (2, k) share of that level's probability.
    """

    codes: IntArray
    shares: FloatArray

    def of_level(self, side: int) -> dict[int, list[int]]:
        """For each level of one fit, its parts."""
        out: dict[int, list[int]] = {}
        for part, code in enumerate(self.codes[side].tolist()):
            if code >= 0:
                out.setdefault(code, []).append(part)
        return out


@dataclass(frozen=True, eq=False)
class CommonCells:
    """The cells of one subset in two fits.

    Attributes:
        keys: (k, |A|) part of every feature.
        place: (2, k) cell of each fit, by its number among all cells; -1 for none.
        probability: (2, k) under each fit.
    """

    keys: IntArray
    place: IntArray
    probability: FloatArray

    @property
    def shared(self) -> FloatArray:
        """(2,) probability of the cells that both fits have."""
        both = (self.place >= 0).all(axis=0)
        return np.asarray(self.probability[:, both].sum(axis=1))


def all_parts(pair: tuple[FeatureLevels, FeatureLevels]) -> AllParts:
    """The parts that two versions of a column have in common, and those of one version alone.

    >>> a = FeatureLevels("age", (0, 1), ("old", "young"), (), (0, 1))
    >>> b = FeatureLevels("age", (0, 1), ("ancient", "young"), (), (0, 1))
    >>> all_parts((a, b)).codes.tolist()
    [[1, 0, -1], [1, -1, 0]]
    """
    common = common_levels(*pair)
    codes, shares = [common.codes], [common.shares]
    for side in (0, 1):
        rest = 1.0 - np.bincount(common.codes[side], common.shares[side], len(pair[side].labels))
        alone = np.flatnonzero(rest > tolerances.REST_OF_LEVEL)
        own, share = np.full((2, len(alone)), -1), np.zeros((2, len(alone)))
        own[side], share[side] = alone, rest[alone]
        codes.append(own)
        shares.append(share)
    return AllParts(np.concatenate(codes, axis=1), np.concatenate(shares, axis=1))


def as_in_other(parts: AllParts, masses: tuple[FloatArray, FloatArray]) -> AllParts:
    """The same parts, the rows of each level divided among them as in the other fit.

    Args:
        parts: parts whose shares are those of lengths, which remain where the other fit has no rows.
        masses: probability of every level under each fit; zeros if unknown.

    >>> parts = AllParts(np.array([[0, 0], [0, 1]]), np.array([[0.5, 0.5], [1.0, 1.0]]))
    >>> as_in_other(parts, (np.array([1.0]), np.array([0.2, 0.6]))).shares[0].round(2).tolist()
    [0.25, 0.75]
    """
    both = (parts.codes >= 0).all(axis=0)
    shares = parts.shares.copy()
    for side, other in ((0, 1), (1, 0)):
        level, elsewhere = parts.codes[side, both], parts.codes[other, both]
        expected = masses[other][elsewhere] * parts.shares[other, both]
        n = len(masses[side])
        whole, total = np.bincount(level, parts.shares[side, both], n), np.bincount(level, expected, n)
        as_there = whole[level] * expected / np.where(total > 0, total, 1.0)[level]
        shares[side, both] = np.where(total[level] > 0, as_there, parts.shares[side, both])
    return AllParts(parts.codes, shares)


def common_cells_of(
    families: tuple[Family, Family], place_of: IntArray, subset: Subset, parts: Sequence[AllParts]
) -> CommonCells:
    """The cells of a subset, given by positions in the first fit, divided into common ones.

    Args:
        families: of the two fits.
        place_of: (d,) position in the second fit of each feature of the first.
        subset: the subset.
        parts: parts of the levels of each feature, in the order of the first fit.
    """
    entries: dict[tuple[int, ...], list[float]] = {}
    for side, family in enumerate(families):
        own = subset if side == 0 else tuple(int(place_of[i]) for i in subset)
        named = tuple(sorted(own))
        if named not in family.position:
            continue
        s = family.position[named]
        start, probability = int(family.cell_start[s]), family.probability_of(s)
        of_level = [parts[i].of_level(side) for i in subset]
        ordered = family.codes_of(s)[[named.index(i) for i in own]]
        for c, codes in enumerate(ordered.T.tolist()):
            for key in product(*(of.get(code, ()) for of, code in zip(of_level, codes, strict=True))):
                share = np.prod([parts[i].shares[side, part] for i, part in zip(subset, key, strict=True)])
                entry = entries.setdefault(key, [-1, -1, 0.0, 0.0])
                entry[side], entry[2 + side] = start + c, probability[c] * share
    table = np.array(list(entries.values()), dtype=np.float64).reshape(-1, 4)
    keys = np.array(list(entries), dtype=np.int64).reshape(len(entries), len(subset))
    return CommonCells(keys, table[:, :2].T.astype(np.int64), table[:, 2:].T)
