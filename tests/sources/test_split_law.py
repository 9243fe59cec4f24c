"""However the rows are stored and split, the decomposition is that of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow.dataset import dataset

from exanova import FunctionalANOVA
from exanova.data.repeating import PROBED
from exanova.errors import InputError, MemoryLimitError
from exanova.sources.value_counts import numbers_within

FEATURES = ["colour", "size", "price", "shape"]


def rows(n=600, seed=0) -> pd.DataFrame:
    """Text, whole numbers, numbers to be cut and missing values, with outputs that differ between equal rows."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n),
            "size": rng.integers(0, 4, n),
            "price": np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n).round(1)),
            "shape": rng.choice(["round", "", None], n, p=[0.6, 0.3, 0.1]),
        }
    )
    known = table.price.fillna(0.0)
    table["score"] = 2.0 * (table.colour == "red") + table["size"] * (known > 0) + rng.integers(0, 2, n)
    table["real"] = np.sin(table["score"] * 1.7) + known
    table["w"] = rng.integers(0, 3, n)
    table["share"] = rng.choice([0.25, 0.5, 1.3], n)
    table["house"] = rng.integers(0, 40, n)
    table["region"] = table["house"] % 3
    return table


def write(table: pd.DataFrame, folder, parts: int, suffix: str, seed=None) -> str:
    """The table in so many files, its rows in order or in none."""
    folder.mkdir()
    order = np.arange(len(table)) if seed is None else np.random.default_rng(seed).permutation(len(table))
    for k, chosen in enumerate(np.array_split(order, parts)):
        part = pa.Table.from_pandas(table.iloc[chosen], preserve_index=False)
        path = f"{folder}/{k:04d}.{suffix}"
        if suffix == "parquet":
            pq.write_table(part, path, row_group_size=100)
        elif suffix == "arrow":
            feather.write_feather(part, path)
        else:
            table.iloc[chosen].to_csv(path, index=False)
    return f"{folder}/*.{suffix}"


def fitted(X, model, columns=None, **how) -> FunctionalANOVA:
    table = X if columns is None else X[[*FEATURES, *columns]]
    return FunctionalANOVA(random_state=0, **how.pop("parameters", {})).fit(table, model, **how)


def same(
    one: FunctionalANOVA, other: FunctionalANOVA, exact: bool, errors: float = 1e-9, evaluated: float = 1e-9
) -> None:
    """Equal effects to 1e-12, or in every byte; errors and the fit on other rows to relative differences."""
    assert list(one.effects_) == list(other.effects_)
    assert one.categories_ == other.categories_
    a, b = one.decomposition_.values, other.decomposition_.values
    if exact:
        assert np.array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())
    ours, theirs = one.certificate_, other.certificate_
    assert (ours.r2_eval is None) == (theirs.r2_eval is None)
    if "equal rows have equal weights" in ours.eval_method:
        np.testing.assert_allclose(ours.r2_eval, theirs.r2_eval, atol=0.01)
    elif ours.r2_eval is not None:
        np.testing.assert_allclose(ours.r2_eval, theirs.r2_eval, rtol=evaluated, atol=1e-11)
    for name in ("r2", "mse", "loss_noise", "loss_levels", "rank"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-11, err_msg=name)
    if not ours.sampled:
        return
    for mine, its in zip(one.effects_.values(), other.effects_.values(), strict=True):
        assert (mine.stderr is None) == (its.stderr is None)
        if mine.stderr is not None:
            np.testing.assert_allclose(mine.stderr, its.stderr, rtol=errors, atol=1e-11)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize("parts", [1, 7, 40])
def test_whole_outputs_give_the_same_bytes_in_any_number_of_files(tmp_path, suffix, parts):
    table = rows()[[*FEATURES, "score"]]
    if suffix == "csv":
        table["shape"] = table["shape"].replace("", None)  # an empty cell of CSV is a missing one
    path = write(table, tmp_path / "parts", parts, suffix, seed=parts)
    same(fitted(path, "score"), fitted(table, "score"), exact=True)


