"""Small tables of one shape in one array, so that thousands of them are multiplied at once and not one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exanova.typing import FloatArray, IntArray

LARGEST_STACKED = 1024
"""Numbers in a table up to which calling a product takes longer than the product itself."""

FEWEST_STACKED = 8
"""Tables of one shape from which they are stacked."""


@dataclass(frozen=True, eq=False)
class TableStack:
    """Tables of one shape.

    Attributes:
        members: (b,) numbers of their subsets, increasing.
        tables: (b, c, k) values of k functions on c cells.
    """

    members: IntArray
    tables: FloatArray

    def places(self, start: IntArray, axis: int) -> IntArray:
        """(b, n) places of the cells (``axis`` 1) or functions (2) of each table in flat arrays that begin at start."""
        return np.asarray(start[self.members][:, None] + np.arange(self.tables.shape[axis]))


@dataclass(frozen=True, eq=False)
class Stacks:
    """Stacks of tables, and the subsets whose tables are in none of them."""

    stacked: tuple[TableStack, ...]
    single: tuple[int, ...]

    @classmethod
    def of(cls, tables: Sequence[FloatArray | None]) -> Stacks:
        """Stack what is small and of one shape; ``None`` stands for what is not a table.

        >>> made = Stacks.of([np.ones((2, 1))] * 9 + [None])
        >>> made.stacked[0].tables.shape, made.single
        ((9, 2, 1), (9,))
        """
        shapes: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for s, table in enumerate(tables):
            if table is not None and 0 < table.size <= LARGEST_STACKED:
                shapes[table.shape].append(s)
        groups = [members for members in shapes.values() if len(members) >= FEWEST_STACKED]
        stacks = tuple(
            TableStack(np.array(members), np.stack([t for t in (tables[s] for s in members) if t is not None]))
            for members in groups
        )
        stacked = {s for members in groups for s in members}
        return cls(stacks, tuple(s for s in range(len(tables)) if s not in stacked))

    def inside(self, run: range) -> Iterator[TableStack]:
        """The stacks, each without the subsets outside a run."""
        for stack in self.stacked:
            a, b = np.searchsorted(stack.members, [run.start, run.stop])
            if a < b:
                yield TableStack(stack.members[a:b], stack.tables[a:b])
