"""What is wrong with files is one error that names the file."""

from __future__ import annotations

import os
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InputError, InputTypeError
from exanova.sources.finding import find_files
from exanova.sources.opening import is_source, open_source


@pytest.fixture
def folder(tmp_path):
    for k in range(3):
        pq.write_table(part(k), tmp_path / f"{k}.parquet")
    return tmp_path


def part(seed: int, **columns):
    rng = np.random.default_rng(seed)
    own = {"a": rng.choice(["u", "v"], 50), "b": rng.integers(0, 3, 50), "score": rng.integers(0, 9, 50)} | columns
    return pa.table({name: column for name, column in own.items() if column is not None})


def refused(given, *texts, model="score", error=InputError, **how):
    with pytest.raises(error) as caught:
        FunctionalANOVA().fit(given, model, **how)
    for text in texts:
        assert text in str(caught.value)


def test_a_pattern_a_folder_and_a_list_name_the_same_files(folder):
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    (folder / "notes.txt").write_text("no rows")
    listed = [str(folder / f"{k}.parquet") for k in range(3)]
    assert find_files(str(folder)) == find_files(f"{folder}/[0-9].parquet") == find_files(listed) == listed
    assert find_files(folder) == listed
    assert is_source(folder)
    assert open_source(listed).names == ("a", "b", "score")


def test_nothing_to_read(folder, tmp_path):
    refused(f"{folder}/*.csv", "no file matches", "*.csv")
    refused(str(folder / "nowhere.parquet"), "nowhere.parquet", "No such file")
    (tmp_path / "empty").mkdir()
    refused(str(tmp_path / "empty"), "empty", "no file of a known format")
    refused([str(folder / "0.parquet")] * 2, "0.parquet", "more than once")
    (tmp_path / "rows.xyz").write_text("a")
    refused(str(tmp_path / "rows.xyz"), "rows.xyz", "suffix")
    pq.write_table(part(0).slice(0, 0), tmp_path / "norows.parquet")
    refused(str(tmp_path / "norows.parquet"), "norows.parquet", "no row")


def test_files_with_other_columns_or_types_are_all_named(folder):
    pq.write_table(part(3, b=None), folder / "3.parquet")
    pq.write_table(part(4, extra=np.zeros(50)), folder / "4.parquet")
    pq.write_table(part(5, b=np.zeros(50)), folder / "5.parquet")
    refused(
        str(folder), "3.parquet' lacks 'b'", "4.parquet' adds 'extra'", "5.parquet' 'b' is double in place of int64"
    )


def test_the_order_of_columns_and_the_layout_of_text_are_free(folder):
    before = FunctionalANOVA().fit(str(folder), "score")
    second = pq.read_table(folder / "1.parquet").select(["score", "b", "a"])
    place = second.column_names.index("a")
    pq.write_table(second.set_column(place, "a", second.column("a").cast(pa.large_string())), folder / "1.parquet")
    after = FunctionalANOVA().fit(str(folder), "score")
    assert np.array_equal(before.decomposition_.values, after.decomposition_.values)


