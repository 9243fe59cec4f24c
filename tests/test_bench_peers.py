"""The measurements beside other libraries: one footing for all answers, limits that hold, a page made from the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.harness import run_job, timed
from benchmarks.peers import grids, page
from benchmarks.peers.__main__ import jobs, resumed
from benchmarks.peers.answers import Rows, Tables, difference, orthogonality, tables_of, total
from benchmarks.peers.measuring import CLOCK, ONCE, Counted, Settings, growing, in_own_words, measured, was_ended
from benchmarks.peers.sections import SECTIONS

from exanova import FunctionalANOVA, Support

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path, tmp_path, threads=1, limit=60.0, quick=True)


@pytest.fixture(scope="module")
def fitted():
    given = grids.grid("holes 30", 3)
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(
        Support.from_pmf(given.pmf), given.values[given.occurring]
    )
    return given, anova


def test_conditional_means_are_those_of_the_certificate(fitted):
    given, anova = fitted
    answer = Tables(tables_of(anova, given.rows), given.rows)
    assert orthogonality(answer, given.rows) < 1e-14
    spoilt = {subset: values + (0.5 if subset == (0, 1) else 0.0) for subset, values in answer.items()}
    scale = max(np.abs(values).max() for values in spoilt.values())
    assert orthogonality(spoilt, given.rows) == pytest.approx(0.5 / scale)


def test_tables_read_at_rows_add_up_to_the_function(fitted):
    given, anova = fitted
    answer = Tables(tables_of(anova, given.rows), given.rows)
    assert np.allclose(total(answer, given.rows.p.size), given.values[given.occurring])


def test_difference_counts_what_only_one_of_them_has():
    ours = {(): np.ones(3), (0,): np.array([2.0, -2.0, 0.0])}
    assert difference(ours, ours)["difference"] == 0
    assert difference(ours, {**ours, (1,): np.array([0.0, 0.0, 1.0])})["difference"] == 0.5
    assert difference(ours, {(): np.zeros(3)})["difference"] == 1.0


def test_share_of_calls_on_rows_that_never_occur():
    rows = Rows.of([[0, 0], [0, 1], [1, 0]])
    assert rows.never(np.array([[0, 1, 1, 1], [0, 1, 0, 1]])) == 0.5
    counted = Counted(lambda sent: np.zeros(len(sent)), keep=True)
    counted(np.zeros((4, 2)))
    counted(np.zeros((3, 2)))
    assert (counted.rows, len(np.concatenate(counted.sent))) == (7, 7)


@pytest.mark.parametrize(("limit", "explained"), [(float("inf"), 250), (1e-9, 4)])
def test_rows_are_explained_until_time_is_up(limit, explained):
    facts, result = growing(lambda rows: rows.copy(), np.arange(250), limit)
    assert (facts["explained"], facts["rows"], len(result)) == (explained, 250, explained)
    assert facts["seconds"] == pytest.approx(facts["growth"][-1][1] * 250 / explained)


def test_what_works_on_all_rows_at_once_explains_them_all():
    asked = []
    facts, result = growing(lambda rows: asked.append(len(rows)) or rows, np.arange(250), 1e-9, at_once=True)
    assert (facts["explained"], len(result), set(asked)) == (250, 250, {2, 250})


def test_a_long_first_run_is_not_repeated():
    runs = []
    facts, _ = timed(lambda: runs.append(1), repeats=lambda first: 0)
    assert (len(runs), facts["seconds"]) == (1, facts["first"])


def test_a_peer_that_cannot_speaks_in_its_own_words(monkeypatch):
    monkeypatch.setattr("benchmarks.peers.measuring.limit_memory", lambda: None)

    def refuse():
        raise TypeError("no text, please\nand a second line")

    assert in_own_words(refuse) == {"skipped": "TypeError: no text, please"}
    with pytest.raises(TypeError):
        in_own_words(refuse, refusal=MemoryError)


def test_a_run_beyond_its_limit_ends_the_process():
    code = "import time; from benchmarks.peers.measuring import measured; measured(lambda: time.sleep(60), 0.2)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=120)
    assert done.returncode == -signal.SIGALRM


def test_memory_is_that_of_the_work_alone():
    facts, _ = measured(lambda: np.ones(5_000_000), 60.0)
    assert 30e6 < facts["extra"] < 60e6


def test_both_measure_the_same_table(settings):
    pytest.importorskip("interpret.utils", reason="interpret-core is not installed")
    ours, theirs = grids.ours(settings, "full mild", 3), grids.purified(settings, "full mild", 3)
    assert theirs["difference"] < 1e-9
    assert max(ours["orthogonality"], theirs["orthogonality"]) < 1e-9
    literal = grids.dense_solve(settings, "full mild", 3)
    assert literal["difference"] < 1e-9


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A run of one measurement in a process of its own, and the facts of peers beside it."""
    folder = tmp_path_factory.mktemp("work")
    arguments = Settings(folder, folder, threads=1, quick=True).arguments()
    ours = run_job("benchmarks.peers", "full mild / 4 / exanova", arguments)
    named = {"case": "full mild", "size": 4}
    return {
        "machine": {"system": "any", "processor": "any", "cores": 2},
        "versions": {"exanova": "0"},
        "settings": {"quick": True, "threads": 1, "limit": 60.0},
        "minutes": 1.0,
        "measurements": [
            {**named, "who": "exanova", **ours},
            {**named, "who": "purify", "seconds": ours["seconds"] / 4, "extra": 0, "orthogonality": 0.25},
            {**named, "who": "dense solve", "seconds": None, "skipped": "MemoryError: too | large"},
        ],
    }


