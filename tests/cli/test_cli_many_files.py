"""Folders and patterns of files in the command: the same results as one file, and rows explained in blocks."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cli_helpers import inside, refused
from exanova import FunctionalANOVA, load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("uvw"), 300), "b": rng.integers(0, 4, 300), "id": np.arange(300)})
    table["p"] = table.b * (table.a == "u") + (table.a == "v")
    table["w"] = rng.integers(1, 3, 300)
    table.to_parquet("all.parquet", index=False)
    for name in ("parts", "texts"):
        (tmp_path / name).mkdir()
    for k in range(3):
        table[k::3].to_parquet(f"parts/{k}.parquet", index=False)
        table[k::3].to_csv(f"texts/{k}.csv", index=False)
    return table


@pytest.mark.parametrize("data", ["parts", "parts/*.parquet", "texts"])
def test_a_folder_is_explained_as_one_file(capsys, folder, data):
    options = ["--prediction", "p", "--weight", "w", "--ignore", "id", "--quiet"]
    for given, saved in (("all.parquet", "one.exanova"), (data, "many.exanova")):
        ended = inside(capsys, "explain", given, *options, "--save", saved, "--report", f"{saved}.html")
        assert ended.code == 0, ended.err
    one, many = load("one.exanova"), load("many.exanova")
    assert one.categories_ == many.categories_
    assert np.array_equal(one.decomposition_.values, many.decomposition_.values)
    assert one.output_names_ == many.output_names_


def test_the_plan_of_a_folder(capsys, folder):
    plans = [
        json.loads(inside(capsys, "plan", data, "--prediction", "p", "--weight", "w", "--ignore", "id", "--json").out)
        for data in ("all.parquet", "parts")
    ]
    assert plans[0]["plan"]["functions"] == plans[1]["plan"]["functions"]


@pytest.mark.parametrize("data", ["parts", "texts"])
def test_rows_of_a_folder_are_explained_into_a_folder(capsys, folder, data, monkeypatch):
    monkeypatch.setattr("exanova.sources.parts.BLOCK_ROWS", 30)
    FunctionalANOVA().fit(folder[["a", "b"]], folder["p"]).save("model.exanova")
    ended = inside(
        capsys, "rows", "model.exanova", data, "--output", "values", "--id", "id", "--prediction", "p", "--json"
    )
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["rows"] == 300
    found = pq.read_table("values").to_pandas().astype({"id": int}).sort_values("id").reset_index(drop=True)
    assert inside(capsys, "rows", "model.exanova", "all.parquet", "--output", "v.parquet", "--id", "id").code == 0
    one = pd.read_parquet("v.parquet")
    for name in ("a", "b", "fitted"):
        np.testing.assert_allclose(found[name], one[name], atol=1e-12)
    np.testing.assert_allclose(found["fitted"] + found["residual"], folder["p"], atol=1e-12)
    again = inside(capsys, "rows", "model.exanova", data, "--output", "values")
    refused(again, "already exists", "--force")
    assert inside(capsys, "rows", "model.exanova", data, "--output", "values", "--force").code == 0


def test_what_cannot_be_done_with_a_folder(capsys, folder):
    FunctionalANOVA().fit(folder[["a", "b"]], folder["p"]).save("model.exanova")
    refused(inside(capsys, "rows", "model.exanova", "parts"), "give --output FOLDER")
    refused(inside(capsys, "rows", "model.exanova", "parts", "--output", "parts"), "folder of the data")
    refused(inside(capsys, "explain", "none/*.parquet", "--prediction", "p"), "no file matches 'none/*.parquet'")
    refused(inside(capsys, "explain", "parts", "--prediction", "q"), "no column 'q'")
    refused(
        inside(capsys, "explain", "parts", "--prediction", "p", "--dask", "tcp://127.0.0.1:1"), "no scheduler answers"
    )


@pytest.mark.parametrize("data", ["all.parquet", "all.csv", "all.csv.gz", "all.feather"])
def test_a_large_file_is_read_in_blocks_with_the_same_answers(capsys, folder, data, monkeypatch):
    folder.to_csv("all.csv", index=False)
    folder.to_csv("all.csv.gz", index=False)
    folder.to_feather("all.feather")
    options = ["--prediction", "p", "--weight", "w", "--ignore", "id", "--quiet"]
    columns = ["--output", "values.parquet", "--id", "id", "--prediction", "p", "--quiet"]
    found = []
    for size in (2**28, 0):
        monkeypatch.setattr("exanova.cli.many_files.STREAMED_BYTES", size)
        ended = inside(capsys, "explain", data, *options, "--save", "model.exanova", "--report", "r.html", "--force")
        assert ended.code == 0, ended.err
        ended = inside(capsys, "rows", "model.exanova", data, *columns, "--force")
        assert ended.code == 0, ended.err
        found.append((load("model.exanova"), pq.read_table("values.parquet")))
    (whole, expected), (blocks, values) = found
    assert (whole.plan_.source_passes, blocks.plan_.source_passes > 0) == (0, True)
    assert whole.categories_ == blocks.categories_
    assert np.array_equal(whole.decomposition_.values, blocks.decomposition_.values)
    assert values.column_names == expected.column_names
    for name in values.column_names:
        assert values[name].to_pylist() == expected[name].to_pylist()
    assert inside(capsys, "plan", data, *options[:-1]).out.count("read in") == 1


def test_values_of_a_large_file_do_not_replace_others(capsys, folder, monkeypatch):
    monkeypatch.setattr("exanova.cli.many_files.STREAMED_BYTES", 0)
    FunctionalANOVA().fit(folder[["a", "b"]], folder["p"]).save("model.exanova")
    refused(inside(capsys, "rows", "model.exanova", "all.parquet", "--output", "all.parquet"), "already exists")
    force = inside(capsys, "rows", "model.exanova", "all.parquet", "--output", "all.parquet", "--force")
    refused(force, "already exists")
    assert inside(capsys, "rows", "model.exanova", "all.parquet", "--output", "values.csv").code == 0
