"""Equal rows counted: codes packed into words, with the weights and outputs of the rows that share them.

Tallies of blocks, files and workers are merged, in any order, to the tally of all rows. As long as they are few, rows
are also distinguished by their outputs, so that all information of a table in memory is kept. Beyond that each row
keeps the sums that its mean and variance need. Sums of whole numbers are exact, and so do not depend on how the rows
were split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.packing import Words, order_of
from exanova.typing import FloatArray, IntArray

MOST_APART = 2**22
"""Rows up to which equal rows are distinguished by their outputs and weights."""


ENTRIES = ("weight", "copies", "lowest", "first", "second", "squares", "unit", "replicates")
"""Arrays of a tally with an entry per row, besides its words."""


@dataclass(frozen=True, eq=False)
class Tally:
    """k rows with the sums over the raw rows that each stands for.

    Attributes:
        words: (w, k) packed codes, ascending.
        weight: (k,) total weight.
        copies: (k,) number of raw rows; ``None`` where that is the weight.
        lowest: (k, m) smallest value of every output.
        highest: (m,) largest value of every output among all rows.
        first: (k, m) weighted sums of the deviations from ``lowest``; ``None`` where rows are distinguished by outputs.
        second: (k, m) weighted sums of their squares, likewise.
        squares: (k,) sums of the squared weights, likewise; ``None`` where weights are counts.
        unit: (k,) weight of each raw row, where rows are distinguished by it; ``None`` where weights are counts.
        replicates: (k, B) sums of replicate weights; then rows are always distinguished by their outputs.
    """

    words: Words
    weight: FloatArray
    copies: FloatArray | None
    lowest: FloatArray
    highest: FloatArray
    first: FloatArray | None = None
    second: FloatArray | None = None
    squares: FloatArray | None = None
    unit: FloatArray | None = None
    replicates: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def is_apart(self) -> bool:
        """Whether rows are distinguished by their outputs and weights."""
        return self.first is None

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """The arrays that it has, words first."""
        return [self.words, *(own for name in ENTRIES if (own := getattr(self, name)) is not None)]

    @property
    def rows(self) -> int:
        """Number of raw rows."""
        return int((self.weight if self.copies is None else self.copies).sum())


def part_of(tally: Tally, rows: slice | NDArray[np.bool_]) -> Tally:
    """Some rows of a tally."""
    cut: dict[str, Any] = {name: None if (own := getattr(tally, name)) is None else own[rows] for name in ENTRIES}
    return replace(tally, words=tally.words[:, rows], **cut)


def tally_rows(
    words: Words,
    values: FloatArray,
    unit: FloatArray,
    copies: FloatArray,
    counts: bool,
    replicates: FloatArray | None = None,
) -> Tally:
    """The tally of rows that stand for several raw rows each.

    Args:
        words: (w, n) packed codes.
        values: (n, m) outputs.
        unit: (n,) weight of one raw row.
        copies: (n,) number of raw rows.
        counts: whether weights count equal rows, so that a raw row of weight two is two rows.
        replicates: (n, B) replicate weights of one raw row.
    """
    highest = values.max(axis=0, initial=-np.inf)
    own = (None, None) if counts else (copies, unit)
    sums = None if replicates is None else replicates * copies[:, None]
    return _merged(Tally(words, unit * copies, own[0], values, highest, unit=own[1], replicates=sums))


def merge_tallies(several: Sequence[Tally]) -> Tally:
    """The tally of all rows, from those of their parts."""
    if len(several) == 1:
        return several[0]
    if not all(tally.is_apart for tally in several):
        several = [together(tally) for tally in several]
    return _merged(_concatenated(several))


def together(tally: Tally) -> Tally:
    """The tally in which rows of the same codes are one, whatever their outputs and weights."""
    if not tally.is_apart:
        return tally
    zero = np.zeros_like(tally.lowest)
    squares = None if tally.unit is None else tally.weight * tally.unit
    return _merged(replace(tally, first=zero, second=zero.copy(), squares=squares, unit=None, replicates=None))


def onto(tally: Tally, words: Words) -> Tally:
    """The tally of the same rows under other words (w, k), those of equal words as one."""
    return _merged(replace(tally, words=words))


def _concatenated(several: Sequence[Tally]) -> Tally:
    def beside(name: str, axis: int = 0) -> NDArray[np.float64] | None:
        arrays = [getattr(tally, name) for tally in several]
        return None if arrays[0] is None else np.concatenate(arrays, axis=axis)

    fields = {name: beside(name) for name in ENTRIES}
    words = np.concatenate([tally.words for tally in several], axis=1)
    highest = np.max([tally.highest for tally in several], axis=0)
    return Tally(words=words, highest=highest, **fields)  # type: ignore[arg-type]


def _merged(tally: Tally) -> Tally:
    """Rows that are equal as one, in ascending order; beyond ``MOST_APART`` whatever their outputs are."""
    order, starts = _groups(tally)
    if tally.is_apart:
        merged = replace(
            tally,
            words=tally.words[:, order[starts]],
            weight=_sums(tally.weight, order, starts),
            copies=None if tally.copies is None else _sums(tally.copies, order, starts),
            lowest=tally.lowest[order[starts]],
            unit=None if tally.unit is None else tally.unit[order[starts]],
            replicates=None if tally.replicates is None else _sums(tally.replicates, order, starts),
        )
        return merged if len(merged) <= MOST_APART or merged.replicates is not None else together(merged)
    return _sums_together(tally, order, starts)


def _sums_together(tally: Tally, order: IntArray, starts: IntArray) -> Tally:
    assert tally.first is not None
    assert tally.second is not None
    weight = tally.weight[order]
    lowest, first, second = (np.empty((len(starts), tally.lowest.shape[1])) for _ in range(3))
    sizes = np.diff(np.append(starts, len(order)))
    for k in range(lowest.shape[1]):
        own = tally.lowest[order, k]
        lowest[:, k] = np.minimum.reduceat(own, starts)
        shift = own - np.repeat(lowest[:, k], sizes)
        above, squared = tally.first[order, k], tally.second[order, k]
        second[:, k] = np.add.reduceat(squared + 2.0 * shift * above + weight * shift**2, starts)
        first[:, k] = np.add.reduceat(above + weight * shift, starts)
    return replace(
        tally,
        words=tally.words[:, order[starts]],
        weight=np.add.reduceat(weight, starts),
        copies=None if tally.copies is None else _sums(tally.copies, order, starts),
        lowest=lowest,
        first=first,
        second=second,
        squares=None if tally.squares is None else _sums(tally.squares, order, starts),
    )


def _groups(tally: Tally) -> tuple[IntArray, IntArray]:
    """An order (n,) in which equal rows are neighbours, and where (k,) each group of them starts in it."""
    keys = list(tally.words[::-1])
    if tally.is_apart:
        keys = [*_marks(tally), *keys]
    order = order_of(tally.words) if len(keys) == len(tally.words) else np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(new)


def _marks(tally: Tally) -> list[FloatArray]:
    """What distinguishes rows of the same codes: the weight of one raw row, if weights are not counts, and outputs."""
    marks = list(tally.lowest.T[::-1])
    return marks if tally.unit is None else [tally.unit, *marks]


def _sums(values: FloatArray, order: IntArray, starts: IntArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values[order], starts))
