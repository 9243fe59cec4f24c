"""One logical column, every representation: the same levels, labels and codes, before and after a file."""

import datetime
import zoneinfo
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA, Support
from exanova.data import Table, learn_encoding
from exanova.data.observe import read_rows
from exanova.errors import InputError, InputTypeError

SECOND = 10**9
FOLD = 1729989000 * SECOND
"""2024-10-27 00:30 UTC: 02:30 in Paris, an hour before the second 02:30 of that night, in nanoseconds."""


def at(offset_hours, *parts):
    return datetime.datetime(*parts, tzinfo=datetime.timezone(datetime.timedelta(hours=offset_hours)))


@dataclass
class Logical:
    """Arrow cells (with one missing cell at least), the levels they stand for in order, and their labels."""

    cells: pa.Array
    levels: list
    labels: list

    @property
    def codes(self):
        """By the position of each cell among the distinct ones, found in pyarrow alone."""
        raw = self.storage.to_pylist()
        rank = {value: k for k, value in enumerate(sorted({v for v in raw if v is not None}))}
        return [rank.get(value, len(rank)) for value in raw]

    @property
    def storage(self):
        if pa.types.is_temporal(self.cells.type):
            return self.cells.cast(pa.int32() if self.cells.type.bit_width == 32 else pa.int64())
        return self.cells


def instants(*counts, zone=None, unit="ns"):
    return pa.array(counts, pa.timestamp(unit, zone))


LOGICAL = {
    "strings": Logical(pa.array(["b", "a", None, "é", "b"]), ["a", "b", "é", None], ["a", "b", "é", "(missing)"]),
    "integers": Logical(pa.array([3, 1, None, 3, 2]), [1, 2, 3, None], ["1", "2", "3", "(missing)"]),
    "booleans": Logical(pa.array([True, None, False]), [False, True, None], ["False", "True", "(missing)"]),
    "floats": Logical(pa.array([1.5, None, 0.25, 1.5]), [0.25, 1.5, None], ["0.25", "1.5", "(missing)"]),
    "dates": Logical(
        pa.array([19844, None, 19782], pa.date32()),
        [datetime.date(2024, 2, 29), datetime.date(2024, 5, 1), None],
        ["2024-02-29", "2024-05-01", "(missing)"],
    ),
    "decimals": Logical(
        pa.array([Decimal("2.50"), None, Decimal("1.25")], pa.decimal128(10, 2)),
        [Decimal("1.25"), Decimal("2.50"), None],
        ["1.25", "2.50", "(missing)"],
    ),
    "fold": Logical(
        instants(FOLD + 3600 * SECOND, FOLD, None, FOLD + 7200 * SECOND, zone="Europe/Paris"),
        [at(2, 2024, 10, 27, 2, 30), at(1, 2024, 10, 27, 2, 30), at(1, 2024, 10, 27, 3, 30), None],
        ["2024-10-27 02:30:00+02:00", "2024-10-27 02:30:00+01:00", "2024-10-27 03:30:00+01:00", "(missing)"],
    ),
    "nanoseconds": Logical(
        instants(FOLD + 1, FOLD, None, FOLD + 2, FOLD + 1000),
        [
            datetime.datetime(2024, 10, 27, 0, 30),
            "2024-10-27 00:30:00.000000001",
            "2024-10-27 00:30:00.000000002",
            datetime.datetime(2024, 10, 27, 0, 30, 0, 1),
            None,
        ],
        [
            "2024-10-27 00:30:00",
            "2024-10-27 00:30:00.000000001",
            "2024-10-27 00:30:00.000000002",
            "2024-10-27 00:30:00.000001",
            "(missing)",
        ],
    ),
    "nanoseconds in a zone": Logical(
        instants(FOLD + 3600 * SECOND + 1, FOLD + 1, None, FOLD, zone="Europe/Paris"),
        [
            at(2, 2024, 10, 27, 2, 30),
            "2024-10-27 02:30:00.000000001+02:00",
            "2024-10-27 02:30:00.000000001+01:00",
            None,
        ],
        [
            "2024-10-27 02:30:00+02:00",
            "2024-10-27 02:30:00.000000001+02:00",
            "2024-10-27 02:30:00.000000001+01:00",
            "(missing)",
        ],
    ),
    "times of day": Logical(
        pa.array([3601 * SECOND, None, 1, 2, 0], pa.time64("ns")),
        [datetime.time(0), "00:00:00.000000001", "00:00:00.000000002", datetime.time(1, 0, 1), None],
        ["00:00:00", "00:00:00.000000001", "00:00:00.000000002", "01:00:01", "(missing)"],
    ),
    "durations": Logical(
        pa.array([90 * SECOND, None, -1, 1, 0], pa.duration("ns")),
        [
            "-1 days +23:59:59.999999999",
            datetime.timedelta(0),
            "0 days 00:00:00.000000001",
            datetime.timedelta(seconds=90),
            None,
        ],
        ["-1 days +23:59:59.999999999", "0:00:00", "0 days 00:00:00.000000001", "0:01:30", "(missing)"],
    ),
}


