"""Columns of numbers that are text in some cells: what was found, how many, an example, what to do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_helpers import inside
from exanova import FunctionalANOVA
from exanova.data.levels import alike_but_for_blanks
from exanova.data.number_texts import numbers_as_text

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.choice(list("xyz"), N), "b": RNG.choice(["u", "v"], N)})
INCOME = RNG.gamma(9, 4000, N).round(2)
Y = (X["a"] == "x") * 1.0 + INCOME / 1e5

COLUMNS = re.compile(r"\d+ columns? (is|are|holds?) ")
"""How a warning of columns begins."""


def said(income, rows=X, model=Y, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FunctionalANOVA().fit(rows.assign(income=income), model, **given)
    return [str(warning.message) for warning in caught if COLUMNS.match(str(warning.message))]


def spelled(style):
    return [style.format(value) for value in INCOME]


FOUND = {
    "units in some": (
        [f"{v:.2f} EUR" if k % 50 == 0 else str(v) for k, v in enumerate(INCOME)],
        f"294 of 300 cells are numbers, 6 look like numbers written as '{INCOME[0]:.2f} EUR'",
    ),
    "separators": (spelled("{:,.2f}"), f"300 of 300 cells look like numbers written as '{INCOME.min():,.2f}'"),
    "a currency": (spelled("€ {:.2f}"), f"300 of 300 cells look like numbers written as '€ {INCOME.min():.2f}'"),
    "words in some": (
        [str(v) if k % 9 else "n.a." for k, v in enumerate(INCOME)],
        "266 of 300 cells are numbers, 34 are not, such as 'n.a.'",
    ),
    "words among real numbers": (
        [v if k % 50 else "unknown" for k, v in enumerate(INCOME)],
        "294 of 300 cells are numbers, 6 are not, such as 'unknown'",
    ),
}


@pytest.mark.parametrize("kind", FOUND)
def test_a_column_of_numbers_as_text_says_what_was_found(kind):
    income, found = FOUND[kind]
    (message,) = said(income)
    assert "'income'" in message
    assert "1 column is left out, although it holds numbers" in message
    assert found in message or kind in ("separators", "a currency")  # the example is any of the most frequent
    assert "identifies" not in message
    assert found.partition(" written")[0] in message


def test_what_to_do_depends_on_what_was_found():
    assert "make them missing" in said(FOUND["words in some"][0])[0]
    assert "Write such cells as 1234.5." in said(FOUND["units in some"][0])[0]
    assert "the comma is the decimal point" in said([str(v).replace(".", ",") for v in INCOME])[0]


def test_the_model_still_receives_them_only_where_there_is_one():
    names = [f"r{k}" for k in range(N)]
    for income in (names, FOUND["separators"][0]):
        assert "The model still receives them." not in said(income)[0]
        assert "The model still receives them." in said(income, model=lambda rows: (rows["a"] == "x") * 1.0)[0]


@pytest.mark.parametrize("codes", ["r{:04d}", "{:05d}", "SKU{:05d}", "192.168.7.{}", "2024-{:03d}-a"])
def test_codes_are_no_numbers_written_otherwise(codes):
    (message,) = said([codes.format(k) for k in range(N)])
    assert "identifies rows" in message


def test_numbers_as_text_with_fewer_values_are_levels_and_said_to_be():
    rows = pd.concat([X] * 4, ignore_index=True)
    income = [f"{v / 10:.2f}".replace(".", ",") for v in INCOME] * 4
    (message,) = said(income, rows, pd.concat([Y] * 4, ignore_index=True))
    assert "1 column is read as names, although it holds numbers" in message
    assert "1,200 of 1,200 cells look like numbers" in message
    whole = [str(k) + ("x" if k == 0 else "") for k in range(N)] * 4  # codes, as far as one can tell
    assert said(whole, rows, pd.concat([Y] * 4, ignore_index=True)) == []


def test_numbers_as_text_are_found_from_as_many_values_on_as_numbers_are_cut():
    rows = pd.concat([X] * 2, ignore_index=True)
    for size, messages in ((20, 0), (21, 1)):
        share = [f"{k % size}.5%" for k in range(len(rows))]
        assert len(said(share, rows, pd.concat([Y] * 2, ignore_index=True))) == messages


def test_different_values_are_counted_where_weights_count_no_cells():
    (message,) = said(FOUND["units in some"][0], sample_weight=RNG.random(N) + 0.5)
    assert "294 of 300 different values are numbers" in message
    doubled = said(FOUND["units in some"][0], sample_weight=np.full(N, 2))
    assert "588 of 600 cells are numbers, 12 look like" in doubled[0]


def test_the_command_names_its_options(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X.assign(income=FOUND["words in some"][0], p=Y).to_csv("t.csv", index=False)
    assert "read them as missing with --missing n.a." in inside(capsys, "explain", "t.csv", "--prediction", "p").err
    X.assign(income=[str(v).replace(".", ",") for v in INCOME], p=Y).to_csv("t.csv", index=False)
    assert "read it with --decimal ," in inside(capsys, "explain", "t.csv", "--prediction", "p").err


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=9, unique=True), st.sampled_from(["{}", " {}"]))
def test_whole_numbers_alone_are_none_since_they_may_be_codes(values, style):
    texts = list(dict.fromkeys(style.format(value) for value in values))
    assert numbers_as_text(texts, np.ones(len(texts), dtype=np.int64)) is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9, unique=True), st.sampled_from(["{:e}", " {:.3f}"]))
def test_decimal_numbers_alone_are_numbers_as_they_are(values, style):
    texts = list(dict.fromkeys(style.format(value) for value in values))
    found = numbers_as_text(texts, np.ones(len(texts), dtype=np.int64))
    assert (found.plain, found.written, found.cells, found.example) == (len(texts), 0, len(texts), "")
    assert found.certain


@pytest.mark.parametrize("copies", [1, 6])
def test_decimal_numbers_read_as_text_say_how_to_convert_them_and_that_works_when_done(copies):
    rows, income, y = pd.concat([X] * copies), [str(v) for v in INCOME] * copies, pd.concat([Y] * copies)
    (message,) = said(income, rows.reset_index(drop=True), y.reset_index(drop=True))
    assert f"{N * copies:,} of {N * copies:,} cells are numbers" in message
    assert "pandas.to_numeric" in message
    assert "identifies" not in message
    assert said(pd.to_numeric(pd.Series(income)), rows.reset_index(drop=True), y.reset_index(drop=True)) == []


@given(
    st.lists(st.floats(1000, 1e9), min_size=1, max_size=9, unique=True),
    st.sampled_from(["{:,.2f}", "{:.2f} EUR", "${:,.0f}"]),
)
def test_numbers_written_otherwise_are_found(values, style):
    texts = list(dict.fromkeys(style.format(value) for value in values))
    found = numbers_as_text(texts, np.ones(len(texts), dtype=np.int64))
    assert (found.plain, found.written, found.cells) == (0, len(texts), len(texts))
    assert found.example in texts


@given(st.lists(st.sampled_from(["Y", "N", "Y ", " Y", "n", ""]), min_size=1, unique=True))
def test_names_that_differ_only_in_blanks_are_found(names):
    found = alike_but_for_blanks(names)
    assert (found is None) == (len({name.strip() for name in names}) == len(names))
    assert found is None or (found[0].strip() == found[1].strip() and found[0] != found[1])


def test_names_that_differ_only_in_blanks_are_said_to_be_different_levels_unless_they_were_declared():
    answer = pd.Series(["Y", "N", "Y ", "N"] * 75)
    (message,) = said(answer)
    assert "1 column holds names that differ only in blanks" in message
    assert "'income' ('Y' and 'Y ')" in message
    assert said(answer.astype("category")) == said(answer.str.strip()) == []
