"""Comparison of two decompositions of the same columns: what changed between two models, or two periods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.effects.effect import GAME, Effect, Effects, Schema, frame_with_game
from exanova.errors import InputError
from exanova.explain.common_levels import CommonLevels, cells_in_both, common_levels
from exanova.explain.divided import divided
from exanova.messages import Parameter, count_of
from exanova.printed_numbers import printed
from exanova.typing import FloatArray

LARGEST_CELLS = 5

MOSTLY = 0.995
"""Probability of the common cells below which it is reported."""

DIVIDED = (
    "bins have other edges, or values are joined in other ways; the rows of a level are divided as in the other fit "
    "(an assumption that standard errors do not include)"
)
"""How the rows of a level are divided among the parts that two fits have in common."""

Encodings = tuple[Encoding, Encoding]
LevelsOf = Mapping[str, tuple[FeatureLevels, FeatureLevels]]
"""Both versions of every feature, by its name."""


@dataclass(frozen=True)
class ChangedCell:
    """One cell whose effect changed: its levels, and the values before and after, one per output."""

    features: tuple[str, ...]
    levels: tuple[str, ...]
    before: FloatArray
    after: FloatArray


@dataclass(frozen=True)
class Change:
    """One subset in two decompositions.

    Attributes:
        features: the subset.
        found_in: "both", "first" or "second".
        norm_before, norm_after: (m,) squared norms, each under its own distribution; NaN if it is absent.
        difference: (m,) squared norm of the difference over the cells both have, under the mean of the two
            distributions (an effect that is absent counts as 0); NaN where they have none in common. Bins with other
            edges are compared on their common parts, among which the rows of a bin are divided as in the other fit.
        shared: probability of the cells both have, averaged over the two distributions.
        cells: the cells that changed most.
    """

    features: tuple[str, ...]
    found_in: str
    norm_before: FloatArray
    norm_after: FloatArray
    difference: FloatArray
    shared: float
    cells: tuple[ChangedCell, ...]

    @property
    def comparable(self) -> bool:
        """Whether the two have cells in common."""
        return self.shared > 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """The changes: first those that cannot be compared, then the largest difference.

    Attributes:
        changes: one for each subset of either.
        schema: names of features and outputs.
        divided: features of which a level of one has parts in several levels of the other.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> before = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 2.0]))
    >>> after = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    >>> comparison = before.compare(after)
    >>> comparison.changes[0].features, comparison.changes[0].difference.round(12).tolist()
    ((), [0.25])
    """

    changes: tuple[Change, ...]
    schema: Schema
    game: str = GAME
    divided: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """One line for each subset and output: squared norms before and after, and that of the difference."""
        outputs = self.schema.outputs
        columns: dict[str, Any] = {
            "subset": [" x ".join(c.features) or "(intercept)" for c in self.changes for _ in outputs]
        }
        if not self.schema.single:
            columns["output"] = list(outputs) * len(self.changes)
        columns["found_in"] = [c.found_in for c in self.changes for _ in outputs]
        for name in ("norm_before", "norm_after", "difference"):
            columns[name] = np.concatenate([getattr(c, name) for c in self.changes])
        columns["shared"] = np.repeat([c.shared for c in self.changes], len(outputs))
        return frame_with_game(self.schema.kind, columns)

    def _repr_html_(self) -> str:
        from exanova.report.notebook import comparison_html

        return comparison_html(self)

    def __str__(self) -> str:
        lines = [f"What changed, by squared norm of the difference; {self.game}"]
        for change in self.changes[:10]:
            name = " x ".join(change.features) or "(intercept)"
            where = "" if change.found_in == "both" else f" (only in the {change.found_in})"
            if not change.comparable:
                lines.append(f"  {name}{where}: cannot be compared, because the two have no levels in common")
                continue
            if change.found_in == "both" and change.shared < MOSTLY:
                where = f" (on {change.shared:.0%} of the rows, whose levels both have)"
            before, after, difference = (
                ", ".join("none" if np.isnan(v) else printed(v) for v in amounts[:4])
                for amounts in (change.norm_before, change.norm_after, change.difference)
            )
            lines.append(f"  {name}{where}: {before} -> {after}, difference {difference}")
            lines += [
                f"      {', '.join(cell.levels)}: {printed(cell.before[0])} -> {printed(cell.after[0])}"
                for cell in change.cells[:2]
                if change.features
            ]
        if len(self.changes) > 10:
            lines.append(f"  and {count_of(len(self.changes) - 10, 'more subset')}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was divided, and how, in words."""
        return (f"{', '.join(self.divided)}: {DIVIDED}",) if self.divided else ()

    def __repr__(self) -> str:
        return f"<Comparison of {count_of(len(self.changes), 'subset')}; {self.game}>"