@pytest.mark.parametrize(
    ("columns", "how"),
    [
        (["real"], {}),
        (["real", "w"], {"sample_weight": "w"}),
        (["real", "share"], {"sample_weight": "share"}),
        (["real", "w"], {"sample_weight": "w", "weights": "probability"}),
        (["real", "house"], {"clusters": "house"}),
        (["real", "house", "region"], {"clusters": "house", "strata": "region"}),
        (["real", "share", "region"], {"sample_weight": "share", "strata": "region"}),
        (["real"], {"eval_set": 0.25}),
        (["real"], {"parameters": {"n_bins": {"price": 5}, "min_frequency": 0.2}}),
        (["real"], {"parameters": {"shrinkage": None, "max_terms": 60}}),
    ],
    ids=lambda value: str(value),
)
@pytest.mark.parametrize("kept", ["apart", "together", "on disk"])
def test_weights_clusters_strata_bins_and_held_out_rows_are_those_in_memory(tmp_path, columns, how, kept, monkeypatch):
    table, together = rows()[[*FEATURES, *columns]], kept != "apart"
    if together:
        monkeypatch.setattr("exanova.sources.tally.MOST_APART", 0)
    if kept == "on disk":
        monkeypatch.setattr("exanova.sources.runs.SHARE", 0.0)
        monkeypatch.setattr("exanova.sources.pieces.PIECE_ROWS", 23)
        monkeypatch.setattr("exanova.sources.parts.BLOCK_ROWS", 50)
    path = write(table, tmp_path / "parts", 5, "parquet", seed=1)
    names = {key: value for key, value in how.items() if key != "parameters"}
    in_memory = {
        key: table[value] if isinstance(value, str) and value in table else value for key, value in names.items()
    }
    parameters = how.get("parameters", {})
    reference = fitted(table[FEATURES], table["real"], parameters=parameters, **in_memory)
    # The error of a row of its own weight and leverage is not in the sums of rows that are put together.
    own_weights = together and (how.get("sample_weight") == "share" or how.get("weights") == "probability")
    found = fitted(path, "real", parameters=parameters, **names)
    assert ("equal rows have equal weights" in found.certificate_.eval_method) <= own_weights
    # Nor are the rows of a cluster one by one, from which the fits to other clusters estimate what they share.
    evaluated = 1e-3 if together and "clusters" in how else 1e-9
    # Nor can they be drawn one by one, as they are where a selection is repeated without some of them.
    evaluated = 0.05 if together and "selecting again" in reference.certificate_.eval_method else evaluated
    same(found, reference, exact=False, errors=0.1 if own_weights else 1e-9, evaluated=evaluated)


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(st.integers(0, 120), max_size=6), st.integers(0, 2**32), st.integers(1, 50))
def test_no_split_and_no_size_of_blocks_changes_a_byte(tmp_path_factory, cuts, seed, block):
    table = rows(120)[[*FEATURES, "score"]]
    folder = tmp_path_factory.mktemp("split")
    order = np.random.default_rng(seed).permutation(len(table))
    for k, chosen in enumerate(np.split(order, sorted(cuts))):
        pq.write_table(pa.Table.from_pandas(table.iloc[chosen], preserve_index=False), f"{folder}/{k}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exanova.sources.parts.BLOCK_ROWS", block)
        found = fitted(str(folder), "score")
    same(found, fitted(table, "score"), exact=True)


def test_several_outputs_and_their_names(tmp_path):
    table = rows()[[*FEATURES, "score", "real"]]
    found = fitted(write(table, tmp_path / "parts", 3, "parquet"), ["score", "real"])
    assert found.output_names_ == ("score", "real")
    same(found, fitted(table, ["score", "real"]), exact=False)
    renamed = fitted(f"{tmp_path}/parts", ["score", "real"], output_names=["first", "second"])
    assert renamed.output_names_ == ("first", "second")


def test_a_model_is_called_block_by_block_on_distinct_rows(tmp_path, monkeypatch):
    table = rows()[FEATURES]
    called = []

    def model(frame):
        called.append(len(frame))
        return (frame["size"] * (frame["price"].fillna(0.0) > 0)).to_numpy()

    path = write(table, tmp_path / "parts", 4, "parquet")
    found = fitted(path, model)
    assert sum(called[::2]) == found.plan_.model_calls < len(table)
    assert max(called[1::2]) <= PROBED  # a few rows of every block again
    same(found, fitted(table, model), exact=True)


def test_further_rows_are_read_in_blocks_too(tmp_path):
    table, other = rows()[[*FEATURES, "real"]], rows(seed=1)[[*FEATURES, "real"]]
    path, test = write(table, tmp_path / "fit", 3, "parquet"), write(other, tmp_path / "test", 4, "parquet")
    in_memory = fitted(table, "real", eval_set=(other[FEATURES], other["real"])).certificate_
    listed = sorted(map(str, (tmp_path / "test").iterdir()))
    for held_out in (test, (test, "real"), (other, "real"), listed, dataset(listed)):
        found = fitted(path, "real", eval_set=held_out).certificate_
        np.testing.assert_allclose(found.r2_eval, in_memory.r2_eval, rtol=1e-10)
        np.testing.assert_allclose(found.mse_eval, in_memory.mse_eval, rtol=1e-10)