def test_the_page_follows_from_the_file(content, tmp_path):
    pytest.importorskip("altair", reason="altair is not installed")
    text = [path.read_bytes() for path in page.write_page(json.loads(json.dumps(content)), tmp_path)]
    assert text == [path.read_bytes() for path in page.write_page(content, tmp_path)]
    shown = text[0].decode()
    assert "purify at 4 (4 times) variables" in shown
    assert SECTIONS[0].slower in shown
    assert "MemoryError: too \\| large" in shown
    assert "2e-01" in shown
    assert SECTIONS[1].title not in shown


def test_an_update_replaces_its_cases_and_each_run_keeps_its_facts(content):
    from benchmarks.peers.__main__ import updated

    other = {"case": "local forest", "size": "car", "who": "exanova", "seconds": 1.0}
    known = {**content, "measurements": [*content["measurements"], other]}
    new = {**content, "versions": {"exanova": "1"}, "measurements": [{**other, "seconds": 2.0}]}
    whole = updated(known, new)
    assert [run["jobs"] for run in whole["runs"]] == [["full mild / 4"], ["local forest / car"]]
    assert [run["versions"]["exanova"] for run in whole["runs"]] == ["0", "1"]
    assert [m["seconds"] for m in whole["measurements"] if m["case"] == "local forest"] == [2.0]
    more = {"case": "local forest", "size": "nursery", "who": "exanova", "seconds": 3.0}
    both = updated(whole, {**new, "measurements": [more]})
    assert [run["jobs"] for run in both["runs"]][1] == ["local forest / car", "local forest / nursery"]
    assert [run["minutes"] for run in both["runs"]] == [1.0, 2.0]
    again = updated(whole, {**new, "versions": {"exanova": "2"}})
    assert [run["versions"]["exanova"] for run in again["runs"]] == ["0", "2"]


@pytest.mark.parametrize(("shapiq", "shown"), [("1.4.1", False), ("1.5.0", True), ("1.10.2", True)])
def test_no_ratio_is_given_over_code_that_no_longer_ships(shapiq, shown):
    facts = {"case": "local forest", "size": "car"}
    content = {
        "machine": {"system": "any", "processor": "any", "cores": 2},
        "versions": {"python": "3.11.7", "shapiq": shapiq},
        "settings": {"threads": 1, "limit": 16.0, "clock": "cpu"},
        "minutes": 1.0,
        "measurements": [
            {**facts, "who": "exanova", "seconds": 1.0},
            {**facts, "who": "shapiq TreeExplainer", "seconds": 7.0},
            {**facts, "who": "shapiq TabularExplainer", "seconds": 9.0},
        ],
    }
    assert page.peers(content, "local forest") == ["shapiq TreeExplainer"] * shown + ["shapiq TabularExplainer"]
    said = page.introduction(content)
    assert ("no longer ships" in said) == (not shown)
    assert "processor time" in said


def test_woodelf_gives_the_marginal_game_of_the_class_that_is_explained():
    pytest.importorskip("woodelf", reason="woodelf_explainer is not installed")
    from benchmarks.peers import rows
    from sklearn.ensemble import RandomForestClassifier

    codes = np.array(list(np.ndindex(2, 3, 2)), dtype=float)
    model = RandomForestClassifier(5, random_state=0).fit(codes, codes[:, 0] * codes[:, 1] > 1)
    case = rows.Case(None, codes, model, None)
    explainer = rows.woodelf_trees(case, case.predict, "local")
    total = explainer.explain(codes).sum(axis=1) + explainer.base()
    np.testing.assert_allclose(total, case.predict(codes), atol=1e-6)


def test_every_case_has_its_words(settings):
    from benchmarks.peers.__main__ import jobs, named

    for name in jobs(settings):
        facts = named(name)
        section = next(s for s in SECTIONS if facts["case"] in s.cases)
        assert facts["who"] == "exanova" or facts["who"] in section.choose


def test_the_written_page_is_that_of_its_file(tmp_path):
    if not page.SOURCE.exists():
        pytest.skip("no whole run has been written yet")
    pytest.importorskip("altair", reason="altair is not installed")
    page.write_page(json.loads(page.SOURCE.read_text(encoding="utf-8")), tmp_path)
    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8") == (page.DOCS / "benchmarks.md").read_text("utf-8")


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_a_deadline_goes_by_the_clock_of_the_run(clock):
    """Processor time ends a busy job and not one that waits; the clock ends both."""
    code = (
        "import time\nfrom benchmarks.peers.measuring import deadline\n"
        "with deadline(0.3):\n    time.sleep(0.8)\nprint('waited', flush=True)\n"
        "with deadline(0.3):\n    while True: pass\n"
    )
    environment = {**os.environ, CLOCK: clock, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == ("waited" if clock == "cpu" else "")
    assert was_ended({"failed": f"exit status {done.returncode}"})


def test_a_smoke_test_measures_once(monkeypatch):
    runs = []
    monkeypatch.setenv(ONCE, "1")
    measured(lambda: runs.append(1), None)
    assert len(runs) == 1


def test_an_interrupted_run_is_resumed_where_it_ended(tmp_path):
    done = {"case": "full mild", "size": 4, "who": "purify", "seconds": 0.5}
    (tmp_path / "r.json").write_text(json.dumps({"versions": {}, "measurements": [done]}))
    assert resumed(tmp_path / "r.json") == {"full mild / 4 / purify": done}
    assert "full mild / 4 / purify" in jobs(Settings(tmp_path, tmp_path, quick=True))
