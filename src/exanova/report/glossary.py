"""Terms of the report and their definitions, shown on hover and at the end of the page."""

from __future__ import annotations

GLOSSARY: dict[str, tuple[str, str]] = {
    "effect": ("effect", "What a level, or a combination of levels, adds to the mean of the output."),
    "interaction": (
        "interaction",
        "What several features add together, beyond what each of them and every smaller group of them adds.",
    ),
    "importance": (
        "importance",
        "How much a feature moves the output on average: the mean size of its effects, with interactions divided "
        "equally among their features.",
    ),
    "share": ("share of rows", "The percentage of rows with this level or combination."),
    "interval": (
        "95 % interval",
        "The range in which the value would be for most other samples of rows of this size: the value plus or minus "
        "1.96 standard errors.",
    ),
    "stderr": ("standard error", "How much a value would typically vary if other rows had been drawn."),
    "fitted": ("fitted part", "The sum of the mean and all effects at a row."),
    "residual": ("residual", "The prediction of the model at a row minus the fitted part."),
    "shapley": (
        "Shapley value",
        "The share of a feature in a prediction: every effect that involves it, divided equally among its features.",
    ),
    "r2": ("R²", "The share of the variance of the model that the effects explain; 1 is all of it."),
    "never": (
        "never observed",
        "No row has this combination of levels, and the model was not called on it. Its effect is extrapolated by the "
        "prior of the fit, or counts as 0.",
    ),
    "orthogonal": (
        "orthogonal",
        "Two effects are orthogonal if their product averages to zero over the rows: neither repeats the other.",
    ),
    "redundant": (
        "redundancy",
        "Features that determine each other: their combined effect is determined, how it is split among them is not.",
    ),
    "game": (
        "game",
        "The rule by which a prediction is divided among features. In this report combinations of levels count as "
        "often as they occur, and those that never occur do not count.",
    ),
}
"""Key, term and definition."""
