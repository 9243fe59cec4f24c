"""The two passes over the parts of a source: the values of every column are counted, then the rows.

Each pass is a task per part, a function of the part alone, and a merge of what the tasks return. A task reads one block
at a time. Where blocks hold few distinct rows, the first pass keeps those, and the second reads nothing again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from exanova.data.distinct import distinct_rows
from exanova.data.encoding import Encoding
from exanova.data.every_column import EveryColumn
from exanova.data.factor import lookup_codes
from exanova.data.link import LINKS, link_each
from exanova.data.named_columns import as_numbers
from exanova.data.packing import pack_rows
from exanova.data.repeating import with_second_call
from exanova.data.table import Table
from exanova.data.values import ModelValues, evaluate
from exanova.data.weights import divided
from exanova.errors import InputError, InputTypeError, ModelError
from exanova.messages import count_of
from exanova.packages import package
from exanova.sources.keeping import Keeper
from exanova.sources.parts import COUNT, KeptPart, Part, Roles
from exanova.sources.raw_noise import RawSums, merge_raw, most_raw, raw_hashes, raw_sums
from exanova.sources.sketch import Hashes, distinct_about, merge_sketches, row_hashes, sketch_of
from exanova.sources.tally import Tally, merge_tallies, tally_rows
from exanova.sources.value_counts import ValueCounts, count_column, merge_counts
from exanova.sources.weighing import Weighed, merge_weighed, weighed
from exanova.typing import FloatArray, Level

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a part.

    Attributes:
        table: the requested columns.
        unit: (n,) weight of one raw row.
        copies: (n,) raw rows that each row stands for.
    """

    table: Table
    unit: FloatArray
    copies: FloatArray


@dataclass(frozen=True, eq=False)
class Counted:
    """The result of the first pass.

    Attributes:
        columns: the values of every feature, and of what says how rows were drawn.
        rows: rows read, those of weight zero included.
        total: their weight.
        whole: whether all weights are whole numbers.
        kept: the distinct rows of every part, where they are few; ``None`` for a part that has to be read again.
        sketch: from which the number of distinct rows is estimated.
        weighed: how rows with weights repeat; nothing without weights.
    """

    columns: dict[str, ValueCounts]
    rows: int
    total: float
    whole: bool
    kept: tuple[KeptPart | None, ...]
    sketch: Hashes = field(default_factory=lambda: merge_sketches(()))
    weighed: Weighed = field(default_factory=Weighed)

    def __len__(self) -> int:
        return sum(map(len, self.columns.values()))

    @property
    def distinct(self) -> int:
        """About how many rows are distinct, as they were given."""
        return distinct_about(self.sketch)

    def within(self, room: float) -> Counted:
        """The same, with no more distinct rows kept than ``room`` bytes hold; the other parts are read again."""
        sizes = np.cumsum([0 if part is None else part.table.nbytes for part in self.kept])
        return replace(self, kept=tuple(p if size <= room else None for p, size in zip(self.kept, sizes, strict=True)))


@dataclass(frozen=True, eq=False)
class Caller:
    """A model, called on the distinct rows of a block.

    Attributes:
        model: the model.
        kind: library of the tables it receives.
        response_method, batch_size, output_names: as the estimator has them.
    """

    model: Any
    kind: str
    response_method: str
    batch_size: int | None
    output_names: Sequence[str] | None

    def __call__(self, encoding: Encoding, table: Table) -> ModelValues:
        """The outputs at the rows of a table."""
        first, group = distinct_rows(encoding.raw_codes(table))
        table, asked = in_library(table, self.kind), (self.response_method, self.batch_size)
        outputs = evaluate(
            self.model,
            table,
            first,
            response_method=self.response_method,
            batch_size=self.batch_size,
            output_names=self.output_names,
        )
        outputs = with_second_call(outputs, self.model, table, first, *asked)
        return replace(outputs, values=outputs.values[group])


