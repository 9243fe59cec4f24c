"""Trace what one fit, explanation, report and command pass through: modules entered, and depth.

A module is entered when one of its functions is called. Depth is the longest chain of different modules that call each
other. Run it from anywhere; ``--chains`` also prints the longest chain and the modules in the order of their first
call. The table in ARCHITECTURE.md comes from here.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import exanova
from exanova import FunctionalANOVA
from exanova.cli.entry import run

ROOT = Path(exanova.__file__).parent


@dataclass
class Trace:
    """What was entered while a function ran.

    Attributes:
        modules: the modules entered, in the order of their first call, as "data/table".
        depth: modules in the longest chain of calls.
        chain: that chain.
    """

    modules: list[str] = field(default_factory=list)
    depth: int = 0
    chain: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def watch(self, job: Callable[[], Any]) -> Trace:
        """Run a job and record the modules of its calls."""
        stack: list[str] = []

        def called(frame: FrameType, event: str, argument: Any) -> None:
            name = self._module(frame.f_code.co_filename)
            if not name:
                return
            if event == "call":
                stack.append(name)
                self._enter(stack)
            elif event == "return" and stack:
                stack.pop()

        sys.setprofile(called)
        try:
            job()
        finally:
            sys.setprofile(None)
        return self

    def _module(self, file: str) -> str:
        if file not in self._names:
            path = Path(file)
            inside = ROOT in path.parents
            self._names[file] = path.relative_to(ROOT).with_suffix("").as_posix() if inside else ""
        return self._names[file]

    def _enter(self, stack: list[str]) -> None:
        if stack[-1] not in self.modules:
            self.modules.append(stack[-1])
        chain = list(dict.fromkeys(stack))
        if len(chain) > self.depth:
            self.depth, self.chain = len(chain), chain


def jobs(folder: Path) -> dict[str, Callable[[], Any]]:
    """What is traced, by name: a table of six features, some of them dependent, and a model of pairs."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (400, 6))
    X[:, 1] = (X[:, 0] + (rng.random(400) < 0.3)) % 3
    y = X[:, 0] * X[:, 2] + (X[:, 3] == X[:, 4])
    fitted = FunctionalANOVA(shrinkage=None).fit(X, y)
    file = folder / "table.csv"
    np.savetxt(file, np.column_stack([X, y]), "%d", ",", header="a,b,c,d,e,f,score", comments="")
    words = ["explain", str(file), "--prediction", "score", "--quiet"]
    return {
        "fit, moments": lambda: FunctionalANOVA(route="moments", shrinkage=None).fit(X, y),
        "fit, shrunk (default)": lambda: FunctionalANOVA().fit(X, y),
        "fit under a budget (screen)": lambda: FunctionalANOVA(max_terms=30, shrinkage=None).fit(X, y),
        "explain": lambda: fitted.explain(X[:10]),
        "report": lambda: fitted.report(folder / "report.html", X=X[:10]),
        "exanova explain": lambda: run(words),
    }


def main() -> None:
    """Print one line per job, and the longest chain of each."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        print("| job | modules entered | depth |\n|---|---|---|")
        for name, job in jobs(Path(folder)).items():
            job()  # lazy imports and compiled loops are not part of the path
            trace = Trace().watch(job)
            print(f"| {name} | {len(trace.modules)} | {trace.depth} |")
            if "--chains" in sys.argv:
                print(f"    {' > '.join(trace.chain)}\n    {' '.join(trace.modules)}")


if __name__ == "__main__":
    main()
