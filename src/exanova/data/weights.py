"""Weights of rows: what is accepted, and when they are exact counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.alignment import to_rows
from exanova.data.recoding import occurrences, places
from exanova.errors import InputError, InputTypeError
from exanova.messages import count_of

LARGEST_TOTAL = 2**53
"""Counts up to this total are exact in float64 as well, so that sums may be made in either."""

ORDINARY = 200
"""Real weights of which the largest is beyond 2 to the power of plus or minus this are divided by a power of two: the
fourth powers of all others are ordinary numbers, and so are sums of them."""

ONE = np.int64(1)


def check_weights(weight: Any, n: int, index: Any = None, added: bool = False) -> NDArray[Any]:
    """Weights (n,) as int64 when all are whole numbers (counts), else as float64; ``None`` means one each.

    Weights of pandas are matched with the ``index`` of the rows, if these have one, by label. Only ratios of real
    weights count, so that very large and very small ones are divided by a power of two; with ``added``, for weights
    that are added to those of other places, they are refused.

    >>> check_weights([1.0, 2.0], 2).dtype.name, check_weights([0.5, 2.0], 2).dtype.name
    ('int64', 'float64')
    """
    if weight is None:
        return np.broadcast_to(ONE, n)  # n ones in the memory of one
    refuse_mask(weight, "The weights")
    weights = np.asarray(to_rows(weight, index, "The weights"))
    if weights.shape != (n,):
        raise InputError(f"The weights have the shape {weights.shape}; expected ({n},): one for each row.")
    real = _as_real(weights)
    if added and excess(float(real.max(initial=0.0))):
        raise InputError(
            f"the largest weight is {real.max():.3g}, and squares of such weights cannot be added up",
            remedy="divide the weights of all places by the same number",
        )
    return as_counts(real)


def refuse_mask(values: Any, what: str) -> None:
    """Raise if some entries of ``values`` are masked: masked values are undefined."""
    if np.ma.is_masked(values):
        count = int(np.ma.getmaskarray(values).sum())
        raise InputError(
            f"{what} are a masked array, and {count} of its entries are masked; fill them first, for example with "
            ".filled(0) for what should not count."
        )


def as_counts(weights: NDArray[Any]) -> NDArray[Any]:
    """Non-negative weights of any shape as int64 if all are whole, else float64; raises if they are unusable."""
    real = weights.astype(np.float64)
    check_values(real)
    if not real.any():
        raise InputError("All weights are zero; at least one has to be positive.")
    real = divided(real, excess(float(real.max())))
    if float(real.sum()) <= LARGEST_TOTAL and bool(np.all(real == np.floor(real))):
        return real.astype(np.int64)
    return real


def excess(size: float) -> int:
    """The power of two by which weights of this size are divided; 0 where they stay as they are.

    >>> excess(3.5), excess(1e100), excess(1e-100)
    (0, 333, -332)
    """
    exponent = int(np.frexp(size)[1])
    return exponent if abs(exponent) > ORDINARY else 0


def power_of(given: Any, checked: NDArray[Any]) -> int:
    """The power of two by which weights as they were ``given`` are divided in those that were ``checked``.

    >>> power_of([1e300, 1e299], check_weights([1e300, 1e299], 2)), power_of([2, 1], check_weights([2, 1], 2))
    (997, 0)
    """
    if given is None or checked.dtype.kind == "i":
        return 0
    return excess(float(np.asarray(given, dtype=np.float64).max(initial=0.0)))


def divided(weights: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    """Weights divided by two to this power; positive ones stay positive."""
    if not power:
        return weights
    return np.where(weights > 0, np.maximum(np.ldexp(weights, -power), np.finfo(np.float64).tiny), 0.0)


def group_totals(weight: NDArray[Any], group: NDArray[Any], n_groups: int, lowest: int = 0) -> NDArray[Any]:
    """Total weight of each group, shape (n_groups,), of the dtype of ``weight``; counts stay exact.

    Groups are numbered from ``lowest`` on.

    >>> group_totals(np.array([1, 2, 4]), np.array([0, 1, 0]), 2).tolist()
    [5, 2]
    """
    if weight.strides == (0,) and weight.dtype.kind == "i":
        return np.asarray(occurrences(group, n_groups, lowest) * weight[:1])
    return np.bincount(places(group, lowest), weights=weight, minlength=n_groups).astype(weight.dtype)


def _as_real(weights: NDArray[Any]) -> NDArray[Any]:
    if weights.dtype.kind not in "biufO":
        raise InputTypeError(f"The weights are of dtype {weights.dtype}; expected real numbers.")
    try:
        return weights.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError("The weights hold something that is not a number; expected real numbers.") from error


def check_values(weights: NDArray[np.float64]) -> None:
    """Raise if a weight is NaN, infinite or negative."""
    wrong = ~np.isfinite(weights)
    if wrong.any():
        raise InputError(
            f"{count_of(int(wrong.sum()), 'weight is', 'weights are')} NaN or infinite, the first at {_first(wrong)}; "
            "give finite numbers, and 0 for what should not count."
        )
    negative = weights < 0
    if negative.any():
        raise InputError(
            f"{count_of(int(negative.sum()), 'weight is', 'weights are')} negative, the first at {_first(negative)}; "
            "give numbers of at least 0."
        )


def _first(mask: NDArray[np.bool_]) -> str:
    position = np.argwhere(mask)[0].tolist()
    return f"position {position[0] if len(position) == 1 else tuple(position)}"
