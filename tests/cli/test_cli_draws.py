"""How rows were drawn, on the command line: the same standard errors as in Python, from a file and from many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import exanova
from cli_helpers import inside, refused
from exanova import FunctionalANOVA


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (240, 2))
    frame = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1]}).map(lambda v: f"l{v}")
    frame["p"] = rows[:, 0] + rng.normal(size=240)
    frame["region"] = [f"r{k % 40}" for k in range(240)]
    frame["stratum"] = [f"s{(k % 40) % 4}" for k in range(240)]
    frame["w"] = rng.integers(1, 4, 240)
    frame.to_csv("t.csv", index=False)
    (tmp_path / "many").mkdir()
    frame[:100].to_parquet("many/1.parquet", index=False)
    frame[100:].to_parquet("many/2.parquet", index=False)
    return frame


@pytest.mark.parametrize("path", ["t.csv", "many"])
@pytest.mark.parametrize("roles", [("clusters",), ("strata",), ("clusters", "strata")])
def test_clusters_and_strata_are_columns(table, capsys, path, roles):
    column = {"clusters": "region", "strata": "stratum"}
    words = [word for role in roles for word in (f"--{role}", column[role])]
    left = [column[role] for role in column if role not in roles]
    ended = inside(
        capsys, "explain", path, "--prediction", "p", *words, "--ignore", ",".join(["w", *left]), "--shrinkage", "none",
        "--save", "m.exanova", "--force", "--quiet",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    expected = FunctionalANOVA(shrinkage=None).fit(
        table[["a", "b"]], table["p"], **{role: table[column[role]] for role in roles}
    )
    found = exanova.load("m.exanova")
    assert list(found.feature_names_in_) == ["a", "b"]
    assert found.errors().unit == expected.errors().unit
    for names, effect in expected.effects_.items():
        assert np.allclose(found.effects_[names].stderr, effect.stderr)


def test_weights_are_counts_or_probabilities(table, capsys):
    common = ("explain", "t.csv", "--prediction", "p", "--weight", "w", "--ignore", "region,stratum", "--quiet")
    for said in ("frequency", "probability"):
        assert inside(capsys, *common, "--weights", said, "--save", f"{said}.exanova").code == 0
    frequency, probability = (exanova.load(f"{said}.exanova") for said in ("frequency", "probability"))
    assert (frequency.errors().units, probability.errors().units) == (table["w"].sum(), 240)
    refused(inside(capsys, *common, "--weights", "often"), "--weights often", "probability")
    refused(inside(capsys, *common, "--clusters", "regio"), "no column 'regio'", "Did you mean 'region'?")
    refused(inside(capsys, *common, "--features", "a,region", "--clusters", "region"), "region", "cannot be a feature")


def test_the_mean_of_the_model_stands_beside_an_effect(table, capsys):
    inside(capsys, "explain", "t.csv", "--prediction", "p", "--ignore", "w,region,stratum", "--save", "m.exanova", "-q")
    shown = inside(capsys, "show", "m.exanova", "--effect", "a").out
    assert "mean of the model" in shown
    assert f"{table['p'][table['a'] == 'l0'].mean():.4g}" in shown
