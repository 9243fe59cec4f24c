"""Memory limits: bytes that may be used, and how to print them."""

from __future__ import annotations

import math
import os
import re
from numbers import Real

from exanova.errors import InputError
from exanova.messages import Parameter

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = "give bytes, or a text such as '4 GB'"
SHARE = 0.8
"""Fraction of the available memory that a plan may use when no limit is given."""


def resolve_limit(limit: int | float | str | None) -> int:
    """Bytes a plan may use: a number, a text such as "4 GB", or ``None`` for most of the available memory.

    >>> resolve_limit("1.5 GB"), resolve_limit(1e6)
    (1500000000, 1000000)
    """
    if limit is None:
        return int(SHARE * available())
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?I?)B?\s*", limit.upper())
        if not match or match[2] not in UNITS:
            raise InputError(Parameter("memory_limit", limit), " is not a size", remedy=SIZE)
        limit = float(match[1]) * UNITS[match[2]]
    if isinstance(limit, bool) or not isinstance(limit, Real) or not 0 < limit < math.inf:
        raise InputError(Parameter("memory_limit", limit), " is not a positive size", remedy=SIZE)
    return int(limit)


def available() -> int:
    """Bytes of available memory (of total memory where the system does not report what is available)."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    if hasattr(os, "sysconf"):
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    return 8 * 10**9


def readable(size: float) -> str:
    """A number of bytes with a unit, rounded for reading.

    >>> readable(61_000_000)
    '61 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
