"""Why groups of rows differ, and why the mean changed since an earlier fit, as sections of the report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition, decomposition_of
from exanova.effects.norms import strongest_first
from exanova.explain.difference import RESIDUAL, TOTAL, Contrast, Difference
from exanova.explain.mean_change import MeanChange
from exanova.explain.row_sets import OTHERS
from exanova.printed_numbers import plus_minus
from exanova.report.explorer import GivenRows
from exanova.report.findings import number, shown_output, signed
from exanova.show.error_bars import known
from exanova.show.records import Record, legible

CONTRASTS = 20
"""Pairs of groups that a report shows."""

PARTS = 50
"""Parts of a difference that a report lists for each pair and output."""

MOST = 3
"""Parts that are named in a sentence."""

LEVEL = "(level)"
"""The part of the change that is the same for all rows."""

SMALL = 1e-3
"""Share of the largest part up to which none is named."""


def contrasts(decomposition: Decomposition, given: GivenRows) -> tuple[Record | None, int]:
    """Why the groups of the column ``by`` differ, ``None`` without such a column; and how many pairs are left out."""
    if given.by is None or given.table is None:
        return None, 0
    difference: Difference = decomposition.difference(given.X, by=given.by, model=given.model, groups=given.groups)
    shown = difference.contrasts[:CONTRASTS]
    records = [_contrast(decomposition, difference, contrast, str(given.by)) for contrast in shown]
    return {
        "by": str(given.by),
        "included": difference.included,
        "notes": list(difference.notes),
        "contrasts": records,
    }, len(difference.contrasts) - len(shown)


def change(decomposition: Decomposition, since: Any) -> Record | None:
    """Why the mean changed since an earlier fit: the mix of the rows, or the model, by subset; ``None`` without one."""
    if since is None:
        return None
    mean_change: MeanChange = decomposition_of(since, "since").change(decomposition)
    outputs = range(len(decomposition.schema.outputs))
    return {
        "included": mean_change.included,
        "notes": list(mean_change.notes),
        "words": [_change_in_words(decomposition, mean_change, k) for k in outputs],
        "records": [record for k in outputs for record in _change_records(mean_change, k)],
    }


def _change_records(mean_change: MeanChange, k: int) -> list[Record]:
    """The parts of one output, the largest first, the others as one, then both sums."""
    size = np.abs(mean_change.mix[:, k]) + np.abs(mean_change.model[:, k])
    order, rest = np.split(strongest_first(size), [PARTS])
    names = [" × ".join(map(legible, subset)) or LEVEL for subset in mean_change.subsets]
    lines = [
        (
            names[s],
            mean_change.mix[s, k],
            mean_change.mix_stderr[s, k],
            mean_change.model[s, k],
            mean_change.model_stderr[s, k],
        )
        for s in order
    ]
    if len(rest):
        mix, model = (float(parts[rest, k].sum()) for parts in (mean_change.mix, mean_change.model))
        lines.append((f"({len(rest):,} others)", mix, math.nan, model, math.nan))
    sums = (
        TOTAL,
        mean_change.mix_total[k],
        mean_change.mix_total_stderr[k],
        mean_change.model_total[k],
        mean_change.model_total_stderr[k],
    )
    fields = ("mix", "mix_stderr", "model", "model_stderr")
    output = mean_change.schema.outputs[k]
    return [
        {"output": output, "part": name, **dict(zip(fields, map(known, numbers), strict=True))}
        for name, *numbers in [*lines, sums]
    ]


def _change_in_words(decomposition: Decomposition, mean_change: MeanChange, k: int) -> str:
    before, after = (number(float(mean[k])) for mean in mean_change.means)
    total = _with_error(mean_change.total[k], mean_change.total_stderr[k])
    mix = _with_error(mean_change.mix_total[k], mean_change.mix_total_stderr[k])
    model = _with_error(mean_change.model_total[k], mean_change.model_total_stderr[k])
    return (
        f"The mean of {shown_output(decomposition, k)} was {before} and is {after}: a change of {total}. Other rows "
        f"(the mix) made {mix} of it, other effects (the model) {model}."
    )


def _with_error(value: float, error: float) -> str:
    """A part and its standard error, if it has one.

    >>> _with_error(0.5, 0.0213), _with_error(-0.5, float("nan"))
    ('+0.5 ± 0.021', '-0.5')
    """
    return f"{signed(float(value))}{plus_minus(error)}"


def _named(by: str, group: str) -> str:
    """A group of rows in a sentence.

    >>> _named("sex", "f"), _named("sex", "all others")
    ('sex = f', 'all others')
    """
    return group if group == OTHERS else f"{legible(by)} = {legible(group)}"


def _contrast(decomposition: Decomposition, difference: Difference, contrast: Contrast, by: str) -> Record:
    outputs = decomposition.schema.outputs
    records = [
        {"output": output, "part": name, "value": value, "stderr": known(error)}
        for k, output in enumerate(outputs)
        for name, value, error in _listed(difference.parts(contrast, output=k))
    ]
    words = [_in_words(decomposition, difference, contrast, by, k) for k in range(len(outputs))]
    return {
        "group": contrast.group,
        "against": contrast.against,
        "rows": [int(count) for count in contrast.rows],
        "means": contrast.means.tolist(),
        "words": words,
        "records": records,
    }


def _listed(parts: list[Any]) -> list[Any]:
    """The largest parts, what the others add up to, then the residual and the total."""
    ends = [part for part in parts if part[0] in (RESIDUAL, TOTAL)]
    single = sorted(parts[: len(parts) - len(ends)], key=lambda part: -abs(part[1]))
    rest = single[PARTS:]
    others = [(f"({len(rest):,} others)", sum(value for _, value, _ in rest), float("nan"))] if rest else []
    return [*single[:PARTS], *others, *ends]


def _in_words(decomposition: Decomposition, difference: Difference, contrast: Contrast, by: str, k: int) -> str:
    """One sentence: the two means, their difference and its largest parts."""
    first, second = (number(float(mean[k])) for mean in contrast.means)
    total = _with_error(contrast.total[k], contrast.total_stderr[k])
    least = SMALL * max(abs(contrast.total[k]), *(abs(value) for _, value, _ in difference.parts(contrast, output=k)))
    parts = [
        p for p in _listed(difference.parts(contrast, output=k)) if p[0] not in (RESIDUAL, TOTAL) and abs(p[1]) > least
    ]
    named = ", ".join(f"{legible(name)} {_with_error(value, error)}" for name, value, error in parts[:MOST])
    most = f" The largest parts: {named}." if named else ""
    output = shown_output(decomposition, k)
    groups = _named(by, contrast.group), _named(by, contrast.against)
    return (
        f"The mean of {output} is {first} for {groups[0]} and {second} for {groups[1]}: a difference of {total}.{most}"
    )