def test_the_plan_of_a_folder_is_that_of_its_rows(tmp_path):
    table = rows()[FEATURES]
    path = write(table, tmp_path / "parts", 3, "parquet")
    found, expected = FunctionalANOVA().plan(path), FunctionalANOVA().plan(table)
    assert (found.route, found.functions) == (expected.route, expected.functions)


def test_numbers_that_are_too_many_are_cut_at_nearly_the_same_places(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=3000), "z": rng.integers(0, 3, 3000)})
    table["score"] = np.tanh(table.x) + table.z
    path = write(table, tmp_path / "parts", 3, "parquet")
    exact = fitted(table, "score").decomposition_.encoding.features[0].edges
    monkeypatch.setattr("exanova.sources.value_counts.MOST_NUMBERS", 1000)
    found = fitted(path, "score").decomposition_.encoding.features[0].edges
    assert found != exact
    np.testing.assert_allclose(found, exact, atol=0.05)
    other = write(table, tmp_path / "other", 8, "parquet", seed=3)
    assert fitted(other, "score").decomposition_.encoding.features[0].edges == found


def test_columns_share_the_memory_for_their_numbers():
    every = [numbers_within(limit, columns) for limit, columns in ((10**12, 1), (2 * 10**9, 12), (10**6, 12))]
    assert every == sorted(every, reverse=True)
    assert 45 * 12 * every[1] <= 0.4 * 2 * 10**9 < 45 * 12 * (every[1] + 1)
    assert (every[0], every[2]) == (2**23, 2**16)


def test_noise_is_measured_on_some_raw_rows_where_they_are_many(tmp_path, monkeypatch):
    table = rows(20000)[[*FEATURES, "real"]]
    table["real"] += np.random.default_rng(0).normal(size=len(table))
    exact = fitted(table, "real").certificate_.loss_noise
    path = write(table, tmp_path / "parts", 3, "parquet")
    monkeypatch.setattr("exanova.sources.raw_noise.MOST_RAW", 200)
    found = fitted(path, "real").certificate_.loss_noise
    assert not np.array_equal(found, exact)
    np.testing.assert_allclose(found, exact, rtol=0.15)
    other = write(table, tmp_path / "other", 8, "parquet", seed=3)
    np.testing.assert_allclose(fitted(other, "real").certificate_.loss_noise, found, rtol=1e-9)


def test_the_memory_limit_is_kept_by_refusing(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{i}": rng.integers(0, 9, 20000) for i in range(6)})
    table["score"] = table.sum(axis=1)
    path = write(table, tmp_path / "parts", 3, "parquet")
    with pytest.raises(MemoryLimitError, match="needs about"):
        fitted(path, "score", parameters={"memory_limit": "1 MB", "max_order": 1})


def test_outputs_are_no_array_where_rows_come_in_blocks(tmp_path):
    table = rows()[[*FEATURES, "score"]]
    path = write(table, tmp_path / "parts", 2, "parquet")
    with pytest.raises(InputError, match="cannot be matched with an array of outputs"):
        FunctionalANOVA().fit(path, np.zeros(len(table)))
    with pytest.raises(InputError, match="sample_weight= of rows read in blocks cannot be an array"):
        FunctionalANOVA().fit(path, "score", sample_weight=np.ones(len(table)))
    with pytest.raises(InputError, match="no column 'scor'"):
        FunctionalANOVA().fit(path, "scor")
    with pytest.raises(InputError, match="replicate_weights= of rows read in blocks cannot be an array"):
        FunctionalANOVA().fit(path, "score", replicate_weights=(np.ones((len(table), 2)), 0.5))


def test_many_names_are_joined_as_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"job": rng.choice([f"job {k:02d}" for k in range(70)], 4000), "z": rng.integers(0, 3, 4000)})
    table["score"] = table.job.str[-2:].astype(int) // 20 + table.z + rng.integers(0, 2, 4000)
    path = write(table, tmp_path / "parts", 3, "parquet", seed=1)
    found, expected = fitted(path, "score"), fitted(table, "score")
    assert len(expected.categories_[0]) < 70
    assert found.categories_ == expected.categories_
    assert np.array_equal(found.decomposition_.values, expected.decomposition_.values)
    np.testing.assert_allclose(found.certificate_.loss_noise, expected.certificate_.loss_noise, rtol=1e-9)
    np.testing.assert_allclose(found.certificate_.r2_eval, expected.certificate_.r2_eval, atol=0.02)


def test_rows_that_were_counted_take_no_memory_of_the_plan(tmp_path):
    table = pd.concat([rows(50)[["colour", "size", "score"]]] * 40000)
    path = write(table, tmp_path / "parts", 2, "parquet")
    found, expected = (FunctionalANOVA().fit(X, "score").plan_.memory for X in (path, table))
    assert found < expected / 4
