"""Two versions of the source side by side: ``python -m benchmarks.versions --data DIR --before OLD/src``.

Each case is an exact fit (or explanations of it) on the same arrays. The versions take turns, each run in a process of
its own with one thread, and what counts is the smallest processor time of a version. A case that is known to be faster
after its first turn, or that takes more than ten seconds, has one turn; the others have two. Every case is written to a
file as soon as it is measured, ``--resume`` goes on with that file, and when all cases are in it docs/speed.md is
written. ``--only MNIST`` measures some cases and writes no page.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import versions_page
from benchmarks.harness import RESULTS, Facts
from benchmarks.version_cases import cases, groups

HERE = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")

SHORT, LONG = 1.0, 10.0
"""Seconds up to which a fit is run three times in its process, and twice; the first run does not count."""

TURNS, CLEAR = 2, 0.95
"""Turns of a case, and the ratio below which one is enough."""


def timed(job: Callable[[], Any]) -> float:
    """Smallest processor time in milliseconds of runs after the first, which loads what is compiled; a long job's only
    run.
    """
    first = clocked(job)
    if first > LONG:
        return 1000 * first
    return 1000 * min(clocked(job) for _ in range(2 if first <= SHORT else 1))


def clocked(job: Callable[[], Any]) -> float:
    """Processor time of one run, in seconds."""
    start = time.process_time()
    job()
    return time.process_time() - start


def run(source: Path, case: str, data: Path) -> float:
    """Milliseconds of one case in a process of its own that imports the package from ``source``."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": f"{source}{os.pathsep}{HERE}"}
    command = [sys.executable, "-m", "benchmarks.versions", "--data", str(data), "--case", case]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case!r} failed with the package in {source}; its error is above")
    return float(json.loads(done.stdout.splitlines()[-1]))


def compared(sources: dict[str, Path], case: str, data: Path) -> Facts:
    """Milliseconds of every run of one case by each version, and the load of the machine when it began."""
    found: Facts = {"load": os.getloadavg()[0], **{version: [] for version in sources}}
    for _ in range(TURNS):
        for version, source in sources.items():
            found[version].append(run(source, case, data))
        if is_settled(found):
            break
    return found


def is_settled(found: Facts) -> bool:
    """Whether a case needs no further turn."""
    before, after = min(found["before"]), min(found["after"])
    return max(before, after) > 1000 * LONG or after < CLEAR * before


def fingerprint(source: Path) -> str:
    """A hash of the modules of a package, so that measurements of two states of it are not mixed."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def commit(source: Path) -> str:
    """The commit that is checked out where the source lies; empty if there is none."""
    command = ["git", "-C", str(source), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def begun(path: Path, sources: dict[str, Path], resume: bool) -> Facts:
    """An empty run of these sources, or the one in the file, which must be of the same sources."""
    facts: Facts = {"sources": {version: fingerprint(source) for version, source in sources.items()}, "cases": {}}
    facts["commits"] = {version: commit(source) for version, source in sources.items()}
    if not resume or not path.exists():
        return facts
    known: Facts = json.loads(path.read_text(encoding="utf-8"))
    if known["sources"] != facts["sources"]:
        raise SystemExit(f"{path} was measured on other sources; leave --resume out to measure everything again")
    return known


def measure(options: argparse.Namespace) -> Facts:
    """Measure the cases that are named and not in the file yet; one line and one entry of the file for each."""
    sources = {"before": options.before.resolve(), "after": options.after.resolve()}
    facts = begun(options.results, sources, options.resume)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for case in cases(options.data):
        if options.only in case and case not in facts["cases"]:
            found = facts["cases"][case] = compared(sources, case, options.data)
            print(versions_page.line(case, found), flush=True)
            options.results.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def main() -> None:
    """Compare two versions, or time one case of the version on the path."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--before", type=Path, help="folder src of the earlier version")
    parser.add_argument("--after", type=Path, default=HERE / "src", help="folder src of the later version")
    parser.add_argument("--only", default="", help="only cases with this in their name; no page is written")
    parser.add_argument("--results", type=Path, default=RESULTS / "versions.json", help="file of the measurements")
    parser.add_argument("--resume", action="store_true", help="keep the cases in that file and measure the others")
    parser.add_argument("--case", help="time this case in this process and print its milliseconds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case:
        print(json.dumps(timed(cases(options.data)[options.case]())))
        return
    if options.before is None:
        parser.error("--before is needed: the folder src of another version")
    facts = measure(options)
    if not options.only:
        names = {title: list(group) for title, group in groups(options.data).items()}
        print(versions_page.write(facts, names))


if __name__ == "__main__":
    main()
