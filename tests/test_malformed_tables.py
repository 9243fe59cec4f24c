"""Tables as people bring them by mistake: they are read, or one error names every column that cannot be."""

from __future__ import annotations

import datetime
import decimal
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from exanova import FunctionalANOVA
from exanova.data.table import Table
from exanova.errors import ExanovaError, InputError, InputTypeError, UnknownLevelError

N = 60
GROUP = [("a", "b", "c")[k * 7 % 3] for k in range(N)]
OUTPUTS = np.sin(np.arange(N))


def cells(of):
    """A pandas column of Python objects."""
    out = pd.Series(index=range(N), dtype=object)
    for k in range(N):
        out.iat[k] = of(k)
    return out


def with_column(**columns):
    return pd.DataFrame({"g": GROUP}).assign(**columns)


def arrow(**columns):
    return pa.table({"g": GROUP, **columns})


def quiet_fit(table, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(**parameters).fit(table, OUTPUTS[: len(table)])


LEVELS = r"expected strings, numbers, booleans, dates or missing values.*Convert such columns"

REFUSED = {
    "lists, dicts, sets": (
        with_column(c=cells(lambda k: [k]), d=cells(lambda k: {k: k}), e=cells(lambda k: {k})),
        rf"'c' holds a value of type list in row 0.*'d' .* dict in row 0.*'e' .* set in row 0.*{LEVELS}",
    ),
    "a list far down": (
        with_column(c=cells(lambda k: [k] if k > 50 else "x"), d=cells(lambda k: [k] if k > 20 else 1)),
        r"'c' .* list in row 51.*'d' .* list in row 21",
    ),
    "arrays": (with_column(c=cells(lambda k: np.arange(2))), r"'c' holds a value of type ndarray"),
    "complex": (
        with_column(c=np.arange(N) + 1j, d=np.arange(N) - 1j),
        rf"'c' holds complex numbers; column 'd' holds complex numbers.*{LEVELS}",
    ),
    "complex array": (np.ones((N, 2), dtype=complex), r"'x0' has the dtype complex128.*'x1' has the dtype complex128"),
    "void": (np.zeros((N, 2), dtype="V4"), r"'x0' has the dtype \|V4.*'x1'"),
    "infinite": (
        with_column(c=np.where(np.arange(N) == 3, np.inf, 1.0), d=np.where(np.arange(N) == 5, -np.inf, np.arange(N))),
        r"'c' holds an infinite value, first in row 3; column 'd' .* row 5\. Replace infinite values by finite",
    ),
    "nested in arrow": (
        arrow(c=[[1]] * N, d=[{"a": 1}] * N, e=pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64()))),
        r"3 columns cannot be levels: 'c' \(list.*'d' \(struct.*'e' \(map.*Convert these columns",
    ),
    "intervals of arrow": (arrow(c=pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval())), r"'c' \(month_day_nano"),
    "nested in polars": (pl.DataFrame({"g": GROUP, "c": [[1]] * N, "d": [{"a": 1}] * N}), r"'c' \(List.*'d' \(Struct"),
    "the same name twice": (pd.concat([with_column(), with_column()], axis=1), r"more than one column called 'g'"),
    "the same name in arrow": (pa.Table.from_arrays([pa.array(GROUP)] * 2, ["a", "a"]), r"more than one .* 'a'"),
    "no rows": (with_column().iloc[:0], r"0 rows and 1 columns; at least one row"),
    "one dimension": (np.zeros(N, dtype=[("a", int)]), r"array of 1 dimension"),
    "three dimensions": (np.zeros((N, 2, 2)), r"array of 3 dimension"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_error(name):
    table, message = REFUSED[name]
    with pytest.raises(ExanovaError, match=message) as caught:
        FunctionalANOVA().fit(table, OUTPUTS[: len(table)])
    assert isinstance(caught.value, InputError | InputTypeError)
    assert len(str(caught.value)) < 600


READ = {
    "mixed types": (lambda: with_column(c=cells(lambda k: [1, "1", 2.5, None, True][k % 5])), 4),
    "only missing": (lambda: with_column(c=np.nan), 1),
    "only missing times": (lambda: with_column(c=pd.NaT), 1),
    "only missing in arrow": (lambda: arrow(c=pa.nulls(N)), 1),
    "booleans with missing": (lambda: with_column(c=pd.array([True, False, None] * 20, dtype="boolean")), 3),
    "durations": (lambda: with_column(c=pd.to_timedelta(np.arange(N) * 1000, unit="s")), 6),
    "periods": (lambda: with_column(c=pd.period_range("2020-01", periods=N, freq="M")), 5),
    "unused categories": (lambda: with_column(c=pd.Categorical(["u", "v"] * 30, categories=list("zvuw"))), 2),
    "decimals": (lambda: with_column(c=cells(lambda k: decimal.Decimal(k) / 7)), 6),
    "decimals of arrow": (lambda: arrow(c=pa.array([decimal.Decimal(k) for k in range(N)], pa.decimal256(50, 3))), 6),
    "bytes": (lambda: with_column(c=cells(lambda k: (b"a", b"\xff")[k % 2])), 2),
    "half floats": (lambda: arrow(c=pa.array(np.arange(N).astype("float16"))), 6),
    "views of strings": (lambda: arrow(c=pa.array(["u", "v"] * 30, pa.string_view())), 2),
    "runs": (lambda: arrow(c=pa.RunEndEncodedArray.from_arrays(pa.array([30, N]), pa.array(["u", "v"]))), 2),
    "sparse": (lambda: with_column(c=pd.arrays.SparseArray(np.arange(N) % 2)), 2),
    "tuples": (lambda: with_column(c=cells(lambda k: (k % 2,))), 2),
    "tiny and huge floats": (lambda: with_column(c=np.ldexp(1.0, np.arange(N) * 34 - 1020)), 6),
    "bytes of arrow": (lambda: arrow(c=pa.array([b"u", b"v"] * 30, pa.large_binary())), 2),
    "128 bits": (
        lambda: pl.DataFrame({"g": GROUP, "c": pl.Series([10**30 * k for k in range(N)], dtype=pl.Int128)}),
        6,
    ),
    "one row": (lambda: with_column(c="u").iloc[:1], 1),
}


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_read(name):
    make, size = READ[name]
    table = make()
    anova = quiet_fit(table)
    assert len(anova.effects_["c"].levels) == size
    assert anova.predict(table).shape == (len(table),)
    assert anova._repr_html_()


IDENTIFIERS = {
    "numbers of accounts": np.arange(N) + 2**60,
    "unsigned": np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    "integers without bound": [10**400 + k for k in range(N)],
    "uuids": [uuid.UUID(int=k) for k in range(N)],
    "numbers and text": [k if k % 2 else str(k) for k in range(N)],
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_what_only_tells_rows_apart_is_left_out_with_a_word(name):
    table = with_column(account=pd.Series(IDENTIFIERS[name]))
    with pytest.warns(UserWarning, match=r"left out.*'account' \(60 different values\)"):
        anova = FunctionalANOVA().fit(table, np.where(table["g"] == "a", 1.0, 0.0))
    assert [level for (level,) in anova.effects_["account"].levels] == ["(any value)"]


def test_long_numbers_that_are_few_are_levels_and_cannot_be_cut():
    table = with_column(account=(np.arange(N) % 30 + 2**60))
    anova = quiet_fit(table)
    assert len(anova.effects_["account"].levels) == 30
    with pytest.raises(InputError, match=r"n_bins= names the column 'account', which does not hold numbers or times"):
        quiet_fit(table, n_bins={"account": 4})


def test_every_column_of_new_rows_is_named_at_once():
    table = pd.DataFrame({"g": GROUP, "h": GROUP, "x": np.arange(N) / 7})
    anova = quiet_fit(table)
    new = pd.DataFrame({"g": ["z", "a"], "h": ["a", "q"], "x": [0.5, 1.5]})
    message = r"'g' holds unknown levels: 'z'.*column 'h' holds .*: 'q'.*handle_unknown='ignore'"
    with pytest.raises(UnknownLevelError, match=message):
        anova.predict(new)
    with pytest.raises(UnknownLevelError, match=r"'g' holds unknown levels.*Column 'x' holds an infinite value"):
        anova.predict(new.assign(x=np.inf, h="a"))


def test_a_source_names_every_column_too(tmp_path):
    import pyarrow.parquet as parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow(c=np.full(N, np.inf), d=np.full(N, -np.inf), y=OUTPUTS), path)
    with pytest.raises(InputError, match=r"'c' holds an infinite value; column 'd' holds an infinite value"):
        FunctionalANOVA().fit(path, "y")


def test_many_columns_are_not_all_spelled_out():
    table = pd.DataFrame(np.full((N, 30), np.inf)).add_prefix("c")
    with pytest.raises(InputError, match=r"'c19' .*; and so on in 10 more columns\. Replace") as caught:
        FunctionalANOVA().fit(table, OUTPUTS)
    assert "'c20'" not in str(caught.value)


@pytest.mark.parametrize("freq", ["D", "W", "M", "Q", "Y"])
def test_a_period_is_the_day_it_begins(freq):
    periods = pd.period_range("2021-03-01", periods=8, freq=freq)
    found = Table.read(pd.DataFrame({"a": periods})).column("a").values.tolist()
    assert found == [start.date() for start in periods.start_time]
    hours = Table.read(pd.DataFrame({"a": pd.period_range("2021-03-01", periods=3, freq="h")})).column("a")
    assert hours.values.tolist() == [datetime.datetime(2021, 3, 1, k) for k in range(3)]


def test_a_table_of_surrogates_is_fitted_and_shown():
    table = with_column(c=cells(lambda k: ("\ud800", "x")[k % 2]))
    assert len(quiet_fit(table).effects_["c"].levels) == 2


def test_objects_that_no_file_can_hold_say_so(tmp_path):
    anova = quiet_fit(with_column(c=cells(lambda k: (k % 2,))))
    with pytest.raises(InputTypeError, match=r"of type tuple cannot be written to a file.*to strings"):
        anova.save(tmp_path / "a.exanova")
