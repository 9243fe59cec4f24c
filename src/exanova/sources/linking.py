"""Outputs that were read, on the scale of a link: around the mean of the rows that are equal once encoded.

As in memory (``data/link.py``) y becomes g(mean) + g'(mean) (y - mean). That is linear in y, so that sums over rows are
linked as well as rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exanova.data.encoding import Encoding
from exanova.data.link import LINKS, Link
from exanova.data.packing import Words, order_of
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.sources.counting_passes import CountedRows, RowCounter
from exanova.sources.disk import on_disk
from exanova.sources.pieces import Piece, Pieces, group_of, means_of
from exanova.sources.raw_noise import RawSums
from exanova.sources.tally import Tally
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Lines:
    """What the link does to the outputs of every distinct row: (r, m) means, what they become, and slopes."""

    mean: FloatArray
    linked: FloatArray
    slope: FloatArray

    def at(self, group: IntArray) -> Lines:
        """Those of the distinct rows ``group`` (k,)."""
        return Lines(self.mean[group], self.linked[group], self.slope[group])

    def __call__(self, values: FloatArray) -> FloatArray:
        """Outputs of rows (r, m) on the scale of the link."""
        return np.asarray(self.linked + self.slope * (values - self.mean))


def linked(rows: CountedRows, counter: RowCounter) -> CountedRows:
    """The rows with their outputs on the scale of the link of ``counter``."""
    link = LINKS[counter.link]
    if counter.link == "identity" or counter.model is not None:  # the values of a model are linked one by one
        return rows
    tally, raw = rows.tally, rows.raw
    names = ("lowest", "first", "second")
    new: dict[str, Any] = {
        name: None if (own := getattr(tally, name)) is None else _blank(own, rows.on_disk) for name in names
    }
    highest, start = np.full(tally.lowest.shape[1], -np.inf), 0
    for piece in Pieces(rows, counter):
        lines = _lines(link, piece, counter.encoding)
        changed = _changed(piece.own, lines.at(piece.group))
        highest, stop = np.maximum(highest, changed.highest), start + len(changed)
        for name, array in new.items():
            if array is not None:
                array[start:stop] = getattr(changed, name)
        raw = None if raw is None else _linked_raw(raw, piece.main.words, lines)
        start = stop
    return replace(rows, tally=replace(tally, highest=highest, **new), raw=raw)


def _blank(array: FloatArray, disk: bool) -> FloatArray:
    return on_disk(array) if disk else np.empty_like(array)


def _lines(link: Link, piece: Piece, encoding: Encoding) -> Lines:
    means, _ = means_of(piece.main)
    outside = link.outside(means)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        at = int(np.flatnonzero(piece.group == row)[0])
        levels = (f"{name} = {own[int(piece.codes[j, at])]!r}" for j, (name, own) in enumerate(_levels(encoding)))
        value = ", ".join(f"{mean:.4g}" for mean in means[row][:4])
        raise InputError(
            Parameter("link", link.name),
            f" is defined for outputs {link.domain}, but the mean of the outputs of equal rows is {value} for "
            f"{', '.join(levels)} ({int(outside.sum()):,} of {len(outside):,} distinct rows)",
            remedy="Leave such rows out, or choose another link; merge levels until every combination has some, or "
            "decompose a model of it",
        )
    return Lines(means, link.forward(means), link.slope(means))


def _levels(encoding: Encoding) -> list[tuple[str, tuple[object, ...]]]:
    return list(zip(encoding.names, encoding.levels, strict=True))[:6]


def _changed(tally: Tally, lines: Lines) -> Tally:
    lowest = lines(tally.lowest)
    if tally.first is None or tally.second is None:
        return replace(tally, lowest=lowest, highest=lowest.max(axis=0))
    # The largest output of every row is not kept: where outputs differ, that of all rows bounds it.
    above = np.where(tally.second > 0, lines(np.broadcast_to(tally.highest, lowest.shape)), lowest)
    first, second = tally.first * lines.slope, tally.second * lines.slope**2
    return replace(tally, lowest=lowest, highest=above.max(axis=0), first=first, second=second)


def _linked_raw(raw: RawSums, words: Words, lines: Lines) -> RawSums:
    """The sums over equal raw rows, those of the distinct rows of ``words`` (w, r) on the scale of the link."""
    tally = raw.tally
    assert tally.first is not None
    assert tally.second is not None
    place = places_among(words, tally.words[1:])
    here = np.flatnonzero(place >= 0)
    own = lines.at(place[here])
    lowest, first, second = tally.lowest.copy(), tally.first.copy(), tally.second.copy()
    lowest[here], first[here] = own(lowest[here]), first[here] * own.slope
    second[here] *= own.slope**2
    return replace(raw, tally=replace(tally, lowest=lowest, first=first, second=second))


def places_among(words: Words, wanted: Words) -> IntArray:
    """(k,) which of the distinct words (w, r) each of ``wanted`` (w, k) is; -1 for none of them.

    >>> places_among(np.array([[4, 7]], dtype=np.uint64), np.array([[7, 5]], dtype=np.uint64)).tolist()
    [1, -1]
    """
    r = words.shape[1]
    every = np.concatenate([words, wanted], axis=1)
    order = order_of(every)
    group = group_of(every[:, order])
    first = order[np.flatnonzero(np.diff(group, prepend=-1))]  # stable: the distinct words come first
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.where(first[group] < r, first[group], -1)
    return places[r:]
