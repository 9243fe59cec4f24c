"""Results in notebooks: small HTML tables, escaped, without scripts and without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.certificate import Certificate
from exanova.effects.certificate_text import described
from exanova.effects.effect import GAME, Effect, Effects
from exanova.effects.norms import strongest_first
from exanova.explain.comparison import Comparison
from exanova.explain.explanation import Explanation
from exanova.printed_numbers import plus_minus, printed, printed_change
from exanova.report.words import verdicts
from exanova.show.error_bars import can_compute
from exanova.show.records import columns_of, legible
from exanova.typing import FloatArray

EFFECTS, CELLS, ROWS, FEATURES, OUTPUTS, CHANGES = 10, 20, 5, 12, 6, 10
"""Effects, cells of one, rows, features, outputs and changes that are shown; tables of the results have all."""

COLOURS = {"good": "#1d6b3a", "bad": "#a3261b", "care": "#8a5a00"}
"""Colours of answers that are good, bad, or call for care; the words show the same."""

CELL = "text-align:left;padding:2px 8px"


def decomposition_html(decomposition: Decomposition) -> str:
    """The certificate in words and the strongest effects."""
    answers = []
    for v in verdicts(decomposition):
        kind = "good" if v.good else "bad" if v.good is False else "care" if v.care else ""
        colour = f' style="color:{COLOURS[kind]}"' if kind else ""
        because = escape(legible(v.because))
        answers.append(f"<li>{escape(v.question)} <b{colour}>{escape(legible(v.answer))}</b> {because}</li>")
    kind = "variance" if decomposition.certificate.cancels else "l2"
    title = "net share of the variance" if kind == "variance" else "squared norm"
    return _page(
        f"Functional ANOVA of {_counted(len(decomposition.schema.outputs), 'output')}, "
        f"{_counted(len(decomposition.schema.features), 'feature')}",
        f"<ul>{''.join(answers)}</ul>",
        _table(["strongest effects", title], _strongest(decomposition, kind)),
        _more(len(decomposition.family.subsets) - 1 - EFFECTS, "effects"),
    )


def effect_html(effect: Effect) -> str:
    """The cells of an effect with their share of rows, rows, values and, where cheap, standard errors."""
    outputs = effect.output_names[:OUTPUTS]
    errors = effect.stderr if effect.knowledge is not None and effect.knowledge.cheap else None
    rows = None if effect.knowledge is None else effect.rows
    titles = [*effect.features, "share of rows", "rows", *(["value"] if len(outputs) == 1 else outputs)]
    lines = [
        [
            *levels,
            f"{100 * effect.probability[c]:.3g} %",
            "" if rows is None or np.isnan(rows[c]) else f"{rows[c]:,.6g}",
            *_values(effect.values[c, : len(outputs)], None if errors is None else errors[c]),
        ]
        for c, levels in enumerate(effect.levels[:CELLS])
    ]
    name = " x ".join(map(legible, effect.features)) or "intercept"
    more = _more(len(effect.levels) - CELLS, "cells"), _more(len(effect.output_names) - OUTPUTS, "outputs")
    return _page(f"Effect of {name}", _table(titles, lines), *more)


def explanation_html(explanation: Explanation) -> str:
    """Shapley values of the first rows, one column per feature and one line per row and output."""
    names, outputs = explanation.feature_names, explanation.output_names[:OUTPUTS]
    n, m = int(np.size(explanation.outside)), len(explanation.output_names)
    values = np.reshape(explanation.values, (n, len(names), m))
    base = np.reshape(explanation.base_values, (n, m))
    levels = np.reshape(explanation.display_cells, (n, len(names)))
    shown = names[:FEATURES]
    several = m > 1
    lines = []
    for k in range(min(n, ROWS)):
        for o, output in enumerate(outputs):
            texts = [f"{printed_change(values[k, i, o])} ({legible(str(levels[k, i]))})" for i in range(len(shown))]
            lines.append([str(k), *([output] if several else []), f"{printed(base[k, o])}", *texts])
    titles = ["row", *(["output"] if several else []), "mean", *shown]
    more = _more(n - ROWS, "rows"), _more(len(names) - FEATURES, "features"), _more(m - OUTPUTS, "outputs")
    return _page(f"Shapley values of {_counted(n, 'row')}", _table(titles, lines), *more)


def effects_html(effects: Effects) -> str:
    """The strongest effects: features, cells, and the largest value of each."""
    norms = {names: float(np.sqrt(effect.probability @ effect.values**2).max()) for names, effect in effects.items()}
    names = sorted((name for name in norms if name), key=lambda name: -norms[name])
    lines = [[" x ".join(n), f"{len(effects[n].levels):,}", f"{printed(norms[n])}"] for n in names[:EFFECTS]]
    title = f"{_counted(len(names), 'effect')}; effects_[names] has each"
    return _page(title, _table(["features", "cells", "size"], lines), _more(len(names) - EFFECTS, "effects"))


def contributions_html(title: str, subsets: Sequence[tuple[str, ...]], values: FloatArray) -> str:
    """Values (n, S) or (n, S, m) of subsets at rows: the largest of the first rows, one line each."""
    n, k = values.shape[:2]
    values = np.reshape(values, (n, k, -1))
    lines = []
    for row in range(min(n, ROWS)):
        order = strongest_first(np.abs(values[row]).max(axis=1))[:FEATURES]
        texts = [f"{' x '.join(subsets[s]) or '(intercept)'}: {_numbers(values[row, s])}" for s in order]
        lines.append([str(row), "; ".join(texts)])
    return _page(title, _table(["row", "largest"], lines), _more(n - ROWS, "rows"))


def certificate_html(certificate: Certificate) -> str:
    """The lines of a certificate."""
    return _page("Certificate", _table(["", ""], [[name, text] for name, text in described(certificate)]))


def answer_html(
    title: str, tables: Iterable[tuple[str, Sequence[str], Iterable[Sequence[str]]]], notes: str = ""
) -> str:
    """An answer to a question: tables, each with its caption and the titles of its columns, and notes."""
    parts = [f"<p>{escape(legible(caption))}</p>{_table(titles, lines)}" for caption, titles, lines in tables]
    return _page(title, *parts, f"<p>{escape(legible(notes))}</p>" if notes else "")


def comparison_html(comparison: Comparison) -> str:
    """The largest changes."""
    lines = [
        [
            " x ".join(map(legible, change.features)) or "(intercept)",
            change.found_in,
            *(_numbers(amount) for amount in (change.norm_before, change.norm_after, change.difference)),
        ]
        for change in comparison.changes[:CHANGES]
    ]
    titles = ["subset", "found in", "before", "after", "difference"]
    more = _more(len(comparison.changes) - CHANGES, "subsets")
    return _page("Largest changes (squared norms)", _table(titles, lines), " ".join([more, *comparison.notes]).strip())


def _strongest(decomposition: Decomposition, kind: str) -> list[list[str]]:
    """Names and amounts of the strongest effects; all outputs side by side."""
    with_errors = can_compute(decomposition)
    columns = columns_of(decomposition.importance(kind, by="subset", stderr=with_errors))
    m = len(decomposition.schema.outputs)
    values = np.reshape(np.asarray(columns["value"], dtype=float), (-1, m))
    errors = np.reshape(np.asarray(columns["stderr"], dtype=float), (-1, m)) if with_errors else None
    written = printed_change if kind == "variance" else printed
    return [
        [
            columns["subset"][s * m],
            "; ".join(_values(values[s, :OUTPUTS], None if errors is None else errors[s], written)),
        ]
        for s in range(min(len(values), EFFECTS))
    ]


def _values(
    values: FloatArray, errors: FloatArray | None, written: Callable[[float], str] = printed_change
) -> list[str]:
    known = np.full(len(values), np.nan) if errors is None else errors
    return [f"{written(v)}{plus_minus(e)}" for v, e in zip(values, known, strict=False)]


def _numbers(values: FloatArray) -> str:
    return ", ".join("" if np.isnan(v) else printed(v) for v in values[:OUTPUTS])


def _table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of text; everything in it is escaped here."""
    head = "".join(f'<th style="{CELL}">{escape(legible(title)) if title else ""}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{escape(legible(text)) if text else ""}</td>' for text in line) + "</tr>"
        for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _page(title: str, *parts: str) -> str:
    """A heading, the parts, and the game."""
    return f"<div><p><b>{escape(title)}</b></p>{''.join(parts)}<p><small>game: {escape(GAME)}</small></p></div>"


def _more(count: int, what: str) -> str:
    return f"<p>and {count:,} more {what}</p>" if count > 0 else ""


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
