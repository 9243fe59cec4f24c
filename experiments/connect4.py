"""Connect-4: a random forest at main effects and at rank 5,000."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.harness import SEED, Report, Settings, equal, split
from experiments.high_rank import Line, Target, checks_of, fitted, noted, rows_of, table_of, up_to_triples

ABOUT = """67,557 positions of Connect-4 after eight moves, 42 squares that hold x, o or nothing, and the probability
that the first player wins. Every position has four x and four o, so that two of the 85 main-effect functions are
redundant, and 169 of the functions of pairs."""

WHY = """Training a forest again gives another forest, and the paper does not say on which rows it was trained; here
on four fifths. It knows its own rows better than others, and all of them are decomposed, as in the paper."""


def forest(X: Any, y: Any, trees: int) -> dict[str, Any]:
    """Probability of a win on all rows, of a forest trained on four fifths of them."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(dtype=np.float32).fit_transform(X)
    train, test = split(len(codes))
    model = RandomForestClassifier(n_estimators=trees, random_state=SEED, n_jobs=2).fit(codes[train], y[train])
    win = list(model.classes_).index("win")
    return {"values": model.predict_proba(codes)[:, win], "accuracy": model.score(codes[test], y[test])}


def lines(settings: Settings) -> list[Line]:
    return [
        Line("main effects", 83, "10 s", "0.45", "0.07", "13 %", {"": {"max_order": 1}}),
        Line("high rank", 5000, "37 min", "0.70", "0.04", "7 %", up_to_triples(400 if settings.quick else 5000)),
    ]


def target(settings: Settings) -> Target:
    """All positions with the forest's probability of a win."""
    table = settings.load("connect4")
    kept = np.sort(np.random.default_rng(SEED).permutation(len(table.y))[: 3000 if settings.quick else None])
    X, y = table.X.iloc[kept, : 12 if settings.quick else None], table.y[kept]
    found = settings.trained("connect4", lambda: forest(X, y, 10 if settings.quick else 100))
    model = "a random forest of 100 trees as in the paper; decomposed is the probability of a win."
    return Target(X, found["values"], None, float(found["accuracy"]), model)


def run(settings: Settings) -> Report:
    positions = target(settings)
    fits = fitted(positions, lines(settings))
    rank = fits[0].anova.certificate_.rank
    return Report(
        title="Connect-4",
        about=ABOUT,
        model=positions.model,
        rows=rows_of(fits, positions, "0.8192", "on a fifth of the rows, held out"),
        tables=[table_of(fits)],
        checks=[*([] if settings.quick else [equal("rank of the main effects", rank, 83)]), *checks_of(fits)],
        remarks=[WHY, *noted(fits)],
    )
