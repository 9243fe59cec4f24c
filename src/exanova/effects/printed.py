"""The printed text of a decomposition: fit, certificate, strongest effects."""

from __future__ import annotations

import numpy as np

from exanova.design.family import Family
from exanova.effects.certificate import Certificate
from exanova.effects.effect import GAME, Schema
from exanova.effects.norms import shown_norms, strongest_first
from exanova.printed_numbers import plus_minus, printed
from exanova.typing import FloatArray

STRONGEST = 10


def text_of(
    family: Family,
    values: FloatArray,
    schema: Schema,
    certificate: Certificate,
    rows: str,
    stderr: FloatArray | None = None,
    shares: FloatArray | None = None,
) -> str:
    """The text that ``print`` shows of a fitted decomposition.

    Args:
        family, values, schema, certificate: the decomposition.
        rows: how many rows and features it has, in words.
        stderr: (S,) standard errors of the squared norms, if known; NaN where an effect is not identified.
        shares: (S,) net shares of the variance, to be shown beside the norms.
    """
    norms = shown_norms(family, values)
    centred = norms[1:].sum(axis=1) if len(norms) > 1 else np.zeros(0)
    order = strongest_first(centred)[:STRONGEST]
    lines = [
        f"Functional ANOVA of {_outputs(schema)} over {rows}",
        f"game: {GAME}",
        "",
        str(certificate),
        "",
        f"mean: {', '.join(printed(v) for v in values[0][:8])}{', ...' if values.shape[1] > 8 else ''}",
    ]
    if len(order):
        net = "" if shares is None else "; net share of the variance"
        lines.append(f"strongest effects (squared norm, all outputs{net}):")
        width = max(len(_name(family, schema, s + 1)) for s in order)
        for s in order + 1:
            error = "" if stderr is None or not centred[s - 1] else plus_minus(stderr[s])
            share = "" if shares is None else f"  {100 * shares[s]:+.1f} %"
            lines.append(f"  {_name(family, schema, s):<{width}}  {printed(centred[s - 1])}{error}{share}")
    if len(centred) > STRONGEST:
        lines.append(f"  and {len(centred) - STRONGEST:,} more")
    if certificate.redundant:
        lines.append("subsets that carry the same information on these rows (how they share it is a convention):")
        lines += [f"  {r}" for r in certificate.redundant[:5]]
        if len(certificate.redundant) > 5:
            lines.append(f"  and {len(certificate.redundant) - 5:,} more")
    return "\n".join(lines)


def _name(family: Family, schema: Schema, s: int) -> str:
    return " x ".join(schema.names(family.subsets[s]))


def _outputs(schema: Schema) -> str:
    return "one output" if len(schema.outputs) == 1 else f"{len(schema.outputs)} outputs"
