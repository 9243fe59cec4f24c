"""Two versions of the source side by side: ``python -m benchmarks.versions --data DIR --before OLD/src``.

Each case is an exact fit (or explanations of it) on the same arrays. The two versions take turns, each run in a process
of its own with one thread, and what counts is the smallest processor time of a version: other work on the machine and
its clock touch both alike. One line per case: milliseconds before and after, and their ratio.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def exact(**parameters: Any) -> Any:
    """An estimator without shrinkage, whichever version it belongs to."""
    from exanova import FunctionalANOVA

    known = inspect.signature(FunctionalANOVA.__init__).parameters
    return FunctionalANOVA(**parameters, n_jobs=1, **({"shrinkage": None} if "shrinkage" in known else {}))


def table(data: Path, name: str) -> tuple[Any, Any]:
    """Inputs, and one 0/1 column per class (the first class alone if there are many)."""
    from exanova import datasets

    found = datasets.load(name, data)
    values = np.equal.outer(np.asarray(found.y), np.unique(found.y)).astype(float)
    return found.X, values if values.shape[1] <= 5 else values[:, :1]


def made(rows: int, features: int, levels: int) -> tuple[Any, Any]:
    """Random levels with a dependent pair, and a model of three features."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, levels, (rows, features))
    X[:, -1] = (X[:, 0] + (rng.random(rows) < 0.2)) % levels
    return X, np.sin(X[:, 0] * X[:, 1]) + (X[:, -1] > 1)


def fits(given: tuple[Any, Any], times: int = 1, **parameters: Any) -> Callable[[], Any]:
    """A job that fits ``times`` times."""
    return lambda: [exact(**parameters).fit(*given) for _ in range(times)][-1]


def explains(given: tuple[Any, Any]) -> Callable[[], Any]:
    """A job that explains rows with a decomposition that was fitted before."""
    anova = exact().fit(*given)
    return lambda: anova.explain(given[0])


def cases(data: Path) -> dict[str, Callable[[], Callable[[], Any]]]:
    """For each case, what prepares it and returns the job that is timed."""
    return {
        "4 rows, 100 fits": lambda: fits(made(4, 2, 2), 100),
        "500 x 8 levels 3, 10 fits": lambda: fits(made(500, 8, 3), 10),
        "20,000 x 10 levels 6, pairs": lambda: fits(made(20_000, 10, 6)),
        "explain 20,000 x 10 levels 6": lambda: explains(made(20_000, 10, 6)),
        "Nursery, all orders": lambda: fits(table(data, "nursery"), max_order=None),
        "Mushroom, pairs": lambda: fits(table(data, "mushroom")),
        "Poker, pairs": lambda: fits(table(data, "poker")),
        "Connect-4, pairs": lambda: fits(table(data, "connect4")),
        "Connect-4, 1,000 screened": lambda: fits(table(data, "connect4"), max_terms=1000),
        "Dota2, 1,000 screened": lambda: fits(table(data, "dota2"), max_terms=1000),
    }


def timed(job: Callable[[], Any]) -> float:
    """Smallest processor time of two runs, in milliseconds, after one that compiles."""
    job()
    times = []
    for _ in range(2):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def run(source: Path, case: str, data: Path) -> float:
    """One case in a process of its own that imports the package from ``source``."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": f"{source}{os.pathsep}{HERE}"}
    command = [sys.executable, "-m", "benchmarks.versions", "--data", str(data), "--case", case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else float("nan")


def compare(options: argparse.Namespace) -> None:
    """Print one line per case."""
    print("| case | before, ms | after, ms | ratio |\n|---|---|---|---|")
    for case in cases(options.data):
        if options.only in case:
            sources = (options.before, options.after)
            turns = [[run(source, case, options.data) for source in sources] for _ in range(options.turns)]
            before, after = np.min(turns, axis=0)
            print(f"| {case} | {before:.1f} | {after:.1f} | {after / before:.2f} |", flush=True)


def main() -> None:
    """Compare two versions, or time one case of the version on the path."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--before", type=Path, help="folder src of the earlier version")
    parser.add_argument("--after", type=Path, default=HERE / "src", help="folder src of the later version")
    parser.add_argument("--turns", type=int, default=3, help="runs of each version (default: 3)")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--case", help="time this case in this process and print its milliseconds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case:
        print(json.dumps(timed(cases(options.data)[options.case]())))
    elif options.before is None:
        parser.error("--before is needed: the folder src of another version")
    else:
        compare(options)


if __name__ == "__main__":
    main()
