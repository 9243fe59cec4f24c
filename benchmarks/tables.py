"""The tables of the benchmarks: rows of text, model values, and the same rows as the reference wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import RESULTS
from exanova import Support, datasets
from exanova.data.observe import observe
from exanova.typing import FloatArray

GRID_DROPPED = {12960: [], 4320: ["health"], 2160: ["health", "finance"], 720: ["health", "finance", "social"]}
"""Columns held at their first level to leave a complete grid of so many cells of Nursery."""

NAMES = {"poker_train": "poker", "poker_test_head": "poker_test"}
"""What a part of a table is called by :mod:`exanova.datasets`, where it is not the name of its file."""


@dataclass(frozen=True)
class Case:
    """A table with model values and weights, one line for each row."""

    X: pd.DataFrame
    values: FloatArray
    weight: FloatArray | None = None

    def observed(self) -> tuple[Support, FloatArray]:
        """The distinct rows and the values (r, m) on them, for the reference and the engine."""
        seen = observe(self.X, self.values, sample_weight=self.weight)
        return seen.support, seen.values.values


def read(data: Path, name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Inputs (and split, where there is one) and class of one table, as text."""
    found = datasets.load(NAMES.get(name, name), data)
    X = found.X if found.split is None else found.X.assign(split=found.split)
    return X, pd.Series(found.y, name="class")


def one_hot(labels: pd.Series[Any]) -> FloatArray:
    """One 0/1 column for each class."""
    return np.asarray(np.equal.outer(labels.to_numpy(), np.unique(labels)), dtype=np.float64)


def nursery(data: Path, cells: int, dependent: bool) -> Case:
    """A complete grid of Nursery with the class as five outputs, uniform or with random dependent weights."""
    X, labels = read(data, "nursery")
    values = one_hot(labels)
    dropped = GRID_DROPPED[cells]
    kept = (X[dropped] == X[dropped].iloc[0]).all(axis=1).to_numpy()
    weight = np.random.default_rng(5).dirichlet(np.full(cells, 5.0)) if dependent else None
    return Case(X.loc[kept].drop(columns=dropped), values[kept], weight)


def poker(data: Path, rows: int | None) -> Case:
    """Poker hands with the indicator of class 0 as the output."""
    X, labels = read(data, "poker_train")
    return Case(X[:rows], (labels[:rows] == "0").to_numpy(dtype=float))


def connect4(data: Path, rows: int | None, features: int | None, trees: int) -> Case:
    """Connect-4 with the three probabilities of a random forest; the forest is trained once and kept."""
    X, labels = read(data, "connect4")
    values = forest_values(X, labels, trees)
    if rows is not None and rows < len(X):
        chosen = np.sort(np.random.default_rng(4).permutation(len(X))[:rows])
        X, values = X.iloc[chosen], values[chosen]
    return Case(X.iloc[:, :features], values)


def forest_values(X: pd.DataFrame, labels: pd.Series[Any], trees: int) -> FloatArray:
    """Class probabilities of a random forest on its own rows, from the file of an earlier run if there is one."""
    path = RESULTS / f"connect4-forest-{trees}.npy"
    if path.exists():
        return np.asarray(np.load(path), dtype=np.float64)
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(dtype=np.float32).fit_transform(X)
    forest = RandomForestClassifier(n_estimators=trees, n_jobs=2, random_state=0).fit(codes, labels)
    values = np.asarray(forest.predict_proba(codes), dtype=np.float64)
    RESULTS.mkdir(parents=True, exist_ok=True)
    np.save(path, values)
    return values
