"""The certificate as lines of text: first whether the effects are reliable, last how they were computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from exanova import tolerances
from exanova.messages import Parameter, Words, count_of, listed
from exanova.typing import FloatArray

if TYPE_CHECKING:
    from exanova.effects.certificate import Certificate

MEASURES_IT = Parameter("eval_set", 0.2)
"""What measures a selection on other rows."""

OFF = "off: "
"""How the reason begins why effects were not shrunk although that was requested."""

MOST_OUTPUTS = 8
"""Outputs whose numbers are listed, and columns."""


def described(c: Certificate) -> Iterator[tuple[str, str]]:
    """Name and text of every line."""
    yield "on other rows", _other_rows(c)
    yield "R2", f"{numbers(c.r2)} on these rows"
    yield "not explained", _not_explained(c)
    if c.columns_out:
        yield (
            "left out",
            f"{listed(c.columns_out, MOST_OUTPUTS)}: in no effect, though the model may use what they hold",
        )
    if c.bins:
        yield "bins", c.bins
    if c.cancels and c.cancellation is not None:
        yield "cancellation", f"{numbers(c.cancellation, 3)}-fold: effects cancel, read them together"
    if c.near_redundant:
        yield "near-redundant", "; ".join(", ".join(group) for group in c.near_redundant[:3])
    if c.shrinkage:
        yield "shrinkage", c.shrinkage
    yield "unique", _unique(c)
    yield "rank", _rank(c)
    yield "computed", _computed(c)
    if c.unmeasured:
        yield "not measured", f"{', '.join(c.unmeasured)}: moments hold no rows"
    steps = count_of(c.iterations, "iteration")
    yield "route", f"{c.route}: {c.method}, {steps}, {c.seconds:.2f} s"


def what_helps(c: Certificate) -> Words:
    """What lets a fit hold on other rows that does not, after "more rows"; nothing else where effects are shrunk.

    Pairs that are shrunk rarely harm: of 36 made-up tables whose shrunken fits did not hold, main effects alone
    explained more of other rows in 7 and less in 19.
    """
    order, pairs = Parameter("max_order"), len(c.rank_by_order) > 2
    if not c.shrinkage:
        shrinkage = Parameter("shrinkage", "auto")
        return Words(", a smaller ", order, " or ", shrinkage) if pairs else Words(" or ", shrinkage)
    return Words(" or a smaller ", order) if pairs and c.shrinkage.startswith(OFF) else Words("")


def _other_rows(c: Certificate) -> str:
    if not c.sampled:
        return f"there are none: {c.eval_method}"
    if c.r2_eval is None:
        why = "moments hold no rows" if c.unmeasured else c.eval_method
        return f"not measured: {why}" if why else "not measured"
    measured = f"R2 {numbers(c.r2_eval)} {c.eval_method or 'on held-out rows'}"
    if c.holds is None:
        return Words(measured, f": NOT known, because {c.why_unknown}; ", MEASURES_IT, " measures it")
    if c.holds and c.r2_least is not None:
        measured += f", at least {numbers(c.r2_least)} however much noise it followed"
    return f"{measured}: {'the fit holds' if c.holds else f'the fit does NOT hold on other rows{_of_which(c)}'}"


def _of_which(c: Certificate) -> str:
    """Of which outputs a fit does not hold, by number, where others do."""
    if len(c.failing) == len(c.r2):
        return ""
    shown, total = sorted(c.failing), len(c.r2)
    named = ", ".join(str(k + 1) for k in shown[:MOST_OUTPUTS])
    return f" (output {named}{', ...' if len(shown) > MOST_OUTPUTS else ''} of {total})"


def _not_explained(c: Certificate) -> str:
    lost, loss = np.maximum(1.0 - c.r2, 0.0), c.loss
    if loss is None or not (lost > tolerances.RECONSTRUCTION).any():
        return f"{numbers(100 * np.where(lost > tolerances.RECONSTRUCTION, lost, 0.0), 3)} %"
    named = loss.named(int(np.argmax(lost)))
    parts = ", ".join(f"{name} {100 * share:.2g} %" for name, share in named.items())
    return f"{numbers(100 * lost, 3)} %{': ' if len(lost) == 1 else '; of the largest: '}{parts}"


def _unique(c: Certificate) -> str:
    if c.unique is None:
        return "not determined; effect.identified determines it for one effect"
    if c.unique:
        return "yes"
    if not c.redundant:
        return f"no, there are {c.n_functions:,} functions on {c.rank:,} distinct rows"
    return f"no, for {count_of(len(c.redundant), 'subset')} others carry the same information"


def _rank(c: Certificate) -> str:
    if not c.rank_known:
        return f"not determined, at most {c.rank:,} of {c.n_functions:,} functions"
    return f"{c.rank:,} = {' + '.join(f'{k:,}' for k in c.rank_by_order)}, of {c.n_functions:,} functions"


def _computed(c: Certificate) -> str:
    if not c.exact:
        return f"NOT exactly: {'; '.join(c.notes)}"
    sums = f", their sum within {c.reconstruction:.1e}" if c.saturated else ""
    return f"exactly: effects orthogonal within {c.orthogonality:.1e} of the model's spread{sums}"


def numbers(values: FloatArray, digits: int = 4) -> str:
    """Numbers of the first outputs; those that are not known in words."""
    shown = ", ".join("unknown" if np.isnan(v) else f"{v:.{digits}g}" for v in values[:MOST_OUTPUTS])
    return shown + (", ..." if len(values) > MOST_OUTPUTS else "")
