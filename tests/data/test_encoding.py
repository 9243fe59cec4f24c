"""Levels: learned once, the same from every library, replayed on other rows, written without pickle."""

import datetime
import json
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from exanova.data import Encoding, Table, learn_encoding
from exanova.data.learning import learn_codes
from exanova.data.levels import label_levels, sort_levels
from exanova.errors import FileFormatError, InputError, InputTypeError, UnknownLevelError

pytestmark = pytest.mark.filterwarnings("ignore:.*differ only in blanks:UserWarning")

CELLS = {
    "text": st.text(max_size=2),
    "integer": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "boolean": st.booleans(),
    "real": st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1e300, 3.0]),
    "date": st.dates(),
}


NULLABLE = {"text": "string", "integer": "Int64", "boolean": "boolean", "real": "Float64", "date": "object"}


@st.composite
def columns(draw):
    """A few columns, each of one type, with missing values."""
    n = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    cells = [draw(st.lists(CELLS[kind] | st.none(), min_size=n, max_size=n)) for kind in kinds]
    return {f"{kind}{i}": column for i, (kind, column) in enumerate(zip(kinds, cells, strict=True))}


def as_objects(cells):
    return np.array([list(row) for row in zip(*cells.values(), strict=True)], dtype=object).reshape(-1, len(cells))


def every_library(cells):
    polars = pl.DataFrame(cells)
    yield polars
    yield polars.to_arrow()
    yield pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})
    yield pd.DataFrame({name: pd.Series(column, dtype=NULLABLE[name.rstrip("0123")]) for name, column in cells.items()})
    yield as_objects(cells)


@given(columns())
@settings(max_examples=60, deadline=None)
def test_encoding_then_decoding_is_the_identity(cells):
    table = Table.read(as_objects(cells))
    encoding = learn_encoding(table)
    codes = encoding.encode(table)
    assert codes.shape == (len(cells), table.n_rows)
    assert codes.dtype == np.int64
    assert codes.flags.c_contiguous
    assert [column.tolist() for column in encoding.decode(codes).values()] == list(cells.values())


@given(columns())
@settings(max_examples=60, deadline=None)
def test_every_library_gives_the_same_codes_and_levels(cells):
    seen = []
    for native in every_library(cells):
        table = Table.read(native)
        encoding = learn_encoding(table)
        seen.append((encoding.levels, encoding.labels, encoding.encode(table).tolist()))
        crossed = learn_encoding(Table.read(as_objects(cells)).select(list(cells))).encode(table)
        assert crossed.tolist() == seen[0][2]
    assert all(one == seen[0] for one in seen)


@given(columns(), st.sampled_from([None, 2, 0.3]), st.sampled_from([None, 2]), st.data())
@settings(max_examples=60, deadline=None)
def test_learning_and_encoding_in_one_pass_is_learning_then_encoding(cells, min_frequency, n_bins, data):
    table = Table.read(pl.DataFrame(cells))
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows)))
    options = {"min_frequency": min_frequency, "n_bins": n_bins, "strategy": "uniform"}
    encoding, codes, raw, widest = learn_codes(table, weight, **options)
    assert widest == max(len(set(column) - {None}) for column in cells.values())
    assert encoding == learn_encoding(table, weights=weight, **options)
    assert (codes == encoding.encode(table)).all()
    for mine, theirs in zip(raw, encoding.raw_codes(table), strict=True):
        assert len(set(zip(mine, theirs, strict=True))) == len(set(mine)) == len(set(theirs))


@given(columns())
@settings(max_examples=40, deadline=None)
def test_json_gives_the_encoding_back(cells):
    encoding = learn_encoding(Table.read(pl.DataFrame(cells)), min_frequency=2)
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json(), allow_nan=False)))
    assert again == encoding
    assert [[type(level) for level in own] for own in again.levels] == [
        [type(level) for level in own] for own in encoding.levels
    ]


@given(columns(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_is_as_many_rows(cells, data):
    table = Table.read(pl.DataFrame(cells))
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=table.n_rows, max_size=table.n_rows)))
    weight[0] = max(weight[0], 1)
    repeated = table.rows(np.repeat(np.arange(table.n_rows), weight))
    for options in ({}, {"min_frequency": 2}, {"min_frequency": 0.3}):
        assert learn_encoding(table, weights=weight, **options) == learn_encoding(repeated, **options)


