"""Text of the command line: values of options as they are typed, messages as they are shown, on one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from exanova.errors import InputError

if TYPE_CHECKING:
    from exanova.data.rules import Bins, NBins

SHOWN = 8
"""Names listed before the rest is counted."""


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
        next_name = next((k for k in by_length if k and _starts(rest, k, separator)), None)
        if next_name is None:
            rest = rest.lstrip()
            next_name = next((k for k in by_length if k and _starts(rest, k, separator)), rest.partition(separator)[0])
        names.append(next_name if next_name in by_length else next_name.strip())
        rest = rest[len(next_name) :].lstrip().removeprefix(separator)
    return [name for name in names if name]


def order(text: str) -> int | None:
    """``--max-order``: a number, or ``all``.

    >>> order("2"), order("all")
    (2, None)
    """
    return None if text.strip().lower() == "all" else whole(text, "--max-order", "a whole number, or 'all'")


def terms(text: str | None) -> int | str | None:
    """``--max-terms``: a number, or ``auto``.

    >>> terms(None), terms("200"), terms("auto")
    (None, 200, 'auto')
    """
    if text is None or text.strip().lower() == "auto":
        return None if text is None else "auto"
    return whole(text, "--max-terms", "a whole number of functions, or 'auto'")


def whole(text: str, option: str, expected: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r} was given; expected {expected}.") from error


def frequency(text: str | None) -> int | float | None:
    """``--min-frequency``: a number of rows, or a fraction of them.

    >>> frequency("10"), frequency("0.01"), frequency(None)
    (10, 0.01, None)
    """
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(
            f"--min-frequency {text!r} was given; expected a number of rows such as 10, or a fraction such as 0.01."
        ) from error


def bins(texts: Sequence[str], features: Sequence[str], option: str = "--n-bins") -> NBins:
    """``--n-bins`` or ``--max-levels``: a number, ``auto`` or ``none``, for all columns or by column.

    >>> bins([], []), bins(["5"], []), bins(["age=4,income=none"], ["age", "income"])
    ('auto', 5, {'age': 4, 'income': None})
    """
    if not texts:
        return "auto"
    expected = "a whole number, auto or none, for all columns or by column such as age=5,income=auto"
    if len(texts) == 1 and "=" not in texts[0]:
        return _bins(texts[0], expected, option)
    by_column: dict[str, Bins] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, equals, number = part.rpartition("=")
        if not equals:
            raise InputError(f"{option} {part!r} was given; expected {expected}.")
        by_column[_feature(name.strip(), features, option)] = _bins(number, expected, option)
    return by_column


def _bins(text: str, expected: str, option: str) -> Bins:
    named: dict[str, Bins] = {"auto": "auto", "none": None}
    word = text.strip().lower()
    return named[word] if word in named else whole(text, option, expected)


def subsets(texts: Sequence[str], features: Sequence[str]) -> list[tuple[str, ...]] | None:
    """``--subsets``: subsets such as ``a:b,b:c:d``; a name may contain a colon or a comma.

    >>> subsets(["a:b,b:c:d"], ["a", "b", "c", "d"])
    [('a', 'b'), ('b', 'c', 'd')]
    """
    if not texts:
        return None
    return [subset(part, features, "--subsets") for text in texts for part in _subset_texts(text, features)]


def groups(texts: Sequence[str], features: Sequence[str]) -> dict[str, list[str]] | None:
    """``--group``: a name and its features, such as ``household=home,children``.

    >>> groups(["household=home,children"], ["home", "age", "children"])
    {'household': ['home', 'children']}
    """
    members: dict[str, list[str]] = {}
    for text in texts:
        name, equals, names = text.partition("=")
        if not equals or not name.strip() or name.strip() in members:
            raise InputError(
                f"--group {text!r} was given; expected a name of its own and its features, such as "
                "household=home,children."
            )
        members[name.strip()] = [_feature(f, features, "--group") for f in split_names(names, features, ",")]
    return members or None


def subset(text: str, features: Sequence[str], option: str) -> tuple[str, ...]:
    """The features of one subset, such as ``a:b``."""
    return tuple(_feature(name, features, option) for name in split_names(text, features, ":"))


def shrinkage(text: str) -> str | None:
    """``--shrinkage``: ``none`` for an exact fit; the library checks other words.

    >>> shrinkage("auto"), shrinkage("none")
    ('auto', None)
    """
    word = text.strip().lower()
    return None if word == "none" else word


def eval_fraction(text: str) -> float | None:
    """``--eval``: a fraction of the rows, or ``None`` if it is a file name.

    >>> eval_fraction("0.25"), eval_fraction("test.csv")
    (0.25, None)
    """
    try:
        fraction = float(text)
    except ValueError:
        return None
    if not 0.0 < fraction < 1.0:
        raise InputError(f"--eval {text!r} was given; expected a fraction of the rows such as 0.2, or a file.")
    return fraction


def output_names(text: str | None) -> list[str] | None:
    """``--output-names``: a list."""
    return None if text is None else [name.strip() for name in text.split(",")]


def memory(text: str | None) -> Any:
    """``--memory-limit``: bytes, or text with a unit, which the library reads."""
    return int(text) if text is not None and text.isdecimal() else text


def _starts(text: str, name: str, separator: str) -> bool:
    after = text[len(name) :].lstrip()
    return text.startswith(name) and (not after or after.startswith(separator))


def _subset_texts(text: str, features: Sequence[str]) -> list[str]:
    """Split ``a:b,c:d`` at the commas that are not part of a name."""
    pieces, rest = [""], text
    by_length = sorted(features, key=len, reverse=True)
    while rest:
        name = next((f for f in by_length if f and rest.startswith(f)), None)
        if name is None and rest[0] == ",":
            pieces.append("")
            rest = rest[1:]
        else:
            taken = name or rest[0]
            pieces[-1], rest = pieces[-1] + taken, rest[len(taken) :]
    return [piece.strip() for piece in pieces if piece.strip()]


def _feature(name: str, features: Sequence[str], option: str) -> str:
    if name not in features:
        raise InputError(f"{option} names {name!r}, which is not a feature.{nearest(name, features)}")
    return name
