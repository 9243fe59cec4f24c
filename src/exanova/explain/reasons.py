"""``Reasons``: the features that lower or raise the output of a row most, as ranked sentences with their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.design.continuation import NOTHING
from exanova.effects.effect import GAME, UNNAMED_IN_WORDS, Schema, frame_with_game
from exanova.explain.cells import within
from exanova.messages import count_of
from exanova.printed_numbers import plus_minus, printed, printed_change

LISTED = 5
"""Rows that are printed; the table has all."""


@dataclass(frozen=True)
class Reason:
    """One feature (or group) of a row and what it contributes.

    Attributes:
        feature: its name.
        value: its value in the row, as text.
        level: the level or interval that value belongs to.
        contribution: what it adds to the output, against what the row is compared with.
        stderr: standard error of the contribution; NaN where there is none.
        unique: whether the rows of the fit determine the contribution; if not, it is a convention.
        distinguishable: whether it differs from the next reason by more than 1.96 standard errors of the difference;
            ``None`` where that is not known.
        grouped: whether it is a group of several features, whose levels are named with them.
    """

    feature: str
    value: str
    level: str
    contribution: float
    stderr: float
    unique: bool
    distinguishable: bool | None
    grouped: bool = False

    def sentence(self, output: str, link: str = "identity") -> str:
        """The reason in words, with the factor that a contribution to a log or a logit is.

        >>> reason = Reason("income", "23.5", "[20, 30)", -0.125, 0.02, True, False)
        >>> reason.sentence("P(good)")
        'income = 23.5 (in [20, 30)) lowers P(good) by 0.125 ± 0.02; not distinguishable from the next'
        >>> Reason("job", "guard", "guard", 0.5, 0.1, True, None).sentence("log(rate)", "log")
        'job = guard raises log(rate) by 0.5 ± 0.1 (a factor of 1.65)'
        """
        inside = "" if self.level == self.value else f" ({self.level if self.grouped else within(self.level)})"
        value = f" = {self.value}" if self.value else ""
        verb = "lowers" if self.contribution < 0 else "raises"
        size = f"{printed(abs(self.contribution), 3)}{plus_minus(self.stderr)}{_as_factor(self.contribution, link)}"
        sentence = f"{self.feature}{value}{inside} {verb} {output} by {size}"
        if not self.unique:
            return f"{sentence}; not unique, because other features carry the same information"
        return f"{sentence}; not distinguishable from the next" if self.distinguishable is False else sentence


@dataclass(frozen=True)
class RowReasons:
    """The reasons for one row, the strongest first.

    Attributes:
        row: its number.
        id: its identifier, if one was given.
        fitted: its fitted value.
        compared: the value it is compared with.
        residual: output of the model minus fitted value, or ``None`` without the model.
        outside: whether it has a combination of levels that never occurred.
        reasons: the largest contributions in the requested direction.
    """

    row: int
    id: str | None
    fitted: float
    compared: float
    residual: float | None
    outside: bool
    reasons: tuple[Reason, ...]

    def words(self, output: str, against: str) -> str:
        """The output at the row, and what it is compared with; without the model, only the fitted part is known.

        >>> RowReasons(0, None, 0.5, 0.3, None, False, ()).words("P(yes)", "the mean")
        'fitted P(yes) 0.5, the mean is 0.3'
        >>> RowReasons(0, None, 0.5, 0.3, -0.1, False, ()).words("P(yes)", "the mean")
        'P(yes) 0.4 (fitted 0.5, residual -0.1), the mean is 0.3'
        """
        fitted, compared = printed(self.fitted), f"{against} is {printed(self.compared)}"
        if self.residual is None:
            return f"fitted {output} {fitted}, {compared}"
        if self.residual == 0:
            return f"{output} {fitted}, {compared}"
        value = printed(self.fitted + self.residual)
        return f"{output} {value} (fitted {fitted}, residual {printed_change(self.residual)}), {compared}"

    @property
    def name(self) -> str:
        """The identifier, or else the number of the row."""
        return f"row {self.row}" if self.id is None else self.id

    @property
    def unique(self) -> bool:
        """Whether all contributions are determined by the rows of the fit."""
        return all(reason.unique for reason in self.reasons)

    @property
    def distinguishable(self) -> bool | None:
        """Whether every reason is distinguishable from the next; ``None`` where that is unknown."""
        known = [reason.distinguishable for reason in self.reasons]
        return None if None in known else all(known)


@dataclass(frozen=True, eq=False)
class Reasons(Sequence[RowReasons]):
    """Reasons for rows: evidence about a model, not a statement that any rule is complied with.

    Attributes:
        rows: one record per row.
        output: name of the output.
        direction: ``"lower"``, ``"higher"`` or ``"both"``.
        against: what rows are compared with, in words.
        notes: remarks needed to read them, in words.
        schema: names, and the library of tables.
        unseen: how the effect of a combination of levels that was never observed is treated, in words.
        link: the function of the output that was decomposed.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> anova = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]), output_names=["score"])
    >>> print(anova.reasons(X[:1], n=1))
    row 0: fitted score 0, the mean is 1.5
      1. x0 = a lowers score by 0.75
    note: no standard errors: every combination of levels occurs, each equally often, so that the rows of the fit are \
