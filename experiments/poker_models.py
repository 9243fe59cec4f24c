"""The models of Poker Hand: the paper's transformer if torch is installed, a network of scikit-learn otherwise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks import large_cases

from exanova.typing import IntArray
from experiments.harness import SEED, Settings
from experiments.high_rank import Target

ENOUGH = 0.984
"""Accuracy at which training ends, that of the paper; judged on the first 10,000 hands for testing."""

SENTENCES = {
    "transformer": (
        "a transformer of tables as in the paper: one token per feature, three layers of width 32, then 320, 64 and "
        "ten outputs. In every epoch the training hands come with cards and suits in another order, which leaves the "
        "class as it is. Decomposed: the probability of class 0."
    ),
    "network": (
        "a network of scikit-learn with 256 and 128 units in place of the paper's transformer, since torch is not "
        "installed; in every epoch the training hands come with cards and suits in another order. Decomposed: the "
        "probability of class 0."
    ),
}


def target(settings: Settings) -> tuple[Target, dict[str, Any]]:
    """The training hands with the probability of class 0, judged on those for testing; and all the model's arrays."""
    shared = large_cases.Settings(settings.data, settings.quick)
    (X, labels), (X2, labels2) = (large_cases.poker_rows(shared, part) for part in ("train", "test_head"))
    kind = "transformer" if settings.with_torch("poker-transformer") else "network"
    if kind == "transformer":
        found = settings.trained("poker-transformer", partial(transformer, settings, X, labels, X2, labels2))
    else:
        found = shared.cached("poker", partial(large_cases.poker_model, shared))
    held = X2, found["test"]
    return Target(X, found["train"], held, float(found["accuracy"]), SENTENCES[kind]), found


def transformer(settings: Settings, X: Any, labels: Any, X2: Any, labels2: Any) -> dict[str, Any]:
    """Train until the accuracy of the paper is reached, or for 30 epochs."""
    from experiments import torch_models

    hands, hands2 = (rows.astype(int).to_numpy().reshape(-1, 5, 2) for rows in (X, X2))
    rng = np.random.default_rng(SEED)
    model = torch_models.transformer([4, 13] * 5, 10)
    judged = slice(0, 10_000)

    def enough(model: Any) -> bool:
        guess = torch_models.probabilities(model, codes(hands2[judged])).argmax(axis=1)
        return bool(np.mean(guess == labels2[judged]) >= ENOUGH)

    def epoch() -> tuple[IntArray, IntArray]:
        return codes(large_cases.permuted(hands, rng)), labels.astype(np.int64)

    torch_models.trained(model, epoch, 1 if settings.quick else 30, rate=2e-3, enough=enough)
    train, test = (torch_models.probabilities(model, codes(h)) for h in (hands, hands2))
    return {
        "train": train[:, 0],
        "test": test[:, 0],
        "accuracy": np.mean(test.argmax(axis=1) == labels2),
        "rollout": torch_models.rolled_out(model, codes(hands)).mean(axis=0),
    }


def codes(hands: IntArray) -> IntArray:
    """(n, 10) suits and ranks counted from 0."""
    return hands.reshape(len(hands), -1).astype(np.int64) - 1
