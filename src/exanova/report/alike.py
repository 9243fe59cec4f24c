"""Levels that are read as one: neighbours that do not differ beyond their error, and names that were joined."""

from __future__ import annotations

from collections.abc import Iterator

from exanova.decomposition import Decomposition
from exanova.effects.effect import Effect
from exanova.printed_numbers import printed
from exanova.show.records import legible

MEMBERS = 30
"""Names that are listed of a joined level; the JSON of a report has all of them."""

FEW_GROUPS = 12
"""Groups of neighbours whose values are listed."""


def notes_on_levels(decomposition: Decomposition, effect: Effect) -> list[str]:
    """Sentences under the picture of a main effect."""
    return [*_neighbours(effect), *_members(decomposition, effect.features[0])]


def members_of_levels(decomposition: Decomposition, feature: str) -> dict[str, list[str]]:
    """All values of every joined level of a feature, as text, by its label."""
    return {label: list(map(str, values)) for label, values in decomposition.joined_levels.get(feature, {}).items()}


def _neighbours(effect: Effect) -> Iterator[str]:
    """Neighbouring levels with similar effects joined, where that is cheap and reduces their number."""
    if effect.knowledge is None or not effect.knowledge.cheap or effect.identified is False:
        return
    joined = effect.joined()
    if joined is effect or len(joined.levels) == len(effect.levels):
        return
    if len(joined.levels) == 1:
        yield "No level differs from the others beyond its error."
    elif len(joined.levels) <= FEW_GROUPS:
        names = (legible(name) for (name,) in joined.levels)
        single = effect.values.shape[1] == 1
        texts = (f"{name}: {printed(value, 3)}" for name, value in zip(names, joined.values[:, 0], strict=True))
        parts = texts if single else (legible(name) for (name,) in joined.levels)
        yield f"Neighbours that do not differ beyond their error, as one: {'; '.join(parts)}."


def _members(decomposition: Decomposition, feature: str) -> Iterator[str]:
    """Which values each joined level holds."""
    for label, values in members_of_levels(decomposition, feature).items():
        shown = ", ".join(map(legible, values[:MEMBERS]))
        more = f" and {len(values) - MEMBERS:,} more" if len(values) > MEMBERS else ""
        yield f"{legible(label.partition(':')[0])}: {shown}{more}."
