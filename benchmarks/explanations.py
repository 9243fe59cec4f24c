"""The benchmark of explanations: ``python -m benchmarks.explanations --data DIR [--rows N | --quick]``.

Car Evaluation: exact Shapley values of every row and class of a random forest against ``shap.KernelExplainer`` with 200
background rows, the two compared by their mean squared difference (ISE) and by explanations a second. Binarised MNIST:
how long 60,000 rows, and one row, take with 784 features and 5,000 subsets, and how much memory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import exanova
from benchmarks import tables
from benchmarks.harness import RESULTS, Facts, Line, clocked, peak, run_job, save, size, table, timed
from exanova import FunctionalANOVA, parallel
from exanova.explain.shapley import shapley_values
from exanova.typing import FloatArray

TREES = 100
BACKGROUND = 200
SUBSETS = 5000
SEED = 0


@dataclass(frozen=True)
class Settings:
    """Where the tables are, how many rows KernelExplainer explains, and whether all is small."""

    data: Path
    rows: int
    quick: bool


def main() -> int:
    """Run every job, or the one that is named."""
    options = parse()
    settings = Settings(options.data, options.rows, options.quick)
    if options.job:
        found = jobs(settings)[options.job]()
        print(json.dumps(found | {"peak": peak()}))
        return 0
    return measure(settings)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explanations", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--rows", type=int, default=200, help="rows for KernelExplainer (default: 200; 1728 is all)")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that everything runs")
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    return parser.parse_args()


def jobs(settings: Settings) -> dict[str, Callable[[], Facts]]:
    """Every job by name, in the order in which they run."""
    return {
        "car exact": partial(car_exact, settings),
        "car kernel": partial(car_kernel, settings),
        "mnist fit": partial(mnist_fit, settings),
        "mnist rows": partial(mnist_rows, settings),
        "mnist row": partial(mnist_row, settings),
    }


# Car Evaluation


def car(settings: Settings) -> tuple[pd.DataFrame, Any, Callable[[Any], FloatArray]]:
    """The table, the forest, and the forest as a function of rows of text."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    X, labels = tables.read(settings.data, "car")
    encoder = OrdinalEncoder(dtype=np.float32).set_output(transform="default")
    codes = encoder.fit_transform(X)
    forest = RandomForestClassifier(n_estimators=10 if settings.quick else TREES, random_state=SEED).fit(codes, labels)

    def model(rows: pd.DataFrame) -> FloatArray:
        return np.asarray(forest.predict_proba(encoder.transform(rows)))

    return X, (forest, codes), model


def explained(X: pd.DataFrame, model: Callable[[Any], FloatArray], names: list[str]) -> exanova.Explanation:
    """From text and a model to Shapley values of every row: the forest called once a row, all orders, all classes."""
    return FunctionalANOVA(shrinkage=None, max_order=None).fit(X, model, output_names=names).explain(X, model)


def car_exact(settings: Settings) -> Facts:
    X, (forest, _), model = car(settings)
    names = [str(name) for name in forest.classes_]
    facts, e = timed(lambda: explained(X, model, names))
    calling, _ = timed(lambda: (model(X), model(X)))  # once to fit, once to report the residual
    error = np.abs(e.values.sum(axis=1) + e.base_values - model(X)).max()
    return facts | {"rows": len(X), "in the model": calling["seconds"], "largest error of the sum": float(error)}


def car_kernel(settings: Settings) -> Facts:
    """KernelExplainer on ordinal codes, one column one player; then the exact values of the same rows beside it."""
    import shap

    X, (forest, codes), model = car(settings)
    rng = np.random.default_rng(SEED)
    count = min(len(X), 5 if settings.quick else settings.rows)
    rows = np.sort(rng.choice(len(X), count, replace=False))
    background = codes[rng.choice(len(X), BACKGROUND, replace=False)]
    explainer = shap.KernelExplainer(forest.predict_proba, background)
    explainer.shap_values(codes[rows[:1]], silent=True)
    seconds, values = clocked(lambda: explainer.shap_values(codes[rows], silent=True))
    names = [str(name) for name in forest.classes_]
    exact = explained(X, model, names)
    ise = 100 * ((np.asarray(values) - exact.values[rows]) ** 2).mean(axis=0)
    table = {name: dict(zip(exact.feature_names, ise[:, k].tolist(), strict=True)) for k, name in enumerate(names)}
    return {"seconds": seconds, "rows": count, "ise": table}


# Binarised MNIST


def mnist(settings: Settings) -> tuple[Any, FloatArray]:
    """(n, 784) pixels above 127, and whether the digit is a three."""
    with np.load(settings.data / "mnist_train.npz") as file:
        images, labels = file["images"], file["labels"]
    count = 2000 if settings.quick else len(images)
    X = (images[:count].reshape(count, -1) > 127).astype(np.uint8)
    return X, (labels[:count] == 3).astype(float)


