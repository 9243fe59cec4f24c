"""How one peer is measured: a limit of time and of memory, repeats that fit, and its own words where it cannot."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Facts, clocked, peak, timed
from exanova.design.memory import available
from exanova.typing import FloatArray

SHORT, LONG = 0.5, 10.0
"""Seconds of the first run up to which five more are made, and beyond which none."""

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""Clocks by name; processor time is what a quiet machine would take on one thread, however busy this one is."""

CLOCK = "EXANOVA_BENCH_CLOCK"
"""Environment variable with the name of the clock, which every process of a run reads."""

TIMERS = {"wall": (signal.ITIMER_REAL, signal.SIGALRM), "cpu": (signal.ITIMER_PROF, signal.SIGPROF)}
"""The timer of each clock and the signal by which it ends a process."""

ONCE = "EXANOVA_BENCH_ONCE"
"""Environment variable that is set where one run of each measurement is enough."""

WORDS = 200
"""Characters of an error that are kept."""


@dataclass(frozen=True)
class Settings:
    """Where tables, models and answers lie, how many threads, how long one measurement may take."""

    data: Path
    work: Path
    threads: int = 2
    limit: float = 40.0
    quick: bool = False

    @property
    def limit_of_rows(self) -> float:
        """Seconds a peer that explains one row after the other may spend."""
        return 1.0 if self.quick else self.limit / 4

    def arguments(self) -> list[str]:
        """The same settings for a job in a process of its own."""
        values = ["--data", str(self.data), "--work", str(self.work), "--threads", str(self.threads)]
        return [*values, "--limit", str(self.limit), *(["--quick"] * self.quick)]


Job = Callable[[], Facts]
"""One measurement; called in a process of its own."""


def measured(work: Callable[[], Any], limit: float | None) -> tuple[Facts, Any]:
    """Time ``work`` as often as its length allows; a run beyond ``limit`` seconds ends the process.

    ``extra`` is the memory its last run took beyond what the process held before: libraries and inputs do not count.
    """

    def guarded() -> Any:
        with deadline(limit):
            return work()

    before = fresh_high_water()
    facts, result = timed(guarded, repeats, CLOCKS[clock_name()])
    if (
        facts["first"] < LONG and ONCE not in os.environ
    ):  # the first run also loads and compiles, which is not the memory of the work
        result = None
        before = fresh_high_water()
        result = guarded()
    return facts | {"extra": high_water() - before}, result


def repeats(first: float) -> int:
    """Runs after a first one of so many seconds."""
    if ONCE in os.environ:
        return 0
    return 5 if first < SHORT else 3 if first < 4 * SHORT else 1 if first < LONG else 0


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """End the process by a signal if the block takes longer by its clock: compiled code heeds no exception."""
    timer, _ = TIMERS[clock_name()]
    signal.setitimer(timer, seconds or 0)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)


def clock_name() -> str:
    """The clock of this run."""
    return os.environ.get(CLOCK, "wall")


def was_ended(facts: Facts) -> bool:
    """Whether a job in a process of its own was ended by its deadline."""
    return facts.get("failed") in {f"exit status {-ended}" for _, ended in TIMERS.values()}


def growing(explain: Callable[[Any], Any], order: Any, limit: float, at_once: bool = False) -> tuple[Facts, Any]:
    """Explain more and more of the rows ``order`` (all of them, shuffled) until time is up, or all are done.

    ``seconds`` are those of all rows; where fewer were explained, as many times as long as there are more of them. That
    would be unfair to what works on all rows ``at_once``, however few they are: it explains them all.
    """
    total, growth = len(order), []
    warm, _ = clocked(partial(explain, order[:2]))
    count = total if at_once else min(total, 10 if 5 * warm < limit else 4)
    while True:
        facts, result = measured(partial(explain, order[:count]), None)
        growth.append([count, facts["seconds"]])
        affordable = count * limit / facts["seconds"]
        if count == total or affordable < 2 * count:
            break
        count = int(min(total, affordable, 10 * count))
    seconds = facts["seconds"] * total / count
    return facts | {"seconds": seconds, "explained": count, "rows": total, "growth": growth}, result


def in_own_words(job: Job, refusal: type[Exception] = Exception) -> Facts:
    """What the job found, or what it said when it could not; any error but a ``refusal`` is an error."""
    limit_memory()
    try:
        return job()
    except refusal as error:
        return {"skipped": shortened(f"{type(error).__name__}: {error}")}


def shortened(message: str) -> str:
    """The first line of a message, cut where it is long or begins to list things in no order."""
    line = " ".join(message.split("\n")[0].split("{")[0].split())
    return line if len(line) <= WORDS else line[: WORDS - 3] + "..."


def limit_memory() -> None:
    """Let allocations beyond most of the free memory fail in this process, before the machine suffers."""
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (taken + int(0.7 * available()), hard))


def fresh_high_water() -> int:
    """Bytes resident now; the mark of the most that was ever resident is set back to it where the system can."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # or what was freed before would hide what is taken next
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS") or high_water()


def high_water() -> int:
    """The most that was resident since the mark was set."""
    return _status("VmHWM") or peak()


def _status(field: str) -> int:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(field + ":")), 0)


class Counted:
    """A model that counts the rows sent to it, and keeps them if asked to."""

    def __init__(self, model: Callable[[Any], FloatArray], keep: bool = False) -> None:
        self.model, self.keep = model, keep
        self.rows = 0
        self.sent: list[Any] = []

    def __call__(self, rows: Any) -> FloatArray:
        """What the model answers."""
        self.rows += len(rows)
        if self.keep:
            self.sent.append(np.array(rows))
        return self.model(rows)
