"""Any library, one table: the same cells, the same missing ones, and nothing changed."""

import datetime
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from exanova.data import Column, Table, frame_of_kind
from exanova.errors import InputError, InputTypeError

KINDS = ["pandas", "polars", "pyarrow", "numpy"]
ROWS = {"a": ["u", "v", None, "u"], "b": [3, 1, 2, 3], "c": [True, False, True, True]}


def make(kind, columns=ROWS):
    if kind == "numpy":
        return np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object)
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


@pytest.mark.parametrize("kind", KINDS)
def test_every_library_shows_the_same_cells(kind):
    table = Table.read(make(kind))
    assert (table.kind, table.n_rows, table.n_columns) == (kind, 4, 3)
    text, number, boolean = (table.column(name) for name in table.names)
    assert text.values.tolist() == ["u", "v", None, "u"]
    assert text.missing.tolist() == [False, False, True, False]
    assert number.values.dtype.kind == "i"
    assert number.values.tolist() == [3, 1, 2, 3]
    assert boolean.values.dtype == bool
    assert [column.is_float for column in (text, number, boolean)] == [False] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_take_keeps_kind_names_dtypes_and_the_input(kind):
    native, untouched = make(kind), make(kind)
    table = Table.read(native)
    assert table.native is native
    taken = table.take(np.array([2, 0]))
    assert type(taken) is type(native)
    if kind == "numpy":
        assert taken.tolist() == native[[2, 0]].tolist()
        assert native.tolist() == untouched.tolist()
    elif kind == "pandas":
        pd.testing.assert_frame_equal(taken, native.iloc[[2, 0]])
        pd.testing.assert_frame_equal(native, untouched)
    else:
        assert taken.equals(native[[2, 0]] if kind == "polars" else native.take([2, 0]))
        assert native.equals(untouched)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_select_aligns_by_name_and_ignores_other_columns(kind):
    table = Table.read(make(kind)).select(["c", "a"])
    assert table.names == ("c", "a")
    assert list(Table.read(table.native).names) == ["c", "a"]
    assert table.column("a").values.tolist() == ["u", "v", None, "u"]
    with pytest.raises(InputError, match=r"no column 'zz'; its columns are 'c', 'a'"):
        table.select(["a", "zz"])


def test_the_columns_of_an_array_are_selected_by_position():
    table = Table.read(np.array([[1, 2], [3, 4]])).select(["p", "q"])
    assert table.column("q").values.tolist() == [2, 4]
    with pytest.raises(InputError, match="array has 2 columns, but 3 are expected"):
        table.select(["p", "q", "r"])


@pytest.mark.parametrize(
    "dtype",
    ["Int64", "boolean", "Float64", "int64[pyarrow]", "bool[pyarrow]", "double[pyarrow]", "object"],
)
def test_nullable_numbers_keep_their_type(dtype):
    cells = [True, None, False] if "bool" in dtype else [1, None, 2**53 + 1]
    if dtype in ("Float64", "double[pyarrow]"):
        cells = [1.5, None, 2.5]
    column = Table.read(pd.DataFrame({"a": pd.array(cells, dtype=dtype)})).column("a")
    assert column.missing.tolist() == [False, True, False]
    assert column.values.dtype != object
    assert column.values[[0, 2]].tolist() == [cells[0], cells[2]]


@pytest.mark.parametrize("absent", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN")])
@pytest.mark.parametrize("kind", ["pandas", "numpy"])
def test_every_way_to_be_missing(kind, absent):
    cells = np.array(["u", absent, "v"], dtype=object)
    native = pd.DataFrame({"a": pd.Series(cells, dtype=object)}) if kind == "pandas" else cells[:, None]
    table = Table.read(native)
    column = table.column(table.names[0])
    assert column.values.tolist() == ["u", None, "v"]
    assert column.missing.tolist() == [False, True, False]


def test_integers_wider_than_those_of_numpy():
    column = Table.read(pl.DataFrame({"a": pl.Series([1, None, 2**90], dtype=pl.Int128)})).column("a")
    assert column.values.tolist() == [1, None, 2**90]


def test_null_and_nan_are_both_missing_in_polars():
    column = Table.read(pl.DataFrame({"a": [1.5, None, float("nan")]})).column("a")
    assert column.missing.tolist() == [False, True, True]


def test_categories_keep_the_order_of_the_dtype():
    order = ["low", "middle", "high"]
    natives = [
        pd.DataFrame({"a": pd.Categorical(["high", None, "low"], categories=order)}),
        pd.DataFrame({"a": pd.Categorical(["high", None, "low"], categories=order, ordered=True)}),
        pl.DataFrame({"a": pl.Series(["high", None, "low"], dtype=pl.Enum(order))}),
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([2, None, 0]), pa.array(order))}),
    ]
    for native in natives:
        column = Table.read(native).column("a")
        assert column.categories == tuple(order)
        assert column.values.tolist() == ["high", None, "low"]
    assert Table.read(pl.DataFrame({"a": pl.Series(["b", "a"], dtype=pl.Categorical)})).column("a").categories is None


def test_arrow_chunks_with_different_dictionaries_are_one_column():
    chunks = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", None]).dictionary_encode()]
    column = Table.read(pa.table({"a": pa.chunked_array(chunks)})).column("a")
    assert column.values.tolist() == ["b", "a", "c", None]
    assert set(column.categories) == {"a", "b", "c"}


