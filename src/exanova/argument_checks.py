"""Checks of single arguments, each with one wording: choices, switches, numbers, levels, outputs, paths, texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from exanova.errors import InputError, InputTypeError, UnknownFeatureError
from exanova.messages import choices

ABOUT = "{'Data': 'loans.csv'}"
"""An example of further facts, for error messages."""


def is_choice(value: Any, allowed: Iterable[Any]) -> bool:
    """Whether a value is one of a few; an array is none of them, whatever it holds.

    >>> is_choice("dense", ("auto", "dense")), is_choice(1, (True, False)), is_choice(np.True_, (True, False))
    (True, False, True)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    return any(isinstance(plain, type(choice)) and plain == choice for choice in allowed)  # 1 is not True


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a value that is not one of a few."""
    allowed = tuple(allowed)
    if not is_choice(value, allowed):
        raise InputError.given(name, value, *choices(name, allowed))


def check_switch(name: str, value: Any) -> None:
    """Refuse anything but True and False: the text "no" would otherwise mean yes."""
    check_choice(name, value, (True, False))


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least ``least``; True is not 1."""
    return not isinstance(value, bool) and isinstance(value, int | np.integer) and bool(value >= least)


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if not is_whole(value, least):
        raise InputError.given(name, value, f"a whole number of at least {least}")


def check_level(level: Any, such_as: str = "0.95") -> None:
    """Refuse a level that is not a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0.0 < level < 1.0:
        raise InputError.given("level", level, f"a number between 0 and 1, such as {such_as}")


def output_number(output: Any, names: Sequence[str]) -> int:
    """The number of an output given by its name or number; where there is only one, ``None`` is enough.

    A number that is itself a name, as of a class, is read as that name.

    >>> names = ("1", "2")
    >>> output_number("2", names), output_number(1, names), output_number(0, names), output_number(None, ("p",))
    (1, 0, 0, 0)
    """
    if output is None and len(names) == 1:
        return 0
    if str(output) in names and output is not None:
        return names.index(str(output))
    if is_whole(output, -len(names)) and output < len(names):
        return int(output) % len(names)
    expected = f"one of {', '.join(map(repr, names[:10]))}{', ...' if len(names) > 10 else ''}, or its number"
    if output is None:
        raise InputError("there are several outputs", expected=expected)
    raise UnknownFeatureError(f"there is no output {output!r}", expected=expected)


def check_path(path: Any, name: str = "path") -> None:
    """Refuse anything but a path: a number would otherwise be an open file of the process.

    >>> check_path(3)
    Traceback (most recent call last):
    exanova.errors.InputTypeError: path=3 was given; expected a path, as text or as a pathlib.Path.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InputTypeError.given(name, path, "a path, as text or as a pathlib.Path")


def check_text(name: str, value: Any) -> None:
    """Refuse anything but text or None."""
    if value is not None and not isinstance(value, str):
        raise InputTypeError.given(name, value, "text, or None")


def are_texts(value: Any) -> bool:
    """Whether a value is a sequence of texts, and not one text."""
    return not isinstance(value, str) and isinstance(value, Sequence) and all(isinstance(text, str) for text in value)


def check_mapping(name: str, value: Any, such_as: str) -> None:
    """Refuse anything but a mapping or None."""
    if value is not None and not isinstance(value, Mapping):
        raise InputTypeError.given(name, value, f"a mapping, such as {such_as}, or None")
