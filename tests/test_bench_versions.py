"""The comparison of two versions: how often a case is run, what is continued, and the page made of it."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
from benchmarks import versions, versions_page
from benchmarks.version_cases import cases, groups


def facts(**of_cases):
    found = {name: {"load": 1.0, "before": [100.0, 90.0], "after": [ms]} for name, ms in of_cases.items()}
    return {"sources": {}, "commits": {"before": "abc1234", "after": ""}, "cases": found}


def test_every_case_has_one_name_and_stands_in_one_table():
    by_group = groups(Path("nowhere"))
    names = [name for group in by_group.values() for name in group]
    assert len(names) == len(set(names)) == len(cases(Path("nowhere")))


def test_the_page_has_every_case_and_names_those_that_are_slower():
    titles = {"one suite": ["a"], "another suite": ["b"], "other fits": ["c"]}
    text = "\n".join(versions_page.lines(facts(a=45.0, b=99.0, c=180.0), titles))
    assert "| a | 90 | 45 | 0.50 |" in text
    assert "| c | 90 | 180 | 2.00 |" in text
    assert "Faster than in 0.1.0: 1 of the 2 cases of the two benchmarks. More than 5% slower: b (1.100)." in text
    assert "commit abc1234" in text
    assert "no other work" in text
    assert "None is more than 5% slower; the largest ratio is 1.044" in versions_page.summary({"a": 0.5, "b": 1.044})


def test_a_busy_machine_is_admitted():
    found = facts(a=45.0)
    found["cases"]["a"]["load"] = 3.0
    assert "other work to do when 1 of the 1 cases began" in versions_page.load(found)


@pytest.mark.parametrize(
    ("before", "after", "settled"), [(90.0, 45.0, True), (90.0, 89.0, False), (20_000.0, 19_900.0, True)]
)
def test_one_turn_is_enough_if_the_case_is_long_or_clearly_faster(before, after, settled):
    assert versions.is_settled({"before": [before], "after": [after]}) is settled


def test_a_run_is_continued_with_the_same_sources_alone(tmp_path, monkeypatch):
    sources = {name: tmp_path / name / "src" for name in ("before", "after")}
    for source in sources.values():
        source.mkdir(parents=True)
        (source / "module.py").write_text("x = 1\n")
    measured = []
    monkeypatch.setattr(versions, "cases", lambda data: dict.fromkeys(["one", "two"]))
    monkeypatch.setattr(versions, "run", lambda source, case, data: measured.append(case) or 20_000.0)
    given = Namespace(**sources, only="", results=tmp_path / "r.json", resume=True, data=tmp_path)
    versions.measure(Namespace(**vars(given) | {"only": "one"}))
    assert measured == ["one"] * 2
    assert list(versions.measure(given)["cases"]) == ["one", "two"]
    assert measured == ["one"] * 2 + ["two"] * 2
    assert list(json.loads(given.results.read_text())["cases"]) == ["one", "two"]
    (sources["after"] / "module.py").write_text("x = 2\n")
    with pytest.raises(SystemExit, match="measured on other sources"):
        versions.measure(given)
