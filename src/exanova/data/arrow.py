"""Columns of pyarrow, and of pandas where it stores them as pyarrow does: cells, codes, and rows taken from them.

Dictionaries are read as codes: each chunk may have its own dictionary, with repeated, unused or null entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import Column
from exanova.data.factor import FEW, factorize
from exanova.data.recoding import code_type, is_identity, recoded
from exanova.data.times import count_levels, date_level, moment_level, span_level, time_level, time_zone
from exanova.errors import InputTypeError
from exanova.typing import IntArray, Level

DAY = 86_400_000
"""Milliseconds of a day, the unit of date64."""


def read_arrow(name: str, chunked: Any) -> Column:
    """A chunked array of pyarrow as a column; its type is one that ``holds_levels``."""
    from pyarrow import types

    kind = chunked.type
    if types.is_dictionary(kind):
        dictionary, codes = _joined_dictionary(chunked)
        return coded_column(read_arrow(name, dictionary), codes, categories=True, is_ordered=kind.ordered)
    if types.is_run_end_encoded(kind):
        values, runs = _joined_runs(chunked)
        return read_arrow(name, values).at(runs)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return _read_numbers(name, chunked)
    if types.is_temporal(kind):
        counts, missing = _counts(chunked)
        return Column.from_codes(name, *count_levels(counts, missing, _meaning(name, kind)))
    if len(chunked) > FEW and _is_text(kind):
        dictionary, codes = _joined_dictionary(_without_views(chunked).dictionary_encode())
        return coded_column(Column.from_cells(name, dictionary.to_pylist()), codes)
    return Column.from_cells(name, chunked.to_pylist())


def holds_levels(kind: Any) -> bool:
    """Whether the cells of a type of pyarrow can be levels: no lists, structs, unions or calendar intervals."""
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return holds_levels(kind.value_type)
    return not (types.is_nested(kind) or types.is_interval(kind))


def take_rows(table: Any, rows: IntArray) -> Any:
    """Rows (k,) of a table of pyarrow, also for the types of columns that it cannot take rows of itself."""
    import pyarrow as pa

    try:
        return table.take(rows)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        columns = [_take(column, rows) for column in table.columns]
        return pa.Table.from_arrays(columns, schema=table.schema)


def coded_column(entries: Column, codes: IntArray, *, categories: bool = False, is_ordered: bool = False) -> Column:
    """The column of codes (n,) into the cells ``entries``, which may be repeated or missing; -1 is missing too.

    With ``categories``, the entries are those of a categorical dtype and keep their order; ``is_ordered`` if the dtype
    says that the order means something.
    """
    levels, of_entry = _in_order(*factorize(entries))
    table = np.append(of_entry, -1).astype(code_type(len(levels)))
    own = codes if is_identity(table) else recoded(table, codes)
    return Column.from_codes(entries.name, levels, own, tuple(levels) if categories else None, is_ordered)


def _in_order(levels: list[Level], codes: IntArray) -> tuple[list[Level], IntArray]:
    """The same levels (k,) and codes (n,) with levels in the order in which they first occur."""
    present = np.flatnonzero(codes >= 0)
    first = np.empty(len(levels), dtype=np.int64)
    first[codes[present[::-1]]] = present[::-1]
    order = np.argsort(first)
    rank = np.full(len(levels) + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(levels))
    return [levels[k] for k in order], rank[codes]


def _joined_dictionary(chunked: Any) -> tuple[Any, IntArray]:
    """The different dictionaries of the chunks one after the other, and positions (n,) in them; -1 where null."""
    import pyarrow as pa

    dictionaries: list[Any] = []
    starts: list[int] = []
    codes: list[IntArray] = []
    for chunk in chunked.chunks:
        if not dictionaries or not chunk.dictionary.equals(dictionaries[-1]):
            starts.append(sum(map(len, dictionaries)))
            dictionaries.append(chunk.dictionary)
        codes.append(_positions(chunk.indices, starts[-1], len(chunk.dictionary)))
    values = pa.chunked_array(dictionaries, type=chunked.type.value_type)
    return values, np.concatenate(codes) if codes else np.empty(0, dtype=np.int64)


def _positions(indices: Any, start: int, size: int) -> IntArray:
    """(n,) indices into a dictionary that begins at ``start`` among all, in a small type; -1 where null."""
    small = code_type(start + size)
    nulls = indices.null_count > 0
    plain = (indices.fill_null(0) if nulls else indices).to_numpy(zero_copy_only=False)
    codes = plain.astype(small, copy=False) if not start else plain.astype(small) + small(start)
    return np.where(indices.is_null().to_numpy(zero_copy_only=False), small(-1), codes) if nulls else codes


def _joined_runs(chunked: Any) -> tuple[Any, IntArray]:
    """The values of the runs of all chunks one after the other, and which of them each row (n,) holds."""
    import pyarrow as pa

    runs: list[IntArray] = [np.empty(0, dtype=np.int64)]
    start = 0
    for chunk in chunked.chunks:
        rows = np.arange(chunk.offset, chunk.offset + len(chunk))
        runs.append(start + np.searchsorted(chunk.run_ends.to_numpy(), rows, side="right"))
        start += len(chunk.values)
    values = [chunk.values for chunk in chunked.chunks]
    return pa.chunked_array(values, type=chunked.type.value_type), np.concatenate(runs)


def _read_numbers(name: str, chunked: Any) -> Column:
    from pyarrow import types

    missing = _nulls(chunked)
    if types.is_floating(chunked.type):
        values = chunked.to_numpy()
        return Column(name, values, missing | np.isnan(values))
    if missing.any():  # filled first: integers beyond 2**53 would not survive the way through floats
        chunked = chunked.fill_null(False if types.is_boolean(chunked.type) else 0)
    return Column(name, np.array(chunked.to_numpy()), missing)


def _nulls(chunked: Any) -> NDArray[np.bool_]:
    return np.asarray(chunked.is_null().to_numpy(), dtype=bool)


def _counts(chunked: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Cells of a temporal type as integers (n,), and the mask (n,) of the missing ones."""
    import pyarrow as pa

    whole = pa.int32() if chunked.type.bit_width == 32 else pa.int64()
    return chunked.cast(whole).fill_null(0).to_numpy().astype(np.int64), _nulls(chunked)


