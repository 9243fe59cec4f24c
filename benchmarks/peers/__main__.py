"""The peers, side by side: ``python -m benchmarks.peers --data DIR [--only CASE] [--quick]``.

The same model, rows, machine and threads for all, in one run: every measurement in a process of its own, compiling and
first touches apart, medians of repeats, a limit of time and of memory for each. What was measured goes to
benchmarks/results and, after a whole run, to docs/benchmarks.json, from which the page is made.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import exanova
from benchmarks.harness import RESULTS, Facts, peak, run_job
from benchmarks.peers import boosting, grams, grids, page, rows
from benchmarks.peers.measuring import CLOCK, CLOCKS, ONCE, Job, Settings, in_own_words, was_ended
from exanova import parallel
from exanova.errors import ExanovaError

MODULE = "benchmarks.peers"
OURS = "exanova"
PEERS = ("interpret-core", "shap", "shapiq", "tabmat", "treehfd", "woodelf_explainer", "xgboost")
BELOW = ("scikit-learn", "numpy", "scipy", "numba", "pandas")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    """Run every job, or the one that is named."""
    options = parse()
    settings = Settings(options.data, options.work, options.threads, options.limit, options.quick)
    if options.job:
        ours = named(options.job)["who"] == OURS
        found = in_own_words(jobs(settings)[options.job], ExanovaError if ours else Exception)
        print(json.dumps({"seconds": None, "peak": peak()} | found))
        return 0
    os.environ[CLOCK] = options.clock
    if options.quick:
        os.environ[ONCE] = "1"
    with tempfile.TemporaryDirectory() as work:
        return measure(replace(settings, work=Path(work)), options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument(
        "--only", default="", help="only the measurements whose names begin like one of these, by commas"
    )
    parser.add_argument("--update", action="store_true", help="put what --only measured in the place of what is there")
    parser.add_argument("--resume", type=Path, help="a file of results of an earlier run with the same settings")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="seconds of the clock or of the processor"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small tables, each measured once: shows in about a minute that everything runs",
    )
    parser.add_argument("--threads", type=int, default=parallel.available_cores(), help="threads of every process")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds one measurement may take (default: 40)")
    parser.add_argument("--work", type=Path, default=Path(), help=argparse.SUPPRESS)
    parser.add_argument("--job", help="run one measurement in this process and print what it found as JSON")
    return parser.parse_args()


def jobs(settings: Settings) -> dict[str, Job]:
    """Every measurement by name: case / size / who."""
    return {name: job for part in (grids, boosting, rows, grams) for name, job in part.jobs(settings).items()}


def measure(settings: Settings, options: argparse.Namespace) -> int:
    """Run the measurements one after the other, keep them, and write the page after a whole run or an update."""
    os.environ.update(dict.fromkeys(THREADS, str(settings.threads)))
    versions = {"exanova": exanova.__version__, "python": platform.python_version()} | installed()
    print(", ".join(f"{name} {number}" for name, number in versions.items()), file=sys.stderr)
    started = time.perf_counter()
    names = [name for name in jobs(settings) if name.startswith(tuple(options.only.split(",")))]
    path = RESULTS / f"peers-{time.strftime('%Y%m%d-%H%M%S')}.json"
    found: list[Facts] = []
    former = {} if options.resume is None else resumed(options.resume)
    for name in names:
        found.append(former.get(name) or {**named(name), **one(name, settings)})
        write({"versions": versions, "measurements": found}, path)  # an interrupted run is not lost
    content = {
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": parallel.available_cores()},
        "versions": versions,
        "settings": {
            "quick": settings.quick,
            "threads": settings.threads,
            "limit": settings.limit,
            "clock": options.clock,
        },
        "minutes": round((time.perf_counter() - started) / 60, 1),
        "measurements": found,
    }
    write(content, path)
    print(page.tables(content))
    print(f"\nEverything that was measured: {os.path.relpath(path)}")
    if not settings.quick and (options.update or not options.only):
        whole = updated(json.loads(page.SOURCE.read_text(encoding="utf-8")), content) if options.update else content
        write(whole, page.SOURCE)
        page.write_page(whole, page.DOCS)
    return 1 if any("failed" in facts for facts in found) else 0


def resumed(path: Path) -> dict[str, Facts]:
    """The measurements of an interrupted run, by name."""
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    return {f"{m['case']} / {m['size']} / {m['who']}": m for m in found}


def updated(known: Facts, new: Facts) -> Facts:
    """Results in which what a new run measured has taken the place of the former; each keeps the facts of its run."""
    done = page.jobs_of(new["measurements"])
    kept = [{**run, "jobs": [job for job in run["jobs"] if job not in done]} for run in page.runs(known)]
    listed = joined([run for run in [*kept, {**new, "jobs": done}] if run["jobs"]])
    former = [m for m in known["measurements"] if page.job(m) not in done]
    order = list(dict.fromkeys([*page.jobs_of(known["measurements"]), *done]))
    measurements = sorted([*former, *new["measurements"]], key=lambda m: order.index(page.job(m)))
    return {"runs": listed, "measurements": measurements}


def joined(runs: Sequence[Facts]) -> list[Facts]:
    """Runs with the same machine, versions and settings as one."""
    found: dict[str, Facts] = {}
    for run in runs:
        same = {key: run[key] for key in ("machine", "versions", "settings")}
        one = found.setdefault(json.dumps(same), {"jobs": [], **same, "minutes": 0.0})
        one["jobs"] = [*one["jobs"], *run["jobs"]]
        one["minutes"] = round(one["minutes"] + run["minutes"], 1)
    return list(found.values())


def installed() -> dict[str, str]:
    """Versions of the peers; a dash for one that is not there."""

    def number(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "-"

    return {name: number(name) for name in (*PEERS, *BELOW)}


def named(name: str) -> Facts:
    case, size, who = name.split(" / ")
    return {"case": case, "size": int(size) if size.isdigit() else size, "who": who}


def one(name: str, settings: Settings) -> Facts:
    """One measurement; a job that its deadline ended says so."""
    facts = run_job(MODULE, name, settings.arguments())
    if was_ended(facts):
        return {"over": settings.limit}
    return facts


def write(content: Facts, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
