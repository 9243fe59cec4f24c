"""Random fits against exact fractions: wherever the certificate says exact, the answer has to be right.

    python tests/differential.py --cases 20000

Supports with holes, copied, nearly copied and constant columns; weights over twenty orders of magnitude; models on any
scale and with any offset; every route, rule for ties, basis and selection. Whatever the library refuses or flags is
counted; what it calls exact is compared, cell by cell, with the same decomposition in rational arithmetic.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from exanova import FunctionalANOVA
from exanova.errors import ExanovaError
from oracles import cells_of, exact_decomposition, exact_paper, indicators, project, reduce_rows

TOLERANCE = 1e-6
"""Largest error of an effect that an exact answer may have, relative to the model's largest deviation from its mean."""

PRIME = 1_048_573


@dataclass(frozen=True)
class Trial:
    """One fit: distinct rows, their weights, the values of one or two outputs, and parameters."""

    rows: np.ndarray
    weight: np.ndarray
    values: np.ndarray
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return (
            f"rows={self.rows.tolist()}, weight={self.weight.tolist()}, values={self.values.tolist()}, "
            f"parameters={self.parameters}"
        )


@dataclass(frozen=True)
class Verdict:
    """What came of a trial: ``refused``, ``flagged``, ``agrees`` or ``WRONG``, with the error and the reason."""

    outcome: str
    route: str
    error: float = 0.0
    reason: str = ""


def draw(seed: int) -> Trial:
    """The trial of a seed."""
    rng = np.random.default_rng(seed)
    rows = _rows(rng)
    values = _values(rng, len(rows))
    weight = _weight(rng, len(rows))
    return Trial(rows, weight, values, _parameters(rng, rows))


def _rows(rng: np.random.Generator) -> np.ndarray:
    sizes = rng.integers(1, 5, rng.integers(1, 5))
    grid = np.array(list(product(*map(range, sizes))))
    count = len(grid) if rng.random() < 0.4 and len(grid) <= 18 else rng.integers(1, min(len(grid), 14) + 1)
    rows = rng.choice(grid, count, replace=False)
    if rng.random() < 0.4 and rows.shape[1] < 4:
        copy = rows[:, [rng.integers(rows.shape[1])]].copy()
        if rng.random() < 0.5:  # nearly a copy: told apart by one row
            copy[rng.integers(len(copy))] = rng.integers(0, 3)
        rows = np.hstack([rows, copy])
    rows = np.unique(rows, axis=0)
    rows = rows[rng.permutation(len(rows))]
    return np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1)


HOLES = ("one missing", "latin", "diagonal", "blocks", "copies", "constant", "sum", "star", "random")
"""How the rows of :func:`all_orders` are left out of a complete table."""


def all_orders(seed: int, route: str = "completion") -> Trial:
    """All orders of rows that are left out by a rule; of several weights, the lightest are 1e-12 of the heaviest."""
    rng = np.random.default_rng(seed)
    rows = _rows_by_a_rule(rng, HOLES[seed % len(HOLES)])
    r = len(rows)
    weight = [
        np.ones(r),
        rng.integers(1, 9, r),
        10.0 ** rng.uniform(-12, 0, r),
        10.0 ** rng.uniform(-6, 0, r),
        np.where(rng.random(r) < 0.3, 1e-12, 1.0),
        np.where(rng.random(r) < 0.3, 1e-9, 1.0),
    ][rng.integers(6)]
    values = rng.normal(size=(r, rng.integers(1, 4)))
    settings = {"max_order": None, "ties": "share", "basis": "pure", "route": route, "n_jobs": 1}
    return Trial(rows, weight, values, settings)


def _rows_by_a_rule(rng: np.random.Generator, rule: str) -> np.ndarray:
    grid = np.array(list(product(*map(range, rng.integers(2, 4, rng.integers(2, 5))))))
    some = grid[rng.random(len(grid)) < rng.uniform(0.2, 0.95)]
    some = some if len(some) else grid
    n = int(rng.integers(2, 5))
    first, second = (column.ravel() for column in np.meshgrid(range(n), range(n)))
    block = np.array(list(product(range(2), repeat=int(rng.integers(2, 4)))))
    rows = {
        "one missing": np.delete(grid, rng.integers(len(grid)), 0),
        "latin": np.stack([first, second, (first + second) % n, (first + 2 * second) % n], 1)[:, : rng.integers(3, 5)],
        "diagonal": np.stack([rng.permutation(n) for _ in range(rng.integers(2, 5))], 1),
        "blocks": np.delete(np.vstack([block, block + 2]), rng.integers(0, 3), 0),
        "copies": np.column_stack([some[:, :3], some[:, 0], some[:, : min(3, some.shape[1])][:, -1]]),
        "constant": np.column_stack([np.zeros(len(some), dtype=int), some, np.ones(len(some), dtype=int)]),
        "sum": grid[grid.sum(1) <= rng.integers(1, 4)],
        "star": grid[(grid > 0).sum(1) <= 1],
        "random": some,
    }[rule]
    rows = np.unique(rows, axis=0)[:40]
    rows = rows[rng.permutation(len(rows))]
    return np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1)


