"""The distinct rows of a part, kept while its values are counted: where they are few, it is read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from exanova.packages import package
from exanova.sources.parts import COUNT, KeptPart

KEPT_ROWS = 2**20
"""Distinct rows of a part that the first pass keeps, so that the second does not read the part again."""

SHRINKS = 4
"""Rows of a block are counted as they are if this many times fewer are distinct; else reading them again is cheaper."""


@dataclass
class Keeper:
    """Distinct rows of a part as they are read, as long as they are few."""

    names: tuple[str, ...]
    tables: list[Any] = field(default_factory=list)
    fails: bool = False

    def counted(self, block: Any) -> Any:
        """The distinct rows of a block with their counts, or the block itself where there are about as many."""
        if self.fails:
            return block
        grouped = block if COUNT in block.column_names else distinct_of(block, self.names)
        if grouped is not block and (grouped is None or SHRINKS * grouped.num_rows > block.num_rows):
            self.fails, self.tables = True, []
            return block if grouped is None else grouped
        self.tables.append(grouped)
        if sum(table.num_rows for table in self.tables) > KEPT_ROWS:
            self._merge()
        return grouped

    def part(self, name: str) -> KeptPart | None:
        """The distinct rows as a part, or ``None`` if they were too many."""
        if not self.fails and self.tables:
            self._merge()
        return None if self.fails or not self.tables else KeptPart(name, self.tables[0])

    def _merge(self) -> None:
        merged = distinct_of(package("pyarrow").concat_tables(self.tables), self.names)
        self.fails = merged is None or merged.num_rows > KEPT_ROWS
        self.tables = [] if self.fails else [merged]


def distinct_of(table: Any, names: Sequence[str]) -> Any:
    """The distinct rows of a table of pyarrow and how many rows equal each; ``None`` for types it cannot compare."""
    arrow = package("pyarrow")
    counted = COUNT in table.column_names
    how: list[Any] = [(COUNT, "sum")] if counted else [([], "count_all")]
    try:
        grouped = table.unify_dictionaries().combine_chunks().group_by(list(names), use_threads=False).aggregate(how)
    except (arrow.ArrowNotImplementedError, arrow.ArrowInvalid, arrow.ArrowKeyError):
        return None
    return grouped.select([*names, f"{COUNT}_sum" if counted else "count_all"]).rename_columns([*names, COUNT])
