"""The effects of a population whose intervals are asked for, laid out flat (:mod:`benchmarks.coverage`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.populations import Population
from exanova import FunctionalANOVA
from exanova.typing import FloatArray, IntArray

EXPLAINED = 12
"""Rows of the population whose Shapley values are held against intervals."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truth:
    """The effects of a population, laid out flat: every cell of every effect has a place."""

    population: Population

    @cached_property
    def anova(self) -> FunctionalANOVA:
        """The decomposition of all of it."""
        return self.population.truth()

    @cached_property
    def starts(self) -> dict[tuple[str, ...], int]:
        """Where the cells of each effect begin."""
        sizes = [len(effect.levels) for effect in self.anova.effects_.values()]
        return dict(zip(self.anova.effects_, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def places(self) -> dict[tuple[str, ...], dict[tuple[str, ...], int]]:
        """For each effect, the place of each of its cells."""
        found = self.anova.effects_
        return {
            name: {levels: first + k for k, levels in enumerate(found[name].levels)}
            for name, first in self.starts.items()
        }

    @cached_property
    def values(self) -> FloatArray:
        """(cells,) the effects."""
        return np.concatenate([effect.values[:, 0] for effect in self.anova.effects_.values()])

    @cached_property
    def identified(self) -> Mask:
        """(cells,) whether the population determines the effect."""
        found = self.anova.effects_.values()
        return np.concatenate([np.full(len(effect.levels), effect.identified is not False) for effect in found])

    @cached_property
    def rows(self) -> Any:
        """Rows whose Shapley values are asked for."""
        chosen = self.population.draw(EXPLAINED, np.random.default_rng(99))
        return self.population.X.iloc[chosen].reset_index(drop=True)

    @cached_property
    def cells_of_rows(self) -> IntArray:
        """(n, d, k) for every such row and feature, the cells of the k effects that the feature is part of."""
        features, text = list(self.population.X.columns), self.rows.astype(str)
        out = []
        for row in text.itertuples(index=False):
            levels = dict(zip(features, row, strict=True))
            cells = {name: own[tuple(levels[f] for f in name)] for name, own in self.places.items()}
            out.append([[cells[name] for name in cells if feature in name] or [0] for feature in features])
        width = max(len(own) for own in out[0])
        return np.array([[own + own[:1] * (width - len(own)) for own in row] for row in out])

    @cached_property
    def shapley(self) -> FloatArray:
        """(n, d) Shapley values at these rows."""
        return np.asarray(self.anova.explain(self.rows).values)

    def importances(self, kind: str) -> FloatArray:
        """(S,) of every effect."""
        return self.by_subset(self.anova.importance(kind, by="subset"), "value")

    def by_subset(self, table: Any, column: str) -> FloatArray:
        """(S,) a column of a table of importances, in the order of the population's effects; NaN where it has none."""
        given = dict(zip(table["subset"], table[column], strict=True))
        return np.array([given.get(" x ".join(name), np.nan) for name in self.places])

    def by_feature(self, table: Any, column: str) -> FloatArray:
        """(d,) the same of a table of importances of features."""
        given = dict(zip(table["feature"], table[column], strict=True))
        return np.array([given.get(name, np.nan) for name in self.population.X.columns])

    @cached_property
    def known_features(self) -> Mask:
        """(d,) features all of whose effects the population determines."""
        effects = self.anova.effects_.items()
        lost = {name for names, effect in effects if effect.identified is False for name in names}
        return np.array([name not in lost for name in self.population.X.columns])
