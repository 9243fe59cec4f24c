"""Text for a terminal: messages on one line, in the words of the command, without control characters."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from exanova.messages import UNSAID, Action, Mention, Value, Words

SHOWN = 8
"""Names listed before the rest is counted."""

OTHER_NAMES = {"eval_set": "eval", "sample_weight": "weight"}
"""Parameters of the library whose option has another name."""

ACTIONS = {"drop": "leave it out with --ignore", "categorical": "read it as text with --text"}
"""Options for what Python users do with the column themselves."""


def spoken(message: str) -> str:
    """A message of the library with options in place of parameters.

    >>> from exanova.messages import Parameter
    >>> spoken(Words("use ", Parameter("max_order", None), " or ", Parameter("n_bins", {"age": 5}), "."))
    'use --max-order all or --n-bins age=5.'
    """
    return message.spelled(_spell) if isinstance(message, Words) else message


def visible(text: object) -> str:
    """The text with non-printing characters (escapes, line ends, direction marks) written as escape sequences.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object, most: int = 1000) -> str:
    """A message on one line, cut after ``most`` characters.

    >>> one_line("no such\\n  column")
    'no such column'
    """
    line = visible(re.sub(r"\s+", " ", str(text)).strip())
    return line if len(line) <= most else line[: most - 4] + " ..."


def listed(names: Sequence[str]) -> str:
    """The first names, quoted, and the number of the others.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def nearest(name: str, known: Collection[str]) -> str:
    """A question with the name that was probably meant; empty if none is close.

    >>> nearest("odour", ["odor", "habitat"])
    " Did you mean 'odor'?"
    """
    folded = {k.strip().casefold(): k for k in known}
    close = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""


def split_names(text: str, known: Sequence[str], separator: str) -> list[str]:
    """The names in a list such as ``a,b,c``; a known name may itself contain the separator.

    >>> split_names("a,b, c", ["a,b", "c"], ",")
    ['a,b', 'c']
    """
    by_length = sorted(known, key=len, reverse=True)
    names, rest = [], text
    while rest.strip():
        found = next((k for k in by_length if k and _starts(rest, k, separator)), None)
        if found is None:
            rest = rest.lstrip()
            found = next((k for k in by_length if k and _starts(rest, k, separator)), rest.partition(separator)[0])
        names.append(found if found in by_length else found.strip())
        rest = rest[len(found) :].lstrip().removeprefix(separator)
    return [name for name in names if name]


def _starts(text: str, name: str, separator: str) -> bool:
    after = text[len(name) :].lstrip()
    return text.startswith(name) and (not after or after.startswith(separator))


@cache
def options() -> Mapping[str, str]:
    """Every long option of the command, by the name of its parameter."""
    from typer.main import get_group

    from exanova.cli.app import app

    parameters = [p for command in get_group(app).commands.values() for p in command.params]
    flags = [flag for p in parameters for flag in p.opts if flag.startswith("--")]
    return {flag[2:].replace("-", "_"): flag for flag in flags}


def _spell(mention: Mention) -> str:
    if isinstance(mention, Action):
        return f"{ACTIONS[mention.name]} {shlex.quote(mention.column)}"
    option = options().get(OTHER_NAMES.get(mention.name, mention.name), mention.name)  # some only Python has
    if mention.value is UNSAID or mention.value is True:
        return option
    if mention.value is False or (mention.value is None and mention.name != "max_order"):
        return f"no {option}"
    typed = "all" if mention.value is None else _typed(mention.value)
    return typed if isinstance(mention, Value) else f"{option} {typed}"


def _typed(value: Any) -> str:
    """A value as it is typed in a shell."""
    if isinstance(value, Mapping):
        value = ",".join(f"{name}={number}" for name, number in value.items())
    elif isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return shlex.quote(str(value))
