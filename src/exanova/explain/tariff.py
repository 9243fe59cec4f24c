"""From effects on the scale of a link to relativities against base levels, and the loss of a tariff of few orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.data.feature import FeatureLevels
from exanova.data.link import LINKS
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.effects.effect import Schema
from exanova.errors import InputError
from exanova.explain.changing import Fit
from exanova.explain.relativities import Relativities, TariffFactor, TariffLoss
from exanova.infer.bands import quantile
from exanova.infer.uncertainty import Uncertainty
from exanova.messages import Parameter
from exanova.phi.operator import Phi
from exanova.typing import FloatArray, IntArray

HIGHEST = 2
"""Factors have up to two features: what a rating table can show."""


def tariff_of(
    fit: Fit, link: str, base: Any, losses: tuple[tuple[TariffLoss, ...], ...], why_none: str = ""
) -> Relativities:
    """The tariff of a fit against base levels; ``why_none`` says why it should have no intervals."""
    family, schema, uncertainty = fit.family, fit.schema, fit.uncertainty
    why_none = why_none or uncertainty.why_none
    codes = base_levels(family, fit.encoding.features, schema, base)
    factors, at_base = factors_of(family, fit.values, schema, None if why_none else uncertainty, codes)
    notes = [f"no intervals: {why_none}"] if why_none else []
    loose = [factor.name for factor in factors if not factor.anchored]
    if loose:
        notes.append(f"the base levels of {', '.join(loose)} never occur together: relativities against the mean there")
    if len(family.subsets[-1]) > HIGHEST:
        notes.append("effects of more than two features are part of no factor; those at the base are in its value")
    unknown = [factor.name for s, factor in enumerate(factors, 1) if uncertainty.identified(s) is False]
    if unknown:
        notes.append(f"other factors carry the same information as {', '.join(unknown)}: only their product is certain")
    return Relativities(
        {name: schema.labels[i][int(codes[i])] for i, name in enumerate(schema.features)},
        np.exp(at_base),
        tuple(factors),
        losses,
        link,
        tuple(name.removeprefix(f"{link}(").removesuffix(")") for name in schema.outputs),
        schema,
        tuple(notes),
    )


def base_levels(family: Family, features: Sequence[FeatureLevels], schema: Schema, given: Any) -> IntArray:
    """(d,) level of every feature that is the base: the most frequent one, or the one named or holding a value."""
    out = np.zeros(len(schema.features), dtype=np.int64)
    for i in range(len(out)):
        if (i,) in family.position:
            s = family.position[i,]
            out[i] = int(family.codes_of(s)[0, int(np.argmax(family.weight[family.cells_of(s)]))])
    if isinstance(given, str) and given == "most frequent":
        return out
    if not isinstance(given, Mapping):
        raise InputError.given("base", given, "'most frequent', or a mapping from features to levels")
    given = {str(name): level for name, level in given.items()}
    wrong = [f"there is no feature {name!r}" for name in given if name not in schema.features]
    for name in (name for name in given if name in schema.features):
        i = schema.features.index(name)
        labels = schema.labels[i]
        code = _code_of(features[i], labels, given[name])
        if code < 0:
            wrong.append(f"{name!r} has no level {str(given[name])!r}; its levels are {', '.join(labels[:20])}")
        else:
            out[i] = code
    if wrong:
        raise InputError(
            Parameter("base"),
            f" cannot be used: {'; '.join(wrong)}",
            remedy="A feature that is left out has its most frequent level",
        )
    return out


def _code_of(feature: FeatureLevels, labels: Sequence[str], value: Any) -> int:
    """The code of a level by its name, or of the level that holds a value; -1 if there is none."""
    if str(value) in labels:
        return list(labels).index(str(value))
    if value is None or value != value:
        return feature.missing_code
    try:
        return int(feature.recode([value])[0])
    except (KeyError, TypeError, ValueError):  # not a learned value, or no number
        return -1


def factors_of(
    family: Family, values: FloatArray, schema: Schema, uncertainty: Uncertainty | None, base: IntArray
) -> tuple[list[TariffFactor], FloatArray]:
    """The factors of features and pairs, and the (m,) sum of all effects at the base, on the scale of the link.

    Without ``uncertainty`` they have no intervals.
    """
    factors, at_base = [], values[0].copy()
    for s in range(1, len(family.subsets)):
        subset, own = family.subsets[s], family.cells_of(s)
        codes = family.codes_of(s)
        hit = np.flatnonzero((codes == base[list(subset)][:, None]).all(axis=0))
        reference = values[own][hit[0]] if len(hit) else np.zeros(values.shape[1])
        at_base = at_base + reference
        if len(subset) > HIGHEST:
            continue
        change = values[own] - reference
        half = quantile(0.95) * _stderr(family, uncertainty, s, hit)
        levels = tuple(
            tuple(schema.labels[i][code] for i, code in zip(subset, cell, strict=True)) for cell in codes.T.tolist()
        )
        ends = np.exp(change - half), np.exp(change + half)
        names = schema.names(subset)
        factors.append(TariffFactor(names, levels, family.weight[own].copy(), np.exp(change), *ends, bool(len(hit))))
    return factors, at_base


def _stderr(family: Family, uncertainty: Uncertainty | None, s: int, hit: IntArray) -> FloatArray:
    """(c, m) standard errors of the differences from the base cell ``hit``; NaN where there are none."""
    own = family.cells_of(s)
    if uncertainty is None or not uncertainty.has_stderr(s):
        return np.full((own.stop - own.start, 1), np.nan)
    blocks = uncertainty.engine.block(own) * uncertainty.unit[:, None, None] ** 2
    variances = np.diagonal(blocks, axis1=1, axis2=2).T.copy()
    if len(hit):
        b = int(hit[0])
        variances += blocks[:, b, b] - 2.0 * blocks[:, :, b].T
    return np.sqrt(np.maximum(variances, 0.0))


def losses_of(family: Family, values: FloatArray, sample: Sample, link: str, output: int) -> list[TariffLoss]:
    """The losses of tariffs of effects up to each order on the rows of the fit, for one output."""
    assert sample.scaling is not None
    weight, unit = sample.probability, sample.scaling
    back = LINKS[link].back
    given = back(unit.centre[output] + sample.values[:, output] * unit.unit[output])
    mean = float(weight @ given)
    whole, best = deviance(link, given, np.full(len(given), mean), weight), gini(given, given, weight)
    out = [TariffLoss(0, whole, 0.0, 0.0, 0.0, 1.0)]
    sizes = np.repeat([len(s) for s in family.subsets], np.diff(family.cell_start))
    phi = Phi(family, sample)
    for order in range(1, len(family.subsets[-1]) + 1):
        kept = np.where(sizes <= order, values[:, output], 0.0)
        price = back(phi.synthesise(kept[:, None])[:, 0])
        balance = mean / float(weight @ price) if link == "log" else 1.0
        lost = deviance(link, given, balance * price, weight)
        ordered = gini(given, price, weight)
        explained = 1.0 - lost / whole if whole > 0 else 0.0
        out.append(TariffLoss(order, lost, explained, ordered, ordered / best if best > 0 else 0.0, balance))
    return out


def deviance(link: str, given: FloatArray, price: FloatArray, weight: FloatArray) -> float:
    """Mean deviance of positive outputs from prices: Poisson for the log, binomial for the logit.

    >>> deviance("log", np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    0.0
    """
    if link == "log":
        each = given * np.log(given / price) - (given - price)
    else:
        each = given * np.log(given / price) + (1.0 - given) * np.log((1.0 - given) / (1.0 - price))
    size = float(weight @ given) if link == "log" else 1.0
    found = float(2.0 * (weight @ each))
    return found if found > tolerances.CANCELLED * size else 0.0


def gini(given: FloatArray, price: FloatArray, weight: FloatArray) -> float:
    """Gini index of outputs ordered by price: one minus twice the area under the Lorenz curve; ties share a segment.

    >>> round(gini(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5])), 6)
    0.5
    """
    _, place = np.unique(np.round(price / np.abs(price).max(), 12), return_inverse=True)
    share = np.bincount(place.ravel(), weight)
    amount = np.bincount(place.ravel(), weight * given)
    curve = np.concatenate([[0.0], np.cumsum(amount) / amount.sum()])
    return float(1.0 - np.sum(share / share.sum() * (curve[1:] + curve[:-1])))
