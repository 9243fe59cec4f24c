"""The certificate in words: questions about a decomposition, each with its answer and the evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import tolerances
from exanova.decomposition import Decomposition
from exanova.effects.certificate import Certificate
from exanova.effects.certificate_text import MEASURES_IT, what_helps
from exanova.messages import Parameter, Part, Words, count_of, joined, listed
from exanova.report.explorer import ShownRows
from exanova.show.records import legible
from exanova.typing import FloatArray

MOST, FEATURES = 3, 6
"""Groups of features, and outputs that do not hold, that are named, and features of each group."""


@dataclass(frozen=True)
class Verdict:
    """One question about the decomposition.

    Attributes:
        question: what a reader asks.
        answer: a word or a number.
        good: whether the answer is good; ``None`` where it is neither good nor bad.
        because: what was measured.
        care: whether the answer calls for care in reading the effects.
    """

    question: str
    answer: str
    good: bool | None
    because: str
    care: bool = False


def verdicts(decomposition: Decomposition) -> list[Verdict]:
    """The answers of the certificate: first whether the effects are reliable, last how they were computed."""
    certificate, outputs = decomposition.certificate, decomposition.schema.outputs
    answers = [_other_rows(certificate, outputs), _not_explained(certificate, outputs)]
    if decomposition.losses:
        answers.append(_on_the_scale_of_the_output(decomposition))
    if certificate.cancels:
        answers.append(_cancellation(certificate))
    if certificate.near_redundant:
        answers.append(_near_redundant(certificate))
    return [*answers, _unique(certificate, decomposition.ties), _computed(certificate)]


def redundancy_in_words(certificate: Certificate) -> str:
    """The meaning of redundancy among subsets, or why there is none."""
    if certificate.redundant:
        return (
            "On these rows the subsets below carry, in part, the same information as others. Their combined effect is "
            "determined; how it is split among them is a convention."
        )
    if certificate.unique:
        return "There is none: on these rows no subset of features carries the same information as others."
    if certificate.unique is None:
        return f"Not determined: {_not_ranked(certificate)}"
    if not certificate.rank_known:
        return _more_functions_than_rows(certificate)
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
        return f"{which} The steps of a row lead from the mean to the model, with the residual as one step."
    if saturated:
        return f"{which} The steps of a row lead from the mean to the model."
    return (
        f"{which} The steps of a row lead from the mean to the fitted part; the residual at a row is known "
        "only with the model: report(path, X=table, model=model)."
    )


def _other_rows(certificate: Certificate, outputs: tuple[str, ...]) -> Verdict:
    question = "Does it hold on other rows?"
    if not certificate.sampled:
        return Verdict(question, "There are none", True, _sentence(Words(certificate.eval_method)))
    if certificate.r2_eval is None:
        why = f": {certificate.eval_method}" if certificate.eval_method else ""
        because = Words(f"The fit on other rows was not measured{why}. ", Parameter("eval_set", 0.2), " measures it.")
        return Verdict(question, "Not known", None, because, care=True)
    how = certificate.eval_method or "on held-out rows"
    here = f"R² is {_numbers(certificate.r2_eval, outputs)} {how}, {_numbers(certificate.r2, outputs)} on these rows."
    if certificate.holds is None:
        why = certificate.why_unknown.capitalize()
        because = Words(f"{here} {why}, so R² is too optimistic. ", MEASURES_IT, " measures it.")
        return Verdict(question, "Not known", None, because, care=True)
    if certificate.holds:
        if certificate.r2_least is not None:
            least = _numbers(certificate.r2_least, outputs)
            here += f" It is at least {least}, however much noise the selection followed."
        return Verdict(question, "Yes", True, here)
    here += _which_fail(certificate, outputs)
    more = f"{here} The effects describe these rows better than others. More rows"
    remedy = Words(more, what_helps(certificate), " would help.")
    return Verdict(question, "No", False, remedy)


def _which_fail(certificate: Certificate, outputs: tuple[str, ...]) -> str:
    """The outputs for which a fit does not hold, the worst first, where there are several outputs."""
    if len(outputs) == 1:
        return ""
    if len(certificate.failing) == len(outputs):
        return " It holds for no output."
    more = len(certificate.failing) - MOST
    named = ", ".join(legible(outputs[k]) for k in certificate.failing[:MOST])
    return f" It does not hold for {named}{f' and {more:,} more' if more > 0 else ''}; it holds for the others."


def _not_explained(certificate: Certificate, outputs: tuple[str, ...]) -> Verdict:
    question, loss = "What is not explained?", certificate.loss
    lost = np.maximum(1.0 - certificate.r2, 0.0)
    if loss is None or not (lost > tolerances.RECONSTRUCTION).any():
        return Verdict(question, _spread(lost, outputs), None, "The effects add up to the model on these rows.")
    worst = int(np.argmax(lost))
    named = [f"{name} {_percent(share)}" for name, share in loss.named(worst).items()]
    which = f" for {legible(outputs[worst])}" if len(outputs) > 1 else ""
    return Verdict(
        question, _spread(lost, outputs), None, f"Shares of the model's variance{which}: {', '.join(named)}."
    )


def _on_the_scale_of_the_output(decomposition: Decomposition) -> Verdict:
    """What effects on the scale of a link lose of the output itself, for the output that loses most."""
    lost = [1.0 - losses[-1].explained for losses in decomposition.losses]
    worst = int(np.argmax(lost))
    loss = decomposition.losses[worst][-1]
    which = f" for {legible(decomposition.schema.outputs[worst])}" if len(lost) > 1 else ""
    because = (
        f"This is the share of the deviance{which}, with all effects of up to {loss.order} features; ordered by them, "
        f"the rows have {100 * loss.gini_share:.1f} % of the largest Gini index."
    )
    return Verdict("What is lost on the scale of the output?", _percent(lost[worst]), None, because)


def _cancellation(certificate: Certificate) -> Verdict:
    assert certificate.cancellation is not None
    times = float(certificate.cancellation.max())
    because = (
        f"Single effects have {times:.3g} times the variance of their sum, because the features depend on each other. "
        "Read them together: net shares of the variance show what each contributes."
    )
    return Verdict("Do effects cancel?", f"{times:.3g}-fold", None, because, care=True)


def _near_redundant(certificate: Certificate) -> Verdict:
    """Features that can nearly stand in for each other; which of them has an effect depends on few rows."""
    groups = [listed(list(map(legible, group)), FEATURES) for group in certificate.near_redundant[:MOST]]
    more = len(certificate.near_redundant) - len(groups)
    named = "; of ".join(groups) + (f"; and of {count_of(more, 'more group')}" if more else "")
    because = (
        f"The main effects of {named} can nearly express each other, at least in part: some of their levels nearly "
        "always go together. Their combined effect is well determined; how it is split among them is not. Read them "
        "together."
    )
    return Verdict("Can features stand in for each other?", "Nearly", None, because, care=True)


def _computed(certificate: Certificate) -> Verdict:
    question = "Was it computed exactly?"
    if not certificate.exact:
        return Verdict(question, "No", False, _sentence(joined(certificate.notes, "; ")))
    because = (
        "Every effect has conditional mean zero given any subset of its features (largest deviation: "
        f"{certificate.orthogonality:.1e} of the model's spread). All checks are within tolerance."
    )
    return Verdict(question, "Yes", True, because)


def _not_ranked(certificate: Certificate) -> str:
    """Why it is not known whether the effects are unique, and how to find out."""
    how = "A shrunken fit" if certificate.effective_functions else f"The {certificate.route} route"
    return (
        f"{how} does not need the rank of its {certificate.n_functions:,} functions; effect.identified in Python "
        "computes whether the rows determine an effect."
    )


def _more_functions_than_rows(certificate: Certificate) -> str:
    return (
        f"There are {certificate.n_functions:,} functions on {certificate.rank:,} distinct rows: their sum is "
        "determined, how it is split among some of them is a convention."
    )


def _unique(certificate: Certificate, ties: str) -> Verdict:
    question = "Is it unique?"
    if certificate.unique is None:
        return Verdict(question, "Not determined", None, _not_ranked(certificate))
    if certificate.unique:
        return Verdict(
            question,
            "Yes",
            True,
            f"The {certificate.n_functions:,} functions are linearly independent on these rows: no other effects of "
            "the same subsets are orthogonal in this way and have the same sum.",
        )
    if not certificate.rank_known:
        return Verdict(question, "No", None, _more_functions_than_rows(certificate))
    return Verdict(
        question,
        "No",
        None,
        Words(
            f"Some subsets carry the same information on these rows (rank {certificate.rank:,} of "
            f"{certificate.n_functions:,} functions). Their combined effect is determined; how it is split among them "
            "is a convention: ",
            *_convention(certificate, ties),
        ),
    )


def _convention(certificate: Certificate, ties: str) -> tuple[Part, ...]:
    """How subsets share what several of them can express."""
    if certificate.effective_functions:
        return ("shrinkage splits it by the expected variances of the effects.",)
    settled = (
        "the effects shown have the least total energy, so that such subsets share evenly"
        if ties == "share"
        else "what several subsets can express goes to the first of them"
    )
    return settled + " (", Parameter("ties", ties), ")."


def _numbers(values: FloatArray, outputs: tuple[str, ...]) -> str:
    """A number, or the range over several outputs with the names of its ends."""
    if len(values) == 1:
        return f"{values[0]:.4f}"
    low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    if f"{values[low]:.4f}" == f"{values[high]:.4f}":
        known = len(values) - int(np.isnan(values).sum())
        return f"{values[low]:.4f} for every output" if known == len(values) else f"{values[low]:.4f} where it is known"
    ends = (f"{values[k]:.4f} ({legible(outputs[k])})" for k in (low, high))
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


def _sentence(words: Words) -> Words:
    """The words with a capital letter and a full stop."""
    first = words.parts[0]
    capital = first[:1].upper() + first[1:] if isinstance(first, str) else first
    return Words(capital, *words.parts[1:], ".")
