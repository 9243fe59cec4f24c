"""Levels, moments and merge on the command line: the same explanation as that of all rows, and one line per error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli_helpers import inside, refused
from exanova import FunctionalANOVA, load
from exanova.apart.moments_file import load_moments


def rows(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    levels = {"a": ["u", "v", "w"], "b": [1, 2, 3], "c": ["x", "y"]}
    table = pd.DataFrame({name: rng.choice(own, n) for name, own in levels.items()})
    return table.assign(p=np.round((table["a"] == "u") * table["b"] + 0.5 * (table["c"] == "x") + rng.random(n), 6))


@pytest.fixture
def sites(tmp_path, monkeypatch, capsys):
    """Two tables, the levels of both, and the moments of each."""
    monkeypatch.chdir(tmp_path)
    table = rows()
    table[:250].to_csv("north.csv", index=False)
    table[250:].to_parquet("south.parquet", index=False)
    assert inside(capsys, "levels", "north.csv", "--prediction", "p", "-o", "levels.json").code == 0
    for name in ("north.csv", "south.parquet"):
        done = inside(
            capsys, "moments", name, "--prediction", "p", "--levels", "levels.json", "-o", f"{name[:5]}.moments"
        )
        assert done.code == 0, done.err
    return table


def test_merged_moments_are_explained_as_all_rows_are(sites, capsys):
    done = inside(capsys, "merge", "north.moments", "south.moments", "-o", "all.moments")
    assert "moments of 600 rows in 2 shards" in done.out
    done = inside(capsys, "explain", "all.moments", "--save", "all.exanova", "--report", "all.md", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["distinct_rows"] == 0
    whole = FunctionalANOVA(shrinkage=None).fit(sites.drop(columns="p"), sites["p"])
    apart = load("all.exanova")
    for key in whole.effects_:
        np.testing.assert_allclose(apart.effects_[key].values, whole.effects_[key].values, atol=1e-12)
    shown = inside(capsys, "show", "all.exanova")
    assert "600 rows (as moments)" in shown.out


def test_levels_of_another_table_are_added(sites, capsys):
    pd.DataFrame({"a": ["z", "u"], "b": [9, 1], "c": ["x", None], "p": [0.0, 1.0]}).to_csv("third.csv", index=False)
    done = inside(capsys, "moments", "third.csv", "--prediction", "p", "--levels", "levels.json", "-o", "t.moments")
    assert done.code == 2
    assert "add them to the levels that all shards share" in done.err
    added = inside(capsys, "levels", "third.csv", "--prediction", "p", "--add", "levels.json", "-o", "more.json")
    assert added.code == 0, added.err
    features = json.loads(Path("more.json").read_text(encoding="utf-8"))["features"]
    assert [len(feature["levels"]) for feature in features] == [4, 4, 3]
    assert (
        inside(capsys, "moments", "third.csv", "--prediction", "p", "--levels", "more.json", "-o", "t.moments").code
        == 0
    )
    done = inside(capsys, "merge", "north.moments", "t.moments", "-o", "all.moments")
    assert (done.code, "different levels" in done.err) == (2, True)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("options", [(), ("--weight", "w", "--min-frequency", "0.3"), ("--n-bins", "4")])
def test_the_levels_of_a_folder_are_those_of_its_rows(tmp_path, sites, suffix, options, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    k = np.arange(len(sites))
    code = np.where(k % 5 == 0, "007", "12")
    table = sites.assign(w=k % 3 + 1, x=np.sin(k).round(2), code=code, day=np.datetime64("2024-01-01") + k % 400)
    write = pd.DataFrame.to_parquet if suffix == "parquet" else pd.DataFrame.to_csv
    for part in range(3):
        write(table[part::3], folder / f"{part}.{suffix}", index=False)
    write(table, tmp_path / f"whole.{suffix}", index=False)
    roles = ("--prediction", "p", *options)
    found = []
    for data in ("folder", f"folder/*.{suffix}", f"whole.{suffix}"):
        done = inside(capsys, "levels", data, *roles, "-o", "found.json", "--force")
        assert done.code == 0, done.err
        found.append(json.loads(Path("found.json").read_text(encoding="utf-8")))
    assert found[0] == found[1] == found[2]


def test_levels_of_a_folder_are_added_as_those_of_a_table(tmp_path, sites, capsys):
    """A column that is text at other places stays text, although these files alone hold numbers."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, codes in ((one, ["007", "8"]), (two, ["8", "9"])):
        folder.mkdir()
        for name in ("a.csv", "b.csv"):
            pd.DataFrame({"code": codes * 20, "p": np.arange(40.0)}).to_csv(folder / name, index=False)
    assert inside(capsys, "levels", "one", "--prediction", "p", "-o", "one.json").code == 0
    done = inside(capsys, "levels", "two", "--prediction", "p", "--add", "one.json", "-o", "both.json")
    assert done.code == 0, done.err
    (feature,) = json.loads(Path("both.json").read_text(encoding="utf-8"))["features"]
    assert feature["levels"] == ["007", "8", "9"]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_moments_of_a_folder_are_those_of_its_rows(tmp_path, sites, weighted, capsys):
    """Blocks of files, an empty one among them, are one shard; its minimum count is that of all rows."""
    folder = tmp_path / "folder"
    folder.mkdir()
    table = sites.assign(w=np.arange(len(sites)) % 3 + 1).round({"p": 0})
    for k in range(4):
        table[k::4].to_parquet(folder / f"{k}.parquet", index=False)
    table[:0].to_parquet(folder / "4.parquet", index=False)
    table.to_csv("whole.csv", index=False)
    roles = ["--prediction", "p", *(["--weight", "w"] if weighted else [])]
    least = int(table.groupby(["a", "b", "c"]).size().min())
    levels = inside(capsys, "levels", "whole.csv", *roles, "--features", "a,b,c", "-o", "l.json")
    assert levels.code == 0, levels.err
    for data in ("folder", "folder/*.parquet", "whole.csv"):
        common = ("moments", data, *roles, "--levels", "l.json", "-o", "found.moments", "--force", "--min-count")
        done = inside(capsys, *common, str(least + 1))
        assert (done.code, f"fewer than {least + 1} rows" in done.err) == (2, True)
        assert inside(capsys, *common, str(least)).code == 0
        found = load_moments("found.moments")
        assert (found.rows, len(found.shards), found.min_count) == (len(table), 1, least)
        if data == "folder":
            first = found
    assert np.array_equal(first.counts, found.counts)
    np.testing.assert_allclose(
        first.sums + first.weight[:, None] * first.centre, found.sums + found.weight[:, None] * found.centre, atol=1e-9
    )
    done = inside(capsys, "merge", "found.moments", "found.moments", "-o", "twice.moments")
    assert "in both" in done.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("merge", "north.moments", "north.moments", "-o", "x.moments"), "in both"),
        (("merge", "north.csv", "south.moments", "-o", "x.moments"), "not a file of moments saved by exanova"),
        (("explain", "north.moments", "--prediction", "p"), "--prediction cannot be used with moments"),
        (("explain", "north.moments", "--max-order", "3"), "--max-order 3"),
        (("moments", "north.csv", "--levels", "levels.json", "-o", "x.moments"), "--prediction COLUMN"),
        (
            ("moments", "north.csv", "--prediction=p", "--levels=levels.json", "--min-count=99", "-o", "x.moments"),
            "fewer than 99 rows",
        ),
        (("moments", "north.csv", "--prediction", "p", "--levels", "north.csv", "-o", "x.moments"), "as levels"),
        (("levels", "north.csv", "--prediction", "p", "-o", "levels.json"), "levels.json"),
    ],
)
def test_each_error_is_one_line(sites, capsys, command, said):
    refused(inside(capsys, *command), said)


def test_what_is_suggested_next_can_be_run(sites, tmp_path, capsys):
    """Moments hold no rows to explain; the rows of a folder go to a folder."""
    shown = inside(capsys, "explain", "north.moments", "--save", "north.exanova").out
    assert "exanova show north.exanova" in shown
    assert "exanova rows" not in shown
    (tmp_path / "folder").mkdir()
    sites.to_parquet(tmp_path / "folder" / "one.parquet", index=False)
    shown = inside(capsys, "explain", "folder", "--prediction", "p", "--save", "all.exanova").out
    assert "exanova rows all.exanova folder --prediction p --output values/" in " ".join(shown.split())
    assert inside(capsys, "rows", "all.exanova", "folder", "--prediction", "p", "--output", "values/").code == 0
    assert [path.name for path in (tmp_path / "values").iterdir()] == ["one.parquet"]
