"""One column of a dataframe of any library as a ``Column``: the same cells give the same levels everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from exanova.data.arrow import coded_column, holds_levels, read_arrow, zone_of
from exanova.data.column import Column
from exanova.data.factor import FEW, factorize
from exanova.data.recoding import blocks
from exanova.data.times import count_levels, date_level, moment_level, span_level, time_level
from exanova.typing import IntArray, Level

TIMES = (nw.Datetime, nw.Duration, nw.Time, nw.Date)


def read_series(name: str, series: nw.Series[Any]) -> Column:
    """Read one column; its dtype is one for which ``what_it_holds`` returns ``None``."""
    chunked = _as_arrow(series)
    if chunked is not None:
        return read_arrow(name, chunked)
    dtype = series.dtype
    if dtype in (nw.Categorical, nw.Enum):
        return _read_categorical(name, series)
    if dtype in TIMES:
        return _read_times(name, series)
    wide = dtype in (nw.Int128, nw.UInt128)  # NumPy has no such integers, Python has
    if (dtype.is_numeric() and not dtype.is_decimal() and not wide) or dtype == nw.Boolean:
        return _read_numbers(name, series)
    if dtype == nw.String and series.implementation.is_polars() and len(series) > FEW:
        return _read_polars_codes(name, series.cast(nw.Categorical))
    return Column.from_cells(name, series.to_list())


def what_it_holds(series: nw.Series[Any]) -> str | None:
    """The dtype of a column whose cells cannot be levels, such as lists; ``None`` if they may be."""
    native, dtype = series.to_native(), series.dtype
    arrow = getattr(native.dtype, "pyarrow_dtype", None) if series.implementation.is_pandas_like() else None
    if series.implementation.is_pyarrow():
        arrow = native.type
    if arrow is not None:
        return None if holds_levels(arrow) else str(arrow)
    nested = dtype.is_nested() or (series.implementation.is_polars() and native.dtype.is_nested())
    return str(native.dtype) if nested else None


def _as_arrow(series: nw.Series[Any]) -> Any:
    """The column as a chunked array if pyarrow stores it, else ``None``."""
    native = series.to_native()
    if series.implementation.is_pyarrow():
        return native
    if not series.implementation.is_pandas_like() or not _is_stored_by_arrow(native.dtype):
        return None
    import pyarrow as pa

    stored = pa.array(native)
    return stored if isinstance(stored, pa.ChunkedArray) else pa.chunked_array([stored])


def _is_stored_by_arrow(dtype: Any) -> bool:
    """Whether pyarrow stores the cells of a dtype of pandas: one of its own, or text."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"


def _read_numbers(name: str, series: nw.Series[Any]) -> Column:
    missing = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        values = series.to_numpy()
        return Column(name, values, missing | np.isnan(values))
    if missing.any():  # filled first: integers beyond 2**53 would not survive the way through floats
        series = series.fill_null(False if series.dtype == nw.Boolean else 0)
    values = series.to_numpy()
    return Column(name, values.astype(bool) if series.dtype == nw.Boolean else values, missing)


def _read_categorical(name: str, series: nw.Series[Any]) -> Column:
    """Codes as the library keeps them; only the categories are read as cells."""
    native = series.to_native()
    if series.implementation.is_polars():
        return _read_polars_codes(name, series)
    codes = np.asarray(native.cat.codes)
    categories, is_ordered = native.cat.categories, bool(native.cat.ordered)
    if categories.dtype.kind == "O" and not hasattr(categories.dtype, "pyarrow_dtype"):
        return coded_column(Column.from_cells(name, categories.tolist()), codes, categories=True, is_ordered=is_ordered)
    entries = nw.from_native(categories.to_series(), series_only=True)
    return coded_column(read_series(name, entries), codes, categories=True, is_ordered=is_ordered)


def _read_polars_codes(name: str, series: nw.Series[Any]) -> Column:
    """A ``Categorical`` has no order but that of its text, and its codes may be shared with other columns."""
    native, dtype = series.to_native(), series.dtype
    own, codes = factorize(Column(name, *_physical(native)))
    levels = native.gather(_one_row_each(codes, len(own))).to_list()
    categories = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else None
    return Column.from_codes(name, levels, codes, categories, is_ordered=categories is not None)


def _one_row_each(codes: IntArray, size: int) -> IntArray:
    """A row (size,) in which each code occurs."""
    rows = np.empty(size + 1, dtype=np.int64)
    for block in blocks(len(codes)):
        rows[codes[block]] = np.arange(block.start, block.stop)
    return rows[:size]


def _read_times(name: str, series: nw.Series[Any]) -> Column:
    if series.implementation.is_polars():
        counts, missing = _physical(series.to_native())
        return Column.from_codes(name, *count_levels(counts, missing, _meaning(name, series.dtype)))
    if not series.implementation.is_pandas_like() or series.dtype in (nw.Time, nw.Date):
        return Column.from_cells(name, series.to_list())
    native = series.to_native()
    zone = getattr(native.dtype, "tz", None)
    if zone is None:
        return Column.from_array(name, np.asarray(native))
    instants = native.dt.tz_convert(None).to_numpy()
    unit = np.datetime_data(instants.dtype)[0]
    levels = count_levels(instants.view(np.int64), np.isnat(instants), lambda count: moment_level(count, unit, zone))
    return Column.from_codes(name, *levels)


def _physical(native: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The integers (n,) behind a column of polars, 0 where null, and the mask (n,) of the nulls."""
    physical = native.to_physical()
    return physical.fill_null(0).to_numpy(), np.asarray(physical.is_null().to_numpy(), dtype=bool)


def _meaning(name: str, dtype: Any) -> Callable[[int], Level]:
    """The level that a count behind a temporal column of polars stands for."""
    if isinstance(dtype, nw.Datetime):
        zone = None if dtype.time_zone is None else zone_of(name, dtype.time_zone)
        return lambda count: moment_level(count, dtype.time_unit, zone)
    if isinstance(dtype, nw.Duration):
        return lambda count: span_level(count, dtype.time_unit)
    return (lambda count: time_level(count, "ns")) if isinstance(dtype, nw.Time) else date_level
