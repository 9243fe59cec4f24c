"""Dates and times written as text are cut as if they had been read as times, in memory, in files and on new rows."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, load
from exanova.cli.entry import run
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.data.text_times import dates_as_numbers, time_of_text
from exanova.errors import InputTypeError

FIRST = datetime.datetime(2023, 1, 2)
DAYS = [FIRST + datetime.timedelta(days=17 * k % 730, hours=k % 24) for k in range(300)]

WRITTEN = {
    "dates": ([moment.date() for moment in DAYS], "%Y-%m-%d"),
    "T": (DAYS, "%Y-%m-%dT%H:%M"),
    "seconds": (DAYS, "%Y-%m-%d %H:%M:%S"),
    "UTC": ([moment.replace(tzinfo=datetime.UTC) for moment in DAYS], "%Y-%m-%dT%H:%M:%SZ"),
    "times of day": ([moment.time() for moment in DAYS], "%H:%M"),
}


def texts(name):
    times, form = WRITTEN[name]
    return [time.strftime(form) for time in times]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", WRITTEN)
def test_texts_are_cut_as_the_times_they_stand_for(name, library):
    times = WRITTEN[name][0]
    as_text, as_times = library({"a": [*texts(name), None]}), Table.read(pl.DataFrame({"a": [*times, None]}))
    encoding, expected = learn_encoding(Table.read(as_text)), learn_encoding(as_times)
    assert encoding.features[0].edges == expected.features[0].edges
    assert encoding.labels == expected.labels
    np.testing.assert_array_equal(encoding.encode(Table.read(as_text)), expected.encode(as_times))
    np.testing.assert_array_equal(encoding.encode(as_times), expected.encode(Table.read(as_text)))


def test_nanoseconds_and_offsets_in_text_are_kept_apart():
    fine = [f"2024-05-01T00:00:00.{k:09d}+02:00" for k in range(40)]
    encoding = learn_encoding(Table.read(pd.DataFrame({"a": fine})), n_bins=4)
    assert encoding.encode(Table.read(pd.DataFrame({"a": fine})))[0].tolist() == [k // 10 for k in range(40)]
    same = ["2024-05-01T00:00:00Z", "2024-05-01T02:00:00+02:00", "2024-05-01 00:00:00+00:00"]
    table = Table.read(
        pd.DataFrame({"a": [*same, *(f"2024-0{m}-{d:02d}T00:00Z" for m in (4, 6) for d in range(1, 29))]})
    )
    assert len(set(learn_encoding(table, n_bins={"a": 8}).encode(table)[0][:3].tolist())) == 1


def test_few_texts_stay_levels_and_so_do_texts_that_are_not_to_be_cut():
    few = Table.read(pd.DataFrame({"a": texts("dates")[:15]}))
    assert learn_encoding(few).levels[0] == tuple(sorted(texts("dates")[:15]))
    many = Table.read(pd.DataFrame({"a": texts("dates") * 3}))
    assert len(learn_encoding(many, n_bins={"a": None}).levels[0]) == len(set(texts("dates")))
    declared = Table.read(pd.DataFrame({"a": pd.Categorical(texts("dates") * 3)}))
    assert len(learn_encoding(declared).levels[0]) == len(set(texts("dates")))


@pytest.mark.parametrize(
    "text", ["03/04/2024", "2024-02-30", "2024-5-1", "24:00", "7:30", "20240501", "2024-05-01T", ""]
)
def test_what_is_ambiguous_or_no_time_is_text_and_the_column_with_it(text):
    assert time_of_text(text) is None
    column = [*texts("dates"), text] * 2
    with pytest.warns(UserWarning, match="although it holds dates: 'a' .600 of 602 cells are dates, 2 "):
        assert not learn_encoding(Table.read(pd.DataFrame({"a": column}))).features[0].is_of_times


@given(st.datetimes(min_value=datetime.datetime(1000, 1, 1)), st.integers(-12, 14) | st.none())
def test_a_text_is_read_as_it_was_written(moment, hours):
    zone = None if hours is None else datetime.timezone(datetime.timedelta(hours=hours))
    own = moment.replace(tzinfo=zone)
    assert time_of_text(own.isoformat()) == time_of_text(own.isoformat(" ")) == own
    assert time_of_text(own.date().isoformat()) == own.date()


def test_files_and_new_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"day": texts("dates"), "shop": rng.choice(["north", "south"], 300)})
    rows["sales"] = np.array([(day - FIRST).days for day in DAYS]) / 100 + (rows["shop"] == "north")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    path = str(tmp_path / "rows.csv")
    saved = str(tmp_path / "a.exanova")
    assert run(["explain", path, "--prediction", "sales", "--save", saved]) == 0
    assert run(["rows", saved, path, "--output", str(tmp_path / "out.csv")]) == 0
    capsys.readouterr()
    anova = FunctionalANOVA().fit(rows[["day", "shop"]], rows["sales"])
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(out["fitted"], anova.predict(rows[["day", "shop"]]), atol=1e-9)
    in_blocks = FunctionalANOVA().fit(tmp_path / "rows.csv", "sales")
    assert in_blocks.effects_["day"].levels == anova.effects_["day"].levels == load(saved).effects_["day"].levels
    with pytest.raises(InputTypeError, match=r"'day' is cut by time, but holds 'soon' of type str; expected a date"):
        anova.predict(pd.DataFrame({"day": ["2023-05-01", "soon"], "shop": ["north"] * 2}))


def test_an_infinite_cell_of_csv_is_refused_as_one(tmp_path, capsys):
    numbers = [f"{k / 7:.3f}" for k in range(60)]
    lines = [f"{a},{b},{k}" for k, (a, b) in enumerate(zip(["inf", *numbers], [*numbers, "-Infinity"], strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(["u,v,p", *lines]))
    assert run(["explain", str(tmp_path / "rows.csv"), "--prediction", "p"]) == 2
    assert "'u' holds an infinite value, first in row 0; column 'v' holds" in capsys.readouterr().err
    (tmp_path / "names.csv").write_text("\n".join(["u,p", *[f"{('inf', 'sup')[k % 2]},{k}" for k in range(40)]]))
    assert run(["explain", str(tmp_path / "names.csv"), "--prediction", "p"]) == 0


OTHERWISE = ["%m/%d/%Y", "%d.%m.%y", "%d-%b-%Y", "%b %d, %Y", "%d/%m/%Y %H:%M"]


@pytest.mark.parametrize("how", OTHERWISE)
@pytest.mark.parametrize(("rows", "what"), [(120, "left out"), (2000, "read as names")])
def test_dates_written_otherwise_are_said_to_be_dates(how, rows, what):
    """Of many rows as names in alphabetical order, of few as identifiers: in neither case without a word."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.random.default_rng(0).permutation(rows) % 400, unit="D")
    table = pd.DataFrame({"day": days.strftime(how), "other": np.arange(rows) % 3})
    found = rf"1 column is {what}, although it holds dates: 'day' \({rows:,} of .* written as "
    with pytest.warns(UserWarning, match=found + ".*Write such cells as 2024-05-31"):
        FunctionalANOVA(max_order=1).fit(table, np.arange(rows) % 3.0)