def raw(scalar):
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


def dictionary(cells, *, repeat=False, null=False):
    """Codes into the sorted values, which may all be there twice, and into a null in place of missing codes."""
    found = cells.drop_null().unique()
    distinct = found.take(pa.array(sorted(range(len(found)), key=lambda k: raw(found[k])), pa.int64()))
    values = pa.concat_arrays([distinct, *[distinct] * repeat, *[pa.nulls(1, cells.type)] * null])
    code_of = {raw(value): k for k, value in enumerate(distinct)}
    missing = len(values) - 1 if null else None
    second = len(distinct) if repeat else 0
    codes = [code_of[raw(c)] + second * (k % 2) if c.is_valid else missing for k, c in enumerate(cells)]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)


def nested_dictionary(cells):
    """A dictionary whose values are a dictionary, in the order of the values."""
    inner = dictionary(cells)
    identity = pa.array(range(len(inner.dictionary)), pa.int32())
    return pa.DictionaryArray.from_arrays(inner.indices, pa.DictionaryArray.from_arrays(identity, inner.dictionary))


def chunks(array):
    return pa.chunked_array([array[:2], array[2:2], array[2:]])


def runs(array):
    return pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, len(array) + 1), pa.int32()), array)


def arrow_backed(cells):
    return pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([cells])))})


def objects(cells):
    """Scalars as a user of NumPy would have them: those of pandas for what Python cannot hold."""
    listed = [cell if cell is not None else None for cell in cells.to_pandas(types_mapper=pd.ArrowDtype)]
    out = np.empty((len(listed), 1), dtype=object)
    out[:, 0] = [None if cell is pd.NA else cell for cell in listed]
    return out


def numpy_backed(cells):
    dtype = {pa.int64(): "Int64", pa.bool_(): "boolean", pa.float64(): "Float64"}.get(cells.type)
    return pd.DataFrame({"a": cells.to_pandas() if dtype is None else pd.array(cells.to_pylist(), dtype=dtype)})


def category(cells):
    frame = numpy_backed(cells)
    return pd.DataFrame({"a": frame["a"].astype("category")})


EVERY = {
    "pyarrow": lambda cells: pa.table({"a": cells}),
    "pyarrow chunks": lambda cells: pa.table({"a": chunks(cells)}),
    "pyarrow runs": lambda cells: pa.table({"a": runs(cells)}),
    "pyarrow sliced runs": lambda cells: pa.table({"a": runs(pa.concat_arrays([cells[-1:], cells]))}).slice(1),
    "pyarrow runs of a dictionary": lambda cells: pa.table({"a": runs(dictionary(cells))}),
    "pyarrow dictionary": lambda cells: pa.table({"a": dictionary(cells)}),
    "pyarrow repeated dictionary": lambda cells: pa.table({"a": dictionary(cells, repeat=True)}),
    "pyarrow dictionary with a null": lambda cells: pa.table({"a": dictionary(cells, null=True)}),
    "pyarrow nested dictionary": lambda cells: pa.table({"a": nested_dictionary(cells)}),
    "pandas arrow": arrow_backed,
    "pandas arrow dictionary": lambda cells: arrow_backed(dictionary(cells, repeat=True)),
    "pandas": numpy_backed,
    "pandas category": category,
    "pandas category of arrow": lambda cells: arrow_backed(cells).astype("category"),
    "polars": lambda cells: pl.DataFrame({"a": pl.from_arrow(cells)}),
    "numpy objects": objects,
}

