"""A decomposition as tables for a paper: Markdown, or LaTeX with booktabs to be read by ``\\input``.

Numbers have four digits, and a standard error in parentheses beside them; rounding is shown as 0. Of many effects only
the strongest are shown, and a sentence gives the number left out; workbooks, folders and JSON have everything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.effect import GAME, Effect
from exanova.effects.norms import absolute_norms
from exanova.export.contents import Sheet, known_errors, provenance_facts, subset_name, tariff_of_export, tariff_sheets
from exanova.progress import Progress
from exanova.show.error_bars import cell_errors
from exanova.show.records import importance_records, legible, rounding

EFFECTS, LINES = 40, 60
"""Largest numbers of effects, and of lines of each; a sentence says how many more are left out."""

ACROSS = 10
"""Levels of the second feature up to which a pair is a matrix and not a list."""


@dataclass(frozen=True)
class TypesetTable:
    """One table: a caption, a header, lines of text, and how many columns at the left are names."""

    caption: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    names: int = 1


def to_markdown(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> bytes:
    """Headings and tables in Markdown."""
    parts = ["# Functional ANOVA", f"Every number belongs to this game: {GAME}.", known_errors(decomposition)]
    for block in _blocks(decomposition, progress):
        parts += [f"## {in_markdown(block.caption)}", _markdown_table(block)]
    parts += [in_markdown(sentence) for sentence in _left_out(decomposition)]
    facts = [f"- {in_markdown(name)}: {in_markdown(value)}" for name, value in provenance_facts(decomposition, about)]
    return ("\n\n".join([*parts, "## Provenance", "\n".join(facts)]) + "\n").encode("utf-8", "replace")


LAST_OF_PDFLATEX = 0x17F
"""The last character that pdfLaTeX knows without further packages: the end of Latin Extended-A."""


def to_latex(decomposition: Decomposition, about: Mapping[str, str], progress: Progress) -> bytes:
    r"""Floating tables in LaTeX, which need ``\usepackage{booktabs}``; the provenance is in comments."""
    comments = [
        "Tables of a functional ANOVA; read this file with \\input. Needed: \\usepackage{booktabs}",
        f"Game: {GAME}",
        *(f"{name}: {value}" for name, value in provenance_facts(decomposition, about)),
        *_left_out(decomposition),
    ]
    tables = [_latex_table(block) for block in _blocks(decomposition, progress)]
    if any(ord(character) > LAST_OF_PDFLATEX for table in tables for character in table):
        comments.insert(1, "Some names need XeLaTeX or LuaLaTeX, and a font that has their characters")
    parts = ["\n".join(f"% {one_line(comment)}" for comment in comments), *tables]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace")


def _blocks(decomposition: Decomposition, progress: Progress) -> Iterator[TypesetTable]:
    yield _fit(decomposition)
    yield _importance(decomposition)
    yield from _tariff(decomposition)
    for names in _strongest(decomposition):
        yield from _effect(decomposition, decomposition.effects[names])
        progress.step()


def _fit(decomposition: Decomposition) -> TypesetTable:
    c, outputs = decomposition.certificate, decomposition.schema.outputs
    other = [""] * len(outputs) if c.r2_eval is None else [number(value) for value in c.r2_eval.tolist()]
    lines = [
        (output, number(mean), number(r2), elsewhere)
        for output, mean, r2, elsewhere in zip(
            outputs, decomposition.intercept.tolist(), c.r2.tolist(), other, strict=True
        )
    ]
    return TypesetTable("Fit", ("output", "mean", "R2", "R2 on other rows"), tuple(lines))


def _importance(decomposition: Decomposition) -> TypesetTable:
    outputs, zero = decomposition.schema.outputs, rounding(decomposition)
    by_feature: dict[str, dict[str, str]] = {}
    for record in importance_records(decomposition):
        by_feature.setdefault(record["feature"], {})[record["output"]] = number(record["value"], record["stderr"], zero)
    lines = [(feature, *(values[output] for output in outputs)) for feature, values in by_feature.items()]
    return TypesetTable(
        "Importance of the features: E|f| of every effect, divided among its features",
        ("feature", *outputs),
        tuple(lines),
    )


def _tariff(decomposition: Decomposition) -> Iterator[TypesetTable]:
    """Relativities with their intervals, one table per output, and their loss; nothing without a link."""
    tariff = tariff_of_export(decomposition)
    if tariff is None:
        return
    factors, *loss = (_lines_of(sheet) for sheet in tariff_sheets(tariff))
    header = ("factor", "level", "exposure", "relativity", "95 % interval")
    notes = "".join(f"; {note}" for note in tariff.notes)
    for output in tariff.names:
        named = "" if decomposition.schema.single else f", output {output}"
        own = [line for line in factors if line["output"] == output][:LINES]
        lines = [
            (cell["factor"], cell["level"], _known(cell["exposure"]), _known(cell["relativity"]), _interval(cell))
            for cell in own
        ]
        yield TypesetTable(f"Tariff{named}: relativities against base levels{notes}", header, tuple(lines), 2)
    for of in loss:
        found = ("deviance", "explained", "gini", "gini_share")
        lines_of = [(line["output"], str(line["order"]), *(_known(line[name]) for name in found)) for line in of]
        title = "Loss of a tariff of factors up to each order"
        yield TypesetTable(title, ("output", "order", *(name.replace("_", " ") for name in found)), tuple(lines_of))


def _lines_of(sheet: Sheet) -> list[dict[str, Any]]:
    return [dict(zip(sheet.columns, line, strict=True)) for line in zip(*sheet.columns.values(), strict=True)]


def _known(value: float | None) -> str:
    return "" if value is None else number(value)


def _interval(cell: Mapping[str, Any]) -> str:
    return "" if cell["base"] or cell["low"] is None else f"{number(cell['low'])} to {number(cell['high'])}"


def _strongest(decomposition: Decomposition) -> list[tuple[str, ...]]:
    """Subsets of the strongest effects, in canonical order."""
    norms = absolute_norms(decomposition.family, decomposition.values)[1:].sum(axis=1)
    chosen = np.sort(1 + np.argsort(-norms, kind="stable")[:EFFECTS])
    return [decomposition.schema.names(decomposition.family.subsets[s]) for s in chosen.tolist()]


def _effect(decomposition: Decomposition, effect: Effect) -> Iterator[TypesetTable]:
    """The table of an effect, or of a pair one matrix per output."""
    family, labels = decomposition.family, decomposition.schema.labels
    members = family.subsets[effect.number]
    texts = _texts(decomposition, effect)
    title = f"Effect of {subset_name(effect.features)}{_doubt(effect)}"
    if len(members) == 2 and len(labels[members[1]]) <= ACROSS:
        rows, columns = labels[members[0]][:LINES], labels[members[1]]
        places = family.codes_of(effect.number).T.tolist()
        for k, output in enumerate(effect.output_names):
            cells = {(i, j): texts[c][k] for c, (i, j) in enumerate(places)}
            lines = [(row, *(cells.get((i, j), "") for j in range(len(columns)))) for i, row in enumerate(rows)]
            named = "" if decomposition.schema.single else f", output {output}"
            yield TypesetTable(f"{title}{named}", (subset_name(effect.features), *columns), tuple(lines))
        return
    shares = [f"{100 * p:.4g}" for p in effect.probability.tolist()]
    lines = [(*levels, share, *text) for levels, share, text in zip(effect.levels, shares, texts, strict=True)]
    header = (*effect.features, "% of rows", *decomposition.schema.value_columns)
    yield TypesetTable(title, header, tuple(lines[:LINES]), len(members))


def _texts(decomposition: Decomposition, effect: Effect) -> list[list[str]]:
    """Values with their standard errors, one list per cell."""
    errors, zero = cell_errors(decomposition, effect).stderr.tolist(), rounding(decomposition)
    return [
        [number(value, error, zero) for value, error in zip(values, own, strict=True)]
        for values, own in zip(effect.values.tolist(), errors, strict=True)
    ]


def _doubt(effect: Effect) -> str:
    return " (not identified: other subsets can express part of it)" if not effect.has_stderr else ""


def _left_out(decomposition: Decomposition) -> Iterator[str]:
    effects = len(decomposition.family.subsets) - 1
    if effects > EFFECTS:
        yield f"{effects - EFFECTS:,} effects are not shown: the weakest."
    sizes = decomposition.family.cell_start[1:] - decomposition.family.cell_start[:-1]
    tariff = 1 + int(sizes[1:].sum()) if decomposition.link != "identity" else 0
    if (sizes > LINES).any() or tariff > LINES:
        yield f"Of tables with more than {LINES} lines the first {LINES} are shown."


def number(value: float, stderr: float | None = None, zero: float = 0.0) -> str:
    """A number with four digits, and its standard error with two.

    >>> number(0.123456), number(0.123456, 0.0123), number(1e-17, None, 1e-12)
    ('0.1235', '0.1235 (0.012)', '0')
    """
    if not math.isfinite(value):
        return ""
    text = "0" if abs(value) <= zero else f"{value:.4g}"
    if stderr is None or not math.isfinite(stderr):
        return text
    return f"{text} (0)" if stderr <= zero else f"{text} ({stderr:.2g})"


def one_line(text: str) -> str:
    """Text without line breaks and control characters."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text)


