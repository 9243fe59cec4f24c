"""Provenance: the record says what was fitted, survives files, holds no rows, and depends on nothing else."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import exanova
from cli_helpers import PREDICTED, TABLE, inside
from exanova import FunctionalANOVA, Provenance, Support
from exanova.data.fingerprint import fingerprint
from exanova.effects import storage
from exanova.errors import FileFormatError, InputError
from exanova.provenance import file_hash, timestamp

GOLDEN = Path(__file__).resolve().parent / "golden"

X = pd.DataFrame({"job": ["none", "clerk", "none", "clerk"], "home": ["own", "own", "rent", "rent"]})
F = np.array([0.0, 1.0, 1.0, 4.0])


def fitted(table=X, values=F, **arguments):
    return FunctionalANOVA(shrinkage=None).fit(table, values, **arguments)


def hash_of(*arguments, **more):
    return fitted(*arguments, **more).provenance_.table_hash


def test_the_record_says_what_was_fitted():
    anova = FunctionalANOVA(max_order=1, random_state=7, shrinkage=None)
    made = anova.fit(pd.concat([X, X]), np.tile(F, 2), sample_weight=np.arange(8) + 0.5).provenance_
    assert made.version == exanova.__version__
    assert made.seed == 7
    assert (made.rows, made.distinct_rows, made.weighted) == (8, 4, True)
    assert made.total_weight == 32.0
    settings = dict(made.settings)
    assert settings.items() >= {"max_order": "1", "random_state": "7", "sample_weight": "given"}.items()
    assert set(anova.get_params()) - {"engine"} <= set(settings)
    assert re.fullmatch(r"[0-9a-f]{64}", made.table_hash)
    assert (made.command, made.files) == ("", ())


def test_without_weights_the_total_is_the_number_of_rows():
    made = fitted().provenance_
    assert (made.weighted, made.total_weight) == (False, 4.0)


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1.0, 1e100, 1e300])
def test_the_total_is_that_of_the_weights_as_they_were_given(tmp_path, size):
    """Very large and very small ones are divided by a power of two; that of files is another one."""
    table = pd.concat([X, X]).assign(p=np.tile(F, 2), w=(np.arange(8) + 0.5) * size)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    whole = fitted(table, "p", sample_weight="w").provenance_
    apart = fitted(str(tmp_path), "p", sample_weight="w").provenance_
    assert whole.total_weight == pytest.approx(32.0 * size, rel=1e-14)
    assert apart.total_weight == pytest.approx(32.0 * size, rel=1e-14)


def test_a_total_beyond_all_numbers_is_the_largest():
    assert fitted(sample_weight=np.full(4, 1.5e308)).provenance_.total_weight == np.finfo(float).max


def test_the_date_is_that_of_the_clock_or_of_source_date_epoch(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert timestamp(lambda: 86400.9) == "1970-01-02T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert fitted().provenance_.date == "2023-11-14T22:13:20Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH is 'yesterday'"):
        timestamp()


def test_the_hash_is_the_same_from_every_library_and_changes_with_everything_that_is_fitted():
    same = hash_of()
    assert hash_of(pl.from_pandas(X)) == same
    assert hash_of(X.astype("category")) == same
    others = [
        hash_of(X.rename(columns={"job": "work"})),
        hash_of(X.replace("none", "no")),
        hash_of(X, F + np.array([0, 0, 0, 1e-12])),
        hash_of(X.iloc[[1, 0, 2, 3]], F),
        hash_of(sample_weight=[1, 1, 1, 2]),
        hash_of(pd.concat([X, X.iloc[:1]]), np.append(F, 0.0)),
        hash_of(X, np.stack([F, F], axis=1)),
    ]
    assert len({same, *others}) == 1 + len(others)


def test_a_model_and_its_outputs_have_one_hash_on_distinct_rows():
    outputs = {tuple(row): value for row, value in zip(X.itertuples(index=False), F, strict=True)}
    assert hash_of(X, lambda rows: np.array([outputs[tuple(row)] for row in rows.itertuples(index=False)])) == hash_of()


def test_a_distribution_has_provenance_too():
    made = FunctionalANOVA().fit(Support.from_pmf(np.full((2, 2), 0.25)), F).provenance_
    assert (made.rows, made.weighted, made.total_weight) == (4, True, 1.0)


def test_the_fingerprint_ignores_how_numbers_are_stored():
    encoding = fitted().decomposition_.encoding
    codes, group, weight, values = (
        np.array([[0, 1], [0, 1]]),
        np.array([0, 1]),
        np.array([1, 2]),
        np.array([[1.0], [2.0]]),
    )
    wide = fingerprint(encoding, codes, group, weight, values)
    narrow = fingerprint(encoding, codes.astype(np.uint8), group.astype(np.int32), weight.astype(float), values[::1])
    assert wide == narrow


def test_the_record_survives_a_file(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"trees")
    anova = fitted().add_provenance(
        command=["exanova", "explain", "my data.csv"], files={"model": tmp_path / "model.bin"}
    )
    anova.save(tmp_path / "a.exanova")
    loaded = exanova.load(tmp_path / "a.exanova").provenance_
    assert loaded == anova.provenance_
    assert loaded.command == "exanova explain 'my data.csv'"
    assert loaded.files == (("model", str(tmp_path / "model.bin"), hashlib.sha256(b"trees").hexdigest()),)


@pytest.mark.parametrize("name", ["v1", "v1-paper", "v1-screened"])
def test_files_of_the_first_release_have_none_and_load(name):
    loaded = exanova.load(GOLDEN / f"{name}.exanova")
    assert loaded.provenance_ is None
    with pytest.raises(InputError, match="without provenance"):
        loaded.add_provenance(command=["x"])


def test_a_file_written_before_there_was_provenance_loads():
    loaded = exanova.load(GOLDEN / "v2.exanova")
    assert loaded.provenance_ is None
    assert loaded.output_names_ == ("left", "right")
    assert loaded.predict(
        pd.DataFrame({"colour": ["red"], "when": [loaded.categories_[1][0]], "age": [18.0]})
    ).shape == (1, 2)


@pytest.mark.parametrize(
    "broken",
    [{"rows": "4"}, {"settings": [["a"]]}, {"files": [["a", "b"]]}, {"date": 3}, {"seed": True}, {"unknown": 1}],
    ids=str,
)
def test_a_record_that_was_altered_is_refused(tmp_path, broken):
    path = tmp_path / "a.exanova"
    fitted().save(path)
    document, arrays = storage.read(path)
    document["provenance"] |= broken
    storage.write(path, document, arrays)
    with pytest.raises(FileFormatError):
        exanova.load(path)


def test_the_record_is_frozen_and_prints():
    made = fitted().provenance_
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.rows = 5
    assert f"sha256 {made.table_hash}" in str(made)
    assert isinstance(made, Provenance)


def test_long_settings_are_cut():
    pairs = [(f"x{i}", f"x{j}") for i in range(12) for j in range(i)]
    rows = np.array(np.meshgrid(*[[0, 1]] * 12)).reshape(12, -1).T[:200]
    anova = FunctionalANOVA(subsets=pairs).fit(rows, rows.sum(axis=1) * 1.0)
    assert len(dict(anova.provenance_.settings)["subsets"]) < 250


def test_a_file_that_cannot_be_hashed_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        file_hash(tmp_path / "nowhere")


def test_the_command_records_its_words_and_the_hashes_of_its_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("loans.csv", index=False)
    ended = inside(capsys, "explain", "loans.csv", *PREDICTED, "--save", "m.exanova", "--report", "r.json", "-q")
    assert ended.code == 0
    made = exanova.load("m.exanova").provenance_
    assert made.command.startswith("exanova explain loans.csv --prediction risk")
    assert made.files == (("data", "loans.csv", hashlib.sha256(Path("loans.csv").read_bytes()).hexdigest()),)
    told = {fact["name"]: fact["value"] for fact in json.loads(Path("r.json").read_text("utf-8"))["provenance"]}
    assert told["Command"] == made.command
    assert made.files[0][2] in told["File: data"]


def test_reports_show_it(tmp_path):
    anova = fitted()
    anova.report(tmp_path / "r.md")
    assert anova.provenance_.table_hash in (tmp_path / "r.md").read_text("utf-8")


def test_rows_held_out_before_levels_are_joined_are_part_of_the_record():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"zip": [f"z{k}" for k in rng.integers(0, 90, 800)], "a": rng.choice(["u", "v"], 800)})
    outputs = 1.0 * (rows["zip"] < "z5") + (rows["a"] == "u") + 0.1 * rng.normal(size=800)
    joined = FunctionalANOVA(max_order=1).fit(rows, outputs, eval_set=0.2)
    assert joined.decomposition_.joined_levels
    plain = FunctionalANOVA(max_order=1, max_levels=None).fit(rows, outputs, eval_set=0.2)
    record, other = joined.provenance_, plain.provenance_
    assert (record.rows, record.weighted, record.total_weight) == (800, False, 800.0)
    assert dict(record.settings)["eval_set"] == "0.2"
    assert "sample_weight" not in dict(record.settings)
    assert record.table_hash == other.table_hash
