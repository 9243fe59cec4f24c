"""Do 95 % intervals cover? ``python -m benchmarks.coverage --data DIR [--only NAME] [--quick]``.

Samples are drawn from populations whose effects are known; every sample is fitted, and its intervals are held against
the effects of the population: cells of effects, Shapley values at some rows, importances, with rows or whole clusters
drawn, and linear errors beside those of the bootstrap. One process, one thread; writes docs/coverage.json and its page.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import coverage_page
from benchmarks.harness import RESULTS, Facts
from benchmarks.populations import Population, populations
from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, OutsideSupportWarning
from exanova.typing import FloatArray, IntArray

REPEATS = {500: 120, 2000: 60, 10000: 60}
"""Samples drawn of each size."""

QUICK = {500: 6, 2000: 3}
FEW_ROWS = 30
"""Rows of a cell from which its interval counts."""

EXPLAINED = 12
"""Rows of the population whose Shapley values are held against intervals."""

CLUSTERED = {"nursery mains": 12, "connect4 part": 20}
"""Populations drawn in clusters too, and the rows of a cluster: neighbours in the table, hence much alike."""

SHRUNK = {500: 80, 2000: 30}
"""Samples drawn of each size for the default, shrunken fit."""

DISCOVERIES = {300: 100, 1000: 60}
"""Samples drawn of each size to count false discoveries."""

REFITS = 60
ROUNDING = 1e-9
"""What an effect without any sampling error may be off by, as a share of the largest value of the model."""

CLEAR = 3.0
"""An effect is clear if its norm is so many times the root of the mean squared error of its cells."""

LEVEL, REACH = 0.95, 1.959963984540054
"""Level of the intervals, and how many standard errors they reach on both sides."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truth:
    """The effects of a population, laid out flat: every cell of every effect has a place."""

    population: Population

    @cached_property
    def anova(self) -> FunctionalANOVA:
        """The decomposition of all of it."""
        return self.population.truth()

    @cached_property
    def starts(self) -> dict[tuple[str, ...], int]:
        """Where the cells of each effect begin."""
        sizes = [len(effect.levels) for effect in self.anova.effects_.values()]
        return dict(zip(self.anova.effects_, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def places(self) -> dict[tuple[str, ...], dict[tuple[str, ...], int]]:
        """For each effect, the place of each of its cells."""
        found = self.anova.effects_
        return {
            name: {levels: first + k for k, levels in enumerate(found[name].levels)}
            for name, first in self.starts.items()
        }

    @cached_property
    def values(self) -> FloatArray:
        """(cells,) the effects."""
        return np.concatenate([effect.values[:, 0] for effect in self.anova.effects_.values()])

    @cached_property
    def identified(self) -> Mask:
        """(cells,) whether the population determines the effect."""
        found = self.anova.effects_.values()
        return np.concatenate([np.full(len(effect.levels), effect.identified is not False) for effect in found])

    @cached_property
    def rows(self) -> Any:
        """Rows whose Shapley values are asked for."""
        chosen = self.population.draw(EXPLAINED, np.random.default_rng(99))
        return self.population.X.iloc[chosen].reset_index(drop=True)

    @cached_property
    def cells_of_rows(self) -> IntArray:
        """(n, d, k) for every such row and feature, the cells of the k effects that the feature is part of."""
        features, text = list(self.population.X.columns), self.rows.astype(str)
        out = []
        for row in text.itertuples(index=False):
            levels = dict(zip(features, row, strict=True))
            cells = {name: own[tuple(levels[f] for f in name)] for name, own in self.places.items()}
            out.append([[cells[name] for name in cells if feature in name] or [0] for feature in features])
        width = max(len(own) for own in out[0])
        return np.array([[own + own[:1] * (width - len(own)) for own in row] for row in out])

    @cached_property
    def shapley(self) -> FloatArray:
        """(n, d) Shapley values at these rows."""
        return np.asarray(self.anova.explain(self.rows).values)

    def importances(self, kind: str) -> FloatArray:
        """(S,) of every effect."""
        return self.by_subset(self.anova.importance(kind, by="subset"), "value")

    def by_subset(self, table: Any, column: str) -> FloatArray:
        """(S,) a column of a table of importances, in the order of the population's effects; NaN where it has none."""
        given = dict(zip(table["subset"], table[column], strict=True))
        return np.array([given.get(" x ".join(name), np.nan) for name in self.places])

    def by_feature(self, table: Any, column: str) -> FloatArray:
        """(d,) the same of a table of importances of features."""
        given = dict(zip(table["feature"], table[column], strict=True))
        return np.array([given.get(name, np.nan) for name in self.population.X.columns])

    @cached_property
    def known_features(self) -> Mask:
        """(d,) features all of whose effects the population determines."""
        effects = self.anova.effects_.items()
        lost = {name for names, effect in effects if effect.identified is False for name in names}
        return np.array([name not in lost for name in self.population.X.columns])


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates of one sample with the ends of their intervals, in the places of the population; NaN where none."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    rows: FloatArray

    def covers(self, truth: FloatArray, slack: float) -> Mask:
        """Whether each interval holds the true value."""
        return np.asarray((self.low - slack <= truth) & (truth <= self.high + slack))


@dataclass(frozen=True, eq=False)
class Answers:
    """What one sample says, and the seconds of its fit and of its errors.

    Attributes:
        cells, shapley, l1, l2: intervals of cells, of Shapley values at rows, and of importances of effects.
        mean_shapley: intervals of the mean absolute Shapley values of features.
        units: (cells,) rows in each cell, or clusters where those were drawn.
        bias: (S,) what the squared norm of each effect is too large by on the average.
        unidentified: (cells,) those without an interval because the sample does not determine the effect.
        seconds: of the fit, and of its errors.
    """

    cells: Intervals
    shapley: Intervals
    l1: Intervals
    l2: Intervals
    mean_shapley: Intervals
    units: FloatArray
    bias: FloatArray
    unidentified: Mask
    seconds: tuple[float, float]


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


def coverages(truth: Truth, answers: Sequence[Answers]) -> Facts:
    """Coverage of everything that has intervals; effects too weak to be measured stand apart."""
    slack = ROUNDING * float(np.abs(truth.population.values).max())
    counted = np.stack([counted_cells(truth, a) for a in answers])
    many = counted & np.stack([a.units >= FEW_ROWS for a in answers])
    cells = [a.cells for a in answers]
    facts = {
        "cells": tally(cells, truth.values, counted, slack),
        "cells_of_many_units": tally(cells, truth.values, many, slack),
        "shapley": tally([a.shapley for a in answers], truth.shapley, counted[:, truth.cells_of_rows].all(3), slack),
    }
    features = np.broadcast_to(truth.known_features, (len(answers), len(truth.known_features)))
    of_features = truth.by_feature(truth.anova.importance("shapley"), "value")
    facts["mean_shapley"] = tally([a.mean_shapley for a in answers], of_features, features, slack)
    clear = truth.importances("l2") > CLEAR**2 * np.mean([a.bias for a in answers], axis=0)
    clear = np.broadcast_to(clear, (len(answers), len(clear)))
    known = np.array([effect.identified is not False for effect in truth.anova.effects_.values()])
    for kind, found in (("l1", [a.l1 for a in answers]), ("l2", [a.l2 for a in answers])):
        facts[kind] = tally(found, truth.importances(kind), clear & known, slack)
        facts[f"weak_{kind}"] = tally(found, truth.importances(kind), ~clear & known, slack)
    return facts


def ask(truth: Truth, n: int, cluster: int, said: bool, rng: np.random.Generator, shrunk: bool) -> Answers:
    """Draw one sample, fit it, and ask for every interval."""
    p = truth.population
    rows, labels = (p.draw(n, rng), None) if cluster == 1 else p.draw_clusters(n, cluster, rng)
    X, values = p.X.iloc[rows].reset_index(drop=True), p.values[rows]
    anova = exact(p, handle_unknown="ignore", shrinkage="auto" if shrunk else None)
    start = time.perf_counter()
    anova.fit(X, values, clusters=labels if said else None)
    middle = time.perf_counter()
    anova.errors()
    end = time.perf_counter()
    tables = [anova.importance(kind, by="subset", stderr=True, level=LEVEL) for kind in ("l2", "l1")]
    value, debiased = (truth.by_subset(tables[0], key) for key in ("value", "debiased"))
    squares, absolute = (from_table(truth.by_subset, table) for table in tables)
    cells, unidentified = intervals_of_cells(truth, anova)
    explained = anova.explain(truth.rows, stderr=True)
    return Answers(
        cells,
        Intervals(explained.values, *explained.interval(LEVEL), np.full(explained.values.shape, np.nan)),
        absolute,
        squares,
        from_table(truth.by_feature, anova.importance("shapley", level=LEVEL)),
        cells.rows if labels is None else clusters_in_cells(truth, X, labels),
        value - debiased,
        unidentified,
        (middle - start, end - middle),
    )


def exact(population: Population, **choices: Any) -> FunctionalANOVA:
    """An exact fit of a sample, unless it is said otherwise."""
    chosen = {"shrinkage": None} | choices
    return FunctionalANOVA(max_order=population.order, sampled=True, n_jobs=1, verbose=False, **chosen)


def from_table(order: Callable[[Any, str], FloatArray], table: Any) -> Intervals:
    """Intervals of importances as the table has them, in the order of the population."""
    value, low, high = (order(table, key) for key in ("value", "low", "high"))
    return Intervals(value, low, high, np.full(value.shape, np.nan))


def clusters_in_cells(truth: Truth, X: Any, labels: IntArray) -> FloatArray:
    """(cells,) how many of the clusters drawn have rows in each cell."""
    out = np.zeros(len(truth.values))
    for name, places in truth.places.items():
        if not name:
            out[places[()]] = len(np.unique(labels))
            continue
        for levels, own in X.assign(**{"a cluster": labels}).groupby(list(name), sort=False)["a cluster"]:
            out[places[tuple(str(level) for level in levels)]] = own.nunique()
    return out


def intervals_of_cells(truth: Truth, anova: FunctionalANOVA) -> tuple[Intervals, Mask]:
    """Every cell of the population in this sample, and which of them have no interval for want of identification."""
    size = len(truth.values)
    out = np.full((4, size), np.nan)
    out[3] = 0.0
    unidentified = np.zeros(size, dtype=bool)
    for name, effect in anova.effects_.items():
        places = truth.places[name]
        own = np.array([places[levels] for levels in effect.levels])
        low, high = effect.interval(LEVEL)
        out[:, own] = effect.values[:, 0], low[:, 0], high[:, 0], effect.rows
        unidentified[own] = effect.identified is False
    return Intervals(*out), unidentified


def counted_cells(truth: Truth, answers: Answers) -> Mask:
    """(cells,) those that count: rows enough, identified both in the sample and in the population, no intercept."""
    counted = (answers.cells.rows >= FEW_ROWS) & truth.identified & ~answers.unidentified
    counted[truth.places[()][()]] = False
    return np.asarray(counted)


def tally(found: Sequence[Intervals], truth: FloatArray, counted: Mask, slack: float) -> Facts:
    """How many intervals there are, the share that holds the truth, and errors over the spread of the estimates.

    ``margin`` is the standard error of that share: intervals of one sample go together, samples do not.
    """
    counted = counted & np.isfinite(np.stack([one.low for one in found]))
    covered = np.stack([one.covers(truth, slack) for one in found]) & counted
    total = int(counted.sum())
    if not total:
        return {"intervals": 0, "coverage": None, "margin": None, "stderr_over_spread": None}
    share = float(covered.sum() / total)
    each = tuple(range(1, counted.ndim))
    off = covered.sum(axis=each) - share * counted.sum(axis=each)
    return {
        "intervals": total,
        "coverage": share,
        "margin": float(np.sqrt(np.sum(off**2)) / total),
        "stderr_over_spread": ratio_of_errors(found, counted),
    }


def ratio_of_errors(found: Sequence[Intervals], counted: Mask) -> float | None:
    """The median over places of the mean standard error over the standard deviation of the estimates.

    Only places that counted in every sample: where a cell counts only when it is large, its spread is another one.
    """
    always = counted.all(axis=0)
    if len(found) < 2 or not always.any():
        return None
    half = np.stack([one.high - one.low for one in found])[:, always] / (2 * REACH)
    spread = np.stack([one.value for one in found])[:, always].std(axis=0, ddof=1)
    moves = spread > 1e-12 * np.abs(spread).max(initial=0.0)
    return float(np.median(half.mean(axis=0)[moves] / spread[moves])) if moves.any() else None


def apart(truth: Truth, answers: Sequence[Answers]) -> Facts:
    """Cells that are not counted, as shares of all cells of all samples, by reason."""
    rows = np.stack([a.cells.rows for a in answers])
    unidentified = np.stack([a.unidentified for a in answers]) | ~truth.identified
    return {
        "missing": float((rows == 0).mean()),
        "few_rows": float(((rows > 0) & (rows < FEW_ROWS) & ~unidentified).mean()),
        "unidentified": float(((rows > 0) & unidentified).mean()),
    }


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
