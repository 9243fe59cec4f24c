"""``MeanChange``: why the mean of an output changed between two fits: the mix of the rows, or the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.effects.effect import GAME, Schema, frame_with_game
from exanova.effects.norms import strongest_first
from exanova.messages import count_of
from exanova.printed_numbers import plus_minus, printed, printed_change
from exanova.typing import FloatArray

LISTED = 10
"""Subsets that are printed; the table has all."""

LEVEL = "(level)"
"""The part of the model change that belongs to no feature: its mean on the rows of the first fit."""


@dataclass(frozen=True, eq=False)
class MeanChange:
    """The change of the mean between two fits, split over subsets; arrays have one column per output.

    ``mix`` is the change that other rows make with the effects of the first fit; ``model`` the change that other
    effects make on the rows of the second, with both models centred on the rows of the first. Everything adds up to
    ``total``.

    Attributes:
        subsets: subsets of features by name; the empty one, first, is the level of the model.
        mix, model: (S, m) parts.
        total: (m,) mean of the second fit minus mean of the first.
        means: (2, m) the two means.
        mix_stderr, model_stderr, total_stderr: standard errors of the same shapes; NaN where there are none.
        mix_total_stderr, model_total_stderr: (m,) standard errors of the two sums.
        found_in: for each subset, ``"both"``, ``"first"`` or ``"second"``.
        shared: (S, 2) probability of the cells that both fits have, in the first and in the second.
        included: what the standard errors include, in words.
        notes: what cannot be compared, in words.

    >>> import exanova
    >>> X = np.array([["a"], ["a"], ["b"], ["b"]])
    >>> before = exanova.FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 0.0, 1.0, 1.0]), output_names=["y"])
    >>> after = exanova.FunctionalANOVA(sampled=False).fit(X[1:], np.array([0.0, 2.0, 2.0]), output_names=["y"])
    >>> print(before.change(after))
    mean of y: 0.5 -> 1.333, change +0.8333
      the mix changed    +0.1667
      the model changed  +0.6667
      part         mix    model
      (level)       +0     +0.5
      x0       +0.1667  +0.1667
    standard errors: none: the rows were declared complete, so that the rows of the fit are the whole population
    """

    subsets: tuple[tuple[str, ...], ...]
    mix: FloatArray
    model: FloatArray
    total: FloatArray
    means: FloatArray
    mix_stderr: FloatArray
    model_stderr: FloatArray
    total_stderr: FloatArray
    mix_total_stderr: FloatArray
    model_total_stderr: FloatArray
    found_in: tuple[str, ...]
    shared: FloatArray
    schema: Schema
    included: str = ""
    notes: tuple[str, ...] = ()
    game: str = GAME

    @property
    def mix_total(self) -> FloatArray:
        """(m,) change due to the mix."""
        return _sum_of(self.mix)

    @property
    def model_total(self) -> FloatArray:
        """(m,) change due to the model."""
        return _sum_of(self.model)

    @property
    def names(self) -> list[str]:
        """Names of the subsets."""
        return [" x ".join(subset) or LEVEL for subset in self.subsets]

    def to_frame(self) -> Any:
        """One line per subset and output, the largest parts first."""
        order, outputs = self._order(), self.schema.outputs
        columns: dict[str, Any] = {"subset": [self.names[k] for k in order for _ in outputs]}
        if not self.schema.single:
            columns["output"] = list(outputs) * len(order)
        for name in ("mix", "mix_stderr", "model", "model_stderr"):
            columns[name] = getattr(self, name)[order].ravel()
        columns["found_in"] = [self.found_in[k] for k in order for _ in outputs]
        columns["shared"] = np.repeat(self.shared[order].mean(axis=1), len(outputs))
        return frame_with_game(self.schema.kind, columns)

    def _order(self) -> list[int]:
        size = (np.abs(self.mix) + np.abs(self.model)).sum(axis=1)
        return [int(k) for k in strongest_first(size)]

    def __str__(self) -> str:
        lines = [line for o in range(len(self.schema.outputs)) for line in self._lines_of(o)]
        lines.append(f"standard errors: {self.included}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _lines_of(self, o: int) -> list[str]:
        first, second = self.means[:, o]
        output = self.schema.output_words[o]
        change = _number(self.total[o], self.total_stderr[o])
        lines = [
            f"mean of {output}: {printed(first)} -> {printed(second)}, change {change}",
            f"  the mix changed    {_number(self.mix_total[o], self.mix_total_stderr[o])}",
            f"  the model changed  {_number(self.model_total[o], self.model_total_stderr[o])}",
        ]
        shown = self._order()[:LISTED]
        rows = [["part", "mix", "model"]]
        for k in shown:
            where = "" if self.found_in[k] == "both" else f" (only in the {self.found_in[k]})"
            parts = [(self.mix[k, o], self.mix_stderr[k, o]), (self.model[k, o], self.model_stderr[k, o])]
            rows.append([self.names[k] + where, *(_number(*part) for part in parts)])
        widths = [max(len(row[j]) for row in rows) for j in range(3)]
        lines += [f"  {a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        if len(self.subsets) > LISTED:
            lines.append(f"  and {count_of(len(self.subsets) - LISTED, 'more subset')}")
        return lines

    def _repr_html_(self) -> str:
        from exanova.report.notebook import answer_html

        tables = []
        for o, output in enumerate(self.schema.output_words):
            lines = [
                [
                    self.names[k],
                    _number(self.mix[k, o], self.mix_stderr[k, o]),
                    _number(self.model[k, o], self.model_stderr[k, o]),
                ]
                for k in self._order()[:LISTED]
            ]
            first, second = self.means[:, o]
            tables.append((f"mean of {output}: {printed(first)} -> {printed(second)}", ["part", "mix", "model"], lines))
        return answer_html("Change of the mean", tables, ". ".join([self.included, *self.notes]))

    def __repr__(self) -> str:
        return f"<MeanChange over {count_of(len(self.subsets) - 1, 'subset')}; {self.game}>"


def _sum_of(parts: FloatArray) -> FloatArray:
    """(m,) sums of (S, m) parts; zero where these cancel but for rounding."""
    total = parts.sum(axis=0)
    return np.where(np.abs(total) <= tolerances.CANCELLED * np.abs(parts).sum(axis=0), 0.0, total)


def _number(value: float, error: float) -> str:
    return f"{printed_change(value)}{plus_minus(error)}"
