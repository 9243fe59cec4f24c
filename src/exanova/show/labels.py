"""Names that come from data as text a picture can show: nothing invisible, nothing empty, nothing alike."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from exanova.data.levels import label_levels

EMPTY = "(empty)"

TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text after them; letters of right-to-left scripts need none of them."""

TITLE_LENGTH = 60
"""Characters of one name in a title; axes cut names by their width instead."""


def legible(text: str) -> str:
    r"""The text with everything invisible written out: no text, blanks at an end, control characters.

    >>> legible(""), legible("red"), legible(" red"), legible("a\nb")
    ('(empty)', 'red', '" red"', 'a\\nb')
    """
    if not text:
        return EMPTY
    written = "".join(_written(character) for character in text)
    return f'"{written}"' if written != written.strip() else written


def legible_names(names: Sequence[str]) -> dict[str, str]:
    """What to show for each of several different names; what is shown is different too.

    >>> legible_names(["a", "", "(empty)"])
    {'a': 'a', '': '(empty)', '(empty)': "'(empty)'"}
    """
    shown = [legible(name) for name in names]
    taken = Counter(shown)
    told_apart = [
        repr(name) if taken[label] > 1 and label == name else label for name, label in zip(names, shown, strict=True)
    ]
    return dict(zip(names, label_levels(told_apart), strict=True))


def short(text: str, length: int = TITLE_LENGTH) -> str:
    """The beginning of a long text, legible.

    >>> short("a" * 9, 5)
    'aaaa…'
    """
    shown = legible(text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def _written(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNING or _is_none(character):
        return character.encode("unicode_escape").decode("ascii")
    return character


def _is_none(character: str) -> bool:
    """Whether this is one of the code points that are no character, which XML does not allow."""
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
