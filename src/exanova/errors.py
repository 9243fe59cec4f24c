"""One family of errors: every message says what was given, what was expected and what to do.

Each leaf also inherits the builtin a caller would expect, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations


class ExanovaError(Exception):
    """Root of every error raised on purpose by exanova."""


class InputError(ExanovaError, ValueError):
    """A table, a weight, a distribution or a parameter is not usable as given."""


class InputTypeError(ExanovaError, TypeError):
    """An argument is of a kind that exanova does not read."""


class UnknownFeatureError(ExanovaError, KeyError):
    """A feature or a subset of features was named that the decomposition does not have."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence reads better without quotes.
        return str(self.args[0]) if self.args else ""


class UnknownLevelError(ExanovaError, ValueError):
    """A row holds a level that was not seen when the encoding was learned."""


class OutsideSupportError(ExanovaError, ValueError):
    """A row holds a combination of known levels that never occurred (raised when ``strict=True``)."""


class ModelError(ExanovaError, RuntimeError):
    """The model raised, or what it returned is not one number (or one vector) for each row."""


class MemoryLimitError(ExanovaError, MemoryError):
    """The plan needs more memory than it may use; the message says what would fit."""


class NotFittedError(ExanovaError, AttributeError):
    """A result was asked of an object that has not been fitted."""


class FileFormatError(ExanovaError, ValueError):
    """A file is not one of ours, is truncated, was altered, or is of a later version."""


class FileWriteError(ExanovaError, OSError):
    """A file cannot be written where it was asked for; what was there before is still there."""


class DatasetError(ExanovaError, FileNotFoundError):
    """A dataset is in no folder and cannot be downloaded."""


class MissingPackageError(ExanovaError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class OutsideSupportWarning(UserWarning):
    """Some rows hold combinations that never occurred; the effects of those cells count as zero."""


class InexactWarning(UserWarning):
    """The certificate of a result misses its tolerance; the message says by how much and what to do."""
