"""The checked options of how columns become levels, and their meaning for one column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from exanova.argument_checks import is_choice
from exanova.data.binning import STRATEGIES
from exanova.data.table import Table
from exanova.errors import InputError
from exanova.messages import Parameter, Value, choices

Bins: TypeAlias = int | Literal["auto"] | None
"""A number of bins, "auto", or ``None`` to keep every value as a level."""

NBins: TypeAlias = Bins | Mapping[str, Bins]

MaxLevels: TypeAlias = Bins | Mapping[str, Bins]
"""How many levels a column of names may have: a number, "auto", ``None`` for any, or a mapping from column to these."""

MOST_LEVELS = 50
"""Levels of a nominal column beyond which they are joined: pairs of two such columns can just be shrunk."""

MANY = 20
"""Numbers and times with more distinct values than this are cut."""


@dataclass(frozen=True)
class LevelRules:
    """The options of ``learn_encoding`` once they have been checked.

    Attributes:
        min_frequency: levels rarer than this are merged.
        n_bins: into how many bins columns are cut.
        strategy: how they are cut.
    """

    min_frequency: float | None
    n_bins: NBins
    strategy: str

    def bins_of(self, name: str) -> Bins:
        """Bins of this column; a column that a mapping does not name is cut by default."""
        return self.n_bins.get(name, "auto") if isinstance(self.n_bins, Mapping) else self.n_bins

    def is_named(self, name: str) -> bool:
        """Whether a mapping names this column."""
        return isinstance(self.n_bins, Mapping) and name in self.n_bins

    def keeps(self, name: str, distinct: int) -> bool:
        """Whether a column with this many distinct numbers or times keeps each of them as a level."""
        bins = self.bins_of(name)
        if bins is None or bins == "auto":
            return bins is None or distinct <= MANY
        return distinct <= (bins if self.is_named(name) else MANY)


def most_levels(max_levels: MaxLevels, name: str) -> int | None:
    """Most levels of a column of names; ``None`` for any number.

    >>> most_levels("auto", "job"), most_levels({"zip": 20}, "zip"), most_levels(None, "zip")
    (50, 20, None)
    """
    own = max_levels.get(name, "auto") if isinstance(max_levels, Mapping) else max_levels
    return MOST_LEVELS if own == "auto" else own


def is_asked(max_levels: MaxLevels, name: str) -> bool:
    """Whether a number of levels was given for this column.

    >>> is_asked("auto", "zip"), is_asked({"zip": 20}, "zip")
    (False, True)
    """
    return (max_levels.get(name, "auto") if isinstance(max_levels, Mapping) else max_levels) != "auto"


def wrong_max_levels(max_levels: Any) -> Iterator[InputError]:
    """An error if this is not a valid number of levels for any table."""
    yield from _wrong_numbers("max_levels", max_levels)


def by_text(given: Any) -> Any:
    """A mapping from columns, named as text: so are columns compared, whose names may be numbers; else what was given.

    >>> by_text({0: 5, "age": None}), by_text("auto")
    ({'0': 5, 'age': None}, 'auto')
    """
    return {str(name): value for name, value in given.items()} if isinstance(given, Mapping) else given


def check_max_levels(max_levels: MaxLevels, names: Sequence[str]) -> None:
    """Refuse a mapping that names columns the table does not have."""
    unknown = [name for name in max_levels if name not in names] if isinstance(max_levels, Mapping) else []
    if unknown:
        raise InputError(
            Parameter("max_levels"), f" names columns that the table does not have: {', '.join(map(repr, unknown))}."
        )


def check_rules(table: Table, min_frequency: Any, n_bins: Any, strategy: Any) -> LevelRules:
    """The options as rules; raises on invalid ones.

    >>> import numpy as np
    >>> table = Table.read(np.array([[0.5], [1.5]]))
    >>> check_rules(table, None, {"x0": 4}, "quantile").bins_of("x0")
    4
    """
    for error in wrong_rules(min_frequency, n_bins, strategy):
        raise error
    n_bins = by_text(n_bins)
    unknown = [name for name in n_bins if name not in table.names] if isinstance(n_bins, Mapping) else []
    if unknown:
        raise InputError(
            Parameter("n_bins"), f" names columns that the table does not have: {', '.join(map(repr, unknown))}."
        )
    return LevelRules(min_frequency, n_bins, strategy)


def wrong_rules(min_frequency: Any, n_bins: Any, strategy: Any) -> Iterator[InputError]:
    """An error for each of these parameters that is invalid for any table."""
    if not is_choice(strategy, STRATEGIES):
        yield InputError.given("strategy", strategy, *choices("strategy", STRATEGIES))
    if min_frequency is not None and not _is_frequency(min_frequency):
        yield InputError.given(
            "min_frequency",
            min_frequency,
            "an integer of at least 1 (a number of rows) or a float between 0 and 1 (a fraction of the rows)",
        )
    yield from _wrong_numbers("n_bins", n_bins)


def _wrong_numbers(name: str, given: Any) -> Iterator[InputError]:
    """An error for a number of bins or levels that is not one; of a mapping, with the column it is for."""
    asked = given if isinstance(given, Mapping) else {"": given}
    wrong = next((column for column, number in asked.items() if not _are_bins(number)), None)
    if wrong is not None:
        value = {wrong: given[wrong]} if isinstance(given, Mapping) else given
        yield InputError.given(
            name, value, "an integer of at least 2, ", Value(name, "auto"), " or ", Value(name, None)
        )


def _are_bins(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value == "auto"):
        return True
    return _is_integer(value) and bool(value >= 2)


def _is_frequency(value: Any) -> bool:
    if _is_integer(value):
        return bool(value >= 1)
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