def test_pandas_intervals_become_text_and_periods_the_time_they_begin():
    frame = pd.DataFrame({"a": pd.cut([1.0, 2.0, 3.0], 2), "b": pd.period_range("2020-01", periods=3, freq="M")})
    table = Table.read(frame)
    assert table.column("a").categories == ("(0.998, 2.0]", "(2.0, 3.0]")
    assert table.column("b").values.tolist() == [datetime.date(2020, month, 1) for month in (1, 2, 3)]


def test_dates_are_those_of_python_everywhere():
    moments = [datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 2, 12)]
    natives = [
        pd.DataFrame({"a": moments}),
        pd.DataFrame({"a": pd.to_datetime(moments).astype("datetime64[ns]")}),
        pl.DataFrame({"a": moments}),
        pa.table({"a": moments}),
        np.array(moments, dtype="datetime64[ns]")[:, None],
    ]
    for native in natives:
        table = Table.read(native)
        values = table.column(table.names[0]).values.tolist()
        assert values == moments
        assert {type(value) for value in values} == {datetime.datetime}


def test_nanoseconds_are_not_rounded_into_one_level():
    close = np.array(["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002", "NaT"], "datetime64[ns]")
    column = Column.from_array("a", close)
    assert len(set(column.values.tolist())) == 3
    assert column.missing.tolist() == [False, False, True]
    assert len(set(Table.read(pd.DataFrame({"a": close})).column("a").values.tolist())) == 3


def test_objects_that_are_all_numbers_are_numbers():
    assert Column.from_cells("a", [1, 2.5]).is_float
    assert Column.from_cells("a", [np.int8(1), 2]).values.dtype == np.int64
    assert Column.from_cells("a", [1, 2**80]).values.tolist() == [1, 2**80]
    assert Column.from_cells("a", [0.5, 2**53 + 1]).values.tolist() == [0.5, 2**53 + 1]
    assert Column.from_cells("a", [None, None]).missing.all()


@pytest.mark.parametrize("dtype", ["<U3", "S3", np.dtypes.StringDType(), object])
def test_numpy_text(dtype):
    values = Column.from_array("a", np.array(["u", "v"], dtype=dtype)).values.tolist()
    assert values == ([b"u", b"v"] if dtype == "S3" else ["u", "v"])


@pytest.mark.parametrize(
    "native",
    [[[1, 2]], {"a": [1]}, None, "text", 3.0, pd.Series([1]), pl.Series([1]), np.ma.array([[1]])],
    ids=lambda native: type(native).__name__,
)
def test_what_is_not_a_table_is_named(native):
    with pytest.raises(InputTypeError, match=f"{type(native).__name__}|masked"):
        Table.read(native)


def test_a_lazy_frame_is_to_be_collected():
    with pytest.raises(InputTypeError, match=r"LazyFrame.*\.collect\(\)"):
        Table.read(pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_arrays_have_two_dimensions(shape):
    with pytest.raises(InputError, match="expected two: rows and columns"):
        Table.read(np.zeros(shape))


@pytest.mark.parametrize(
    "native", [np.empty((0, 2)), np.empty((2, 0)), pd.DataFrame(), pl.DataFrame({"a": []}), pa.table({"a": []})]
)
def test_an_empty_table_is_refused(native):
    with pytest.raises(InputError, match="at least one row and one column"):
        Table.read(native)


@pytest.mark.parametrize(
    "native",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pd.DataFrame([[1, 2]], columns=["1", 1]).rename(columns={"1": "a", 1: "a"}),
        pa.table([[1], [2]], names=["a", "a"]),
    ],
)
def test_repeated_names_are_listed(native):
    with pytest.raises(InputError, match="more than one column called 'a'"):
        Table.read(native)


def test_names_become_text_and_stay_unique():
    table = Table.read(pd.DataFrame([[1, 2]], columns=[0, "b"]))
    assert table.names == ("0", "b")
    assert table.column("0").values.tolist() == [1]
    assert list(table.select(["b", "0"]).native.columns) == ["b", 0]
    with pytest.raises(InputError, match="more than one column called '1'"):
        Table.read(pd.DataFrame([[1, 2]], columns=[1, "1"]))


@pytest.mark.parametrize("name", ["collect", "columns", "column_names", "shape", "native"])
def test_columns_may_be_called_like_attributes(name):
    assert Table.read(pd.DataFrame({name: [1, 2]})).column(name).values.tolist() == [1, 2]


def test_a_dtype_without_levels_is_refused():
    with pytest.raises(InputTypeError, match="'x0' has the dtype complex128"):
        Table.read(np.zeros((2, 1), dtype=complex)).column("x0")


@pytest.mark.parametrize(
    ("kind", "library"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_frames_of_a_kind(kind, library):
    mixed = np.array([1, "1", None], dtype=object)
    frame = frame_of_kind(kind, {"a": ["u", None, "v"], "b": np.array([1.5, 2.5, 3.5]), "c": mixed})
    assert isinstance(frame, library)
    table = Table.read(frame)
    assert table.names == ("a", "b", "c")
    assert table.column("a").missing.tolist() == [False, True, False]
    assert table.column("c").values.tolist() == ([1, "1", None] if kind == "pandas" else ["1", "1", None])


def test_frames_for_numpy_are_pandas_or_else_arrays(monkeypatch):
    table = Table.read(np.zeros((1, 1)))
    assert isinstance(table.frame({"a": [1]}), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert table.frame({"a": [1]})["a"].tolist() == [1]
