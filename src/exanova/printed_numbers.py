"""Numbers in sentences and printed tables: a few digits, and whole numbers in place of powers of ten."""

from __future__ import annotations

import math

LARGEST = 1e15
"""Size from which numbers are printed with a power of ten."""


def printed(value: float, digits: int = 4) -> str:
    """A number with this many digits, or with its whole part where that has more.

    >>> printed(0.123456), printed(-57917.3), printed(999.96, 3), printed(2e-7), printed(-0.0)
    ('0.1235', '-57,917', '1,000', '2e-07', '0')
    """
    value = float(f"{value:.12g}")  # the last bits of 1.545 would decide between 1.54 and 1.55
    if 10.0**digits <= abs(float(f"{value:.{digits}g}")) < LARGEST:
        return f"{value:,.0f}"
    return f"{value + 0.0:,.{digits}g}"


def printed_change(value: float, digits: int = 4) -> str:
    """A number with its sign.

    >>> printed_change(0.5), printed_change(-1234.5), printed_change(0.0)
    ('+0.5', '-1,234', '+0')
    """
    text = printed(value, digits)
    return text if text.startswith("-") else f"+{text}"


def printed_error(error: float) -> str:
    """A standard error with two digits.

    >>> printed_error(0.0213), printed_error(0.5), printed_error(12345.0)
    ('0.021', '0.5', '12,000')
    """
    rounded = float(f"{error:.2g}")
    return f"{rounded:,.0f}" if 100 <= rounded < LARGEST else f"{rounded:.2g}"


def plus_minus(error: float) -> str:
    """What follows a number that has a standard error; nothing if there is none.

    >>> plus_minus(0.0213), plus_minus(float("nan"))
    (' ± 0.021', '')
    """
    return f" ± {printed_error(error)}" if math.isfinite(error) else ""
