"""Plant one-line bugs, one at a time, and see whether the tests notice.

``mutations.toml`` lists them: a file of the package, a text that occurs in it once, what it becomes, and the tests that
should fail then. The tests run in a copy of the repository, so that this checkout is never changed. A bug that no test
notices SURVIVED; a text that is not found once is an error too, for the list has to stay true as the code changes.

    python scripts/mutate.py                      all of them
    python scripts/mutate.py --only "share"       those whose name contains this
    python scripts/mutate.py --jobs 2 --limit 120 two at a time, two minutes each
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_name("mutations.toml")
PACKAGE = Path("src") / "exanova"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis", "site", "demo")

KILLED, SURVIVED, LOST, BROKEN = "killed", "SURVIVED", "does not apply", "tests cannot run"

NOTICED = 1
"""Exit code of pytest when a test failed; a bug that keeps the package from being imported is no test of anything."""


@dataclass(frozen=True)
class Mutation:
    """One bug: in ``file`` of the package, ``before`` becomes ``after``; ``tests`` are what pytest is given."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str | None:
        """The text with the bug, or ``None`` where it does not occur exactly once."""
        return text.replace(self.before, self.after) if text.count(self.before) == 1 else None


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation."""

    name: str
    verdict: str
    seconds: float
    details: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:<16}{self.seconds:>6.0f} s  {self.name}" + (f"\n{self.details}" if self.details else "")


def listed(path: Path = LIST) -> list[Mutation]:
    """The mutations of a list; names are unique, and every entry changes something."""
    with path.open("rb") as handle:
        entries = tomllib.load(handle)["mutation"]
    found = [Mutation(e["name"], e["file"], e["before"], e["after"], tuple(e["tests"])) for e in entries]
    names = [mutation.name for mutation in found]
    repeated = sorted({name for name in names if names.count(name) > 1})
    idle = [m.name for m in found if m.before == m.after or not m.tests]
    if repeated or idle:
        raise ValueError(f"{path.name}: listed twice: {repeated}; without a change or a test: {idle}")
    return found


def inapplicable(mutations: Sequence[Mutation], root: Path = ROOT) -> list[str]:
    """Names of the mutations whose text is not found once in their file."""
    out = []
    for mutation in mutations:
        path = root / PACKAGE / mutation.file
        if not path.is_file() or mutation.applied(path.read_text(encoding="utf-8")) is None:
            out.append(mutation.name)
    return out


@contextmanager
def copies(count: int) -> Iterator[queue.Queue[Path]]:
    """As many copies of the repository as run at a time."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        free: queue.Queue[Path] = queue.Queue()
        for k in range(count):
            free.put(Path(shutil.copytree(ROOT, Path(folder) / str(k) / "copy", ignore=LEFT_OUT)))
        yield free


def tested(copy: Path, tests: Sequence[str], limit: float, fresh: bool) -> tuple[int, str]:
    """The exit code of pytest in a copy (``NOTICED`` when time is up) and the end of what it printed.

    Compiled kernels are kept beside the copy. A kernel does not see that another one it calls was changed, so that
    ``fresh`` ones are compiled anew where a kernel itself has the bug.
    """
    kept = copy.parent / "kernels"
    with tempfile.TemporaryDirectory() as anew:
        environment = {
            "OPENBLAS_NUM_THREADS": "1",
            **os.environ,
            "PYTHONPATH": str(copy / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": anew if fresh else str(kept),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", *tests]
        process = subprocess.Popen(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return NOTICED, f"stopped after {limit:g} s"
    return process.returncode, output[-1500:]


def tried(mutation: Mutation, free: queue.Queue[Path], limit: float) -> Outcome:
    """Apply one mutation in a free copy, run its tests, and take it back."""
    copy = free.get()
    path = copy / PACKAGE / mutation.file
    start = time.perf_counter()
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    changed = mutation.applied(text)
    try:
        if changed is None:
            times = text.count(mutation.before)
            return Outcome(mutation.name, LOST, 0.0, f"  its text occurs {times} times in {mutation.file}")
        path.write_text(changed, encoding="utf-8")
        code, output = tested(copy, mutation.tests, limit, fresh=path.name.endswith("kernels.py"))
    finally:
        if changed is not None:
            path.write_text(text, encoding="utf-8")
        free.put(copy)
    verdict = KILLED if code == NOTICED else SURVIVED if code == 0 else BROKEN
    return Outcome(mutation.name, verdict, time.perf_counter() - start, output if verdict == BROKEN else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all the mutations asked for; 1 if any of them survived or could not be tried."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="mutations whose name contains this; repeatable"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutations tried at a time")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="time of one run of tests")
    parser.add_argument("--list", action="store_true", help="only say which there are and whether they apply")
    options = parser.parse_args(arguments)
    chosen = [bug for bug in listed() if any(part in bug.name for part in options.only or [""])]
    if options.list or not chosen:
        lost = inapplicable(chosen)
        print(*(f"{LOST if m.name in lost else 'applies':<16}{m.name}" for m in chosen), sep="\n")
        return 1 if lost or not chosen else 0
    with copies(options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:
        copy = free.get()
        selections = sorted({name for mutation in chosen for name in mutation.tests})
        code, output = tested(copy, selections, max(1200.0, options.limit), fresh=False)
        free.put(copy)
        if code != 0:
            print(f"the tests do not pass without any mutation:\n{output}")
            return 1
        outcomes = []
        for outcome in pool.map(lambda mutation: tried(mutation, free, options.limit), chosen):
            outcomes.append(outcome)
            print(outcome, flush=True)
    counts = {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in (KILLED, SURVIVED, LOST, BROKEN)}
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))
    return 0 if counts[KILLED] == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
