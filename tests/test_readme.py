"""The README runs: its Python blocks, top to bottom in one namespace, print the text blocks that follow them."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

from exanova.errors import OutsideSupportWarning

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]\d+)?")
EFFORT = re.compile(r"\d+ iterations, \d+\.\d+ s")
NEGLIGIBLE = 1e-9


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(README.read_text(encoding="utf-8"))


def settled(text: str) -> list[str]:
    """Lines without what differs between machines: numbers at the level of rounding, iterations, seconds, blanks."""

    def number(match: re.Match[str]) -> str:
        return "0" if abs(float(match[0])) < NEGLIGIBLE else match[0]

    return [" ".join(NUMBER.sub(number, EFFORT.sub("some effort", line)).split()) for line in text.strip().splitlines()]


def printed(code: str, namespace: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # the section on such rows shows them
        exec(compile(code, str(README), "exec"), namespace)
    return out.getvalue()


def test_the_readme_prints_what_it_says() -> None:
    namespace: dict[str, object] = {}
    found = [block for block in blocks() if block[0] in ("python", "text")]
    assert [kind for kind, _ in found] == ["python", "text"] * (len(found) // 2)
    for (_, code), (_, expected) in zip(found[::2], found[1::2], strict=True):
        assert settled(printed(code, namespace)) == settled(expected)


def test_the_comparison_can_fail() -> None:
    assert settled("MSE  1e-32\n1 iterations, 0.02 s") == settled("MSE -0.000\n2 iterations, 0.31 s")
    assert settled("job 0.3407") != settled("job 0.3408")


def test_the_readme_has_examples() -> None:
    assert sum(kind == "python" for kind, _ in blocks()) >= 5