TEXT = {
    "string view": lambda cells: pa.table({"a": cells.cast(pa.string_view())}),
    "large string": lambda cells: pa.table({"a": cells.cast(pa.large_string())}),
    "dictionary of views": lambda cells: pa.table(
        {
            "a": pa.DictionaryArray.from_arrays(
                dictionary(cells).indices, dictionary(cells).dictionary.cast("string_view")
            )
        }
    ),
    "chunks with dictionaries of their own": lambda cells: pa.table(
        {"a": pa.chunked_array([dictionary(cells), dictionary(cells[:2])])}
    ).slice(0, len(cells)),
    "categorical": lambda cells: pl.DataFrame({"a": pl.from_arrow(cells).cast(pl.Categorical)}),
    "categorical in a shared cache": lambda cells: pl.DataFrame(
        {"a": pl.concat([pl.Series(["zz", "b", "q"]), pl.from_arrow(cells)]).cast(pl.Categorical)[3:]}
    ),
    "enum": lambda cells: pl.DataFrame({"a": pl.from_arrow(cells).cast(pl.Enum(["a", "b", "unused", "é"]))}),
    "numpy text": lambda cells: np.array(cells.to_pylist(), dtype=object)[:, None],
    "pandas object": lambda cells: pd.DataFrame({"a": pd.Series(cells.to_pylist(), dtype=object)}),
    "pandas string": lambda cells: pd.DataFrame({"a": pd.Series(cells.to_pylist(), dtype="string")}),
}


CASES = [(name, form) for name in LOGICAL for form in EVERY] + [("strings", form) for form in TEXT]
WITHOUT_TIMES = ("pandas", "pandas category", "pandas category of arrow", "numpy objects")
NOT_THERE = [("times of day", form) for form in WITHOUT_TIMES]
"""Neither pandas nor NumPy has times of day with nanoseconds."""

CASES = [case for case in CASES if case not in NOT_THERE]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_every_representation_has_the_same_levels_labels_and_codes(name, form):
    logical = LOGICAL[name]
    native = {**EVERY, **TEXT}[form](logical.cells)
    table = Table.read(native)
    encoding = learn_encoding(table)
    assert list(encoding.levels[0]) == logical.levels
    assert [type(level) for level in encoding.levels[0]] == [type(level) for level in logical.levels]
    assert list(encoding.labels[0]) == logical.labels
    assert encoding.encode(table)[0].tolist() == logical.codes
    rows = read_rows(native)
    assert rows.support.codes[0][rows.group[rows.raw_group]].tolist() == logical.codes


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_saved_model_knows_its_own_rows(name, form, tmp_path):
    logical = LOGICAL[name]
    native = {**EVERY, **TEXT}[form](logical.cells)
    outputs = np.array(logical.codes, dtype=float) ** 2
    anova = FunctionalANOVA(shrinkage=None).fit(native, outputs)
    assert anova.predict(native) == pytest.approx(outputs)
    anova.save(tmp_path / "model.exanova")
    loaded = exanova.load(tmp_path / "model.exanova")
    assert loaded.predict(native).tolist() == anova.predict(native).tolist()
    for other in ("pyarrow", "polars") if form != "numpy text" and form != "numpy objects" else ():
        assert loaded.predict(EVERY[other](logical.cells)).tolist() == anova.predict(native).tolist()


ZONES = [
    "Europe/Paris",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Monrovia",
    "Asia/Kathmandu",
    "UTC",
    "+05:30",
]
NEAR_FOLDS = st.sampled_from([FOLD, 1699160400 * SECOND, 1712415600 * SECOND, 0, -2 * 10**18])


@st.composite
def some_instants(draw):
    """Counts of nanoseconds, many of them an hour or a nanosecond apart around changes of the clock."""
    steps = st.sampled_from([0, 1, 1000, 1800 * SECOND, 3600 * SECOND, 7200 * SECOND, 86400 * SECOND])
    near = st.builds(lambda a, b, c: a + b - c, NEAR_FOLDS, steps, steps)
    return draw(st.lists(st.one_of(near, st.integers(-9 * 10**18, 9 * 10**18)), min_size=1, max_size=12))


