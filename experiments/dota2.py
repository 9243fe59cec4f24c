"""Dota2: a deep network of the heroes at main effects and at rank 4,000."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks import large_cases

from exanova import FunctionalANOVA
from exanova.typing import FloatArray
from experiments.harness import Report, Row, Settings, Table, equal
from experiments.high_rank import Line, Target, checks_of, fitted, noted, rows_of, table_of

WIDTHS, EPOCHS, CHOSEN = (1024, 512, 256, 128, 64, 32), 6, 4
"""Units of the layers, epochs of training, and after which of them the network is decomposed."""

ABOUT = """102,944 games between two teams of five, 113 heroes that one team, the other or nobody plays, and the
probability that the first team wins. As in the paper, the heroes are the inputs. Decomposed are the 92,650 games for
training and the others are held out."""

SENTENCES = {
    "torch": (
        "a fully connected network of 1024, 512, 256, 128, 64 and 32 units, trained by PyTorch; the paper names the "
        f"first and the last. Decomposed after {CHOSEN} of {EPOCHS} epochs, when it is as accurate as the paper's."
    ),
    "scikit-learn": (
        "a network of scikit-learn with 256, 128 and 64 units in place of the paper's (1024 down to 32), since torch "
        "is not installed."
    ),
}

WHY = """The paper counts one function per hero (112 = 1 + 111 heroes that vary), although a hero has three levels: not
played, in the first team, in the second. The rank of all main effects is 221 of 223, for every game has five heroes
on each side. The games held out are explained better than those fitted: the network has not memorised them."""

LONGER = """How much main effects explain depends on how long the network was trained, which the paper does not say.
One that memorises its training games invents interactions that other games do not have:"""


def network(X: Any, won: Any, is_train: Any, widths: tuple[int, ...], epochs: int) -> dict[str, Any]:
    """Probability that the first team wins after every epoch, of a deep network trained on the rows for training."""
    from experiments import torch_models

    inputs = np.hstack([X == 1, X == -1]).astype(np.float32)
    model = torch_models.deep_network(inputs.shape[1], widths, 2)
    data = inputs[is_train], won[is_train].astype(np.int64)
    values: list[FloatArray] = []

    def recorded(model: Any) -> bool:
        values.append(torch_models.probabilities(model, inputs)[:, 1])
        return False

    torch_models.trained(model, lambda: data, epochs, enough=recorded)
    accuracy = [np.mean((after > 0.5)[~is_train] == won[~is_train]) for after in values]
    return {"values": np.array(values), "accuracy": np.array(accuracy)}


def by_epoch(X: Any, values: FloatArray, accuracy: FloatArray) -> Table:
    """Main effects of the network as it was after each epoch, all of them as outputs of one decomposition."""
    r2 = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, values.T).certificate_.r2
    lines = [
        [str(k), f"{accurate:.4f}", f"{after.var():.3f}", f"{share:.2f}"]
        for k, (accurate, after, share) in enumerate(zip(accuracy, values, r2, strict=True), start=1)
    ]
    return Table(LONGER, ["epoch", "accuracy, test", "variance of the model", "R2 of main effects"], lines)


def target(settings: Settings) -> tuple[Target, list[Table]]:
    """Games for training with the model's probability, judged on those for testing; and a table of its training."""
    shared = large_cases.Settings(settings.data, settings.quick)
    X, won, is_train = large_cases.dota2_rows(shared)
    held = ~is_train
    if not settings.with_torch("dota2-torch"):
        found = shared.cached("dota2", partial(large_cases.dota2_model, shared))
        values, accuracy = found["values"], float(found["accuracy"])
        games = Target(X[is_train], values[is_train], (X[held], values[held]), accuracy, SENTENCES["scikit-learn"])
        return games, []
    widths = (16, 8) if settings.quick else WIDTHS
    found = settings.trained("dota2-torch", partial(network, X, won, is_train, widths, EPOCHS))
    values, accuracy = found["values"][CHOSEN - 1], float(found["accuracy"][CHOSEN - 1])
    games = Target(X[is_train], values[is_train], (X[held], values[held]), accuracy, SENTENCES["torch"])
    return games, [by_epoch(X[is_train], found["values"][:, is_train], found["accuracy"])]


def lines(settings: Settings) -> list[Line]:
    budget = 150 if settings.quick else 4000
    screened = {"max_terms": budget, "selection": "screen"}
    return [
        Line("main effects", 112, "23 s", "0.36", "0.02", "6 %", {"": {"max_order": 1}}),
        Line("high rank", 4000, "39 min", "0.41", "0.01", "5 %", {"screened": screened}),
    ]


def run(settings: Settings) -> Report:
    games, training = target(settings)
    fits = fitted(games, lines(settings))
    rank = fits[0].anova.certificate_.rank
    variance = Row("variance of the model", "0.03", f"{games.values.var():.3f}", "the paper's from its R2 and MSE")
    return Report(
        title="Dota2",
        about=ABOUT,
        model=games.model,
        rows=[*rows_of(fits, games, "0.5869", "on the games for testing"), variance],
        tables=[table_of(fits), *training],
        checks=[*([] if settings.quick else [equal("rank of the main effects", rank, 221)]), *checks_of(fits)],
        remarks=[WHY, *noted(fits)],
    )
