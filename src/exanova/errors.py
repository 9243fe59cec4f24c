"""One family of errors: every message says what was given, what was expected and what to do.

Each leaf also inherits the builtin a caller would expect, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from exanova.messages import Action, Parameter, Part, Parts, Words, joined


class ExanovaError(Exception):
    """Root of every error raised on purpose by exanova.

    Its text is put together from three fields, which end without a full stop. Parameters that they mention are data
    (:mod:`exanova.messages`), so that the command can name its options instead.

    Attributes:
        problem: what was given, or what is wrong.
        expected: what may be given; empty where the problem says it.
        remedy: what to do. It is a sentence of its own if it begins with a capital letter.

    >>> print(ExanovaError(Parameter("ties", "last"), " was given", expected="'share'", remedy="Leave it out"))
    ties='last' was given; expected 'share'. Leave it out.
    """

    def __init__(self, *problem: Part, expected: Parts = "", remedy: Parts = "") -> None:
        self.problem, self.expected, self.remedy = Words(*problem), Words.of(expected), Words.of(remedy)
        super().__init__(_sentence(self.problem, self.expected, self.remedy))

    @classmethod
    def given(cls, name: str, value: Any, *expected: Part) -> Self:
        """An error about a parameter with an invalid value.

        >>> print(InputError.given("n_jobs", 0, "a positive number of threads"))
        n_jobs=0 was given; expected a positive number of threads.
        """
        return cls(Parameter(name, value), " was given", expected=expected)

    @classmethod
    def together(cls, errors: Iterable[ExanovaError]) -> Self:
        """One error with the text of several."""
        return cls(joined((error.message for error in errors), " "))

    @property
    def message(self) -> Words:
        """The complete text."""
        return Words(self.args[0])

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are mentioned, each once, in order."""
        return tuple(dict.fromkeys(m.name for m in self.message.mentions if not isinstance(m, Action)))

    @property
    def parameter(self) -> str | None:
        """Name of the parameter that is at fault: the first that the problem mentions."""
        names = [m.name for m in self.problem.mentions if not isinstance(m, Action)]
        return names[0] if names else None

    def __str__(self) -> str:
        # KeyError would show the repr of its argument; a sentence reads better without quotes.
        return str(self.args[0])


class InputError(ExanovaError, ValueError):
    """A table, a weight, a distribution or a parameter is not usable as given."""


class InputTypeError(ExanovaError, TypeError):
    """An argument is of a type that exanova does not support."""


class UnknownFeatureError(ExanovaError, KeyError):
    """A feature, a subset of features or an output was named that the decomposition does not have."""


class UnknownLevelError(ExanovaError, ValueError):
    """A row holds a level that was not observed when the encoding was learned."""


class OutsideSupportError(ExanovaError, ValueError):
    """A row holds a combination of known levels that never occurred (raised when ``strict=True``)."""


class ModelError(ExanovaError, RuntimeError):
    """The model raised, or what it returned is not one number (or one vector) for each row."""


class MemoryLimitError(ExanovaError, MemoryError):
    """The plan needs more memory than it may use; the message says what would fit."""

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """As any exception is made: those of clusters are, without being called."""
        return Exception.__new__(cls, *args)


class NotFittedError(ExanovaError, AttributeError):
    """A result was requested from an object that has not been fitted."""


class FileFormatError(ExanovaError, ValueError):
    """A file is not one of ours, is truncated, was altered, or is of a later version."""


class FileWriteError(ExanovaError, OSError):
    """A file cannot be written to its path; an existing file there is unchanged."""


class DatasetError(ExanovaError, FileNotFoundError):
    """A dataset is in no folder and cannot be downloaded."""


class EngineError(ExanovaError, RuntimeError):
    """A cluster or another engine that processes the rows was lost, or failed."""


class MissingPackageError(ExanovaError, ImportError):
    """An optional package is not installed; the message names the extra that installs it."""


class OutsideSupportWarning(UserWarning):
    """Some rows hold combinations that never occurred; their effects are extrapolated, or count as zero."""


class OverfitWarning(UserWarning):
    """The effects describe the rows of the fit better than other rows; the message says by how much and what helps."""


class InexactWarning(UserWarning):
    """A check of the certificate failed; the message says by how much and what to do."""


class WeightsWarning(UserWarning):
    """Whole-number weights were taken as counts of rows, and do not look like counts."""


def _sentence(problem: Words, expected: Words, remedy: Words) -> Words:
    if not expected and not remedy:
        return problem
    parts = [problem, *(["; expected ", expected] if expected else [])]
    if remedy:
        parts += [". " if remedy[0].isupper() else "; ", remedy]
    return Words(*parts, ".")