def compare(first: Effects, second: Effects, schema: Schema, other: Schema, encodings: Encodings) -> Comparison:
    """Align two decompositions by names of features, by levels or the parts of bins, and by names of outputs."""
    check_same_columns(schema, other)
    of_second = {feature.name: feature for feature in encodings[1].features}
    levels_of = {feature.name: (feature, of_second[feature.name]) for feature in encodings[0].features}
    keys = list(first) + [key for key in second if key not in first]
    spread = np.maximum(*(_spread(effects, len(schema.outputs)) for effects in (first, second)))
    changes = [_change(key, first, second, levels_of, spread) for key in keys]
    changes.sort(key=lambda change: (change.comparable, -float(np.nan_to_num(change.difference).sum())))
    divided_features = tuple(name for name, pair in levels_of.items() if _is_divided(common_levels(*pair)))
    return Comparison(tuple(changes), schema, divided=divided_features)


def _is_divided(common: CommonLevels) -> bool:
    return bool(((common.shares > 0) & (common.shares < 1)).any())


def check_same_columns(schema: Schema, other: Schema) -> None:
    """Refuse to compare decompositions of different columns or outputs."""
    if set(schema.features) != set(other.features):
        missing = sorted(set(schema.features) ^ set(other.features))
        raise InputError(
            f"the decompositions are of different columns: {', '.join(missing[:8])} are in only one of them; "
            "compare decompositions of the same columns."
        )
    if schema.outputs != other.outputs:
        both = f"{', '.join(schema.outputs)} and {', '.join(other.outputs)}"
        if len(schema.outputs) != len(other.outputs):
            raise InputError(f"the outputs differ: {both}", expected="two fits of the same outputs")
        if set(schema.outputs) == set(other.outputs):
            raise InputError(f"the outputs are in different orders: {both}", remedy="fit with the same order in both")
        raise InputError(
            f"the outputs differ: {both}",
            remedy=["give them the same names with ", Parameter("output_names"), " when fitting"],
        )


def _spread(effects: Effects, outputs: int) -> FloatArray:
    """(m,) root of the summed squared norms of all effects but the intercept."""
    norms = [effect.norm2 for key, effect in effects.items() if key]
    return np.asarray(np.sqrt(np.sum(norms, axis=0))) if norms else np.zeros(outputs)


def _change(key: tuple[str, ...], first: Effects, second: Effects, levels_of: LevelsOf, spread: FloatArray) -> Change:
    """One subset in both; differences that are rounding relative to the (m,) ``spread`` are zero."""
    a = first[key] if key in first else None  # noqa: SIM401 - get() finds zero effects that are not listed
    b = second[key] if key in second else None  # noqa: SIM401
    nothing = np.full(len(spread), np.nan)
    both = _aligned(a, b, levels_of) if a is not None and b is not None else _alone(a or b, a is not None)
    levels, before, after, probability = both
    difference = probability @ (after - before) ** 2 if len(probability) else nothing
    means = np.zeros(len(spread)) if key else np.maximum(np.abs(before[0]), np.abs(after[0]))
    difference = np.where(np.sqrt(difference) <= tolerances.unchanged(spread, means), 0.0, difference)
    largest = np.argsort(-np.abs(after - before).max(axis=1, initial=0.0), kind="stable")[:LARGEST_CELLS]
    return Change(
        features=key,
        found_in="both" if a and b else "first" if a else "second",
        norm_before=nothing if a is None else a.norm2,
        norm_after=nothing if b is None else b.norm2,
        difference=difference,
        shared=float(probability.sum()),
        cells=tuple(ChangedCell(key, levels[k], before[k], after[k]) for k in largest),
    )


def _aligned(
    a: Effect, b: Effect, levels_of: LevelsOf
) -> tuple[list[tuple[str, ...]], FloatArray, FloatArray, FloatArray]:
    """Levels, both values and mean probability of the cells both effects have."""
    order = [b.features.index(name) for name in a.features]
    cells = [tuple(cell[k] for k in order) for cell in b.levels]
    common = cells_in_both(a.levels, cells, [levels_of[name] for name in a.features])
    (i, j), probability = common.place, (a.probability, b.probability)
    share = common.shares * np.stack([own[k] for own, k in zip(probability, common.place, strict=True)])
    if common.is_divided:
        totals = (common.whole[0] * a.probability, common.whole[1] * b.probability)
        share = divided(common.place, common.shares, totals)
    return common.levels, a.values[i], b.values[j], share.mean(axis=0)


def _alone(effect: Effect | None, is_first: bool) -> tuple[list[tuple[str, ...]], FloatArray, FloatArray, FloatArray]:
    assert effect is not None
    zero = np.zeros_like(effect.values)
    before, after = (effect.values, zero) if is_first else (zero, effect.values)
    return list(effect.levels), before, after, effect.probability
