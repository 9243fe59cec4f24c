"""What goes wrong on the command line: one line that says what and what to do, exit code 2, nothing half written."""

from __future__ import annotations

import json
import os
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import typer
from typer.main import get_group

import exanova
from cli_helpers import LOANS, PREDICTED, RISK, TABLE, inside, listing, refused
from exanova import FunctionalANOVA, atomic_files
from exanova.cli.app import EXCLUDED, NEEDED, app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the table and a decomposition of it."""
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("loans.csv", index=False)
    FunctionalANOVA(shrinkage=None).fit(LOANS, RISK, output_names=["risk"]).save("model.exanova")
    return tmp_path


EXPLAIN = ("explain", "loans.csv", *PREDICTED)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain"], "Missing argument 'DATA'. See exanova explain --help."),
        (["nosuch"], "No such command 'nosuch'"),
        (["explain", "--nosuch"], "No such option: --nosuch"),
        (["explain", "loans.csv"], "give either --prediction COLUMN"),
        ([*EXPLAIN, "--model", "m.onnx"], "give either --prediction COLUMN"),
        ([*EXPLAIN, "--output-names", "a"], "predictions have the names of their columns"),
        (["explain", "loans.csv", "--prediction", "rsk"], "no column 'rsk' in 'loans.csv'. Did you mean 'risk'?"),
        ([*EXPLAIN, "--max-order", "two"], "--max-order 'two' was given; expected a whole number, or 'all'"),
        ([*EXPLAIN, "--max-order", "-1"], "--max-order -1 was given; expected a whole number of at least 0, or all"),
        ([*EXPLAIN, "--basis", "best"], "--basis best was given; expected pure or paper"),
        ([*EXPLAIN, "--ties", "best"], "--ties best was given"),
        ([*EXPLAIN, "--route", "best"], "--route best was given"),
        ([*EXPLAIN, "--selection", "screen"], "give --max-terms"),
        ([*EXPLAIN, "--max-terms", "0"], "--max-terms 0 was given"),
        (
            [*EXPLAIN, "--subsets", "job:hom"],
            "--subsets names 'hom', which is not a feature. Did you mean 'home'?",
        ),
        ([*EXPLAIN, "--n-bins", "job=x"], "--n-bins 'x' was given"),
        ([*EXPLAIN, "--n-bins", "job=3"], "--n-bins names the column 'job'"),
        ([*EXPLAIN, "--n-bins", "3,4"], "--n-bins"),
        ([*EXPLAIN, "--max-levels", "job=x"], "--max-levels 'x' was given"),
        ([*EXPLAIN, "--max-levels", "1"], "--max-levels 1 was given; expected an integer of at least 2, auto or none"),
        ([*EXPLAIN, "--min-frequency", "rare"], "--min-frequency 'rare' was given"),
        ([*EXPLAIN, "--min-frequency", "1.5"], "--min-frequency 1.5 was given"),
        ([*EXPLAIN, "--memory-limit", "much"], "--memory-limit much is not a size"),
        ([*EXPLAIN, "--memory-limit", "100 B"], "--memory-limit"),
        ([*EXPLAIN, "--n-jobs", "0"], "--n-jobs 0 was given"),
        ([*EXPLAIN, "--eval", "1.5"], "--eval '1.5' was given"),
        ([*EXPLAIN, "--eval", "none.csv"], "'none.csv' cannot be read"),
        ([*EXPLAIN, "--weight", "job"], "--weight 'job' holds 'none' in row 0"),
        (["explain", "-", *PREDICTED, "--eval", "-"], "standard input can be read only once"),
        (["rows", "model.exanova", "none.csv"], "'none.csv' cannot be read"),
        (["rows", "loans.csv", "loans.csv"], "'loans.csv' is not a decomposition saved by exanova"),
        (["rows", "model.exanova", "loans.csv", "--index", "best"], "--index best was given"),
        (["rows", "model.exanova", "loans.csv", "--order", "0"], "'--order'"),
        (["rows", "model.exanova", "loans.csv", "--handle-unknown", "maybe"], "--handle-unknown maybe was given"),
        (["show", "none.exanova"], "'none.exanova' cannot be read"),
        (["show", "model.exanova", "--effect", "hom"], "Did you mean 'home'?"),
        (["show", "model.exanova", "--effect", "job:job"], "names a feature twice"),
        (["show", "model.exanova", "--effect", "job:home:term"], "larger --max-order"),
        (["compare", "model.exanova", "loans.csv"], "'loans.csv' is not a decomposition"),
        (["plan", "loans.csv", "--max-order", "3", "--memory-limit", "100 B", "--ignore", "id"], "memory"),
    ],
)
def test_what_cannot_be_done(folder, capsys, words, said):
    before = listing(folder)
    refused(inside(capsys, *words), said)
    assert listing(folder) == before


def test_columns_that_are_no_categories(folder, capsys):
    table = pd.DataFrame({"id": [f"u{k}" for k in range(60)], "size": np.linspace(0, 1, 60), "job": list("abc") * 20})
    table.assign(p=0.5).to_csv("t.csv", index=False)
    words = ("explain", "t.csv", "--prediction", "p")
    ended = inside(capsys, *words)
    assert ended.code == 0
    assert ended.err.startswith("warning: 1 column is left out")
    assert "'id' (60 different values)" in ended.err
    assert "leave it out with --ignore id" in ended.err
    table.assign(p=0.5, key=table["id"]).to_csv("t2.csv", index=False)
    assert "leave them out with --ignore id,key" in inside(capsys, "explain", "t2.csv", "--prediction", "p").err
    words = (*words, "--ignore", "id")
    remedy = "Pass --n-bins auto to bin them, or --n-bins size=8 for this number of intervals each, or read it as"
    refused(inside(capsys, *words, "--n-bins", "none"), "'size' (60 different values)", remedy, "--text size")
    for bins in ("auto", "4", "size=5", "size=auto,job=none"):
        assert inside(capsys, *words, "--n-bins", bins).code == 0


def test_columns_that_new_rows_do_not_have(folder, capsys):
    LOANS.rename(columns={"home": "Home"}).to_csv("new.csv", index=False)
    refused(inside(capsys, "rows", "model.exanova", "new.csv"), "no column 'home' in 'new.csv'. Did you mean 'Home'?")


def test_levels_and_combinations_never_seen(folder, capsys):
    pd.DataFrame({"job": ["none", "pilot"], "home": ["own", "rent"], "term": ["long", "long"]}).to_csv(
        "n.csv", index=False
    )
    refused(inside(capsys, "rows", "model.exanova", "n.csv"), "'pilot'", "--handle-unknown ignore")
    ended = inside(capsys, "rows", "model.exanova", "n.csv", "--handle-unknown", "ignore", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["outside_support"] == 2
    assert ended.err.startswith("warning: 2 of 2 rows hold a combination of levels that never occurred")
    assert len(ended.err.splitlines()) == 1
    assert "--strict" in ended.err
    known = ("rows", "model.exanova", "n.csv", "--handle-unknown", "ignore", "--strict")
    refused(inside(capsys, *known), "2 of 2 rows hold a combination")


def test_decompositions_that_cannot_be_compared(folder, capsys):
    FunctionalANOVA(shrinkage=None).fit(LOANS, RISK, output_names=["other"]).save("other.exanova")
    FunctionalANOVA(shrinkage=None).fit(LOANS[["job"]], RISK, output_names=["risk"]).save("fewer.exanova")
    refused(inside(capsys, "compare", "model.exanova", "other.exanova"), "--output-names")
    refused(inside(capsys, "compare", "model.exanova", "fewer.exanova"), "different columns")


# Files that are written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--report", "r.pdf"], "--report 'r.pdf' was given; expected a name ending in .html"),
        (["--report", "none/r.html"], "--report 'none/r.html' cannot be written: 'none': No such file or directory"),
        (["--save", "loans.csv/m.exanova"], "cannot be written: 'loans.csv': Not a directory"),
        (["--save", "folder"], "--save 'folder' is a folder"),
        (["--save", "/proc/m.exanova"], "--save '/proc/m.exanova' cannot be written"),
        (["--save", "/dev/null", "--force"], "'/dev/null' is a device"),
        (["--save", "loans.csv", "--force"], "'loans.csv' is read in the same run"),
        (["--save", "./link.csv", "--force"], "is read in the same run"),
        (["--eval", "eval.csv", "--report", "eval.csv", "--force"], "is read in the same run"),
        (["--save", "same.json", "--report", "./same.json"], "save is written there in the same run"),
        (["--save", "old.exanova"], "--save 'old.exanova' exists; add --force to replace it"),
        (["--save", "dangling"], "--save 'dangling' exists"),
        (["--save", ""], "--save"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_the_work(folder, capsys, monkeypatch, words, said):
    monkeypatch.setattr(FunctionalANOVA, "fit", lambda *_, **__: pytest.fail("the work began"))
    (folder / "folder").mkdir()
    (folder / "old.exanova").write_text("old")
    (folder / "eval.csv").write_text("a\n")
    os.symlink("loans.csv", "link.csv")
    os.symlink("nowhere", "dangling")
    before = listing(folder)
    refused(inside(capsys, *EXPLAIN, *words), said)
    assert listing(folder) == before


def test_force_replaces(folder, capsys):
    (folder / "new.exanova").write_text("old")
    (folder / "r.json").write_text("old")
    words = ("--save", "new.exanova", "--report", "r.json", "--force", "-q")
    ended = inside(capsys, *EXPLAIN, *words)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert exanova.load("new.exanova").certificate_.exact
    assert json.loads((folder / "r.json").read_text())["outputs"] == ["risk"]


def test_a_file_that_appears_meanwhile_is_kept(folder, capsys, monkeypatch):
    fit = FunctionalANOVA.fit

    def slow_fit(self, *given, **named):
        (folder / "r.json").write_text("of somebody else")
        return fit(self, *given, **named)

    monkeypatch.setattr(FunctionalANOVA, "fit", slow_fit)
    ended = inside(capsys, *EXPLAIN, "--save", "new.exanova", "--report", "r.json")
    refused(ended, "--report 'r.json' exists", "Written before that: 'new.exanova'.")
    assert (folder / "r.json").read_text() == "of somebody else"


@pytest.mark.parametrize(
    "words", [[*EXPLAIN, "--save", "o.exanova"], ["rows", "model.exanova", "loans.csv", "-o", "o.csv"]]
)
def test_a_full_disk_leaves_nothing(folder, capsys, monkeypatch, words):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    before = listing(folder)
    refused(inside(capsys, *words), "cannot be written (No space left on device)")
    assert listing(folder) == before


def test_rows_writes_what_the_name_says(folder, capsys):
    for name, read in {
        "v.csv": pd.read_csv,
        "v.tsv": lambda path: pd.read_csv(path, sep="\t"),
        "v.parquet": pd.read_parquet,
        "v.feather": pd.read_feather,
    }.items():
        assert inside(capsys, "rows", "model.exanova", "loans.csv", "--output", name).code == 0
        assert np.allclose(read(name)["fitted"], RISK, atol=1e-12)
    refused(inside(capsys, "rows", "model.exanova", "loans.csv", "-o", "v.xlsx"), "expected a name ending in .csv")
    refused(inside(capsys, "rows", "model.exanova", "loans.csv", "-o", "v.csv"), "'v.csv' exists")
    refused(inside(capsys, "rows", "model.exanova", "loans.csv", "-o", "loans.csv"), "is read in the same run")


# What is said


def test_debug_shows_where(folder, capsys):
    ended = inside(capsys, "show", "none.exanova", "--debug")
    assert ended.code == 2
    assert "Traceback (most recent call last)" in ended.err
    assert ended.err.splitlines()[-1].startswith("error: 'none.exanova' cannot be read")


def test_an_error_nobody_foresaw_is_one_line_too(folder, capsys, monkeypatch):
    def surprise(*_, **__):
        raise KeyError("x\n\x1b[31m")

    monkeypatch.setattr("exanova.cli.saved_commands.load", surprise)
    refused(inside(capsys, "show", "model.exanova"), "unexpected KeyError", "--debug")
    assert "\x1b" not in inside(capsys, "show", "model.exanova").err


def test_out_of_memory_and_interrupted(folder, capsys, monkeypatch):
    def ends_with(error):
        def load(*_):
            raise error

        monkeypatch.setattr("exanova.cli.saved_commands.load", load)
        return inside(capsys, "show", "model.exanova")

    refused(ends_with(MemoryError()), "out of memory")
    for error in (KeyboardInterrupt(), typer.Abort()):  # also where it reaches nobody who reads the command line
        with monkeypatch.context() as patch:
            patch.setattr("exanova.cli.entry._invoke", mock.Mock(side_effect=error))
            ended = inside(capsys, "show", "model.exanova")
        assert (ended.code, ended.out, ended.err) == (130, "", "interrupted\n")
    ended = ends_with(KeyboardInterrupt())
    assert (ended.code, ended.out, ended.err) == (130, "", "interrupted\n")


HOSTILE = ["[red]x[/red]", "\x1b[31mred", "a\nb", ":smile:", "", "<script>", "‮ltr", "=1+1"]


def test_hostile_names_are_text(folder, capsys):
    """Names are shown as they are: no markup, no escapes of a terminal, no line of their own."""
    frame = pd.DataFrame({"[bold]f[/bold]": HOSTILE, "\x1b[2Jg": list("uvuvuvuv")})
    FunctionalANOVA(shrinkage=None).fit(frame, np.arange(8.0) ** 2, output_names=["[link]o"]).save("h.exanova")
    shown = inside(capsys, "show", "h.exanova")
    effect = inside(capsys, "show", "h.exanova", "--effect", "[bold]f[/bold]")
    for ended in (shown, effect):
        assert (ended.code, ended.err) == (0, "")
        assert "\x1b" not in ended.out
        assert "‮" not in ended.out
        assert "[bold]f[/bold]" in ended.out
    assert "[link]o" in shown.out
    for text in ("[red]x[/red]", "\\x1b[31mred", "a\\nb", ":smile:", "(empty)", "<script>"):
        assert text in effect.out
    frame.to_parquet("h.parquet")
    ended = inside(capsys, "rows", "h.exanova", "h.parquet", "--json")
    assert [row["fitted"] for row in json.loads(ended.out)["values"]] == pytest.approx(list(np.arange(8.0) ** 2))


def test_columns_of_values_never_share_a_name(folder, capsys):
    frame = pd.DataFrame({"row": list("abab"), "fitted": list("uuvv"), "base_value": list("xyyx")})
    outputs = np.stack([np.arange(4.0), -np.arange(4.0)], axis=1)
    FunctionalANOVA(shrinkage=None).fit(frame, outputs, output_names=["p", "q"]).save("two.exanova")
    FunctionalANOVA(shrinkage=None).fit(frame, outputs[:, 0]).save("one.exanova")
    frame.to_csv("f.csv", index=False)
    for saved, width in {"one": 7, "two": 12}.items():
        assert inside(capsys, "rows", f"{saved}.exanova", "f.csv", "-o", f"{saved}.parquet").code == 0
        values = pd.read_parquet(f"{saved}.parquet")
        assert values.shape == (4, width)
        assert values.columns.is_unique
        if saved == "one":
            assert np.allclose(values["fitted_"], np.arange(4.0))
            assert np.allclose(values[["base_value_", *frame]].sum(axis=1), np.arange(4.0))
    assert np.allclose(values["p:fitted_"], np.arange(4.0))
    assert np.allclose(values["q:fitted_"], -np.arange(4.0))
    assert np.allclose(values[["p:base_value_", "p:row", "p:fitted", "p:base_value"]].sum(axis=1), np.arange(4.0))


# What is explained


def test_options_reach_the_library(folder, capsys):
    words = ("--weight", "w", "--max-order", "1", "--ties", "first", "--eval", "0.25", "--features", "job,home")
    ended = inside(capsys, "explain", "loans.csv", "--prediction", "risk", "--prediction", "safe", *words, "--json")
    assert ended.code == 0
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("warning: the effects describe these rows better than others: R2 of 'safe' is ")
    assert "on held-out rows (and 1 other output); more rows would help" in ended.err
    found = json.loads(ended.out)
    assert found["outputs"] == ["risk", "safe"]
    assert found["plan"]["max_order"] == 1
    assert len(found["certificate"]["r2_eval"]) == 2
    assert {record["feature"] for record in found["importance"]} == {"job", "home"}
    for asked, shrinkage in {("--shrinkage", "none"): None, ("--sample",): "auto", ("--population",): "auto"}.items():
        assert (
            inside(capsys, "explain", "loans.csv", *PREDICTED[:4], *asked, "--save", "s.exanova", "--force").code == 0
        )
        made = exanova.load("s.exanova")
        assert made.shrinkage == shrinkage
        assert made.sampled == {"--sample": True, "--population": False}.get(asked[0], "auto")
        assert inside(capsys, "plan", "loans.csv", *PREDICTED[:4], *asked).code == 0
    weighted = inside(capsys, "explain", "loans.csv", *PREDICTED[:2], "--ignore", "id,safe", "--weight", "w", "--json")
    assert json.loads(weighted.out)["mean"] == pytest.approx([np.average(RISK, weights=TABLE["w"])])
    named = inside(capsys, *EXPLAIN, "--subsets", "job:home,term", "--effects", "99", "--json")
    subsets = {tuple(e["features"]) for e in json.loads(named.out)["strongest_effects"]}
    assert subsets == {("job",), ("home",), ("term",), ("job", "home")}
    former = inside(capsys, *EXPLAIN, "--interactions", "job:home,term", "--effects", "99", "--json")
    assert json.loads(former.out)["strongest_effects"] == json.loads(named.out)["strongest_effects"]
    assert "--interactions" not in inside(capsys, "explain", "--help").out


def test_held_out_rows_in_a_file(folder, capsys):
    TABLE.head(6)[["safe", "risk", "term", "home", "job"]].to_csv("held.csv", index=False)
    ended = inside(capsys, *EXPLAIN, "--eval", "held.csv", "--json")
    assert json.loads(ended.out)["certificate"]["r2_eval"] == pytest.approx([1.0])
    TABLE.head(6)[["risk", "term", "home"]].to_csv("lacks.csv", index=False)
    refused(inside(capsys, *EXPLAIN, "--eval", "lacks.csv"), "no column 'job' in 'lacks.csv'")


def test_rows_of_weight_zero_are_in_no_report(folder, capsys):
    """Their levels were never learned, so that a report that showed them would fail."""
    TABLE.assign(w=[0, *[1] * 11], job=["only here", *LOANS["job"][1:]]).to_csv("zero.csv", index=False)
    ended = inside(
        capsys,
        "explain",
        "zero.csv",
        "--prediction",
        "risk",
        "--ignore",
        "id,safe",
        "--population",
        "--weight",
        "w",
        "--report",
        "z.json",
    )
    assert (ended.code, ended.err) == (0, "")
    assert "only here" not in (folder / "z.json").read_text()


def test_a_report_of_a_saved_decomposition(folder, capsys):
    ended = inside(capsys, "show", "model.exanova", "--report", "r.md")
    assert (ended.code, ended.err) == (0, "")
    assert "report: r.md" in ended.out
    assert "job" in (folder / "r.md").read_text()
    ended = inside(capsys, *EXPLAIN, "--report", "t.md", "--title", "All our loans")
    assert "All our loans" in (folder / "t.md").read_text()


def test_a_report_is_refused_at_once_where_it_cannot_be_made(folder, capsys, monkeypatch):
    monkeypatch.setattr("exanova.packages.find_spec", lambda name: None)
    refused(inside(capsys, *EXPLAIN, "--report", "r.html"), "needs jinja2", "exanova[app]")


def test_json_of_everything(folder, capsys):
    effect = json.loads(inside(capsys, "show", "model.exanova", "--effect", "job", "--json").out)["effects"][0]
    assert [cell["levels"] for cell in effect["cells"]] == [["clerk"], ["manager"], ["none"]]
    values = json.loads(inside(capsys, "rows", "model.exanova", "loans.csv", "--index", "k-SII", "--json").out)[
        "values"
    ]
    assert {line["subset"] for line in values} >= {"(intercept)", "job", "home x term"}
    compared = json.loads(inside(capsys, "compare", "model.exanova", "model.exanova", "--json", "--changes", "1").out)
    assert len(compared["changes"]) == 1
    said = json.loads(inside(capsys, "rows", "model.exanova", "loans.csv", "-o", "v.csv", "--json").out)
    assert (said["output"], said["rows"], said["outside_support"]) == ("v.csv", 12, 0)


@pytest.mark.parametrize("command", ["explain", "rows", "show", "compare", "plan", "demo"])
def test_every_help_teaches_with_examples(capsys, command):
    ended = inside(capsys, command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"exanova {command}" in ended.out.split("Examples")[1]


def test_without_a_command_the_help_is_shown(capsys):
    assert inside(capsys).out == inside(capsys, "--help").out
    assert inside(capsys, "--version").out == f"exanova {exanova.__version__}\n"


NEEDED_ARGUMENTS = {
    "explain": EXPLAIN[1:],
    "plan": EXPLAIN[1:],
    "demo": (),
    "rows": ("model.exanova", "loans.csv"),
    "show": ("model.exanova",),
    "export": ("model.exanova", "book.json"),
    "compare": ("model.exanova", "model.exanova"),
    "difference": ("model.exanova", "loans.csv", "--by", "home"),
    "relativities": ("model.exanova",),
    "report": ("model.exanova", "report.json"),
    "levels": ("loans.csv", "--output", "levels.json"),
    "moments": ("loans.csv", "--output", "m.moments", "--levels", "levels.json", "--prediction", "risk"),
    "merge": ("m.moments", "--output", "all.moments"),
}
"""Arguments that each command needs."""

OPTIONS = [
    (name, p.opts[0])
    for name, command in get_group(app).commands.items()
    for p in command.params
    if p.param_type_name == "option" and not p.is_flag
]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_nonsense_for_any_option_is_one_line_or_means_something(folder, capsys, command, option):
    for value in ("no", "-1"):
        ended = inside(capsys, command, *NEEDED_ARGUMENTS[command], option, value)
        assert "unexpected" not in ended.err
        if ended.code:
            refused(ended)


@pytest.mark.parametrize(
    ("command", "own", "other"),
    [(c, own, other) for table in (NEEDED, EXCLUDED) for c, options in table.items() for own, other in options.items()],
)
def test_an_option_that_would_be_ignored_is_refused(folder, capsys, command, own, other):
    params = {p.name: p for p in get_group(app).commands[command].params}
    words = [params[own].opts[0], *([] if params[own].is_flag else ["1"])]
    words += [params[other].opts[0], "1"] if own in EXCLUDED.get(command, {}) else []
    refused(inside(capsys, command, *NEEDED_ARGUMENTS[command], *words), params[own].opts[0], params[other].opts[0])


def test_columns_to_read_as_text_are_those_of_the_table(folder, capsys):
    refused(inside(capsys, *EXPLAIN, "--text", "jbo"), "--text names 'jbo'", "no such column")
    os.mkdir("parts")
    TABLE.to_csv("parts/a.csv", index=False)
    refused(inside(capsys, "explain", "parts", *PREDICTED, "--text", "jbo"), "--text names 'jbo'")


def test_a_cluster_does_not_read_a_single_file(folder, capsys):
    refused(inside(capsys, *EXPLAIN, "--dask", "tcp://127.0.0.1:1"), "--dask", "single file")
