"""Scale: rows from files under a memory limit, the jobs that were slow once, and Algorithm 1 at equal rank.

Run ``python -m benchmarks.scale --results scale.json --page docs/scale.md``. Every measurement is a process of its own,
with one thread, so that its CPU seconds and its peak of memory are its own. After an interruption the same command goes
on where it stopped: what is in the file of results is not measured again, unless it failed, and files in the folder of
``--work`` are not written again. The page is written by this script.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks import scale_files, scale_table
from benchmarks.scale_page import page

Results = dict[str, dict[str, Any]]
"""By job: CPU seconds, peaks of memory in GB, and what came out of it."""

MOST_SECONDS = 900
"""Seconds by the clock after which a measurement is stopped; several times what the longest takes."""


def memory() -> tuple[float, float]:
    """Resident memory of this process in GB: all of it, and without pages of files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    own, anonymous = (int(status.partition(name)[2].split()[0]) * 1024 / 1e9 for name in ("VmRSS:", "RssAnon:"))
    return own, anonymous


class Watch(threading.Thread):
    """Looks at the memory of this process a hundred times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.own = memory()

    def run(self) -> None:
        """Look until the process ends."""
        while True:
            now = memory()
            self.peak, self.own = max(self.peak, now[0]), max(self.own, now[1])
            time.sleep(0.01)


def jobs(most: int, data: Path | None) -> list[str]:
    """The names of all measurements."""
    found = [f"{task}|{kind}|{rows}" for task, kind, rows in scale_files.plan_of_work(max(most, scale_files.FILE_ROWS))]
    return [*found, *scale_table.BEFORE, *(scale_table.PAPER if data else ())]


def run_here(job: str, work: Path, data: Path | None) -> dict[str, Any]:
    watch = Watch()
    watch.start()
    started = time.process_time()
    if "|" in job:
        task, kind, rows = job.split("|")
        found = scale_files.run(work, task, kind, int(rows))
    else:
        found = scale_table.run(job, data)
    peaks = {"peak": watch.peak, "anonymous": watch.own}
    return {"cpu": time.process_time() - started, **peaks, **found}


def measured(job: str, work: Path, data: Path | None) -> dict[str, Any]:
    """One measurement in a process of its own."""
    if "|" in job:  # files are written by this process
        scale_files.files(work, job.split("|")[1], int(job.split("|")[2]))
    command = [sys.executable, "-m", "benchmarks.scale", "--job", job, "--work", str(work)]
    command += ["--data", str(data)] if data else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {MOST_SECONDS} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["without a word"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000_000, help="most rows of files")
    parser.add_argument("--data", type=Path, help="folder with the paper's tables")
    parser.add_argument("--work", type=Path, help="folder for the files; a temporary one by default")
    parser.add_argument("--results", type=Path, help="file of results, to go on from and to write")
    parser.add_argument("--only", default="", help="only the jobs whose names hold this")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    return parser.parse_args()


def main() -> None:
    """Run every job, or the one that is named, and write the page."""
    given = parse()
    if given.job:
        print(json.dumps(run_here(given.job, given.work, given.data)))
        return
    known = given.results is not None and given.results.exists()
    results: Results = json.loads(given.results.read_text()) if known else {}
    with tempfile.TemporaryDirectory() as place:
        for job in jobs(given.rows, given.data):
            if "failed" not in results.get(job, {"failed": "not measured"}) or given.only not in job:
                continue
            results[job] = measured(job, given.work or Path(place), given.data)
            print(job, results[job], flush=True)
            if given.results is not None:
                given.results.write_text(json.dumps(results, indent=1))
    if given.page is not None:
        given.page.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
