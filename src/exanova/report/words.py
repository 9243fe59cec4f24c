"""The certificate in words: the questions a reader asks of a decomposition, each with its answer and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exanova.decomposition import Decomposition
from exanova.effects.certificate import Certificate
from exanova.report.rows import ShownRows
from exanova.show.records import Record, legible
from exanova.typing import FloatArray

FALLS = 0.05
"""Loss of R2 on held-out rows that a reader is told of."""

MOST = 3
"""Features named in the headline."""

CROWDED = 0.5
"""Functions per distinct row from which a good fit on those rows says little about others."""


@dataclass(frozen=True)
class Verdict:
    """One question about the decomposition.

    Attributes:
        question: what a reader asks.
        answer: a word or a number.
        good: whether the reader may rest; ``None`` where the answer is neither good nor bad.
        because: what was measured.
    """

    question: str
    answer: str
    good: bool | None
    because: str


def verdicts(decomposition: Decomposition) -> list[Verdict]:
    """The answers that the certificate of a decomposition gives."""
    certificate, outputs = decomposition.certificate, decomposition.schema.outputs
    rows = decomposition.plan.distinct_rows
    found = [
        _exact(certificate),
        _unique(certificate, decomposition.ties),
        _left(certificate, outputs, decomposition.order),
    ]
    if certificate.r2_eval is not None:
        found.append(_held_out(certificate, certificate.r2_eval, outputs))
    elif not certificate.saturated and certificate.rank > CROWDED * rows:
        found.append(_crowded(certificate, rows))
    return found


def headline(importance: Sequence[Record], strongest: Sequence[Record]) -> str:
    """What matters most: the first features and the strongest interaction, all outputs together.

    >>> headline([{"feature": "a", "value": 2.0}, {"feature": "b", "value": 0.0}], [])
    'Of 2 features, a matters most.'
    """
    total: dict[str, float] = {}
    for record in importance:
        total[record["feature"]] = total.get(record["feature"], 0.0) + abs(record["value"])
    first = [legible(name) for name, value in total.items() if value > 0][:MOST]
    if not first:
        return "No feature has an effect: the model is constant on these rows."
    named = first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
    together = next((r["subset"] for r in strongest if r["order"] > 1 and r["value"] > 0), None)
    matters = "matters" if len(first) == 1 else "matter"
    interaction = f"; the strongest interaction is {' × '.join(map(legible, together))}" if together else ""
    return f"Of {len(total):,} features, {named} {matters} most{interaction}."


def redundancy_in_words(certificate: Certificate) -> str:
    """What redundancy among subsets means here, or why there is none to tell of."""
    if certificate.redundant:
        return (
            "On these rows the subsets below say, in part, the same as others do. The sum of their effects is certain; "
            "how it is divided among them is a convention."
        )
    if certificate.unique:
        return "There is none: on these rows no subset of features can say what others say."
    if certificate.unique is None:
        return f"Not determined: the {certificate.route} route does not look for it."
    return "Some functions can be expressed by others on these rows; between which subsets was not recorded."


def rows_in_words(shown: ShownRows | None, saturated: bool) -> str:
    """Which rows the explorer has, and what the steps of a row add up to; or why it has none."""
    if shown is None:
        return (
            "There are no rows to explore: a decomposition that was read from a file holds none. "
            "Give a table to choose from: report(path, X=table)."
        )
    count, total = len(shown.rows), shown.total
    whose = "rows given, numbered from 0" if shown.given else "distinct rows of the fit"
    which = (
        f"All {total:,} {whose}." if count == total else f"{count:,} of {total:,} {whose}, spread over the predictions."
    )
    if shown.explanation.residual is not None:
        return f"{which} The steps of a row lead from the mean to the model, with what the effects leave as one step."
    if saturated:
        return f"{which} The steps of a row lead from the mean to the model."
    return (
        f"{which} The steps of a row lead from the mean to the fitted part; what that leaves of the model at a row "
        "is known only with the model: report(path, X=table, model=model)."
    )


def _exact(certificate: Certificate) -> Verdict:
    if not certificate.exact:
        return Verdict("Is it exact?", "No", False, f"{_sentence('; '.join(certificate.notes))}")
    return Verdict(
        "Is it exact?",
        "Yes",
        True,
        "Every effect has conditional mean zero given any subset of its features (largest deviation: "
        f"{certificate.orthogonality:.1e} of the model's spread). All checks are within tolerance.",
    )


def _unique(certificate: Certificate, ties: str) -> Verdict:
    question = "Is it unique?"
    if certificate.unique is None:
        return Verdict(
            question,
            "Not determined",
            None,
            f"The {certificate.route} route does not determine the rank of the {certificate.n_functions:,} functions.",
        )
    if certificate.unique:
        return Verdict(
            question,
            "Yes",
            True,
            f"The {certificate.n_functions:,} functions are linearly independent on these rows: no other effects of "
            "the same subsets are orthogonal in this way and have the same sum.",
        )
    settled = (
        "the effects shown have the least total energy, so that such subsets share evenly"
        if ties == "share"
        else "what several subsets can express goes to the first of them"
    )
    return Verdict(
        question,
        "No",
        None,
        f"Some subsets carry the same information on these rows (rank {certificate.rank:,} of "
        f"{certificate.n_functions:,} functions). Their combined effect is determined; how it is split among them is a "
        f"convention: {settled} (ties='{ties}').",
    )


def _left(certificate: Certificate, outputs: tuple[str, ...], order: int) -> Verdict:
    question = "What is left in the residual?"
    noise = _within(certificate)
    if certificate.saturated and not certificate.within_variance.any():
        return Verdict(
            question,
            "Nothing",
            certificate.exact,
            "The effects can express every function on these rows, and add up to the model to "
            f"{certificate.reconstruction:.1e} of the model's spread.{noise}",
        )
    reason = (
        "of the variance lies inside rows that are equal once encoded, where no effect can reach it."
        if certificate.saturated
        else f"of the variance, which the effects of up to {_features(order)} kept here do not explain. It is "
        "orthogonal to all of them."
    )
    explained = f"They explain R² = {_numbers(certificate.r2, outputs)}."
    return Verdict(question, _spread(1.0 - certificate.r2, outputs), None, f"{reason} {explained}{noise}")


def _held_out(certificate: Certificate, held: FloatArray, outputs: tuple[str, ...]) -> Verdict:
    low, high = f"{held.min():.4f}", f"{held.max():.4f}"
    worst = f", the lowest for the output {legible(outputs[int(np.argmin(held))])}" if len(held) > 1 else ""
    falls = bool((certificate.r2 - held).max() > FALLS)
    less = " That is less than on the rows of the fit, which the effects describe better than others." if falls else ""
    return Verdict(
        "Does it hold on other rows?",
        f"R² = {low}" if low == high else f"R² = {low} to {high}",
        False if held.min() < 0 else None,
        f"on rows that were held out of the fit{worst}.{less}",
    )


def _crowded(certificate: Certificate, rows: int) -> Verdict:
    return Verdict(
        "Does it hold on other rows?",
        "Not known",
        None,
        f"{certificate.rank:,} independent functions were fitted on {rows:,} distinct rows, so that a good fit on "
        "those rows says little about others. Fit with eval_set= to know.",
    )


def _within(certificate: Certificate) -> str:
    if certificate.within_variance.max(initial=0.0) <= 0:
        return ""
    return (
        " Equal rows were given different values; their mean was decomposed, and no function of the inputs says more."
    )


def _numbers(values: FloatArray, outputs: tuple[str, ...]) -> str:
    """A number, or the range over several outputs with the names of its ends."""
    if len(values) == 1:
        return f"{values[0]:.4f}"
    low, high = int(np.argmin(values)), int(np.argmax(values))
    ends = (f"{values[k]:.4f} (output {legible(outputs[k])})" for k in (low, high))
    return " to ".join(ends)


def _spread(share: FloatArray, outputs: tuple[str, ...]) -> str:
    percent = [_percent(v) for v in (share.min(), share.max())]
    return percent[0] if len(outputs) == 1 or percent[0] == percent[1] else f"{percent[0]} to {percent[1]}"


def _percent(share: float) -> str:
    """A share as a percentage that never rounds something to nothing, or to all.

    >>> _percent(0.123), _percent(1e-9), _percent(0.0)
    ('12.3 %', 'less than 0.1 %', '0 %')
    """
    if share <= 0:
        return "0 %"
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def _features(order: int) -> str:
    return "one feature" if order == 1 else f"{order} features"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
