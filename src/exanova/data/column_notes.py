"""What is said of several columns at once, after all have been read: errors, and columns that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exanova.data.number_texts import NumbersAsText
from exanova.errors import InputError
from exanova.messages import Action, Parameter, Words, joined
from exanova.warned import warn

STILL_RECEIVED = " The model still receives them."
"""Said of columns that are left out where a model is called."""


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
            listed = ", ".join(f"{name!r} ({reason})" for name, reason in self.unreadable.items())
            raise InputError(
                Parameter("strategy", "model"),
                f" cannot tell where the model splits {len(self.unreadable)} column(s): {listed}",
                remedy=[
                    *("Use ", Parameter("strategy", "quantile"), ", or keep their values as levels with "),
                    Parameter("n_bins", dict.fromkeys(self.unreadable)),
                ],
            )
        if self.refused:
            listed = ", ".join(f"{name!r} ({size:,} different values)" for name, size in self.refused.items())
            names = ",".join(self.refused)
            raise InputError(
                f"{len(self.refused)} column(s) hold numbers or times that look continuous: {listed}; every feature "
                "has to be categorical",
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
        if self.identifiers:
            listed = ", ".join(f"{name!r} ({size:,} different values)" for name, size in self.identifiers.items())
            said = Words(
                f"{len(self.identifiers)} column(s) are left out, since they identify rows: "
                f"{listed}.{STILL_RECEIVED if calls else ''} You may also ",
                Action("drop", ",".join(self.identifiers), "drop them from the table"),
                ", merge rare levels with ",
                Parameter("min_frequency"),
                ", or name numbers in ",
                Parameter("n_bins"),
                " to cut them.",
            )
            warn(said)
        if self.dates:
            listed = ", ".join(f"{name!r} (such as {example!r})" for name, example in self.dates.items())
            warn(
                f"{len(self.dates)} column(s) of dates are read as names, and left out where most rows have their own: "
                f"{listed}. Write them as 2024-05-31, for example by pandas.to_datetime, to have them cut by the "
                "calendar."
            )
        still = STILL_RECEIVED if calls else ""
        _warn_of_numbers("are left out, although they hold numbers", self.left_out, still)
        _warn_of_numbers("are read as names, although they hold numbers", self.named, "")


def _warn_of_numbers(what: str, columns: Mapping[str, NumbersAsText], still: str) -> None:
    """Warn of columns of numbers that were read as text: what was found in each, and what to do."""
    if not columns:
        return
    listed = ", ".join(f"{name!r} ({found.describe()})" for name, found in columns.items())
    remedies = dict.fromkeys(Words.of(found.remedy) for found in columns.values())
    warn(Words(f"{len(columns)} column(s) {what}: {listed}.{still} ", joined(remedies, ". "), "."))