FOUND = {
    "two ways": (lambda day, k: day.strftime(("%Y-%m-%d", "%d.%m.%Y")[k % 2]), "200 of 400 cells are dates, 200 look"),
    "other cells": (
        lambda day, k: day.strftime("%Y-%m-%d") if k % 8 else "unknown",
        "350 of 400 cells are dates, 50 are not, such as 'unknown'",
    ),
    "both": (
        lambda day, k: day.strftime("%m/%d/%Y") if k % 4 else "n/a",
        "300 of 400 cells look like dates written as",
    ),
    "months": (lambda day, _: day.strftime("%b-%y"), "400 of 400 cells look like dates written as"),
    "whole numbers": (lambda day, _: int(day.strftime("%Y%m%d")), "400 of 400 cells look like dates written as '20"),
    "floats": (lambda day, _: float(day.strftime("%Y%m%d")), "400 of 400 cells look like dates written as '20"),
}


@pytest.mark.parametrize("kind", FOUND)
def test_a_column_of_dates_says_what_was_found(kind):
    write, found = FOUND[kind]
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(400) * 3, unit="D")
    table = pd.DataFrame({"day": [write(day, k) for k, day in enumerate(days)], "other": np.arange(400) % 3})
    with pytest.warns(UserWarning, match=f"although it holds dates: 'day' .{found}") as caught:
        FunctionalANOVA(max_order=1).fit(table, np.arange(400) % 3.0)
    assert not any("identifies" in str(warning.message) for warning in caught)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=5, unique=True), st.booleans())
def test_whole_numbers_are_days_only_if_every_one_is(numbers, as_floats):
    days = [20240229, 20231231]
    totals = np.ones(len(days), dtype=np.int64)
    assert dates_as_numbers([float(day) for day in days] if as_floats else days, totals) is not None
    other = [number for number in numbers if pd.isna(pd.to_datetime(str(number), format="%Y%m%d", errors="coerce"))]
    assert not other or dates_as_numbers([*days, other[0]], np.ones(len(days) + 1, dtype=np.int64)) is None
    assert dates_as_numbers([20230229], np.ones(1)) is dates_as_numbers([20240101.5], np.ones(1)) is None