def test_levels_have_the_order_of_the_dtype_or_are_sorted():
    categorical = pd.Categorical(["low", "high", None], categories=["high", "never", "low"])
    encoding = learn_encoding(Table.read(pd.DataFrame({"a": categorical, "b": ["z", "y", "z"], "c": [10, 9, 9]})))
    assert encoding.levels == (("high", "low", None), ("y", "z"), (9, 10))
    assert encoding.sizes == (3, 2, 2)


def test_a_categorical_column_encodes_as_its_text():
    learned = learn_encoding(Table.read(pd.DataFrame({"a": ["u", "v"]})))
    for native in (
        pd.DataFrame({"a": pd.Categorical(["v", "u"])}),
        pl.DataFrame({"a": pl.Series(["v", "u"], dtype=pl.Categorical)}),
        pa.table({"a": pa.array(["v", "u"]).dictionary_encode()}),
    ):
        assert learned.encode(Table.read(native)).tolist() == [[1, 0]]


def test_numbers_of_other_types_are_the_same_levels():
    learned = learn_encoding(Table.read(pd.DataFrame({"a": [1, 2, 3]})))
    for cells in (np.array([3, 1], dtype=np.int8), np.array([3.0, 1.0]), np.array([3, 1], dtype=object)):
        assert learned.encode(Table.read(pd.DataFrame({"a": cells}))).tolist() == [[2, 0]]


def test_integers_of_every_width_have_their_own_levels():
    for dtype in (np.int8, np.uint8, np.int16, np.int64, np.uint64):
        ends = [np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max]
        table = Table.read(np.array([ends[::-1]], dtype=dtype).T)
        encoding = learn_encoding(table)
        assert encoding.levels == (tuple(sorted(set(map(int, ends)))),)
        assert encoding.decode(encoding.encode(table))["x0"].tolist() == ends[::-1]


def test_only_levels_of_positive_weight_exist():
    table = Table.read(pd.DataFrame({"a": ["u", "v", "w", None]}))
    assert learn_encoding(table, weights=[1, 0, 0.5, 0]).levels == (("u", "w"),)


def test_mixed_types_are_ordered_by_type_then_value():
    assert sort_levels(["b", 3, 1.5, "a", True, datetime.date(2020, 1, 1)]) == [
        True,
        datetime.date(2020, 1, 1),
        1.5,
        3,
        "a",
        "b",
    ]
    assert sort_levels([2 + 1j, 1 + 1j]) == [1 + 1j, 2 + 1j]


@given(st.lists(st.sampled_from(["1", 1, "(missing)", None, "'1'", "(other)", "(other) 2", 2.0, "2.0"]), unique=True))
def test_labels_are_unique(levels):
    labels = label_levels(levels)
    assert len(set(labels)) == len(levels)
    if None in levels:
        assert labels[levels.index(None)] == "(missing)"


@given(st.permutations([True, 1, 1.0, "a", 0, -0.0, 0.0, False, None, 2.5, "1"]))
def test_levels_do_not_depend_on_the_order_of_rows(cells):
    numbers = [cell for cell in cells if not isinstance(cell, str)]
    mixed = learn_encoding(Table.read(np.array(cells, dtype=object)[:, None]))
    assert mixed.labels == (("0", "1", "2.5", "'1'", "a", "(missing)"),)
    assert learn_encoding(Table.read(np.array(numbers, dtype=object)[:, None])).labels == (
        ("0.0", "1.0", "2.5", "(missing)"),
    )


def test_rare_levels_are_merged_as_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.choice(list("abcdefgh"), p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01], size=(200, 3)).astype(object)
    for least in (1, 5, 20, 0.1, 0.31):
        encoding = learn_encoding(Table.read(X), min_frequency=least)
        theirs = OneHotEncoder(min_frequency=least).fit(X)
        for feature, infrequent in zip(encoding.features, theirs.infrequent_categories_, strict=True):
            merged = {v for v, k in zip(feature.values, feature.codes, strict=True) if feature.levels[k] == "(other)"}
            assert merged == set(() if infrequent is None else infrequent)


def test_other_stands_before_missing_and_does_not_take_in_the_unknown():
    table = Table.read(np.array([["(other)"], ["(other)"], ["b"], ["c"], [None]], dtype=object))
    encoding = learn_encoding(table, min_frequency=2)
    assert encoding.labels == (("(other)", "(other) 2", "(missing)"),)
    assert encoding.encode(table).tolist() == [[0, 0, 1, 1, 2]]
    assert not encoding.is_lossless
    assert encoding.raw_codes(table).tolist() == [[0, 0, 1, 2, -1]]
    unknown = Table.read(np.array([["d"]], dtype=object))
    assert encoding.encode(unknown, handle_unknown="ignore").tolist() == [[-1]]
    with pytest.raises(UnknownLevelError, match="'d'"):
        encoding.encode(unknown)


