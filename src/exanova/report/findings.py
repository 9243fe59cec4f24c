"""What the model does, in plain sentences and in units of its output: the beginning of a report.

The terminal and every format of the report use the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from exanova import tolerances
from exanova.data.link import LINKS
from exanova.decomposition import Decomposition
from exanova.effects.effect import FEW_ROWS, Effect
from exanova.effects.norms import absolute_norms
from exanova.messages import listed
from exanova.printed_numbers import printed
from exanova.report.sections import strongest
from exanova.show.records import Record, importance_records, legible, rounding
from exanova.typing import FloatArray, IntArray

MOST = 3
"""Features named in the headline and described one by one."""

OUTPUTS = 3
"""Outputs that are described one by one."""

SLIGHT = 0.01
"""Share of the strongest effect below which the strongest interaction is not named in the headline."""


def headline(importance: Sequence[Record], subsets: Sequence[Record], holds: bool | None = True) -> str:
    """What matters most: the first features and the strongest interaction, all outputs together.

    If the fit does not hold on other rows, the headline says so.

    >>> headline([{"feature": "a", "value": 2.0}, {"feature": "b", "value": 0.0}], [])
    'Of 2 features, a matters most.'
    >>> effects = [{"subset": ("a",), "order": 1, "value": 2.0}, {"subset": ("a", "b"), "order": 2, "value": 0.01}]
    >>> headline([{"feature": "a", "value": 2.0}, {"feature": "b", "value": 1.0}], effects)
    'Of 2 features, a and b matter most; interactions hardly matter.'
    """
    total: dict[str, float] = {}
    for record in importance:
        total[record["feature"]] = total.get(record["feature"], 0.0) + abs(record["value"])
    first = [legible(name) for name, value in total.items() if value > 0][:MOST]
    if not first:
        return "No feature has an effect: the model is constant on these rows."
    named = listed(first)
    together = next((r["subset"] for r in subsets if r["order"] > 1 and r["value"] > 0), None)
    matters = "matters" if len(first) == 1 else "matter"
    interaction = f"; the strongest interaction is {' × '.join(map(legible, together))}" if together else ""
    largest = max((abs(r["value"]) for r in subsets), default=0.0)
    if together and max(abs(r["value"]) for r in subsets if r["order"] > 1) < SLIGHT * largest:
        interaction = "; interactions hardly matter"
    doubt = " This does not hold on other rows: read it with care." if holds is False else ""
    if len(total) == 1:
        return f"The only feature is {named}.{doubt}"
    return f"Of {len(total):,} features, {named} {matters} most{interaction}.{doubt}"


def findings(decomposition: Decomposition, importance: Sequence[Record]) -> list[str]:
    """Sentences on each output: its mean, the levels that move it most, the strongest interaction."""
    schema = decomposition.schema
    sentences = [" ".join(_sentences(decomposition, importance, k)) for k in range(min(len(schema.outputs), OUTPUTS))]
    more = len(schema.outputs) - len(sentences)
    return [*sentences, *([f"There are {more:,} more outputs."] if more else [])]


def main_findings(decomposition: Decomposition) -> list[str]:
    """The headline and the findings, as in a report and on the terminal."""
    certificate = decomposition.certificate
    importance = importance_records(decomposition, "variance" if certificate.cancels else "l1")
    first = headline(importance, strongest(decomposition)[0], certificate.holds)
    return [first, *findings(decomposition, importance)]


def shown_output(decomposition: Decomposition, k: int) -> str:
    """The name of an output; of the only one of a model that names none, "the model"."""
    schema = decomposition.schema
    return legible(schema.output_words[k])


def number(value: float) -> str:
    """A number for display.

    >>> number(0.123456), number(1234567.0), number(-0.00001)
    ('0.123', '1,234,567', '-1e-05')
    """
    return printed(value, 3)


def _sentences(decomposition: Decomposition, importance: Sequence[Record], k: int) -> Iterator[str]:
    schema = decomposition.schema
    yield _mean_in_words(decomposition, k)
    own = sorted((r for r in importance if r["output"] == schema.outputs[k]), key=lambda r: -abs(r["value"]))
    ranges = [text for record in own[:MOST] if (text := _range(decomposition, record["feature"], k))]
    if ranges:
        yield f"On their own, these move it most on average: {'; '.join(ranges)}."
    rare = _largest_level(decomposition, [record["feature"] for record in own[:MOST]], k) if ranges else ""
    if rare:
        yield rare
    together = _interaction(decomposition, k)
    if together:
        yield together
    if _leaves_out(decomposition, [record["feature"] for record in own[:MOST]], k):
        yield f"Levels and combinations of fewer than {FEW_ROWS} rows are not named here."


def _mean_in_words(decomposition: Decomposition, k: int) -> str:
    """The mean of an output; on a log or logit scale also the output there, and what effects are."""
    mean = float(decomposition.intercept[k])
    sentence = f"The mean of {shown_output(decomposition, k)} is {number(mean)}"
    if decomposition.link == "identity":
        return f"{sentence}."
    output = shown_output(decomposition, k).removeprefix(f"{decomposition.link}(").removesuffix(")")
    there = number(float(LINKS[decomposition.link].back(np.array(mean))))
    factors = "factors of the odds" if decomposition.link == "logit" else "factors"
    return f"{sentence}, where {output} is {there}; effects are given as {factors}."


def _amount(decomposition: Decomposition, value: float) -> str:
    """What an effect adds to the output, or multiplies it by if a log or logit was decomposed."""
    return signed(value) if decomposition.link == "identity" else f"× {number(float(np.exp(value)))}"


def _largest_level(decomposition: Decomposition, named: Sequence[str], k: int) -> str:
    """The level with the largest effect, if its feature was not named: on average, a rare level moves little."""
    effects = {f: decomposition.effects[f,] for f in decomposition.schema.features if (f,) in decomposition.effects}
    cells = {name: _reliable(decomposition, effect, 2) for name, effect in effects.items()}
    sizes = {name: float(np.abs(effect.values[cells[name], k]).max()) for name, effect in effects.items()}
    largest = _first_largest(np.array(list(sizes.values())))
    feature = list(sizes)[largest]
    if feature in named or sizes[feature] <= rounding(decomposition):
        return ""
    effect = effects[feature]
    cell = int(cells[feature][_first_largest(np.abs(effect.values[cells[feature], k]))])
    level, share = legible(effect.levels[cell][0]), 100 * float(effect.probability[cell])
    change = _amount(decomposition, effect.values[cell, k])
    return f"The largest effect of one level is {change}, at {legible(feature)} = {level} ({share:.2g} % of the rows)."


def _range(decomposition: Decomposition, feature: str, k: int) -> str:
    """The levels between which a feature moves the output, on its own; empty if it does not."""
    if (feature,) not in decomposition.effects:
        return ""
    effect = decomposition.effects[feature]
    values = effect.values[:, k]
    cells = _reliable(decomposition, effect, 2)
    low, high = int(cells[_first_largest(-values[cells])]), int(cells[_first_largest(values[cells])])
    if values[high] - values[low] <= rounding(decomposition):
        return ""
    least, most = (f"{_amount(decomposition, values[c])} at {legible(effect.levels[c][0])}" for c in (low, high))
    return f"{legible(feature)}, from {least} to {most}"


def _reliable(decomposition: Decomposition, effect: Effect, least: int) -> IntArray:
    """The cells of an effect that sentences may name: those of enough rows, or all if fewer than ``least`` have."""
    cells = np.flatnonzero(~(effect.few_rows & decomposition.certificate.sampled))
    return cells if len(cells) >= least else np.arange(len(effect.levels))


def _leaves_out(decomposition: Decomposition, features: Sequence[str], k: int) -> bool:
    """Whether sentences would name other levels or combinations if they named those of few rows too."""
    effects = [decomposition.effects[f,] for f in features if (f,) in decomposition.effects]
    s = _strongest_interaction(decomposition, k)
    pairs = [] if s is None else [decomposition.effects[decomposition.schema.names(decomposition.family.subsets[s])]]
    return any(_hides_largest(decomposition, e, least, k) for es, least in ((effects, 2), (pairs, 1)) for e in es)


def _hides_largest(decomposition: Decomposition, effect: Effect, least: int, k: int) -> bool:
    values = effect.values[:, k]
    shown = values[_reliable(decomposition, effect, least)]
    if least == 1:
        values, shown = np.abs(values), np.abs(shown)
    slack = rounding(decomposition)
    return bool(values.max() > shown.max() + slack or (least == 2 and values.min() < shown.min() - slack))


def _first_largest(values: FloatArray) -> int:
    """Number of the largest value, the first of those that differ by rounding: two levels of a feature often tie.

    >>> _first_largest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    slack = tolerances.RECONSTRUCTION * float(np.abs(values).max(initial=0.0))
    return int(np.flatnonzero(values >= values.max() - slack)[0])


