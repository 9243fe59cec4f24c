"""Whatever engine holds the rows, the decomposition is that of the same rows in memory."""

from __future__ import annotations

import shutil

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InputError
from exanova.sources.opening import open_source
from exanova.sources.parts import COUNT
from sources.test_split_law import FEATURES, fitted, rows, same, write

pytestmark = pytest.mark.filterwarnings("ignore")  # engines warn of what they do with pandas, sockets and processes

TABLE = rows(400)[[*FEATURES, "score", "real", "w", "share", "house"]]


def duck(path):
    return pytest.importorskip("duckdb").connect().sql(f"SELECT * FROM '{path}'")


def ibis_table(path):
    ibis = pytest.importorskip("ibis")
    return ibis.polars.connect().read_parquet(path)


def dask_frame(path):
    return pytest.importorskip("dask.dataframe").read_parquet(path.removesuffix("/*.parquet"))


ENGINES = {
    "dataset": lambda path: ds.dataset(path.removesuffix("/*.parquet")),
    "filtered dataset": lambda path: ds.dataset(path.removesuffix("/*.parquet")).filter(ds.field("size") >= 0),
    "dataset in memory": lambda path: ds.dataset(pa.Table.from_pandas(TABLE, preserve_index=False)),
    "polars": pl.scan_parquet,
    "narwhals": lambda path: nw.from_native(pl.scan_parquet(path)),
    "duckdb": duck,
    "ibis": ibis_table,
    "dask": dask_frame,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(TABLE, tmp_path_factory.mktemp("engines") / "parts", 3, "parquet", seed=1)


def chosen(X, columns):
    """The columns that a case needs, in the way of the engine."""
    if isinstance(X, ds.Dataset):
        return ds.dataset(X.to_table(columns=columns))
    return X[columns] if hasattr(X, "npartitions") else X.select(*columns)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("counted", [True, False])
def test_every_engine_gives_the_same_bytes(path, name, counted, monkeypatch):
    monkeypatch.setattr("exanova.sources.engines.FEWER", 0 if counted else 10**9)
    columns = [*FEATURES, "score"]
    X = ENGINES[name](path)
    X = X if "dataset" in name and "filtered" not in name else chosen(X, columns)
    X = chosen(X, columns) if "dataset" in name else X
    same(fitted(X, "score"), fitted(TABLE[columns], "score"), exact=True)


@pytest.mark.parametrize("name", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("how", [{"sample_weight": "share"}, {"sample_weight": "w"}, {"clusters": "house"}])
def test_weights_and_clusters_of_an_engine(path, name, how):
    columns = [*FEATURES, "real", *how.values()]
    found = fitted(chosen(ENGINES[name](path), columns), "real", **how)
    same(found, fitted(TABLE[columns], "real", **how), exact=False)


def test_categories_of_polars_are_levels_as_in_memory():
    kinds = {"colour": pl.Categorical, "size": pl.Enum(["3", "2", "1", "0"])}
    frame = pl.from_pandas(TABLE[["colour", "size", "score"]]).with_columns(pl.col("size").cast(pl.String)).cast(kinds)
    found, expected = fitted(frame.lazy(), "score"), fitted(frame, "score")
    assert found.categories_ == expected.categories_ == [("blue", "green", "red"), ("3", "2", "1", "0")]
    assert [f.ordered for f in found.decomposition_.encoding.features] == [0, 4]
    same(found, expected, exact=True)


def test_a_model_receives_frames_of_the_library_of_a_lazy_frame():
    seen = []

    def model(frame):
        seen.append(type(frame))
        return frame["size"].to_numpy()

    found = fitted(pl.from_pandas(TABLE[FEATURES]).lazy(), model)
    assert set(seen) == {pl.DataFrame}
    assert isinstance(found.importance(), pl.DataFrame)


def test_null_nan_and_empty_text_mean_the_same_everywhere():
    table = pl.DataFrame({"a": ["u", "", None, "u"] * 5, "x": [1.0, float("nan"), None, -0.0] * 5})
    table = table.with_columns(score=pl.int_range(pl.len()) % 4)
    duckdb = pytest.importorskip("duckdb")
    for X in (table, table.lazy(), duckdb.from_arrow(table.to_arrow())):
        assert fitted(X, "score").categories_ == [("", "u", None), (0.0, 1.0, None)]


@pytest.mark.parametrize("name", ["polars", "duckdb", "ibis"])
@pytest.mark.parametrize("repeats", [True, False])
def test_an_engine_counts_where_few_of_all_its_rows_are_distinct(name, repeats, tmp_path, monkeypatch):
    """The first rows may be all alike, or all different: all rows decide, where the engine can estimate them."""
    monkeypatch.setattr("exanova.sources.engines.FIRST_ROWS", 100 if name != "ibis" else 2**16)
    many = pd.DataFrame({"a": np.arange(3000) % 50 if repeats else np.arange(3000), "score": 1.0})
    first = pd.DataFrame({"a": np.arange(100) + 5000 if repeats else np.zeros(100, dtype=int), "score": 1.0})
    path = write(pd.concat([first, many]), tmp_path / "parts", 1, "parquet")
    part = open_source(chosen(ENGINES[name](path), ["a", "score"])).parts[0]
    blocks = list(part.blocks(["a", "score"]))
    assert (COUNT in blocks[0].column_names) == repeats
    assert sum(block.num_rows for block in blocks) == (150 if repeats else 3100)
    assert list(part.known.values()) == [repeats]


def test_what_an_engine_refuses_is_one_error(tmp_path):
    lazy = pl.scan_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="the polars LazyFrame cannot be read"):
        fitted(lazy, "score")
    failing = pl.from_pandas(TABLE[["colour", "score"]]).lazy().with_columns(pl.col("colour").cast(pl.Int64))
    with pytest.raises(InputError, match="the polars LazyFrame cannot be read"):
        fitted(failing, "score")


@pytest.mark.skipif(shutil.which("java") is None, reason="PySpark needs Java")
def test_spark_counts_its_rows(path, tmp_path):
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        columns = [*FEATURES, "score"]
        frame = session.read.parquet(path.removesuffix("/*.parquet")).select(*columns)
        same(fitted(frame, "score"), fitted(TABLE[columns], "score"), exact=True)
        weighted = session.createDataFrame(pd.DataFrame({"a b.c": list("uvu"), "p": [1, 2, 3], "w": [1, 0, 2]}))
        found = FunctionalANOVA(sampled=False).fit(weighted, "p", sample_weight="w")
        np.testing.assert_allclose(found.intercept_, [7 / 3])
        place = shutil.copytree(path.removesuffix("/*.parquet"), tmp_path / "copy")
        lost = session.read.parquet(str(place)).select(*columns)
        (place / "0001.parquet").write_bytes(b"PAR1 nothing else PAR1")
        with pytest.raises(InputError, match=r"the PySpark DataFrame cannot be read: .*0001\.parquet"):
            fitted(lost, "score")
    finally:
        session.stop()
