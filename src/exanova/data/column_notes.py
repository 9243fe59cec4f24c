"""Errors and warnings that name several columns at once, after all have been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exanova.data.as_text import AsText
from exanova.errors import InputError
from exanova.messages import Action, Parameter, Words, count_of, joined
from exanova.warned import warn

STILL_RECEIVED = " The model still receives them."
"""Added where columns are left out and a model is called."""


@dataclass
class Notes:
    """Errors and warnings about several columns, raised once all have been read."""

    refused: dict[str, int] = field(default_factory=dict)
    identifiers: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, AsText] = field(default_factory=dict)
    named: dict[str, AsText] = field(default_factory=dict)
    cut: dict[str, AsText] = field(default_factory=dict)
    blanks: dict[str, tuple[str, str]] = field(default_factory=dict)

    def give(self, calls: bool) -> None:
        """Raise or warn, each in one message that names every column; ``calls`` says whether a model is called."""
        if self.unreadable:
            raise self._unreadable_error()
        if self.refused:
            raise self._refused_error()
        also = STILL_RECEIVED if calls else ""
        if self.identifiers:
            warn(self._identifiers_warning(also))
        for noun in ("number", "date"):
            _warn_of_text("left out", noun, self.left_out, also)
            _warn_of_text("read as names", noun, self.named, "")
            _warn_of_text("read as numbers", noun, self.cut, "")
        if self.blanks:
            warn(self._blanks_warning())

    def _unreadable_error(self) -> InputError:
        listed = ", ".join(f"{name!r} ({reason})" for name, reason in self.unreadable.items())
        return InputError(
            Parameter("strategy", "model"),
            f" cannot tell where the model splits {count_of(len(self.unreadable), 'column')}: {listed}",
            remedy=[
                *("Use ", Parameter("strategy", "quantile"), ", or keep their values as levels with "),
                Parameter("n_bins", dict.fromkeys(self.unreadable)),
            ],
        )

    def _refused_error(self) -> InputError:
        names = ",".join(self.refused)
        return InputError(
            f"{count_of(len(self.refused), 'column holds', 'columns hold')} numbers or times that look continuous: "
            f"{_sizes(self.refused)}; every feature has to be categorical",
            remedy=[
                "Pass ",
                Parameter("n_bins", "auto"),
                " to bin them, or ",
                Parameter("n_bins", dict.fromkeys(self.refused, 8)),
                " for this number of intervals each, or ",
                Action("categorical", names, "convert a column to a categorical dtype", len(self.refused)),
                " if each value is a category",
            ],
        )

    def _identifiers_warning(self, also: str) -> Words:
        them = "it" if len(self.identifiers) == 1 else "them"
        return Words(
            f"{_left_out(len(self.identifiers))} rows: {_sizes(self.identifiers)}.{also} You may also ",
            Action("drop", ",".join(self.identifiers), f"drop {them} from the table", len(self.identifiers)),
            ", merge rare levels with ",
            Parameter("min_frequency"),
            ", or name numbers in ",
            Parameter("n_bins"),
            " to bin them.",
        )

    def _blanks_warning(self) -> str:
        listed = ", ".join(f"{name!r} ({one!r} and {other!r})" for name, (one, other) in self.blanks.items())
        which = count_of(len(self.blanks), "column holds", "columns hold")
        return (
            f"{which} names that differ only in blanks before or after them, which are levels of their own: {listed}. "
            "If they mean the same, remove the blanks, for example by pandas.Series.str.strip."
        )


def _left_out(columns: int) -> str:
    one, more = "column is left out, because it identifies", "columns are left out, because they identify"
    return count_of(columns, one, more)


def _sizes(columns: Mapping[str, int]) -> str:
    return ", ".join(f"{name!r} ({size:,} different values)" for name, size in columns.items())


def _warn_of_text(what: str, noun: str, columns: Mapping[str, AsText], also: str) -> None:
    """Warn of columns of numbers or dates that were read as something else: what each holds, and what to do."""
    found = {name: text for name, text in columns.items() if text.noun == noun}
    if not found:
        return
    listed = ", ".join(f"{name!r} ({text.describe()})" for name, text in found.items())
    remedies = dict.fromkeys(Words.of(text.remedy) for text in found.values())
    one, more = f"column is {what}, although it holds {noun}s", f"columns are {what}, although they hold {noun}s"
    warn(Words(f"{count_of(len(found), one, more)}: {listed}.{also} ", joined(remedies, ". "), "."))
