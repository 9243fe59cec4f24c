"""The fits that two versions of the source are compared on (:mod:`benchmarks.versions`).

Small tables, and the fits of ``make bench`` and ``make bench-dimension`` with the classes of a table in place of model
outputs, so that nothing has to be trained.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


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


def groups(data: Path) -> dict[str, Cases]:
    """The cases of every table of the page; short fits first, which compile the loops that long ones load."""
    return {
        "case of `make bench`": core_cases(data),
        "case of `make bench-dimension`": dimension_cases(data) | long_cases(data),
        "other fits": small_cases(data),
    }


def cases(data: Path) -> Cases:
    """All cases by name."""
    return {name: case for group in groups(data).values() for name, case in group.items()}


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
    """Fits under a budget that take seconds, those of ``make bench-dimension`` with smaller budgets or as they are."""
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
            f"{name}, 5,000 {how}": partial(
                lambda which, how: fits(table(data, which), selection=how, **large), which, how
            )
            for name, which in (("Connect-4", "connect4"), ("Poker", "poker"))
            for how in ("screen", "canonical")
        },
        **{
            f"{name}, 5,000 canonical, paper": partial(lambda which: fits(table(data, which), **paper, **large), which)
            for name, which in (("Connect-4", "connect4"), ("Poker", "poker"))
        },
        "Dota2, 4,000 screened": lambda: fits(table(data, "dota2"), max_terms=4000),
        "10^5 x 100 planted, 1,000 screened": lambda: fits(planted(10**5, 100), max_terms=1000),
        "10^6 x 25 planted, 400 screened": lambda: fits(planted(10**6, 25), max_terms=400),
        "10^6 x 100 planted, 1,000 screened": lambda: fits(planted(10**6, 100), max_terms=1000),
        "200,000 x 158 levels 3, pairs, matrix-free": lambda: fits(
            made(200_000, 158, 3), route="matrix-free", memory_limit="4 GB"
        ),
    }
