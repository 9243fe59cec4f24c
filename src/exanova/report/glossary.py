"""Words of the report and what they mean, for readers who point at them and at the end of the page."""

from __future__ import annotations

GLOSSARY: dict[str, tuple[str, str]] = {
    "effect": ("effect", "What a level, or a combination of levels, adds to the mean of the output."),
    "interaction": (
        "interaction",
        "What several features add together, beyond what each of them and every smaller group of them adds.",
    ),
    "importance": (
        "importance",
        "How much a feature moves the output on average: the mean size of its effects, where what several features "
        "add together is divided equally among them.",
    ),
    "share": ("share of rows", "How many of the rows have this level or combination, in per cent."),
    "interval": (
        "95 % interval",
        "Where the value would be for most other samples of rows as large as this one: the value plus or minus 1.96 "
        "standard errors.",
    ),
    "stderr": ("standard error", "How far a value would typically move if other rows had been drawn."),
    "fitted": ("fitted part", "The mean and all effects of the report added up: what they say about a row."),
    "residual": ("residual", "What the model says about a row beyond the fitted part."),
    "shapley": (
        "Shapley value",
        "The share of a feature in a prediction: every effect it takes part in, divided equally among its features.",
    ),
    "r2": ("R²", "The share of the variance of the model that the effects explain; 1 is all of it."),
    "never": (
        "never observed",
        "No row has this combination of levels. Its effect is unknown, and the model was not asked about it.",
    ),
    "orthogonal": (
        "orthogonal",
        "Two effects are orthogonal if their product averages to zero over the rows: neither repeats the other.",
    ),
    "redundant": (
        "redundancy",
        "Features that tell each other: what they do together is determined, how it is split among them is not.",
    ),
    "game": (
        "game",
        "The rule by which a prediction is divided among features. Here combinations of levels count as often as they "
        "occur, and those that never occur do not.",
    ),
}
"""Key, and a word with its meaning."""
