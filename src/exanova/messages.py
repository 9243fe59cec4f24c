"""Messages in which parameters are data, so that Python and the command line can each spell them in their own way.

A message consists of text and mentions of parameters. As a string it uses Python's spelling (``max_order=2``);
``spelled`` uses another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self, TypeAlias


class Unsaid(Enum):
    """Marks a parameter mentioned without a value; an enumeration survives pickling and copying."""

    UNSAID = "unsaid"


UNSAID: Any = Unsaid.UNSAID


MOST_CHARACTERS = 200
"""Characters of a value that a message shows: a table or a list given by mistake is named, not printed."""


def short(value: Any) -> str:
    """The representation of a value in one line, its end left out where it is long.

    >>> short([1, 2]), len(short(list(range(10_000))))
    ('[1, 2]', 200)
    """
    text = " ".join(repr(value).split("\n"))
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."


@dataclass(frozen=True)
class Parameter:
    """A mention of a parameter, with or without a value.

    >>> print(Parameter("max_order", 3), Parameter("min_frequency"))
    max_order=3 min_frequency=
    """

    name: str
    value: Any = UNSAID

    def __str__(self) -> str:
        return f"{self.name}=" if self.value is UNSAID else f"{self.name}={short(self.value)}"


@dataclass(frozen=True)
class Value:
    """A value of a parameter, without its name.

    >>> print(Value("basis", "pure"))
    'pure'
    """

    name: str
    value: Any

    def __str__(self) -> str:
        return short(self.value)


@dataclass(frozen=True)
class Action:
    """Advice to change a column, which Python users do outside this library.

    Attributes:
        name: ``"drop"``, ``"categorical"``, ``"missing"`` or ``"decimal"``.
        column: the column it is done to, or the text of its cells.
        words: the advice for Python users.
        count: how many columns it names.

    >>> print(Action("drop", "id", "drop the column"))
    drop the column
    """

    name: str
    column: str
    words: str
    count: int = 1

    def __str__(self) -> str:
        return self.words


Mention: TypeAlias = Parameter | Value | Action
Part: TypeAlias = str | Mention
Parts: TypeAlias = Part | Sequence[Part]


class Words(str):
    """A message that keeps the parts it was made of.

    Attributes:
        parts: text and mentions, in order.

    >>> message = Words("use ", Parameter("route", "dense"), " instead")
    >>> message
    "use route='dense' instead"
    >>> message.spelled(lambda mention: mention.name.upper())
    'use ROUTE instead'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Self:
        """Join parts; messages among them are split into their parts."""
        flat = [piece for part in parts for piece in (part.parts if isinstance(part, Words) else (part,))]
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(flat)
        return made

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """From one part or several."""
        return cls(parts) if isinstance(parts, str | Parameter | Value | Action) else cls(*parts)

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The mentions, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """The message with every mention written by ``spell``."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)


def joined(sentences: Iterable[str], between: str) -> Words:
    """Join messages, keeping their mentions.

    >>> joined(["a", Words(Parameter("ties", "share"))], "; ").mentions
    (Parameter(name='ties', value='share'),)
    """
    parts = [part for sentence in sentences for part in (between, sentence)]
    return Words(*parts[1:])


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Words as they stand in a sentence, of more than ``most`` only the first.

    >>> listed(["job", "age"]), listed(["job", "age", "pay"]), listed(["job", "age", "pay", "sex"], 2)
    ('job and age', 'job, age and pay', 'job, age and 2 more')
    """
    shown = list(words)
    if most is not None and len(words) > most:
        shown = [*shown[:most], f"{len(words) - most:,} more"]
    return " and ".join([*filter(None, [", ".join(shown[:-1])]), *shown[-1:]])


def choices(name: str, values: Iterable[Any]) -> list[Part]:
    """The values a parameter may have, as parts of a message.

    >>> print(Words(*choices("ties", ["share", "first"])))
    'share' or 'first'
    """
    shown = [Value(name, value) for value in values]
    between = [", "] * (len(shown) - 2) + [" or "]
    return [part for value, after in zip(shown, [*between, ""], strict=False) for part in (value, after) if part]


def count_of(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, in the singular or the plural.

    >>> count_of(1, "row"), count_of(2000, "row"), count_of(2, "pass", "passes")
    ('1 row', '2,000 rows', '2 passes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def to_json(sentence: str) -> Any:
    """A message as JSON: text, or a list of text and parameters ``[name]`` or ``[name, value]``.

    >>> to_json(Words("try ", Parameter("route", "dense")))
    ['try ', ['route', 'dense']]
    """
    if not isinstance(sentence, Words) or not sentence.mentions:
        return str(sentence)
    return [[p.name, *_value(p)] if isinstance(p, Parameter) else str(p) for p in sentence.parts]


def from_json(entry: Any) -> str:
    """The message that ``to_json`` wrote.

    >>> from_json(["try ", ["route", "dense"]])
    "try route='dense'"
    """
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, list) or not all(isinstance(p, str) or isinstance(p[0], str) for p in entry):
        raise ValueError(f"{entry!r} is not a sentence")
    return Words(*(part if isinstance(part, str) else Parameter(*part) for part in entry))


def _value(parameter: Parameter) -> list[Any]:
    return [] if parameter.value is UNSAID else [parameter.value]