def _values(rng: np.random.Generator, r: int) -> np.ndarray:
    columns = []
    for _ in range(rng.integers(1, 3)):
        scale = 10.0 ** (rng.uniform(-300, 293) if rng.random() < 0.2 else rng.choice([-100, -6, 0, 0, 0, 6, 100]))
        offset = rng.choice([0.0, 0.0, 1.0, 1e6, 1e12, 1e15])
        kind = rng.random()
        base = rng.integers(-8, 9, r) / 4.0 if kind < 0.6 else rng.normal(size=r) if kind < 0.9 else np.full(r, 0.1)
        columns.append(np.clip(scale * (offset + base), -1e308, 1e308))
    return np.stack(columns, axis=1)


def _weight(rng: np.random.Generator, r: int) -> np.ndarray:
    kind = rng.integers(6)
    if kind == 0:
        return np.ones(r, dtype=np.int64)
    if kind == 1:
        return rng.integers(1, 9, r)
    if kind == 2:
        return (10.0 ** rng.uniform(0, 5.5, r)).astype(np.int64)
    if kind == 3:
        return rng.integers(1, 5, r) * PRIME
    span = rng.choice([1, 6, 12, 20])
    weight = 10.0 ** rng.uniform(-span, 0, r)
    return weight * (rng.integers(1, 9, r) if kind == 4 else 1.0)


def _parameters(rng: np.random.Generator, rows: np.ndarray) -> dict[str, Any]:
    ties = rng.choice(["share", "share", "first"])
    out: dict[str, Any] = {
        "max_order": [None, 1, 2, 2, 3][rng.integers(5)],
        "ties": str(ties),
        "basis": str(rng.choice(["pure", "pure", "paper"])),
        "route": str(rng.choice(["auto", "auto", "dense", "moments", "matrix-free", "grid"])),
        "n_jobs": 1,
        "memory_limit": "2 GB",
    }
    if rng.random() < 0.25:
        mains = 1 + int(rows.max(axis=0).sum())
        out["selection"] = str(rng.choice(["screen", "canonical", "lasso"]))
        out["max_terms"] = int(rng.integers(mains, mains + 8))
        out["route"] = "auto"
    return out


