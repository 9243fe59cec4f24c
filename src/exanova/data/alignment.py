"""Alignment of pandas rows with numbers that have their own index."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from exanova.errors import InputError, ModelError
from exanova.typing import IntArray


def to_rows(given: Any, index: Any, what: str) -> Any:
    """Numbers given beside rows with the pandas ``index``, in the order of those rows.

    Equal indexes, or no index on one side, go by position; the same labels in another order are put in order.
    Anything else raises: by position the numbers would silently belong to other rows.
    """
    own = _index_of(given, index)
    if own is None or own.equals(index):
        return given
    order = _order(own, index)
    if order is None:
        raise InputError(
            f"{what} have another index than X: {_difference(own, index)}. Reindex them to the index of X, or pass "
            ".to_numpy() if they are in the order of its rows."
        )
    return given.iloc[order]


def to_batch(returned: Any, index: Any) -> Any:
    """What a model returned for rows with the pandas ``index``, in the order of those rows.

    As ``to_rows``, except that a fresh index 0, 1, ... carries no information about the rows and is matched by
    position. Where the index of the rows consists of the same numbers in another order, the match is ambiguous, and it
    raises.
    """
    own = _index_of(returned, index)
    if own is None or own.equals(index):
        return returned
    order, fresh = _order(own, index), _is_fresh(own)
    if order is not None and not fresh:
        return returned.iloc[order]
    if order is None and fresh:
        return returned
    raise ModelError(
        f"The model returned a pandas {type(returned).__name__} with another index than the rows it was given: "
        f"{_difference(own, index)}. Let it return .to_numpy() if its values are in the order of the rows, or "
        "keep the index of the rows."
    )


def _index_of(values: Any, index: Any) -> Any:
    """The index of a Series or DataFrame if it has to be compared with ``index``, else ``None``."""
    if index is None or not (nw.dependencies.is_pandas_series(values) or nw.dependencies.is_pandas_dataframe(values)):
        return None
    return values.index if len(values) == len(index) else None  # a wrong number of rows is reported elsewhere


def _order(own: Any, index: Any) -> IntArray | None:
    """Positions in ``own`` of the labels of ``index``; ``None`` unless both hold the same labels, none twice."""
    if not (own.is_unique and index.is_unique) or own.nlevels != index.nlevels:
        return None
    order = _positions(own, index)
    return order if (order >= 0).all() else None


def _positions(own: Any, index: Any) -> IntArray:
    """Positions (n,) in ``own`` of the labels of ``index``, -1 where absent; intervals are compared, not searched."""
    return np.asarray(own.astype(object).get_indexer(index.astype(object)), dtype=np.int64)


def _is_fresh(index: Any) -> bool:
    """Whether this is the index that pandas makes where none is given."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _difference(own: Any, index: Any) -> str:
    if not (own.is_unique and index.is_unique):
        return f"labels are repeated and in another order, here {_some(own)}, in X {_some(index)}"
    if _order(own, index) is not None:
        return f"here {_some(own)}, there {_some(index)}, and both are the same numbers"
    absent = index[_positions(own, index) < 0] if own.nlevels == index.nlevels else index
    return f"{len(absent)} of its {len(index)} labels are absent, among them {_some(absent)}"


def _some(index: Any, limit: int = 3) -> str:
    shown = ", ".join(repr(label) for label in index[:limit].tolist())
    return f"{shown}, ..." if len(index) > limit else shown
