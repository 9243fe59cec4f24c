"""Plain records of a decomposition: lists of dictionaries with fixed field names, for charts, tables and files.

Names of features, levels and outputs are only ever values of a field, whatever characters they hold; ``legible`` makes
text of them that a chart can show. Numbers are Python floats, so that every record can be written as JSON.
"""

from __future__ import annotations

import datetime
import decimal
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import narwhals as nw
import numpy as np

from exanova.data.feature import FeatureLevels
from exanova.data.levels import label_levels, sort_levels
from exanova.decomposition import Decomposition
from exanova.effects.certificate import Certificate
from exanova.effects.effect import Effect
from exanova.effects.joined import OfGroups
from exanova.effects.norms import absolute_norms, rolled_up, strongest_first
from exanova.show.error_bars import NO_CELL, CellErrors, can_compute_importance, cell_errors, known, main_means
from exanova.typing import FloatArray, Level

Record = dict[str, Any]

MEASURES = (int, float, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta)
"""Kinds of levels that have a natural order."""

ORDERED_FROM = 3
"""Number of levels from which a line is drawn instead of bars."""

ORDER_DECLARED = ("pandas", "polars", "modin", "cudf")
"""Libraries in which levels out of their natural order come from a categorical type, whose order somebody chose."""

NODES, EDGES = 24, 12
"""Features and pairs that a network shows legibly: more lines than a dozen cannot be followed from end to end."""

WEAK = 0.05
"""Pairs below this share of the strongest are left out of a network."""


EMPTY = "(empty)"

TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text after them; letters of right-to-left scripts need none of them."""

TITLE_LENGTH = 60
"""Characters of one name in a title; axes cut names by their width instead."""


def importance_records(decomposition: Decomposition, kind: str = "l1") -> list[Record]:
    """``feature``, ``output``, ``value``, ``stderr``: the table of ``importance``, the largest first.

    Constant features count as 0; ``stderr`` is ``None`` where it is not known and not cheap to compute.
    """
    with_errors = can_compute_importance(decomposition)
    columns = columns_of(decomposition.importance(kind, stderr=with_errors))
    count = len(columns["feature"])
    outputs = columns.get("output", decomposition.schema.outputs * count)
    errors = columns["stderr"] if with_errors else [float("nan")] * count
    lines = zip(columns["feature"], outputs, columns["value"], errors, strict=True)
    return [{"feature": str(f), "output": str(o), "value": float(v), "stderr": known(e)} for f, o, v, e in lines]


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """The columns of a table of any library, as lists."""
    return frame if isinstance(frame, dict) else nw.from_native(frame, eager_only=True).to_dict(as_series=False)


def effect_records(
    decomposition: Decomposition,
    name: str,
    ordered: bool | None = None,
    means: FloatArray | None = None,
    joined: bool = False,
) -> list[Record]:
    """One main effect: a record for each level and output.

    Fields: ``level``, ``position``, ``probability``, ``rows``, ``few`` (rows), ``output``, ``value``, ``stderr``,
    ``mean`` (of the model at the level, less its overall mean), ``ordered``; ``None`` where something is not known.

    Args:
        decomposition: the decomposition.
        name: the feature.
        ordered: whether its levels have an order; by default numbers, dates, bins and declared orders do.
        means: the result of ``main_means``, if it is available.
        joined: whether neighbours that do not differ beyond their error are one level.

    The field ``ordered`` says whether a level has a place in that order: missing and merged levels have none.
    """
    effect = decomposition.effects[(name,)]
    schema = decomposition.schema
    places = ordered_places(decomposition, schema.features.index(name), ordered)
    means = main_means(decomposition) if means is None else means
    first = int(decomposition.family.cell_start[effect.number])
    own = None if means is None else means[first : first + len(effect.levels)]
    if joined:
        effect, own, places = _with_neighbours_joined(effect, own, places)
    errors = cell_errors(decomposition, effect)
    return [
        {
            "level": level,
            "position": position,
            "probability": float(effect.probability[position]),
            "output": output,
            "value": float(effect.values[position, k]),
            **errors.fields(position, k),
            "mean": None if own is None else known(own[position, k]),
            "ordered": places[position],
        }
        for k, output in enumerate(schema.outputs)
        for position, (level,) in enumerate(effect.levels)
    ]


def _with_neighbours_joined(
    effect: Effect, means: FloatArray | None, places: list[bool]
) -> tuple[Effect, FloatArray | None, list[bool]]:
    """The effect, means of the model and places in the order, of levels of which like neighbours are one."""
    joined = effect.joined()
    if not isinstance(joined.knowledge, OfGroups):
        return effect, means, places
    average = joined.knowledge.means
    first = [int(row.argmax()) for row in average > 0]
    return joined, None if means is None else average @ means, [places[k] for k in first]


def pair_records(decomposition: Decomposition, first: str, second: str, top: int | None = None) -> list[Record]:
    """Every cell of the grid of two features, with ``observed`` and, where it is false, no ``value``.

    Fields: ``first``, ``second`` (levels), ``first_position``, ``second_position``, ``probability``, ``output``,
    ``value``, ``rows``, ``few``, ``stderr``, ``observed``. ``top`` keeps the levels of each feature that carry
    most of E|f|.
    """
    schema = decomposition.schema
    effect = decomposition.effects[(first, second)]
    labels = [schema.labels[schema.features.index(name)] for name in (first, second)]
    cells = _cells_by_position(effect, (first, second), labels)
    rows, columns = _strongest_levels(effect, cells, [len(names) for names in labels], top)
    errors = cell_errors(decomposition, effect)
    return [
        _cell_record(effect, errors, cells.get((i, j)), (labels[0][i], labels[1][j]), (i, j), k, output)
        for k, output in enumerate(schema.outputs)
        for i in rows
        for j in columns
    ]


def network_records(
    decomposition: Decomposition, output: str | None = None, nodes: int = NODES, edges: int = EDGES
) -> tuple[list[Record], list[Record]]:
    """The most important features on a circle and the strongest pairs among them, by E|f|.

    Pairs of less than a twentieth of the strongest are left out.

    Args:
        decomposition: the decomposition.
        output: one output by name; ``None`` adds all of them up.
        nodes: most features.
        edges: most pairs.

    Returns:
        nodes: ``feature``, ``value``, ``x``, ``y``, in the order of the columns.
        edges: ``first``, ``second``, ``value``, ``x``, ``y``, ``x2``, ``y2``, the strongest first.
    """
    norms = absolute_norms(decomposition.family, decomposition.values)
    outputs = slice(None) if output is None else [decomposition.schema.outputs.index(output)]
    features = rolled_up(decomposition.family, norms)[:, outputs].sum(axis=1)
    kept = sorted(strongest_first(features)[:nodes].tolist())
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(kept)) / max(1, len(kept))
    place = {i: (float(np.cos(a)), float(np.sin(a))) for i, a in zip(kept, angle, strict=True)}
    strength = norms[:, outputs].sum(axis=1)
    pairs = [
        s for s, subset in enumerate(decomposition.family.subsets) if len(subset) == 2 and set(subset) <= set(kept)
    ]
    pairs.sort(key=lambda s: -strength[s])
    names = decomposition.schema.features
    drawn = [{"feature": names[i], "value": float(features[i]), "x": place[i][0], "y": place[i][1]} for i in kept]
    least = WEAK * strength[pairs].max(initial=0.0)
    links = [(decomposition.family.subsets[s], float(strength[s])) for s in pairs[:edges] if strength[s] >= least]
    return drawn, [_edge(names[i], names[j], value, place[i], place[j]) for (i, j), value in links]


def certificate_records(certificate: Certificate) -> list[Record]:
    """``name``, ``meaning``, ``measured``, ``tolerance``, ``met``, ``remedy``: the checks of a certificate.

    ``tolerance`` and ``met`` are ``None`` for numbers without a limit.
    """
    return [asdict(check) for check in certificate.checks]


def rounding(decomposition: Decomposition) -> float:
    """The size below which a value is zero up to rounding: a chart is not scaled up to show less."""
    checks = {check["name"]: check for check in certificate_records(decomposition.certificate)}
    return float(checks["orthogonality"]["tolerance"] * np.abs(decomposition.values).max(initial=0.0))


def legible(text: str) -> str:
    r"""The text with everything invisible written out: no text, blanks at an end, control characters.

    >>> legible(""), legible("red"), legible(" red"), legible("a\nb")
    ('(empty)', 'red', '" red"', 'a\\nb')
    """
    if not text:
        return EMPTY
    written = "".join(_written(character) for character in text)
    return f'"{written}"' if written != written.strip() else written


def legible_names(names: Sequence[str]) -> dict[str, str]:
    """What to show for each of several different names; what is shown is different too.

    >>> legible_names(["a", "", "(empty)"])
    {'a': 'a', '': '(empty)', '(empty)': "'(empty)'"}
    """
    shown = [legible(name) for name in names]
    taken = Counter(shown)
    distinguished = [
        repr(name) if taken[label] > 1 and label == name else label for name, label in zip(names, shown, strict=True)
    ]
    return dict(zip(names, label_levels(distinguished), strict=True))


def short(text: str, length: int = TITLE_LENGTH) -> str:
    """The beginning of a long text, legible.

    >>> short("a" * 9, 5)
    'aaaa…'
    """
    shown = legible(text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def ordered_places(decomposition: Decomposition, i: int, ordered: bool | None = None) -> list[bool]:
    """Which levels of feature number ``i`` have a place in its order; none where there is no order.

    Numbers, dates, bins and declared orders are ordered unless ``ordered`` overrides it.
    """
    return _places(decomposition.encoding.features[i], decomposition.schema.kind, ordered)


def _places(feature: FeatureLevels, kind: str, ordered: bool | None) -> list[bool]:
    own = [level is not None and (bool(feature.edges) or level in feature.values) for level in feature.levels]
    levels = [level for level, is_own in zip(feature.levels, own, strict=True) if is_own]
    if ordered is None:
        ordered = len(levels) >= ORDERED_FROM and (bool(feature.edges) or _have_order(levels, kind))
    return [is_own and ordered for is_own in own]


def _have_order(levels: list[Level], kind: str) -> bool:
    if all(isinstance(level, MEASURES) and not isinstance(level, bool) for level in levels):
        return True
    return kind in ORDER_DECLARED and levels != sort_levels(levels)


def _cells_by_position(
    effect: Effect, asked: tuple[str, str], labels: Sequence[tuple[str, ...]]
) -> dict[tuple[int, int], int]:
    """{(position of the first level, of the second): number of the cell}, in the requested order."""
    turn = effect.features != asked
    first, second = ({label: k for k, label in enumerate(names)} for names in labels)
    pairs = [cell[::-1] if turn else cell for cell in effect.levels]
    return {(first[a], second[b]): k for k, (a, b) in enumerate(pairs)}


def _strongest_levels(
    effect: Effect, cells: dict[tuple[int, int], int], sizes: Sequence[int], top: int | None
) -> list[list[int]]:
    """Positions of the levels of both features that carry most of E|f|, in their own order."""
    amount: FloatArray = effect.probability * np.abs(effect.values).sum(axis=1)
    kept = []
    for axis, size in enumerate(sizes):
        carried = np.zeros(size)
        for places, cell in cells.items():
            carried[places[axis]] += amount[cell]
        strongest = strongest_first(carried)[: size if top is None else top]
        kept.append(sorted(strongest.tolist()))
    return kept


def _cell_record(
    effect: Effect,
    errors: CellErrors,
    cell: int | None,
    levels: tuple[str, str],
    places: tuple[int, int],
    k: int,
    output: str,
) -> Record:
    return {
        "first": levels[0],
        "second": levels[1],
        "first_position": places[0],
        "second_position": places[1],
        "probability": 0.0 if cell is None else float(effect.probability[cell]),
        "output": output,
        "value": None if cell is None else float(effect.values[cell, k]),
        **(NO_CELL if cell is None else errors.fields(cell, k)),
        "observed": cell is not None,
    }


def _edge(first: str, second: str, value: float, start: tuple[float, float], end: tuple[float, float]) -> Record:
    places = {"x": start[0], "y": start[1], "x2": end[0], "y2": end[1]}
    return {"first": first, "second": second, "value": value, **places}


def _written(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNING or _is_none(character):
        return character.encode("unicode_escape").decode("ascii")
    return character


def _is_none(character: str) -> bool:
    """Whether this is one of the code points that are no character, which XML does not allow."""
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