def run(trial: Trial) -> Verdict:
    """Fit and compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            anova = FunctionalANOVA(**{"shrinkage": None, **trial.parameters}).fit(
                trial.rows, trial.values, sample_weight=trial.weight
            )
        except ExanovaError as error:
            return Verdict("refused", trial.parameters["route"], reason=str(error)[:60])
        except Exception as error:  # whatever is not of the one family of errors is a defect
            return Verdict("WRONG", trial.parameters["route"], np.inf, f"{type(error).__name__}: {error}")
    certificate = anova.certificate_
    if not certificate.exact:
        return Verdict("flagged", certificate.route, reason=certificate.notes[0][:60])
    error, reason = largest_error(trial, anova)
    return Verdict("agrees" if error <= TOLERANCE else "WRONG", certificate.route, error, reason)


def largest_error(trial: Trial, anova: FunctionalANOVA) -> tuple[float, str]:
    """The largest disagreement with exact arithmetic, and what disagrees."""
    rows = [tuple(row) for row in trial.rows.tolist()]
    weight = [Fraction(w) for w in trial.weight.tolist()]
    p = [w / sum(weight) for w in weight]
    family = [tuple(int(name[1:]) for name in names) for names in anova.effects_]
    errors = [_rank_error(rows, family, trial, anova)]
    for k, column in enumerate(trial.values.T):
        f = [Fraction(v) for v in column.tolist()]
        errors.append(_output_error(trial, anova, rows, p, f, family, k))
    return max(errors)


def _rank_error(rows: list[Any], family: list[Any], trial: Trial, anova: FunctionalANOVA) -> tuple[float, str]:
    """Rank and uniqueness are whole numbers: right, or wrong by 1."""
    certificate = anova.certificate_
    if not certificate.rank_known or "max_terms" in trial.parameters:
        return 0.0, "rank"
    rank = len(reduce_rows(indicators(rows, family), len(rows))[1])
    return float(certificate.rank != rank), f"rank {certificate.rank}, not {rank}"


def _output_error(
    trial: Trial,
    anova: FunctionalANOVA,
    rows: list[Any],
    p: list[Fraction],
    f: list[Fraction],
    family: list[Any],
    k: int,
) -> tuple[float, str]:
    mean = sum(a * b for a, b in zip(p, f, strict=True))
    spread = max(abs(v - mean) for v in f)
    if spread <= Fraction(2.0**-50) * abs(mean):
        return 0.0, "constant to rounding"
    first, pure = trial.parameters["ties"] == "first", trial.parameters["basis"] == "pure"
    selection = trial.parameters.get("selection")
    if first and (selection == "screen" or (pure and selection == "canonical")):
        return 0.0, "functions cut by the budget depend on the basis and on the order of arrival"
    tables = _expected(trial, rows, p, f, family)
    fitted = [sum(tables[s][project(row, s)] for s in family) for row in rows]
    worst, where = _r2_error(anova, p, f, fitted, mean, k), "R2"
    comparable = (
        trial.parameters["ties"] == "share" or trial.parameters["basis"] == "paper" or anova.certificate_.unique
    )
    for subset in family:
        values = anova.effects_[tuple(f"x{i}" for i in subset)].values[:, k] if comparable else ()
        for cell, value in zip(cells_of(rows, subset), values, strict=False):
            # The intercept cannot be written closer than a float allows.
            room = Fraction(2.0**-52) * abs(mean) if not subset else 0
            error = float(max(Fraction(0), abs(Fraction(float(value)) - tables[subset][cell]) - room) / spread)
            worst, where = max((worst, where), (error, f"effect {subset} at {cell}, output {k}"))
    return worst, where


def _expected(trial: Trial, rows: list[Any], p: list[Fraction], f: list[Fraction], family: list[Any]) -> Any:
    paper = trial.parameters["ties"] == "first" and trial.parameters["basis"] == "paper"
    budget = trial.parameters.get("max_terms") if trial.parameters.get("selection") == "canonical" else None
    if paper:
        return exact_paper(rows, p, f, family, budget)
    return exact_decomposition(rows, p, f, family=family)


def _r2_error(
    anova: FunctionalANOVA, p: list[Fraction], f: list[Fraction], fitted: list[Fraction], mean: Fraction, k: int
) -> float:
    variance = sum(a * (v - mean) ** 2 for a, v in zip(p, f, strict=True))
    mse = sum(a * (v - g) ** 2 for a, v, g in zip(p, f, fitted, strict=True))
    return float(abs(Fraction(float(anova.certificate_.r2[k])) - (1 - mse / variance)))


def _trials(first: int, cases: int) -> Iterator[tuple[int, Trial]]:
    """Trials with their seeds; every fifth is of all orders, on one of three routes."""
    for seed in range(first, first + cases):
        routes = ("completion", "dense", "completion", "moments")
        yield seed, all_orders(seed, routes[seed // 5 % 4]) if seed % 5 == 4 else draw(seed)


def main() -> int:
    """Run many trials; the exit code tells whether any exact answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    started, largest = time.perf_counter(), 0.0
    for seed, trial in _trials(arguments.first, arguments.cases):
        verdict = run(trial)
        counts[verdict.outcome, verdict.route] += 1
        if verdict.outcome in ("refused", "flagged"):
            reasons[verdict.outcome, verdict.reason] += 1
        if verdict.outcome == "agrees":
            largest = max(largest, verdict.error)
        if verdict.outcome == "WRONG":
            print(f"seed {seed}, {verdict.route}: {verdict.reason}, error {verdict.error:.1e}; {trial}", flush=True)
    print(
        f"{arguments.cases:,} cases in {time.perf_counter() - started:.0f} s; largest error called exact {largest:.1e}"
    )
    for (outcome, route), count in sorted(counts.items()):
        print(f"  {outcome:<8} {route:<20} {count:,}")
    for (outcome, reason), count in reasons.most_common(15):
        print(f"  {outcome}: {count:,} x {reason}")
    return int(any(outcome == "WRONG" for outcome, _ in counts))


if __name__ == "__main__":
    sys.exit(main())
