"""Dota2: a deep network of the heroes at main effects and at rank 4,000."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks import high_dimension

from experiments.harness import Report, Row, Settings, equal
from experiments.high_rank import Line, Target, checks_of, fitted, rows_of, table_of

WIDTHS = (1024, 512, 256, 128, 64, 32)

ABOUT = """102,944 games between two teams of five, 113 heroes that one team, the other or nobody plays, and the
probability that the first team wins. As in the paper, the heroes are the inputs, and the rows for training and
testing are taken apart here: the decomposition is that of the 92,650 games for training, judged on the others."""

SENTENCES = {
    "torch": "a fully connected network of 1024, 512, 256, 128, 64 and 32 units, trained by PyTorch for four epochs.",
    "scikit-learn": (
        "a network of scikit-learn with 256, 128 and 64 units in place of the paper's (1024 down to 32), since torch "
        "is not installed."
    ),
}

WHY = """The paper counts one function a hero (112 = 1 + 111 heroes that vary), although a hero has three levels: not
played, in the first team, in the second. The rank of all main effects is 221 of 223, for every game has five heroes
on each side. How much main effects explain depends on how long the network was trained: one that has learned its
training games by heart has more interactions, few of which would be found in other games. The paper does not say how
long; its variance of the model (0.03) is what this one's is compared with."""


def network(X: Any, won: Any, is_train: Any, widths: tuple[int, ...], epochs: int) -> dict[str, Any]:
    """Probability that the first team wins, of a deep network trained on the rows for training."""
    import torch

    from experiments import torch_models

    torch.manual_seed(torch_models.SEED)
    inputs = np.hstack([X == 1, X == -1]).astype(np.float32)
    model = torch_models.deep_network(inputs.shape[1], widths, 2)
    data = inputs[is_train], won[is_train].astype(np.int64)
    torch_models.trained(model, lambda: data, epochs)
    values = torch_models.probabilities(model, inputs)[:, 1]
    return {"values": values, "accuracy": np.mean((values > 0.5)[~is_train] == won[~is_train])}


def target(settings: Settings) -> Target:
    """Games for training with the model's probability, judged on those for testing."""
    shared = high_dimension.Settings(settings.data, settings.quick)
    X, won, is_train = high_dimension.dota2_rows(shared)
    kind = "torch" if settings.with_torch("dota2-torch") else "scikit-learn"
    if kind == "torch":
        widths, epochs = ((16, 8), 1) if settings.quick else (WIDTHS, 4)
        found = settings.trained("dota2-torch", partial(network, X, won, is_train, widths, epochs))
    else:
        found = shared.cached("dota2", partial(high_dimension.dota2_model, shared))
    values, accuracy = found["values"], float(found["accuracy"])
    held = X[~is_train], values[~is_train]
    return Target(X[is_train], values[is_train], held, accuracy, SENTENCES[kind])


def lines(settings: Settings) -> list[Line]:
    budget = 150 if settings.quick else 4000
    screened = {"max_terms": budget, "selection": "screen"}
    return [
        Line("main effects", 112, "23 s", 0.36, 0.02, 6, {"": {"max_order": 1}}),
        Line("high rank", 4000, "39 min", 0.41, 0.01, 5, {"screened": screened}),
    ]


def run(settings: Settings) -> Report:
    games = target(settings)
    fits = fitted(games, lines(settings))
    rank = fits[0].anova.certificate_.rank
    variance = Row("variance of the model", "0.03", f"{games.values.var():.3f}", "the paper's from its R2 and MSE")
    return Report(
        title="Dota2",
        about=ABOUT,
        model=games.model,
        rows=[*rows_of(fits, games, "0.5869", "on the games for testing"), variance],
        tables=[table_of(fits)],
        checks=[*([] if settings.quick else [equal("rank of the main effects", rank, 221)]), *checks_of(fits)],
        remarks=[WHY],
    )