@dataclass(frozen=True, eq=False)
class RowCounter:
    """The second pass: how a part becomes a tally.

    Attributes:
        roles: the roles of the columns.
        encoding: the levels of every feature.
        units: the labels of clusters and strata, each with its number.
        counts: whether weights count equal rows.
        model: called on the rows of every block, or ``None`` if outputs are read.
        apart: whether the noise between equal raw rows is measured beside the tally.
        link: the scale that the values of a model are brought to; outputs that are read are linked when all are known.
        room: bytes that raw rows may take while they are merged.
    """

    roles: Roles
    encoding: Encoding
    units: tuple[dict[Level, int], ...]
    counts: bool
    model: Caller | None = None
    apart: bool = False
    link: str = "identity"
    room: float = math.inf

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of levels, of clusters and of strata, as they are packed."""
        return (*self.encoding.sizes, *map(len, self.units))

    def __call__(self, part: Part) -> CountedRows | None:
        """The tally of a part; ``None`` if it has no rows."""
        return fold(self.blocks(part), merge_rows)

    def blocks(self, part: Part) -> Iterator[CountedRows]:
        """The rows of a part, block by block."""
        for block in read_blocks(part, self.roles):
            with named(part):
                yield self._rows(block)

    def _rows(self, block: Block) -> CountedRows:
        table = block.table
        features = table.select(self.encoding.names)
        codes = [*self.encoding.encode(features), *self._unit_codes(table)]
        given = None if self.model is None else self.model(self.encoding, features)
        values = outputs_of(table, self.roles.outputs, block.copies) if given is None else given.values
        if given is not None and self.link != "identity":
            values = link_each(LINKS[self.link], values, np.arange(len(values)))
        replicates = outputs_of(table, self.roles.replicates, block.copies) if self.roles.replicates else None
        words = pack_rows(codes, self.sizes)
        rows = tally_rows(words, values, block.unit, block.copies, self.counts, replicates)
        raw = None
        if self.apart:
            own = pack_rows(codes[: len(self.encoding.sizes)], self.encoding.sizes) if self.units else words
            most = most_raw(self.room, len(own), values.shape[1])
            raw = raw_sums(raw_hashes(self.encoding, features), own, values, block.unit * block.copies, most)
        return CountedRows(rows, raw, None if given is None else replace(given, values=values[:0], within=values[:0]))

    def _unit_codes(self, table: Table) -> Iterator[Any]:
        for name, known in zip(self.roles.units, self.units, strict=True):
            yield lookup_codes(table.column(name), known, -1)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """The result of the second pass: the rows, sums that separate noise from bins, and how a model gave its outputs.

    Too many rows for memory are on disk; ``room`` are the bytes that those read at once may take.
    """

    tally: Tally
    raw: RawSums | None = None
    given: ModelValues | None = None
    on_disk: bool = False
    room: float = math.inf

    def __len__(self) -> int:
        return len(self.tally) + (0 if self.raw is None else len(self.raw))


def merge_rows(several: Sequence[CountedRows]) -> CountedRows:
    """What was found in all rows, from that of their parts."""
    raw = [rows.raw for rows in several if rows.raw is not None]
    given = [rows.given for rows in several if rows.given is not None]
    calls = sum(one.calls for one in given)
    _check_outputs(several)
    return CountedRows(
        merge_tallies([rows.tally for rows in several]),
        merge_raw(raw) if raw else None,
        replace(given[0], calls=calls, repeats=all(one.repeats for one in given)) if given else None,
    )


def _check_outputs(several: Sequence[CountedRows]) -> None:
    widths = {rows.tally.lowest.shape[1] for rows in several}
    if len(widths) > 1:
        raise ModelError(f"The model returned {' and '.join(map(str, sorted(widths)))} outputs on different blocks.")


@dataclass(frozen=True)
class ColumnCounter:
    """The first pass: how a part becomes counts of the values of its columns, at most ``most`` numbers for each."""

    roles: Roles
    most: int
    keep: bool = True

    def __call__(self, part: Part) -> Counted:
        """The counts of a part; without columns if it has no rows of positive weight."""
        keeper = Keeper(self.roles.columns) if self.keep and not isinstance(part, KeptPart) else None
        counted = fold(self._blocks(part, keeper), CountedMerge(self.most))
        if counted is None:
            return Counted({}, 0, 0.0, True, (None,))
        kept = part if isinstance(part, KeptPart) else None if keeper is None else keeper.part(part.name)
        return replace(counted, kept=(kept,))

    def _blocks(self, part: Part, keeper: Keeper | None) -> Iterator[Counted]:
        for given, rows in _given_blocks(part, self.roles, keeper):
            with named(part):
                block = _weighed(given, self.roles)
                if block is None:
                    yield Counted({}, rows, 0.0, True, ())
                    continue
                weight = block.unit * block.copies
                whole = bool((block.unit == np.floor(block.unit)).all())
                columns, wrong = {}, EveryColumn()
                for name in (*self.roles.features, *self.roles.units):
                    with wrong.noted():
                        columns[name] = count_column(block.table.column(name), weight, block.copies, self.most)
                wrong.give()
                hashes = row_hashes(block.table, self.roles.features)
                own = Weighed()
                if self.roles.weight is not None:
                    own = weighed(block.table, self.roles.outputs, hashes, block.copies.sum())
                yield Counted(columns, rows, float(weight.sum()), whole, (), sketch_of(hashes), own)


@dataclass(frozen=True)
class CountedMerge:
    """Merges what the first pass found, with at most ``most`` numbers for each column."""

    most: int

    def __call__(self, several: Sequence[Counted]) -> Counted:
        """The counts of all parts."""
        names = dict.fromkeys(name for counted in several for name in counted.columns)
        columns = {name: [one.columns[name] for one in several if one.columns] for name in names}
        return Counted(
            {name: merge_counts(name, own, self.most) for name, own in columns.items()},
            sum(counted.rows for counted in several),
            sum(counted.total for counted in several),
            all(counted.whole for counted in several),
            tuple(part for counted in several for part in counted.kept),
            merge_sketches([counted.sketch for counted in several]),
            merge_weighed([counted.weighed for counted in several]),
        )


def fold(items: Iterable[T | None], merge: Callable[[Sequence[T]], T]) -> T | None:
    """Everything merged, some at a time: what waits to be merged is never more than what has been, or a block."""
    waiting: list[T] = []
    for item in items:
        if item is None:
            continue
        waiting.append(item)
        if len(waiting) > 2 and sum(map(len, waiting[1:])) > len(waiting[0]):  # type: ignore[arg-type]
            waiting = [merge(waiting)]
    if not waiting:
        return None
    return waiting[0] if len(waiting) == 1 else merge(waiting)


def read_blocks(part: Part, roles: Roles) -> Iterator[Block]:
    """The blocks of a part, without rows of weight zero."""
    for given, _ in _given_blocks(part, roles, None):
        with named(part):
            block = _weighed(given, roles)
        if block is not None:
            yield block


@contextmanager
def named(part: Part) -> Iterator[None]:
    """Errors about rows say which part they are in."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        if part.name in str(error):
            raise
        raise type(error)(f"{part.name}: ", error.message) from error


