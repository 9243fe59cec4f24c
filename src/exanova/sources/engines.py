"""Rows that an engine holds: datasets of pyarrow, lazy frames of polars, relations of DuckDB, Ibis, PySpark, Dask.

An engine is asked how many of its rows are distinct, about; then to give its rows in blocks, or to count the distinct
ones where these are few. Only whole counts of equal rows are taken from it; what null, NaN and "" mean is decided here,
as for every table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from exanova.errors import ExanovaError, InputError
from exanova.packages import package
from exanova.sources import parts
from exanova.sources.blame import file_error, paths_of_dask, paths_of_polars, paths_of_spark
from exanova.sources.files import explained
from exanova.sources.parts import COUNT, Part, Source

FIRST_ROWS = 2**16
"""First rows of an engine that tell whether its distinct rows are few, where it cannot estimate their number."""

FEWER = 4
"""An engine counts its distinct rows if about this many times fewer rows are distinct."""


def engine_source(X: Any) -> Callable[[], Source] | None:
    """How to read ``X`` as a source; ``None`` if it belongs to no known engine. Imports nothing.

    >>> engine_source([1, 2]) is None
    True
    """
    if type(X).__module__.startswith("narwhals") and type(X).__name__ == "LazyFrame":
        return engine_source(X.to_native())
    library = type(X).__module__.partition(".")[0].lstrip("_")
    opened, wanted = _ENGINES.get(library, (None, ""))
    return None if opened is None or not hasattr(X, wanted) else lambda: opened(X)


Known: TypeAlias = dict[tuple[str, ...], bool]
"""By columns: whether their distinct rows are few. An engine is asked once."""


def _are_few(known: Known, columns: Sequence[str], counts: Callable[[], tuple[Any, Any]]) -> bool:
    """Whether few rows are distinct in these columns; ``counts`` asks for the number of rows, and of distinct ones."""
    key = tuple(columns)
    if key not in known:
        rows, distinct = counts()
        known[key] = bool(rows) and FEWER * int(distinct) <= int(rows)
    return known[key]


def _polars_counts(frame: Any, columns: Sequence[str]) -> tuple[int, int]:
    """The number of rows, and about how many are distinct."""
    polars = package("polars")
    hashes = polars.struct(list(columns)).hash()
    rows, distinct = (
        frame.select(polars.len(), hashes.approx_n_unique().alias("distinct")).collect(engine="streaming").row(0)
    )
    return int(rows), int(distinct)


@dataclass(frozen=True, eq=False)
class DatasetPart:
    """A fragment of a dataset of pyarrow, or a whole dataset."""

    name: str
    held: Any
    schema: Any

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows, some at a time."""
        own = {} if self.schema is None else {"schema": self.schema}
        self._check_columns(columns)
        with explained(self.name):
            batches = self.held.to_batches(columns=list(columns), batch_size=parts.BLOCK_ROWS, use_threads=False, **own)
            yield from map(_as_table, batches)

    def _check_columns(self, columns: Sequence[str]) -> None:
        """Raise if the file of a fragment lacks a column, which pyarrow would fill with nulls."""
        if self.schema is None:
            return
        with explained(self.name):
            keys = package("pyarrow.dataset").get_partition_keys(self.held.partition_expression)
            own = {*self.held.physical_schema.names, *keys}
        lacks = [name for name in columns if name not in own]
        if lacks:
            raise InputError(
                f"{self.name!r} lacks {', '.join(map(repr, lacks))}, which the pyarrow dataset fills with nulls",
                remedy="Add the column to the file, or leave the file out; to have nulls, write them",
            )


@dataclass(frozen=True, eq=False)
class PolarsPart:
    """A lazy frame of polars."""

    frame: Any
    name: str = "the polars LazyFrame"
    known: Known = field(default_factory=dict)

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows, some at a time, or its distinct rows."""
        polars, own = package("polars"), list(columns)
        with engine_errors(self.name, lambda: file_error(paths_of_polars(self.frame), own)):
            chosen = self.frame.select(own)
            schema = chosen.collect_schema()
            text = [name for name, dtype in schema.items() if dtype == polars.Categorical]
            ordered = [name for name, dtype in schema.items() if isinstance(dtype, polars.Enum)]
            chosen = chosen.with_columns(polars.col(text).cast(polars.String)) if text else chosen
            if _are_few(self.known, own, lambda: _polars_counts(chosen, own)):
                chosen = chosen.group_by(own).agg(polars.len().alias(COUNT))
            for block in chosen.collect_batches(chunk_size=parts.BLOCK_ROWS):
                yield _with_order(block.to_arrow(), ordered)


@dataclass(frozen=True, eq=False)
class DuckPart:
    """A relation of DuckDB."""

    relation: Any
    name: str = "the DuckDB relation"
    known: Known = field(default_factory=dict)

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows, some at a time, or its distinct rows."""
        listed = ", ".join(_quoted(name) for name in columns)
        with engine_errors(self.name):
            view = "exanova_rows"
            asked = f"SELECT count(*), approx_count_distinct(hash({listed})) FROM {view}"
            query = f"SELECT {listed} FROM {view}"
            if _are_few(self.known, columns, lambda: self.relation.query(view, asked).fetchall()[0]):
                query = f"SELECT {listed}, count(*) AS {_quoted(COUNT)} FROM {view} GROUP BY {listed}"
            reader = _duck_reader(self.relation.query(view, query))
            try:
                yield from map(_as_table, reader)
            finally:  # a result that is not read to its end keeps the connection busy
                reader.close()