def in_markdown(text: str) -> str:
    r"""Text that Markdown shows unchanged.

    >>> in_markdown("a|b <i>*x*")
    'a\\|b &lt;i&gt;\\*x\\*'
    """
    shown = legible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", shown)


LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "-": "{-}",
    "`": r"{\char96}",
    "'": r"{\char39}",
    "[": "{[}",
    "]": "{]}",
}
"""Characters that mean something to LaTeX, or join with their neighbours, and how they are written."""


def in_latex(text: str) -> str:
    r"""Text that LaTeX typesets unchanged.

    >>> in_latex("a_b & 50 %")
    'a\\_b \\& 50 \\%'
    """
    return "".join(LATEX.get(character, character) for character in one_line(legible(text)))


def _markdown_table(block: TypesetTable) -> str:
    rule = ["---"] * block.names + ["---:"] * (len(block.header) - block.names)
    named = [(*map(in_markdown, line[: block.names]), *line[block.names :]) for line in block.lines]
    lines = [map(in_markdown, block.header), rule, *named]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _latex_table(block: TypesetTable) -> str:
    columns = "l" * block.names + "r" * (len(block.header) - block.names)
    lines = [_latex_line(line, block.names) for line in block.lines]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{in_latex(block.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_line(block.header, len(block.header)),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_line(cells: Sequence[str], names: int) -> str:
    """Names as text, numbers in mathematics, where a minus is one."""
    written: list[str] = [in_latex(cell) if k < names else _in_mathematics(cell) for k, cell in enumerate(cells)]
    return " & ".join(written) + r" \\"


def _in_mathematics(text: str) -> str:
    power: Callable[[re.Match[str]], str] = lambda match: rf" \cdot 10^{{{int(match.group(1))}}}"  # noqa: E731
    return f"${re.sub(r'e([+-]?[0-9]+)', power, text)}$" if text else ""
