"""Tic-tac-toe: every end position from the rules, and the lines found among the triples."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova import FunctionalANOVA
from exanova.demo import LINES, SQUARES, columns_of, decompose, end_positions, is_line, strongest_triples, train, winner
from experiments.charts import bars
from experiments.harness import Check, Report, Row, Settings, below, equal


def run(settings: Settings) -> Report:
    boards = end_positions()
    won = np.array([winner(board) == "x" for board in boards])
    model = train(boards)
    probability = np.asarray(model.predict_proba(np.array(boards))[:, 1], dtype=np.float64)
    anova = decompose(boards, probability)
    truth = FunctionalANOVA(shrinkage=None, max_order=3).fit(columns_of(boards), won.astype(float))
    literal = FunctionalANOVA(shrinkage=None, max_order=3, basis="paper", ties="first").fit(
        columns_of(boards), probability
    )
    triples = strongest_triples(anova)
    found = sum(map(is_line, triples))
    c = anova.certificate_
    return Report(
        title="Tic-tac-toe",
        about=(
            "Not in the paper, and with nothing to download: the 958 boards on which a game can end, of 19,683 ways to "
            "fill nine squares. Most combinations never occur. The game has eight lines, and the decomposition has to "
            "find them among the 84 triples of squares."
        ),
        model="gradient boosting of scikit-learn, 300 trees of depth 4, of the boards that x has won.",
        rows=[
            Row("accuracy on all boards", "", f"{np.mean((probability > 0.5) == won):.4f}"),
            Row("rank with 400 functions", "", f"{c.rank}", f"R2 {c.r2[0]:.4f}"),
            Row("lines among the eight strongest triples", "", f"{found} of {len(LINES)}", chief=True),
            Row("largest conditional mean, ours", "", f"{c.orthogonality:.1e}", chief=True),
            Row("the same, the paper's basis up to triples", "", f"{literal.certificate_.orthogonality:.1e}"),
            Row("R2 of who has won, up to triples", "", f"{truth.certificate_.r2[0]:.4f}"),
        ],
        figures=[picture(settings, anova)],
        checks=[
            equal("end positions", len(boards), 958),
            equal("won by x", int(won.sum()), 626),
            equal("lines among the eight strongest triples", found, len(LINES)),
            below("largest conditional mean of an effect", c.orthogonality, 1e-12),
            below("the same for who has won, all triples", truth.certificate_.orthogonality, 1e-12),
            Check("exact", str(c.exact), c.exact),
        ],
    )


def picture(settings: Settings, anova: FunctionalANOVA) -> Any:
    """The strongest triples by name, marked by whether they are lines."""
    triples = strongest_triples(anova, 16)
    names = [" ".join(str(SQUARES.index(square) + 1) for square in effect.features) for effect in triples]
    of_lines = {name: float(e.norm2[0]) for name, e in zip(names, triples, strict=True) if is_line(e)}
    others = {name: float(e.norm2[0]) for name, e in zip(names, triples, strict=True) if not is_line(e)}
    series = {
        kind: {name: part.get(name, 0.0) for name in names}
        for kind, part in (("a line", of_lines), ("no line", others))
    }
    chart = bars(series, axis="squared norm", title="Strongest interactions of three squares", stacked=True)
    caption = "The sixteen strongest triples; squares are numbered from 1 to 9, row by row."
    return settings.figure("tictactoe.svg", chart, caption)
