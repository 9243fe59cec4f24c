"""Links, replicate weights and shares held out mean for files what they mean for the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from exanova import FunctionalANOVA
from exanova.errors import InputError, InputTypeError, MemoryLimitError
from sources.test_split_law import FEATURES, fitted, rows, same, write

SCALES = {"log": lambda table: np.exp(table["real"] / 2), "logit": lambda table: 1 / (1 + np.exp(-table["real"]))}


def rates(link: str, n=600) -> pd.DataFrame:
    """Outputs that the link is defined for, other than the features in equal rows; some are zero."""
    table = rows(n)
    share = SCALES[link](table)
    table["rate"] = share * (np.random.default_rng(3).random(n) < 0.9)
    return table


@pytest.mark.parametrize("link", SCALES)
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(("weight", "bins"), [(None, "auto"), ("w", {"price": 3}), ("share", {"price": 3})])
def test_a_link_is_of_the_means_of_equal_rows(tmp_path, link, together, weight, bins, monkeypatch):
    features = ["colour", "size", "price"] if bins != "auto" else ["colour", "size"]
    table = rates(link)[[*features, "rate", *([weight] if weight else [])]]
    path = write(table, tmp_path / "parts", 5, "parquet", seed=1)
    monkeypatch.setattr("exanova.sources.tally.MOST_APART", 0 if together else 2**22)
    parameters = {"link": link, "n_bins": bins, "shrinkage": None}
    found = fitted(path, "rate", parameters=parameters, sample_weight=weight)
    expected = fitted(table, "rate", parameters=parameters, sample_weight=weight)
    assert found.output_names_ == expected.output_names_ == (f"{link}(rate)",)
    np.testing.assert_allclose(found.decomposition_.values, expected.decomposition_.values, atol=1e-12)
    for name in ("r2", "mse", "loss_noise", "loss_levels"):
        ours, theirs = (getattr(one.certificate_, name) for one in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-14)


def test_the_values_of_a_model_are_linked_one_by_one(tmp_path):
    table = rows()[FEATURES]

    def model(frame):
        return np.exp((frame["size"] * (frame["price"].fillna(0.0) > 0)).to_numpy() / 2.0)

    path = write(table, tmp_path / "parts", 4, "parquet")
    same(fitted(path, model, parameters={"link": "log"}), fitted(table, model, parameters={"link": "log"}), exact=False)
    with pytest.raises(InputError, match=r"link='logit' is defined for outputs above 0 and below 1, but the model"):
        fitted(path, model, parameters={"link": "logit"})


def test_a_mean_that_the_link_is_not_defined_for_is_named_by_its_levels(tmp_path):
    table = rows()[["colour", "size"]].assign(score=lambda own: 1.0 * (own["size"] != 2))
    path = write(table, tmp_path / "parts", 3, "parquet")
    with pytest.raises(InputError, match=r"link='log' .* is 0 for colour = 'blue', size = 2 \(3 of 12 distinct rows\)"):
        fitted(path, "score", parameters={"link": "log"})


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("unknown", [False, True])
def test_other_rows_are_measured_on_the_scale_of_the_link(tmp_path, together, unknown, monkeypatch):
    columns = ["colour", "size", "rate"]
    table, other = rates("log")[columns], rates("log", 900)[300:][columns]
    other = other.assign(colour=other.colour.replace("red", "violet") if unknown else other.colour)
    monkeypatch.setattr("exanova.sources.tally.MOST_APART", 0 if together else 2**22)
    path, test = write(table, tmp_path / "fit", 3, "parquet"), write(other, tmp_path / "test", 4, "parquet")
    parameters = {"link": "log", "handle_unknown": "ignore"}
    expected = fitted(table, "rate", parameters=parameters, eval_set=(other, "rate")).certificate_
    found = fitted(path, "rate", parameters=parameters, eval_set=test).certificate_
    np.testing.assert_allclose(found.r2_eval, expected.r2_eval, rtol=1e-9)
    np.testing.assert_allclose(found.mse_eval, expected.mse_eval, rtol=1e-9)


@pytest.mark.parametrize("weight", [None, "share"])
def test_replicate_weights_are_columns_by_name(tmp_path, weight, monkeypatch):
    table = rows()[["colour", "size", "real", "share"]]
    rng = np.random.default_rng(0)
    names = [f"r{k}" for k in range(7)]
    table[names] = rng.integers(0, 3, size=(len(table), 7)) * 0.75
    monkeypatch.setattr("exanova.sources.tally.MOST_APART", 0)  # which replicate weights do not heed
    path = write(table.drop(columns=[] if weight else "share"), tmp_path / "parts", 5, "parquet", seed=1)
    scale = np.linspace(0.1, 0.2, 7)
    own = {} if weight is None else {"sample_weight": weight}
    found = fitted(path, "real", replicate_weights=(names, scale), **own)
    memory = {} if weight is None else {"sample_weight": table[weight]}
    given = (table[names].to_numpy(), scale)
    same(found, fitted(table[["colour", "size"]], table["real"], replicate_weights=given, **memory), exact=False)
    assert found.effects_["colour"].stderr is not None


@pytest.mark.parametrize("how", [{}, {"eval_set": 0.2}])
@pytest.mark.parametrize("as_table", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "pyarrow"])
def test_replicate_weights_are_columns_by_name_in_memory_too(how, as_table):
    table = many_names()
    names = ["r1", "r2", "r3"]
    table[names] = np.random.default_rng(0).random((len(table), 3))
    scale = [0.1, 0.2, 0.3]
    found = fitted(as_table(table), "score", replicate_weights=(names, scale), **how)
    expected = fitted(table[["job", "z"]], table["score"], replicate_weights=(table[names], scale), **how)
    assert list(found.feature_names_in_) == ["job", "z"]
    assert np.array_equal(found.effects_["z"].stderr, expected.effects_["z"].stderr)
    with pytest.raises(InputError, match="no column 'r9'"):
        fitted(table, "score", replicate_weights=(["r1", "r9"], 0.5))
    with pytest.raises(InputTypeError, match="'job' of replicate weights does not hold numbers"):
        fitted(table, "score", replicate_weights=(["r1", "job"], 0.5))
    with pytest.raises(InputError, match="columns were given by name"):
        fitted(table[["z"]].to_numpy(), table["score"], replicate_weights=(["r1"], 0.5))


@pytest.mark.parametrize("again", ["rows", "weights"])
@pytest.mark.parametrize("clusters", [500, 4000])
def test_equal_rows_of_a_cluster_stand_for_as_many_when_they_are_counted(tmp_path, again, clusters):
    """Also where all rows of every cluster are equal."""
    table = rows(4000)[["colour", "size", "score"]].assign(house=np.arange(4000) % clusters)
    repeated = pd.concat([table] * 2)
    expected = fitted(repeated, "score", clusters="house")
    if again == "rows":
        found = fitted(write(repeated, tmp_path / "parts", 3, "parquet", seed=1), "score", clusters="house")
    else:
        found = fitted(table.assign(w=2), "score", clusters="house", sample_weight="w")
    assert "leaving out a fifth of the clusters" in expected.certificate_.eval_method
    assert found.certificate_.eval_method == expected.certificate_.eval_method
    same(found, expected, exact=False)


def test_replicate_weights_that_are_none(tmp_path):
    table = rows()[["colour", "size", "score", "house"]].assign(r1=1.0, r2=0.0, r3=-1.0)
    path = write(table, tmp_path / "parts", 2, "parquet")
    for columns, match in (
        (["r1", "r2", "r3"], "not all 0 in a column; see 'r2', 'r3'"),
        (["r1", "r9"], "no column 'r9'"),
        ([], "a pair \\(names of columns, scale\\)"),
    ):
        with pytest.raises(InputError, match=match):
            fitted(path, "score", replicate_weights=(columns, 0.5))
    with pytest.raises(InputError, match="expected a number, or one for each column"):
        fitted(path, "score", replicate_weights=(["r1"], [0.5, 0.5]))
    with pytest.raises(InputError, match="Give one or the other"):
        fitted(path, "score", replicate_weights=(["r1"], 0.5), clusters="house")


def many_names(n=4000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"job": rng.choice([f"job {k:02d}" for k in range(70)], n), "z": rng.integers(0, 3, n)})
    table["score"] = table.job.str[-2:].astype(int) // 20 + table.z + rng.integers(0, 2, n)
    return table


@pytest.mark.parametrize("how", [{}, {"clusters": "house"}, {"clusters": "house", "strata": "region"}])
def test_a_share_is_held_out_before_levels_are_joined(tmp_path, how):
    table = many_names()
    house = (np.arange(len(table)) * 7) % 450
    for name in how.values():
        table[name] = house if name == "house" else house % 3
    path = write(table, tmp_path / "parts", 3, "parquet", seed=1)
    found, expected = fitted(path, "score", eval_set=0.2, **how), fitted(table, "score", eval_set=0.2, **how)
    assert len(found.categories_[0]) < 70
    assert found.certificate_.eval_method == expected.certificate_.eval_method == "on held-out rows"
    assert found.categories_ == expected.categories_
    if how:  # noise between equal rows is measured on all of them: its sums are not apart by cluster
        values = expected.decomposition_.values
        np.testing.assert_allclose(found.decomposition_.values, values, atol=1e-3 * np.abs(values).max())
        np.testing.assert_allclose(found.certificate_.r2_eval, expected.certificate_.r2_eval, atol=1e-4)
    else:
        same(found, expected, exact=True)
    ours, theirs = found.provenance_, expected.provenance_
    assert (ours.rows, ours.total_weight) == (theirs.rows, theirs.total_weight) == (len(table), len(table))
    assert ours.distinct_rows == theirs.distinct_rows
    other = write(table, tmp_path / "other", 8, "parquet", seed=2)
    same(fitted(other, "score", eval_set=0.2, **how), found, exact=True)


@pytest.mark.parametrize(
    "how", [{}, {"sample_weight": "w"}, {"sample_weight": "share"}, {"clusters": "house"}, {"eval_set": None}]
)
def test_joined_levels_are_evaluated_by_joining_them_again_without_some_rows(tmp_path, how, monkeypatch):
    """As in memory, up to which rows are left out; of clusters, the same ones."""
    table = many_names(6000).assign(house=(np.arange(6000) * 7) % 450)
    table["w"], table["share"] = np.arange(6000) % 3, 0.3 + np.arange(6000) % 5
    parameters = {"sampled": False, "max_levels": 20} if "eval_set" in how else {}
    own = table[["job", "z", "score", *(name for name in how.values() if name)]]
    path = write(own, tmp_path / "parts", 3, "parquet", seed=1)
    found, expected = (fitted(X, "score", **how, parameters=parameters).certificate_ for X in (path, own))
    assert found.eval_method == expected.eval_method
    if "eval_set" in how:
        assert found.eval_method == "the rows were declared complete"
        return
    atol = 1e-9 if "clusters" in how else 0.02
    np.testing.assert_allclose(found.r2_eval, expected.r2_eval, atol=atol)
    np.testing.assert_allclose(found.mse_eval, expected.mse_eval, rtol=atol * 10)
    again = fitted(write(own, tmp_path / "other", 7, "parquet", seed=2), "score", **how).certificate_
    np.testing.assert_allclose(again.r2_eval, found.r2_eval, rtol=1e-12)
    monkeypatch.setattr("exanova.sources.tally.MOST_APART", 0)
    assert fitted(path, "score", **how).certificate_.r2_eval is None


def test_rows_held_out_take_no_part_in_the_joining(tmp_path):
    """Outputs of the rows held out may be anything: the levels and the effects stay the same."""
    table = many_names()
    path = write(table, tmp_path / "parts", 3, "parquet")
    found = fitted(path, "score", eval_set=0.2)
    held = np.zeros(len(table), dtype=bool)
    kept = found.decomposition_.sample
    code = {name: k for k, names in enumerate(found.decomposition_.encoding.features[0].values) for name in [names]}
    assert kept.rows + held.sum() <= len(table)
    assert len(code) == 70
    changed = table.assign(score=table.score)
    occurs = {tuple(row) for row in fitted_rows(found, table)}
    outside = [tuple(row) not in occurs for row in table[["job", "z"]].to_numpy().tolist()]
    changed.loc[outside, "score"] = 99.0 + np.arange(sum(outside)) % 2
    again = fitted(write(changed, tmp_path / "changed", 3, "parquet"), "score", eval_set=0.2)
    assert sum(outside) > 100
    assert again.categories_ == found.categories_
    np.testing.assert_allclose(again.decomposition_.values, found.decomposition_.values, atol=1e-12)
    assert again.certificate_.r2_eval < found.certificate_.r2_eval


def fitted_rows(found: FunctionalANOVA, table: pd.DataFrame) -> list[list[object]]:
    """The distinct rows that a share of the distinct rows leaves for the fit."""
    from exanova.data.sample import held_out

    distinct = table[["job", "z"]].drop_duplicates().sort_values(["job", "z"]).reset_index(drop=True)
    codes = np.stack([pd.factorize(distinct[name], sort=True)[0] for name in ("job", "z")])
    held = held_out(codes, (70, 3), 0.2, 0)
    return distinct[~held].to_numpy().tolist()


def test_levels_are_not_joined_by_rows_on_disk(tmp_path, monkeypatch):
    path = write(many_names(), tmp_path / "parts", 3, "parquet")
    monkeypatch.setattr("exanova.sources.runs.SHARE", 0.0)
    with pytest.raises(MemoryLimitError, match="are on disk, and the levels of 'job' are joined"):
        fitted(path, "score")
    assert len(fitted(path, "score", parameters={"max_levels": None}).categories_[0]) == 70


VALUES = {
    "string": pa.array(["u", "v", None] * 10),
    "double": pa.array([1.5, 2.5, None] * 10),
    "int64": pa.array([1, 2, 3] * 10),
    "bool": pa.array([True, False, None] * 10),
    "date": pa.array([0, 40, None] * 10, pa.date32()),
    "dictionary": pa.array(["u", "v", None] * 10).dictionary_encode(),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_part_in_which_a_column_is_missing_in_every_row_has_the_type_of_the_others(tmp_path, kind, place, suffix):
    def part(seed: int, values) -> pa.Table:
        outputs = np.random.default_rng(seed).normal(size=30)
        return pa.table({"a": ["x", "y", "x"] * 10, "b": values, "score": outputs})

    tables = [part(k, pa.nulls(30) if k == place else VALUES[kind]) for k in range(3)]
    for k, table in enumerate(tables):
        if suffix == "parquet":
            pq.write_table(table, tmp_path / f"{k}.parquet")
        else:
            feather.write_feather(table, tmp_path / f"{k}.arrow")
    whole = pa.concat_tables(
        [part(k, pa.nulls(30, VALUES[kind].type) if k == place else VALUES[kind]) for k in range(3)]
    )
    same(fitted(str(tmp_path), "score"), fitted(whole, "score"), exact=False)
