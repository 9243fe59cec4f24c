"""Two versions of the source side by side: ``python -m benchmarks.versions --data DIR --before OLD/src``.

Each case is an exact fit (or explanations of it) on the same arrays: small tables, and the fits of ``make bench`` and
``make bench-dimension`` with the classes in place of model outputs, so that nothing has to be trained. The two versions
take turns, each run in a process of its own with one thread, and what counts is the smallest processor time of a
version: other work on the machine and its clock touch both alike. One line per case: milliseconds before and after, and
their ratio. Cases of minutes run only if they are named (``--only MNIST``).
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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")


LONG, VERY_LONG = 10.0, 30.0
"""Seconds of a run that is repeated only once, and of one that is not repeated: it loads compiled loops too."""


def exact(**parameters: Any) -> Any:
    """An estimator without shrinkage, whichever version it belongs to."""
    from exanova import FunctionalANOVA

    known = inspect.signature(FunctionalANOVA.__init__).parameters
    if "subsets" in parameters and "subsets" not in known:
        parameters["interactions"] = parameters.pop("subsets")
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


def grid(data: Path, held: Sequence[str], dependent: bool) -> tuple[Any, Any, Any]:
    """The rows of Nursery with the first level of the columns ``held``, all classes, even or random weights."""
    X, values = table(data, "nursery")
    kept = (X[list(held)] == X[list(held)].iloc[0]).all(axis=1).to_numpy()
    weight = np.random.default_rng(5).dirichlet(np.full(int(kept.sum()), 5.0)) if dependent else None
    return X.loc[kept].drop(columns=list(held)), values[kept], weight


def pixels(data: Path) -> tuple[Any, Any]:
    """MNIST: pixels above 127, and whether the digit is a three."""
    with np.load(data / "mnist_train.npz") as file:
        images, labels = file["images"], file["labels"]
    return (images.reshape(len(images), -1) > 127).astype(np.uint8), (labels == 3).astype(float)


def planted(rows: int, features: int) -> tuple[Any, Any]:
    """Features of four levels in a chain of dependence, with main effects, ten pairs and noise."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (rows, features), dtype=np.uint8)
    for i in range(1, features):
        same = rng.random(rows) < 0.3
        X[same, i] = X[same, i - 1]
    y = 0.1 * rng.normal(size=rows) + sum(rng.normal(size=4)[X[:, i]] for i in range(features))
    for _ in range(10):
        i, j = rng.choice(features, 2, replace=False)
        y += rng.normal(size=(4, 4))[X[:, i], X[:, j]]
    return X, y


def fits(given: tuple[Any, ...], times: int = 1, **parameters: Any) -> Callable[[], Any]:
    """A job that fits ``times`` times to rows, outputs and perhaps weights."""
    X, values, weight = (*given, None)[:3]
    return lambda: [exact(**parameters).fit(X, values, sample_weight=weight) for _ in range(times)][-1]


def explains(given: tuple[Any, Any]) -> Callable[[], Any]:
    """A job that explains rows with a decomposition that was fitted before."""
    anova = exact().fit(*given)
    return lambda: anova.explain(given[0])


Cases = dict[str, Callable[[], Callable[[], Any]]]
"""For each case, what prepares it and returns the job that is timed."""

HELD = {12960: (), 4320: ("health",), 2160: ("health", "finance")}
"""Columns of Nursery that are held to leave a complete table of so many rows."""


def cases(data: Path) -> Cases:
    """All cases: small tables, then those of the two benchmarks, then those that take minutes."""
    return small_cases(data) | core_cases(data) | dimension_cases(data) | long_cases(data)


def small_cases(data: Path) -> Cases:
    """Fits of some milliseconds, a table of Mushroom, and explanations."""
    return {
        "4 rows, 100 fits": lambda: fits(made(4, 2, 2), 100),
        "500 x 8 levels 3, 10 fits": lambda: fits(made(500, 8, 3), 10),
        "20,000 x 10 levels 6, pairs": lambda: fits(made(20_000, 10, 6)),
        "explain 20,000 x 10 levels 6": lambda: explains(made(20_000, 10, 6)),
        "Mushroom, pairs": lambda: fits(table(data, "mushroom")),
    }


