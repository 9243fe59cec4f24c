"""Options of the command line as parameters of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exanova.cli.text import nearest, split_names
from exanova.data.rules import Bins, NBins
from exanova.errors import InputError


def order(text: str) -> int | None:
    """``--max-order``: a number, or ``all``.

    >>> order("2"), order("all")
    (2, None)
    """
    return None if text.strip().lower() == "all" else whole(text, "--max-order", "a whole number, or 'all'")


def whole(text: str, option: str, expected: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r} was given; expected {expected}.") from error


def frequency(text: str | None) -> int | float | None:
    """``--min-frequency``: a number of rows, or a share of them.

    >>> frequency("10"), frequency("0.01"), frequency(None)
    (10, 0.01, None)
    """
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(
            f"--min-frequency {text!r} was given; expected a number of rows such as 10, or a share such as 0.01."
        ) from error


def bins(texts: Sequence[str], features: Sequence[str]) -> NBins:
    """``--n-bins``: a number, ``auto`` or ``none``, for all or by column.

    >>> bins([], []), bins(["5"], []), bins(["age=4,income=none"], ["age", "income"])
    ('auto', 5, {'age': 4, 'income': None})
    """
    if not texts:
        return "auto"
    expected = "a whole number, auto or none, for all columns or by column such as age=5,income=auto"
    if len(texts) == 1 and "=" not in texts[0]:
        return _bins(texts[0], expected)
    found: dict[str, Bins] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, equals, number = part.rpartition("=")
        if not equals:
            raise InputError(f"--n-bins {part!r} was given; expected {expected}.")
        found[_feature(name.strip(), features, "--n-bins")] = _bins(number, expected)
    return found


def _bins(text: str, expected: str) -> Bins:
    named: dict[str, Bins] = {"auto": "auto", "none": None}
    word = text.strip().lower()
    return named[word] if word in named else whole(text, "--n-bins", expected)


def subsets(texts: Sequence[str], features: Sequence[str]) -> list[tuple[str, ...]] | None:
    """``--interactions``: subsets such as ``a:b,b:c:d``; a name may hold a colon or a comma.

    >>> subsets(["a:b,b:c:d"], ["a", "b", "c", "d"])
    [('a', 'b'), ('b', 'c', 'd')]
    """
    if not texts:
        return None
    return [subset(part, features, "--interactions") for text in texts for part in _subset_texts(text, features)]


def subset(text: str, features: Sequence[str], option: str) -> tuple[str, ...]:
    """The features of one subset, such as ``a:b``."""
    return tuple(_feature(name, features, option) for name in split_names(text, features, ":"))


def eval_share(text: str) -> float | None:
    """``--eval``: a share of the rows, or ``None`` if it is the name of a file.

    >>> eval_share("0.25"), eval_share("test.csv")
    (0.25, None)
    """
    try:
        share = float(text)
    except ValueError:
        return None
    if not 0.0 < share < 1.0:
        raise InputError(f"--eval {text!r} was given; expected a share of the rows such as 0.2, or a file.")
    return share


def output_names(text: str | None) -> list[str] | None:
    """``--output-names``: a list."""
    return None if text is None else [name.strip() for name in text.split(",")]


def memory(text: str | None) -> Any:
    """``--memory-limit``: bytes, or a text with a unit, which the library reads itself."""
    return int(text) if text is not None and text.isdecimal() else text


def _subset_texts(text: str, features: Sequence[str]) -> list[str]:
    """The pieces of ``a:b,c:d`` between commas that are not part of a name."""
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
        raise InputError(f"{option} names {name!r}, which is no feature.{nearest(name, features)}")
    return name