def _given_blocks(part: Part, roles: Roles, keeper: Keeper | None) -> Iterator[tuple[Any, int]]:
    """Blocks of pyarrow, counted by ``keeper``, and how many raw rows each stands for."""
    for block in part.blocks(roles.columns):
        if not block.num_rows:
            continue
        own = block if keeper is None else keeper.counted(block)
        yield own, _rows_of(own)


def _rows_of(block: Any) -> int:
    if COUNT not in block.column_names:
        return int(block.num_rows)
    return int(package("pyarrow.compute").sum(block.column(COUNT)).as_py())


def _weighed(block: Any, roles: Roles) -> Block | None:
    """The rows of positive weight, or ``None`` if there are none."""
    copies = np.ones(block.num_rows)
    if COUNT in block.column_names:
        copies = block.column(COUNT).to_numpy().astype(np.float64)
    table = Table(tuple(roles.columns), "pyarrow", block.select(list(roles.columns)))
    unit = np.ones(block.num_rows) if roles.weight is None else _numbers(table, roles.weight, copies)
    if roles.weight is not None:
        _check_weights(roles.weight, unit, copies)
        unit = divided(unit, roles.divided)
    if unit.all():
        return Block(table, unit, copies)
    kept = np.flatnonzero(unit)
    return Block(table.rows(kept), unit[kept], copies[kept]) if len(kept) else None


def outputs_of(table: Table, names: Sequence[str], copies: FloatArray) -> FloatArray:
    """(n, m) the columns called ``names`` of rows that stand for that many (n,) each."""
    out = np.empty((table.n_rows, len(names)))
    for k, name in enumerate(names):
        out[:, k] = _numbers(table, name, copies)
    return out


def in_library(table: Table, kind: str) -> Table:
    """A table of pyarrow as one of another library, as a model receives it."""
    if kind == "pandas":
        return Table(table.names, kind, table.native.to_pandas())
    return Table(table.names, kind, package("polars").from_arrow(table.native)) if kind == "polars" else table


def _check_weights(name: str, unit: FloatArray, copies: FloatArray) -> None:
    """Raise if a weight is negative; where a row of a block is in its file is not known."""
    negative = unit < 0
    if negative.any():
        raise InputError(
            f"the column {name!r} of weights is negative in {count_of(int(copies[negative].sum()), 'row')} or more",
            expected="numbers of at least 0",
        )


def _numbers(table: Table, name: str, copies: FloatArray) -> FloatArray:
    """A column of weights or predictions as float64 (n,), of rows that stand for that many (n,) each."""
    values, missing = as_numbers(table.column(name), "weights or predictions")
    wrong = missing | ~np.isfinite(values)
    if wrong.any():
        raise InputError(
            f"the column {name!r} of weights or predictions is missing or infinite in "
            f"{count_of(int(copies[wrong].sum()), 'row')} or more",
            remedy="Fill it, or leave these rows out",
        )
    return values
