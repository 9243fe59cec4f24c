"""``Difference``: why one set of rows scores higher than another, split exactly over subsets of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from exanova.argument_checks import check_choice
from exanova.effects.effect import GAME, Schema, frame_with_game
from exanova.effects.norms import strongest_first
from exanova.messages import count_of
from exanova.printed_numbers import plus_minus, printed, printed_change
from exanova.typing import FloatArray

LISTED = 12
"""Parts of a difference that are printed; its table has all."""

RESIDUAL, TOTAL = "(residual)", "(total)"


@dataclass(frozen=True, eq=False)
class Contrast:
    """The difference between two sets of rows. Means and parts have one entry per output.

    Attributes:
        group, against: names of the two sets.
        stratum: the stratum both are in, or ``None``.
        rows: number of rows in each.
        outside: rows of each with a combination of levels that never occurred in the fit.
        means: (2, m) means over the two sets: of the model where it was given, else of the fitted part.
        by_subset: (S, m) parts of the subsets, in the order of ``Difference.subsets``.
        by_feature: (G, m) the same divided equally among the features (or groups) of each subset.
        residual: (m,) the part that the effects do not explain; ``None`` without the model.
        total: (m,) the difference: the sum of the parts of all subsets and the residual.
        by_subset_stderr, by_feature_stderr, residual_stderr, total_stderr: standard errors of the same shapes; NaN
            where there are none, as for a part that is not identified.
        identified: (S,) whether the rows of the fit determine the part of each subset.
    """

    group: str
    against: str
    stratum: str | None
    rows: tuple[int, int]
    outside: tuple[int, int]
    means: FloatArray
    by_subset: FloatArray
    by_feature: FloatArray
    residual: FloatArray | None
    total: FloatArray
    by_subset_stderr: FloatArray
    by_feature_stderr: FloatArray
    residual_stderr: FloatArray
    total_stderr: FloatArray
    identified: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def name(self) -> str:
        """The two sets, and the stratum they are in."""
        within = "" if self.stratum is None else f", within {self.stratum}"
        return f"{self.group} against {self.against}{within}"


@dataclass(frozen=True, eq=False)
class Difference(Sequence[Contrast]):
    """Differences between the means over sets of rows, split over features and interactions; a sequence of contrasts.

    Attributes:
        contrasts: one per pair of sets.
        subsets: the S subsets of features, by name.
        features: names of the features, or of the groups.
        schema: names of outputs.
        grouped: whether ``features`` are groups.
        included: what the standard errors include, in words.
        notes: remarks needed to read the parts, in words.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> y = np.array([0.0, 1.0, 1.0, 4.0])
    >>> gap = exanova.FunctionalANOVA().fit(X, y).difference(X[2:], X[:2], (y[2:], y[:2]))
    >>> gap[0].total.round(12).tolist(), gap[0].by_subset[:, 0].round(12).tolist()
    ([2.0], [0.0, 2.0, 0.0, 0.0])
    """

    contrasts: tuple[Contrast, ...]
    subsets: tuple[tuple[str, ...], ...]
    features: tuple[str, ...]
    schema: Schema
    grouped: bool = False
    included: str = ""
    notes: tuple[str, ...] = ()
    game: str = GAME

    def __getitem__(self, k: Any) -> Any:
        return self.contrasts[k]

    def __len__(self) -> int:
        return len(self.contrasts)

    def __iter__(self) -> Iterator[Contrast]:
        return iter(self.contrasts)

    def to_frame(self, by: Literal["feature", "subset"] = "feature") -> Any:
        """One line per contrast, feature (or subset) and output, the largest part first; then residual and total."""
        check_choice("by", by, ("feature", "subset"))
        column = "subset" if by == "subset" else "group" if self.grouped else "feature"
        lines = [line for contrast in self.contrasts for line in self._lines(contrast, by)]
        out: dict[str, list[Any]] = {}
        if any(c.stratum is not None for c in self.contrasts):
            out["stratum"] = [c.stratum for c, *_ in lines]
        out |= {"set": [c.group for c, *_ in lines], "against": [c.against for c, *_ in lines]}
        out[column] = [name for _, name, *_ in lines]
        if not self.schema.single:
            out["output"] = [self.schema.outputs[o] for _, _, o, *_ in lines]
        out["value"] = [value for *_, value, _ in lines]
        out["stderr"] = [error for *_, error in lines]
        return frame_with_game(self.schema.kind, out)

    def parts(self, contrast: Contrast, by: str = "feature", output: int = 0) -> list[tuple[str, float, float]]:
        """Name, value and standard error of every part for one output, the largest first; then residual and total."""
        return [(name, value, e) for _, name, o, value, e in self._lines(contrast, by) if o == output]

    def _lines(self, contrast: Contrast, by: str) -> list[tuple[Contrast, str, int, float, float]]:
        if by == "feature":
            names, values, errors = list(self.features), contrast.by_feature, contrast.by_feature_stderr
        else:
            names = [" x ".join(s) for s in self.subsets[1:]]
            values, errors = contrast.by_subset[1:], contrast.by_subset_stderr[1:]
        order = strongest_first(np.abs(values).sum(axis=1))
        rows = [(names[k], values[k], errors[k]) for k in order.tolist()]
        if contrast.residual is not None:
            rows.append((RESIDUAL, contrast.residual, contrast.residual_stderr))
        rows.append((TOTAL, contrast.total, contrast.total_stderr))
        outputs = range(len(self.schema.outputs))
        return [(contrast, name, o, float(v[o]), float(e[o])) for name, v, e in rows for o in outputs]

    def __str__(self) -> str:
        lines: list[str] = []
        for contrast in self.contrasts:
            for o, output in enumerate(self.schema.output_words):
                lines += self._lines_of(contrast, o, output)
        if self.included:
            lines.append(f"standard errors: {self.included}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _lines_of(self, contrast: Contrast, o: int, output: str) -> list[str]:
        first, second = contrast.means[:, o]
        lines = [f"{contrast.name}: mean of {output} {printed(first)} and {printed(second)}"]
        parts = self.parts(contrast, "subset", o)
        ends = [part for part in parts if part[0] in (RESIDUAL, TOTAL)]
        inner = parts[: len(parts) - len(ends)]
        shown = [*inner[:LISTED], *ends]
        width = max(len(name) for name, *_ in shown)
        listed = [f"  {name:{width}}  {printed_change(value)}{plus_minus(error)}" for name, value, error in shown]
        if len(inner) > LISTED:
            rest = sum(value for _, value, _ in inner[LISTED:])
            listed.insert(LISTED, f"  {count_of(len(inner) - LISTED, 'more part')}, together {printed_change(rest)}")
        outside = sum(contrast.outside)
        if outside:
            listed.append(f"  {count_of(outside, 'row')} of {sum(contrast.rows):,} with a combination never observed")
        return lines + listed

    def _repr_html_(self) -> str:
        from exanova.report.notebook import answer_html

        tables = []
        for contrast in self.contrasts:
            for o, output in enumerate(self.schema.output_words):
                lines = [
                    [name, f"{printed_change(v)}{plus_minus(e)}"] for name, v, e in self.parts(contrast, "subset", o)
                ]
                first, second = contrast.means[:, o]
                caption = f"{contrast.name}: mean of {output} {printed(first)} and {printed(second)}"
                tables.append((caption, ["part", "difference"], _shortened(lines)))
        return answer_html("Difference", tables, ". ".join(["standard errors: " + self.included, *self.notes]))

    def __repr__(self) -> str:
        contrasts, subsets = count_of(len(self), "contrast"), count_of(len(self.subsets) - 1, "subset")
        return f"<Difference: {contrasts}, {subsets}; {self.game}>"


def _shortened(lines: list[list[str]]) -> list[list[str]]:
    """The largest parts, how many are not listed, then the residual, if there is one, and the total."""
    ends = sum(line[0] in (RESIDUAL, TOTAL) for line in lines)
    inner = lines[: len(lines) - ends]
    more = [[f"and {count_of(len(inner) - LISTED, 'more part')}", ""]] if len(inner) > LISTED else []
    return [*inner[:LISTED], *more, *lines[len(inner) :]]
