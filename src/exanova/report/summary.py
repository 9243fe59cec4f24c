"""``Summary``: everything a report says about a decomposition, as plain values that go to JSON, Markdown or HTML.

Names of features, levels and outputs are only ever values, never keys. What is too much for a reader or a file is left
out from the weakest on, and ``left_out`` says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.effect import GAME
from exanova.effects.norms import absolute_norms
from exanova.report.explorer import rows_left_out, rows_to_show, sample_records
from exanova.report.words import headline, redundancy_in_words, rows_in_words, verdicts
from exanova.show.error_bars import can_compute, errors_in_words, importance_notes
from exanova.show.records import (
    Record,
    certificate_records,
    columns_of,
    effect_records,
    importance_records,
    network_records,
    pair_records,
    rounding,
)

TITLE = "Functional ANOVA report"

PAIRS, SUBSETS, REDUNDANT = 30, 100, 100
"""Pairs in full, subsets by strength and redundant subsets that a reader may want to look through."""

TESTS = 3000
"""Effects up to which it is tested which can be told from zero: a test takes some tens of microseconds."""

EFFECT_LEVELS, PAIR_LEVELS = 200, 30
"""Levels of one feature, by how much of its effect they carry."""

EFFECT_NUMBERS, PAIR_NUMBERS = 16_000, 20_000
"""Values in all effects and in all pairs, each with its standard error: with those of the rows, what keeps a page below
5 MB whatever the features, levels and outputs."""

NETWORKS = 12
"""Outputs up to which each has a network of its own."""


@dataclass(frozen=True)
class Summary:
    """A decomposition as a report tells it; every field is made of lists, dictionaries, texts and numbers.

    A number that is not finite is ``None``.

    Attributes:
        title: of the report.
        headline: what matters most, in a sentence.
        game: the game every number belongs to.
        outputs: names of the outputs.
        facts: ``name``, ``value``: what was explained.
        verdicts: ``question``, ``answer``, ``good``, ``because``, ``care``: the certificate in words.
        fit: a record an output: ``mean``, ``r2``, ``mse``, ``relative_mse``, ``within_variance``, and ``r2_held_out``,
            ``mse_held_out`` (``None`` where no rows were held out).
        certificate: what was measured against its tolerance, see ``certificate_records``.
        importance_kind: what ``importance`` measures: "l1", or "variance" (net shares) where effects cancel.
        importance: ``feature``, ``output``, ``value``, ``stderr``, the largest first.
        importance_notes: what its error bars are, or why there are none.
        errors: the same of effects.
        significance: ``subset``, ``output``, ``statistic``, ``df``, ``p``, ``q``, ``significant``: which effects can be
            told from zero, the clearest first; empty where that is not known or not cheap to compute.
        strongest: ``subset``, ``order``, ``output``, ``value`` = E|f_A|, the strongest subset first.
        effects: ``feature``, ``levels`` (how many there are), ``identified``, ``records``; the most important feature
            first.
        pairs: ``first``, ``second``, ``levels``, ``value`` = E|f| over all outputs, ``records``; the strongest first.
        networks: ``output`` (``None``: all of them), ``nodes``, ``edges``.
        redundancy: ``subset``, ``shared_with``.
        redundancy_note: what redundancy means here, or why there is none to tell of.
        sample: rows with their levels, Shapley values and waterfalls; ``None`` if there are no rows.
        sample_note: which rows those are, or why there are none.
        provenance: ``name``, ``value``: version, date, settings, rows and hashes of the fit; empty where not recorded.
        rounding: the size below which an effect is zero up to rounding.
        left_out: sentences, one for each thing that was left out.
    """

    title: str
    headline: str
    game: str
    outputs: list[str]
    facts: list[Record]
    verdicts: list[Record]
    fit: list[Record]
    certificate: list[Record]
    importance_kind: str
    importance: list[Record]
    importance_notes: list[str]
    errors: str
    significance: list[Record]
    strongest: list[Record]
    effects: list[Record]
    pairs: list[Record]
    networks: list[Record]
    redundancy: list[Record]
    redundancy_note: str
    sample: Record | None
    sample_note: str
    provenance: list[Record]
    rounding: float
    left_out: list[str]

    def to_json(self) -> str:
        """The whole of it."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False) + "\n"