@dataclass(frozen=True, eq=False)
class IbisPart:
    """A table of Ibis."""

    table: Any
    name: str = "the Ibis table"
    known: Known = field(default_factory=dict)

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows, some at a time, or its distinct rows."""
        own = list(columns)
        with engine_errors(self.name):
            chosen = self.table.select(own)
            first = chosen.limit(FIRST_ROWS)
            if _are_few(self.known, own, lambda: (first.count().execute(), first.distinct().count().execute())):
                chosen = chosen.group_by(own).aggregate(**{COUNT: chosen.count()})
            yield from map(_as_table, chosen.to_pyarrow_batches(chunk_size=parts.BLOCK_ROWS))


@dataclass(frozen=True, eq=False)
class SparkPart:
    """A data frame of PySpark, which counts its distinct rows; these have to fit in local memory."""

    frame: Any
    name: str = "the PySpark DataFrame"

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its distinct rows."""
        arrow = package("pyarrow")
        with engine_errors(self.name, lambda: file_error(paths_of_spark(self.frame), columns)):
            own = [self.frame["`" + name.replace("`", "``") + "`"] for name in columns]
            grouped = self.frame.groupBy(*own).count()
            names = [*columns, COUNT]
            rows = grouped.toDF(*names)
            yield rows.toArrow() if hasattr(rows, "toArrow") else arrow.Table.from_pandas(rows.toPandas())


@dataclass(frozen=True, eq=False)
class DaskPart:
    """A partition of a data frame of Dask."""

    frame: Any
    number: int

    @property
    def name(self) -> str:
        """Which partition it is."""
        return f"partition {self.number} of the Dask DataFrame"

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its rows."""
        with engine_errors(self.name, lambda: file_error(paths_of_dask(self.frame), columns)):
            partition = self.frame[list(columns)].get_partition(self.number).compute()
            _check_kinds(partition, self.frame)
            yield package("pyarrow").Table.from_pandas(partition, preserve_index=False)


def _check_kinds(partition: Any, frame: Any) -> None:
    """Raise if a column of a partition of Dask holds numbers where the data frame has none, or the reverse."""
    for name in partition.columns:
        own, expected = partition[name].dtype, frame.dtypes[name]
        if len(partition) and (own.kind in "biuf") != (expected.kind in "biuf") and not partition[name].isna().all():
            raise TypeError(f"{name!r} is {own} in place of {expected}")


@contextmanager
def engine_errors(name: str, of_file: Callable[[], ExanovaError | None] | None = None) -> Iterator[None]:
    """Turn any error of an engine into one error that names it, and the file, where ``of_file`` finds it."""
    try:
        yield
    except (ExanovaError, GeneratorExit):
        raise
    except Exception as error:
        blamed = None if of_file is None else of_file()
        if blamed is not None:
            raise type(blamed)(f"{name} cannot be read: ", blamed.message) from error
        lines = [line for line in str(error).strip().splitlines() if line]
        first = lines[0] if lines else type(error).__name__
        causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]  # of Java
        raise InputError(f"{name} cannot be read: {(causes[-1] if causes else first)[:200].rstrip('.')}.") from error


def _open_dataset(dataset: Any) -> Source:
    try:
        own = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset has none of its own
        own = []
    opened: list[Part] = [DatasetPart("the pyarrow dataset", dataset, None)]
    if own and hasattr(own[0], "path"):
        opened = [DatasetPart(part.path, part, dataset.schema) for part in own]
    return Source(tuple(opened), tuple(dataset.schema.names), "the pyarrow dataset")


def _open_polars(frame: Any) -> Source:
    part = PolarsPart(frame)
    with engine_errors(part.name, lambda: file_error(paths_of_polars(frame), ())):
        return Source((part,), tuple(frame.collect_schema().names()), part.name, "polars")


def _whole(kind: Callable[[Any], Part], table: str = "pyarrow") -> Callable[[Any], Source]:
    """How to open what is one part: a relation, a table or a data frame."""

    def opened(held: Any) -> Source:
        part = kind(held)
        return Source((part,), tuple(held.columns), part.name, table)

    return opened


def _open_dask(frame: Any) -> Source:
    opened = tuple(DaskPart(frame, number) for number in range(frame.npartitions))
    return Source(opened, tuple(map(str, frame.columns)), "the Dask DataFrame", "pandas")


_ENGINES: dict[str, tuple[Callable[[Any], Source], str]] = {
    "pyarrow": (_open_dataset, "get_fragments"),
    "polars": (_open_polars, "collect_batches"),
    "duckdb": (_whole(DuckPart), "aggregate"),
    "ibis": (_whole(IbisPart), "to_pyarrow_batches"),
    "pyspark": (_whole(SparkPart, "pandas"), "groupBy"),
    "dask": (_open_dask, "get_partition"),
    "dask_expr": (_open_dask, "get_partition"),
}
"""By the library of an object: how to open it, and a method that only what can be opened has."""


def _as_table(batch: Any) -> Any:
    """A batch of pyarrow as a table."""
    return package("pyarrow").Table.from_batches([batch])


def _duck_reader(relation: Any) -> Any:
    """Batches of pyarrow, by the name that this version of DuckDB has for them."""
    for name in ("to_arrow_reader", "arrow_reader", "fetch_record_batch", "fetch_arrow_reader"):
        if hasattr(relation, name):
            return getattr(relation, name)(parts.BLOCK_ROWS)
    raise InputError("this version of DuckDB gives no batches of pyarrow; install a later one.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _with_order(block: Any, names: Sequence[str]) -> Any:
    """A table whose dictionaries called ``names`` are in order, as those of an Enum are."""
    arrow = package("pyarrow")
    for name in names:
        place = block.column_names.index(name)
        chunks = [
            arrow.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary, ordered=True)
            for chunk in block.column(place).chunks
        ]
        if chunks:
            block = block.set_column(place, name, arrow.chunked_array(chunks))
    return block