@settings(max_examples=40)
@given(some_instants(), st.sampled_from(ZONES), st.sampled_from(["s", "us", "ns"]))
def test_different_instants_never_share_a_level(counts, zone, unit):
    counts = [count // {"s": SECOND, "us": 1000, "ns": 1}[unit] for count in counts]
    cells = instants(*counts, zone=zone, unit=unit)
    forms = [pa.table({"a": cells}), arrow_backed(cells), arrow_backed(dictionary(cells, repeat=True))]
    if unit != "s" and zone[0] != "+":
        forms.append(pl.DataFrame({"a": pl.from_arrow(cells)}))
    forms.append(
        pd.DataFrame({"a": pd.Series(np.array(counts, f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)})
    )
    rank = {count: k for k, count in enumerate(sorted(set(counts)))}
    seen = set()
    for native in forms:
        encoding = learn_encoding(Table.read(native))
        assert encoding.encode(Table.read(native))[0].tolist() == [rank[count] for count in counts]
        assert len(set(encoding.labels[0])) == len(rank)
        seen.add((encoding.levels, encoding.labels))
    assert len(seen) == 1


@settings(max_examples=40)
@given(some_instants(), st.lists(st.sampled_from(ZONES[:-1]), min_size=12, max_size=12))
def test_python_datetimes_of_many_zones_are_levels_by_instant_in_time_order(counts, zones):
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    counts = [count // 1000 for count in counts]
    cells = [
        (epoch + datetime.timedelta(microseconds=count)).astimezone(zoneinfo.ZoneInfo(zone))
        for count, zone in zip(counts, zones, strict=False)
    ]
    table = Table.read(np.array(cells, dtype=object)[:, None])
    rank = {count: k for k, count in enumerate(sorted(set(counts)))}
    encoding = learn_encoding(table)
    assert encoding.encode(table)[0].tolist() == [rank[count] for count in counts]
    back = Table.read(np.array(cells[::-1], dtype=object)[:, None])
    assert learn_encoding(back).labels == encoding.labels  # also where one instant is written at two offsets


def test_the_levels_of_a_distribution_are_read_as_cells_are(tmp_path):
    paris = zoneinfo.ZoneInfo("Europe/Paris")
    night = [datetime.datetime(2024, 10, 27, 2, 30, tzinfo=paris, fold=fold) for fold in (0, 1)]
    fine = np.array([0, 1], dtype="datetime64[ns]")
    support = Support.from_pmf(np.full((2, 2), 0.25), levels=[night, list(fine)])
    assert support.levels[0] == (at(2, 2024, 10, 27, 2, 30), at(1, 2024, 10, 27, 2, 30))
    assert support.levels[1] == (datetime.datetime(1970, 1, 1), "1970-01-01 00:00:00.000000001")
    FunctionalANOVA(shrinkage=None).fit(support, np.array([0.0, 1.0, 2.0, 4.0])).save(tmp_path / "model.exanova")
    rows = np.array([[night[1], fine[0]]], dtype=object)
    assert exanova.load(tmp_path / "model.exanova").predict(rows) == pytest.approx([2.0])


@pytest.mark.parametrize("unit", ["ns", "ps", "as"])
def test_a_row_has_the_level_it_had_among_others(unit):
    cells = np.array([0, 10**9, 10**9 + 1], dtype=f"datetime64[{unit}]")[:, None]
    encoding = learn_encoding(Table.read(cells))
    assert encoding.encode(Table.read(cells[:2]))[0].tolist() == [0, 1]
    spans = cells.astype(f"timedelta64[{unit}]")
    assert learn_encoding(Table.read(spans)).encode(Table.read(spans[:2]))[0].tolist() == [0, 1]


def test_years_that_python_does_not_know_are_levels():
    far = np.array(["20000-01-01", "2024-01-01", "0000-01-01", "30000-01-01", "-0004-01-01"], dtype="datetime64[s]")
    natives = [far[:, None], pd.DataFrame({"a": far}), pa.table({"a": far}), pl.DataFrame({"a": far.astype("M8[us]")})]
    rank = np.argsort(np.argsort(far)).tolist()
    for native in natives:
        encoding = learn_encoding(Table.read(native))
        assert encoding.encode(Table.read(native))[0].tolist() == rank
        assert encoding.labels[0][1:4] == ("0000-01-01 00:00:00", "2024-01-01 00:00:00", "20000-01-01 00:00:00")
    dates = Table.read(pa.table({"a": pa.array(far.astype("M8[D]").astype(np.int32), pa.date32())}))
    assert learn_encoding(dates).encode(dates)[0].tolist() == rank
    assert learn_encoding(dates).labels[0][1:4] == ("0000-01-01", "2024-01-01", "20000-01-01")


def test_text_that_looks_like_a_time_is_only_text():
    cells = [
        "2024-13-41 99:00:00.000000001",
        "2024-01-01 00:00:00.000000001",
        "a",
        "25:61:61.000000001",
        "9999999 days",
    ]
    table = Table.read(np.array(cells, dtype=object)[:, None])
    encoding = learn_encoding(table)
    assert set(encoding.levels[0]) == set(cells)
    assert sorted(encoding.encode(table)[0].tolist()) == [0, 1, 2, 3, 4]


def test_an_unknown_time_zone_is_named():
    table = Table.read(pa.table({"a": instants(1, zone="Europe/Nowhere")}))
    with pytest.raises(InputTypeError, match=r"'a' has the time zone 'Europe/Nowhere'.*install the package tzdata"):
        learn_encoding(table)


UNREADABLE = {
    "list": pa.array([[1], [2]]),
    "fixed list": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
    "struct": pa.array([{"u": 1}, {"u": 2}]),
    "map": pa.array([[("u", 1)], [("u", 2)]], pa.map_(pa.string(), pa.int64())),
    "interval": pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
    "runs of lists": runs(pa.array([[1], [2]])),
}


@pytest.mark.parametrize("form", ["pyarrow", "pandas", "polars"])
def test_every_column_that_holds_no_levels_is_named_at_once(form):
    held = UNREADABLE if form != "polars" else {k: UNREADABLE[k] for k in ("list", "fixed list", "struct")}
    table = pa.table({"good": ["u", "v"], **held})
    native = {"pyarrow": table, "polars": None}.get(form)
    if form == "pandas":
        native = table.to_pandas(types_mapper=pd.ArrowDtype)
    if form == "polars":
        native = pl.from_arrow(table)
    with pytest.raises(InputTypeError, match="Convert these columns, for example to strings, or drop them") as caught:
        FunctionalANOVA(shrinkage=None).fit(native, [0.0, 1.0])
    assert all(repr(name) in str(caught.value) for name in held)
    assert "'good'" not in str(caught.value)
    fitted = FunctionalANOVA(shrinkage=None).fit(pa.table({"good": ["u", "v"]}), [0.0, 1.0])
    assert fitted.predict(native).tolist() == [0.0, 1.0]  # columns that were not fitted may hold anything


READABLE = {
    "null": (pa.nulls(2), [None]),
    "float16": (pa.array(np.array([1.5, 0.5], dtype=np.float16)), [0.5, 1.5]),
    "decimal256": (pa.array([Decimal("2.5"), Decimal("1")], pa.decimal256(50, 1)), [Decimal("1.0"), Decimal("2.5")]),
    "binary view": (pa.array([b"v", b"u"], pa.binary_view()), [b"u", b"v"]),
    "fixed binary": (pa.array([b"v", b"u"], pa.binary(1)), [b"u", b"v"]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), [False, True]),
}


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("form", [lambda cells: pa.table({"a": cells}), arrow_backed])
def test_rarer_types_of_arrow_have_levels(name, form):
    cells, levels = READABLE[name]
    assert list(learn_encoding(Table.read(form(cells))).levels[0]) == levels


@pytest.mark.parametrize(
    "cells",
    [
        *(pa.array(["a", "b", None, "a"], kind) for kind in (pa.string_view(), pa.large_string())),
        pa.array([b"a", b"b", None, b"a"], pa.binary_view()),
        runs(pa.array(["a", "b", None, "a"])),
        runs(pa.array(["a", "b", None, "a"]).dictionary_encode()),
        runs(pa.array(["a", "b", None, "a"], pa.string_view())),
        pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ["a", None]),
                pa.array(["b", "a"]).dictionary_encode(),
            ]
        ),
    ],
)
def test_a_model_gets_the_rows_of_any_type_of_arrow(cells):
    native = pa.table({"a": cells, "b": [1, 2, 3, 4]})
    taken = Table.read(native).take(np.array([3, 0, 1]))
    assert taken.schema == native.schema
    listed = cells.to_pylist()
    assert taken["a"].to_pylist() == [listed[3], listed[0], listed[1]]


