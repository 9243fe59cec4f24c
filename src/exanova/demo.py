"""A decomposition of the end positions of tic-tac-toe, from the rules to a report: ``exanova demo``.

Every board on which a game can end is generated from the rules. Only 958 of the 19,683 ways to fill nine squares with
x, o and blank are such boards, so most combinations never occur and no square is independent of the others. A boosted
classifier learns which boards x has won. In its decomposition, the eight lines of the game are the strongest
interactions of three squares.
"""

from __future__ import annotations

import csv
import io
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from exanova import Effect, FunctionalANOVA
from exanova.atomic_files import write_whole
from exanova.packages import check_installed, package
from exanova.typing import FloatArray, Subset

Board: TypeAlias = tuple[str, ...]
"""The nine squares row by row, each "x", "o" or "blank"."""

SQUARES = tuple(f"{row}-{column}" for row in ("top", "middle", "bottom") for column in ("left", "centre", "right"))
"""Names of the squares, in the order of a board."""

LINES: tuple[Subset, ...] = (
    *((k, k + 1, k + 2) for k in (0, 3, 6)),
    *((k, k + 3, k + 6) for k in (0, 1, 2)),
    (0, 4, 8),
    (2, 4, 6),
)
"""Squares in a row, a column or a diagonal: whoever holds three of them has won."""

EMPTY: Board = ("blank",) * 9

PREDICTION = "x_wins"
"""Column of the predicted probability in the file of boards."""

MAX_TERMS = 400
"""Budget of functions: all main effects and pairs, and the triples that explain most."""


def winner(board: Board) -> str | None:
    """Who holds a line, or ``None``.

    >>> winner(("x", "x", "x", "o", "o", "blank", "blank", "blank", "blank"))
    'x'
    """
    for a, b, c in LINES:
        if board[a] != "blank" and board[a] == board[b] == board[c]:
            return board[a]
    return None


def moves(board: Board) -> list[Board]:
    """The boards after the next move; none once a game has ended. x moves first.

    >>> len(moves(EMPTY)), moves(EMPTY)[4][4]
    (9, 'x')
    """
    if winner(board):
        return []
    player = "x" if board.count("x") == board.count("o") else "o"
    return [(*board[:k], player, *board[k + 1 :]) for k, square in enumerate(board) if square == "blank"]


def end_positions() -> list[Board]:
    """Every board on which a game can end, in alphabetical order.

    >>> boards = end_positions()
    >>> len(boards), sum(winner(board) == "x" for board in boards)
    (958, 626)
    """
    ended: set[Board] = set()
    reached = {EMPTY}
    while reached:
        following = {board: moves(board) for board in reached}
        ended |= {board for board, after in following.items() if not after}
        reached = {board for after in following.values() for board in after}
    return sorted(ended)


def train(boards: Sequence[Board]) -> Pipeline:
    """A boosted classifier of the boards that x has won."""
    won = [winner(board) == "x" for board in boards]
    classifier = GradientBoostingClassifier(n_estimators=300, max_depth=4, random_state=0)
    return make_pipeline(OneHotEncoder(), classifier).fit(np.array(boards), won)


def columns_of(boards: Sequence[Board]) -> Any:
    """The boards as a table of nine named columns."""
    return package("pyarrow").table(dict(zip(SQUARES, map(list, zip(*boards, strict=True)), strict=True)))


def decompose(boards: Sequence[Board], probability: FloatArray) -> FunctionalANOVA:
    """Effects of squares, pairs and triples on the probability (n,) that x has won."""
    anova = FunctionalANOVA(max_order=3, max_terms=MAX_TERMS, sampled=False)  # these boards are all there are
    return anova.fit(columns_of(boards), probability, output_names=[PREDICTION])


def strongest_triples(anova: FunctionalANOVA, count: int = len(LINES)) -> list[Effect]:
    """The interactions of three squares with the largest squared norms."""
    triples = [effect for effect in anova.effects_.values() if effect.order == 3]
    return sorted(triples, key=lambda effect: -float(effect.norm2[0]))[:count]


def is_line(effect: Effect) -> bool:
    """Whether the squares of an effect are a line of the game."""
    return tuple(SQUARES.index(name) for name in effect.features) in LINES


def drawn(effects: Sequence[Effect]) -> str:
    """Small boards side by side, the squares of each effect marked, its squared norm below."""
    marks = [["#" if square in effect.features else "." for square in SQUARES] for effect in effects]
    rows = ["".join(f"{' '.join(mark[k : k + 3]):>10}" for mark in marks) for k in (0, 3, 6)]
    return "\n".join([*rows, "".join(f"{effect.norm2[0]:10.5f}" for effect in effects)])


def write_boards(boards: Sequence[Board], probability: FloatArray, path: Path) -> None:
    """Write one line per board: its squares and the predicted probability that x has won."""
    text = io.StringIO()
    lines = ([*board, repr(float(p))] for board, p in zip(boards, probability, strict=True))
    csv.writer(text, lineterminator="\n").writerows([[*SQUARES, PREDICTION], *lines])
    write_whole(path, text.getvalue().encode())


def next_commands(folder: Path) -> list[str]:
    """Three commands to run next on the files of the demo, from the current folder."""
    boards, model = str(folder / "tictactoe.csv"), str(folder / "model.exanova")
    lines = (
        ["show", model, "--effect", SQUARES[4]],
        ["rows", model, boards, "--output", str(folder / "values.csv")],
        ["explain", boards, "--prediction", PREDICTION, "--max-order", "2", "--report", str(folder / "pairs.html")],
    )
    return [shlex.join([*_command(), *line]) for line in lines]


def _command() -> list[str]:
    """How to call the command: by its name, by its path beside this Python, or as a module."""
    if shutil.which("exanova"):
        return ["exanova"]
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    return [str(shown.with_name("exanova"))] if python.with_name("exanova").exists() else [str(shown), "-m", "exanova"]


def main(folder: Path = Path("demo")) -> None:
    """Generate the boards, train, decompose, print and write; files of an earlier run are replaced."""
    check_installed(["pyarrow", "altair", "vl_convert", "jinja2"], "the demo")
    folder.mkdir(parents=True, exist_ok=True)
    boards = end_positions()
    won = sum(winner(board) == "x" for board in boards)
    print(f"Tic-tac-toe: {len(boards)} boards on which a game can end, {won} of them won by x.")
    model = train(boards)
    probability = np.asarray(model.predict_proba(np.array(boards))[:, 1], dtype=np.float64)
    print("Decomposed: the probability that x has won, as predicted by gradient boosting.\n")
    anova = decompose(boards, probability)
    print(anova)
    _print_triples(anova)
    write_boards(boards, probability, folder / "tictactoe.csv")
    anova.save(folder / "model.exanova")
    about = {"Data": "end positions of tic-tac-toe", "Model": "gradient boosting, scikit-learn"}
    report = folder / "report.html"
    anova.report(report, X=columns_of(boards), model=probability, title="Has x won?", about=about)
    print(f"\nThe report is in {report}: open it in a browser. Then try:\n")
    print("\n".join(f"  {command}" for command in next_commands(folder)))


def _print_triples(anova: FunctionalANOVA) -> None:
    triples = strongest_triples(anova)
    lines = sum(map(is_line, triples))
    total = sum(effect.order == 3 for effect in anova.effects_.values())
    print(f"\nThe {len(triples)} strongest of {total} interactions of three squares, with their squared norms.")
    print(f"{lines} of the game's {len(LINES)} lines are among them:\n")
    print(drawn(triples))
