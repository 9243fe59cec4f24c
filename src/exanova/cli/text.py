"""Text for a terminal: nothing in a name or a message may move the cursor, and a message is one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence

SHOWN = 8
"""Names that are listed before the rest is counted."""


def visible(text: object) -> str:
    """The text with every character that does not print (escapes, line ends, marks of direction) spelled out.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object, most: int = 1000) -> str:
    """A message on one line, cut if it is longer than anyone reads.

    >>> one_line("no such\\n  column")
    'no such column'
    """
    line = visible(re.sub(r"\s+", " ", str(text)).strip())
    return line if len(line) <= most else line[: most - 4] + " ..."


def listed(names: Sequence[str]) -> str:
    """The first few names, quoted, and how many more there are.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def nearest(name: str, known: Collection[str]) -> str:
    """A question that names what was probably meant, or nothing.

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
