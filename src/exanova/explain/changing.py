"""From two fits to the change of their mean: alignment, the split, standard errors, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.data.encoding import Encoding
from exanova.design.continuation import everywhere
from exanova.design.family import Family
from exanova.effects.at_rows import fitted_part
from exanova.effects.effect import Schema
from exanova.explain.aligned import AllParts, all_parts, as_in_other
from exanova.explain.comparison import DIVIDED, MOSTLY, check_same_columns
from exanova.explain.mean_change import MeanChange
from exanova.explain.mix_and_model import MixAndModel, mix_and_model
from exanova.infer.uncertainty import Uncertainty
from exanova.messages import count_of
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Fit:
    """The parts of a fit that a change needs: names, levels, cells, (cells, m) effects and their uncertainty."""

    schema: Schema
    encoding: Encoding
    family: Family
    values: FloatArray
    uncertainty: Uncertainty


def mean_change(first: Fit, second: Fit) -> MeanChange:
    """The change of the mean between two fits of the same columns and outputs."""
    check_same_columns(first.schema, second.schema)
    place_of = np.array([second.schema.features.index(name) for name in first.schema.features])
    pairs = [(f, second.encoding.features[int(j)]) for f, j in zip(first.encoding.features, place_of, strict=True)]
    masses = [(_masses(first, i), _masses(second, int(j))) for i, j in enumerate(place_of)]
    parts = [as_in_other(all_parts(pair), mass) for pair, mass in zip(pairs, masses, strict=True)]
    split = mix_and_model((first.family, second.family), (first.values, second.values), parts, place_of)
    errors, included = _errors(first, second, split)
    errors = {name: _no_rounding(first, second, stderr) for name, stderr in errors.items()}
    means = np.stack([first.values[0], second.values[0]])
    split, total = _without_rounding(first, second, split, means)
    found_in = tuple(_found_in(subset, first.family, second.family, place_of) for subset in split.subsets)
    return MeanChange(
        subsets=tuple(map(first.schema.names, split.subsets)),
        mix=split.mix,
        model=split.model,
        total=total,
        means=means,
        **errors,
        found_in=found_in,
        shared=split.shared,
        schema=first.schema,
        included=included,
        notes=tuple(_notes(first.schema, split, parts, found_in)),
    )


def _without_rounding(first: Fit, second: Fit, split: MixAndModel, means: FloatArray) -> tuple[MixAndModel, FloatArray]:
    """The parts, and the change of the mean (m,); what is rounding relative to the spread of the fits is zero."""
    spread = np.maximum(*(np.sqrt(_shares(fit) @ fit.values[1:] ** 2) for fit in (first, second)))
    limits = np.tile(tolerances.unchanged(spread, np.zeros_like(spread)), (len(split.subsets), 1))
    limits[0] = tolerances.unchanged(spread, np.abs(means).max(axis=0))  # the level is a difference of means
    mix, model = (np.where(np.abs(parts) <= limits, 0.0, parts) for parts in (split.mix, split.model))
    total = means[1] - means[0]
    return replace(split, mix=mix, model=model), np.where(np.abs(total) <= limits[0], 0.0, total)


def _no_rounding(first: Fit, second: Fit, stderr: FloatArray) -> FloatArray:
    """Standard errors, zero where they are the rounding of variances whose terms cancel."""
    scale = np.maximum(*(np.abs(fit.values).max(axis=0) for fit in (first, second)))
    return np.where(stderr <= tolerances.NO_ERROR * scale, 0.0, stderr)


def _shares(fit: Fit) -> FloatArray:
    """(cells - 1,) probability of every cell but that of the intercept."""
    return np.asarray(fit.family.weight[1:] / fit.family.weight[0])


def _masses(fit: Fit, feature: int) -> FloatArray:
    """Probability of every level of a feature; zeros if the family does not have it."""
    out = np.zeros(len(fit.encoding.features[feature].labels))
    s = fit.family.position.get((feature,))
    if s is not None:
        out[fit.family.codes_of(s)[0]] = fit.family.probability_of(s)
    return out


def _found_in(subset: tuple[int, ...], first: Family, second: Family, place_of: IntArray) -> str:
    before = subset in first.position
    after = tuple(sorted(int(place_of[i]) for i in subset)) in second.position
    return "both" if before and after else "first" if before else "second"


def _errors(first: Fit, second: Fit, split: MixAndModel) -> tuple[dict[str, Any], str]:
    """Standard errors by name, and what they include."""
    shape = split.mix.shape
    out: dict[str, Any] = {name: np.full(shape, np.nan) for name in ("mix_stderr", "model_stderr")}
    out |= {name: np.full(shape[1], np.nan) for name in ("total_stderr", "mix_total_stderr", "model_total_stderr")}
    why = first.uncertainty.why_none or second.uncertainty.why_none
    if why:
        return out, f"none: {why}"
    rows = float(second.uncertainty.rows[0])
    from_first = first.uncertainty.linear_stderr(split.mix_weights)
    spread = np.maximum(split.second_moment - split.mix**2, 0.0) / rows
    out["mix_stderr"] = np.sqrt(from_first**2 + spread)
    out["mix_stderr"][0] = 0.0
    if split.model_weights is not None:
        out["model_stderr"] = np.hypot(from_first, second.uncertainty.linear_stderr(split.model_weights))
    ends = [fit.uncertainty.linear_stderr(np.eye(fit.family.n_cells, 1))[0] for fit in (first, second)]
    out["total_stderr"] = np.hypot(*ends)
    at_rows = _variances_at_rows(second, split)
    if at_rows is not None:
        summed = first.uncertainty.linear_stderr(split.mix_weights.sum(axis=1, keepdims=True))[0]
        without_mean = split.mix_weights[:, 1:].sum(axis=1, keepdims=True)
        out["mix_total_stderr"] = np.sqrt(first.uncertainty.linear_stderr(without_mean)[0] ** 2 + at_rows[0] / rows)
        out["model_total_stderr"] = np.sqrt(summed**2 + at_rows[1] / rows)
    return out, _included(split, at_rows is not None)


def _included(split: MixAndModel, has_sums: bool) -> str:
    """What the standard errors include, and which are missing, in words."""
    words = "the sampling of the rows of both fits, as if these were drawn independently"
    if split.model_weights is None:
        words += "; the parts of the model have none: these fits have too many cells"
    else:
        words += "; for the parts of the model, only the sampling of the effects, with the mixes held fixed"
    if not has_sums:
        words += "; the sums of mix and model have none: they need the rows of the second fit, which its file lacks"
    return words


def _variances_at_rows(second: Fit, split: MixAndModel) -> tuple[FloatArray, FloatArray] | None:
    """(m,) variances over the second rows of f^0 and of the model minus f^0; ``None`` without the rows."""
    sample = second.uncertainty.sample
    if sample is None or sample.scaling is None:
        return None
    before = fitted_part(everywhere(second.family, split.carried, None), sample.codes)
    after = sample.scaling.centre + sample.values * sample.scaling.unit
    within = 0.0 if sample.within is None else sample.probability @ (sample.within * sample.scaling.unit**2)

    def variance(values: FloatArray) -> FloatArray:
        mean = sample.probability @ values
        return np.asarray(sample.probability @ (values - mean) ** 2)

    return variance(before), variance(after - before) + within


def _notes(schema: Schema, split: MixAndModel, parts: list[AllParts], found_in: Sequence[str]) -> list[str]:
    """Levels and effects of one fit alone, and levels that overlap."""
    notes, other_edges = [], []
    for name, own in zip(schema.features, parts, strict=True):
        for side, where in ((0, "first"), (1, "second")):
            alone = int((own.codes[1 - side] < 0).sum())
            if alone:
                which = count_of(alone, "level or part of a level occurs", "levels or parts of levels occur")
                notes.append(f"{name}: {which} only in the {where} fit")
        if ((own.shares > 0) & (own.shares < 1)).any():
            other_edges.append(name)
    if other_edges:
        notes.append(f"{', '.join(other_edges)}: {DIVIDED}")
    for where, other in (("first", "second"), ("second", "first")):
        count = found_in.count(where)
        if count:
            notes.append(f"{count_of(count, 'effect')} only in the {where} fit: 0 in the {other}")
    shared = np.where(np.array(found_in) == "both", split.shared[:, 1], np.inf)
    least = int(np.argmin(shared))
    if shared[least] < MOSTLY:
        name = " x ".join(schema.names(split.subsets[least]))
        notes.append(
            f"{name}: {shared[least]:.0%} of the rows of the second fit are in cells that occur in the first; an "
            "effect counts as 0 in cells that its fit never observed"
        )
    return notes
