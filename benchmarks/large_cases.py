"""The large cases: MNIST, Connect-4, Poker and Dota2, each with a model of scikit-learn and rows to judge by."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import tables
from benchmarks.harness import RESULTS
from exanova.typing import FloatArray

PATIENCE = 300.0
SEED = 0


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
