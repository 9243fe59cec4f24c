"""Replicate weights of rows that are read in blocks: columns by name, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exanova.data.draws import refuse_both
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.sources.counting_passes import CountedRows
from exanova.typing import FloatArray


def check_replicates(named: Mapping[str, Any]) -> tuple[tuple[str, ...], FloatArray | None]:
    """The columns of ``replicate_weights``, and the factor (B,) of each; no columns and ``None`` without them.

    >>> check_replicates({"replicate_weights": (["w1", "w2"], 0.5)})
    (('w1', 'w2'), array([0.5, 0.5]))
    """
    given = named.get("replicate_weights")
    if given is None:
        return (), None
    refuse_both(named.get("clusters"), named.get("strata"))
    columns, scale = given if isinstance(given, tuple) and len(given) == 2 else (None, None)
    if not isinstance(columns, list | tuple) or not columns or not all(isinstance(name, str) for name in columns):
        raise InputError(
            Parameter("replicate_weights"),
            " of rows read in blocks cannot be an array",
            expected="a pair (names of columns, scale)",
        )
    try:
        factors = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError):
        factors = np.array(np.nan)
    if factors.shape not in ((), (len(columns),)) or not np.isfinite(factors).all() or (factors < 0).any():
        raise InputError(f"the scale of replicate_weights= is {scale!r}; expected a number, or one for each column.")
    return tuple(columns), np.broadcast_to(factors, (len(columns),)).copy()


def check_sums(rows: CountedRows, names: Sequence[str]) -> None:
    """Raise for replicate weights that are negative, or zero in all rows."""
    sums = rows.tally.replicates
    if sums is None:
        return
    wrong = [name for name, own in zip(names, sums.T, strict=True) if (own < 0).any() or not own.sum() > 0]
    if wrong:
        raise InputError(
            f"replicate weights have to be at least 0, and not all 0 in a column; see {', '.join(map(repr, wrong))}."
        )