def test_unknown_levels_are_named():
    encoding = learn_encoding(Table.read(pd.DataFrame({"a": ["u"], "b": [1]})))
    rows = Table.read(pd.DataFrame({"b": [1] * 8, "a": ["u", "p", "q", "r", "s", "t", "w", None]}))
    with pytest.raises(UnknownLevelError, match=r"'a' holds .*: 'p', 'q', 'r', 's', 't' and 2 more \(7 rows"):
        encoding.encode(rows)
    assert encoding.encode(rows, handle_unknown="ignore").tolist() == [[0] + [-1] * 7, [0] * 8]
    with pytest.raises(UnknownLevelError, match=r"\(missing\).*handle_unknown='ignore'"):
        encoding.encode(Table.read(pl.DataFrame({"a": ["u"], "b": pl.Series([None], dtype=pl.Int64)})))
    with pytest.raises(InputError, match="handle_unknown='drop'"):
        encoding.encode(rows, handle_unknown="drop")


@pytest.mark.parametrize("n_bins", [None, 2])
def test_infinities_are_refused(n_bins):
    with pytest.raises(InputError, match="'a' holds an infinite value, first in row 1"):
        learn_encoding(Table.read(pd.DataFrame({"a": [1.0, np.inf, 2.0]})), n_bins=n_bins)


@pytest.mark.parametrize(
    "native",
    [pd.DataFrame({"a": ["u", [1], "v"]}), pl.DataFrame({"a": pl.Series([None, [1], [2]], dtype=pl.Object)})],
)
def test_a_cell_that_cannot_be_a_level_is_named(native):
    with pytest.raises(InputTypeError, match="'a' holds a value of type list in row 1"):
        learn_encoding(Table.read(native))
    learned = learn_encoding(Table.read(pd.DataFrame({"a": ["u", "v"]})))
    with pytest.raises(InputTypeError, match="'a' holds a value of type list in row 1"):
        learned.encode(Table.read(native))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_frequency": 0}, "min_frequency=0 was given"),
        ({"min_frequency": 1.5}, "min_frequency=1.5 was given"),
        ({"min_frequency": True}, "min_frequency=True"),
        ({"min_frequency": "few"}, "min_frequency='few'"),
        ({"n_bins": 1}, "n_bins=1 was given"),
        ({"n_bins": 2.5}, "n_bins=2.5 was given"),
        ({"n_bins": {"x0": 1}}, "n_bins={'x0': 1} was given"),
        ({"n_bins": "many"}, "n_bins='many' was given; expected an integer of at least 2, 'auto' or None"),
        ({"n_bins": {"x0": True}}, "n_bins={'x0': True} was given"),
        ({"strategy": "model"}, "strategy='model' reads the thresholds of a model, and none was given"),
        ({"strategy": "best"}, "strategy='best'"),
        ({"weights": [1, 2, 3]}, "expected \\(2,\\)"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        learn_encoding(Table.read(np.array([[0], [1]])), **options)


def test_unusual_levels_survive_a_file():
    levels = [
        *("é\n", 2**70, 0.1, float("inf"), True, b"\x00", Decimal("1.50"), uuid.UUID(int=7)),
        *(datetime.time(1, 2), datetime.timedelta(days=-1, microseconds=3)),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        None,
    ]
    encoding = Encoding.from_levels(["a"], [levels])
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json(), allow_nan=False)))
    assert again == encoding
    assert list(map(type, again.levels[0])) == list(map(type, levels))
    with pytest.raises(InputTypeError, match=r"Fraction\(1, 2\) of type Fraction cannot be written"):
        Encoding.from_levels(["a"], [[Fraction(1, 2)]]).to_json()


@pytest.mark.parametrize(
    "document",
    [{}, {"features": [{}]}, {"features": 3}, {"features": [{"name": "a", "levels": [{"type": "x"}]}]}],
)
def test_a_document_of_another_kind_is_refused(document):
    with pytest.raises(FileFormatError):
        Encoding.from_json(document)


@pytest.mark.parametrize("codes", [[[2]], [[-1]]])
def test_codes_without_a_level_are_not_decoded(codes):
    with pytest.raises(InputError, match="expected 0 to 1"):
        Encoding.from_levels(["a"], [["u", "v"]]).decode(np.array(codes))
