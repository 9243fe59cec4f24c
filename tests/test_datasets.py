"""The same rows from every origin, or an error that says what to do. OpenML is stood in for by local tables."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA, datasets
from exanova.datasets import catalogue, openml
from exanova.datasets.catalogue import CATALOGUE, Entry, OpenML
from exanova.datasets.content import Images, Text, digest, parse, table, unparse
from exanova.errors import DatasetError, FileFormatError, InputError

LINES = ["train,x,?,1,yes", "train,y,u,2,no", "test,x,v,10,no"]
SMALL = Entry(
    file="small.csv.gz",
    title="three rows",
    source="this test",
    shape=(3, 3),
    classes=2,
    digest=digest(Text(LINES)),
    features=("letter", "other", "number"),
    openml=OpenML(7, values={"m0": "x", "m1": "y"}, classes={"t": "yes", "f": "no"}),
    train=2,
)
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 784)).astype(np.uint8)
PICTURES = Entry(
    file="pictures.npz",
    title="five pictures",
    source="this test",
    shape=(3, 784),
    classes=3,
    digest=digest(Images(PIXELS[1:4], np.array([1, 2, 3], dtype=np.uint8))),
    features=catalogue.PIXELS,
    openml=OpenML(8, rows=(1, 4)),
)


def small_as_openml_has_it():
    """The table of SMALL in another spelling: codes, quotes, a missing value, numbers, names that are not ours."""
    inputs = pd.DataFrame(
        {"a": pd.Categorical(["m0", "m1", "m0"]), "b": [None, "'u'", "'v'"], "c": np.array([1.0, 2.0, 10.0])}
    )
    return inputs, pd.Series(pd.Categorical(["t", "f", "f"]))


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """No folder, an empty cache, no internet, and the small datasets among the others."""
    monkeypatch.delenv("EXANOVA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "CATALOGUE", {**CATALOGUE, "small": SMALL, "pictures": PICTURES})

    def offline(number):
        raise OSError("no route to host")

    monkeypatch.setattr(openml, "fetch", offline)
    return tmp_path


def serve(monkeypatch, inputs, labels):
    """Stand in for OpenML; the list that comes back grows by one number a download."""
    asked = []

    def fetch(number):
        asked.append(number)
        return inputs, labels

    monkeypatch.setattr(openml, "fetch", fetch)
    return asked


def put(folder, entry, content):
    folder.mkdir(exist_ok=True)
    (folder / entry.file).write_bytes(unparse(entry, content))


# Origins


def test_the_argument_the_variable_the_cache_and_openml_give_the_same_rows(empty, monkeypatch):
    put(empty / "folder", SMALL, Text(LINES))
    by_argument = datasets.load("small", empty / "folder")
    monkeypatch.setenv("EXANOVA_DATA", str(empty / "folder"))
    by_variable = datasets.load("small")
    monkeypatch.delenv("EXANOVA_DATA")
    asked = serve(monkeypatch, *small_as_openml_has_it())
    downloaded, kept = datasets.load("small"), datasets.load("small")
    assert asked == [7], "the second load must come from the cache"
    assert kept.origin == downloaded.origin != by_argument.origin
    for found in (by_argument, by_variable, downloaded, kept):
        assert found.X.to_numpy().tolist() == [["x", "?", "1"], ["y", "u", "2"], ["x", "v", "10"]]
        assert list(found.X.columns) == list(found.feature_names) == ["letter", "other", "number"]
        assert found.y.tolist() == ["yes", "no", "no"]
        assert found.split.tolist() == ["train", "train", "test"]


def test_a_part_of_a_table_of_images_is_cut_out_and_kept(empty, monkeypatch):
    asked = serve(monkeypatch, pd.DataFrame(PIXELS.astype(int)), pd.Series(["0", "1", "2", "3", "4"]))
    for found in (datasets.load("pictures"), datasets.load("pictures")):
        assert found.X.dtype == np.uint8
        assert np.array_equal(found.X, PIXELS[1:4])
        assert found.y.tolist() == [1, 2, 3]
        assert found.split is None
    assert asked == [8]


def test_a_download_that_cannot_be_kept_still_counts(empty, monkeypatch):
    (empty / "cache").write_text("a file where the folder should be")
    serve(monkeypatch, *small_as_openml_has_it())
    with pytest.warns(UserWarning, match="could not be kept"):
        assert datasets.load("small").X.shape == (3, 3)


def test_without_pandas_the_inputs_are_an_array_with_the_same_cells(empty, monkeypatch):
    put(empty, SMALL, Text(LINES))
    with_pandas = datasets.load("small", empty).X
    monkeypatch.setitem(sys.modules, "pandas", None)
    without = datasets.load("small", empty).X
    assert isinstance(without, np.ndarray)
    assert without.tolist() == with_pandas.to_numpy().tolist()


# What is not there, and what is not what it should be


def test_nothing_anywhere_says_where_it_looked_and_what_to_do(empty):
    with pytest.raises(DatasetError) as caught:
        datasets.load("car", empty / "folder")
    for part in ("'car'", str(empty / "folder"), "cache", "40975", "no route to host", "car.csv.gz", "EXANOVA_DATA"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError, match="EXANOVA_DATA is not set"):
        datasets.load("car")


def test_an_unknown_name_is_answered_with_the_names_there_are():
    with pytest.raises(InputError, match=r"'titanic'.*car, nursery"):
        datasets.load("titanic")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([*LINES[:2], "test,x,v,11,no"], "other rows"),
        (LINES[:2], "2 rows"),
        ([line + ",extra" for line in LINES], "4 inputs"),
        ([line.replace("no", "yes") for line in LINES], "1 classes"),
    ],
)
def test_other_rows_are_refused(empty, lines, complaint):
    put(empty, SMALL, Text(lines))
    with pytest.raises(FileFormatError, match=complaint):
        datasets.load("small", empty)


@pytest.mark.parametrize("entry", [SMALL, PICTURES], ids=["text", "images"])
def test_a_damaged_file_is_refused(empty, entry):
    content = Text(LINES) if entry is SMALL else Images(PIXELS[1:4], np.array([1, 2, 3], dtype=np.uint8))
    body = unparse(entry, content)
    for damaged in (b"", b"nothing of the kind", body[: len(body) // 2]):
        (empty / entry.file).write_bytes(damaged)
        with pytest.raises(FileFormatError, match="is not the expected file"):
            datasets.load(entry.file.split(".")[0], empty)


def test_other_columns_are_refused(empty):
    put(empty, replace(SMALL, features=("letter", "number", "other")), Text(LINES))
    with pytest.raises(FileFormatError, match="its columns begin with"):
        datasets.load("small", empty)


def test_a_table_that_changed_on_openml_is_refused_and_not_kept(empty, monkeypatch):
    inputs, labels = small_as_openml_has_it()
    asked = serve(monkeypatch, inputs.assign(c=[1.0, 2.0, 3.0]), labels)
    for _ in range(2):
        with pytest.raises(FileFormatError, match="dataset 7 of OpenML"):
            datasets.load("small")
    assert len(asked) == 2


# The hash and the form of a file


def test_the_hash_knows_rows_but_neither_their_order_nor_the_compression():
    assert digest(Text(LINES[::-1])) == digest(Text(LINES)) != digest(Text([*LINES[:2], LINES[1]]))
    digits = np.arange(5, dtype=np.uint8)
    assert digest(Images(PIXELS[::-1], digits[::-1])) == digest(Images(PIXELS, digits))
    assert digest(Images(PIXELS, digits[::-1])) != digest(Images(PIXELS, digits))


def test_a_file_is_read_as_it_was_written():
    assert parse(SMALL, unparse(SMALL, Text(LINES))) == Text(LINES)
    assert unparse(SMALL, Text(LINES)) == unparse(SMALL, Text(LINES)), "no time of writing in the file"


def test_every_entry_is_complete():
    for name, entry in CATALOGUE.items():
        assert len(entry.digest) == 64, name
        assert len(entry.features) == len(set(entry.features)) == entry.shape[1], name


# The real tables


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_is_in_the_folder_as_recorded(data_directory, name):
    found = datasets.load(name, data_directory)
    assert (*np.shape(found.X), len(np.unique(found.y))) == (*CATALOGUE[name].shape, CATALOGUE[name].classes)
    assert len(found.y) == len(found.X)
    assert found.split is None or (found.split == "train").sum() == CATALOGUE[name].train


@pytest.mark.parametrize("name", ["car", "mushroom", "connect4"])
def test_the_spelling_of_openml_is_translated(data_directory, empty, monkeypatch, name):
    entry = CATALOGUE[name]
    content = parse(entry, (data_directory / entry.file).read_bytes())
    inputs, labels = in_openml_spelling(entry, table(entry, content), datasets.classes(content.lines))
    serve(monkeypatch, inputs, labels)
    assert datasets.load(name).X.equals(table(entry, content))


def in_openml_spelling(entry, X, labels):
    """Codes for values and NaN for a question mark, in columns of categories."""
    values, classes = (
        {ours: theirs for theirs, ours in m.items()} for m in (entry.openml.values, entry.openml.classes)
    )
    inputs = X.astype(object).replace(values).replace("?", None)
    return inputs.astype("category"), pd.Series([classes.get(label, label) for label in labels], dtype="category")


def test_a_dataset_goes_straight_into_a_decomposition(data_directory):
    car = datasets.load("car", data_directory)
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(car.X, (car.y == "unacc").astype(float))
    assert tuple(anova.feature_names_in_) == car.feature_names
