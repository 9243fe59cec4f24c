"""What the parameters of a decomposition may be, and the request they make of the engine for a given support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exanova import parallel
from exanova.data.support import Support
from exanova.design.families import named_family
from exanova.design.memory import resolve_limit
from exanova.errors import InputError
from exanova.select.budget import check_budget
from exanova.solve.request import Request

CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "basis": ("pure", "paper"),
    "ties": ("share", "first"),
    "route": ("auto", "grid", "dense", "moments", "matrix-free"),
    "selection": (None, "screen", "canonical", "lasso"),
    "handle_unknown": ("error", "ignore"),
    "response_method": ("auto", "predict_proba", "predict", "decision_function"),
    "strategy": ("uniform", "quantile", "kmeans"),
    "shrinkage": (None, "auto"),
}


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse parameters that cannot be, before anything is computed."""
    for name, allowed in CHOICES.items():
        if not (given[name] is None or isinstance(given[name], str)) or given[name] not in allowed:
            raise InputError(f"{name}={given[name]!r} was given; expected one of {', '.join(map(repr, allowed))}.")
    order, budget = given["max_order"], given["max_terms"]
    if order is not None and not _is_whole(order, 0):
        raise InputError(f"max_order={order!r} was given; expected a whole number of at least 0, or None.")
    if budget is not None and not _is_whole(budget, 1):
        raise InputError(f"max_terms={budget!r} was given; expected a whole number of functions.")
    if given["selection"] in ("screen", "canonical") and budget is None:
        raise InputError(f"selection={given['selection']!r} spends a budget; give max_terms=, a number of functions.")
    if given["sampled"] not in (True, False, "auto") or isinstance(given["sampled"], int | float) != isinstance(
        given["sampled"], bool
    ):
        raise InputError(f"sampled={given['sampled']!r} was given; expected True, False or 'auto'.")
    for name in ("min_gain", "ridge"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
            raise InputError(f"{name}={value!r} was given; expected a number of at least 0.")


def check_eval_set(eval_set: Any) -> None:
    """Refuse what is neither a pair of rows and model nor a share of the rows."""
    if eval_set is None or (isinstance(eval_set, tuple) and len(eval_set) == 2):
        return
    if isinstance(eval_set, float) and 0.0 < eval_set < 1.0:
        return
    raise InputError(
        f"eval_set={eval_set!r} was given; expected a pair (rows, model), or a share of the rows such as 0.2."
    )


def make_request(given: Mapping[str, Any], support: Support, ordered: tuple[int, ...] = ()) -> Request:
    """What is asked of the engine on this support; ``ordered`` (d,) tells how many levels of a feature are in order."""
    check_parameters(given)
    order, budget = given["max_order"], given["max_terms"]
    selection: Any = given["selection"] or ("screen" if budget is not None else None)
    family = candidates = None
    if given["interactions"] is not None:
        limit = resolve_limit(given["memory_limit"])
        named = named_family(given["interactions"], support.feature_names, support.sizes, limit)
        family, candidates = (None, named) if selection else (named, None)
        order = max(map(len, named))
    if budget is not None:
        check_budget(support.sizes, int(budget))
    return Request(
        subsets=family,
        candidates=candidates,
        max_terms=None if budget is None else int(budget),
        selection=selection,
        min_gain=float(given["min_gain"]),
        ridge=float(given["ridge"]),
        random_state=int(given["random_state"]),
        shrinkage=given["shrinkage"] == "auto",
        sampled=not support.is_complete if given["sampled"] == "auto" else bool(given["sampled"]),
        ordered=ordered,
        max_order=None if order is None else int(order),
        basis=given["basis"],
        ties=given["ties"],
        route=given["route"],
        memory_limit=resolve_limit(given["memory_limit"]),
        threads=parallel.thread_count(given["n_jobs"]),
    )


def _is_whole(value: Any, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | np.integer) and bool(value >= least)
