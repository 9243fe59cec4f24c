"""Levels that two fits of one column have in common: equal labels, for bins the parts between all of their edges.

Two fits cut a column of numbers or times at different edges. Both effects are constant between any two neighbouring
edges of either, so that they can be compared there: a bin's value holds on each of its parts, and its share is that of
their lengths, because the rows inside are no longer known; :mod:`exanova.explain.divided` and
:mod:`exanova.explain.aligned` then divide the rows as in the other fit. Joined levels are compared on the values that
share a level in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from exanova.data.feature import FeatureLevels
from exanova.data.intervals import have_single_ends, interval_labels
from exanova.data.levels import joined_labels, label_levels
from exanova.data.times import time_places
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CommonLevels:
    """The parts that two features have in common.

    Attributes:
        labels: a name for each part.
        codes: (2, k) the level of each feature that holds a part.
        shares: (2, k) which share of that level's probability the part has.
    """

    labels: tuple[str, ...]
    codes: IntArray
    shares: FloatArray

    def parts_of(self, side: int) -> dict[int, list[int]]:
        """For each level of one feature, its parts."""
        out: dict[int, list[int]] = {}
        for part, code in enumerate(self.codes[side].tolist()):
            out.setdefault(code, []).append(part)
        return out


@dataclass(frozen=True, eq=False)
class CellsInBoth:
    """Cells that two effects have in common, k of them.

    Attributes:
        levels: the levels of each, as labels.
        place: (2, k) the cell of each effect that holds it.
        shares: (2, k) its share in that cell, by length.
        whole: for each effect, the share of every cell that lies in levels of both.
    """

    levels: list[tuple[str, ...]]
    place: IntArray
    shares: FloatArray
    whole: tuple[FloatArray, FloatArray]

    @property
    def is_divided(self) -> bool:
        """Whether some cell is in several parts."""
        return any(len(np.unique(own)) < len(own) for own in self.place)


def common_levels(a: FeatureLevels, b: FeatureLevels) -> CommonLevels:
    """What the levels of two fits of a column have in common.

    >>> a = FeatureLevels("age", (0, 1), ("< 30", ">= 30"), (), (0, 1), (10.0, 30.0, 90.0))
    >>> b = FeatureLevels("age", (0, 1), ("< 50", ">= 50"), (), (0, 1), (10.0, 50.0, 90.0))
    >>> common = common_levels(a, b)
    >>> common.labels, common.codes.tolist(), common.shares.round(2).tolist()
    (('< 30', '[30, 50)', '>= 50'), [[0, 1, 1], [0, 0, 1]], [[1.0, 0.33, 0.67], [0.5, 0.5, 1.0]])
    """
    if a.edges and b.edges and a.edges != b.edges:
        places = _places(a, b)
        if places is not None:
            return _with_missing(a, b, _parts(a, b, *places))
    if bool(a.edges) != bool(b.edges):
        return _bins_and_values(a, b)
    if a.joined or b.joined:
        return _with_missing(a, b, _common_values(a, b))
    place = {label: k for k, label in enumerate(b.labels)}
    pairs = [(k, place[label]) for k, label in enumerate(a.labels) if label in place]
    codes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return CommonLevels(tuple(a.labels[k] for k in codes[0]), codes, np.ones(codes.shape))


def cells_in_both(
    a: Sequence[Sequence[str]], b: Sequence[Sequence[str]], features: Sequence[tuple[FeatureLevels, FeatureLevels]]
) -> CellsInBoth:
    """The cells that two effects have in common.

    Args:
        a, b: the levels of every cell, as labels, features in the same order.
        features: both versions of each feature.
    """
    common = [common_levels(*pair) for pair in features]
    parts = [own.parts_of(0) for own in common]
    known = [[{label: k for k, label in enumerate(f.labels)} for f in pair] for pair in features]
    place = {tuple(cell): j for j, cell in enumerate(b)}
    levels, positions, shares = [], [], []
    for i, cell in enumerate(a):
        for chosen in product(*(p.get(k[0][label], ()) for p, k, label in zip(parts, known, cell, strict=True))):
            picked = list(zip(common, features, chosen, strict=True))
            j = place.get(tuple(pair[1].labels[int(c.codes[1, part])] for c, pair, part in picked))
            if j is not None:
                levels.append(tuple(c.labels[part] for c, _, part in picked))
                positions.append((i, j))
                shares.append([np.prod([c.shares[side, part] for c, _, part in picked]) for side in (0, 1)])
    pairs = np.array(positions, dtype=np.int64).reshape(-1, 2).T
    amounts = np.array(shares, dtype=np.float64).reshape(-1, 2).T
    return CellsInBoth(levels, pairs, amounts, (_wholes(0, a, common, known), _wholes(1, b, common, known)))


def _wholes(
    side: int, cells: Sequence[Sequence[str]], common: Sequence[CommonLevels], known: Sequence[Sequence[dict[str, int]]]
) -> FloatArray:
    """(cells,) the share of each cell of one effect that lies in levels of both."""
    out = np.ones(len(cells))
    for i, levels in enumerate(common):
        codes = known[i][side]
        whole = np.bincount(levels.codes[side], levels.shares[side], len(codes))
        out *= whole[[codes[cell[i]] for cell in cells]]
    return out


def _places(a: FeatureLevels, b: FeatureLevels) -> tuple[list[Any], list[Any]] | None:
    """Edges of both as numbers on one scale; ``None`` if one has numbers and the other times."""
    if a.is_of_times != b.is_of_times:
        return None
    if not a.is_of_times:
        return list(a.edges), list(b.edges)
    first, second = time_places(a.edges), time_places(b.edges)
    if first is None or second is None or first[0] != second[0]:
        return None
    return list(first[1]), list(second[1])


def _parts(a: FeatureLevels, b: FeatureLevels, ea: list[Any], eb: list[Any]) -> CommonLevels:
    """The intervals between the inner edges of either; the first and the last bin reach beyond their ends."""
    inner = sorted({*ea[1:-1], *eb[1:-1]})
    ends = [min([ea[0], eb[0], *inner]), *inner, max([ea[-1], eb[-1], *inner])]
    written = {**dict(zip(eb, b.edges, strict=True)), **dict(zip(ea, a.edges, strict=True))}
    lengths = np.maximum(np.diff(np.array([float(end - ends[0]) for end in ends])), 0.0)
    bins = [np.searchsorted(np.array(e[1:-1], dtype=object), [*inner], side="right") for e in (ea, eb)]
    bins = [np.concatenate([[0], numbers]).astype(np.int64) for numbers in bins]
    shares = np.array([_shares(of_parts, lengths) for of_parts in bins])
    codes = np.array([np.array(f.codes)[k] for f, k in zip((a, b), bins, strict=True)])
    labels = _labels([written[end] for end in ends], a.is_of_times)
    labels = [_own(f, ks, k, text) for k, text in enumerate(labels) for f, ks in [_whole((a, b), bins, k)]]
    occurs = (codes >= 0).all(axis=0)
    return CommonLevels(tuple(np.array(labels, dtype=object)[occurs]), codes[:, occurs], shares[:, occurs])


def _shares(bins: IntArray, lengths: FloatArray) -> FloatArray:
    """The share of each part in the length of its bin; equal shares where a bin has no length."""
    whole, count = np.bincount(bins, lengths), np.bincount(bins)
    return np.where(whole[bins] > 0, lengths / np.where(whole > 0, whole, 1.0)[bins], 1.0 / count[bins])


def _whole(features: tuple[FeatureLevels, FeatureLevels], bins: list[IntArray], k: int) -> tuple[Any, Any]:
    """The feature of which part ``k`` is a complete bin, with its bins; ``None`` if it is part of one in both."""
    for feature, own in zip(features, bins, strict=True):
        if (own == own[k]).sum() == 1 and feature.codes[own[k]] >= 0:
            return feature, own
    return None, None


def _own(feature: FeatureLevels | None, bins: IntArray, k: int, text: str) -> str:
    return text if feature is None else feature.labels[feature.codes[bins[k]]]


def _labels(edges: list[Any], of_times: bool) -> list[str]:
    if not of_times:
        whole = all(float(edge).is_integer() for edge in edges[1:-1])
        numbers = [float(edge) for edge in edges]
        single = not whole and have_single_ends(numbers)
        return list(interval_labels(numbers, [False] * (len(edges) - 1), whole, single))
    middle = [f"[{low}, {high})" for low, high in pairwise(edges[1:-1])]
    return [f"before {edges[1]}", *middle, f"from {edges[-2]}"] if len(edges) > 2 else ["any time"]


def _bins_and_values(a: FeatureLevels, b: FeatureLevels) -> CommonLevels:
    """Bins of one and single numbers of the other: each number, in its bin, which its numbers share equally."""
    swapped = bool(b.edges)
    binned, single = (b, a) if swapped else (a, b)
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in single.values]
    if binned.is_of_times or not numbers or not all(numbers):
        return CommonLevels((), np.zeros((2, 0), dtype=np.int64), np.zeros((2, 0)))
    held, own = binned.recode(single.values)[:-1], np.array(single.codes, dtype=np.int64)
    occurs = held >= 0
    codes = np.stack([held[occurs], own[occurs]])
    shares = np.array([1.0 / np.bincount(row)[row] for row in codes])
    labels = tuple(single.labels[k] for k in codes[1])
    common = CommonLevels(labels, codes, shares)
    common = CommonLevels(labels, common.codes[::-1], common.shares[::-1]) if swapped else common
    return _with_missing(a, b, common)


def _common_values(a: FeatureLevels, b: FeatureLevels) -> CommonLevels:
    """Joined levels: values that share a level in both fits are a part; the values of a level share it equally."""
    places = [dict(zip(f.values, f.codes, strict=True)) for f in (a, b)]
    parts: dict[tuple[int, int], list[str]] = {}
    names = dict(zip(a.values, label_levels(a.values), strict=True))
    for value, code in places[0].items():
        if value in places[1]:
            parts.setdefault((code, places[1][value]), []).append(names[value])
    codes = np.array(list(parts), dtype=np.int64).reshape(-1, 2).T
    counts = np.array([len(joined) for joined in parts.values()], dtype=np.float64)
    sizes = [np.bincount(f.codes, minlength=len(f.levels)) for f in (a, b)]
    shares = np.array([counts / size[row] for size, row in zip(sizes, codes, strict=True)])
    return CommonLevels(tuple(joined_labels(list(parts.values()))), codes, shares)


def _with_missing(a: FeatureLevels, b: FeatureLevels, common: CommonLevels) -> CommonLevels:
    """With missing cells as a part, if both have some."""
    if a.missing_code < 0 or b.missing_code < 0:
        return common
    return CommonLevels(
        (*common.labels, a.labels[a.missing_code]),
        np.column_stack([common.codes, [a.missing_code, b.missing_code]]),
        np.column_stack([common.shares, [1.0, 1.0]]),
    )
