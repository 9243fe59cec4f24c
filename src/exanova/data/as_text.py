"""What a column of text holds whose cells are numbers or dates, or look like them: how many, and an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exanova.messages import Action, Parts, count_of
from exanova.typing import Level

Flags: TypeAlias = NDArray[np.bool_]

MOSTLY = 0.5
"""Share of the cells from which a column holds numbers or dates, and the others are to be explained."""

LONGEST = 30
"""Characters of a cell that are shown."""


@dataclass(frozen=True)
class AsText:
    """What a column of text holds.

    Attributes:
        noun: what most cells are, or look like: "number" or "date".
        cells: cells that are not missing, or different values where weights do not count cells.
        counted: whether cells were counted.
        plain: how many can be read as they are.
        written: how many look like one that is written in another way.
        example: the most frequent of those; without any, the most frequent of the rest; empty without any.
        rewrite: what to do about cells that are written in another way, or about text where all cells can be read.
        certain: whether they cannot just as well be codes.
    """

    noun: str
    cells: int
    counted: bool
    plain: int
    written: int
    example: str
    rewrite: Parts = ""
    certain: bool = True

    @property
    def remedy(self) -> Parts:
        """What to do about it."""
        if self.written or self.plain == self.cells:
            return self.rewrite
        return ["Correct these cells, or ", Action("missing", self.example, "make them missing")]

    def describe(self) -> str:
        """What was found, in words.

        >>> AsText("number", 5, True, 4, 1, "3 EUR").describe()
        "4 of 5 cells are numbers, 1 looks like a number written as '3 EUR'"
        """
        of = f" of {count_of(self.cells, 'cell')}" if self.counted else f" of {self.cells:,} different values"
        rest = self.cells - self.plain - self.written
        parts = []
        if self.plain:
            parts.append((self.plain, f"is a {self.noun}", f"are {self.noun}s"))
        if self.written:
            as_ = f"written as {self.example!r}"
            parts.append((self.written, f"looks like a {self.noun} {as_}", f"look like {self.noun}s {as_}"))
        elif rest:
            parts.append((rest, f"is not: {self.example!r}", f"are not, such as {self.example!r}"))
        texts = [f"{n:,}{of if not k else ''} {one if n == 1 else many}" for k, (n, one, many) in enumerate(parts)]
        return ", ".join(texts)


def held(noun: str, values: Sequence[Level], totals: NDArray[Any], plain: Flags, written: Flags) -> AsText | None:
    """What distinct values (k,) are, of which some are ``plain`` (k,) and others ``written`` (k,) in another way.

    ``None`` if those are not most of all. Totals (k,) that are no counts of rows are not used. What to do is not said.
    """
    counted = totals.dtype.kind == "i"
    counts = totals.astype(np.int64) if counted else np.ones(len(values), dtype=np.int64)
    like = plain | written
    if counts[like].sum() <= MOSTLY * counts.sum():
        return None
    shown = written if written.any() else ~like
    example = str(values[int(np.argmax(np.where(shown, counts, 0)))])[:LONGEST] if shown.any() else ""
    return AsText(noun, int(counts.sum()), counted, int(counts[plain].sum()), int(counts[written].sum()), example)
