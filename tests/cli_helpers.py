"""What the tests of the command share: a small real table with its model, and two ways to run the command."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import exanova
from exanova.cli.entry import run

HOME = str(Path(exanova.__file__).resolve().parent.parent)

LOANS = pd.DataFrame(
    [
        ("none", "rent", "short"),
        ("none", "rent", "short"),
        ("none", "rent", "long"),
        ("none", "parents", "short"),
        ("clerk", "rent", "short"),
        ("clerk", "rent", "long"),
        ("clerk", "own", "short"),
        ("clerk", "own", "long"),
        ("clerk", "parents", "short"),
        ("manager", "rent", "short"),
        ("manager", "own", "short"),
        ("manager", "own", "long"),
    ],
    columns=["job", "home", "term"],
)
RISK = 0.5 * (LOANS["job"] == "none") + 0.25 * ((LOANS["home"] == "rent") & (LOANS["term"] == "long"))
TABLE = LOANS.assign(risk=RISK, safe=1.0 - RISK, w=[1, 2] * 6, id=range(100, 112))
"""Three features, what a model says of them in two columns, weights, and a column that is none of these."""

PREDICTED = ("--prediction", "risk", "--ignore", "id,w,safe", "--population")
"""Roles of the columns; the rows are all there is, so that effects are exact and nothing is said of other rows."""


@dataclass(frozen=True)
class Ended:
    """A run of the command that has ended."""

    code: int
    out: str
    err: str


def process(*arguments, cwd, stdin=None, before=None):
    """Run the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "exanova", *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=environment(),
        preexec_fn=before,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def environment(buffered=True):
    """The environment of such a process: this package, one thread, output with a buffer unless told otherwise."""
    path = os.pathsep.join([HOME, *filter(None, [os.environ.get("PYTHONPATH")])])
    changes = {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}
    return {**os.environ, **changes, "PYTHONUNBUFFERED": "" if buffered else "1"}


def inside(capsys, *arguments):
    """Run the command in this process, for the many small cases."""
    capsys.readouterr()
    code = run(list(map(str, arguments)))
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def refused(ended, *words):
    """One line on standard error that holds these words, exit code 2, and nothing on standard output."""
    assert ended.code == 2, (ended.out, ended.err)
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ended.err
    assert ended.out == ""
    for word in words:
        assert word in lines[0], (word, lines[0])


def listing(folder):
    """Every file below a folder with its contents: what must not change when a run fails."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(Path(folder).rglob("*"))}
