"""One file, seven or a thousand, in any order and through any engine: the decomposition of the same rows in memory."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pyarrow.dataset as ds
import pytest

from exanova import FunctionalANOVA
from exanova.apart.moments import collect_moments, merge_moments
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.errors import InputError
from exanova.sources.finding import find_files
from exanova.sources.opening import open_source
from sources.test_engines import duck
from sources.test_split_law import FEATURES, fitted, rows, same, write

TABLE = rows(1200)[[*FEATURES, "score", "real"]]
PARTS = [1, 7, 1000]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("parts")
    return {count: write(TABLE, place / str(count), count, "parquet", seed=count) for count in PARTS}


def shuffled(path):
    return np.random.default_rng(5).permutation(find_files(path)).tolist()


READ = {
    "files": str,
    "files in any order": shuffled,
    "dataset": lambda path: ds.dataset(shuffled(path)),
    "polars": lambda path: pl.scan_parquet(shuffled(path)),
    "duckdb": duck,
}


CASES = [(how, count) for how in READ for count in PARTS if (how, count) != ("files", 1000)]


@pytest.mark.parametrize(("how", "count"), CASES)
def test_any_number_of_files_through_any_engine(folders, how, count):
    """Whole outputs give the same bytes; others the same to rounding."""
    found = fitted(READ[how](folders[count]), ["score", "real"])
    expected = fitted(TABLE, ["score", "real"])
    same(found, expected, exact=False)
    ours, theirs = (one.decomposition_.values[:, 0] for one in (found, expected))
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("count", PARTS)
def test_merged_moments_of_any_number_of_parts(count):
    X = TABLE[["colour", "size", "shape"]]
    y = 10_000 * TABLE["score"].to_numpy() + np.arange(len(X))  # equal parts would be one shard, sent twice
    order = np.random.default_rng(count).permutation(len(X))
    levels = learn_encoding(Table.read(X))
    parts = [collect_moments(X.iloc[own], y[own], levels, max_order=2) for own in np.array_split(order, count)]
    merged = merge_moments(parts)
    whole = FunctionalANOVA(shrinkage=None, max_order=2).partial_fit(X, y)
    found = FunctionalANOVA(shrinkage=None, max_order=2).merge(merged)
    assert found.moments_.rows == len(X)
    assert np.array_equal(found.decomposition_.values, whole.decomposition_.values)


class Written:
    """A part whose file is written to, or taken away, after it was read the first time."""

    def __init__(self, part, change):
        self.part, self.change, self.name = part, change, part.name

    def blocks(self, columns):
        yield from self.part.blocks(columns)
        self.change(self.part.path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize(("change", "said"), [("touched", "changed while it was read"), ("gone", "No such file")])
def test_a_file_that_changes_between_the_passes_is_named(tmp_path, suffix, change, said, monkeypatch):
    def touched(path):
        with open(path, "ab") as file:
            file.write(b"\n")

    monkeypatch.setattr("exanova.sources.keeping.SHRINKS", 10**9)  # so that files are read twice
    source = open_source(write(TABLE, tmp_path / "parts", 3, suffix))
    change = touched if change == "touched" else lambda path: shutil.move(path, path + ".moved")
    parts = (source.parts[0], Written(source.parts[1], change), source.parts[2])
    with pytest.raises(InputError, match=rf"0001\.{suffix}.*{said}"):
        fitted(type(source)(parts, source.names, source.label), "score")


def test_files_and_datasets_name_the_file_that_cannot_be_read(folders, tmp_path):
    place = shutil.copytree(folders[7].removesuffix("/*.parquet"), tmp_path / "copy")
    (place / "0003.parquet").write_bytes(b"PAR1 nothing else PAR1")
    path = f"{place}/*.parquet"
    whole = ds.dataset([name for name in find_files(path) if "0003" not in name])  # pyarrow looks at the first alone
    for X in (path, ds.dataset(find_files(path), schema=whole.schema)):
        with pytest.raises(InputError, match=r"0003\.parquet"):
            fitted(X, "score")


@pytest.mark.skipif(shutil.which("java") is None, reason="PySpark needs Java")
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_any_number_of_files(folders):
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        columns = [*FEATURES, "score"]
        for count in PARTS[:2]:  # a thousand files take Spark a minute
            frame = session.read.parquet(folders[count].removesuffix("/*.parquet")).select(*columns)
            same(fitted(frame, "score"), fitted(TABLE[columns], "score"), exact=True)
    finally:
        session.stop()