def core_cases(data: Path) -> Cases:
    """The fits of ``make bench``."""
    paper = {"basis": "paper", "ties": "first"}
    grids: Cases = {
        f"Nursery, {'dependent' if dependent else 'uniform'}, {rows:,} cells, all orders": partial(
            lambda held, dependent: fits(grid(data, held, dependent), max_order=None), held, dependent
        )
        for dependent in (False, True)
        for rows, held in HELD.items()
    }
    return grids | {
        "Poker, pairs": lambda: fits(table(data, "poker")),
        "Poker, pairs, paper": lambda: fits(table(data, "poker"), **paper),
        "Connect-4, pairs": lambda: fits(table(data, "connect4")),
        "Connect-4, pairs, paper": lambda: fits(table(data, "connect4"), **paper),
        "Connect-4, pairs, half the rows": lambda: fits(tuple(part[::2] for part in table(data, "connect4"))),
    }


def dimension_cases(data: Path) -> Cases:
    """Fits under a budget, those of ``make bench-dimension`` with smaller budgets or as they are."""
    canonical = {"selection": "canonical", "max_order": 3}
    return {
        "Connect-4, 1,000 screened": lambda: fits(table(data, "connect4"), max_terms=1000),
        "Dota2, 1,000 screened": lambda: fits(table(data, "dota2"), max_terms=1000),
        "Poker, 2,000 canonical": lambda: fits(table(data, "poker"), max_terms=2000, **canonical),
        "100,000 x 25 planted, 400 screened": lambda: fits(planted(10**5, 25), max_terms=400),
        "20,000 x 40 levels 3, pairs, matrix-free": lambda: fits(made(20_000, 40, 3), route="matrix-free"),
    }


def long_cases(data: Path) -> Cases:
    """The fits of ``make bench-dimension`` that take minutes."""
    from exanova import neighbours

    budgets = {"2,500": 2500, "5,000": 5000, "10,000": 10_000}
    mnist: Cases = {
        f"MNIST, {name} {how}": partial(lambda own: fits(pixels(data), **own), own)
        for radius, (name, terms) in enumerate(budgets.items(), start=1)
        for how, own in {
            "screened": {"max_terms": terms, "selection": "screen"},
            "neighbours": {"max_terms": terms, "selection": "screen", "subsets": neighbours((28, 28), radius)},
            "canonical": {"max_terms": terms, "selection": "canonical"},
        }.items()
    }
    large = {"max_order": 3, "max_terms": 5000}
    paper = {"selection": "canonical", "basis": "paper", "ties": "first"}
    return {
        "MNIST, main effects": lambda: fits(pixels(data), max_order=1),
        **mnist,
        **{
            f"long: {name}, 5,000 {how}": partial(
                lambda which, how: fits(table(data, which), selection=how, **large), which, how
            )
            for name, which in (("Connect-4", "connect4"), ("Poker", "poker"))
            for how in ("screen", "canonical")
        },
        **{
            f"long: {name}, 5,000 canonical, paper": partial(
                lambda which: fits(table(data, which), **paper, **large), which
            )
            for name, which in (("Connect-4", "connect4"), ("Poker", "poker"))
        },
        "long: Dota2, 4,000 screened": lambda: fits(table(data, "dota2"), max_terms=4000),
        "long: 10^5 x 100 planted, 1,000 screened": lambda: fits(planted(10**5, 100), max_terms=1000),
        "long: 10^6 x 25 planted, 400 screened": lambda: fits(planted(10**6, 25), max_terms=400),
        "long: 10^6 x 100 planted, 1,000 screened": lambda: fits(planted(10**6, 100), max_terms=1000),
        "long: 200,000 x 158 levels 3, pairs, matrix-free": lambda: fits(
            made(200_000, 158, 3), route="matrix-free", memory_limit="4 GB"
        ),
    }


def timed(job: Callable[[], Any]) -> float:
    """Smallest processor time of two runs (of a long one, one), in milliseconds, after one that compiles."""
    times: list[float] = []
    while len(times) < (3 if not times or times[0] < LONG else 2 if times[0] < VERY_LONG else 1):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return 1000 * min(times[1:] or times)


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
        if options.only in case and (options.only or case not in long_cases(options.data)):
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
