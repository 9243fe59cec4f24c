"""Run the tests under several BLAS kernels and numbers of BLAS threads: no result may hang on the last bit.

OpenBLAS holds one kernel for each family of processors, and each adds up in an order of its own, so that effects differ
in their last bits from machine to machine. ``OPENBLAS_CORETYPE`` chooses a kernel; each configuration runs in a process
of its own. A kernel that this processor cannot run (AVX-512 where there is none) is named and skipped.

    python scripts/test_kernels.py                        tests that print or compare numbers
    python scripts/test_kernels.py --all                  every test
    python scripts/test_kernels.py tests/test_laws.py -x  what pytest is given instead
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent

KERNELS = ("Haswell", "Zen", "Nehalem", "SkylakeX", "Prescott")

NUMERICAL = (
    "tests/test_docs.py",
    "tests/test_readme.py",
    "tests/test_laws.py",
    "tests/test_results.py",
    "tests/solve/test_routes.py",
    "tests/effects/test_evidence.py",
    "tests/effects/test_storage.py",
    "tests/effects/test_golden_files.py",
    "tests/show/test_plots.py",
    "tests/cli/test_cli.py",
    "src",
)
"""What prints numbers, or compares them: the selection that is run unless another is asked for."""

PROBE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
a = np.random.default_rng(0).normal(size=(300, 300))
for x in (a, a.astype(np.float32)):
    np.linalg.svd(x @ x.T), np.linalg.qr(x), scipy.linalg.lapack.dpstrf(a @ a.T), x @ x[:, 0]
    scipy.linalg.solve_triangular(x, x), scipy.linalg.qr(x, pivoting=True)
print(*sorted({lib["architecture"] for lib in threadpool_info() if lib["internal_api"] == "openblas"}))
"""
"""Runs what the package uses, then says which kernels were active; a missing instruction ends it by a signal."""


@dataclass(frozen=True)
class Outcome:
    """One configuration: the kernel asked for, the one that was active, and what pytest said."""

    kernel: str
    threads: int
    active: str
    ran: bool
    passed: int = 0
    failed: tuple[str, ...] = ()
    code: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing failed (a kernel that cannot run here has not failed)."""
        return not self.ran or (self.code == 0 and not self.failed and self.passed > 0)

    def __str__(self) -> str:
        if not self.ran:
            return f"{self.kernel:<10}{self.threads:>8}  {self.active}"
        count = len(self.failed)
        trouble = "" if self.ok or count else f"  pytest ended with code {self.code}"
        return (
            f"{self.kernel:<10}{self.threads:>8}  {self.active:<14}"
            f"{self.passed:>8}{count:>8}{self.seconds:>9.0f}{trouble}"
        )


def environment(kernel: str, threads: int) -> dict[str, str]:
    """The environment of one configuration, with the package of this checkout."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OPENBLAS_CORETYPE": kernel,
        "OPENBLAS_NUM_THREADS": str(threads),
    }


def active_kernel(kernel: str) -> tuple[bool, str]:
    """Whether this processor runs a kernel, and the one that was active (or why there is none)."""
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, env=environment(kernel, 1), capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return False, f"skipped: this processor cannot run it (signal {-done.returncode})"
    if done.returncode:
        return False, f"skipped: {done.stderr.strip().splitlines()[-1]}"
    found = done.stdout.strip()
    return bool(found), found or "skipped: NumPy does not use OpenBLAS here"


def run(kernel: str, threads: int, active: str, arguments: Sequence[str]) -> Outcome:
    """Run pytest once."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}"]
        done = subprocess.run([*command, *arguments], cwd=ROOT, env=environment(kernel, threads), check=False)
        passed, failed = read(report) if report.exists() else (0, ())
    return Outcome(kernel, threads, active, True, passed, failed, done.returncode, time.perf_counter() - start)


def read(report: Path) -> tuple[int, tuple[str, ...]]:
    """How many tests passed, and the names of those that failed, from pytest's report."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    names = tuple(f"{case.get('classname')}::{case.get('name')}" for case in failed)
    return len(cases) - len(failed) - len(skipped), names


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every configuration, then print the table; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run every test, not only those that depend on numerics")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="names that OPENBLAS_CORETYPE knows, by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of BLAS threads, by commas")
    options, given = parser.parse_known_args(arguments)
    chosen = given or ([] if options.all else [name for name in NUMERICAL if (ROOT / name).exists()])
    outcomes: list[Outcome] = []
    for kernel in options.kernels.split(","):
        runs, active = active_kernel(kernel)
        for threads in map(int, options.threads.split(",")) if runs else (0,):
            outcomes.append(run(kernel, threads, active, chosen) if runs else Outcome(kernel, 0, active, False))
            print(outcomes[-1], flush=True)
    print(f"\n{'kernel':<10}{'threads':>8}  {'active':<14}{'passed':>8}{'failed':>8}{'seconds':>9}")
    print(*outcomes, sep="\n")
    for outcome in outcomes:
        for name in outcome.failed:
            print(f"{outcome.kernel}, {outcome.threads} BLAS threads: {name}")
    if not any(outcome.ran for outcome in outcomes):
        print("no kernel could be run: nothing was tested")
        return 1
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
