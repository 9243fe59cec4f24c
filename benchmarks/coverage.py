"""Do 95 % intervals cover? ``python -m benchmarks.coverage --data DIR [--only NAME] [--quick]``.

Samples are drawn from populations whose effects are known; every sample is fitted, and its intervals are held against
the effects of the population: cells of effects, Shapley values at some rows, importances, with rows or whole clusters
drawn, and linear errors beside those of the bootstrap. One process, one thread; writes docs/coverage.json and its page.

The truth (``coverage_truth``), what a sample says (``coverage_answers``) and what is counted (``coverage_counts``) are
modules of their own, and so is the page.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import coverage_page
from benchmarks.coverage_answers import ask, exact
from benchmarks.coverage_counts import FEW_ROWS, apart, coverages
from benchmarks.coverage_truth import EXPLAINED, Truth
from benchmarks.harness import RESULTS, Facts
from benchmarks.populations import populations
from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, OutsideSupportWarning
from exanova.typing import FloatArray

REPEATS = {500: 120, 2000: 60, 10000: 60}
"""Samples drawn of each size."""

QUICK = {500: 6, 2000: 3}

CLUSTERED = {"nursery mains": 12, "connect4 part": 20}
"""Populations drawn in clusters too, and the rows of a cluster: neighbours in the table, hence much alike."""

SHRUNK = {500: 80, 2000: 30}
"""Samples drawn of each size for the default, shrunken fit."""

DISCOVERIES = {300: 100, 1000: 60}
"""Samples drawn of each size to count false discoveries."""

REFITS = 60


def main() -> int:
    """Measure all populations, write what was found and its page."""
    options = parse()
    started = time.process_time()
    repeats = QUICK if options.quick else REPEATS
    warnings.simplefilter("ignore", InexactWarning)
    warnings.simplefilter("ignore", OutsideSupportWarning)
    found: Facts = {"repeats": repeats, "clusters": CLUSTERED, "refits": REFITS, "explained": EXPLAINED}
    found |= {"sampling": [], "shrunk": [], "bootstrap": [], "discoveries": []}
    for name, make in populations(options.data).items():
        if name.startswith(options.only):
            measure(name, Truth(make()), repeats, found)
    for n, count in DISCOVERIES.items():
        for shrinkage in ("auto", None):
            found["discoveries"].append(discoveries(n, 4 if options.quick else count, shrinkage))
    found["minutes"] = (time.process_time() - started) / 60
    whole = not (options.quick or options.only)
    folder = coverage_page.DOCS if whole else RESULTS
    print(coverage_page.write(found, folder))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--only", default="", help="only the populations whose names begin like this")
    parser.add_argument("--quick", action="store_true", help="few small samples: shows that everything runs")
    return parser.parse_args()


def measure(name: str, truth: Truth, repeats: dict[int, int], found: Facts) -> None:
    """All sizes of one population: rows, clusters where it has them, and the bootstrap."""
    for n, count in repeats.items():
        for cluster in (1, CLUSTERED[name]) if name in CLUSTERED else (1,):
            kinds = (True,) if cluster == 1 else (True, False)
            for said in kinds:
                line = sampled(truth, n, count, cluster, said)
                found["sampling"].append({"name": name, "title": truth.population.title} | line)
                report(found["sampling"][-1])
    for n, count in SHRUNK.items():
        if n in repeats:
            line = sampled(truth, n, min(count, repeats[n]), 1, True, shrunk=True)
            found["shrunk"].append({"name": name, "title": truth.population.title} | line)
            report(found["shrunk"][-1])
    n = min(2000, max(repeats))
    found["bootstrap"].append(
        {"title": truth.population.title} | beside_bootstrap(truth, n, 20 if n < 2000 else REFITS)
    )


def report(line: Facts) -> None:
    shown = {key: line[key]["coverage"] for key in ("cells", "shapley", "l2", "l1")}
    text = ", ".join(f"{key} {'-' if value is None else f'{value:.3f}'}" for key, value in shown.items())
    print(f"{line['title']} order {line['order']}, n {line['n']}, cluster {line['cluster']}: {text}", file=sys.stderr)


def sampled(truth: Truth, n: int, count: int, cluster: int, said: bool, shrunk: bool = False) -> Facts:
    """Coverage over ``count`` samples of n rows; ``said`` is whether the fit is told about clusters."""
    rng = np.random.default_rng([n, cluster])
    answers = [ask(truth, n, cluster, said, rng, shrunk) for _ in range(count)]
    facts = {"n": n, "order": truth.population.order, "cluster": cluster, "said": said, "samples": count}
    facts["functions"] = truth.anova.certificate_.n_functions
    return (
        facts
        | coverages(truth, answers)
        | {
            "apart": apart(truth, answers),
            "fit_seconds": float(np.median([a.seconds[0] for a in answers])),
            "error_seconds": float(np.median([a.seconds[1] for a in answers])),
        }
    )


def discoveries(n: int, count: int, shrinkage: str | None) -> Facts:
    """Effects told from zero in samples of a function most of whose effects are zero: false ones, and true ones."""
    world = np.random.default_rng(1)
    mains = world.standard_normal((8, 4)) * np.array([1, 0.6, 0.3, 0.15, 0.08, 0, 0, 0])[:, None]
    pairs = {(0, 1): 0.5 * world.standard_normal((4, 4)), (2, 5): 0.2 * world.standard_normal((4, 4))}
    real = {f"x{i}" for i in range(8) if mains[i].any()} | {"x5"} | {f"x{i} x x{j}" for i, j in pairs}
    shares, found, never = [], [], 0
    for k in range(count):
        rng = np.random.default_rng([n, k])
        X = rng.integers(0, 4, (n, 8))
        y = mains[np.arange(8), X].sum(axis=1) + 0.5 * rng.standard_normal(n)
        y += sum(table[X[:, i], X[:, j]] for (i, j), table in pairs.items())
        tests = FunctionalANOVA(shrinkage=shrinkage, n_jobs=1).fit(X, y).significance()
        told = [s for s, yes in zip(tests["subset"], tests["significant"], strict=True) if yes]
        shares.append(sum(s not in real for s in told) / max(1, len(told)))
        found.append(sum(s in real for s in told) / len(real))
        never += any("x7" in s.split(" x ") for s in told)
    return {
        "n": n,
        "samples": count,
        "shrinkage": shrinkage,
        "false": float(np.mean(shares)),
        "found": float(np.mean(found)),
        "never": never,
    }


def beside_bootstrap(truth: Truth, n: int, refits: int) -> Facts:
    """Standard errors of one sample in closed form over those of refits, and the time of both."""
    p = truth.population
    rows = p.draw(n, np.random.default_rng(7))
    anova = exact(p).fit(p.X.iloc[rows], p.values[rows])
    found = [(anova.errors(method, n_refits=refits), errors_of(anova)) for method in ("linear", "bootstrap")]
    (linear, ours), (bootstrap, theirs) = found
    counted = np.concatenate([effect.rows >= FEW_ROWS for effect in anova.effects_.values()])
    counted &= np.isfinite(ours) & (theirs > 1e-12 * np.nanmax(theirs, initial=1e-300))
    ratio = ours[counted] / theirs[counted]
    quantiles = np.quantile(ratio, [0.05, 0.5, 0.95]).tolist() if len(ratio) else None
    seconds = {"linear": linear.seconds, "bootstrap": bootstrap.seconds}
    return {"n": n, "order": p.order, "refits": refits, "cells": len(ratio), "ratio": quantiles, "seconds": seconds}


def errors_of(anova: FunctionalANOVA) -> FloatArray:
    """(cells,) standard errors of all effects."""
    return np.concatenate([effect.stderr[:, 0] for effect in anova.effects_.values()])


if __name__ == "__main__":
    sys.exit(main())
