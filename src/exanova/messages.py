"""Sentences in which parameters are data, so that Python and the command each spell them in their own way.

A sentence is put together from text and mentions. As a string it is what Python says; ``spelled`` says it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self, TypeAlias


class Unsaid(Enum):
    """The value of a parameter that is mentioned by its name alone; an enumeration survives pickling and copies."""

    UNSAID = "unsaid"


UNSAID: Any = Unsaid.UNSAID


@dataclass(frozen=True)
class Parameter:
    """A parameter by its name, with a value if one is meant.

    >>> print(Parameter("max_order", 3), Parameter("min_frequency"))
    max_order=3 min_frequency=
    """

    name: str
    value: Any = UNSAID

    def __str__(self) -> str:
        return f"{self.name}=" if self.value is UNSAID else f"{self.name}={self.value!r}"


@dataclass(frozen=True)
class Value:
    """A value of a parameter, without its name.

    >>> print(Value("basis", "pure"))
    'pure'
    """

    name: str
    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Action:
    """Something to do with a column that Python does outside this library.

    Attributes:
        name: ``"drop"`` or ``"categorical"``.
        column: the column it is done to.
        words: how Python says it.

    >>> print(Action("drop", "id", "drop the column"))
    drop the column
    """

    name: str
    column: str
    words: str

    def __str__(self) -> str:
        return self.words


Mention: TypeAlias = Parameter | Value | Action
Part: TypeAlias = str | Mention
Parts: TypeAlias = Part | Sequence[Part]


class Words(str):
    """A sentence made of parts, which are kept.

    Attributes:
        parts: text and mentions, in order.

    >>> said = Words("use ", Parameter("route", "dense"), " instead")
    >>> said
    "use route='dense' instead"
    >>> said.spelled(lambda mention: mention.name.upper())
    'use ROUTE instead'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Self:
        """Join parts; sentences among them are taken apart."""
        flat = [piece for part in parts for piece in (part.parts if isinstance(part, Words) else (part,))]
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(flat)
        return made

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """One part, or several."""
        return cls(parts) if isinstance(parts, str | Parameter | Value | Action) else cls(*parts)

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The mentions, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """The sentence with every mention as ``spell`` writes it."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)


def joined(sentences: Iterable[str], between: str) -> Words:
    """Sentences one after the other, their mentions kept.

    >>> joined(["a", Words(Parameter("ties", "share"))], "; ").mentions
    (Parameter(name='ties', value='share'),)
    """
    parts = [part for sentence in sentences for part in (between, sentence)]
    return Words(*parts[1:])


def choices(name: str, values: Iterable[Any]) -> list[Part]:
    """The values that a parameter may have, as parts of a sentence.

    >>> print(Words(*choices("ties", ["share", "first"])))
    one of 'share', 'first'
    """
    parts: list[Part] = ["one of "]
    for value in values:
        parts += [Value(name, value), ", "]
    return parts[:-1]


def to_json(sentence: str) -> Any:
    """A sentence as JSON: text, or a list of text and parameters ``[name]`` or ``[name, value]``.

    >>> to_json(Words("try ", Parameter("route", "dense")))
    ['try ', ['route', 'dense']]
    """
    if not isinstance(sentence, Words) or not sentence.mentions:
        return str(sentence)
    return [[p.name, *_value(p)] if isinstance(p, Parameter) else str(p) for p in sentence.parts]


def from_json(found: Any) -> str:
    """The sentence that ``to_json`` wrote.

    >>> from_json(["try ", ["route", "dense"]])
    "try route='dense'"
    """
    if isinstance(found, str):
        return found
    if not isinstance(found, list) or not all(isinstance(p, str) or isinstance(p[0], str) for p in found):
        raise ValueError(f"{found!r} is no sentence")
    return Words(*(part if isinstance(part, str) else Parameter(*part) for part in found))


def _value(parameter: Parameter) -> list[Any]:
    return [] if parameter.value is UNSAID else [parameter.value]
