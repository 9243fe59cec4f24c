"""Pages that run: Python blocks in one namespace a page, commands in the same scratch folder, and what both print."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, zip_longest
from pathlib import Path
from unittest.mock import patch

from exanova.cli.entry import run
from exanova.errors import OutsideSupportWarning

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d+)?(?!\w|\.\d)")
PLACEHOLDERS = (
    (re.compile(r"\d+ iterations"), "some iterations"),
    (re.compile(r"(?<![\w.])\d+(\.\d+)? s\b"), "some seconds"),
    (re.compile(r"(?<![\w.])\d+(\.\d+){2,}"), "some version"),
    (re.compile(r"([─━═=_-])\1{2,}"), "rule"),
)
"""What differs between machines and releases, or with the width of a column, and the words that stand for it."""

NEGLIGIBLE = Decimal("1e-9")
ROUNDING = Decimal("1e-12")
"""Relative rounding of a number that is shown with all of its digits."""

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


@dataclass(frozen=True)
class Number:
    """A number as it is written: its value, the place of its last digit, whether it is whole, whether it says plus."""

    value: Decimal
    unit: Decimal
    whole: bool
    plus: bool

    @classmethod
    def read(cls, text: str) -> Number:
        value = Decimal(text.replace(",", ""))
        whole = not set(text) & set(".eE")
        return cls(value, Decimal(1).scaleb(int(value.as_tuple().exponent)), whole, text.startswith("+"))

    def agrees(self, other: Number, negligible: Decimal) -> bool:
        """Whether the two may be one number, rounded: whole numbers are equal, others differ by one last digit at most.

        The finer of the two last digits counts, because formats drop zeros at the end (0.5 and 0.4999).
        """
        if self.whole and other.whole:
            return self.value == other.value and self.plus == other.plus
        if abs(self.value) < negligible and abs(other.value) < negligible:
            return True
        allowed = max(min(self.unit, other.unit), ROUNDING * abs(self.value))
        return abs(self.value - other.value) <= allowed and self.plus == other.plus


def tokens(line: str) -> list[str | Number]:
    """The words and numbers of a line in turn; spaces, the length of rules, seconds and versions are not compared."""
    for pattern, word in PLACEHOLDERS:
        line = pattern.sub(word, line)
    found: list[str | Number] = []
    end = 0
    for match in NUMBER.finditer(line):
        found += [" ".join(line[end : match.start()].split()), Number.read(match[0])]
        end = match.end()
    return [*found, " ".join(line[end:].split())]


def scale_of(texts: Iterable[str]) -> Decimal:
    """The size of the numbers on a page: its largest number that is not whole, at most 1; 1 if all is rounding."""
    read = (token for text in texts for line in text.splitlines() for token in tokens(line))
    sizes = [abs(t.value) for t in read if isinstance(t, Number) and not t.whole]
    largest = max((size for size in sizes if size >= NEGLIGIBLE), default=Decimal(1))
    return min(largest, Decimal(1))


def disagreement(printed: str, says: str, scale: Decimal = Decimal(1)) -> str | None:
    """The first line in which a page and what was printed differ, or ``None``.

    Words must be the same, whole numbers too, other numbers to the digits shown; numbers below ``NEGLIGIBLE`` times the
    ``scale`` of the page are rounding, and need only both be as small.
    """
    for shown, said in zip_longest(printed.strip().splitlines(), says.strip().splitlines()):
        if shown is None or said is None or not _same(tokens(shown), tokens(said), NEGLIGIBLE * scale):
            return f"prints {shown!r}\nsays   {said!r}"
    return None


def _same(left: list[str | Number], right: list[str | Number], negligible: Decimal) -> bool:
    return len(left) == len(right) and all(
        a.agrees(b, negligible) if isinstance(a, Number) and isinstance(b, Number) else a == b
        for a, b in zip(left, right, strict=True)
    )


def run_page(page: Path, folder: Path) -> int:
    """Run everything on a page inside an empty folder and compare; the number of blocks that ran."""
    namespace: dict[str, object] = {}
    found = snippets(page)
    scale = scale_of(snippet.says for snippet in found)
    with contextlib.chdir(folder):
        for snippet in found:
            is_python = snippet.kind == "python"
            shown = _printed(snippet.code, namespace, page) if is_python else run_command(snippet.code)
            if is_python or snippet.says.strip():
                trouble = disagreement(shown, snippet.says, scale)
                assert trouble is None, f"{page.name}:\n{snippet.code}\n{trouble}\nin\n{shown}"
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
