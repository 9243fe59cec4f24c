"""The benchmark of high dimension: ``python -m benchmarks.high_dimension --data DIR [--only NAME] [--quick]``.

The right few thousand functions out of millions: MNIST, Connect-4, Poker, Dota2 with models of scikit-learn, planted
interactions in a million rows, and a family whose Gram matrix would not fit. Every case runs in a process of its own;
one line a case: seconds of ``fit``, peak memory, rank, R2 on the rows fitted and on rows held out.
Models are trained once; their outputs are kept beside the results.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import phases, tables
from benchmarks.harness import Facts, Line, clocked, peak, run_job, save, table
from benchmarks.large_cases import (
    SEED,
    Judged,
    Settings,
    connect4,
    dota2,
    dota2_model,
    mnist,
    mnist_model,
    poker,
    poker_model,
)
from exanova import FunctionalANOVA, neighbours, parallel, reference
from exanova.errors import InexactWarning, InputError, OutsideSupportWarning
from exanova.typing import FloatArray

MODULE = "benchmarks.high_dimension"
GREEDY = "Algorithm 1 of reference.py"
LEGEND = (
    "exanova s: the whole of fit, from rows to certificate, the judging of held-out rows included; compiled before.\n"
    "peak: of the whole process, rows and libraries included. ratio: seconds of the other over ours.\n"
    "R2: on the rows fitted; held out: on rows that were not (for Connect-4 a second fit on four fifths of the rows)."
)


def main() -> int:
    """Run every job, or the one that is named."""
    options = parse()
    settings = Settings(options.data, options.quick)
    if options.job:
        given = json.loads(options.given) if options.given else {}
        found = (jobs(settings) | followers(settings, given))[options.job]()
        print(json.dumps({"peak": peak()} | found))
        return 0
    return measure(settings, options.only)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--only", default="", help="only the jobs whose names begin like this")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that everything runs")
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    parser.add_argument("--given", help="what earlier jobs found, as JSON, for the jobs that need it")
    return parser.parse_args()


# One fit


def fitted(case: Callable[[Settings], Judged], settings: Settings, **choices: Any) -> Facts:
    """Time ``fit`` on a case and say what came out of it."""
    judged = case(settings)
    warm_up(choices)
    share = judged.held if isinstance(judged.held, float) else None
    with phases.watched() as spent:
        seconds, anova = clocked(lambda: fit(judged, choices, None if share else judged.held))
    facts = described(anova) | {"seconds": seconds, "peak": peak(), "rows": len(judged.X), "phases": spent}
    if share:
        facts["r2_eval"] = fit(judged, choices, share).certificate_.r2_eval.tolist()
    return facts


def fit(judged: Judged, choices: dict[str, Any], eval_set: Any) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        warnings.simplefilter("ignore", OutsideSupportWarning)
        anova = FunctionalANOVA(handle_unknown="ignore", **{"shrinkage": None, **choices})
        return anova.fit(judged.X, judged.values, eval_set=eval_set)


def warm_up(choices: dict[str, Any]) -> None:
    """Compile, and load what is loaded once."""
    X = np.random.default_rng(1).integers(0, 3, (300, 5)).astype(np.uint8)
    values = (X[:, 0] == X[:, 1]) * (X[:, 2] > 0) * 1.0
    small = {name: value for name, value in choices.items() if name not in ("subsets", "memory_limit")}
    if "max_terms" in small:
        small["max_terms"] = 60
    fit(Judged(X, values, 0.2), small, 0.2)


def described(anova: FunctionalANOVA) -> Facts:
    found, plan = anova.certificate_, anova.plan_
    by_order = [sum(len(names) == k for names in anova.effects_) for k in range(1 + max(map(len, anova.effects_)))]
    return {
        "rank": found.rank,
        "rank_by_order": list(found.rank_by_order),
        "functions": found.n_functions,
        "subsets": by_order,
        "distinct_rows": plan.distinct_rows,
        "route": found.route,
        "iterations": found.iterations,
        "residual": found.residual,
        "planned": plan.memory,
        "r2": found.r2.tolist(),
        "r2_eval": None if found.r2_eval is None else found.r2_eval.tolist(),
        "orthogonality": found.orthogonality,
        "exact": found.exact,
        "notes": list(found.notes),
        "selection": str(anova.selection_).splitlines() if anova.selection_ else [],
    }


# Algorithm 1


def connect4_greedy(settings: Settings) -> Facts:
    """Algorithm 1 up to order three as far as patience goes, then its coefficients."""
    judged = connect4(settings)
    support, values = tables.Case(judged.X, judged.values).observed()
    codes, p = support.codes, support.probability
    basis = reference.algorithm1(codes, p, support.sizes, max_order=3, max_seconds=settings.patience)
    seconds, c = clocked(lambda: reference.restricted_solve(basis.Phi, p, values))
    error = values - basis.Phi @ c
    variance = p @ (values - p @ values) ** 2
    return {
        "seconds": basis.seconds + seconds,
        "rank": len(basis.selected),
        "tried": basis.tried,
        "stopped": basis.stopped,
        "r2": (1 - (p @ error**2) / variance).tolist(),
    }


# Planted pairs and triples


PAIRS, TRIPLES = 10, 5


def planted(rows: int, features: int) -> tuple[Any, FloatArray, list[tuple[int, ...]]]:
    """Dependent features of 4 levels; main effects, pairs and triples of random tables, and a little noise."""
    rng = np.random.default_rng(SEED)
    subsets: list[tuple[int, ...]] = planted_subsets(rng, features)
    mains = rng.normal(size=(features, 4))
    effects = [rng.normal(size=(4,) * len(s)) for s in subsets]
    X = rng.integers(0, 4, (rows, features), dtype=np.uint8)
    for i in range(1, features):  # a chain of dependence
        same = rng.random(rows) < 0.3
        X[same, i] = X[same, i - 1]
    y = 0.1 * rng.normal(size=rows)
    for i in range(features):
        y += mains[i][X[:, i]]
    for subset, effect in zip(subsets, effects, strict=True):
        y += effect[tuple(X[:, i] for i in subset)]
    return X, y, subsets


def planted_subsets(rng: np.random.Generator, features: int) -> list[tuple[int, ...]]:
    """Pairs and triples of features at random, none inside another."""
    found: list[tuple[int, ...]] = []
    for order, count in ((3, TRIPLES), (2, PAIRS)):
        while sum(len(s) == order for s in found) < count:
            subset = tuple(sorted(rng.choice(features, order, replace=False).tolist()))
            if not any(set(subset) <= set(other) for other in found):
                found.append(subset)
    return found


def synthetic(settings: Settings, rows: int, features: int) -> Facts:
    """Screening of all pairs and of triples by heredity: what was planted, what was found."""
    if settings.quick:
        rows, features = rows // 50, features // 5 + 5
    held = max(1000, rows // 20)
    X, y, subsets = planted(rows + held, features)
    judged = Judged(X[:rows], y[:rows], (X[rows:], y[rows:]))
    # Twice what the planted interactions and the pairs inside the triples need, for half of it is set aside.
    budget = 1 + 3 * features + 2 * (9 * PAIRS + 54 * TRIPLES)
    choices = {"max_order": 3, "max_terms": budget, "selection": "screen", "min_gain": 1e-5}
    warm_up(choices)
    with phases.watched() as spent:
        seconds, anova = clocked(lambda: fit(judged, choices, judged.held))
    names = set(anova.effects_)
    missed = [s for s in subsets if tuple(f"x{i}" for i in s) not in names]
    return described(anova) | {
        "seconds": seconds,
        "phases": spent,
        "rows": rows,
        "features": features,
        "planted": [PAIRS, TRIPLES],
        "missed": missed,
        "others taken": len([s for s in names if len(s) > 1]) - (len(subsets) - len(missed)),
    }


# A family whose Gram matrix is 20 GB


def matrix_free(settings: Settings) -> Facts:
    """All pairs of 158 features of three levels: about 50,000 functions, within 4 GB."""
    features, rows = (20, 4000) if settings.quick else (158, 200_000)
    rng = np.random.default_rng(SEED)
    X = rng.integers(0, 3, (rows, features), dtype=np.uint8)
    for i in range(1, features):
        same = rng.random(rows) < 0.3
        X[same, i] = X[same, i - 1]
    y = rng.normal(size=rows)
    for i, j in list(combinations(range(features), 2))[:: max(1, features // 3)]:
        y += rng.normal(size=(3, 3))[X[:, i], X[:, j]]
    choices = {"max_order": 2, "route": "matrix-free", "memory_limit": "4 GB"}
    cut = rows - rows // 20
    judged = Judged(X[:cut], y[:cut], (X[cut:], y[cut:]))
    try:
        warm_up(choices)
    except InputError as error:
        return {"skipped": f"no such route yet: {error}"}
    with phases.watched() as spent:
        seconds, anova = clocked(lambda: fit(judged, choices, judged.held))
    return described(anova) | {"seconds": seconds, "phases": spent, "rows": cut, "features": features}


# What runs


def jobs(settings: Settings) -> dict[str, Callable[[], Facts]]:
    """Every job by name, in the order in which they run; those that wait for another's result are not here."""
    paper = {"basis": "paper", "ties": "first", "selection": "canonical"}
    everything: dict[str, Callable[[], Facts]] = {"machine": machine} | {
        f"{name} model": partial(model_job, settings, name, make)
        for name, make in (("mnist", mnist_model), ("poker", poker_model), ("dota2", dota2_model))
    }
    shape = (10, 10) if settings.quick else (28, 28)
    everything["mnist main effects"] = partial(fitted, mnist, settings, max_order=1)
    for radius, rank in enumerate((150, 200, 300) if settings.quick else (2500, 5000, 10_000), start=1):
        near = neighbours(shape, radius)
        everything[f"mnist screen {rank}"] = partial(fitted, mnist, settings, max_terms=rank, selection="screen")
        everything[f"mnist neighbours {rank}"] = partial(
            fitted, mnist, settings, max_terms=rank, selection="screen", subsets=near
        )
        everything[f"mnist canonical {rank}"] = partial(fitted, mnist, settings, max_terms=rank, selection="canonical")
    large, middle = (400, 150) if settings.quick else (5000, 4000)
    order3 = {"max_order": 3, "max_terms": large}
    for name, case in (("connect4", connect4), ("poker", poker)):
        everything[f"{name} canonical"] = partial(fitted, case, settings, selection="canonical", **order3)
        everything[f"{name} screen"] = partial(fitted, case, settings, selection="screen", **order3)
        everything[f"{name} canonical paper first"] = partial(fitted, case, settings, **paper, **order3)
    everything["connect4 reference"] = partial(connect4_greedy, settings)
    everything["dota2 screen"] = partial(fitted, dota2, settings, selection="screen", max_terms=middle)
    for rows, features in ((10**5, 25), (10**5, 100), (10**6, 25), (10**6, 100)):
        everything[f"synthetic {rows} x {features}"] = partial(synthetic, settings, rows, features)
    everything["matrix-free"] = partial(matrix_free, settings)
    return everything


