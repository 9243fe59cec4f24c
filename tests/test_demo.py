"""The demo: the boards are those of the game, the lines are found, the files are there."""

from __future__ import annotations

import csv
import shlex
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import exanova
from exanova import demo


def is_reachable(board):
    """Whether x and o, in turn, can have filled this board without playing on after a win; by counting alone."""
    x, o = board.count("x"), board.count("o")
    holders = {board[a] for a, b, c in demo.LINES if board[a] == board[b] == board[c] != "blank"}
    if holders == {"x"}:
        return x == o + 1
    if holders == {"o"}:
        return x == o
    return not holders and x in (o, o + 1)


def is_final(board):
    return demo.winner(board) is not None or "blank" not in board


@pytest.fixture(scope="module")
def boards():
    return demo.end_positions()


def test_the_boards_are_all_that_are_reachable_and_final_and_no_other(boards):
    every = product(("blank", "o", "x"), repeat=9)
    assert boards == [board for board in every if is_reachable(board) and is_final(board)]


def test_the_numbers_are_those_of_the_game(boards):
    assert len(boards) == 958
    assert [sum(demo.winner(b) == who for b in boards) for who in ("x", "o", None)] == [626, 316, 16]


def test_nobody_moves_after_a_win_and_x_moves_first():
    assert all(after.count("x") == 1 for after in demo.moves(demo.EMPTY))
    assert all(after.count("o") == 1 for after in demo.moves(demo.moves(demo.EMPTY)[0]))
    assert demo.moves(("x",) * 3 + ("o",) * 2 + ("blank",) * 4) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder the demo wrote and what it printed."""
    from contextlib import redirect_stdout
    from io import StringIO

    folder = tmp_path_factory.mktemp("demo") / "made here" / "and below"
    with redirect_stdout(StringIO()) as out:
        demo.main(folder)
    return folder, out.getvalue()


def test_the_lines_of_the_game_are_its_strongest_triples(run):
    folder, printed = run
    triples = demo.strongest_triples(exanova.load(folder / "model.exanova"))
    assert all(map(demo.is_line, triples))
    assert len({effect.features for effect in triples}) == len(demo.LINES) == 8
    assert printed.count("#") == 24


def test_the_model_knows_the_game_and_the_file_of_boards_says_so(run, boards):
    folder, _ = run
    with open(folder / "tictactoe.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [tuple(line[square] for square in demo.SQUARES) for line in lines] == boards
    right = [
        (float(line[demo.PREDICTION]) > 0.5) == (demo.winner(b) == "x") for line, b in zip(lines, boards, strict=True)
    ]
    assert all(right)


def test_the_decomposition_is_exact(run):
    folder, _ = run
    certificate = exanova.load(folder / "model.exanova").certificate_
    assert certificate.exact
    assert certificate.r2[0] > 0.95


def test_the_report_is_one_page_about_the_game(run):
    folder, printed = run
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Has x won?" in page
    assert all(square in page for square in demo.SQUARES)
    assert str(folder / "report.html") in printed


def test_the_commands_to_try_work_as_printed(run):
    folder, printed = run
    commands = [line.strip() for line in printed.splitlines() if "exanova " in line and line.startswith("  ")][-3:]
    assert commands == demo.next_commands(folder)
    for command in commands:
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, command + done.stdout + done.stderr
    assert (folder / "values.csv").exists()
    assert (folder / "pairs.html").exists()


def test_the_command_is_named_as_the_shell_finds_it(monkeypatch, tmp_path):
    def first_words(found):
        monkeypatch.setattr(shutil, "which", lambda name: found)
        return shlex.split(demo.next_commands(Path("demo"))[0])

    assert first_words("/somewhere/exanova")[:2] == ["exanova", "show"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    assert first_words(None)[:4] == ["bin/python", "-m", "exanova", "show"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "exanova").touch()
    assert first_words(None)[:2] == ["bin/exanova", "show"]