def test_many_rows_are_taken_of_short_runs():
    one = pa.RunEndEncodedArray.from_arrays(pa.array([30000], pa.int16()), ["a"])
    native = pa.table({"a": pa.chunked_array([one, one])})
    taken = Table.read(native).take(np.arange(60000))
    assert taken.schema == native.schema
    assert set(taken["a"].to_pylist()) == {"a"}
    assert taken.num_rows == 60000


def test_rows_that_a_library_cannot_select_are_not_the_fault_of_the_model():
    frame = arrow_backed(pa.array(["a", "b"], pa.string_view()))
    with pytest.raises(InputTypeError, match="pandas cannot select rows of this table"):
        Table.read(frame).take(np.array([0]))


def test_names_that_pandas_takes_for_one_are_refused():
    with pytest.raises(InputError, match=r"columns 1 and True have names that are equal in Python; rename"):
        Table.read(pd.DataFrame([["u", "v"]], columns=[True, 1]))


def test_a_repeated_dictionary_has_finite_effects():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["a", "b", "a"]))
    anova = FunctionalANOVA(shrinkage=None).fit(
        pa.table({"a": cells, "b": ["u", "u", "v", "v"]}), np.array([0.0, 1.0, 4.0, 9.0])
    )
    assert anova.categories_[0] == ("a", "b")
    assert np.isfinite(anova.decomposition_.values).all()
    assert anova.predict(pa.table({"a": ["a", "b"], "b": ["u", "u"]})) == pytest.approx([0.0, 1.0])


