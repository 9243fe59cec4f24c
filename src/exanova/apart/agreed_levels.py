"""Levels that all shards share: those of one table, with those that only another table has."""

from __future__ import annotations

from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.levels import sort_levels
from exanova.errors import InputError


def joined_levels(known: Encoding, new: Encoding) -> Encoding:
    """The levels of ``known``, and those that ``new`` has besides; bins and merged levels are unchanged.

    >>> first = Encoding.from_levels(["colour"], [["blue", "red"]])
    >>> joined_levels(first, Encoding.from_levels(["colour"], [["green", "red", None]])).levels
    (('blue', 'green', 'red', None),)
    """
    if set(known.names) != set(new.names):
        raise InputError(
            f"the file has levels of {', '.join(known.names[:8])}, the table has columns {', '.join(new.names[:8])}; "
            "name the columns that all shards have with --features."
        )
    of_new = dict(zip(new.names, new.features, strict=True))
    return Encoding(tuple(_joined(feature, of_new[feature.name]) for feature in known.features))


def _joined(known: FeatureLevels, new: FeatureLevels) -> FeatureLevels:
    if known.edges or new.edges or known.is_left_out or not known.is_lossless or known.is_ordered:
        return known
    own = {level: None for level in (*known.values, *new.values)}
    added = [level for level in own if level not in set(known.values)]
    missing = [None] if None in known.levels or None in new.levels else []
    if not added and len(missing) == (None in known.levels):
        return known
    return FeatureLevels.of(known.name, [*sort_levels(list(own)), *missing])