def summarise(
    decomposition: Decomposition,
    *,
    X: Any = None,
    model: Any = None,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Summary:
    """Everything a report says about a fitted decomposition.

    Args:
        decomposition: the decomposition.
        X: rows the explorer may choose from; by default those of the fit, where they are known.
        model: the model, or its outputs at the rows of ``X``, to show the residual of each row.
        title: of the report.
        about: further facts to tell, such as where the data come from.
    """
    kind = "variance" if decomposition.certificate.cancels else "l1"
    importance = importance_records(decomposition, kind)
    effects, without_effect = _effects(decomposition, list(dict.fromkeys(r["feature"] for r in importance)))
    pairs, without_pair = _pairs(decomposition)
    strongest, weaker = _strongest(decomposition)
    significance, untold = _significance(decomposition)
    shown = rows_to_show(decomposition, X, model)
    certificate = decomposition.certificate
    left_out = [
        *_left(without_effect, "main effects", "those of the least important features"),
        *_left(without_pair, "pairs", "the weakest"),
        *_left(weaker, "subsets in the list of the strongest", "the weakest"),
        *_left(untold, "lines in the table of effects that can be told from zero", "the least clear"),
        *_left(len(certificate.redundant) - REDUNDANT, "redundant subsets", "the last in canonical order"),
        *_levels_left(effects, pairs),
        *rows_left_out(shown),
    ]
    return Summary(
        title=title or TITLE,
        headline=headline(importance, strongest, certificate.holds),
        game=GAME,
        outputs=list(decomposition.schema.outputs),
        facts=[*({"name": str(k), "value": str(v)} for k, v in (about or {}).items()), *_facts(decomposition)],
        verdicts=[asdict(answer) for answer in verdicts(decomposition)],
        fit=[_finite(record) for record in _fit(decomposition)],
        certificate=[_finite(record) for record in certificate_records(certificate)],
        importance_kind=kind,
        importance=importance,
        importance_notes=importance_notes(decomposition, importance),
        errors=errors_in_words(decomposition),
        significance=significance,
        strongest=strongest,
        effects=effects,
        pairs=pairs,
        networks=_networks(decomposition) if pairs else [],
        redundancy=[
            {"subset": list(r.features), "shared_with": [list(s) for s in r.shared_with]}
            for r in certificate.redundant[:REDUNDANT]
        ],
        redundancy_note=redundancy_in_words(certificate),
        sample=None if shown is None else sample_records(shown),
        sample_note=rows_in_words(shown, certificate.saturated),
        provenance=_provenance(decomposition),
        rounding=rounding(decomposition),
        left_out=left_out,
    )


def _facts(decomposition: Decomposition) -> list[Record]:
    plan, certificate = decomposition.plan, decomposition.certificate
    schema, family = decomposition.schema, decomposition.family
    still = [name for name, n in zip(schema.features, family.sizes, strict=True) if n < 2]
    constant = f"; constant, and so without effect: {_listed(still)}" if still else ""
    subsets, cells = len(family.subsets) - 1, len(family.cell_key) - 1
    facts = [
        ("Rows", f"{plan.rows:,} given, {plan.distinct_rows:,} distinct ones in the fit"),
        ("Features", f"{len(schema.features):,}{constant}"),
        (
            "Outputs",
            "one" if schema.single else f"{len(schema.outputs):,} ({_listed(schema.outputs)})",
        ),
        (
            "Effects",
            f"{subsets:,} subsets of up to {decomposition.order} features, on {cells:,} observed combinations "
            "of their levels",
        ),
        ("Computed", f"{certificate.route} route: {certificate.method}, {certificate.seconds:.2f} s"),
        ("Game", GAME),
    ]
    if decomposition.selection is not None:
        facts.insert(4, ("Selection", str(decomposition.selection).splitlines()[0]))
    return [{"name": name, "value": value} for name, value in facts]


def _provenance(decomposition: Decomposition) -> list[Record]:
    known = decomposition.provenance
    return [] if known is None else [{"name": name, "value": value} for name, value in known.facts()]


def _fit(decomposition: Decomposition) -> list[Record]:
    c = decomposition.certificate
    return [
        {
            "output": output,
            "mean": float(decomposition.intercept[k]),
            "r2": float(c.r2[k]),
            "mse": float(c.mse[k]),
            "relative_mse": float(c.relative_mse[k]),
            "within_variance": float(c.within_variance[k]),
            "r2_held_out": None if c.r2_eval is None else float(c.r2_eval[k]),
            "mse_held_out": None if c.mse_eval is None else float(c.mse_eval[k]),
        }
        for k, output in enumerate(decomposition.schema.outputs)
    ]


def _effects(decomposition: Decomposition, features: list[str]) -> tuple[list[Record], int]:
    """Main effects of the features, in this order, as far as the budget goes, and how many are left out."""
    with_effect = [name for name in features if (name,) in decomposition.effects]
    shown: list[Record] = []
    spent = 0
    for name in with_effect:
        records = effect_records(decomposition, name)
        levels = len(records) // len(decomposition.schema.outputs)
        kept = _strongest_levels(records, EFFECT_LEVELS)
        spent += len(kept)
        if shown and spent > EFFECT_NUMBERS:
            break
        identified = decomposition.effects[name].identified
        shown.append({"feature": name, "levels": levels, "identified": identified, "records": kept})
    return shown, len(with_effect) - len(shown)


def _strongest_levels(records: list[Record], top: int) -> list[Record]:
    """The records of the ``top`` levels that carry most of E|f|."""
    carried: dict[int, float] = {}
    for r in records:
        carried[r["position"]] = carried.get(r["position"], 0.0) + r["probability"] * abs(r["value"])
    kept = set(sorted(carried, key=lambda position: -carried[position])[:top])
    return [r for r in records if r["position"] in kept]


def _pairs(decomposition: Decomposition) -> tuple[list[Record], int]:
    """The strongest pairs, as far as the budget goes, and how many are left out."""
    family, schema = decomposition.family, decomposition.schema
    strength = absolute_norms(family, decomposition.values).sum(axis=1)
    numbers = [s for s, subset in enumerate(family.subsets) if len(subset) == 2]
    numbers.sort(key=lambda s: -strength[s])
    shown: list[Record] = []
    spent = 0
    for s in numbers[:PAIRS]:
        first, second = schema.names(family.subsets[s])
        records = pair_records(decomposition, first, second, PAIR_LEVELS)
        spent += len(records)
        if shown and spent > PAIR_NUMBERS:
            break
        levels = [int(family.sizes[i]) for i in family.subsets[s]]
        shown.append(
            {"first": first, "second": second, "levels": levels, "value": float(strength[s]), "records": records}
        )
    return shown, len(numbers) - len(shown)


def _strongest(decomposition: Decomposition) -> tuple[list[Record], int]:
    """The strongest subsets of any order, and how many are left out."""
    family, schema = decomposition.family, decomposition.schema
    norms = absolute_norms(family, decomposition.values)
    order = 1 + np.argsort(-norms[1:].sum(axis=1), kind="stable")
    records = [
        {
            "subset": list(schema.names(family.subsets[s])),
            "order": len(family.subsets[s]),
            "output": output,
            "value": float(norms[s, k]),
        }
        for s in order[:SUBSETS].tolist()
        for k, output in enumerate(schema.outputs)
    ]
    return records, len(order) - SUBSETS


def _significance(decomposition: Decomposition) -> tuple[list[Record], int]:
    """Which effects can be told from zero, as far as that is cheap to compute, and how many lines are left out."""
    if not can_compute(decomposition) or len(decomposition.family.subsets) > TESTS:
        return [], 0
    columns = columns_of(decomposition.significance())
    count, outputs = len(columns["subset"]), decomposition.schema.outputs
    columns.setdefault("output", list(outputs) * count)
    fields = ("subset", "output", "statistic", "df", "p", "q", "significant")
    lines = zip(*(columns[field] for field in fields), strict=True)
    tested = [dict(zip(fields, line, strict=True)) for line in lines]
    shown = [_finite(record) for record in tested if not math.isnan(record["p"])][:SUBSETS]
    return shown, len(tested) - len(shown)


def _networks(decomposition: Decomposition) -> list[Record]:
    outputs = decomposition.schema.outputs if len(decomposition.schema.outputs) <= NETWORKS else (None,)
    found = [(output, *network_records(decomposition, output)) for output in outputs]
    return [{"output": output, "nodes": nodes, "edges": edges} for output, nodes, edges in found]


def _left(count: int, what: str, which: str) -> Iterator[str]:
    if count > 0:
        yield f"{count:,} {what}: {which}."


def _levels_left(effects: list[Record], pairs: list[Record]) -> Iterator[str]:
    long = [e["feature"] for e in effects if e["levels"] > EFFECT_LEVELS]
    if long:
        yield f"Levels of {_listed(long)}: the {EFFECT_LEVELS} that carry most of the effect are shown."
    wide = [f"{p['first']} x {p['second']}" for p in pairs if max(p["levels"]) > PAIR_LEVELS]
    if wide:
        yield f"Levels in {_listed(wide)}: the {PAIR_LEVELS} a side that carry most of the effect are shown."


def _listed(names: Any, limit: int = 8) -> str:
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def _finite(record: Record) -> Record:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