# Text


def texts_in_every_library(cells):
    """The same cells, strings or ``None``, as every library keeps a column of text."""
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = cells
    return {
        "numpy": column,
        "pandas, objects": pd.DataFrame({"x0": column[:, 0]}, dtype=object),
        "pandas, objects with NaN": pd.DataFrame({"x0": column[:, 0]}, dtype=object).fillna(float("nan")),
        "pandas, Python": pd.DataFrame({"x0": pd.array(cells, dtype="string[python]")}),
        "pandas, pyarrow": pd.DataFrame({"x0": pd.array(cells, dtype="string[pyarrow]")}),
        "pandas, default": pd.DataFrame({"x0": pd.Series(cells, dtype="str" if pd.__version__ > "3" else object)}),
        "polars": pl.DataFrame({"x0": pl.Series(cells, dtype=pl.String)}),
        "pyarrow": pa.table({"x0": pa.array(cells, pa.string())}),
    }


@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore:.*differ only in blanks:UserWarning")
@given(
    st.lists(
        st.one_of(st.none(), st.sampled_from(["", "a", "b", "é", "1"]), st.text("xyzω ", max_size=2)),
        min_size=33,
        max_size=70,
    )
)
def test_text_is_read_as_codes_that_are_the_same_in_every_library(cells):
    levels = (*sorted({cell for cell in cells if cell is not None}), *([None] if None in cells else []))
    expected = [levels.index(cell) for cell in cells]
    for library, X in texts_in_every_library(cells).items():
        table = Table.read(X)
        column = table.column("x0")
        assert column.codes is not None, library
        assert column.values.tolist() == cells, library
        encoding = learn_encoding(table, min_frequency=1)
        assert (encoding.levels[0], encoding.encode(table)[0].tolist()) == (levels, expected), library


def test_strings_of_other_types_and_cells_that_are_no_text_are_read_one_by_one():
    cells = np.array([["a"] * 40 + [np.str_("b"), 1, None]], dtype=object).T
    assert Table.read(cells).column("x0").codes is None
    assert learn_encoding(Table.read(cells)).levels[0] == (1, "a", "b", None)
