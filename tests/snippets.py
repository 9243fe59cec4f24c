"""Pages that run: Python blocks in one namespace a page, commands in the same scratch folder, and what both print."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from exanova.cli.run import run
from exanova.errors import OutsideSupportWarning

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]\d+)?")
EFFORT = re.compile(r"\d+ iterations, \d+\.\d+ s")
NEGLIGIBLE = 1e-9
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Snippet:
    """One block that is run, and the text the page says it prints."""

    kind: str
    code: str
    says: str


def snippets(page: Path) -> list[Snippet]:
    """The Python and console blocks of a page, top to bottom; a ``text`` block belongs to the Python before it."""
    fences = [*FENCE.findall(page.read_text(encoding="utf-8")), ("end", "")]
    for (before, _), (kind, text) in pairwise([("start", ""), *fences]):
        assert kind != "text" or before == "python", f"{page.name}: no Python before this text\n{text}"
    found = []
    for (kind, code), (after, text) in pairwise(fences):
        if kind == "python":
            found.append(Snippet(kind, code, text if after == "text" else ""))
        elif kind == "console":
            found += list(_commands(code))
    return found


def _commands(block: str) -> Iterator[Snippet]:
    """Each line after a ``$`` is a command (continued after a backslash); the lines below it are what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, says = part.replace("\\\n", " ").partition("\n")
        yield Snippet("console", command, says)


def settled(text: str) -> list[str]:
    """Lines without what differs between machines: numbers at the level of rounding, iterations, seconds, blanks."""

    def number(match: re.Match[str]) -> str:
        return "0" if abs(float(match[0])) < NEGLIGIBLE else match[0]

    return [" ".join(NUMBER.sub(number, EFFORT.sub("some effort", line)).split()) for line in text.strip().splitlines()]


def run_page(page: Path, folder: Path) -> int:
    """Run everything on a page inside an empty folder and compare; the number of blocks that ran."""
    namespace: dict[str, object] = {}
    found = snippets(page)
    with contextlib.chdir(folder):
        for snippet in found:
            if snippet.kind == "python":
                shown = _printed(snippet.code, namespace, page)
                assert settled(shown) == settled(snippet.says), f"{page.name}:\n{snippet.code}\nprints\n{shown}"
            else:
                shown = run_command(snippet.code)
                if snippet.says.strip():
                    assert settled(shown) == settled(snippet.says), f"{page.name}: {snippet.code}\nprints\n{shown}"
    return len(found)


def run_command(command: str) -> str:
    """What ``exanova ...`` prints where it is run; it has to succeed."""
    name, *arguments = shlex.split(command)
    assert name == "exanova", f"only exanova is run, not {name!r}"
    out, trouble = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with patch.dict(os.environ, TERMINAL), contextlib.redirect_stdout(out), contextlib.redirect_stderr(trouble):
        code = run(arguments)
    out.seek(0)
    shown = out.read()
    assert code == 0, f"{command}\n{shown}{trouble.getvalue()}"
    return shown


def _printed(code: str, namespace: dict[str, object], page: Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)  # pages about such rows show them
        exec(compile(code, str(page), "exec"), namespace)
    return out.getvalue()
