"""Questions asked on the command line: groups, differences, reasons, changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import exanova
from cli_helpers import PREDICTED, RISK, TABLE, inside, refused
from exanova.export.harmless import restored

EXECUTED = re.compile("[=+@-]")


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


def test_compare_says_why_the_mean_changed_and_a_limit_decides_the_exit_code(asked):
    later = TABLE[TABLE["home"] != "parents"].assign(risk=lambda t: t["risk"] + 0.1 * (t["home"] == "own"))
    later.to_csv("later.csv", index=False)
    assert asked("explain", "later.csv", *PREDICTED, "--save", "later.exanova", "--quiet").code == 0
    shown = asked("compare", "model.exanova", "later.exanova")
    assert shown.code == 0
    assert "the mix changed" in shown.out
    assert "the model changed" in shown.out
    assert "home: 1 level or part of a level occurs only in the first fit" in shown.out
    failed = asked("compare", "model.exanova", "later.exanova", "--fail-above", "0.001")
    assert (failed.code, failed.err) == (3, "")
    assert "above 0.001: the effect of" in failed.out
    held = asked("compare", "model.exanova", "later.exanova", "--fail-above", "10")
    assert held.code == 0
    assert "nothing changed by more than 10" in held.out
    ended = asked("compare", "model.exanova", "later.exanova", "--fail-above", "0.001", "--json")
    found = json.loads(ended.out)
    assert ended.code == 3
    assert found["monitor"]["failed"]
    assert found["monitor"]["above"][0]["amount"] == found["watched"][0]["amount"]
    mean = found["mean"]
    assert np.isclose(np.sum(mean["mix"]) + np.sum(mean["model"]), np.sum(mean["total"]))
    assert "monitor" not in json.loads(asked("compare", "model.exanova", "later.exanova", "--json").out)


def test_what_cannot_be_compared_is_above_every_limit(asked):
    TABLE.assign(job=[f"{job} now" for job in TABLE["job"]]).to_csv("later.csv", index=False)
    assert asked("explain", "later.csv", *PREDICTED, "--save", "later.exanova", "--quiet").code == 0
    failed = asked("compare", "model.exanova", "later.exanova", "--fail-above", "10")
    assert failed.code == 3
    assert "above 10: the effect of job: cannot be compared" in failed.out
    refused(asked("compare", "model.exanova", "later.exanova", "--fail-above", "-1"), "--fail-above")
    same = asked("compare", "model.exanova", "model.exanova", "--fail-above", "0")
    assert same.code == 0
    assert "nothing changed by more than 0;" in same.out


def test_a_saved_file_says_where_it_holds_no_covariances_and_an_option_keeps_them(asked, monkeypatch):
    sample = ("explain", "loans.csv", *PREDICTED[:-1], "--sample", "--force", "--save", "m.exanova")
    gap = ("difference", "m.exanova", "loans.csv", "--by", "job")
    assert "covariances" not in asked(*sample).out
    assert "taken as known" not in asked(*gap).out
    monkeypatch.setattr("exanova.infer.uncertainty.MOST_NUMBERS", 0)
    assert "the file holds no covariances of effects" in (shown := " ".join(asked(*sample).out.split()))
    assert "--covariances keeps them" in shown
    assert json.loads(asked(*sample, "--json").out)["covariances"] is False
    assert "exanova explain with --covariances, keeps them" in " ".join(asked(*gap).out.split())
    assert "covariances" not in asked(*sample, "--covariances").out
    assert "taken as known" not in asked(*gap).out
    assert json.loads(asked(*sample, "--covariances", "--json").out)["covariances"] is True
    refused(asked("explain", "loans.csv", *PREDICTED, "--no-covariances"), "--save")


def test_a_file_of_the_command_holds_what_some_seconds_compute(asked, monkeypatch):
    sample = ("explain", "loans.csv", *PREDICTED[:-1], "--sample", "--quiet", "--force", "--save", "m.exanova")
    monkeypatch.setattr("exanova.infer.uncertainty.CHEAP_WORK", 0.0)
    assert asked(*sample).code == 0
    assert "stderr" in exanova.load("m.exanova").effects_["job"].to_frame().column_names
    assert "taken as known" not in asked("difference", "m.exanova", "loans.csv", "--by", "job").out


def test_a_tariff_on_a_screen_in_a_file_and_as_json(asked):
    words = ("--features", "job,home", "--weight", "w", "--link", "log", "--population", "--max-order", "1")
    TABLE.assign(rate=RISK + 0.1).to_csv("rates.csv", index=False)
    fit = ("explain", "rates.csv", "--prediction", "rate", *words, "--save", "rates.exanova")
    assert "log(rate)" in asked(*fit).out
    shown = asked("relativities", "rates.exanova", "--base", "job=none")
    assert shown.code == 0
    assert "none: 1.000, exposure" in shown.out
    assert "of the deviance explained" in shown.out
    assert asked("relativities", "rates.exanova", "--output", "tariff.csv").out == ""
    tariff = pd.read_csv("tariff.csv")
    assert set(tariff["factor"]) == {"job", "home"}
    assert asked("relativities", "rates.exanova", "--base", "job=none", "--output", "tariff.xlsx").out == ""
    book = pd.read_excel("tariff.xlsx", sheet_name=None)
    assert list(book) == ["tariff", "tariff loss"]
    base = book["tariff"].query("factor == 'job' and base")
    assert base["level"].tolist() == ["none"]
    assert len(book["tariff"]) == len(tariff) + 1
    found = json.loads(asked("relativities", "rates.exanova", "--json").out)
    assert found["link"] == "log"
    assert [loss["order"] for loss in found["losses"][0]] == [0, 1]
    refused(asked("relativities", "rates.exanova", "--base", "job"), "--base needs a feature and its level")
    refused(asked("relativities", "rates.exanova", "--base", "job=cook"), "no level 'cook'")
    refused(asked("relativities", "model.exanova"), "--link log")
    refused(asked("explain", "loans.csv", *PREDICTED, "--link", "log"), "--link log", "row")


def test_a_report_with_rows_groups_an_earlier_fit_and_ids(asked):
    named = TABLE.assign(key=[f"k{k}" for k in range(len(TABLE))])
    named.to_csv("named.csv", index=False)
    earlier = ("explain", "loans.csv", *PREDICTED, "--max-order", "1", "--save", "earlier.exanova", "--quiet")
    assert asked(*earlier).code == 0
    words = ("report", "model.exanova", "r.json", "--data", "named.csv", "--prediction", "risk", "--id", "key")
    words += ("--by", "home", "--since", "earlier.exanova", "--group", "credit=job,term", "--title", "Loans")
    done = asked(*words)
    assert done.code == 0
    assert "r.json" in done.out
    told = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert told["title"] == "Loans"
    assert told["groups"]["by"] == "home"
    assert {r["part"] for r in told["groups"]["contrasts"][0]["records"]} >= {"credit", "home", "(total)"}
    assert told["change"] is not None
    assert told["domains"]["members"] == [{"group": "credit", "features": ["job", "term"]}]
    assert told["sample"]["rows"][0]["id"].startswith("k")
    assert all(row["id"].startswith("k") for entry in told["reasons"] for row in entry["rows"])
    refused(asked(*words), "--force")
    assert asked(*words, "--force", "--quiet").out == ""


def test_reports_that_cannot_be_are_refused(asked):
    refused(asked("report", "model.exanova", "r.md", "--by", "home"), "--data")
    refused(asked("report", "model.exanova", "r.md", "--data", "loans.csv", "--id", "nobody"), "nobody")
    refused(asked("report", "model.exanova", "r.txt"), ".html")
    refused(asked("report", "model.exanova", "r.md", "--base", "home=own"), "--link log")


def test_whole_numbers_as_exposure_or_as_counts(asked):
    """The same effects, other standard errors: a count of n is n rows, an exposure of n is one."""
    table = TABLE.assign(n=np.random.default_rng(0).integers(2, 9, len(TABLE)))
    table.to_csv("exposed.csv", index=False)
    errors = {}
    for kind in ("frequency", "probability"):
        words = ("explain", "exposed.csv", "--prediction", "risk", "--weight", "n", "--features", "job,home")
        ended = asked(*words, "--weights", kind, "--shrinkage", "none", "--save", f"{kind}.exanova", "--quiet")
        assert ended.code == 0
        shown = json.loads(asked("show", f"{kind}.exanova", "--effect", "job", "--json").out)["effects"][0]
        errors[kind] = np.array([cell["stderr"] for cell in shown["cells"]], dtype=float).ravel()
    assert (errors["probability"] > 1.5 * errors["frequency"]).all()
    compared = ("difference", "probability.exanova", "exposed.csv", "--by", "home", "--weight", "n", "--json")
    found = {k: json.loads(asked(*compared, "--weights", k).out)["contrasts"][0] for k in ("frequency", "probability")}
    assert found["frequency"]["total"] == found["probability"]["total"]
    assert found["probability"]["total_stderr"][0] > found["frequency"]["total_stderr"][0]
    refused(asked("difference", "probability.exanova", "loans.csv", "--by", "home", "--weights", "some"), "--weights")


@pytest.mark.parametrize(
    "words",
    [
        ("rows", "=a.exanova", "=t.csv", "--id", "id"),
        ("rows", "=a.exanova", "=t.csv", "--reasons", "2", "--id", "id", "--direction", "both"),
        ("difference", "=a.exanova", "=t.csv", "--by", "=name"),
        ("relativities", "=a.exanova"),
    ],
)
def test_no_spreadsheet_executes_the_csv_of_a_command_and_parquet_has_every_text_as_it_is(asked, words):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"=name": rng.choice(["=1+1", "@x", "+a", "'=b", "-5", "ok"], 90), "b": rng.normal(size=90)})
    rows["id"] = [f"={k}" if k % 2 else f"-{k}" for k in range(90)]
    rows["risk"] = np.exp(rows["b"] / 9) + (rows["=name"] == "ok")
    rows.to_csv("=t.csv", index=False)
    fit = ("--features", "=name,b", "--text", "=name", "--link", "log", "--save", "=a.exanova", "--quiet")
    assert asked("explain", "=t.csv", "--prediction", "risk", *fit).code == 0
    for path in ("out.csv", "out.tsv", "out.parquet"):
        assert asked(*words, "--output", path).code == 0
    exact = pd.read_parquet("out.parquet")
    for path, between in (("out.csv", ","), ("out.tsv", "\t")):
        told = pd.read_csv(path, sep=between, dtype=str, keep_default_na=False)
        assert [restored(name) for name in told] == list(exact)
        for name, own in zip(told, exact, strict=True):
            texts = told[name]
            is_number = pd.to_numeric(texts, errors="coerce").notna()
            assert not texts[~is_number].str.match(EXECUTED.pattern).any()
            if pd.api.types.is_string_dtype(exact[own]) and exact[own].notna().all():
                assert [restored(text) for text in texts] == exact[own].tolist()
        assert not EXECUTED.match(Path(path).read_text(encoding="utf-8").strip('"'))
