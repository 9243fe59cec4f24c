"""Rows that arrive in parts, and estimators that were fitted in different places: moments added, then one fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from exanova.apart.moments import Moments, collect_moments, merge_moments
from exanova.apart.moments_file import load_levels, load_moments
from exanova.apart.moments_fit import fit_moments
from exanova.data.encoding import Encoding
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.decomposition import Decomposition
from exanova.design.memory import resolve_limit
from exanova.errors import InputError, InputTypeError
from exanova.messages import Parameter
from exanova.queries.query import QuerySettings

PLAIN = {"subsets": None, "max_terms": None, "selection": None, "ridge": 0.0, "basis": "pure"}
"""Parameters that moments do not support, and the only value each may have."""

NOT_SHRUNK = "off: moments hold no rows to estimate it from"


def check_supported(parameters: Mapping[str, Any]) -> None:
    """Raise one error for all parameters that a fit from moments does not support."""
    changed = [name for name, plain in PLAIN.items() if parameters[name] != plain]
    if parameters["route"] not in ("auto", "moments"):
        changed.append("route")
    if parameters["max_order"] not in (1, 2):
        changed.append("max_order")
    if changed:
        raise InputError(
            *[part for name in changed for part in (Parameter(name, parameters[name]), ", ")][:-1],
            " cannot be fitted from moments",
            expected=["all subsets up to ", Parameter("max_order", 1), " or 2 with pure functions"],
            remedy="leave these parameters out, or fit all rows at once",
        )


def levels_of(
    given: Encoding | str | os.PathLike[str] | None, X: Any, rules: Mapping[str, Any], weight: Any
) -> Encoding:
    """Levels that were given, in a file or as an encoding, or those of the first rows."""
    if isinstance(given, Encoding):
        return given
    if isinstance(given, str | os.PathLike):
        return load_levels(given)
    if given is not None:
        raise InputTypeError(
            Parameter("levels"),
            f" is a {type(given).__name__}",
            expected="the path of a file of levels, an Encoding, or None",
        )
    return learn_encoding(Table.read(X), weights=weight, **rules)


def moments_of_part(
    known: Moments | None,
    X: Any,
    model: Any,
    levels: Encoding,
    parameters: Mapping[str, Any],
    sample_weight: Any,
    output_names: Sequence[str] | None,
) -> Moments:
    """The moments of some rows, added to those known."""
    check_supported(parameters)
    moments = collect_moments(
        X,
        model,
        levels,
        max_order=parameters["max_order"],
        sample_weight=sample_weight,
        output_names=output_names,
        response_method=parameters["response_method"],
        memory_limit=parameters["memory_limit"],
    )
    return moments if known is None else known + moments


def merged_moments(known: Moments | None, others: Sequence[Any]) -> Moments:
    """The moments of estimators, of files and of ``Moments``, together."""
    moments = [] if known is None else [known]
    for other in others:
        if isinstance(other, str | os.PathLike):
            moments.append(load_moments(other))
        elif isinstance(other, Moments):
            moments.append(other)
        elif isinstance(getattr(other, "moments_", None), Moments):
            moments.append(other.moments_)
        else:
            raise InputTypeError(
                f"a {type(other).__name__} without moments was given; expected moments, the path of a file of moments, "
                "or an estimator that was fitted by partial_fit."
            )
    return merge_moments(moments)


def fit_of_moments(
    moments: Moments, parameters: Mapping[str, Any], settings: QuerySettings, kind: str = "numpy"
) -> Decomposition:
    """The decomposition of moments with the parameters of an estimator."""
    check_supported(parameters)
    return fit_moments(
        moments,
        settings,
        ties=parameters["ties"],
        max_order=min(int(parameters["max_order"]), moments.max_order),
        kind=kind,
        memory_limit=resolve_limit(parameters["memory_limit"]),
        shrinkage=NOT_SHRUNK if parameters["shrinkage"] == "auto" else "",
    )