def test_corrupt_and_empty_files_are_named(folder):
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[: len(whole) // 2])
    refused(str(folder), "1.parquet", "cannot be read")
    middle = len(whole) // 4
    (folder / "1.parquet").write_bytes(whole[:middle] + bytes(40) + whole[middle + 40 :])
    refused(str(folder), "1.parquet")
    (folder / "1.parquet").write_bytes(b"")
    refused(str(folder), "1.parquet", "is empty")


def test_a_page_that_does_not_match_its_checksum_is_named(folder):
    path = folder / "1.parquet"
    pq.write_table(part(1), path, write_page_checksum=True, compression="none", use_dictionary=False)
    before = path.read_bytes()
    FunctionalANOVA().fit(str(folder), "score")
    path.write_bytes(before.replace(b"\x01\x00\x00\x00u", b"\x01\x00\x00\x00v", 1))
    assert path.read_bytes() != before
    refused(str(folder), "1.parquet", "cannot be read")


def polars_lazy(folder):
    return pytest.importorskip("polars").scan_parquet([folder / f"{k}.parquet" for k in range(3)])


def dask_lazy(folder):
    return pytest.importorskip("dask.dataframe").read_parquet(str(folder))


def dataset(folder):
    return ds.dataset([str(folder / f"{k}.parquet") for k in range(3)])


def duck(folder):
    return pytest.importorskip("duckdb").read_parquet([str(folder / f"{k}.parquet") for k in range(3)])


def halved(path):
    path.write_bytes(path.read_bytes()[:200])


CHANGES = {
    "corrupt": halved,
    "empty": lambda path: path.write_bytes(b""),
    "gone": os.remove,
    "without a column": lambda path: pq.write_table(part(1, b=None), path),
    "of another type": lambda path: pq.write_table(part(1, b=np.array(["x"] * 50)), path),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("lazily", [polars_lazy, dask_lazy, dataset, duck])
@pytest.mark.filterwarnings("ignore")
def test_the_file_is_named_whatever_engine_reads_it(folder, lazily, change):
    """Also where the engine itself does not say which it is."""
    X = lazily(folder)
    assert FunctionalANOVA().fit(X, "score").plan_.rows == 150
    CHANGES[change](folder / "1.parquet")
    refused(lazily(folder) if lazily is dask_lazy and change != "gone" else X, "1.parquet")


def test_columns_that_are_the_names_of_folders_are_no_columns_of_files(tmp_path):
    for size in ("small", "large"):
        (tmp_path / f"size={size}").mkdir()
        pq.write_table(part(len(size)), tmp_path / f"size={size}" / "0.parquet")
    found = FunctionalANOVA().fit(ds.dataset(tmp_path, partitioning="hive"), "score")
    assert found.feature_names_in_.tolist() == ["a", "b", "size"]


def test_a_file_without_rows_among_others_adds_nothing(folder):
    before = FunctionalANOVA().fit(str(folder), "score")
    pq.write_table(part(0).slice(0, 0), folder / "9.parquet")
    after = FunctionalANOVA().fit(str(folder), "score")
    assert np.array_equal(before.decomposition_.values, after.decomposition_.values)


def test_a_file_that_vanishes_or_changes_is_named(folder, monkeypatch):
    monkeypatch.setattr("exanova.sources.keeping.SHRINKS", 10**9)  # so that files are read twice
    source = open_source(str(folder))
    os.remove(folder / "2.parquet")
    refused(source, "2.parquet", "No such file")
    pq.write_table(part(7), folder / "2.parquet")
    refused(source, "2.parquet", "changed while it was read")


def test_ragged_csv_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,score\nu,1,2\nv,2,3\n")
    (tmp_path / "b.csv").write_text("a,b,score\nu,1\n")
    refused(f"{tmp_path}/*.csv", "b.csv", "Expected 3 columns")


def test_one_rule_for_the_cells_of_all_csv_files(tmp_path):
    pd.DataFrame({"a": [1, 2], "code": ["007", "12"], "yes": ["true", "false"], "score": [1, 2]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    pd.DataFrame({"a": ["3", "NA"], "code": ["1", "2"], "yes": ["true", "true"], "score": [1.5, 2]}).to_csv(
        tmp_path / "b.csv", index=False
    )
    anova = FunctionalANOVA(max_order=1).fit(f"{tmp_path}/*.csv", "score")
    assert anova.categories_[:3] == [(1, 2, 3, None), ("007", "1", "12", "2"), (False, True)]


def test_outputs_and_weights_that_are_no_numbers_are_named_with_their_file(folder):
    pq.write_table(part(3, score=np.full(50, np.nan)), folder / "0.parquet")
    os.remove(folder / "1.parquet")
    os.remove(folder / "2.parquet")
    refused(str(folder), "0.parquet", "'score'", "missing or infinite")
    refused(str(folder), "'a'", "does not hold numbers", model="b", sample_weight="a", error=InputTypeError)
    pq.write_table(part(3, w=np.full(50, -1.0)), folder / "0.parquet")
    refused(str(folder), "0.parquet", "negative", sample_weight="w")
    pq.write_table(part(3, w=np.zeros(50)), folder / "0.parquet")
    refused(str(folder), "no row of positive weight", sample_weight="w")
    pq.write_table(part(3, b=np.full(50, np.inf)), folder / "0.parquet")
    refused(str(folder), "0.parquet", "'b'", "infinite")
    pq.write_table(part(3, c=pa.array([None] * 50, pa.int64())), folder / "0.parquet")
    refused(str(folder), "'c'", "no label", clusters="c")


def test_rows_that_are_no_numbers_are_counted_although_equal_ones_are_read_as_one(tmp_path):
    """Blocks and engines hand over distinct rows with their counts; where a row is in its file is not known."""
    table = pa.table({"a": ["u", "v"] * 60, "score": [np.nan] * 40 + [1.0] * 80, "w": [2.0] * 70 + [-1.0] * 50})
    pq.write_table(table, tmp_path / "t.parquet")
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql(f"SELECT * FROM '{tmp_path}/t.parquet'")
    for X in (str(tmp_path), pl.scan_parquet(tmp_path / "t.parquet"), relation):
        refused(X, "missing or infinite in 40 rows or more", model="score", sample_weight=None)
        refused(X, "'w' of weights is negative in 50 rows or more", model="score", sample_weight="w")


def test_decimals_are_numbers(tmp_path):
    """A database gives them for 0.5 as it is written; in memory they are named in the same way."""
    cells = [Decimal(k) / 10 for k in range(60)]
    outputs, weights = pa.array(cells, pa.decimal128(6, 1)), pa.array([Decimal(k % 4) for k in range(60)])
    table = pa.table({"a": ["u", "v", "w"] * 20, "b": list("xy") * 30, "score": outputs, "w": weights})
    pq.write_table(table, tmp_path / "t.parquet")
    plain = table.to_pandas().astype({"score": float, "w": int})
    expected = FunctionalANOVA().fit(plain[["a", "b"]], plain["score"], sample_weight=plain["w"])
    for X in (table, table.to_pandas(), pl.from_arrow(table), pl.from_arrow(table).lazy(), str(tmp_path)):
        found = FunctionalANOVA().fit(X, "score", sample_weight="w")
        np.testing.assert_allclose(found.decomposition_.values, expected.decomposition_.values, atol=1e-12)
    missing = pa.table({"a": list("uvuv"), "score": pa.array([Decimal(1), None, Decimal(2), None])})
    pq.write_table(missing, tmp_path / "t.parquet")
    refused(str(tmp_path), "missing or infinite in 2 rows", model="score")


def test_named_columns_of_a_table_in_memory():
    table = part(0).to_pandas().assign(w=2)
    anova = FunctionalANOVA().fit(table, "score", sample_weight="w")
    plain = FunctionalANOVA().fit(table[["a", "b"]], table["score"], sample_weight=table["w"])
    assert np.array_equal(anova.decomposition_.values, plain.decomposition_.values)
    refused(table.to_numpy(), "no named columns")
    refused(table, "no column 'scores'", model="scores")