the whole population
    """

    rows: tuple[RowReasons, ...]
    output: str
    direction: str
    against: str
    notes: tuple[str, ...]
    schema: Schema
    game: str = GAME
    unseen: str = NOTHING
    link: str = "identity"

    def __getitem__(self, k: Any) -> Any:
        return self.rows[k]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RowReasons]:
        return iter(self.rows)

    @property
    def output_words(self) -> str:
        """The output in sentences: its name, or "the output" of a model that names none."""
        return self._called("the output")

    @property
    def value_words(self) -> str:
        """What a value of the output is called: its name, or "value" of a model that names none."""
        return self._called("value")

    def _called(self, unnamed: str) -> str:
        return self.schema.output_words[0].replace(UNNAMED_IN_WORDS, unnamed) if self.schema.single else self.output

    def to_frame(self) -> Any:
        """One line per row and reason, with the sentence."""
        lines = [(row, rank, reason) for row in self.rows for rank, reason in enumerate(row.reasons, start=1)]
        columns: dict[str, Any] = {"row": [row.row for row, *_ in lines]}
        if any(row.id is not None for row in self.rows):
            columns["id"] = [row.id for row, *_ in lines]
        columns["rank"] = [rank for _, rank, _ in lines]
        for name in ("feature", "value", "level", "contribution", "stderr", "unique"):
            columns[name] = [getattr(reason, name) for *_, reason in lines]
        columns["distinguishable"] = [_yes_or_no(reason.distinguishable) for *_, reason in lines]
        columns["fitted"] = [row.fitted for row, *_ in lines]
        columns["residual"] = [np.nan if row.residual is None else row.residual for row, *_ in lines]
        columns["outside_support"] = [row.outside for row, *_ in lines]
        columns["sentence"] = [reason.sentence(self.output_words, self.link) for *_, reason in lines]
        return frame_with_game(self.schema.kind, columns)

    def lines_of(self, row: RowReasons) -> list[str]:
        """The reasons for one row, line by line."""
        head = f"{row.name}: {row.words(self.value_words, self.against)}"
        sentences = (reason.sentence(self.output_words, self.link) for reason in row.reasons)
        lines = [head, *(f"  {k}. {sentence}" for k, sentence in enumerate(sentences, start=1))]
        if not row.reasons:
            lines.append(f"  nothing makes it {'different' if self.direction == 'both' else self.direction}")
        if row.outside:
            lines.append(f"  this combination of levels was never observed; its effect {self.unseen}")
        return lines

    def __str__(self) -> str:
        lines = [line for row in self.rows[:LISTED] for line in self.lines_of(row)]
        if len(self) > LISTED:
            lines.append(f"and {count_of(len(self) - LISTED, 'more row')}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        from exanova.report.notebook import answer_html

        tables = [
            (lines[0], [""], [[line.strip()] for line in lines[1:]]) for lines in map(self.lines_of, self.rows[:LISTED])
        ]
        return answer_html("Reasons", tables, ". ".join(self.notes))

    def __repr__(self) -> str:
        return f"<Reasons for {count_of(len(self), 'row')}, {self.direction} {self.output_words}; {self.game}>"


def _as_factor(contribution: float, link: str) -> str:
    """A contribution on the scale of a link, as the factor it is."""
    if link == "identity":
        return ""
    of = " of the odds" if link == "logit" else ""
    return f" (a factor of {printed(float(np.exp(contribution)), 3)}{of})"


def _yes_or_no(known: bool | None) -> str:
    return "not known" if known is None else "yes" if known else "no"
