"""Questions asked on the command line: groups, differences, reasons, changes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli_helpers import PREDICTED, RISK, TABLE, inside, refused


@pytest.fixture
def asked(tmp_path, capsys, monkeypatch):
    """The command, run in a folder with a table and a saved decomposition of it."""
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("loans.csv", index=False)
    assert inside(capsys, "explain", "loans.csv", *PREDICTED, "--save", "model.exanova", "--quiet").code == 0
    return lambda *words: inside(capsys, *words)


def test_rows_by_groups_of_features(asked):
    words = ("rows", "model.exanova", "loans.csv", "--group", "credit=job,term")
    ended = asked(*words, "--output", "groups.csv")
    assert ended.code == 0
    values = pd.read_csv("groups.csv")
    assert list(values) == ["row", "base_value", "credit", "home", "fitted", "outside_support"]
    assert np.allclose(values[["base_value", "credit", "home"]].sum(axis=1), RISK, atol=1e-12)
    found = asked(*words, "--index", "SII", "--json")
    assert {line["subset"] for line in json.loads(found.out)["values"]} == {
        "(intercept)",
        "credit",
        "home",
        "credit x home",
    }


@pytest.mark.parametrize("given", ["credit", "=job", "credit=nobody"])
def test_groups_that_cannot_be_read_are_refused(asked, given):
    refused(asked("rows", "model.exanova", "loans.csv", "--group", given), "--group")


def test_the_difference_between_groups_on_a_screen_in_a_file_and_as_json(asked):
    words = ("difference", "model.exanova", "loans.csv", "--by", "home", "--prediction", "risk")
    shown = asked(*words)
    assert shown.code == 0
    assert "own against all others: mean of risk" in shown.out
    assert asked(*words, "--weight", "w", "--output", "gap.csv", "--by-feature").out == ""
    gap = pd.read_csv("gap.csv")
    own = gap[gap["set"] == "own"].set_index("feature")["value"]
    assert np.isclose(own.drop("(total)").sum(), own["(total)"])
    home, w = TABLE["home"] == "own", TABLE["w"]
    means = [np.average(RISK[k], weights=w[k]) for k in (home, ~home)]
    assert np.isclose(own["(total)"], means[0] - means[1])
    found = json.loads(asked(*words, "--within", "term", "--group", "both=job,term", "--json").out)
    assert found["features"] == ["both", "home"]
    assert {c["stratum"] for c in found["contrasts"]} == {"term=long", "term=short"}
    for c in found["contrasts"]:
        assert np.isclose(np.sum(c["by_subset"]) + np.sum(c["residual"]), np.sum(c["total"]))


def test_differences_that_cannot_be_are_refused(asked):
    words = ("difference", "model.exanova", "loans.csv")
    refused(asked(*words, "--by", "nobody"), "no column 'nobody'")
    refused(asked(*words, "--by", "home", "--prediction", "risk", "--prediction", "safe"), "2 columns")
    refused(asked(*words), "--by")


def test_reasons_of_rows_as_sentences_a_table_and_json(asked):
    words = ("rows", "model.exanova", "loans.csv", "--reasons", "2", "--direction", "higher", "--id", "id")
    shown = asked(*words, "--prediction", "risk")
    assert shown.code == 0
    assert "100: risk 0.5, the mean is" in shown.out
    assert "1. job = none raises risk by" in shown.out
    assert asked(*words, "--against", "best", "--output", "reasons.csv").out == ""
    table = pd.read_csv("reasons.csv")
    assert set(table["id"]) <= set(range(100, 112))
    assert (table["contribution"] > 0).all()
    found = json.loads(asked(*words, "--against", "11", "--group", "both=home,term", "--json").out)
    assert len(found["rows"]) == 12
    assert found["rows"][11]["reasons"] == []
    assert found["rows"][0]["reasons"][0]["sentence"].startswith("job = none raises risk by 0.5")


def test_reasons_that_cannot_be_are_refused(asked):
    words = ("rows", "model.exanova", "loans.csv", "--reasons", "2")
    refused(asked(*words, "--against", "12"), "12 rows, numbered from 0")
    refused(asked(*words, "--against", "worst"), "against")
    refused(asked(*words, "--direction", "down"), "direction")
    refused(asked(*words, "--of-output", "nobody"), "one of 'risk'")
    refused(asked(*words, "--id", "id", "--id", "w"), "one --id column")
