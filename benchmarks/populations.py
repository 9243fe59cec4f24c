"""Populations that samples are drawn from: tables of the paper, and two distributions that are known exactly.

A population is a list of rows with probabilities and the values of a fixed model on them, so that its effects are
exact: a decomposition of all of it, without any sampling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from exanova import FunctionalANOVA, datasets
from exanova.typing import FloatArray, IntArray

TREES, DEPTH = 30, 8
"""Size of the random forest that is explained on the tables of the paper."""

BOARD = tuple(f"{column}{row}" for column in "abc" for row in range(1, 7))
"""The eighteen squares of the three leftmost columns of Connect-4."""


@dataclass(frozen=True, eq=False)
class Population:
    """Rows with probabilities, and the model on them.

    Attributes:
        title: what the page calls it.
        X: (N, d) rows.
        values: (N,) what the model says of each.
        order: largest number of features in an effect.
        probability: (N,) of each row, or ``None`` where all are equally likely.
    """

    title: str
    X: pd.DataFrame
    values: FloatArray
    order: int
    probability: FloatArray | None = None

    def truth(self) -> FunctionalANOVA:
        """The decomposition of the whole population."""
        anova = FunctionalANOVA(max_order=self.order, shrinkage=None, sampled=False, n_jobs=1)
        return anova.fit(self.X, self.values, sample_weight=self.probability)

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """(n,) numbers of rows, drawn with replacement."""
        return rng.choice(len(self.X), n, p=self.probability)

    def draw_clusters(self, n: int, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Rows of whole clusters, n in all, and the cluster of each; a cluster is a run of ``size`` rows.

        A cluster that is drawn twice is two clusters.
        """
        drawn = rng.integers(0, len(self.X) // size, n // size)
        rows = (drawn[:, None] * size + np.arange(size)).ravel()
        return rows, np.repeat(np.arange(len(drawn)), size)


def paper_table(
    data: Path, name: str, explained: str, title: str, order: int, columns: tuple[str, ...] | None = None
) -> Population:
    """A table of the paper with the probability of one class under a random forest of all columns.

    With some ``columns`` only, rows that are equal have different values: outputs are then noisy.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    found = datasets.load(name, data)
    codes = OrdinalEncoder(dtype=np.float32).fit_transform(found.X)
    forest = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=0, n_jobs=1).fit(codes, found.y)
    values = np.asarray(forest.predict_proba(codes)[:, forest.classes_ == explained][:, 0], dtype=np.float64)
    return Population(title, found.X if columns is None else found.X[list(columns)], values, order)


def random_grid(title: str, sizes: tuple[int, ...], *, holes: float, concentration: float, seed: int) -> Population:
    """A grid under random dependent probabilities, some of them zero, with a model that has every order.

    Effects up to order two are fitted, so that the third order stays in the residual.
    """
    rng = np.random.default_rng(seed)
    margins = [rng.dirichlet(np.full(size, 4.0)) for size in sizes]
    weight = rng.gamma(concentration, size=sizes) / concentration
    for axis, margin in enumerate(margins):
        weight *= margin.reshape([-1 if k == axis else 1 for k in range(len(sizes))])
    weight[rng.random(sizes) < holes] = 0.0
    cells = np.argwhere(weight > 0)
    probability = weight[tuple(cells.T)]
    X = pd.DataFrame(cells, columns=[f"x{k}" for k in range(len(sizes))])
    return Population(title, X, layered_values(cells, sizes, rng), 2, probability / probability.sum())


def layered_values(cells: IntArray, sizes: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """(N,) a sum of random tables over single features, pairs and triples, each order half as large as the last."""
    out = np.zeros(len(cells))
    for order in (1, 2, 3):
        subsets = list(combinations(range(len(sizes)), order))
        for subset in subsets:
            table = rng.standard_normal([sizes[k] for k in subset])
            out += table[tuple(cells[:, k] for k in subset)] * 2.0 ** (1 - order) / np.sqrt(len(subsets))
    return out


def populations(data: Path) -> dict[str, Callable[[], Population]]:
    """Every population by name, made when it is asked for."""
    return {
        "nursery": partial(paper_table, data, "nursery", "priority", "Nursery", 2),
        "nursery mains": partial(paper_table, data, "nursery", "priority", "Nursery", 1),
        "mushroom": partial(paper_table, data, "mushroom", "p", "Mushroom", 1),
        "connect4": partial(paper_table, data, "connect4", "win", "Connect-4", 1),
        "connect4 part": partial(paper_table, data, "connect4", "win", "Connect-4, 18 of 42 squares", 1, BOARD),
        "poker": partial(paper_table, data, "poker", "0", "Poker", 1),
        "grid": partial(random_grid, "Synthetic grid", (4, 3, 3, 2), holes=0.0, concentration=0.7, seed=1),
        "holes": partial(
            random_grid, "Synthetic grid with holes", (5, 4, 3, 3, 2), holes=0.3, concentration=0.5, seed=2
        ),
    }