def _meaning(name: str, kind: Any) -> Callable[[int], Level]:
    """The level that a count of a temporal type stands for."""
    from pyarrow import types

    if types.is_date(kind):
        return date_level if kind.bit_width == 32 else lambda count: date_level(count // DAY)
    if types.is_time(kind):
        return lambda count: time_level(count, kind.unit)
    if types.is_duration(kind):
        return lambda count: span_level(count, kind.unit)
    zone = None if kind.tz is None else zone_of(name, kind.tz)
    return lambda count: moment_level(count, kind.unit, zone)


def zone_of(column: str, name: str) -> Any:
    """The time zone of a column by its name."""
    try:
        return time_zone(name)
    except ValueError as error:
        raise InputTypeError(
            f"Column {column!r} has the time zone {name!r}, which is not known on this machine; "
            "install the package tzdata, or convert the column to UTC."
        ) from error


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in (*tests, types.is_binary, types.is_large_binary, types.is_binary_view))


def _without_views(chunked: Any) -> Any:
    """Strings and bytes in a layout that every function of pyarrow knows."""
    import pyarrow as pa

    if pa.types.is_string_view(chunked.type):
        return chunked.cast(pa.large_string())
    return chunked.cast(pa.large_binary()) if pa.types.is_binary_view(chunked.type) else chunked


def _take(chunked: Any, rows: IntArray) -> Any:
    """Rows (k,) of one column, of the same type."""
    import pyarrow as pa

    kind = chunked.type
    if pa.types.is_run_end_encoded(kind):
        values, runs = _joined_runs(chunked)
        return _one_row_runs(_take(values, runs[rows]), kind)
    if pa.types.is_dictionary(kind):
        dictionary, codes = _joined_dictionary(chunked)
        indices = pa.array(codes[rows], mask=codes[rows] < 0).cast(kind.index_type)
        one = dictionary.combine_chunks()
        return pa.DictionaryArray.from_arrays(indices, one, ordered=kind.ordered)
    return _without_views(chunked).take(pa.array(rows)).cast(kind)


def _one_row_runs(values: Any, kind: Any) -> Any:
    """Run-end encoded values, each a run of its own, in chunks short enough for the type of the run ends."""
    import pyarrow as pa

    size = np.iinfo(kind.run_end_type.to_pandas_dtype()).max
    chunks = []
    for start in range(0, len(values), size):
        own = values.slice(start, size)
        own = own.combine_chunks() if isinstance(own, pa.ChunkedArray) else own
        ends = pa.array(np.arange(1, len(own) + 1), type=kind.run_end_type)
        chunks.append(pa.RunEndEncodedArray.from_arrays(ends, own, type=kind))
    return pa.chunked_array(chunks, type=kind)


def as_categories(table: Any, names: Sequence[str] | None) -> Any:
    """A pyarrow table with the columns ``names``, or all of text, as dictionaries whose values are sorted.

    >>> import pyarrow
    >>> as_categories(pyarrow.table({"a": ["v", "u", "v"]}), None).column("a").combine_chunks().dictionary.to_pylist()
    ['u', 'v']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for k, name in enumerate(table.column_names):
        column = table.column(k)
        of_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if (of_text if names is None else name in names) and not pa.types.is_dictionary(column.type):
            whole = column.combine_chunks()
            levels = pc.drop_null(pc.unique(whole))
            levels = levels.take(pc.sort_indices(levels))
            table = table.set_column(k, name, pa.DictionaryArray.from_arrays(pc.index_in(whole, levels), levels))
    return table
