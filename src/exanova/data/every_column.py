"""Errors about single columns, raised as one when every column has been read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from exanova.errors import ExanovaError, InputError, InputTypeError, UnknownLevelError
from exanova.messages import joined

MOST_SHOWN = 20
"""Largest number of columns whose problems are listed in one message."""

ABOUT_COLUMNS = (InputError, InputTypeError, UnknownLevelError)


@dataclass
class EveryColumn:
    """Errors about single columns; ``give`` raises them all at once.

    >>> wrong = EveryColumn()
    >>> for name in "ab":
    ...     with wrong.noted():
    ...         raise InputError(f"Column {name!r} is red", remedy="Paint it")
    >>> wrong.give()
    Traceback (most recent call last):
    exanova.errors.InputError: Column 'a' is red; column 'b' is red. Paint it.
    """

    errors: list[ExanovaError] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an error about one column for later."""
        try:
            yield
        except ABOUT_COLUMNS as error:
            if str(error) not in map(str, self.errors):
                self.errors.append(error)

    def give(self) -> None:
        """Raise the collected errors as one: the error of the first column, with the problems of all."""
        if not self.errors:
            return
        if len(self.errors) == 1:
            raise self.errors[0]
        raise type(self.errors[0]).together(_grouped(self.errors)) from self.errors[0]


def _grouped(errors: list[ExanovaError]) -> list[ExanovaError]:
    """One error for all columns with the same expectation and the same remedy."""
    groups: dict[tuple[type, str, str], list[ExanovaError]] = {}
    for error in errors:
        groups.setdefault((type(error), error.expected, error.remedy), []).append(error)
    return [_listed(group) for group in groups.values()]


def _listed(group: list[ExanovaError]) -> ExanovaError:
    problems = [group[0].problem, *(_continued(error.problem) for error in group[1:MOST_SHOWN])]
    if len(group) > MOST_SHOWN:
        problems.append(f"and so on in {len(group) - MOST_SHOWN} more columns")
    return type(group[0])(joined(problems, "; "), expected=[group[0].expected], remedy=[group[0].remedy])


def _continued(problem: str) -> str:
    return f"column {problem[len('Column ') :]}" if problem.startswith("Column ") else problem
