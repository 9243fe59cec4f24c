"""The experiments that need no download run as a reader would run them, and what they check holds."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments, **environment):
    """The command in a process of its own, from the folder of the project."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    clean = {name: value for name, value in os.environ.items() if name != "EXANOVA_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "experiments", *map(str, arguments)],
        cwd=ROOT,
        env=clean | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def results(folder):
    return {path.stem: json.loads(path.read_text("utf-8")) for path in (folder / "results").glob("*.json")}


def check_pages(folder, names):
    """Every condition holds, every page and picture is there, and the overview leads to all of them."""
    found = results(folder)
    assert set(found) == set(names)
    for name, result in found.items():
        assert result["checks"], name
        assert all(check["holds"] for check in result["checks"]), result["checks"]
        page = (folder / f"{name}.md").read_text("utf-8")
        assert page.startswith(f"# {result['title']}\n")
        for figure in result["figures"]:
            assert f"]({figure['file']})" in page
            assert (folder / figure["file"]).read_text("utf-8").startswith("<svg"), figure
        assert f"]({name}.md)" in (folder / "index.md").read_text("utf-8")


def test_the_analytical_case_the_game_and_the_hands(tmp_path):
    names = ["analytical", "tictactoe", "poker_hands"]
    done = run(*names, "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    check_pages(tmp_path, names)


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("treehfd", "xgboost")),
    reason="treehfd and xgboost are installed by the group 'paper' only",
)
def test_against_tree_hfd(tmp_path):
    done = run("tree_hfd", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    check_pages(tmp_path, ["tree_hfd"])


def test_without_data_it_says_what_is_missing_and_goes_on(tmp_path):
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = run("car", "analytical", "--quick", "--out", tmp_path, XDG_CACHE_HOME=str(tmp_path), **offline)
    assert done.returncode == 1
    assert "no data: the dataset 'car' is not here" in done.stderr
    assert "did not succeed: car" in done.stderr
    check_pages(tmp_path, ["analytical"])


def test_the_names_are_listed_and_others_refused():
    done = run("--list")
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {"analytical", "mnist", "orthogonality"}
    assert run("titanic").returncode == 2


# The renderer


@pytest.fixture
def render(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("experiments.render")


def result(**changes):
    return {
        "title": "A title",
        "about": "About.",
        "model": "a model.",
        "rows": [{"what": "rank", "paper": "86", "ours": "86", "why": "", "chief": True}],
        "checks": [{"what": "rank", "measured": "86", "holds": True}],
        "tables": [],
        "figures": [],
        "remarks": [],
        "seconds": 1.0,
        "quick": False,
        "versions": {"python": "3"},
    } | changes


def test_a_column_nobody_uses_is_left_out(render):
    assert render.table(["a", ""], [["1", ""]]) == "| a |\n| --- |\n| 1 |"
    assert render.table(["a", "b"], [["1", ""]]).splitlines()[2] == "| 1 |  |"


def test_a_condition_that_does_not_hold_is_seen_on_both_pages(render):
    broken = result(checks=[{"what": "rank", "measured": "85", "holds": False}])
    assert "85 **does not hold**" in render.page("name", broken)
    assert "Of 1 conditions that were checked in these runs, 0 hold." in render.overview({"name": broken})
    assert "all hold" in render.overview({"name": result()})


def test_every_page_of_the_repository_is_made_from_its_results(render):
    pages = ROOT / "docs" / "paper"
    stored = results(pages)
    for name, content in stored.items():
        assert (pages / f"{name}.md").read_text("utf-8") == render.page(name, content), f"{name}: run with --render"
        assert not content["quick"], name
    order = importlib.import_module("experiments.__main__").EXPERIMENTS
    whole = render.overview({name: stored[name] for name in order if name in stored})
    assert (pages / "index.md").read_text("utf-8") == whole, "index: run with --render"