def machine() -> Facts:
    """What the machine does at its best, to hold the phases against."""
    seconds, limits = clocked(lambda: phases.limits(parallel.thread_count(None)))
    return {"seconds": seconds, "limits": limits}


def model_job(settings: Settings, name: str, make: Callable[[Settings], dict[str, Any]]) -> Facts:
    """Train the model of a case, unless that has been done, and say how accurate it is."""
    seconds, found = clocked(lambda: settings.cached(name, partial(make, settings)))
    return {"seconds": seconds} | {key: float(found[key]) for key in ("accuracy", "epochs") if key in found}


def followers(settings: Settings, facts: dict[str, Facts]) -> dict[str, Callable[[], Facts]]:
    """Ours at the rank that Algorithm 1 reached before its time was over."""
    rank = facts.get("connect4 reference", {}).get("rank")
    if rank is None:
        return {}
    choices = {"basis": "paper", "ties": "first", "selection": "canonical", "max_order": 3, "max_terms": rank}
    return {"connect4 at that rank": partial(fitted, connect4, settings, **choices)}


def measure(settings: Settings, only: str) -> int:
    """Run the jobs one after the other, print the table, keep the results."""
    arguments = ["--data", str(settings.data), *(["--quick"] * settings.quick)]
    found = {
        name: run_job(MODULE, name, arguments) for name in jobs(settings) if name == "machine" or name.startswith(only)
    }
    for name in followers(settings, found):
        found[name] = run_job(MODULE, name, [*arguments, "--given", json.dumps(found)])
    lines = report(found)
    print(table(lines))
    for name, facts in found.items():
        if "phases" in facts and "limits" in found.get("machine", {}):
            print(f"\n{name}: what takes the time\n" + "\n".join(bounds(facts, found["machine"])))
    path = save("high-dimension", found, lines, {"quick": settings.quick, "only": only})
    print(f"\n{LEGEND}\nEverything that was measured: {os.path.relpath(path)}")
    return 1 if any("failed" in facts for facts in found.values()) else 0


