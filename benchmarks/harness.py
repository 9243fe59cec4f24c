"""Timing, peak memory, one process a job, the table and the file of results. Knows nothing of what is measured."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

Facts = dict[str, Any]
"""What a job found: ``seconds``, ``peak`` in bytes, and whatever else it wants to say; plain JSON."""


Clock = Callable[[], float]
"""Seconds since some moment: of the day, or of the processor."""


def timed(
    work: Callable[[], Any], repeats: int | Callable[[float], int] = 3, clock: Clock = time.perf_counter
) -> tuple[Facts, Any]:
    """Run once to compile and warm up, then ``repeats`` times: the median counts, all are recorded.

    ``repeats`` may depend on how long the first run took; with none, the first run is what counts.
    ``cores`` is the processor time a second: far below the number of threads, something else was running.
    """
    before = time.process_time()
    first, result = clocked(work, clock)
    count = repeats(first) if callable(repeats) else repeats
    times = []
    if count:
        before = time.process_time()
    for _ in range(count):
        result = None  # the last result must not stand beside the next one in memory
        seconds, result = clocked(work, clock)
        times.append(seconds)
    times = times or [first]
    cores = (time.process_time() - before) / max(sum(times), 1e-9)
    return {"seconds": statistics.median(times), "first": first, "times": times, "cores": cores}, result


def once(work: Callable[[], Any]) -> tuple[Facts, Any]:
    """Run a long job a single time: nothing in it is compiled while it runs."""
    seconds, result = clocked(work)
    return {"seconds": seconds}, result


def clocked(work: Callable[[], Any], clock: Clock = time.perf_counter) -> tuple[float, Any]:
    start = clock()
    result = work()
    return clock() - start, result


def peak() -> int:
    """Largest resident memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def run_job(module: str, name: str, arguments: Sequence[str], timeout: float = 7200) -> Facts:
    """Run one job in a process of its own and read the facts from the last line it prints."""
    command = [sys.executable, "-m", module, "--job", name, *arguments]
    print(f"  {name} ...", end="", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout, check=False)
    if done.returncode:
        print(" failed", file=sys.stderr)
        return {"failed": f"exit status {done.returncode}"}
    facts: Facts = json.loads(done.stdout.splitlines()[-1]) | {"load_before": load}
    shown = facts.get("skipped") or f"{facts['seconds']:.3f} s, {size(facts['peak'])}"
    print(f" {shown}", file=sys.stderr, flush=True)
    return facts


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        case: what was computed.
        ours, other: facts of the two jobs compared; the ratio is other over ours.
        against: what the other one is.
        note: anything a reader needs to judge the ratio.
        ratio: given only where it is not that of the seconds.
    """

    case: str
    ours: Facts
    other: Facts
    against: str
    note: str = ""
    ratio: float | None = None

    def cells(self) -> list[str]:
        """The line as text, a dash where a job did not run."""
        return [
            self.case,
            _seconds(self.ours),
            _seconds(self.other),
            "-" if self.quotient is None else f"{self.quotient:,.3g}",
            _peak(self.ours),
            _peak(self.other),
            self.against,
            "; ".join(text for text in (self.note, _trouble(self.ours), _trouble(self.other)) if text),
        ]

    @property
    def quotient(self) -> float | None:
        """How many times as long the other one takes, or the ratio given."""
        if self.ratio is not None or "seconds" not in self.ours or "seconds" not in self.other:
            return self.ratio
        return float(self.other["seconds"] / self.ours["seconds"])


HEADER = ["case", "exanova s", "other s", "ratio", "exanova peak", "other peak", "other", "note"]


def table(lines: Sequence[Line]) -> str:
    """The lines as a table in Markdown."""
    rows = [HEADER, *(line.cells() for line in lines)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def save(name: str, facts: dict[str, Facts], lines: Sequence[Line], settings: Facts) -> Path:
    """Write everything that was measured, with the machine it was measured on."""
    import numba
    import numpy
    import scipy

    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    versions = {m.__name__: m.__version__ for m in (numpy, scipy, numba)} | {"python": platform.python_version()}
    content = {
        "machine": {"system": platform.system(), "processor": platform.machine()},
        "versions": versions,
        "settings": settings,
        "jobs": facts,
        "lines": [dict(zip(HEADER, line.cells(), strict=True)) for line in lines],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def size(count: float) -> str:
    """Bytes as a person would write them."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _seconds(facts: Facts) -> str:
    return f"{facts['seconds']:.3f}" if "seconds" in facts else "-"


def _peak(facts: Facts) -> str:
    return size(facts["peak"]) if "peak" in facts else "-"


def _trouble(facts: Facts) -> str:
    return str(facts.get("failed") or facts.get("skipped") or "")
