"""Tables on disk: what every format means, which cells are numbers, what is wrong with a file that cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cli_helpers import LOANS, PREDICTED, RISK, TABLE, inside, refused
from exanova import FunctionalANOVA, load
from exanova.cli.columns import Choice, divide, learned_kinds, typed
from exanova.cli.table_files import ReadOptions, read_table
from exanova.cli.text import split_names
from exanova.errors import InputError
from exanova.sources import not_utf8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text(frame, separator=","):
    return frame.to_csv(index=False, sep=separator).encode()


def lines(frame):
    return frame.to_json(orient="records", lines=True).encode()


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def feather(frame):
    buffer = io.BytesIO()
    pyarrow.feather.write_feather(frame, buffer)
    return buffer.getvalue()


FILES = {
    "t.csv": text(TABLE),
    "t.CSV": text(TABLE),
    "t.csv.gz": gzip.compress(text(TABLE)),
    "two.csv.gz": gzip.compress(text(TABLE)[:40]) + gzip.compress(text(TABLE)[40:]),
    "marked.csv": b"\xef\xbb\xbf" + text(TABLE),
    "windows.csv": text(TABLE).replace(b"\n", b"\r\n"),
    "t.tsv": text(TABLE, "\t"),
    "t.tsv.gz": gzip.compress(text(TABLE, "\t")),
    "t.jsonl": lines(TABLE),
    "t.ndjson.gz": gzip.compress(lines(TABLE)),
    "t.parquet": parquet(TABLE),
    "t.feather": feather(TABLE),
    "t.arrow": feather(TABLE),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_decomposition(folder, capsys, name):
    (folder / name).write_bytes(FILES[name])
    ended = inside(capsys, "explain", name, *PREDICTED, "--json")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    expected = FunctionalANOVA(shrinkage=None).fit(LOANS, RISK)
    assert document["mean"] == pytest.approx(expected.intercept_)
    norms = {tuple(e["features"]): e["squared_norm"][0] for e in document["strongest_effects"]}
    assert norms == pytest.approx({key: e.norm2[0] for key, e in expected.effects_.items() if key})


def test_the_format_may_be_told(folder, capsys):
    (folder / "table.dat").write_bytes(text(TABLE, ";"))
    refused(inside(capsys, "plan", "table.dat"), "cannot be determined from its suffix", "--format csv|tsv")
    refused(inside(capsys, "plan", "table.dat", "--format", "csv"), "add --separator ';'")
    refused(inside(capsys, "plan", "table.dat", "--format", "xml"), "csv, tsv, jsonl, parquet, feather")
    refused(inside(capsys, "plan", "table.dat", "--format", "csv", "--separator", "::"), "one character")
    told = ("--format", "csv", "--separator", ";")
    assert inside(capsys, "plan", "table.dat", *told, "--ignore", "id,w,risk,safe").code == 0


def test_standard_input(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text(TABLE))))
    assert inside(capsys, "plan", "-", "--ignore", "id").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refused(inside(capsys, "plan", "-"), "standard input is empty")


# What cannot be read

BROKEN = {
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"a,b\n", "has 2 columns and no rows"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "line 3 has 1 cell, but the header has 2"),
    "long.csv": (b"a,b\n1,2,3\n", "line 2 has 3 cells"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column called 'a'"),
    "latin.csv": ("a,b\né,1\n".encode("latin-1"), "not UTF-8"),
    "latin_header.csv": ("é,b\n1,1\n".encode("latin-1"), "not UTF-8"),
    "wide.csv": ("a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
    "cut.csv.gz": (gzip.compress(text(TABLE))[:-20], "truncated or damaged"),
    "cut_early.csv.gz": (gzip.compress(text(TABLE))[:5], "truncated or damaged"),
    "damaged.csv.gz": (gzip.compress(text(TABLE))[:-6] + b"000000", "truncated or damaged"),
    "cut.parquet": (parquet(TABLE)[:-20], "cannot be read as parquet"),
    "not.parquet": (text(TABLE), "cannot be read as parquet"),
    "cut.feather": (feather(TABLE)[:-20], "cannot be read as feather"),
    "not.feather": (text(TABLE), "cannot be read as feather"),
    "mixed.jsonl": (b'{"a": 1}\n{"a": "x"}\n', "changed from number to string in row 1"),
    "broken.jsonl": (b'{"a": 1}\n{"a": \n', "cannot be read as jsonl"),
    "list.jsonl": (b'[{"a": 1}]', "cannot be read as jsonl"),
    "latin.jsonl": ('{"a": "é"}'.encode("latin-1"), "not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read(folder, capsys, name):
    body, words = BROKEN[name]
    (folder / name).write_bytes(body)
    refused(inside(capsys, "plan", name), repr(name), words)


NOT_UTF8 = "name,p\n" + "Anna,1\n" * 40_000 + "Jos\xe9,2\n"


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_bytes_that_are_not_utf8_are_found(folder, capsys, name, in_blocks):
    body = NOT_UTF8.encode("latin-1")
    (folder / name).write_bytes(gzip.compress(body) if name.endswith("gz") else body)
    data = "t*" if in_blocks else name
    ended = inside(capsys, "explain", data, "--prediction", "p")
    refused(ended, "is not UTF-8", "line 40,002 has the byte 0xe9 after 'Jos'", "onvert it")


@given(
    before=st.text("aé\n", max_size=12),
    after=st.binary(max_size=6),
    block=st.integers(1, 9),
)
def test_the_first_byte_that_is_not_utf8(before, after, block):
    body = before.encode() + b"\xff" + after
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(not_utf8, "BLOCK", block)
        found = not_utf8.where_not_utf8(io.BytesIO(body))
        assert not_utf8.where_not_utf8(io.BytesIO(before.encode())) == ""
    own = before.split("\n")[-1]
    assert found == f"line {1 + before.count(chr(10))} has the byte 0xff" + (f" after {own!r}" if own else "")


DECIMAL = TABLE.assign(income=np.arange(len(TABLE)) + 0.25, code=[f"0{k}" for k in range(len(TABLE))])


def with_commas(frame):
    return frame.to_csv(index=False, sep=";", decimal=",").encode()


def test_numbers_with_a_decimal_comma_are_numbers(folder):
    for name, body in (("comma.csv", with_commas(DECIMAL)), ("point.csv", text(DECIMAL))):
        (folder / name).write_bytes(body)
    comma = read_table("comma.csv", ReadOptions(separator=";", decimal=","))
    assert comma.equals(read_table("point.csv", ReadOptions()))
    everything = read_table("comma.csv", ReadOptions(separator=";", decimal=",", text=("all",)))
    assert divide(everything, Choice(prediction=("risk",)), "t").predictions.tolist() == RISK.tolist()


def test_a_point_is_no_part_of_a_number_with_a_decimal_comma(folder):
    (folder / "t.csv").write_bytes(b"a;b;c\n1,5;1.5;1\n2;2,5;-2,5e3\n")
    table = read_table("t.csv", ReadOptions(separator=";", decimal=","))
    assert table.to_pydict() == {"a": [1.5, 2.0], "b": ["1.5", "2,5"], "c": [1.0, -2500.0]}


@pytest.mark.parametrize("data", ["loans.csv", "part*"])
def test_every_command_reads_decimal_commas(folder, capsys, data):
    for name in ("loans.csv", "part1.csv"):
        (folder / name).write_bytes(with_commas(DECIMAL))
    reading = ("--separator", ";", "--decimal", ",", "--format", "csv")
    fit = ("--prediction", "risk", "--ignore", "code", "--weight", "w")

    def done(*words):
        ended = inside(capsys, *words, *reading)
        assert ended.code == 0, ended.err
        return ended

    done("explain", data, *fit, "--save", "m.exanova", "--quiet")
    done("plan", data, *fit)
    done("rows", "m.exanova", data, "--output", "values.csv" if data == "loans.csv" else "values")
    if data == "loans.csv":
        assert "mean of risk" in done("difference", "m.exanova", data, "--by", "home", "--prediction", "risk").out
        done("levels", data, *fit[:4], "--features", "job,home", "-o", "levels.json")
        done("moments", data, *fit[:2], "--levels", "levels.json", "-o", "m.moments")
        done("report", "m.exanova", "r.html", "--data", data, "--by", "home")
    means = [load("m.exanova").intercept_[0], np.average(RISK, weights=TABLE["w"])]
    assert np.isclose(*means)


def test_a_decimal_comma_that_is_not_expected_is_named(folder, capsys):
    (folder / "loans.csv").write_bytes(with_commas(DECIMAL))
    ended = inside(capsys, "explain", "loans.csv", "--separator", ";", "--prediction", "risk")
    refused(ended, "expected numbers; if the comma is the decimal point of this file, add --decimal ','")
    refused(inside(capsys, "plan", "loans.csv", "--decimal", "x"), "--decimal 'x' was given; expected ',' or '.'")
    assert ReadOptions(decimal=",").words() == ["--decimal", ","]


def test_what_is_no_file(folder, capsys):
    refused(inside(capsys, "plan", "nowhere.csv"), "'nowhere.csv' cannot be read: No such file or directory")
    (folder / "folder.csv").mkdir()
    refused(inside(capsys, "plan", "folder.csv"), "the folder 'folder.csv' holds no file of a known format")
    refused(inside(capsys, "plan", "nul\0l.csv"), "null byte")


# Kinds of cells


def kinds(folder, body, **reading):
    (folder / "t.csv").write_bytes(body)
    table = read_table("t.csv", ReadOptions(**reading))
    return {field.name: str(field.type) for field in table.schema}, table.to_pydict()


def test_a_cell_of_csv_is_what_it_is_written_as(folder):
    body = (
        b"int,real,code,plus,yes,word,some,na,hole,long\n"
        b"9,1.5,007,+1,true,x,NA,NA,1,12345678901234567890\n"
        b"-10,2,12,2,false,7,3,x,,1\n"
    )
    types, cells = kinds(folder, body)
    assert types == {
        "int": "int64",
        "real": "double",
        "code": "string",
        "plus": "double",
        "yes": "bool",
        "word": "string",
        "some": "int64",
        "na": "string",
        "hole": "int64",
        "long": "string",
    }
    assert cells["code"] == ["007", "12"]
    assert cells["some"] == [None, 3]
    assert cells["na"] == ["NA", "x"]
    assert cells["hole"] == [1, None]


def test_text_and_missing_say_otherwise(folder):
    body = b"a,b,c\n1,?,x\n2,NA,NA\n"
    types, cells = kinds(folder, body, text=("a",), missing=("?", "NA"))
    assert types["a"] == "string"
    assert cells == {"a": ["1", "2"], "b": [None, None], "c": ["x", None]}
    assert kinds(folder, body, text=("all",))[0] == dict.fromkeys("abc", "string")
    types, _ = kinds(folder, b"all,b\n1,2\n", text=("all",))
    assert types == {"all": "string", "b": "int64"}


def test_formats_with_types_keep_them(folder):
    frame = pd.DataFrame({"digits": ["1", "2"], "date": ["2024-05-01", "2024-05-02"], "n": [1, 2]})
    (folder / "t.jsonl").write_bytes(lines(frame))
    (folder / "t.parquet").write_bytes(parquet(frame))
    for name in ("t.jsonl", "t.parquet"):
        assert read_table(name, ReadOptions()).to_pydict() == frame.to_dict("list")


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_whole_numbers_survive_the_way_through_text(numbers):
    column = pa.table({"a": pa.array([None if n is None else str(n) for n in numbers], pa.string())})
    assert typed(column, {}).column("a").to_pylist() == numbers


@given(st.lists(st.text() | st.from_regex(r"\A[0-9.]{1,4}\Z"), min_size=1))
def test_text_is_never_changed(cells):
    """A column with one cell that is no number stays as it was written, zeros in front included."""
    written = [f"0{cell}" for cell in cells]
    assume(not all(re.fullmatch(r"0(\.\d*)?([eE][+-]?\d+)?", cell, re.ASCII) for cell in written))
    column = pa.table({"a": pa.array(written, pa.string())})
    assert typed(column, {}).column("a").to_pylist() == written


def test_new_rows_are_read_as_the_kinds_that_were_learned(folder, capsys):
    """A column of text with digits, of which new rows happen to have nothing but digits."""
    table = pd.DataFrame({"doors": ["2", "3", "5more", "2"], "age": [1, 2, 1, None], "p": [0.0, 1.0, 2.0, 4.0]})
    table.to_csv("t.csv", index=False)
    assert (
        inside(capsys, "explain", "t.csv", "--prediction", "p", "--population", "--save", "m.exanova", "-q").code == 0
    )
    for name, body in {
        "n.csv": b"doors,age\n3,2\n2,\n",
        "n.jsonl": b'{"doors": 3, "age": "2"}\n{"doors": 2}\n',
    }.items():
        (folder / name).write_bytes(body)
        ended = inside(capsys, "rows", "m.exanova", name, "--json")
        assert (ended.code, ended.err) == (0, "")
        assert [row["fitted"] for row in json.loads(ended.out)["values"]] == pytest.approx([1.0, 4.0])


def test_dates_and_bins_that_were_learned_in_python_are_found_in_csv(folder, capsys):
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2024-05-01", "2024-05-02"] * 15),
            "size": np.linspace(0, 1, 30),
            "ok": [True, False] * 15,
        }
    )
    anova = FunctionalANOVA(shrinkage=None, n_bins=3, max_order=1).fit(frame, np.arange(30.0))
    anova.save("m.exanova")
    assert set(learned_kinds(anova)) == {"day", "size", "ok"}
    frame.to_csv("new.csv", index=False)
    ended = inside(capsys, "rows", "m.exanova", "new.csv", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert [row["fitted"] for row in json.loads(ended.out)["values"]] == pytest.approx(anova.predict(frame).tolist())


# Columns


def table():
    return pa.table({"a": ["x", "y"], "a,b": ["u", "v"], "c": ["1", "2"], "p": [0.0, 1.0], "w": [1, 0]})


def test_features_are_what_is_nothing_else():
    data = divide(table(), Choice(prediction=("p",), weight="w", ignore=("c",)), "t.csv")
    assert data.features.column_names == ["a", "a,b"]
    assert data.weight.tolist() == [1.0, 0.0]
    assert data.counted().features.to_pylist() == [{"a": "x", "a,b": "u"}]
    assert data.counted().predictions.tolist() == [0.0]
    assert divide(table(), Choice(features=("c,a",)), "t.csv").features.column_names == ["c", "a"]
    assert divide(table(), Choice(features=("a,b,c",)), "t.csv").features.column_names == ["a,b", "c"]
    both = divide(table(), Choice(prediction=("p", "w"), features=("a",)), "t.csv")
    assert both.predictions.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_the_features_of_a_model_come_in_its_order():
    assert divide(table(), Choice(), "t.csv", ["c", "a"]).features.column_names == ["c", "a"]
    for choice, words in {
        Choice(ignore=("a",)): "the model needs 'a'",
        Choice(features=("c",)): "the model needs 'a'",
        Choice(features=("a,c,p",)): "the model has no feature 'p'",
        Choice(prediction=("a",)): "the model needs 'a'",
    }.items():
        with pytest.raises(InputError, match=words):
            divide(table(), choice, "t.csv", ["c", "a"])
    with pytest.raises(InputError, match=r"no column 'z' in t\.csv, which the model needs"):
        divide(table(), Choice(), "t.csv", ["z"])


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(prediction=("P",)), "no column 'P' in t.csv. Did you mean 'p'?"),
        (Choice(features=("q",)), "Its columns are 'a', 'a,b'"),
        (Choice(weight="u"), "no column 'u'"),
        (Choice(features=("p",), prediction=("p",)), "'p' cannot be a feature"),
        (Choice(ignore=("a,b", "a,c,p,w")), "t.csv has no column left"),
        (Choice(prediction=("a",)), "--prediction 'a' holds 'x' in row 0; expected numbers"),
        (Choice(weight="a"), "--weight 'a' holds 'x' in row 0; expected numbers"),
    ],
)
def test_columns_that_cannot_be(choice, words):
    with pytest.raises(InputError) as caught:
        divide(table(), choice, "t.csv")
    assert words in str(caught.value)


def test_a_missing_prediction_is_named():
    holes = pa.table({"a": ["x", "y"], "p": pa.array([1.0, None])})
    with pytest.raises(InputError, match="missing in 1 rows, the first is row 1"):
        divide(holes, Choice(prediction=("p",)), "t.csv")
    dates = pa.table({"a": ["x"], "p": pa.array([[1]])})
    with pytest.raises(InputError, match="expected a column of numbers"):
        divide(dates, Choice(prediction=("p",)), "t.csv")


NAMES = st.lists(st.text(alphabet="ab,: ", min_size=1).filter(lambda s: s == s.strip(" ,:")), min_size=1, unique=True)


@given(NAMES)
def test_a_list_of_known_names_is_read_back(names):
    """Also where a name holds the separator, as long as the longest reading is the one that was meant."""
    for name in names:
        assert split_names(name, names, ",") == [name]
    plain = [name for name in names if "," not in name]
    assert split_names(",".join(plain), plain, ",") == plain


def test_levels_are_joined_by_option(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": [f"z{k}" for k in rng.integers(30, size=400)], "b": rng.choice(["no", "yes"], 400)})
    frame["score"] = (frame["zip"].str[1:].astype(int) % 2) + rng.normal(size=400) / 9
    frame.to_csv("zips.csv", index=False)
    words = ("explain", "zips.csv", "--prediction", "score", "--json")
    counts = {}
    for option in (["--max-levels", "4"], ["--max-levels", "zip=2"], ["--max-levels", "none"], []):
        found = inside(capsys, *words, *option, "--save", "zips.exanova", "--force")
        assert found.code == 0
        counts[" ".join(option[1:])] = len(load("zips.exanova").categories_[0])
    assert counts == {"4": 2, "zip=2": 2, "none": 30, "": 30}