def family(X: Any, subsets: int) -> list[tuple[int, int]]:
    """Pairs of varying pixels, the nearest first, to make with the main effects so many subsets."""
    varying = np.flatnonzero(X.min(axis=0) != X.max(axis=0))
    pairs = np.array(list(combinations(varying.tolist(), 2)))
    (ya, xa), (yb, xb) = np.divmod(pairs[:, 0], 28), np.divmod(pairs[:, 1], 28)
    near = np.argsort((ya - yb) ** 2 + (xa - xb) ** 2, kind="stable")[: subsets - 1 - len(varying)]
    return [(int(a), int(b)) for a, b in pairs[near]]


def stored(settings: Settings) -> Path:
    return RESULTS / f"mnist{'-quick' if settings.quick else ''}.exanova"


def mnist_fit(settings: Settings) -> Facts:
    X, y = mnist(settings)
    anova = FunctionalANOVA(shrinkage=None, subsets=family(X, SUBSETS // 5 if settings.quick else SUBSETS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exanova.errors.InexactWarning)
        seconds, _ = clocked(lambda: anova.fit(X, y))
    RESULTS.mkdir(parents=True, exist_ok=True)
    saving, _ = clocked(lambda: anova.save(stored(settings)))
    return {"seconds": seconds, "r2": float(anova.certificate_.r2[0]), "save": saving, "subsets": len(anova.effects_)}


def mnist_rows(settings: Settings) -> Facts:
    """All rows, the whole of ``explain``; the engine alone; and what the result itself takes."""
    X, _ = mnist(settings)
    anova = exanova.load(stored(settings))
    before = peak()
    facts, e = timed(lambda: anova.explain(X))
    state, codes = anova.decomposition_, np.ascontiguousarray(X.T.astype(np.int32))
    result = e.values.nbytes + e.data.nbytes + e.display_data.nbytes
    del e
    threads = parallel.thread_count(None)
    engine, _ = timed(lambda: shapley_values(state.family, state.values, codes, threads))
    return facts | {
        "rows": len(X),
        "subsets": len(anova.effects_),
        "engine": engine["seconds"],
        "result": result,
        "before": before,
    }


def mnist_row(settings: Settings) -> Facts:
    X, _ = mnist(settings)
    seconds, anova = clocked(lambda: exanova.load(stored(settings)))
    facts, _ = timed(lambda: anova.explain(X[:1]), repeats=20)
    return facts | {"rows": 1, "load": seconds}


# The report


def measure(settings: Settings) -> int:
    """Run the jobs one after the other, print the tables, keep the results."""
    arguments = ["--data", str(settings.data), "--rows", str(settings.rows), *(["--quick"] * settings.quick)]
    found = {name: run_job("benchmarks.explanations", name, arguments) for name in jobs(settings)}
    lines = [line for line in report(found) if line.ours or line.other]
    print(ise_table(found["car kernel"]))
    print(table(lines))
    path = save("explanations", found, lines, {"rows": settings.rows, "quick": settings.quick})
    print("\nratio: explanations a second, ours over KernelExplainer's.")
    print(f"Everything that was measured: {os.path.relpath(path)}")
    return 1 if any("failed" in facts for facts in found.values()) else 0


def report(found: dict[str, Facts]) -> list[Line]:
    exact, kernel, rows, row = (found[name] for name in ("car exact", "car kernel", "mnist rows", "mnist row"))
    speed = {name: facts["rows"] / facts["seconds"] for name, facts in found.items() if "rows" in facts}
    lines = []
    if "car exact" in speed and "car kernel" in speed:
        ratio = speed["car exact"] / speed["car kernel"]
        note = (
            f"{exact['rows']:,} rows exactly, {speed['car exact']:,.0f} a second ({exact['in the model']:.2f} s "
            f"in the forest); {kernel['rows']:,} rows by KernelExplainer, {speed['car kernel']:.1f} a second"
        )
        lines.append(Line("Car Evaluation, 4 classes", exact, kernel, "KernelExplainer", note, ratio))
    if "mnist rows" in speed:
        note = (
            f"{rows['subsets']:,} subsets; {speed['mnist rows']:,.0f} rows a second, engine {rows['engine']:.2f} s; "
            f"the result takes {size(rows['result'])}, before it {size(rows['before'])}"
        )
        lines.append(Line(f"MNIST, {rows['rows']:,} rows", rows, {}, "", note))
    if "mnist row" in speed:
        lines.append(Line("MNIST, one row", row, {}, "", f"{1000 * row['seconds']:.1f} ms; load {row['load']:.2f} s"))
    return lines


def ise_table(kernel: Facts) -> str:
    """100 x ISE of every class and feature."""
    if "ise" not in kernel:
        return ""
    rows = [["100 x ISE", *next(iter(kernel["ise"].values()))]]
    rows += [[name, *(f"{v:.2f}" for v in of.values())] for name, of in kernel["ise"].items()]
    lines = ["| " + " | ".join(cell.ljust(10) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join(["-" * 12] * len(rows[0])) + "|", *lines[1:], ""])


if __name__ == "__main__":
    sys.exit(main())
