"""A decomposition from start to end on the Titanic table: ``python -m exanova.demo``.

The 2,201 people aboard by class, sex, age and outcome are 32 counts. They serve as weights: of the cells of class, sex
and age as well as of the rows a classifier is trained on. No child belonged to the crew, so two of the sixteen
cells are empty, and the effects have to be orthogonal on what is left.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from exanova import Effect, FunctionalANOVA, Support
from exanova.typing import FloatArray, IntArray

FEATURES = ("class", "sex", "age")
LEVELS = (("1st", "2nd", "3rd", "crew"), ("male", "female"), ("child", "adult"))

COUNTS: IntArray = np.array(
    [
        # child           adult
        [[[0, 5], [118, 57]], [[0, 1], [4, 140]]],  # 1st: male, female
        [[[0, 11], [154, 14]], [[0, 13], [13, 80]]],  # 2nd
        [[[35, 13], [387, 75]], [[17, 14], [89, 76]]],  # 3rd
        [[[0, 0], [670, 192]], [[0, 0], [3, 20]]],  # crew
    ],
    dtype=np.int64,
)
"""People who died and survived, by class, sex and age: shape (4, 2, 2, 2)."""

RESULT = Path("demo") / "titanic_effects.csv"
SHOWN = 3
"""Effects whose tables are printed."""


def titanic() -> Support:
    """The people aboard as a distribution over class, sex and age; a cell without people is a hole in it.

    >>> titanic().n_rows, titanic().total
    (14, 2201)
    """
    return Support.from_pmf(COUNTS.sum(axis=-1), feature_names=FEATURES, levels=LEVELS)


def train(support: Support) -> Pipeline:
    """A boosted classifier of survival, given the fourteen kinds of people twice and their numbers as weights."""
    died_or_not = COUNTS[tuple(support.codes)]
    rows = np.concatenate([support.table(), support.table()])
    outcome = np.repeat([0, 1], support.n_rows)
    classifier = HistGradientBoostingClassifier(min_samples_leaf=1, max_iter=50, early_stopping=False, random_state=0)
    model = make_pipeline(OrdinalEncoder(), classifier)
    return model.fit(rows, outcome, histgradientboostingclassifier__sample_weight=died_or_not.T.ravel())


def decompose(support: Support, model: Pipeline) -> FunctionalANOVA:
    """Every effect, of every order, on the probability of survival."""

    def survival(rows: Any) -> FloatArray:
        return np.asarray(model.predict_proba(rows)[:, 1])

    return FunctionalANOVA(max_order=None).fit(support, survival, output_names=["survived"])


def strongest(anova: FunctionalANOVA, count: int = SHOWN) -> list[Effect]:
    """The effects of largest squared norm, the mean left out."""
    effects = [effect for effect in anova.effects_.values() if effect.order]
    return sorted(effects, key=lambda effect: -float(effect.norm2[0]))[:count]


def as_text(effect: Effect) -> str:
    """An effect table as lines of text: levels, probability, value."""
    names = [*effect.features, "probability", "value"]
    cells = zip(effect.levels, effect.probability, effect.values[:, 0], strict=True)
    lines = [names, *([*levels, f"{p:.4f}", f"{value:+.4f}"] for levels, p, value in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  " + "  ".join(f"{text:>{w}}" for text, w in zip(line, widths, strict=True)) for line in lines)


def write_effects(anova: FunctionalANOVA, path: Path) -> int:
    """Write the tables of all effects below each other, features they do not have left empty; the number of lines."""
    lines = [
        [dict(zip(effect.features, levels, strict=True)).get(name, "") for name in FEATURES] + [float(p), float(value)]
        for effect in anova.effects_.values()
        for levels, p, value in zip(effect.levels, effect.probability, effect.values[:, 0], strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*FEATURES, "probability", "value"], *lines])
    return len(lines)


def main() -> None:
    """Train, decompose, print, write."""
    support = titanic()
    anova = decompose(support, train(support))
    print(f"Probability of survival of {support.total:,} people aboard the Titanic, as a boosted classifier sees it.\n")
    print(anova)
    for effect in strongest(anova):
        print(f"\neffect of {' x '.join(effect.features)} on the probability of survival:\n{as_text(effect)}")
    lines = write_effects(anova, RESULT)
    print(f"\nAll {len(anova.effects_)} effects, {lines} cells, are in {RESULT}")
    print("(an empty feature is not part of the effect; the line with none is the mean).")


if __name__ == "__main__":
    main()
