"""Binarised MNIST: the probability of a three at four ranks, and an eight explained as a three."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks import large_cases

from exanova import FunctionalANOVA, neighbours
from exanova.typing import IntArray
from experiments.charts import shaded, side_by_side, signed
from experiments.harness import Check, Figure, Report, Settings, equal
from experiments.high_rank import Fitted, Line, Target, checks_of, fitted, noted, rows_of, table_of

ABOUT = """60,000 pictures of 28 x 28 pixels, black or white (grey values above 127), and the probability that the
digit is a three. Main effects are 677 functions of rank 674; there are 228,150 pairs of pixels that vary. The paper
looks for pairs among neighbours and takes the pixels of largest variance first. Here pairs are screened, once among
neighbours and once among all pairs: those that explain most of the residual come first."""

WHY = """Pairs of pixels far apart explain more than neighbours, so that screening all of them reaches the paper's R2
with half the functions. Held-out rows are the 10,000 test pictures: from some rank on, further functions fit the
training pictures and not the digit."""


def lines(settings: Settings) -> list[Line]:
    shape = (10, 10) if settings.quick else (28, 28)
    ranks = (150, 200, 300) if settings.quick else (2500, 5000, 10_000)
    printed = [("90 s", "0.77", "0.02", "20 %"), ("300 s", "0.83", "0.01", "15 %"), ("15 min", "0.86", "0.01", "12 %")]
    found = [Line("main effects", 674, "10 s", "0.54", "0.04", "41 %", {"": {"max_order": 1}})]
    for radius, rank, (seconds, r2, mse, relative) in zip((1, 2, 4), ranks, printed, strict=True):
        budget = {"max_terms": rank, "selection": "screen"}
        ways = {
            f"neighbours within {radius}": budget | {"subsets": neighbours(shape, radius)},
            "all pairs": budget,
        }
        found.append(Line(f"rank {rank:,}", rank, seconds, r2, mse, relative, ways))
    return found


def target(settings: Settings) -> tuple[Target, IntArray]:
    """Pictures for training with the probability of a three, judged on those for testing; and the digits."""
    shared = large_cases.Settings(settings.data, settings.quick)
    judged = large_cases.mnist(shared)
    _, digits = large_cases.mnist_rows(shared, "train")
    accuracy = shared.cached("mnist", partial(large_cases.mnist_model, shared))["accuracy"]
    model = "a network of 512 and 128 units as in the paper, trained by scikit-learn in place of PyTorch."
    return Target(judged.X, judged.values, judged.held, float(accuracy), model), digits


def typical(X: Any, digits: IntArray, digit: int) -> int:
    """The row of a digit that is nearest to their mean: a picture without whims."""
    rows = np.flatnonzero(digits == digit)
    mean = X[rows].mean(axis=0)
    return int(rows[np.abs(X[rows] - mean).sum(axis=1).argmin()])


def run(settings: Settings) -> Report:
    pictures, digits = target(settings)
    fits = fitted(pictures, lines(settings))
    rank = fits[0].anova.certificate_.rank
    best = next(one for one in reversed(fits) if one.way.startswith("neighbours"))
    eight = typical(pictures.X, digits, 8)
    return Report(
        title="Binarised MNIST",
        about=ABOUT,
        model=pictures.model,
        rows=rows_of(fits, pictures, "0.9709", "on the test pictures"),
        tables=[table_of(fits)],
        figures=[explained(settings, best, pictures, eight)],
        checks=[
            *([] if settings.quick else [equal("rank of the main effects", rank, 674)]),
            *checks_of(fits),
            additive(best.anova, pictures, eight),
        ],
        remarks=[WHY, *noted(fits)],
    )


def explained(settings: Settings, one: Fitted, pictures: Target, row: int) -> Figure:
    """The picture, the Shapley value of each pixel with its sign, and without."""
    values = one.anova.explain(pictures.X[[row]]).values[0]
    side = int(np.sqrt(len(values)))
    image, shapley = (np.asarray(part, dtype=float).reshape(side, side) for part in (pictures.X[row], values))
    bound = float(np.abs(shapley).max())
    charts = [
        shaded(1 - image, "the picture", 1.0, legend=False),
        signed(shapley, "for (orange) and against (blue) a three", bound),
        shaded(np.abs(shapley), "absolute value", bound),
    ]
    probability = pictures.values[row]
    title = f"An eight explained as a three; the model gives it a probability of {probability:.4f}"
    caption = (
        f"Shapley value of each pixel for the probability of a three, {one.line.what}, {one.way}: the right side, "
        "which a three has too, supports it, and the strokes that close the loops on the left oppose it."
    )
    return settings.figure("mnist-eight.png", side_by_side(charts, title), caption)


def additive(anova: FunctionalANOVA, pictures: Target, row: int) -> Check:
    """Shapley values, mean and residual of the picture add up to the model."""
    e = anova.explain(pictures.X[[row]], pictures.values[[row]])
    gap = abs(float(e.values[0].sum() + e.base_values[0] + e.residual[0] - pictures.values[row]))
    return Check("values of the picture, mean and residual add up to the model", f"{gap:.1e}", gap < 1e-10)
