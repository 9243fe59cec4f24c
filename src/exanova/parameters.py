"""Validation of the parameters of a decomposition, and the request to the engine for a given support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

import numpy as np

from exanova import parallel
from exanova.argument_checks import is_choice, is_whole
from exanova.basis.names import BASES
from exanova.data.encoding import Encoding
from exanova.data.link import LINKS
from exanova.data.rules import wrong_max_levels, wrong_rules
from exanova.data.support import Support
from exanova.design.families import named_family
from exanova.design.memory import resolve_limit
from exanova.errors import InputError
from exanova.messages import Parameter, Part, Value, choices
from exanova.queries.query import seed_of
from exanova.select.budget import check_budget
from exanova.select.selection_plan import mains_of
from exanova.solve.request import Request, SelectionName
from exanova.solve.traits import TRAITS
from exanova.sources.cluster import is_client
from exanova.sources.opening import is_source

MOST_TERMS = 5000
"""Largest budget that ``max_terms="auto"`` tries: beyond, a shrunken fit takes minutes."""

CHOICES: Mapping[str, tuple[str | bool | None, ...]] = {
    "basis": BASES,
    "ties": ("share", "first"),
    "route": ("auto", *TRAITS),
    "selection": (*get_args(SelectionName), None),
    "link": tuple(LINKS),
    "handle_unknown": ("error", "ignore"),
    "response_method": ("auto", "predict_proba", "predict", "decision_function"),
    "shrinkage": ("auto", None),
    "sampled": (True, False, "auto"),
    "strict": (True, False),
    "verbose": (True, False, None),
}
"""Parameters that are one of a few values."""

FINITE = "a finite number of at least 0"

RULES: Mapping[str, tuple[Callable[[Any], bool], tuple[Part, ...]]] = {
    "max_order": (
        lambda value: value is None or is_whole(value, 0),
        ("a whole number of at least 0, or ", Value("max_order", None)),
    ),
    "max_terms": (
        lambda value: is_choice(value, ("auto", None)) or is_whole(value, 1),
        ("a whole number of functions, ", Value("max_terms", "auto"), ", or None for no budget"),
    ),
    "min_gain": (lambda value: _is_number(value), (FINITE,)),
    "ridge": (lambda value: _is_number(value), (FINITE,)),
    "random_state": (
        lambda value: value is None or is_whole(value, 0),
        ("a whole number of at least 0, or None for a fresh seed",),
    ),
    "engine": (
        lambda value: value is None or is_client(value),
        ("a client of dask.distributed, or None",),
    ),
    "batch_size": (
        lambda value: value is None or is_whole(value, 1),
        ("at least one row, or None for all rows at once",),
    ),
}
"""For the other parameters: whether a value is allowed, and what is expected."""


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse invalid parameters, all in one message, before anything is computed."""
    wrong = list(_wrong_parameters(given))
    if wrong:
        raise wrong[0] if len(wrong) == 1 else InputError.together(wrong)


def _wrong_parameters(given: Mapping[str, Any]) -> Iterator[InputError]:
    for name, allowed in CHOICES.items():
        if not is_choice(given[name], allowed):
            yield InputError.given(name, given[name], *choices(name, allowed))
    for name, (is_allowed, expected) in RULES.items():
        if not is_allowed(given[name]):
            yield InputError.given(name, given[name], *expected)
    yield from wrong_rules(given["min_frequency"], given["n_bins"], given["strategy"])
    yield from wrong_max_levels(given["max_levels"])
    for check, name in ((resolve_limit, "memory_limit"), (parallel.thread_count, "n_jobs")):
        if given[name] is None:
            continue
        try:
            check(given[name])
        except InputError as error:
            yield error
    if is_choice(given["selection"], ("screen", "canonical")) and given["max_terms"] is None:
        yield InputError(
            Parameter("selection", given["selection"]),
            " needs a budget",
            remedy=["give ", Parameter("max_terms"), ", a number of functions"],
        )


def read_eval_set(eval_set: Any, model: Any) -> tuple[Any, Any] | float | None:
    """Rows and a model to evaluate a fit on, or a fraction of the rows; ``model`` goes with rows in blocks alone."""
    if eval_set is None or (isinstance(eval_set, tuple) and len(eval_set) == 2):
        return eval_set
    if is_source(eval_set):
        return eval_set, model
    if isinstance(eval_set, float) and 0.0 < eval_set < 1.0:
        return eval_set
    raise InputError.given(
        "eval_set", eval_set, "a pair (rows, model), a path of rows, or a fraction of the rows such as 0.2"
    )


def the_model(model: Any, y: Any) -> Any:
    """The model to decompose, under either of its names."""
    if model is not None and y is not None:
        raise InputError("fit(X, model, y=...) was given both a model and y, which mean the same; give one of them.")
    if model is None and y is None:
        raise InputError(
            "FunctionalANOVA requires y to be passed, but the target y is None; give what is to be decomposed: a "
            "fitted estimator, a function of the rows, or its outputs there."
        )
    return y if model is None else model


def make_request(given: Mapping[str, Any], support: Support, encoding: Encoding) -> Request:
    """The request to the engine for this support, from checked parameters."""
    order, budget = given["max_order"], given["max_terms"]
    selection: Any = given["selection"] or ("screen" if budget is not None else None)
    to_find = isinstance(budget, str)
    if to_find:  # a lasso finds its own
        budget = None if selection == "lasso" else min(MOST_TERMS, max(mains_of(support.sizes), support.codes.shape[1]))
    family = candidates = None
    if given["subsets"] is not None:
        limit = resolve_limit(given["memory_limit"])
        named = named_family(given["subsets"], support.feature_names, support.sizes, limit)
        family, candidates = (None, named) if selection else (named, None)
        order = max(map(len, named))
    if budget is not None and not to_find:
        check_budget(support.sizes, int(budget))
    return Request(
        subsets=family,
        candidates=candidates,
        max_terms=None if budget is None else int(budget),
        auto_terms=to_find and budget is not None,
        selection=selection,
        min_gain=float(given["min_gain"]),
        ridge=float(given["ridge"]),
        random_state=seed_of(given["random_state"]),
        shrinkage=given["shrinkage"] == "auto",
        sampled=given["sampled"] is not False,
        ordered=encoding.ordered,
        neighboured=encoding.neighboured,
        max_order=None if order is None else int(order),
        basis=given["basis"],
        ties=given["ties"],
        route=given["route"],
        memory_limit=resolve_limit(given["memory_limit"]),
        threads=parallel.thread_count(given["n_jobs"]),
    )


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float | np.number) and bool(0 <= value < np.inf)
