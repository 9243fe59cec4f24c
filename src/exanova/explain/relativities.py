"""``Relativities``: a tariff of main effects and pairs, as factors relative to a base level, and its loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.effects.effect import GAME, Schema, frame_with_game
from exanova.messages import count_of
from exanova.printed_numbers import printed
from exanova.typing import FloatArray

LISTED = 12
"""Cells of a factor that are printed; the table has all."""


@dataclass(frozen=True, eq=False)
class TariffFactor:
    """The relativities of one feature or pair; arrays have one column per output.

    Attributes:
        features: names of its features.
        levels: for each cell, the levels of the features.
        exposure: (c,) total weight of the rows in each cell.
        relativity: (c, m) exp of the effect minus the effect in the base cell: 1 there.
        low, high: (c, m) ends of 95 % intervals; NaN where there are none.
        anchored: whether the combination of base levels was observed. If not, relativities are against the mean of the
            effect instead.
    """

    features: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    exposure: FloatArray
    relativity: FloatArray
    low: FloatArray
    high: FloatArray
    anchored: bool

    @property
    def name(self) -> str:
        """The features."""
        return " x ".join(self.features)


@dataclass(frozen=True)
class TariffLoss:
    """The loss of a tariff of effects up to an order, on the rows of the fit, for one output.

    Rows of equal levels count as one, with the mean of their outputs (on the scale of the link): what bins and merged
    levels hide is no part of the loss.

    Attributes:
        order: largest number of features in its factors; 0 for one price for all.
        deviance: mean deviance of the outputs from the tariff, by weight (Poisson for the log, binomial for the logit).
        explained: share of the deviance of one price for all that it explains.
        gini: Gini index of the outputs ordered by the tariff.
        gini_share: the same over the Gini index of the outputs ordered by themselves, the largest there is.
        balance: factor by which the tariff was multiplied to have the total of the outputs (1 for the logit).
    """

    order: int
    deviance: float
    explained: float
    gini: float
    gini_share: float
    balance: float


BETWEEN_LEVELS = "differences between rows of equal levels are not counted"
"""What deviance and Gini index leave out where rows of equal levels have different outputs."""


def losses_in_words(losses: tuple[tuple[TariffLoss, ...], ...], differ: bool = False) -> str:
    """What is explained of the output itself, as the end of a sentence: of the output of which the least is.

    ``differ`` says whether rows of equal levels have different outputs.

    >>> losses_in_words(((TariffLoss(0, 2.0, 0.0, 0.0, 0.0, 1.0), TariffLoss(1, 0.2, 0.9, 0.3, 0.95, 1.0)),))
    ', and explain 90.0 % of its deviance and 95.0 % of its Gini index'
    """
    if not losses:
        return ""
    loss = min((of_output[-1] for of_output in losses), key=lambda last: last.explained)
    least = "at least " if len(losses) > 1 else ""
    explained, ordered = f"{100 * loss.explained:.1f} % of its deviance", f"{100 * loss.gini_share:.1f} %"
    without = f" ({BETWEEN_LEVELS})" if differ else ""
    return f", and explain {least}{explained} and {ordered} of its Gini index{without}"


@dataclass(frozen=True, eq=False)
class Relativities:
    """Factors against base levels: the base value times the relativities of a row is its fitted value.

    Attributes:
        base: base level of every feature.
        base_value: (m,) fitted value at the base levels (without pairs whose base cell was never observed).
        factors: main effects and pairs.
        losses: for each output, the losses of tariffs up to each order.
        link: ``"log"`` (relativities of the output) or ``"logit"`` (of its odds).
        names: names of the outputs as they were given.
        schema: names of features, and the library of tables.
        notes: remarks needed to read them, in words.

    >>> import exanova
    >>> X = np.array([["a"], ["a"], ["b"]])
    >>> rate = np.array([0.1, 0.1, 0.3])
    >>> anova = exanova.FunctionalANOVA(link="log", sampled=False).fit(X, rate, output_names=["rate"])
    >>> tariff = anova.relativities()
    >>> tariff.base, tariff.base_value.round(6).tolist(), tariff.factors[0].relativity[:, 0].round(6).tolist()
    ({'x0': 'a'}, [0.1], [1.0, 3.0])
    """

    base: Mapping[str, str]
    base_value: FloatArray
    factors: tuple[TariffFactor, ...]
    losses: tuple[tuple[TariffLoss, ...], ...]
    link: str
    names: tuple[str, ...]
    schema: Schema
    notes: tuple[str, ...] = ()
    game: str = GAME

    def to_frame(self) -> Any:
        """One line per factor, cell and output: levels, exposure, relativity and interval."""
        lines = [(f, c, o) for f in self.factors for c in range(len(f.levels)) for o in range(len(self.names))]
        columns: dict[str, Any] = {"factor": [f.name for f, *_ in lines]}
        columns["level"] = [" x ".join(f.levels[c]) for f, c, _ in lines]
        if len(self.names) > 1:
            columns["output"] = [self.names[o] for *_, o in lines]
        columns["exposure"] = [float(f.exposure[c]) for f, c, _ in lines]
        for name in ("relativity", "low", "high"):
            columns[name] = [float(getattr(f, name)[c, o]) for f, c, o in lines]
        columns["base"] = [self.is_base(f, c) for f, c, _ in lines]
        return frame_with_game(self.schema.kind, columns)

    def loss_frame(self) -> Any:
        """One line per output and order: deviance, Gini index and what is explained of each."""
        lines = [(o, loss) for o, losses in enumerate(self.losses) for loss in losses]
        columns: dict[str, Any] = {} if len(self.names) == 1 else {"output": [self.names[o] for o, _ in lines]}
        for name in ("order", "deviance", "explained", "gini", "gini_share", "balance"):
            columns[name] = [getattr(loss, name) for _, loss in lines]
        return frame_with_game(self.schema.kind, columns)

    def is_base(self, factor: TariffFactor, cell: int) -> bool:
        """Whether a cell of a factor is the one that its relativities are against."""
        return factor.anchored and factor.levels[cell] == tuple(self.base[name] for name in factor.features)

    def __str__(self) -> str:
        what = "odds of " if self.link == "logit" else ""
        lines = []
        for o, name in enumerate(self.names):
            lines.append(f"{what}{name} at the base: {printed(self.base_value[o])}")
            for factor in self.factors:
                lines += self._lines_of(factor, o)
            for loss in self.losses[o] if self.losses else ():
                lines.append(
                    f"up to order {loss.order}: {100 * loss.explained:.1f} % of the deviance explained, "
                    f"Gini {loss.gini:.4f} ({100 * loss.gini_share:.1f} % of the largest)"
                )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _lines_of(self, factor: TariffFactor, o: int) -> list[str]:
        lines = [factor.name]
        for c, levels in enumerate(factor.levels[:LISTED]):
            ends = factor.low[c, o], factor.high[c, o]
            interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if np.isfinite(ends).all() else ""
            mark = ", base" if self.is_base(factor, c) else ""
            text = f"  {', '.join(levels)}: {factor.relativity[c, o]:.3f}{'' if mark else interval}"
            lines.append(f"{text}, exposure {printed(factor.exposure[c], 6)}{mark}")
        if len(factor.levels) > LISTED:
            lines.append(f"  and {count_of(len(factor.levels) - LISTED, 'more cell')}")
        return lines

    def _repr_html_(self) -> str:
        from exanova.report.notebook import answer_html

        tables = []
        for o, name in enumerate(self.names):
            for factor in self.factors:
                lines = self._lines_of(factor, o)
                tables.append((f"{name}: {lines[0]}", [""], [[line.strip()] for line in lines[1:]]))
        return answer_html("Relativities", tables, ". ".join(self.notes))

    def __repr__(self) -> str:
        return f"<Relativities of {count_of(len(self.factors), 'factor')}; {self.game}>"
