"""Why a model raised on a table, and what to give it instead: the columns it knows, their types, another container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exanova.data.table import Table


def why_it_failed(error: Exception, respond: Any, table: Table) -> str:
    """The message about a model that raised ``error`` on ``table``; ``respond`` is what was called.

    >>> import numpy as np
    >>> why_it_failed(ValueError("no"), len, Table.read(np.array([[1, 2]])))[:44]
    'The model raised ValueError on 1 rows: no. I'
    """
    reason = " ".join(str(error).split()).rstrip(".")
    called = f"It was called with a {table.kind} table with the columns {list(table.names[:8])}"
    what_to_do = _other_columns(respond, table) or _matrix(error) or _categories(error, table)
    return (
        f"The model raised {type(error).__name__} on {table.n_rows} rows: {reason}. {called}; "
        f"{what_to_do or 'check that it accepts such a table'}."
    )


def _other_columns(respond: Any, table: Table) -> str:
    """Advice where a model knows the columns it was fitted on, and the table has others or another order."""
    known = _columns_of(getattr(respond, "__self__", respond))
    if table.kind == "numpy" or not known or known == table.names:
        return ""
    absent = [name for name in known if name not in table.names]
    if absent:
        return f"it was fitted on {_listed(known)}, and {_listed(absent)} is not among them"
    order = "in this order" if sorted(known) == sorted(table.names) else "and on no others"
    return f"it was fitted on {_listed(known)} {order}: give these columns, X[list(model.feature_names_in_)]"


def _columns_of(model: Any) -> tuple[str, ...]:
    names = getattr(model, "feature_names_in_", None)
    return () if names is None else tuple(map(str, names))


def _matrix(error: Exception) -> str:
    """Advice for a booster of XGBoost, which takes its own matrix alone."""
    if "DMatrix" not in str(error) or not isinstance(error, TypeError):
        return ""
    return (
        "give its scikit-learn interface, or a function such as "
        "lambda table: booster.predict(xgboost.DMatrix(table, enable_categorical=True))"
    )


def _categories(error: Exception, table: Table) -> str:
    """Advice for a model that was trained on categories and is given text."""
    if "categor" not in str(error).lower() or table.kind != "pandas":
        return ""
    text = [name for name in table.names if str(table.native[name].dtype) in ("object", "str", "string")]
    if not text:
        return ""
    return f"if it was trained on categories, give them as such: X.astype(dict.fromkeys({text[:8]!r}, 'category'))"


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