def bounds(facts: Facts, best: Facts) -> list[str]:
    """The phases of a fit beside the limits of the machine."""
    return phases.lines(facts["phases"], best["limits"], facts["seconds"])


def report(found: dict[str, Facts]) -> list[Line]:
    """One line a job; Algorithm 1 beside what we do at its rank."""
    greedy = found.get("connect4 reference", {})
    lines = []
    for name, facts in found.items():
        against = name == "connect4 at that rank"
        lines.append(Line(name, facts, greedy if against else {}, GREEDY if against else "", note(facts)))
    return lines


def note(facts: Facts) -> str:
    """Rank, both R2, and what is particular to a case."""
    parts = []
    if "rank" in facts:
        parts.append(f"rank {facts['rank']:,}")
    for key, name in (("r2", "R2"), ("r2_eval", "held out")):
        if facts.get(key):
            parts.append(f"{name} " + ", ".join(f"{value:.4f}" for value in facts[key]))
    if "accuracy" in facts:
        parts.append(f"accuracy {facts['accuracy']:.4f}")
    if "missed" in facts:
        parts.append(f"planted {sum(facts['planted'])}, missed {len(facts['missed'])}")
    if facts.get("route") == "matrix-free":
        parts.append(f"{facts['functions']:,} functions, {facts['iterations']} iterations")
    if facts.get("orthogonality", 0.0) > 1e-12 or facts.get("exact") is False:
        parts.append("NOT EXACT: " + "; ".join(facts["notes"]))
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
