"""Ordered categories keep their order and their flag, in every library and in files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.data import Encoding, Table, learn_encoding

SIZES = ["small", "medium", "large", "huge"]
CELLS = ["large", "small", "huge", None, "small", "medium"]


def dictionary(ordered):
    codes = pa.array([None if cell is None else SIZES.index(cell) for cell in CELLS], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(SIZES), ordered=ordered)


ORDERED = {
    "pandas": pd.DataFrame({"a": pd.Categorical(CELLS, categories=SIZES, ordered=True)}),
    "polars": pl.DataFrame({"a": pl.Series(CELLS, dtype=pl.Enum(SIZES))}),
    "pyarrow": pa.table({"a": dictionary(True)}),
    "pyarrow chunks": pa.table({"a": pa.chunked_array([dictionary(True)[:2], dictionary(True)[2:]])}),
    "pandas arrow": pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([dictionary(True)])))}),
}
NOMINAL = {
    "pandas": pd.DataFrame({"a": pd.Categorical(CELLS, categories=SIZES)}),
    "polars": pl.DataFrame({"a": pl.Series(CELLS, dtype=pl.Categorical)}),
    "pyarrow": pa.table({"a": dictionary(False)}),
    "text": pl.DataFrame({"a": CELLS}),
}


@pytest.mark.parametrize("form", ORDERED)
def test_a_declared_order_is_kept_and_flagged(form):
    table = Table.read(ORDERED[form])
    encoding = learn_encoding(table)
    assert encoding.levels == ((*SIZES, None),)
    assert encoding.ordered == (4,)
    assert encoding.encode(table).tolist() == [[2, 0, 3, 4, 0, 1]]
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert again.ordered == (4,)
    assert table.rows(np.array([0, 1])).column("a").is_ordered


@pytest.mark.parametrize("form", NOMINAL)
def test_categories_without_a_declared_order_are_only_names(form):
    encoding = learn_encoding(Table.read(NOMINAL[form]))
    assert encoding.ordered == (0,)
    assert "ordered" not in encoding.to_json()["features"][0]


def test_merged_levels_have_no_place_in_the_order():
    encoding = learn_encoding(Table.read(ORDERED["pandas"]), min_frequency=2)
    assert encoding.levels == (("small", "(other)", None),)
    assert encoding.ordered == (1,)


def test_ordered_numbers_are_categories():
    frame = pd.DataFrame({"a": pd.Categorical(np.arange(100) % 25, ordered=True)})
    encoding = learn_encoding(Table.read(frame))
    assert encoding.levels == (tuple(range(25)),)
    assert encoding.ordered == (25,)


@pytest.mark.parametrize("form", ORDERED)
def test_the_order_survives_a_file(form, tmp_path):
    anova = FunctionalANOVA(shrinkage=None).fit(ORDERED[form], np.arange(6.0))
    anova.save(tmp_path / "m.exanova")
    loaded = exanova.load(tmp_path / "m.exanova")
    assert loaded.decomposition_.encoding.ordered == (4,)
    assert loaded.effects_["a"].levels == (("small",), ("medium",), ("large",), ("huge",), ("(missing)",))


def test_a_file_of_before_has_no_flag():
    entry = {
        "name": "a",
        "levels": ["u", "v"],
        "labels": ["u", "v"],
        "values": ["u", "v"],
        "codes": [0, 1],
        "edges": [],
    }
    assert Encoding.from_json({"features": [entry]}).ordered == (0,)
