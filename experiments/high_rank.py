"""Decompositions at main effects and at high ranks, for the experiments that have both: fits, rows, tables, checks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.harness import clocked

from exanova import FunctionalANOVA
from exanova.errors import InexactWarning, OutsideSupportWarning
from exanova.typing import FloatArray
from experiments.harness import Check, Row, Table, below


@dataclass(frozen=True)
class Target:
    """Rows, outputs (n,) of a model on them, and what to judge by: other rows with outputs, or nothing."""

    X: Any
    values: FloatArray
    held: tuple[Any, FloatArray] | None
    accuracy: float
    model: str


@dataclass(frozen=True)
class Line:
    """A line of the paper's tables, and the ways in which it is made here: a name, what the estimator is told."""

    what: str
    rank: int
    seconds: str
    r2: str
    mse: str
    relative: str
    ways: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Fitted:
    """One way of making a line, and what came out of it."""

    line: Line
    way: str
    anova: FunctionalANOVA
    seconds: float


def up_to_triples(budget: int) -> dict[str, dict[str, Any]]:
    """A budget spent in the order of the paper, and on what explains most."""
    order3 = {"max_order": 3, "max_terms": budget}
    return {
        "in the paper's order": {**order3, "selection": "canonical"},
        "screened": {**order3, "selection": "screen"},
    }


def fitted(target: Target, lines: Sequence[Line]) -> list[Fitted]:
    """Every line in every way; timed with the judging of held-out rows, compiled before."""
    found = []
    for line in lines:
        for way, choices in line.ways.items():
            warm_up(choices)
            seconds, anova = clocked(lambda choices=choices: fit(target.X, target.values, target.held, choices))
            found.append(Fitted(line, way, anova, seconds))
    return found


def fit(X: Any, values: FloatArray, held: Any, choices: dict[str, Any]) -> FunctionalANOVA:
    """A decomposition; what its certificate notes is shown on the page and need not be warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        warnings.simplefilter("ignore", OutsideSupportWarning)
        return FunctionalANOVA(handle_unknown="ignore", **{"shrinkage": None, **choices}).fit(X, values, eval_set=held)


def warm_up(choices: dict[str, Any]) -> None:
    """Compile what the choices need, on a table of no interest."""
    X = np.random.default_rng(1).integers(0, 3, (300, 5)).astype(np.uint8)
    small = {name: value for name, value in choices.items() if name != "subsets"}
    if "max_terms" in small:
        small["max_terms"] = 60
    fit(X, (X[:, 0] == X[:, 1]) * (X[:, 2] > 0) * 1.0, 0.2, small)


def rows_of(found: Sequence[Fitted], target: Target, accuracy: str, why: str = "") -> list[Row]:
    """Accuracy of the model, then rank and R2 of every line."""
    rows = [Row("accuracy of the model", accuracy, f"{target.accuracy:.4f}", why)]
    for k, one in enumerate(found):
        c, line = one.anova.certificate_, one.line
        name = f"{line.what}{f', {one.way}' if one.way else ''}"
        first = k == 0 or found[k - 1].line is not line
        if first:
            rows.append(Row(f"rank, {line.what}", f"{line.rank:,}", f"{c.rank:,}", of_functions(c.rank, c.n_functions)))
        rows.append(Row(f"R2, {name}", line.r2, f"{c.r2[0]:.3f}", held_out(one), first or one is found[-1]))
    return rows


def of_functions(rank: int, functions: int) -> str:
    return f"of {functions:,} functions" if rank < functions else ""


def held_out(one: Fitted) -> str:
    found = one.anova.certificate_.r2_eval
    return "" if found is None else f"on rows held out {found[0]:.3f}"


def table_of(found: Sequence[Fitted]) -> Table:
    """Each line of the paper, and ours below it."""
    lines, last = [], None
    for one in found:
        p, c = one.line, one.anova.certificate_
        if p is not last:
            printed = [f"{p.rank:,}", p.seconds, p.r2, "", p.mse, p.relative, ""]
            lines.append([f"{p.what}, the paper", *printed])
            last = p
        held = "" if c.r2_eval is None else f"{c.r2_eval[0]:.3f}"
        relative = f"{100 * c.relative_mse[0]:.0f} %"
        measured = [f"{c.r2[0]:.3f}", held, f"{c.mse[0]:.3f}", relative, f"{c.orthogonality:.0e}"]
        lines.append([one.way or "here", f"{c.rank:,}", f"{one.seconds:.0f} s", *measured])
    header = ["", "rank", "time", "R2", "R2, held out", "MSE", "relative MSE", "orthogonality"]
    return Table("The paper's lines, and ours below each of them (times of different machines):", header, lines)


def checks_of(found: Sequence[Fitted]) -> list[Check]:
    """Effects are orthogonal, main effects are exact, and a larger family explains more."""
    r2 = [float(one.anova.certificate_.r2[0]) for one in found]
    worst = max(one.anova.certificate_.orthogonality for one in found)
    mains, least = found[0].anova.certificate_, min(r2[1:])
    return [
        below("largest conditional mean of any effect", worst, 1e-12),
        Check("main effects are exact", "; ".join(mains.notes) or "no note", mains.exact),
        Check("interactions explain more than main effects", f"{least:.3f} against {r2[0]:.3f}", least > r2[0]),
    ]


def noted(found: Sequence[Fitted]) -> list[str]:
    """What the certificates of the larger families note, as a paragraph."""
    notes = {one.way or one.line.what: one.anova.certificate_.notes for one in found}
    said = [f"{name}: {'; '.join(note)}" for name, note in notes.items() if note]
    return [f"Noted by the certificates. {'. '.join(said)}."] if said else []
