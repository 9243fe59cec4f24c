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
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import phases, tables
from benchmarks.harness import RESULTS, Facts, Line, clocked, peak, run_job, save, table
from exanova import FunctionalANOVA, neighbours, parallel, reference
from exanova.errors import InexactWarning, InputError, OutsideSupportWarning
from exanova.typing import FloatArray

MODULE = "benchmarks.high_dimension"
GREEDY = "Algorithm 1 of reference.py"
PATIENCE = 300.0
SEED = 0
LEGEND = (
    "exanova s: the whole of fit, from rows to certificate, the judging of held-out rows included; compiled before.\n"
    "peak: of the whole process, rows and libraries included. ratio: seconds of the other over ours.\n"
    "R2: on the rows fitted; held out: on rows that were not (for Connect-4 a second fit on four fifths of the rows)."
)


@dataclass(frozen=True)
class Settings:
    """Where the tables are, and whether all is small."""

    data: Path
    quick: bool = False

    @property
    def patience(self) -> float:
        """Seconds Algorithm 1 may take."""
        return 5.0 if self.quick else PATIENCE

    def cached(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What ``make`` returns, or what it returned the first time."""
        path = RESULTS / f"model-{name}{'-quick' if self.quick else ''}.npz"
        if not path.exists():
            RESULTS.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **make())
        with np.load(path) as file:
            return {key: file[key] for key in file.files}


@dataclass(frozen=True)
class Judged:
    """Rows with the outputs of a model, and others to judge by (or the share of them to hold out)."""

    X: Any
    values: FloatArray
    held: tuple[Any, FloatArray] | float


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


# MNIST: probability of a three under a network of 512 and 128 units


def mnist(settings: Settings) -> Judged:
    X, _ = mnist_rows(settings, "train")
    X2, _ = mnist_rows(settings, "test")
    found = settings.cached("mnist", partial(mnist_model, settings))
    return Judged(X, found["train"], (X2, found["test"]))


def mnist_rows(settings: Settings, part: str) -> tuple[Any, Any]:
    """(n, pixels) pixels above 127, and the digits; the middle of a few images for a quick run."""
    with np.load(settings.data / f"mnist_{part}.npz") as file:
        images, labels = file["images"], file["labels"]
    if settings.quick:
        images, labels = images[:3000, 9:19, 9:19], labels[:3000]
    return (images.reshape(len(images), -1) > 127).astype(np.uint8), labels


def mnist_model(settings: Settings) -> dict[str, Any]:
    X, labels = mnist_rows(settings, "train")
    X2, labels2 = mnist_rows(settings, "test")
    network = perceptron((32,) if settings.quick else (512, 128), 3 if settings.quick else 15)
    network.fit(X.astype(np.float32), labels)
    train, test = (network.predict_proba(rows.astype(np.float32)) for rows in (X, X2))
    return {
        "train": np.asarray(train[:, 3], dtype=np.float64),
        "test": np.asarray(test[:, 3], dtype=np.float64),
        "accuracy": np.mean(test.argmax(axis=1) == labels2),
    }


def perceptron(layers: tuple[int, ...], epochs: int) -> Any:
    """A network that is not asked to converge."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    warnings.simplefilter("ignore", ConvergenceWarning)
    return MLPClassifier(layers, max_iter=epochs, batch_size=256, random_state=SEED)


# Connect-4: three classes under a forest of 100 trees


def connect4(settings: Settings) -> Judged:
    rows, features, trees = (3000, 12, 10) if settings.quick else (None, None, 100)
    case = tables.connect4(settings.data, rows, features, trees)
    return Judged(case.X, case.values, 0.2)


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


# Poker: probability of class 0 under a network trained on hands with their cards and suits permuted


def poker(settings: Settings) -> Judged:
    X, _ = poker_rows(settings, "train")
    X2, _ = poker_rows(settings, "test_head")
    found = settings.cached("poker", partial(poker_model, settings))
    return Judged(X, found["train"], (X2, found["test"]))


def poker_rows(settings: Settings, part: str) -> tuple[pd.DataFrame, Any]:
    X, labels = tables.read(settings.data, f"poker_{part}")
    count = 4000 if settings.quick else None
    return X[:count], labels[:count].astype(int).to_numpy()


def poker_model(settings: Settings) -> dict[str, Any]:
    """The 25,010 training hands, in every epoch with cards and suits in another order: the class is the same.

    Ends at an accuracy of 0.99 on the first 10,000 test hands, on which nothing was trained, or after 200 epochs.
    """
    (X, labels), (X2, labels2) = (poker_rows(settings, part) for part in ("train", "test_head"))
    hands, hands2 = (rows.astype(int).to_numpy().reshape(-1, 5, 2) for rows in (X, X2))
    rng = np.random.default_rng(SEED)
    network = perceptron((16,) if settings.quick else (256, 128), 1)
    checked = slice(0, 10_000)
    for epoch in range(2 if settings.quick else 200):
        network.partial_fit(cards_one_hot(permuted(hands, rng)), labels, classes=np.arange(10))
        if epoch % 5 == 4 and network.score(cards_one_hot(hands2[checked]), labels2[checked]) > 0.99:
            break
    train, test = (network.predict_proba(cards_one_hot(h)) for h in (hands, hands2))
    return {
        "train": np.asarray(train[:, 0], dtype=np.float64),
        "test": np.asarray(test[:, 0], dtype=np.float64),
        "accuracy": np.mean(test.argmax(axis=1) == labels2),
        "epochs": epoch + 1,
    }


def permuted(hands: Any, rng: np.random.Generator) -> Any:
    """(n, 5, 2) hands with their cards in a random order and their suits renamed."""
    order = rng.random(hands.shape[:2]).argsort(axis=1)
    moved = np.take_along_axis(hands, order[:, :, None], axis=1)
    suits = rng.random((len(hands), 4)).argsort(axis=1) + 1
    moved[:, :, 0] = np.take_along_axis(suits, moved[:, :, 0] - 1, axis=1)
    return moved


def cards_one_hot(hands: Any) -> Any:
    suits = np.equal.outer(hands[:, :, 0], np.arange(1, 5))
    ranks = np.equal.outer(hands[:, :, 1], np.arange(1, 14))
    return np.concatenate([suits, ranks], axis=2).reshape(len(hands), -1).astype(np.float32)


# Dota2: probability that team 1 wins under a deep network of the heroes


def dota2(settings: Settings) -> Judged:
    X, _, is_train = dota2_rows(settings)
    values = settings.cached("dota2", partial(dota2_model, settings))["values"]
    return Judged(X[is_train], values[is_train], (X[~is_train], values[~is_train]))


def dota2_rows(settings: Settings) -> tuple[Any, Any, Any]:
    """(n, 113) heroes: -1, 0 or 1 each; who won; and which rows are for training."""
    X, labels = tables.read(settings.data, "dota2")
    is_train = (X["split"] == "train").to_numpy()
    heroes = X[[name for name in X if name.startswith("hero_")]].astype(np.int8).to_numpy()
    if settings.quick:
        chosen = np.concatenate([np.flatnonzero(is_train)[:3000], np.flatnonzero(~is_train)[:1000]])
        return heroes[chosen, :20], (labels == "1").to_numpy()[chosen], is_train[chosen]
    return heroes, (labels == "1").to_numpy(), is_train


def dota2_model(settings: Settings) -> dict[str, Any]:
    X, won, is_train = dota2_rows(settings)
    inputs = np.hstack([X == 1, X == -1]).astype(np.float32)
    network = perceptron((16, 8) if settings.quick else (256, 128, 64), 2 if settings.quick else 6)
    network.fit(inputs[is_train], won[is_train])
    values = np.asarray(network.predict_proba(inputs)[:, 1], dtype=np.float64)
    return {"values": values, "accuracy": np.mean((values > 0.5)[~is_train] == won[~is_train])}


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
