"""A source of rows: parts that can be read more than once, each in blocks, and the roles of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from exanova.errors import InputError

BLOCK_ROWS = 2**18
"""Rows of a block: large enough for fast passes, small beside everything else in memory."""

COUNT = "\x1frows"
"""Name of the column that says how many equal rows a row of a block stands for, where it stands for several."""


class Part(Protocol):
    """A piece of a source, such as one file. Parts are sent to other processes, so they can be pickled."""

    @property
    def name(self) -> str:
        """What to call it in errors."""

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows with these columns, as tables of pyarrow that may hold a column ``COUNT``."""


@dataclass(frozen=True, eq=False)
class KeptPart:
    """A part that is in memory: a table of pyarrow, usually of distinct rows with their counts."""

    name: str
    table: Any

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """The table, some rows at a time."""
        counted = [COUNT] if COUNT in self.table.column_names else []
        table = self.table.select([*columns, *counted])
        for start in range(0, table.num_rows, BLOCK_ROWS):
            yield table.slice(start, BLOCK_ROWS)


@dataclass(frozen=True, eq=False)
class Source:
    """Rows in parts.

    Attributes:
        parts: in the order in which they are read, which does not affect the result.
        names: the columns that all of them have.
        label: what to call the source in errors and messages.
        kind: library of the tables that a model receives, and of tables of results.
    """

    parts: tuple[Part, ...]
    names: tuple[str, ...]
    label: str
    kind: str = "pyarrow"


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of a source.

    Attributes:
        features: columns to decompose over, as the model receives them.
        outputs: columns with predictions; empty if a model is called.
        weight: the column of weights, or ``None``.
        cluster, stratum: columns that say how rows were drawn, or ``None``.
        replicates: columns of replicate weights.
        divided: the power of two by which all weights are divided, for they are very large or very small.
    """

    features: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    weight: str | None = None
    cluster: str | None = None
    stratum: str | None = None
    replicates: tuple[str, ...] = ()
    divided: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        others = (self.weight, self.cluster, self.stratum, *self.replicates)
        return tuple(dict.fromkeys([*self.features, *self.outputs, *(name for name in others if name is not None)]))

    @property
    def units(self) -> tuple[str, ...]:
        """The columns that say how rows were drawn."""
        return tuple(name for name in (self.cluster, self.stratum) if name is not None)


def find_roles(
    names: Sequence[str],
    label: str,
    outputs: Sequence[str] = (),
    weight: Any = None,
    clusters: Any = None,
    strata: Any = None,
    *,
    replicates: Sequence[str] = (),
) -> Roles:
    """The roles of the columns ``names``: every column without another one is a feature.

    >>> find_roles(["a", "b", "p"], "t.csv", ["p"]).features
    ('a', 'b')
    """
    given = {"sample_weight": weight, "clusters": clusters, "strata": strata}
    wrong = [parameter for parameter, value in given.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise InputError(
            f"{' and '.join(f'{parameter}=' for parameter in wrong)} of rows read in blocks cannot be an array",
            expected="the name of a column",
        )
    named = [*outputs, *replicates, *(value for value in given.values() if value is not None)]
    absent = [name for name in named if name not in names]
    if absent:
        listed = ", ".join(map(repr, names[:20])) + (" and more" if len(names) > 20 else "")
        raise InputError(
            f"{label} has no column {', '.join(map(repr, absent))}; its columns are {listed}",
            remedy="Give the names of columns that are there",
        )
    features = tuple(name for name in names if name not in named)
    if not features:
        raise InputError(f"{label} has no column left for the features; its columns are {', '.join(map(repr, names))}.")
    return Roles(features, tuple(outputs), weight, clusters, strata, tuple(replicates))
