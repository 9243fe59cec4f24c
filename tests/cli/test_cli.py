"""The command from end to end, each run in a process of its own on real files."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
import pytest

import exanova
from cli_helpers import LOANS, PREDICTED, RISK, TABLE, environment, listing, process, refused


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and what ``explain`` wrote for it."""
    folder = tmp_path_factory.mktemp("fitted")
    TABLE.to_csv(folder / "loans.csv", index=False)
    ended = process(
        "explain", "loans.csv", *PREDICTED, "--report", "report.html", "--save", "model.exanova", cwd=folder
    )
    assert (ended.code, ended.err) == (0, "")
    (folder / "said.txt").write_text(ended.out)
    return folder


def test_explain_says_what_it_found_and_where_it_is(fitted):
    said = (fitted / "said.txt").read_text()
    for words in (
        "Functional ANOVA of risk",
        "joint distribution",
        "Was it computed exactly? Yes",
        "job",
        "home x term",
    ):
        assert words in said
    assert "report: report.html" in said
    assert "exanova show model.exanova --effect job" in said
    assert {path.name for path in fitted.iterdir()} == {"loans.csv", "report.html", "model.exanova", "said.txt"}


def test_the_terminal_and_the_report_say_the_same_words(fitted, tmp_path):
    said = (fitted / "said.txt").read_text()
    exanova.load(fitted / "model.exanova").report(tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    for sentence in (report["headline"], *report["findings"], *(v["question"] for v in report["verdicts"])):
        assert sentence in said
    assert said.index(report["findings"][0]) < said.index(report["verdicts"][0]["question"]) < said.index("game:")


def test_the_report_and_the_file_hold_the_decomposition(fitted):
    page = (fitted / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "loans.csv" in page
    again = exanova.load(fitted / "model.exanova")
    assert np.allclose(again.predict(LOANS), RISK, atol=1e-12)


def test_the_next_commands_run(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    said = (fitted / "said.txt").read_text()
    offered = [line.split()[1:] for line in said.splitlines() if line.startswith("  exanova ")]
    assert [words[0] for words in offered] == ["show", "rows", "rows"]
    for words in offered:
        ended = process(*words, cwd=tmp_path)
        assert (ended.code, ended.err) == (0, ""), words


def test_rows_adds_up_to_the_model(fitted, tmp_path):
    LOANS.head(5).to_parquet(tmp_path / "new.parquet")
    ended = process("rows", fitted / "model.exanova", "new.parquet", "--output", "values.csv", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "values.csv" in ended.out
    values = pd.read_csv(tmp_path / "values.csv")
    assert list(values) == ["row", "base_value", "job", "home", "term", "fitted", "outside_support"]
    assert not values["outside_support"].any()
    assert np.allclose(values["fitted"], RISK.head(5), atol=1e-12)
    assert np.allclose(values[["base_value", "job", "home", "term"]].sum(axis=1), RISK.head(5), atol=1e-12)


def test_rows_of_an_index_from_a_pipe_to_parquet(fitted, tmp_path):
    compressed = gzip.compress(LOANS.to_csv(index=False).encode())
    words = ("--index", "k-SII", "--order", "2", "--output", tmp_path / "pairs.parquet")
    ended = process("rows", fitted / "model.exanova", "-", *words, cwd=tmp_path, stdin=compressed)
    assert (ended.code, ended.err) == (0, "")
    table = pyarrow.parquet.read_table(tmp_path / "pairs.parquet").to_pandas()
    assert list(table) == ["row", "subset", "order", "value", "outside_support"]
    assert np.allclose(table.groupby("row")["value"].sum(), RISK, atol=1e-12)


@pytest.mark.parametrize("index", ["SV", "k-SII"])
def test_rows_carries_residuals_and_identifiers(fitted, tmp_path, index):
    said = RISK + 0.01 * np.arange(12)
    TABLE.assign(risk=said, id=[f"{k:03}" for k in range(12)]).to_csv(tmp_path / "new.csv", index=False)
    words = ("--prediction", "risk", "--id", "id", "--id", "job", "--index", index, "--output", "values.parquet")
    ended = process("rows", fitted / "model.exanova", "new.csv", *words, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    values = pd.read_parquet(tmp_path / "values.parquet")
    if index == "SV":
        names = ["row", "id", "job_", "base_value", "job", "home", "term", "fitted", "residual", "outside_support"]
        copied = values["job_"]
    else:
        names = ["row", "id", "job", "subset", "order", "value", "residual", "outside_support"]
        copied = values.drop_duplicates("row")["job"]
    one = values.drop_duplicates("row")
    assert list(values) == names
    assert list(one["id"]) == [f"{k:03}" for k in range(12)]
    assert list(copied) == list(LOANS["job"])
    assert np.allclose(one["residual"], 0.01 * np.arange(12), atol=1e-12)
    assert (values.groupby("row")["id"].nunique() == 1).all()


def test_rows_needs_one_prediction_for_each_output(fitted, tmp_path):
    TABLE.to_csv(tmp_path / "new.csv", index=False)
    rows = ("rows", fitted / "model.exanova", "new.csv")
    refused(process(*rows, "--prediction", "risk", "--prediction", "safe", cwd=tmp_path), "2 columns", "1 outputs")
    refused(process(*rows, "--prediction", "home", cwd=tmp_path), "--prediction 'home'", "expected numbers")
    refused(process(*rows, "--id", "nobody", cwd=tmp_path), "no column 'nobody'")


def test_show_and_compare(fitted, tmp_path):
    shown = process("show", fitted / "model.exanova", "--effect", "home:term", "--effect", "job", cwd=tmp_path)
    assert (shown.code, shown.err) == (0, "")
    assert "Effect of home x term" in shown.out
    assert "manager" in shown.out
    after = TABLE.assign(risk=RISK + 0.1 * (LOANS["home"] == "own"))
    after.to_feather(tmp_path / "after.feather")
    made = process("explain", "after.feather", *PREDICTED, "--save", "after.exanova", "--quiet", cwd=tmp_path)
    assert (made.code, made.out, made.err) == (0, "", "")
    compared = process("compare", fitted / "model.exanova", "after.exanova", cwd=tmp_path)
    assert (compared.code, compared.err) == (0, "")
    assert compared.out.index("home ") < compared.out.index("job ")


def test_plan_runs_nothing(tmp_path):
    (tmp_path / "loans.csv.gz").write_bytes(gzip.compress(TABLE.to_csv(index=False).encode()))
    ended = process("plan", "loans.csv.gz", *PREDICTED, "--max-order", "3", "--json", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    plan = json.loads(ended.out)["plan"]
    assert (plan["rows"], plan["distinct_rows"], plan["features"]) == (12, 11, 3)
    assert plan["functions"] >= 11
    assert plan["memory"] > 0
    assert plan["seconds"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["loans.csv.gz"]


def test_demo(tmp_path):
    ended = process("demo", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert "exanova" in ended.out


MODULE = """
import pandas


def risk(table):
    print("a model that talks")
    assert isinstance(table, pandas.DataFrame)
    return 0.5 * (table["job"] == "none") + 0.25 * ((table["home"] == "rent") & (table["term"] == "long"))


def slow(table):
    import pathlib
    import time

    pathlib.Path("asked").touch()
    time.sleep(600)
"""


def test_a_function_of_this_folder_and_one_document_on_standard_output(tmp_path):
    (tmp_path / "score.py").write_text(MODULE)
    LOANS.to_json(tmp_path / "loans.jsonl", orient="records", lines=True)
    ended = process("explain", "loans.jsonl", "--model", "score:risk", "--json", cwd=tmp_path)
    assert ended.code == 0
    assert "a model that talks" in ended.err
    document = json.loads(ended.out)
    assert document["certificate"]["exact"] is True
    assert document["strongest_effects"][0]["features"] == ["job"]
    assert document["mean"] == pytest.approx([RISK.mean()])


def test_an_onnx_model_of_text_with_several_classes(tmp_path):
    model, path = onnx_model(tmp_path / "model.onnx")
    LOANS.to_parquet(tmp_path / "loans.parquet")
    words = ("--population", "--max-order", "all", "--save", "m.exanova", "--json")
    ended = process("explain", "loans.parquet", "--model", path, *words, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["outputs"] == ["high", "low", "medium"]
    again = exanova.load(tmp_path / "m.exanova")
    assert np.allclose(again.predict(LOANS), model.predict_proba(LOANS), atol=1e-6)


def onnx_model(path):
    """A classifier of three classes on text, and the file a converter makes of it."""
    from skl2onnx import to_onnx
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    classes = np.array(["low", "medium", "high"])[(RISK * 4).astype(int).clip(0, 2)]
    encode = make_column_transformer((OneHotEncoder(), list(LOANS)))
    model = make_pipeline(encode, LogisticRegression()).fit(LOANS, classes)
    path.write_bytes(to_onnx(model, LOANS.astype(object)[:1]).SerializeToString())
    return model, path


class Trap:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "model.PICKLE"])
def test_a_pickle_is_never_loaded_unasked(tmp_path, name):
    TABLE.to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / name).write_bytes(pickle.dumps(Trap(tmp_path / "trace")))
    before = listing(tmp_path)
    ended = process("explain", "loans.csv", "--model", name, "--report", "r.html", cwd=tmp_path)
    refused(ended, "pickle", "--trust-pickle")
    assert listing(tmp_path) == before


def test_a_trusted_pickle(tmp_path):
    import joblib
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier()).fit(LOANS, RISK > 0.4)
    joblib.dump(model, tmp_path / "model.joblib")
    TABLE.to_csv(tmp_path / "loans.csv", index=False)
    words = ("--trust-pickle", "--population", "--json")
    ended = process("explain", "loans.csv", "--model", "model.joblib", *words, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["outputs"] == ["P(True)"]


def test_interrupted(tmp_path):
    (tmp_path / "score.py").write_text(MODULE)
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    before = set(tmp_path.iterdir())
    words = ["explain", "loans.csv", "--model", "score:slow", "--report", "r.html", "--save", "m.exanova"]
    running = subprocess.Popen(
        [sys.executable, "-m", "exanova", *words],
        cwd=tmp_path,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(tmp_path / "asked", running)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, b"", b"interrupted\n")
    assert set(tmp_path.iterdir()) - before == {tmp_path / "asked"}


def wait_for(path, running):
    """Until the process has made the file; its own words if it ended before."""
    while not path.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)


def no_more_than(size):
    """What makes a process fail to write a file larger than this, as a full disk would."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_no_room_for_the_report_and_what_was_written_before(tmp_path):
    TABLE.to_csv(tmp_path / "loans.csv", index=False)
    before = listing(tmp_path)
    words = ("explain", "loans.csv", *PREDICTED, "--report", "r.json", "--save", "m.exanova")
    ended = process(*words, cwd=tmp_path, before=no_more_than(12_000))
    refused(ended, "--report", "'r.json' cannot be written (File too large)", "Written before that: 'm.exanova'.")
    after = listing(tmp_path)
    assert after.keys() - before.keys() == {tmp_path / "m.exanova"}
    assert exanova.load(tmp_path / "m.exanova").certificate_.exact


def test_no_room_leaves_the_old_file(fitted, tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "values.csv").write_text("old")
    before = listing(tmp_path)
    words = ("rows", fitted / "model.exanova", "loans.csv", "--output", "values.csv", "--force")
    refused(process(*words, cwd=tmp_path, before=no_more_than(20)), "--output", "values.csv", "File too large")
    assert listing(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("words", "buffered"), [(["show"], True), (["show", "--json"], False), (["rows", "loans.csv"], True)]
)
def test_no_room_on_standard_output(fitted, words, buffered):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "exanova", words[0], "model.exanova", *words[1:]],
            cwd=fitted,
            env=environment(buffered),
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert (done.returncode, done.stderr) == (2, b"error: standard output: No space left on device\n")


@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_stops_reading_is_no_error(fitted, tmp_path, buffered):
    """More than a pipe holds, of which the first line is read; also where nothing is buffered."""
    pd.concat([LOANS] * 500).to_csv(tmp_path / "many.csv", index=False)
    running = subprocess.Popen(
        [sys.executable, "-m", "exanova", "rows", fitted / "model.exanova", tmp_path / "many.csv"],
        env=environment(buffered),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout.readline().startswith(b'"row","base_value"')
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(timeout=60) == 141
    running.stderr.close()


def test_help_comes_without_the_library():
    program = (
        "import sys; from exanova.cli.entry import run; code = run(['--help']);"
        "heavy = {'numpy', 'sklearn', 'altair', 'pandas', 'pyarrow', 'numba', 'narwhals'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "exanova explain data.csv --prediction p" in done.stdout


def test_what_to_install_without_typer():
    program = "import sys; sys.modules['typer'] = None; sys.argv = ['exanova']; import exanova.cli as c; c.main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: the command needs typer; install it with: pip install "exanova[app]"\n'


def test_standard_input_is_a_table_in_any_format(tmp_path):
    buffer = io.BytesIO()
    pyarrow.feather.write_feather(TABLE, buffer)
    words = ("explain", "-", "--format", "feather", *PREDICTED, "--json")
    ended = process(*words, cwd=tmp_path, stdin=buffer.getvalue())
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["distinct_rows"] == 11