def _interaction(decomposition: Decomposition, k: int) -> str:
    """The strongest interaction and the combination in which it is largest, of those of enough rows."""
    s = _strongest_interaction(decomposition, k)
    if s is None:
        return ""
    effect = decomposition.effects[decomposition.schema.names(decomposition.family.subsets[s])]
    cells = _reliable(decomposition, effect, 1)
    cell = int(cells[_first_largest(np.abs(effect.values[cells, k]))])
    named = [legible(feature) for feature in effect.features]
    where = [f"{name} is {legible(level)}" for name, level in zip(named, effect.levels[cell], strict=True)]
    change = _amount(decomposition, effect.values[cell, k])
    return f"Together, {listed(named)} change it most where {listed(where)}: by {change}."


def _strongest_interaction(decomposition: Decomposition, k: int) -> int | None:
    """Number of the subset of two or more features with the largest effect; ``None`` if none has one."""
    family = decomposition.family
    norms: FloatArray = absolute_norms(family, decomposition.values)[:, k].copy()
    norms[[len(subset) < 2 for subset in family.subsets]] = 0.0
    s = _first_largest(norms)
    return s if norms[s] > rounding(decomposition) else None


def signed(value: float) -> str:
    """A number with its sign.

    >>> signed(0.5), signed(-0.5)
    ('+0.5', '-0.5')
    """
    return f"+{number(value)}" if value > 0 else number(value)
