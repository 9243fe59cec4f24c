"""Why a route is not applicable to a request and a surveyed table, in words; ``None`` where it is."""

from __future__ import annotations

import numpy as np

from exanova.messages import Parameter, Value, Words, joined
from exanova.solve.request import Request
from exanova.solve.survey import Survey, is_complete


def grid_refusal(request: Request, survey: Survey) -> str | None:
    """The grid route needs a complete table, all orders and no ridge."""
    sample, d = survey.sample, len(survey.sample.varying)
    if request.ridge:
        return _needs_gram(request)
    if request.all_orders(d) and is_complete(sample):
        return None
    return Words(
        Parameter("route", "grid"),
        " needs a table in which every combination of levels occurs, and all orders (",
        Parameter("max_order", None),
        f"); this table has {sample.n_rows:,} of {np.prod(sample.sizes, dtype=object):,} combinations, with ",
        Parameter("max_order", request.max_order),
        ". Use ",
        Parameter("route", "auto"),
        ".",
    )


def dense_refusal(request: Request, survey: Survey) -> str | None:
    """The dense route needs tables of functions and no ridge."""
    return _needs_gram(request) if request.ridge else tables_refusal(request, survey)


def _needs_gram(request: Request) -> str:
    return Words(
        Parameter("ridge", request.ridge),
        " needs ",
        Parameter("route", "moments"),
        " or ",
        Value("route", "auto"),
        "; ",
        Parameter("route", request.route),
        " has none.",
    )


def tables_refusal(request: Request, survey: Survey) -> str | None:
    """Routes that need tables of functions are not applicable to pairs with too many cells."""
    return matrix_free_refusal(request, survey) if survey.has_large_pairs else None


def matrix_free_refusal(request: Request, survey: Survey) -> str | None:
    """The matrix-free route needs pure functions, shared ties and no ridge."""
    if request.is_plain:
        return None
    given = joined((Words(Parameter(name, getattr(request, name))) for name in ("basis", "ties", "ridge")), ", ")
    plain = joined(map(Words, (Parameter("basis", "pure"), Parameter("ties", "share"), Parameter("ridge", 0))), ", ")
    required = Words(" cannot be combined with the matrix-free route, which this table or ", Parameter("route"))
    return Words(given, required, " requires; use ", plain, ".")


def completion_refusal(request: Request, survey: Survey) -> str | None:
    """The completion route needs all orders, and what the matrix-free route needs."""
    plain = tables_refusal(request, survey) or matrix_free_refusal(request, survey)
    if plain or request.all_orders(len(survey.sample.varying)):
        return plain
    return Words(
        Parameter("route", "completion"),
        " needs all orders (",
        Parameter("max_order", None),
        "); here ",
        Parameter("max_order", request.max_order) if request.subsets is None else Parameter("subsets"),
        " leaves some out. Use ",
        Parameter("route", "auto"),
        ".",
    )
