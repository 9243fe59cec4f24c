"""Errors and warnings that name several columns at once, after all have been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exanova.data.number_texts import NumbersAsText
from exanova.errors import InputError
from exanova.messages import Action, Parameter, Words, joined
from exanova.warned import warn

STILL_RECEIVED = " The model still receives them."
"""Added where columns are left out and a model is called."""


@dataclass
class Notes:
    """Errors and warnings about several columns, raised once all have been read."""

    refused: dict[str, int] = field(default_factory=dict)
    identifiers: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, NumbersAsText] = field(default_factory=dict)
    named: dict[str, NumbersAsText] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    def give(self, calls: bool) -> None:
        """Raise or warn, each in one message that names every column; ``calls`` says whether a model is called."""
        if self.unreadable:
            raise self._unreadable_error()
        if self.refused:
            raise self._refused_error()
        also = STILL_RECEIVED if calls else ""
        if self.identifiers:
            warn(self._identifiers_warning(also))
        if self.dates:
            warn(self._dates_warning())
        _warn_of_numbers("are left out, although they hold numbers", self.left_out, also)
        _warn_of_numbers("are read as names, although they hold numbers", self.named, "")

    def _unreadable_error(self) -> InputError:
        listed = ", ".join(f"{name!r} ({reason})" for name, reason in self.unreadable.items())
        return InputError(
            Parameter("strategy", "model"),
            f" cannot tell where the model splits {len(self.unreadable)} column(s): {listed}",
            remedy=[
                *("Use ", Parameter("strategy", "quantile"), ", or keep their values as levels with "),
                Parameter("n_bins", dict.fromkeys(self.unreadable)),
            ],
        )

    def _refused_error(self) -> InputError:
        names = ",".join(self.refused)
        return InputError(
            f"{len(self.refused)} column(s) hold numbers or times that look continuous: {_sizes(self.refused)}; every "
            "feature has to be categorical",
            remedy=[
                "Pass ",
                Parameter("n_bins", "auto"),
                " to cut them, or ",
                Parameter("n_bins", dict.fromkeys(self.refused, 8)),
                " to bin each into this many intervals, or ",
                Action("categorical", names, "convert a column to a categorical dtype"),
                " if each of its values is a category",
            ],
        )

    def _identifiers_warning(self, also: str) -> Words:
        return Words(
            f"{len(self.identifiers)} column(s) are left out, since they identify rows: {_sizes(self.identifiers)}."
            f"{also} You may also ",
            Action("drop", ",".join(self.identifiers), "drop them from the table"),
            ", merge rare levels with ",
            Parameter("min_frequency"),
            ", or name numbers in ",
            Parameter("n_bins"),
            " to cut them.",
        )

    def _dates_warning(self) -> str:
        listed = ", ".join(f"{name!r} (such as {example!r})" for name, example in self.dates.items())
        return (
            f"{len(self.dates)} column(s) of dates are read as names, and left out where most rows have their own: "
            f"{listed}. Write them as 2024-05-31, for example by pandas.to_datetime, to have them cut by the calendar."
        )


def _sizes(columns: Mapping[str, int]) -> str:
    return ", ".join(f"{name!r} ({size:,} different values)" for name, size in columns.items())


def _warn_of_numbers(what: str, columns: Mapping[str, NumbersAsText], also: str) -> None:
    """Warn of columns of numbers that were read as text: what each holds, and what to do."""
    if not columns:
        return
    listed = ", ".join(f"{name!r} ({found.describe()})" for name, found in columns.items())
    remedies = dict.fromkeys(Words.of(found.remedy) for found in columns.values())
    warn(Words(f"{len(columns)} column(s) {what}: {listed}.{also} ", joined(remedies, ". "), "."))
