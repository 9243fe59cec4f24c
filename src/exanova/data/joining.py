"""Joining the many levels of a column: levels whose effects do not differ beyond their error become one level.

Levels are sorted by their effects, given the rows (``LevelEffects.expected``), and split into segments. A segment is
fitted again as one level, from the same rows that were used to join its levels, so that its effect is the mean M of the
estimates inside, which include noise, and not of the expected effects. The expected loss of a level k on other rows is
therefore |expected_k - M|^2. The least loss for every number of segments is computed by dynamic programming, and the
smallest number with almost no loss is taken. If there is none, because the rows of a level determine its large effect
only poorly, levels are best shrunk one by one and stay separate; if there are too many for that, the smallest number
whose loss is about the minimum is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exanova.data.draws import Kind
from exanova.data.feature import FeatureLevels
from exanova.data.level_effects import LevelEffects, additive_residual, level_effects
from exanova.data.levels import joined_labels, label_levels
from exanova.data.rules import MaxLevels, is_asked, most_levels
from exanova.data.weights import group_totals
from exanova.typing import Codes, FloatArray, IntArray

if TYPE_CHECKING:
    from exanova.data.observe import Reading
    from exanova.data.values import ModelValues

SEGMENTS = 400
"""More levels than this are first grouped into this many parts, in their order."""

PART_OF_ERROR, PART_OF_VARIANCE = 0.1, 0.002
"""Largest loss from joining, as a fraction of the uncertainty of the effects or of the variance of the outputs,
whichever is larger."""


MOST_IN_ORDER = 256
"""Numbers that are not binned and keep their order; more are treated as codes of names."""


class Most(NamedTuple):
    """How many levels a column may have, and whether that is firm, so that levels may not stay separate."""

    levels: int
    firm: bool


def columns_to_join(
    features: Sequence[FeatureLevels], max_levels: MaxLevels, is_too_large: Callable[[list[int]], bool] | None = None
) -> dict[int, Most]:
    """Columns with more levels than there should be, and how many there should be at most.

    A number given by the user is firm, and so is any where subsets would be too large with all levels: as
    ``is_too_large`` says of the levels of a column, followed by those of the others, largest first.

    Only nominal levels are joined: bins, dates and declared orders have an order that determines which levels are
    similar. So have up to ``MOST_IN_ORDER`` numbers that are not binned: they are joined only on request.

    >>> names = FeatureLevels.of("job", ["a", "b", "c"])
    >>> columns_to_join([names], 2), columns_to_join([names], "auto")
    ({0: Most(levels=2, firm=True)}, {})
    """
    to_join = {}
    for j, feature in enumerate(features):
        most, size = most_levels(max_levels, feature.name), len(_codes(feature))
        if most is not None and not feature.ordered and not feature.is_left_out and size > most:
            others = sorted((len(other.levels) for k, other in enumerate(features) if k != j), reverse=True)
            large = is_too_large is not None and is_too_large([size, *others])
            asked = is_asked(max_levels, feature.name)
            if asked or not feature.placed or size > MOST_IN_ORDER:
                to_join[j] = Most(most, asked or large)
    return to_join


def join_rows(rows: Reading, values: ModelValues, chosen: Mapping[int, Most], kind: Kind) -> Reading:
    """The rows with levels joined by the values of the model.

    Args:
        rows: the rows as they were read.
        values: the model's values at each distinct raw row, or the outputs given for each row.
        chosen: as ``columns_to_join`` finds them.
        kind: what whole weights are.
    """
    weight = group_totals(rows.weight, rows.raw_group, len(rows.first))
    place = rows.group
    if not values.calls:
        place, weight = rows.group[rows.raw_group], rows.weight
    codes = rows.support.codes[:, place].astype(np.int64)
    weight = weight.astype(np.float64) if kind == "probability" else weight
    return rows.recoded(join_levels(rows.encoding.features, chosen, codes, values.values, weight))


def join_levels(
    features: Sequence[FeatureLevels],
    chosen: Mapping[int, Most],
    codes: Codes,
    values: FloatArray,
    weight: NDArray[Any],
) -> tuple[FeatureLevels, ...]:
    """The features with the levels of the columns ``chosen`` joined.

    Args:
        features: all columns.
        chosen: columns to join, and how many levels they may have.
        codes: (d, n) level of every column.
        values: (n, m) outputs.
        weight: (n,) weights; whole numbers are counts.
    """
    sizes = tuple(len(feature.levels) for feature in features)
    counted = weight.astype(np.float64)
    if weight.dtype.kind == "f":  # weights that are not counts: scaled to the effective number of rows
        counted = counted * (counted.sum() / (counted @ counted))
    spread = np.sqrt(counted @ (values - counted @ values / counted.sum()) ** 2 / counted.sum())
    scaled = np.divide(values, spread, out=np.zeros_like(values), where=spread > 0)
    residual, effects = additive_residual(codes, sizes, scaled, counted)
    out = list(features)
    for j, most in chosen.items():
        own = level_effects(codes, sizes, j, residual, effects, counted).only(_codes(features[j]))
        group = segments(own, *most)
        out[j] = features[j] if group is None else with_groups(features[j], group)
    return tuple(out)


def segments(effects: LevelEffects, most: int, firm: bool = True) -> IntArray | None:
    """The segment of each level (K,), of at most ``most`` segments, numbered by the order of their effects.

    ``None`` where levels may stay separate (``firm`` is false) and any joining would lose something.
    """
    expected = effects.expected
    order = np.argsort(_along(expected, effects.probability), kind="stable")
    atom = _atoms(effects.probability[order])
    costs = _costs(effects, expected, order, atom)
    limit = max(PART_OF_ERROR * effects.uncertainty, PART_OF_VARIANCE)
    starts = _least(costs, most, limit, firm)
    if starts is None:
        return None
    segment = np.empty(len(order), dtype=np.int64)
    segment[order] = np.searchsorted(starts, atom, side="right") - 1
    return segment


def with_groups(feature: FeatureLevels, group: IntArray) -> FeatureLevels:
    """The feature with its levels joined by ``group`` (K,), except missing cells; groups are ordered by first member.

    >>> with_groups(FeatureLevels.of("job", ["a", "b", "c", None]), np.array([1, 0, 1])).labels
    ('2 levels: a, c', 'b', '(missing)')
    """
    members: dict[int, list[int]] = {}
    for code, own in zip(_codes(feature), group.tolist(), strict=True):
        members.setdefault(own, []).append(code)
    names = joined_labels([[feature.labels[code] for code in codes] for codes in members.values()])
    levels = [
        feature.levels[codes[0]] if len(codes) == 1 else name
        for codes, name in zip(members.values(), names, strict=True)
    ]
    new = {code: k for k, codes in enumerate(members.values()) for code in codes}
    missing = [level for level in feature.levels if level is None]
    all_levels = (*levels, *missing)
    codes = tuple(new[code] for code in feature.codes)
    return replace(feature, levels=all_levels, labels=label_levels(all_levels), codes=codes, of_numbers=False)


def in_groups(feature: FeatureLevels, count: int) -> FeatureLevels:
    """The feature with its levels joined to so many, whatever their effects are.

    >>> in_groups(FeatureLevels.of("job", ["a", "b", "c"]), 2).labels
    ('2 levels: a, c', 'b')
    """
    return with_groups(feature, np.arange(len(_codes(feature))) % count)


def _codes(feature: FeatureLevels) -> list[int]:
    """Codes of the levels that are not those of missing cells."""
    return [code for code, level in enumerate(feature.levels) if level is not None]


def _along(expected: FloatArray, probability: FloatArray) -> FloatArray:
    """(K,) the components along the direction in which they differ most."""
    if expected.shape[1] == 1:
        return expected[:, 0]
    scatter = (expected * probability[:, None]).T @ expected
    return np.asarray(expected @ np.linalg.eigh(scatter)[1][:, -1])


def _atoms(probability: FloatArray) -> IntArray:
    """(K,) the part of each level in their order; parts are runs, one level each unless there are too many."""
    if len(probability) <= SEGMENTS:
        return np.arange(len(probability))
    middle = np.cumsum(probability) - probability / 2.0
    return np.unique((middle / probability.sum() * SEGMENTS).astype(np.int64), return_inverse=True)[1]


def _costs(effects: LevelEffects, expected: FloatArray, order: IntArray, atom: IntArray) -> FloatArray:
    """(A, A) what the segment from part a to part b loses; infinite where b comes before a."""
    size = int(atom[-1]) + 1
    p = effects.probability[order][:, None]
    costs = np.zeros((size, size))
    for q in range(expected.shape[1]):
        e, info = expected[order, q : q + 1], effects.information[order, q : q + 1]
        estimate = effects.estimates[order, q]
        columns = np.hstack([p, p * e, p * e**2, info, info * estimate[:, None]])
        sums = np.vstack([np.zeros(5), np.cumsum([np.bincount(atom, c, size) for c in columns.T], axis=1).T])
        mass, first, second, rows, total = (sums[None, 1:, k] - sums[:-1, None, k] for k in range(5))
        mean = np.divide(total, rows, out=np.zeros_like(rows), where=rows > 0)
        costs += second - 2.0 * mean * first + mean**2 * mass
    costs[np.tril_indices(size, -1)] = np.inf
    return np.maximum(costs, 0.0)


def _least(costs: FloatArray, most: int, limit: float, firm: bool) -> IntArray | None:
    """Starts of the fewest segments that lose at most ``limit``, or, if ``firm``, at most that above the minimum."""
    size = len(costs)
    best, back = costs[0].copy(), [np.zeros(size, dtype=np.int64)]
    losses = [best[-1]]
    while losses[-1] > limit and len(losses) < min(most, size):
        before = np.concatenate([[np.inf], best[:-1]])
        tried = before[:, None] + costs
        back.append(np.argmin(tried, axis=0))
        best = np.minimum.reduce(tried, axis=0)
        losses.append(best[-1])
    if losses[-1] > limit and not firm:
        return None
    allowed = max(limit, min(losses) + PART_OF_VARIANCE)
    count = 1 + next(k for k, loss in enumerate(losses) if loss <= allowed)
    starts, end = [], size - 1
    for k in range(count - 1, -1, -1):
        start = int(back[k][end])
        starts.append(start)
        end = start - 1
    return np.array(starts[::-1], dtype=np.int64)
