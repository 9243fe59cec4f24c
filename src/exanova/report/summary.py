"""``Summary``: the content of a report as plain values, from which JSON, Markdown and HTML are made.

Names of features, levels and outputs are only ever values, never keys. What exceeds the limits of a report is left out,
the weakest first, and ``left_out`` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from typing import Any

from exanova.decomposition import Decomposition
from exanova.effects.effect import FEW_ROWS, GAME
from exanova.progress import Progress
from exanova.report import sections
from exanova.report.cohort_errors import CohortErrors, cohort_errors
from exanova.report.contrasts import change, contrasts
from exanova.report.covariances import LiveErrors, errors_note, live_errors
from exanova.report.errors_at_rows import ErrorsAtRows, errors_at_rows
from exanova.report.explorer import GivenRows, ShownRows, rows_left_out, rows_to_show, sample_records
from exanova.report.facts import facts, fit, provenance
from exanova.report.findings import findings, headline, shown_output
from exanova.report.glossary import GLOSSARY
from exanova.report.live import LiveEffects, live_effects
from exanova.report.live_rows import LiveRows, live_rows
from exanova.report.rating import tariff
from exanova.report.row_reasons import reasons
from exanova.report.words import redundancy_in_words, rows_in_words, verdicts
from exanova.show.error_bars import ERRORS_WORK, compute_errors, errors_in_words, importance_notes
from exanova.show.records import Record, certificate_records, importance_records, rounding

TITLE = "Functional ANOVA report"


@dataclass(frozen=True, eq=False)
class Live:
    """The data that a page draws and computes with.

    Attributes:
        effects: effects on cells.
        few: rows below which a cell is faded; ``None`` for a complete population.
        outputs: names of the outputs as they are shown.
        rows: rows that the page explains itself; ``None`` without rows, or where it does not hold all effects.
        errors: covariances of effects, for error bars at rows; ``None`` where they are unknown or too many.
        at_rows: standard errors at rows of the page, where covariances do not give all of them.
        cohorts: standard errors of differences between groups of rows.
        errors_note: what error bars there are at rows, or why there are none.
        link: the function of the output that was decomposed.
    """

    effects: LiveEffects
    few: int | None
    outputs: list[str]
    rows: LiveRows | None
    errors: LiveErrors | None
    at_rows: ErrorsAtRows | None
    cohorts: CohortErrors
    errors_note: str
    link: str


@dataclass(frozen=True)
class Summary:
    """The content of a report; every field is made of lists, dictionaries, texts and numbers.

    A number that is not finite is ``None``.

    Attributes:
        title: of the report.
        headline: what matters most, in a sentence.
        findings: what the model does, in plain words and in units of its output, a paragraph per output.
        game: the game every number belongs to.
        outputs: names of the outputs.
        facts: ``name``, ``value``, ``of`` ("data" or "computed"): what was explained, and how it was computed.
        verdicts: ``question``, ``answer``, ``good``, ``because``, ``care``: the certificate in words.
        fit: a record per output: ``mean``, ``r2``, ``mse``, ``relative_mse``, ``within_variance``, and ``r2_held_out``,
            ``mse_held_out`` (``None`` where no rows were held out).
        certificate: what was measured against its tolerance, see ``certificate_records``.
        importance_kind: what ``importance`` measures: "l1", or "variance" (net shares) where effects cancel.
        importance: ``feature``, ``output``, ``value``, ``stderr``, the largest first.
        importance_notes: what its error bars are, or why there are none.
        errors: the same of effects.
        significance: ``subset``, ``output``, ``statistic``, ``df``, ``p``, ``q``, ``significant``: which effects differ
            from zero, the clearest first; empty where that is unknown or not cheap to compute.
        strongest: ``subset``, ``order``, ``output``, ``value`` = E|f_A|, the strongest subset first.
        effects: ``feature``, ``levels`` (how many there are), ``identified``, ``small`` (next to nothing), ``records``;
            the most important feature first.
        small_effects: one line that names the small ones.
        pairs: ``first``, ``second``, ``levels``, ``value`` = E|f| over all outputs, ``records``; the strongest first.
        higher: ``subset``, ``cells`` (how many there are), ``share`` (of E|f| in the cells listed), ``records``: the
            strongest effects of three or more features with the cells that carry most of each.
        networks: ``output`` (``None``: all of them), ``nodes``, ``edges``.
        groups: ``by``, ``included``, ``notes``, ``contrasts``: why groups of rows differ; each contrast has ``group``,
            ``against``, ``rows``, ``means``, ``words`` (per output) and ``records`` (``output``, ``part``, ``value``,
            ``stderr``). ``None`` where no column of groups was given.
        change: ``words`` (per output), ``included``, ``notes`` and ``records`` (``output``, ``part``, ``mix``,
            ``mix_stderr``, ``model``, ``model_stderr``): why the mean changed; ``None`` without an earlier fit.
        domains: ``members`` (``group``, ``features``) and ``records`` (``group``, ``output``, ``value``, ``stderr``):
            importances of groups of features; ``None`` where none were given.
        reasons: for the lowest and the highest rows of each output, ``output``, ``direction``, ``title``, ``notes`` and
            ``rows``, each with ``row``, ``id``, ``fitted``, ``compared``, ``residual``, ``outside`` and ``reasons``.
        tariff: under a link, ``base``, ``base_values``, ``words`` (per output), ``notes``, ``factors`` (``subset``,
            ``cells``, ``records``) and ``losses``; ``None`` without one.
        glossary: ``term``, ``meaning``.
        redundancy: ``subset``, ``shared_with``.
        redundancy_note: the meaning of redundancy, or why there is none.
        sample: rows with their levels, Shapley values and waterfalls; ``None`` if there are no rows.
        sample_note: which rows those are, or why there are none.
        provenance: ``name``, ``value``: version, date, settings, rows and hashes of the fit; empty where not recorded.
        rounding: the size below which an effect is zero up to rounding.
        left_out: sentences, one for each thing that was left out.
        live: the effects and rows as arrays, for the page; not part of the JSON.
    """

    title: str
    headline: str
    findings: list[str]
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
    small_effects: str
    pairs: list[Record]
    higher: list[Record]
    networks: list[Record]
    groups: Record | None
    change: Record | None
    domains: Record | None
    reasons: list[Record]
    tariff: Record | None
    glossary: list[Record]
    redundancy: list[Record]
    redundancy_note: str
    sample: Record | None
    sample_note: str
    provenance: list[Record]
    rounding: float
    left_out: list[str]
    live: Live

    @property
    def read_first(self) -> list[Record]:
        """The cards above everything else: whether the fit holds on other rows, and what calls for care."""
        first, *others = self.verdicts
        return [first, *(v for v in others if v["good"] is False or v["care"])]

    def to_json(self) -> str:
        """The complete summary."""
        content = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "live"}
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"


def summarise(
    decomposition: Decomposition,
    given: GivenRows | None = None,
    *,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
    **rows: Any,
) -> Summary:
    """The content of a report about a fitted decomposition.

    Args:
        decomposition: the decomposition.
        given: rows the explorer may choose from, the model, and further options.
        title: of the report.
        about: further facts to show, such as where the data come from.
        rows: in place of ``given``, what it is made of: ``X``, ``model`` and so on.
    """
    with closing(Progress(decomposition.settings.verbose)) as progress:
        return _summarise(decomposition, given or GivenRows(**rows), title or TITLE, about or {}, progress)


def _summarise(
    decomposition: Decomposition, given: GivenRows, title: str, about: Mapping[str, str], progress: Progress
) -> Summary:
    certificate = decomposition.certificate
    progress.phase("report: standard errors")
    refused = compute_errors(decomposition, ERRORS_WORK)
    progress.phase("report: importances")
    kind = "variance" if certificate.cancels else "l1"
    importance = importance_records(decomposition, kind)
    shown = _limited(decomposition, given, list(dict.fromkeys(r["feature"] for r in importance)), progress)
    return Summary(
        title=title,
        headline=headline(importance, shown.strongest, certificate.holds),
        findings=findings(decomposition, importance),
        game=GAME,
        outputs=list(decomposition.schema.outputs),
        facts=facts(decomposition, about),
        verdicts=[asdict(answer) for answer in verdicts(decomposition)],
        fit=[sections.finite(record) for record in fit(decomposition)],
        certificate=[sections.finite(record) for record in certificate_records(certificate)],
        importance_kind=kind,
        importance=importance,
        importance_notes=importance_notes(decomposition, importance, refused),
        errors=errors_in_words(decomposition, refused),
        significance=shown.significance,
        strongest=shown.strongest,
        effects=shown.effects,
        small_effects=sections.small_effects_in_words(shown.effects),
        pairs=shown.pairs,
        higher=shown.higher,
        networks=sections.networks(decomposition) if shown.pairs else [],
        groups=shown.groups,
        change=change(decomposition, given.since),
        domains=sections.domains(decomposition, given, kind),
        reasons=reasons(decomposition, given),
        tariff=shown.tariff,
        glossary=[{"term": term, "meaning": meaning} for term, meaning in GLOSSARY.values()],
        redundancy=_redundancy(decomposition),
        redundancy_note=redundancy_in_words(certificate),
        sample=None if shown.rows is None else sample_records(shown.rows),
        sample_note=rows_in_words(shown.rows, certificate.saturated),
        provenance=provenance(decomposition),
        rounding=rounding(decomposition),
        left_out=[*_left_out(decomposition, shown)],
        live=_live(decomposition, [*_names(shown.effects, shown.pairs)], given, progress),
    )


@dataclass(frozen=True, eq=False)
class _Limited:
    """The sections that have a limit, and how many entries each of them leaves out, in ``without``, by its name."""

    effects: list[Record]
    pairs: list[Record]
    higher: list[Record]
    strongest: list[Record]
    significance: list[Record]
    rows: ShownRows | None
    groups: Record | None
    tariff: Record | None
    without: Mapping[str, int]


def _limited(decomposition: Decomposition, given: GivenRows, by_importance: list[str], progress: Progress) -> _Limited:
    without: dict[str, int] = {}
    effects, others = sections.main_effects(decomposition, by_importance, progress)
    without["effects"] = len(others)
    progress.phase("report: interactions")
    pairs, without["pairs"] = sections.pairs(decomposition)
    higher, without["higher"] = sections.higher_effects(decomposition)
    strongest, without["strongest"] = sections.strongest(decomposition)
    progress.phase("report: which effects differ from zero")
    significance, without["significance"] = sections.significance(decomposition)
    progress.phase("report: rows")
    rows = rows_to_show(decomposition, given)
    groups, without["groups"] = contrasts(decomposition, given)
    rating, without["factors"], without["cells"] = tariff(decomposition, given.base)
    return _Limited(effects, pairs, higher, strongest, significance, rows, groups, rating, without)


def _left_out(decomposition: Decomposition, shown: _Limited) -> Iterator[str]:
    """One sentence for each section that leaves something out."""
    left, without = sections.left, shown.without
    small = sections.small_interactions(decomposition)
    redundant = len(decomposition.certificate.redundant) - sections.REDUNDANT
    yield from left(without["effects"], "main effect", "the least important")
    yield from left(without["pairs"], "pair", "the weakest")
    yield from left(small, "interaction", "zero, or less than 0.1 % of the largest effect")
    yield from left(without["higher"], "interaction", "the weakest", "of three or more features")
    yield from left(without["strongest"], "subset", "the weakest", "in the list of the strongest")
    yield from left(without["significance"], "line", "the least clear", "in the table of effects that differ from zero")
    yield from left(redundant, "redundant subset", "the last in canonical order")
    yield from sections.levels_left(shown.effects, shown.pairs)
    yield from left(without["groups"], "pair", "the last", "of groups")
    yield from left(without["factors"], "factor", "the weakest", "of the tariff")
    yield from left(without["cells"], "cell", "the least exposure", "of factors")
    yield from rows_left_out(shown.rows)


def _redundancy(decomposition: Decomposition) -> list[Record]:
    """The first redundant subsets, and what they share with."""
    return [
        {"subset": list(r.features), "shared_with": [list(s) for s in r.shared_with]}
        for r in decomposition.certificate.redundant[: sections.REDUNDANT]
    ]


def _names(effects: list[Record], pairs: list[Record]) -> Iterator[tuple[str, ...]]:
    """The subsets that are drawn."""
    yield from ((effect["feature"],) for effect in effects)
    yield from ((pair["first"], pair["second"]) for pair in pairs)


def _live(decomposition: Decomposition, names: list[tuple[str, ...]], given: GivenRows, progress: Progress) -> Live:
    place = {name: i for i, name in enumerate(decomposition.schema.features)}
    drawn = [decomposition.family.position[tuple(sorted(place[name] for name in subset))] for subset in names]
    few = FEW_ROWS if decomposition.certificate.sampled else None
    outputs = [shown_output(decomposition, k) for k in range(len(decomposition.schema.outputs))]
    effects = live_effects(decomposition, drawn)
    rows = live_rows(decomposition, given) if effects.is_complete else None
    progress.phase("report: standard errors at rows")
    codes = None if rows is None else rows.codes
    errors = live_errors(decomposition, codes) if effects.is_complete else None
    at_rows = None if codes is None or (errors and errors.exact) else errors_at_rows(decomposition, codes)
    cohorts = cohort_errors(decomposition, rows, progress)
    note = errors_note(decomposition, errors, 0 if at_rows is None else len(at_rows.rows))
    return Live(effects, few, outputs, rows, errors, at_rows, cohorts, note, decomposition.link)
